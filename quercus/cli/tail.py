"""A growing file, or standard input, line by line as they come."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from quercus.errors import DataError

TICK = 0.2  # seconds between two looks
BLOCK = 2**22  # bytes at once


class Tail:
    """Whole lines as they come, as bytes; None where for a moment nothing came.

    A file that was replaced is read to its end, then the new one; one that became shorter is read from its beginning.
    """

    def __init__(self, path: str, offset: int = 0) -> None:
        self.path = path
        self._left = b""
        self._read = offset
        self.begun = 0  # how often it began again
        self._replaced = False  # there is another file in its place
        self._fd = sys.stdin.fileno() if path == "-" else self._open()

    def _open(self) -> int:
        try:
            fd = os.open(self.path, os.O_RDONLY)
        except OSError as e:
            raise DataError(f"'{self.path}' cannot be read: {e.strerror}") from None
        os.lseek(fd, self._read, os.SEEK_SET)
        return fd

    @property
    def offset(self) -> int:
        """How much of the file was given out."""
        return self._read - len(self._left)

    def __iter__(self) -> Iterator[bytes | None]:
        while True:
            if self.path == "-" and not select.select([self._fd], [], [], TICK)[0]:
                yield None
                continue
            found = os.read(self._fd, BLOCK)
            self._read += len(found)
            if not found and self.path == "-":
                if self._left:
                    self._left, last = b"", self._left + b"\n"
                    yield last
                return
            lines, newline, rest = (self._left + found).rpartition(b"\n")
            self._left = rest
            if newline:
                yield lines + newline
            elif not found and self._replaced:
                if self._left:
                    self._left, last = b"", self._left + b"\n"
                    yield last
                self._begin_again()
            elif not found:
                yield None
                self._wait()

    def _wait(self) -> None:
        time.sleep(TICK)
        try:
            there, here = Path(self.path).stat(), os.fstat(self._fd)
        except FileNotFoundError:
            return  # it may come back
        if here.st_size < self._read:
            self._begin_again()
        elif there.st_ino != here.st_ino:
            self._replaced = True  # nobody writes to this one any more, but somebody may just have

    def _begin_again(self) -> None:
        os.close(self._fd)
        self._read, self._left, self._replaced = 0, b"", False
        self.begun += 1
        self._fd = self._open()

"""Runs as the studio sees them: one at a time, each in a worker process that is ended when it is no longer wanted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from quercus.errors import QuercusError


class Gone(QuercusError):
    """The worker is no longer there."""


class Process:
    """A worker process and the line to it."""

    def __init__(self) -> None:
        paths = os.pathsep.join(p for p in sys.path if p)
        self.child = subprocess.Popen(
            [sys.executable, "-P", "-m", "quercus.studio.worker"],  # -P: modules in the current folder are not ours
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": paths},
            start_new_session=True,  # Ctrl-C is for the studio, which ends its workers itself
        )
        self.lock = threading.Lock()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer of the worker, when it comes."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        with self.lock:
            try:
                self.child.stdin.write(json.dumps(request) + "\n")
                self.child.stdin.flush()
                line = self.child.stdout.readline()
            except (OSError, ValueError):
                line = ""
        if not line:
            raise Gone("the run has ended")
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        self.child.kill()
        self.child.wait()
        with self.lock:  # whoever still asks gets an end of file first
            for pipe in (self.child.stdin, self.child.stdout):
                if pipe is not None:
                    with suppress(OSError):  # what was not yet sent has nobody to go to
                        pipe.close()


class Job:
    """One run, from its start until the next one takes its place."""

    def __init__(self, number: int, process: Process, request: dict[str, Any]) -> None:
        self.number, self.process = number, process
        self.state = "running"
        self.result: dict[str, Any] = {}
        self.began = time.monotonic()
        self.seconds = 0.0
        self.thread = threading.Thread(target=self._run, args=(request,), daemon=True)
        self.thread.start()

    def _run(self, request: dict[str, Any]) -> None:
        try:
            result = self.process.ask(request)
        except Gone:
            self._finish("cancelled" if self.state == "cancelled" else "failed", {"failed": "the run ended by itself"})
        else:
            self._finish("failed" if "failed" in result else "done", result)

    def _finish(self, state: str, result: dict[str, Any]) -> None:
        self.seconds = time.monotonic() - self.began
        self.result, self.state = result, state

    def told(self) -> dict[str, Any]:
        """How far it is, and when it is done, with what."""
        seconds = self.seconds if self.state != "running" else time.monotonic() - self.began
        return {"job": self.number, "state": self.state, "seconds": round(seconds, 2), **self.result}

    def cancel(self) -> None:
        if self.state == "running":
            self.state = "cancelled"
        self.process.end()


class Jobs:
    """The current run, and a worker that waits for the next one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.number = 0
        self.current: Job | None = None
        self.spare: Process | None = Process()

    def start(self, request: dict[str, Any]) -> Job:
        """Begin a run; what ran before is ended."""
        with self.lock:
            if self.current is not None:
                self.current.cancel()
            process = self.spare or Process()
            self.number += 1
            self.current = Job(self.number, process, request)
            self.spare = Process()
            return self.current

    def get(self, number: object) -> Job:
        job = self.current
        if job is None or job.number != number:
            raise Gone("this run is no longer there: run the query again")
        return job

    def end(self) -> None:
        """All processes."""
        with self.lock:
            if self.current is not None:
                self.current.cancel()
            if self.spare is not None:
                self.spare.end()
            self.spare = None

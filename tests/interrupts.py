"""Ctrl-C at a chosen moment."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def interrupted(after: float) -> Iterator[None]:
    """The block is stopped by one KeyboardInterrupt so many seconds after it began, and must end by it.

    Only one: on a busy machine a second would meet whoever handles the first.
    """

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012  it must be awaited before it can come
            signal.setitimer(signal.ITIMER_REAL, after)
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

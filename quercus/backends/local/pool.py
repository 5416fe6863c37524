"""Threads that wait for work: one set for the whole process, made when first asked for.

Who has tasks takes part in them: threads that come late, or are busy elsewhere, leave more for it, and nobody waits for
what has not begun.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Job(Generic[T]):
    """Tasks that several threads take from."""

    def __init__(self, tasks: Sequence[Callable[[], T]], stop: Callable[[], None] | None) -> None:
        self.left = deque(enumerate(tasks))
        self.results: list[T | None] = [None] * len(tasks)
        self.stop = stop
        self.error: BaseException | None = None
        self.helpers = 0  # that are at work
        self.lock = threading.Lock()
        self.done = threading.Lock()
        self.done.acquire()

    def help(self) -> None:
        """Do tasks until none is left, in a thread of the pool."""
        with self.lock:
            if not self.left:
                return
            self.helpers += 1
        try:
            self.work()
        except BaseException as e:  # it is raised where the tasks came from
            self.fail(e)
        with self.lock:
            self.helpers -= 1
            if self.helpers == 0:
                self.done.release()

    def work(self) -> None:
        while True:
            with self.lock:
                if not self.left:
                    return
                number, task = self.left.popleft()
            self.results[number] = task()

    def fail(self, error: BaseException) -> None:
        """Begin nothing more, and stop what runs."""
        with self.lock:
            self.error = self.error or error
            self.left.clear()
        if self.stop is not None:
            self.stop()

    def wait(self) -> None:
        """Until no task runs any more; an interrupt stops them."""
        while True:
            try:
                while self.helpers:
                    self.done.acquire(timeout=1)
                return
            except BaseException as e:
                self.fail(e)


class _Threads:
    """The threads of this process."""

    def __init__(self) -> None:
        self.queue: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self.threads: list[threading.Thread] = []
        self.lock = threading.Lock()

    def help(self, job: _Job[Any], count: int) -> None:
        """Let some threads look at a job."""
        with self.lock:
            while len(self.threads) < count:
                made = threading.Thread(target=_serve, args=(self.queue,), name="quercus", daemon=True)
                made.start()
                self.threads.append(made)
        for _ in range(count):
            self.queue.put(job)

    def end(self) -> None:
        """Let all threads go, and wait for those that do."""
        for _ in self.threads:
            self.queue.put(None)
        for thread in self.threads:
            thread.join(1)
        self.threads = []


def _serve(queue: SimpleQueue[_Job[Any] | None]) -> None:
    while (job := queue.get()) is not None:
        job.help()
        del job  # who waits for the next one must not hold its data


_threads = _Threads()


def _forget() -> None:
    """A forked process has no thread of its parent's."""
    global _threads
    _threads = _Threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
atexit.register(lambda: _threads.end())


def shared(tasks: Sequence[Callable[[], T]], threads: int, stop: Callable[[], None] | None = None) -> list[T]:
    """The results of some tasks, in order, done by up to so many threads, of which this is one.

    After an error no task is begun, `stop` is called to end those that run, and the error is raised when none does.

    >>> shared([lambda: 1, lambda: 2, lambda: 3], 2)
    [1, 2, 3]
    """
    if threads < 2 or len(tasks) < 2:
        return [task() for task in tasks]
    job = _Job(tasks, stop)
    try:
        _threads.help(job, min(threads, len(tasks)) - 1)
        job.work()
    except BaseException as e:
        job.fail(e)
    job.wait()
    if job.error is not None:
        raise job.error
    return job.results  # type: ignore[return-value]


def ranges(size: int, threads: int, least: int) -> list[tuple[int, int]]:
    """A range for each thread, of `least` and more each; one range where there is too little.

    >>> ranges(10, 3, 3), ranges(10, 3, 6)
    ([(0, 3), (3, 6), (6, 10)], [(0, 10)])
    """
    count = max(1, min(threads, size // max(least, 1)))
    return [(size * i // count, size * (i + 1) // count) for i in range(count)]

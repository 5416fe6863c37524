"""What a backend is, and how one is found: by name, from inside the package or from outside."""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from attrs import frozen

from quercus.errors import DataError, QueryError, nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    from quercus.plan import Plan

GROUP = "quercus.backends"


@frozen
class Limits:
    """What a run may use before `LimitExceeded` stops it.

    >>> import quercus as qc
    >>> qc.Limits(max_matches=1000).max_matches
    1000
    """

    max_matches: int = 100_000_000  # of a run, or of one push of a stream
    max_seconds: float | None = None  # the same
    max_state_bytes: int | None = None  # of the internal buffers of joins (None: 4 GiB), and of what a stream keeps

    def __attrs_post_init__(self) -> None:
        for name, value, kinds in (
            ("max_matches", self.max_matches, (int,)),
            ("max_seconds", self.max_seconds, (int, float, NoneType)),
            ("max_state_bytes", self.max_state_bytes, (int, NoneType)),
        ):
            if type(value) not in kinds or (value is not None and not value >= 0):
                what = "a number" if float in kinds else "a whole number"
                raise DataError(f"Limits({name}={value!r}): give {what} from 0 up")

    @classmethod
    def of(cls, given: Limits | None) -> Limits:
        """What `limits=` says; by default, what limits there are anyway."""
        if given is None:
            return cls()
        if not isinstance(given, Limits):
            raise DataError(f"limits={given!r}: give a quercus.Limits, or None")
        return given


def threads_of(given: int | None) -> int:
    """What `threads=` says: one, unless more are asked for."""
    if given is not None and (type(given) is not int or given < 1):
        raise DataError(f"threads={given!r}: give a whole number from 1 up, or None")
    return given or 1


@runtime_checkable
class Backend(Protocol):
    """Runs plans. `supports` says, before anything runs, why a plan cannot be run, or None."""

    name: str

    def supports(self, plan: Plan) -> str | None: ...

    def run(self, plan: Plan, events: Any, *, threads: int | None, limits: Limits) -> Any: ...


Factory = Callable[[], Backend]
_registered: dict[str, Factory] = {}


def register(name: str, factory: Factory) -> None:
    """Make a backend known by name: `plan.run(events, backend=name)` then uses it.

    >>> import quercus as qc
    >>> from quercus.backends.local import LocalBackend
    >>> qc.backends.register("mine", LocalBackend)
    >>> "mine" in qc.backends.names()
    True
    """
    _registered[name] = factory


def names() -> list[str]:
    """The backends known here, those of installed packages included."""
    return sorted({*_registered, *(e.name for e in _entry_points())})


def get(name: str) -> Backend:
    """The backend of that name: one registered in this process, else one found through its entry point."""
    if name in _registered:
        return _registered[name]()
    for e in _entry_points():
        if e.name == name:
            made: Backend = e.load()()
            return made
    raise QueryError("E702", f"no backend '{name}'", hint=nearest(name, names()) or "backends: " + ", ".join(names()))


def _entry_points() -> EntryPoints:
    from importlib.metadata import entry_points  # takes longer than all of ours to import

    return entry_points(group=GROUP)

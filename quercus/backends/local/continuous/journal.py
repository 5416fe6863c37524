"""A pattern over a stream, whose last steps can be taken back: a snapshot of some time, and what came since."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quercus.backends.base import Limits

if TYPE_CHECKING:
    from quercus.plan import Plan
    from quercus.result import Matches

OFTEN = 1024  # steps after which the state is written down
MUCH = 2**23  # bytes of events after which it is, unless it is larger itself
_ENDLESS = Limits(max_matches=2**62, max_state_bytes=2**62)


class Journal:
    """`plan.stream`, with a way back."""

    def __init__(self, plan: Plan, limits: Limits, state: bytes | None = None) -> None:
        self.plan, self.limits = plan, limits
        self._before = state  # None: the beginning
        self._since: list[Any] = []  # events that were pushed, and clocks
        self._bytes = 0
        self._live = self._made(limits)

    def _made(self, limits: Limits) -> Any:
        if self._before is None:
            return self.plan.stream(limits=limits)
        return self.plan.restore(self._before, limits=limits)

    def push(self, events: Any) -> Matches:
        if len(self._since) > OFTEN or self._bytes > max(MUCH, 4 * len(self._before or b"")):
            self._before, self._since, self._bytes = self._live.snapshot(), [], 0
        found: Matches = self._live.push(events)
        self._since.append(events)
        self._bytes += sum(t.nbytes for t in ([events] if isinstance(events, pa.Table) else events.values()))
        return found

    def advance(self, clock: int) -> Matches:
        found: Matches = self._live.advance(clock)
        self._since.append(clock)
        return found

    def close(self) -> Matches:
        found: Matches = self._live.close()
        return found

    def snapshot(self) -> bytes:
        state: bytes = self._live.snapshot()
        return state

    def memento(self) -> Any:
        return self._before, self._since, len(self._since), self._bytes

    def revert(self, memento: Any) -> None:
        """Go back, and through what came since the state was last written down once more."""
        self._before, since, length, self._bytes = memento
        self._since = since[:length]
        self._live = self._made(_ENDLESS)
        for one in self._since:
            self._live.advance(one) if isinstance(one, int) else self._live.push(one)
        self._live.limits = self.limits

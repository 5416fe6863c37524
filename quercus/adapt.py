"""How a live stream adapts its plan."""

from __future__ import annotations

from math import inf
from typing import Any

from attrs import frozen

from quercus.errors import DataError


@frozen
class Adapt:
    """When a stream is planned again, and when it switches to what was planned.

    `theta`: how many times as frequent or rare something must have become since the plan was chosen. `gamma`: how many
    times as much the plan in use must be expected to cost as the new one. `half_life`: what lies so far back counts
    half, in the unit of the window: that of the time column, or events; None: four windows. Statistics are looked at
    after at least `every` events and `work` candidates: where a search has little to do, no other would do better.

    >>> Adapt(theta=3.0).gamma
    1.2
    """

    theta: float = 2.0
    gamma: float = 1.2
    half_life: float | None = None
    every: int = 1000
    work: int = 300_000

    def __attrs_post_init__(self) -> None:
        sound = self.theta >= 1 and self.gamma >= 1 and self.every >= 1 and self.work >= 0
        if not sound or (self.half_life is not None and not self.half_life > 0):
            raise DataError(f"{self}: theta, gamma and every are at least 1, a half-life is more than 0")


@frozen
class Switch:
    """A switch of a stream's plan: after so many events pushed, when the clock stood there."""

    row: int
    clock: int
    before: str
    after: str
    drift: float  # inf: nothing was known before
    gain: float  # what the plan before was expected to cost, against the one after

    @classmethod
    def of(cls, told: Any) -> Switch:
        """Read one from a snapshot."""
        row, clock, before, after, drift, gain = told
        if not (type(row) is type(clock) is int and type(before) is type(after) is str):
            raise TypeError("no switch of a plan")
        return cls(row, clock, before, after, inf if drift is None else float(drift), float(gain))

    def told(self) -> list[Any]:
        """What a snapshot says of it."""
        return [self.row, self.clock, self.before, self.after, None if self.drift == inf else self.drift, self.gain]

"""What a run tells of itself while it goes: the time of each stage, and the counts of each alternative."""

from __future__ import annotations

import time

from attrs import define, field, frozen

from quercus.backends.local.joins import Measured
from quercus.backends.local.refine import Again
from quercus.backends.local.specs import Filled, FlatSpec, Program
from quercus.backends.local.threads import Matchers
from quercus.ir.flat import Flat
from quercus.kernels import match


@frozen
class Ran:
    """One alternative after its run."""

    flat: Flat
    spec: FlatSpec
    matches: int
    seconds: float
    compared: int
    joins: list[Measured]
    levels: dict[int, tuple[int, int]]  # slot -> (compared, bound)
    completed: int
    whole: int
    tested: int


@define
class Trace:
    """A run that is watched."""

    stages: dict[str, float] = field(factory=dict)
    runs: list[Ran] = field(factory=list)
    program: Program | None = None
    data: Filled | None = None
    matcher: match.Matcher | None = None
    again: Again | None = None  # a plan that was made from the data
    last: float = field(factory=time.perf_counter)

    def lap(self, stage: str) -> float:
        """Book the time since the last lap."""
        now = time.perf_counter()
        taken, self.last = now - self.last, now
        self.stages[stage] = self.stages.get(stage, 0.0) + taken
        return taken

    def ran(self, flat: Flat, number: int, matches: int, matchers: Matchers) -> None:
        """An alternative is done, on one thread."""
        seconds = self.lap("match")
        (self.matcher,), self.program = matchers.used, matchers.program
        spec = matchers.program.flats[number]
        levels, completed, whole, tested = self.matcher.tally(number)
        if not (spec.negations or spec.tests):  # whatever is bound is a match, and may not have been counted singly
            whole = matches
        self.runs.append(
            Ran(
                flat,
                spec,
                matches,
                seconds,
                matchers.counters()["compared"],
                matchers.joins(number),
                {slot: (compared, bound) for slot, compared, bound in levels},
                completed if spec.sets and spec.trail is None else whole,
                whole,
                tested,
            )
        )

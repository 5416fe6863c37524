"""A workload: queries, how they refine each other, and all ways from one to another, ready to be priced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from attrs import define, evolve, field

from quercus.compiler.cube.alone import Alone, alone
from quercus.compiler.cube.constants import CALIBRATED
from quercus.compiler.cube.cost import PricedWay, ends_later, priced
from quercus.compiler.cube.refine import refinements
from quercus.compiler.cube.reuse import Way, ways
from quercus.compiler.cube.same import OTHER, same_way
from quercus.compiler.cube.sequences import sequence_of
from quercus.compiler.cube.sizes import Sizer
from quercus.ir.workload import Refinement, Sequence, is_count
from quercus.plan import Plan
from quercus.schema import Schema
from quercus.stats import Stats


@define(eq=False)
class Workload:
    """What is known of the queries of a cube before any event is seen."""

    plans: Mapping[str, Plan]
    stats: Stats | None
    sequences: dict[str, Sequence | str] = field(init=False)
    refinements: tuple[Refinement, ...] = field(init=False)
    alone: dict[str, Alone] = field(init=False)
    reusable: dict[tuple[str, str], tuple[PricedWay, ...]] = field(init=False)  # by source and query
    refused: dict[tuple[str, str], str] = field(init=False)  # pairs that refine each other, yet cannot be used so

    def __attrs_post_init__(self) -> None:
        sizer = Sizer(self.stats)
        self.sequences = {name: sequence_of(plan) for name, plan in self.plans.items()}
        taken = [{part.accepts for part in s.parts} for s in self.sequences.values() if not isinstance(s, str)]
        users = Counter(accepts for one in taken for accepts in one)
        self.alone = {name: alone(plan, self.sequences[name], sizer, users) for name, plan in self.plans.items()}
        self.reusable, self.refused = {}, {}
        for source in self.plans:
            found = {n: ways for n in self.plans if n != source and (ways := self._pair(source, n))}
            later = sum(any(ends_later(way) for way in ways) for ways in found.values())
            shared = evolve(CALIBRATED, reorder=CALIBRATED.reorder / max(later, 1))  # done once for all of them
            for name, ways in found.items():
                columns = 0 if is_count(self.plans[name].query) else len(self.plans[name].query.variables)
                self.reusable[source, name] = tuple(priced(way, columns, sizer, shared) for way in ways)
        self.refinements = self._refinements()

    def _pair(self, source: str, name: str) -> tuple[Way, ...]:
        """The ways from one query to another; where these refine each other and there is none, it is told why."""
        one, other = self.sequences[source], self.sequences[name]
        found = self._ways(source, name, one, other, self.plans[name].schema)
        if isinstance(found, str):
            if found:
                self.refused[source, name] = found
            return ()
        return found

    def _ways(
        self, source: str, name: str, one: Sequence | str, other: Sequence | str, schema: Schema
    ) -> tuple[Way, ...] | str:
        if not isinstance(one, str) and not isinstance(other, str):
            return ways(one, other, schema)
        if isinstance(one, str) and isinstance(other, str):
            same = same_way(self.plans[source].query, self.plans[name].query)
            return (same,) if isinstance(same, Way) else "" if same == OTHER else same
        return ""

    def _refinements(self) -> tuple[Refinement, ...]:
        """Those of sequences, and of others with the same pattern: first the one that the other is computed from."""
        found = list(refinements({n: s for n, s in self.sequences.items() if not isinstance(s, str)}))
        order = {name: i for i, name in enumerate(self.plans)}
        others = [n for n, s in self.sequences.items() if isinstance(s, str)]
        for source, name in self.reusable:
            back = (name, source) in self.reusable
            if source in others and (not back or order[source] < order[name]):
                found.append(Refinement(source, name, "same"))
        place = order.__getitem__
        return tuple(sorted(found, key=lambda r: (place(r.general), place(r.special))))

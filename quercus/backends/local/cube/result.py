"""What a cube found: the matches of each of its queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from attrs import define, frozen

from quercus.backends.local.cube.held import Held, Listed
from quercus.backends.local.events import Events
from quercus.backends.local.exact import exact
from quercus.backends.local.outputs import Answer, Bound, Rows
from quercus.ir.workload import Ordering, is_count
from quercus.plan import Plan
from quercus.result import Matches, counted, html


@frozen(eq=False)
class CubeResult(Mapping[str, Matches]):
    """The matches of each query by its name, in the order of the cube's queries."""

    matches: Mapping[str, Matches]
    ordering: Ordering
    sizes: Mapping[str, int]  # how many matches each query has; of one that was totalled without listing, -1

    def __getitem__(self, name: str) -> Matches:
        return self.matches[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.matches)

    def __len__(self) -> int:
        return len(self.matches)

    def _repr_html_(self) -> str:
        """How much each query found, as a table."""
        found = [self.sizes.get(name, -1) for name in self.matches]
        counts = [f"{n:,}" if n >= 0 else "totalled" for n in found]
        return html(counted(len(self), "query", "queries"), pa.table({"query": list(self.matches), "matches": counts}))


def as_matches(plan: Plan, stream: Events, held: Held) -> Matches:
    """Held results as the matches of a query; where only their number is asked for, it is there already."""
    query, totals = plan.query, None
    if is_count(query):
        totals = pa.table({a.name: exact([len(held)], a.name) for a in query.aggregates})
    return Matches.of_stream(plan.schema, query, HeldMatches(plan, stream.table, stream.rows, held), totals)


@define(eq=False)
class HeldMatches:
    """Held results as the matches of a query: listed when they are asked for, and then held as they are listed."""

    plan: Plan
    table: pa.Table
    rows: Rows | None
    held: Held

    def __len__(self) -> int:
        return len(self.held)

    def answer(self) -> Answer:
        return Answer(self.table, self.plan.schema, self.plan.query, {b.var: b for b in self.numbered()})

    def numbered(self) -> tuple[Bound, ...]:
        self.held = Listed(self.held.columns)  # what it was made from can go, unless others need it
        named = enumerate(self.plan.query.variables)
        return tuple(Bound(v.var, False, self.held.column(i)).numbered(self.rows) for i, v in named)

"""The variants of one query without choices, and what their matches fail of the query itself."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from quercus.ir import pattern as p
from quercus.why.check import Found, failure
from quercus.why.data import Count
from quercus.why.engine import Engine, Match, Rows, Some
from quercus.why.negations import verdict, violated
from quercus.why.places import Binding, Places, binding_of
from quercus.why.requirements import Requirement, requirements, without_all
from quercus.why.typos import missing_types
from quercus.why.words import listed

LISTED = 500  # matches of a variant that are looked at
KNOWN = 20_000  # matches of the query itself that are kept, to tell what else a variant finds
ASKED = 20  # else so many matches of a variant are looked up, one by one


@frozen
class Candidate:
    """Events that would be a match without some requirements; `found`: how they fail each of these."""

    bound: Binding
    dropped: tuple[Requirement, ...]
    found: tuple[Found, ...]

    @property
    def far(self) -> float:
        return sum(f.far for f in self.found)


class Space:
    """What can be asked of the variants of a query."""

    def __init__(self, engine: Engine, q: p.Query, whole: p.Query, given: Rows, base: Count, limit: int) -> None:
        """`q`: a reading of `whole`, with `base` matches: what another reading gives is no miss either.

        `limit`: how many misses are asked for.
        """
        self.engine, self.q, self.base, self.limit = engine, q, base, limit
        self.pinned, self.whole = engine.pinned(q, given), engine.pinned(whole, given)
        self.several = whole.pattern != q.pattern
        self.places = Places(engine.stream, engine.schema, q.partition_by)
        self.requirements = [*missing_types(engine, q), *requirements(q, engine.schema)]
        self.growing = {e.var for e in p.leaves(q.pattern) if isinstance(e, p.Kleene) and e.most is None}
        self._known: set[object] | None = None

    def none(self) -> bool:
        """Whether it is certain that there is no match."""
        return self.base.n == 0 and self.base.exact

    def some_without(self, dropped: Iterable[Requirement]) -> Some:
        variant, schema = without_all(self.pinned, self.engine.schema, dropped)
        return self.engine.some(variant, LISTED, schema=schema)

    def count_without(self, dropped: Iterable[Requirement], *, most: int | None = None) -> Count:
        variant, schema = without_all(self.pinned, self.engine.schema, dropped)
        limit = {} if most is None else {"most": most}
        return self.engine.count(variant, schema=schema, **limit)

    def misses(self, rows: list[Match], dropped: tuple[Requirement, ...]) -> list[Candidate]:
        """Those of a variant's matches that are no match, with how they fail what it dropped."""
        found = []
        for match in self._new(rows):
            bound = binding_of(match)
            kept = {r for r in dropped if r.kind == "negation" and len(dropped) > 1 and self._keeps_to(r, bound)}
            fails = [(r, f) for r in dropped if r not in kept and (f := self._how(r, bound)) is not None]
            if fails:
                found.append(Candidate(bound, tuple(r for r, _ in fails), tuple(f for _, f in fails)))
        return found

    def said(self, r: Requirement, found: Found, bound: Binding) -> str:
        """How events fail a requirement; of a negation, with the events that violate it."""
        if r.kind == "negation":
            return violated(self.engine, self.places, self.q, r, bound)
        return found.said

    def example(self, c: Candidate) -> str:
        return f"{listed(self.places.events(c.bound))}: {self.said(c.dropped[0], c.found[0], c.bound)}"

    def _keeps_to(self, r: Requirement, bound: Binding) -> bool:
        """Whether a match of a variant without several requirements is none for another reason than this negation."""
        return verdict(self.engine, self.places, self.q, r, bound) is True

    def _how(self, r: Requirement, bound: Binding) -> Found | None:
        """A match that is only there without a negation violates it."""
        if r.kind == "negation":
            return Found("violated")
        if r.kind == "type":
            return Found(f"no event has this type, but there is {r.instead}", 0.0)
        if r.kind == "ties":
            orders = [o for o in self.requirements if o.kind == "order"]
            found = next((f for o in orders if (f := failure(self.places, self.q, o, bound))), None)
            return None if found is None else evolve(found, far=0.0)
        return failure(self.places, self.q, r, bound)

    def _new(self, rows: list[Match]) -> list[Match]:
        """Those whose fixed events are in no match of the query."""
        if self.none() and not self.several:
            return rows
        if self._known is None and (self.base.n or 0) <= KNOWN:
            known = self.engine.some(self.whole, KNOWN + 1)
            self._known = {self._fixed(m) for m in known.rows} if known.whole else None
        if self._known is not None:
            return [m for m in rows if self._fixed(m) not in self._known]
        return [m for m in rows[:ASKED] if not self._is_known(m)]

    def _is_known(self, match: Match) -> bool:
        fixed = {v: r for v, r in match.items() if v not in self.growing}
        return self.engine.count(self.engine.pinned(self.whole, fixed), most=1).some

    def _fixed(self, match: Match) -> object:
        return tuple((v, tuple(r) if isinstance(r, list) else r) for v, r in match.items() if v not in self.growing)

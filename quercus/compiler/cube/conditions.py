"""What follows from conditions that hold: enough of it to see that one query asks no more than another.

Everything here is about conjuncts that are true of a match: a comparison that is true has no null in it and, but for
`<>`, no NaN, so that equality is transitive and a value above 5 is above 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from attrs import evolve

from quercus.ir import expr as x

_FLIPPED: Mapping[x.CompareOp, x.CompareOp] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def renamed(e: x.Expr, names: Mapping[str, str]) -> x.Expr:
    """The same expression over variables of other names."""
    match e:
        case x.Column() | x.GroupCall():
            return evolve(e, var=names[e.var]) if e.var in names else e
        case _:
            return x.with_children(e, tuple(renamed(c, names) for c in x.children(e)))


@lru_cache(maxsize=8192)
def normal(e: x.Expr) -> x.Expr:
    """One form for comparisons that say the same: constants on the right, `<` rather than `>` between columns."""
    if not isinstance(e, x.Compare):
        return e
    turned = evolve(e, op=_FLIPPED[e.op], left=e.right, right=e.left)
    if isinstance(e.left, x.Const) or isinstance(e.right, x.Const):
        return turned if isinstance(e.left, x.Const) else e
    if e.op in (">", ">="):
        return turned
    return turned if e.op in ("=", "<>") and _key(e.right) < _key(e.left) else e


def _key(e: x.Expr) -> tuple[str, ...]:
    return (e.var, e.attr) if isinstance(e, x.Column) else ("", repr(e))


class Known:
    """Conjuncts that are true of a match, and what follows from them."""

    def __init__(self, facts: Iterable[x.Expr] = ()) -> None:
        self._facts: dict[x.Expr, None] = {}
        self._parent: dict[x.Column, x.Column] = {}
        self._seen: tuple[frozenset[x.Expr], dict[x.Column, list[x.Compare]]] | None = None
        for e in facts:
            self.add(e)

    def add(self, e: x.Expr) -> None:
        n = normal(e)
        self._facts[n] = None
        self._seen = None
        match n:
            case x.Compare(op="=", left=x.Column() as a, right=x.Column() as b) if a.type == b.type:
                self._parent[self._root(a)] = self._root(b)

    def entails(self, e: x.Expr) -> bool:
        """Whether a conjunct is true too, as far as can be told."""
        n = normal(e)
        if n in self._facts:
            return True
        n = normal(self._as_root(n))
        whole, bounds = self._looked_at()
        if n in whole:
            return True
        match n:
            case x.Compare(op="=", left=x.Column() as a, right=x.Column() as b) if a == b:
                return any(f.op != "<>" or a.type != "float64" for f in bounds.get(a, ()))
            case x.Compare(left=x.Column() as a, right=x.Const() as k):
                return any(_implies(f, n.op, k) for f in bounds.get(a, ()))
            case x.IsNull(value=x.Column() as a, negated=True):
                return a in bounds
            case x.InSet(value=x.Column() as a, negated=False):
                return any(f.op == "=" and f.right in n.items for f in bounds.get(a, ()))
            case _:
                return False

    def rest(self, conditions: Iterable[x.Expr]) -> tuple[x.Expr, ...]:
        """Those that do not follow, neither from what is known nor from the ones before; they are known from now on."""
        kept = []
        for e in conditions:
            if not self.entails(e):
                kept.append(e)
                self.add(e)
        return tuple(kept)

    def _looked_at(self) -> tuple[frozenset[x.Expr], dict[x.Column, list[x.Compare]]]:
        """All facts over one column of each class of equal ones, and the comparisons that each such column is in."""
        if self._seen is None:
            facts = [normal(self._as_root(f)) for f in self._facts]
            bounds: dict[x.Column, list[x.Compare]] = {}
            for f in facts:
                if isinstance(f, x.Compare):
                    for side in (f.left, f.right):
                        if isinstance(side, x.Column):
                            bounds.setdefault(side, []).append(f)
            self._seen = frozenset(facts), bounds
        return self._seen

    def _root(self, c: x.Column) -> x.Column:
        while c in self._parent and self._parent[c] != c:
            c = self._parent[c]
        return c

    def _as_root(self, e: x.Expr) -> x.Expr:
        if isinstance(e, x.Column):
            return self._root(e)
        return x.with_children(e, tuple(self._as_root(c) for c in x.children(e)))


def _implies(fact: x.Compare, op: x.CompareOp, k: x.Const) -> bool:
    """Whether a column that compares with a constant as the fact says compares with `k` by `op`."""
    if not isinstance(fact.right, x.Const) or not isinstance(fact.left, x.Column) or fact.right.type != k.type:
        return False
    a, b = fact.right.value, k.value
    if isinstance(a, bool | str) or isinstance(b, bool | str) or a is None or b is None:
        return fact.op == "=" and op == "<>" and isinstance(a, str) and isinstance(b, str) and a != b
    if a != a or b != b:
        return False
    if fact.op == "=":
        return {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
    if fact.op in (">", ">="):
        reached = a >= b if op == ">=" or fact.op == ">" else a > b
        return op in (">", ">=", "<>") and reached
    if fact.op in ("<", "<="):
        reached = a <= b if op == "<=" or fact.op == "<" else a < b
        return op in ("<", "<=", "<>") and reached
    return False

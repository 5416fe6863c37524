from __future__ import annotations

from collections import defaultdict

from quercus.compiler.homes import Home, rewrite_homes
from quercus.ir import expr as x
from quercus.ir import pattern as p

MAX_CLASS = 12

Edges = dict[x.Column, dict[x.Column, None]]  # each column's equals; a dictionary for its order


def equality_closure(q: p.Query) -> p.Query | None:
    """a.id = b.id, b.id = c.id -> also a.id = c.id;  a.id = b.id, a.id = 5 -> also b.id = 5.

    Equality is transitive through a value that is there: never through a variable that can be absent or empty. So
    joins in any order find an equality to hash on, and constants reach every leaf. Classes beyond a dozen columns are
    left alone.
    """
    order = {leaf.var: i for i, leaf in enumerate(p.leaves(q.pattern, negated=True))}
    kleene = p.kleene_variables(q.pattern)
    return rewrite_homes(q, lambda where, home: where + _implied(where, home, order, kleene))


def _implied(
    where: tuple[x.Expr, ...], home: Home, order: dict[str, int], kleene: frozenset[str]
) -> tuple[x.Expr, ...]:
    edges: Edges = defaultdict(dict)
    constants: dict[x.Column, x.Const] = {}
    for c in (*home.outer, *where):
        match c:
            case x.Compare(op="=", left=x.Column() as a, right=x.Column() as b) if a.type == b.type and a.var != b.var:
                edges[a][b] = edges[b][a] = None
            case x.Compare(op="=", left=x.Column() as a, right=x.Const(value=v) as k) if v is not None:
                constants.setdefault(a, k)
    own = p.all_variables(home.body)
    new: dict[x.Compare, None] = {}
    for start, said in edges.items():
        if home.kind != "query" and start.var not in own:
            continue  # new facts go to the outermost home that can say them
        members = _reachable(start, edges, home.absent)
        if len(members) > MAX_CLASS:
            continue
        for other in members:
            if other in said or start.var == other.var or {start.var, other.var} <= kleene:
                continue
            a, b = (start, other) if order[start.var] < order[other.var] else (other, start)
            new[x.Compare("=", a, b)] = None
        if start in constants:
            continue
        known = next((constants[m] for m in members if m in constants and m.var not in home.absent), None)
        if known is not None and known.type == start.type:
            new[x.Compare("=", start, known)] = None
    return tuple(new)


def _reachable(start: x.Column, edges: Edges, absent: frozenset[str]) -> list[x.Column]:
    found, todo = {start: None}, [start]
    while todo:
        at = todo.pop()
        if at is not start and at.var in absent:
            continue
        for n in edges[at]:
            if n not in found:
                found[n] = None
                todo.append(n)
    return list(found)[1:]

from __future__ import annotations

from collections import defaultdict

from quercus.compiler.homes import Home, rewrite_homes
from quercus.ir import expr as x
from quercus.ir import pattern as p

MAX_CLASS = 12


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
    edges: dict[x.Column, list[x.Column]] = defaultdict(list)
    constants: dict[x.Column, x.Const] = {}
    facts = (*home.outer, *where)
    for c in facts:
        match c:
            case x.Compare(op="=", left=x.Column() as a, right=x.Column() as b) if a.type == b.type and a.var != b.var:
                edges[a].append(b)
                edges[b].append(a)
            case x.Compare(op="=", left=x.Column() as a, right=x.Const(value=v) as k) if v is not None:
                constants.setdefault(a, k)
    own = p.all_variables(home.body)
    new: dict[x.Compare, None] = {}
    for start in edges:
        members = _reachable(start, edges, home.absent)
        if len(members) > MAX_CLASS:
            continue
        for other in members:
            pair = {start.var, other.var}
            if start.var == other.var or len(pair & kleene) > 1 or not _acts_here(pair, home, own):
                continue
            a, b = sorted((start, other), key=lambda c: order[c.var])
            new[x.Compare("=", a, b)] = None
        if start in constants or not _acts_here({start.var}, home, own):
            continue
        known = next((constants[m] for m in members if m in constants and m.var not in home.absent), None)
        if known is not None and known.type == start.type:
            new[x.Compare("=", start, known)] = None
    said = set(facts)
    return tuple(c for c in new if c not in said and x.Compare("=", c.right, c.left) not in said)


def _acts_here(named: set[str], home: Home, own: frozenset[str]) -> bool:
    """New facts go to the outermost home that can say them:

    the query, or the one whose own variables they are about.
    """
    return home.kind == "query" or bool(named & own)


def _reachable(start: x.Column, edges: dict[x.Column, list[x.Column]], absent: frozenset[str]) -> list[x.Column]:
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

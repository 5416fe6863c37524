"""Who reports a match that several workers see: the one that owns the event of one variable, the anchor.

Workers get the events of a slice of time and, around it, those of others (the halo), so that every match of their own
events is whole. A match has one event of each plain variable that no OR leaves out; and an event is owned by one
worker. So a condition on that event, like any other in the query, tells own matches from others before they are
listed. All that decides a match lies within a window before and after any event of it.
"""

from __future__ import annotations

from attrs import evolve

from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.plan import Plan
from quercus.schema import Schema

OWN = "quercus_own"  # a column of the workers' tables: whether an event is their own


def anchored(plan: Plan) -> Plan | None:
    """The plan of the own matches alone; None: some match binds nothing but sets."""
    found = _claimed(plan.bound.pattern)
    if found is None:
        return None
    pattern, where = found
    bound = evolve(plan.bound, pattern=pattern, where=(*plan.bound.where, *where))
    return plan.with_query(bound, _with_own(plan.schema))


def _claimed(e: p.Pattern) -> tuple[p.Pattern, tuple[x.Expr, ...]] | None:
    """The pattern whose anchors must be own events: what ORs need said in each branch, and what is left to say."""
    match e:
        case p.Leaf():
            return e, (x.Compare("=", x.Column(e.var, OWN, "bool"), x.Const(True, "bool")),)
        case p.Seq() | p.And():
            for i in (len(e.parts) - 1, *range(len(e.parts) - 1)):
                found = None if isinstance(e.parts[i], p.Not) else _claimed(e.parts[i])
                if found is not None:
                    return p.with_parts(e, (*e.parts[:i], found[0], *e.parts[i + 1 :])), found[1]
            return None
        case p.Or():
            branches = []
            for b in e.branches:
                found = _claimed(b.body)
                if found is None:
                    return None
                branches.append(evolve(b, body=found[0], where=(*b.where, *found[1])))
            return evolve(e, branches=tuple(branches)), ()
        case _:
            return None


def _with_own(schema: Schema) -> Schema:
    told = schema.to_dict()
    columns = told["attributes"]
    per_type = schema.per_type is not None
    told["attributes"] = {n: {**c, OWN: "bool"} for n, c in columns.items()} if per_type else {**columns, OWN: "bool"}
    return Schema.from_dict(told)


def looks_ahead(e: p.Pattern) -> bool:
    """Whether events after an anchor can matter: not where it is the last event of a match, and nothing follows it."""
    match e:
        case p.Leaf():
            return False
        case p.Seq():
            return looks_ahead(e.parts[-1])
        case p.Or():
            return any(looks_ahead(b.body) for b in e.branches)
        case _:
            return True

"""How AGG is answered: by running totals, without listing matches, or over all of them; and why."""

from __future__ import annotations

from quercus.errors import LimitExceeded
from quercus.ir import tree as t
from quercus.ir.flat import flatten
from quercus.ir.running import countable, cuts_ties, grouped
from quercus.schema import Schema

_EACH = "each event costs a few steps, however many matches it ends"


def aggregation(tree: t.Tree, schema: Schema) -> t.Aggregation | None:
    """What a plan's tree says of its aggregates; None where it has none."""
    if not tree.aggregates:
        return None
    reason = _against(tree, schema)
    return t.Aggregation("running", _EACH) if reason is None else t.Aggregation("enumerated", reason)


def _against(tree: t.Tree, schema: Schema) -> str | None:
    """Why matches have to be listed, or None."""
    try:
        flats = flatten(tree.root, tree.window)
    except LimitExceeded:
        return "its ORs can be taken in too many ways"
    if any(isinstance(n, t.Union) and n.distinct for n in t.positive(tree.root)):
        return "two branches of an OR can give the same match"
    if len(flats) > 1 and tree.group_by:
        return "GROUPBY over an OR"
    for f in flats:
        found = countable(f, tree)
        if isinstance(found, str):
            return found
        if cuts_ties(found, tree, arrival=schema.ties == "arrival"):
            return "a window of events can begin among equal times"
        groups = grouped(found, tree)
        if isinstance(groups, str):
            return groups
    return None

"""How AGG is answered: by running totals, without listing matches, or over all of them; and why."""

from __future__ import annotations

from attrs import evolve

from quercus.compiler.rules.partition_key import more_keys
from quercus.errors import LimitExceeded
from quercus.ir import pattern as p
from quercus.ir import tree as t
from quercus.ir.flat import flatten
from quercus.ir.running import countable, cuts_ties, grouped, listed_live
from quercus.schema import Schema

_EACH = "each event costs a few steps, however many matches it ends"


def totalled(tree: t.Tree, query: p.Query, schema: Schema) -> t.Tree:
    """The tree with what it says of its aggregates, if it has any."""
    if not tree.aggregates:
        return tree
    keyed = evolve(tree, also=more_keys(query))
    reason = _against(keyed, schema)
    if reason is None:
        live = listed_live(keyed, arrival=schema.ties == "arrival") or ""
        return evolve(keyed, aggregation=t.Aggregation("running", _EACH, live))
    return evolve(tree, aggregation=t.Aggregation("enumerated", reason))


def _against(tree: t.Tree, schema: Schema) -> str | None:
    """Why matches have to be listed, or None."""
    try:
        flats = flatten(tree.root, tree.window)
    except LimitExceeded:
        return "its ORs can be taken in too many ways"
    if any(isinstance(n, t.Union) and n.distinct for n in t.positive(tree.root)):
        return "two branches of an OR can give the same match"
    arrival = schema.ties == "arrival"
    for f in flats:
        found = countable(f, tree)
        if isinstance(found, str):
            return found
        if cuts_ties(found, tree, arrival=arrival):
            return "a window of events can begin among equal times"
        groups = grouped(found, tree, arrival=arrival)
        if isinstance(groups, str):
            return groups
    return None

"""What of a cube can be shared while a stream goes on: results that are there the moment their last event comes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from quercus.backends.local.cube.execute import delta_plan
from quercus.backends.local.release import all_variants
from quercus.ir import pattern as p
from quercus.ir import workload as w
from quercus.ir.flat import flatten
from quercus.plan import Plan

WAITS = "its matches wait, so that they are not there when their last event comes"
COUNTS = "its window counts events"
SETS = "its matches have sets"


@frozen
class Member:
    """A query of a live cube, and the clock since when it watches the stream; None: since the stream began."""

    name: str
    plan: Plan
    since: int | None = None


def refusal(plan: Plan) -> str | None:
    """Why a query neither gives nor takes results while a stream goes on; None: it can do both."""
    tree = plan.tree
    if tree.window.kind == "count":
        return COUNTS
    if any(not isinstance(v, p.Leaf) for v in plan.query.variables):
        return SETS
    if plan.query.aggregates:
        return "it gives totals"
    if plan.query.empty is not None:
        return "it has no matches"
    flats = flatten(tree.root, tree.window)
    found = [v for _, v in all_variants(flats, count=False, strict=plan.schema.ties != "arrival")]
    if len(flats) != 1 or any(v.mode != "last" or v.asks or v.rivals for v in found):
        return WAITS if len(flats) == 1 else "it has alternatives"
    return None


def shared(ordering: w.Ordering, members: Mapping[str, Member], clock: int) -> w.Ordering:
    """The ordering with only what can be shared live: the other queries are computed alone, and told why."""
    made: list[w.Cuboid] = []
    for c in ordering.cuboids:
        reason = None if c.source is None else _refused(c, members, clock)
        made.append(c if reason is None else evolve(c, source=None, case=None, actions=(), reason=f"live: {reason}"))
    return evolve(ordering, cuboids=tuple(made))


def _refused(c: w.Cuboid, members: Mapping[str, Member], clock: int) -> str | None:
    assert c.source is not None
    for name in (c.name, c.source):
        own = refusal(members[name].plan)
        if own is not None:
            return own if name == c.name else f"{name}: {own}"
        since = members[name].since
        if since is not None and clock - members[name].plan.tree.window.size <= since:
            return f"{name} was added less than a window ago"
    names = tuple(v.var for v in members[c.source].plan.query.variables)
    if ends_later(names, c.actions) and any(isinstance(a, w.Add) for a in c.actions):
        return "older results would be needed of what is added"
    return _waits(members[c.name].plan, names, c.actions)


def _waits(plan: Plan, names: tuple[str, ...], actions: tuple[w.Action, ...]) -> str | None:
    """Why actions need events that come after the last one of a match, or give matches later than they are there."""
    for a, before, _ in along(names, actions):
        match a:
            case w.Forbid(before=None):
                return WAITS
            case w.Project() if before[-1] not in a.variables:
                return "its matches end before those that it would be computed from"
            case w.Add():
                for d in a.deltas:
                    own = delta_plan(plan, d)
                    found = refusal(own) or _waits(plan, tuple(v.var for v in own.query.variables), d.actions)
                    if found is not None:
                        return f"what is added: {found}"
            case _:
                pass
    return None


def ends_later(names: tuple[str, ...], actions: tuple[w.Action, ...]) -> bool:
    """Whether results get events at the end, so that older results of the source matter as well."""
    return any(isinstance(a, w.Insert) and a.place == len(before) for a, before, _ in along(names, actions))


def along(
    names: tuple[str, ...], actions: tuple[w.Action, ...]
) -> Iterator[tuple[w.Action, tuple[str, ...], tuple[str, ...]]]:
    """Each action, with the variables before and after it."""
    for a in actions:
        before = names
        match a:
            case w.Rename():
                new = dict(a.names)
                names = tuple(new.get(v, v) for v in names)
            case w.Insert():
                names = (*names[: a.place], a.part.var, *names[a.place :])
            case w.Project():
                names = a.variables
            case _:
                pass
        yield a, before, names

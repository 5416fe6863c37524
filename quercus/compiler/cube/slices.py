"""Conditions on top of queries: `cube.slice`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import evolve

from quercus.compiler.parse import PATTERNS
from quercus.compiler.reading import check_text
from quercus.errors import QueryError, nearest
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.plan import Plan
from quercus.schema import Schema

_TOKEN = re.compile(r"""(?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")|\d[\w.]*|(?P<name>[^\W\d]\w*)|.""", re.DOTALL)


def sliced(plans: Mapping[str, Plan], conditions: str | Mapping[str, str]) -> dict[str, str]:
    """The texts of queries with more conditions: one for every event of all, or some by the names of queries."""
    if isinstance(conditions, str):
        check_text(conditions, PATTERNS)  # brackets are put around it
        return {name: _with(plan, _of_every_event(plan, conditions)) for name, plan in plans.items()}
    given: object = conditions
    if not isinstance(given, Mapping) or not all(isinstance(c, str) for c in given.values()):
        raise QueryError("E801", "slice takes a condition, or {query: condition}")
    for name in conditions:
        if name not in plans:
            raise QueryError("E804", f"no query '{name}' in the cube", hint=nearest(str(name), plans))
    for condition in conditions.values():
        check_text(condition, PATTERNS)
    return {name: _with(plan, conditions.get(name, "")) for name, plan in plans.items()}


def _with(plan: Plan, condition: str) -> str:
    if not condition:
        return plan.text
    bare = text.query(evolve(plan.bound, where=()), plan.schema.timestamp_unit)
    head, _, tail = bare.partition("\n")
    unit = plan.schema.timestamp_unit
    asked = [*(text.scalar(c, unit) for c in plan.bound.where), condition]
    return f"{head}\nWHERE {', '.join(asked)}\n{tail}"


def _of_every_event(plan: Plan, condition: str) -> str:
    """A condition over attributes, said of each event that has them all, negated ones too."""
    names = {m["name"] for m in _TOKEN.finditer(condition) if m["name"]}
    found, attributes = [], set[str]()
    for leaf in dict.fromkeys(p.leaves(plan.bound.pattern, negated=True)):
        type_ = leaf.leaf.type if isinstance(leaf, p.Kleene) else leaf.type
        own = {*plan.schema.attributes(type_), "ts", "type", plan.schema.time, plan.schema.type}
        attributes |= own
        if names & own and not names & (_all(plan.schema) - own):
            found.append(f"({_qualified(condition, leaf.var, own)})")
    if not found:
        hint = "attributes: " + ", ".join(sorted(attributes))
        raise QueryError("E104", f"no event has the attributes of '{condition}'", hint=hint)
    return " and ".join(dict.fromkeys(found))


def _all(schema: Schema) -> set[str]:
    if schema.per_type is None:
        return set(schema.common or {})
    return {name for own in schema.per_type.values() for name in own}


def _qualified(condition: str, var: str, attributes: set[str]) -> str:
    """`price > 10` -> `a.price > 10`."""

    def said(m: re.Match[str]) -> str:
        name = m["name"]
        if not name or name not in attributes:
            return m[0]
        before, after = condition[: m.start()].rstrip(), condition[m.end() :].lstrip()
        return m[0] if before.endswith(".") or after.startswith((".", "(")) else text.column(var, name)

    return _TOKEN.sub(said, condition)

"""Actions in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from quercus.compiler.cube.sequences import accepted
from quercus.ir import expr as x
from quercus.ir import text
from quercus.ir.workload import Action, Add, Delta, Forbid, Insert, Keep, Narrow, Part, Project, Rename, Retype
from quercus.schema import Schema


class Words:
    """Says what actions do, one line each; `variables` are those of the matches at hand, in order."""

    def __init__(self, schema: Schema, variables: tuple[str, ...]) -> None:
        self.schema, self.unit, self.variables = schema, schema.timestamp_unit, list(variables)

    def lines(self, actions: tuple[Action, ...]) -> Iterator[str]:
        for action in actions:
            yield from self.of(action)

    def of(self, action: Action) -> Iterator[str]:
        match action:
            case Rename():
                names = dict(action.names)
                self.variables = [names.get(v, v) for v in self.variables]
                yield "call " + ", ".join(f"{a} {b}" for a, b in action.names)
            case Retype():
                yield f"keep those whose {action.var} is {self.types(action.accepts)}"
            case Narrow():
                yield f"keep those within {text.window(action.window)}"
            case Keep():
                yield f"keep those with {self.conditions(action.where)}"
            case Project():
                self.variables = list(action.variables)
                yield f"leave {', '.join(action.variables)} of each, every match once"
            case Insert():
                yield f"join with {self.event(action.part)} {self.place(action)}{self.asked(action.where)}"
                self.variables.insert(action.place, action.part.var)
            case Forbid():
                yield f"drop those with {self.event(action.part)} {_scope(action)}{self.asked(action.part.ties)}"
            case Add():
                for delta in action.deltas:
                    yield from self.delta(delta)
            case _:
                assert_never(action)

    def delta(self, delta: Delta) -> Iterator[str]:
        others = dict(delta.accepts)
        shown = [f"{v} {self.types(types)}" for v, types in others.items()]
        tail = f", with {', '.join(shown)}" if shown else ""
        where = self.asked(delta.query.where)
        yield f"add {text.pattern(delta.query.pattern, self.unit)}{where}{tail}"
        inner = Words(self.schema, tuple(leaf.var for leaf in delta.query.variables))
        yield from (f"  of these: {line}" for line in inner.lines(delta.actions))

    def types(self, accepts: tuple[str, ...]) -> str:
        """The name of a concept, or the names of its parts where it has none."""
        wanted = set(accepts)
        named = [n for n in accepts if set(accepted(n, self.schema)) == wanted]
        if named:
            return f"of {text.type_name(named[0])}"
        return "of " + self.without_name(wanted)

    def without_name(self, wanted: set[str]) -> str:
        """`D but for DBusStation`, or `A or B`."""
        around = [n for n in self.schema.hierarchy if set(accepted(n, self.schema)) > wanted]
        whole = min(around, key=lambda n: len(accepted(n, self.schema)), default=None)
        if whole is not None and whole in wanted:
            rest = set(accepted(whole, self.schema)) - wanted
            return f"{text.type_name(whole)} but for {' and '.join(self.tops(rest))}"
        return " or ".join(self.tops(wanted))

    def tops(self, types: set[str]) -> list[str]:
        """The coarsest of some types."""
        below = {c for n in types for c in accepted(n, self.schema) if c != n}
        return [text.type_name(n) for n in sorted(types - below)]

    def event(self, part: Part) -> str:
        own = self.conditions(part.where)
        shown = self.types(part.accepts).removeprefix("of ")
        named = "" if part.var == part.type else f" {part.var}"
        return shown + named + (f" ({own})" if own else "")

    def place(self, action: Insert) -> str:
        before = self.variables[: action.place]
        after = self.variables[action.place :]
        if before and after:
            return f"between {before[-1]} and {after[0]}"
        return f"before {after[0]}" if after else f"after {before[-1]}"

    def conditions(self, where: tuple[x.Expr, ...]) -> str:
        return " and ".join(text.scalar(c, self.unit) for c in where)

    def asked(self, where: tuple[x.Expr, ...]) -> str:
        return f" where {self.conditions(where)}" if where else ""


def _scope(action: Forbid) -> str:
    if action.after is not None and action.before is not None:
        return f"between {action.after} and {action.before}"
    within = text.window(action.window)
    if action.before is not None:
        return f"before {action.before}, within {within} of the end"
    return f"after {action.after}, within {within} of the start"

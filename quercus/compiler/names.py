"""Who is called what, and who sees whom: the variables of a query and the negations they stand in."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NoReturn

from attrs import frozen

from quercus.compiler import syntax as s
from quercus.errors import QueryError, nearest

if TYPE_CHECKING:
    from quercus.ir.span import Span
    from quercus.schema import Schema

# A place in the pattern: the index of the part taken at each level, from the root down.
Path = tuple[int, ...]


@frozen
class Variable:
    """A leaf of the text. `negations` are the paths of the `!` around it, outermost first; `ors`, of the ORs."""

    name: str
    event: s.Event
    path: Path
    negations: tuple[Path, ...]
    ors: tuple[Path, ...]


class Names:
    """The variables of one query.

    A name may be bound in several branches of one OR, with one type and one Kleene form.
    """

    def __init__(self, query: s.QueryText, schema: Schema) -> None:
        self.text, self.schema = query.text, schema
        found: list[tuple[s.Event, Path, tuple[Path, ...], tuple[Path, ...]]] = []
        _collect(query.pattern, (), (), (), found)
        unnamed = Counter(e.type for e, *_ in found if e.var is None)
        numbers: Counter[str] = Counter()
        self.at: dict[Path, Variable] = {}
        self.by_name: dict[str, list[Variable]] = {}
        for event, path, negations, ors in found:
            name = event.var
            if name is None:
                numbers[event.type] += 1
                name = event.type if unnamed[event.type] == 1 else f"{event.type}_{numbers[event.type]}"
            variable = Variable(name, event, path, negations, ors)
            self._check_type(event)
            for other in self.by_name.get(name, ()):
                self._check_twice(variable, other)
            self.by_name.setdefault(name, []).append(variable)
            self.at[path] = variable

    def fail(self, code: str, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        raise QueryError(code, message, text=self.text, span=span, hint=hint)

    def _check_type(self, event: s.Event) -> None:
        known = self.schema.type_names()
        if known is not None and event.type not in known:
            hint = nearest(event.type, known) or "known types: " + ", ".join(sorted(known)[:8])
            self.fail("E101", f"no event type '{event.type}'", event.span, hint)

    def _check_twice(self, new: Variable, old: Variable) -> None:
        common = new.path[: _common(new.path, old.path)]
        a, b = new.event, old.event
        if common not in new.ors or common not in old.ors or len(new.negations) != len(old.negations):
            hint = "give one of them another name" if a.var else f"give it a variable of its own: {a.type} x"
            self.fail("E103", f"the variable '{new.name}' is bound twice", a.span, hint)
        if (a.type, a.least, a.most, a.kleene) != (b.type, b.least, b.most, b.kleene):
            self.fail(
                "E103",
                f"'{new.name}' differs between the branches of the OR",
                a.span,
                "the same type in each, or another name",
            )

    def lookup(self, name: str, inside: tuple[Path, ...], span: Span | None) -> Variable:
        """The variable as seen from inside these negations."""
        variables = self.by_name.get(name)
        if not variables:
            visible = [n for n, vs in self.by_name.items() if any(self.sees(inside, v) for v in vs)]
            hint = nearest(name, visible) or "variables: " + ", ".join(visible[:8])
            self.fail("E102", f"no variable '{name}'", span, hint)
        for v in variables:
            if self.sees(inside, v):
                return v
        self.fail(
            "E105",
            f"'{name}' is bound inside a negation and cannot be seen here",
            span,
            f"put the condition inside it, !(... {name}, condition), or into WHERE",
        )

    @staticmethod
    def sees(inside: tuple[Path, ...], v: Variable) -> bool:
        """Whether a variable can be seen from inside these negations."""
        return inside[: len(v.negations)] == v.negations

    def under(self, path: Path) -> list[Variable]:
        """The variables below a place, in the order of the text."""
        return [v for p, v in self.at.items() if p[: len(path)] == path]


def _common(a: Path, b: Path) -> int:
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


def _collect(
    p: s.Pattern,
    path: Path,
    negations: tuple[Path, ...],
    ors: tuple[Path, ...],
    found: list[tuple[s.Event, Path, tuple[Path, ...], tuple[Path, ...]]],
) -> None:
    match p:
        case s.Event():
            found.append((p, path, negations, ors))
        case s.Negation():
            _collect(p.body, (*path, 0), (*negations, path), ors, found)
        case s.Operator():
            inner = (*ors, path) if p.kind == "OR" else ors
            for i, part in enumerate(p.parts):
                _collect(part, (*path, i), negations, inner, found)

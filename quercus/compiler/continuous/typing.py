"""The expressions of continuous queries: those of the language of patterns, with names alone, sequence functions and
aggregates, each where Section 4.3 of the paper and SQL allow it.
"""

from __future__ import annotations

from typing import Any, Literal, cast

from quercus.compiler import syntax as s
from quercus.compiler.continuous.scope import Item, Scope, Tuples
from quercus.compiler.typing import FUNCTIONS, KIND_NAMES, NUMBERS, Typer
from quercus.errors import nearest
from quercus.ir import expr as x
from quercus.ir import window as w
from quercus.ir.span import Span

SEQUENCE = ("first", "last", "prev", "iter", "num")
AGGREGATES = ("count", "sum", "avg", "min", "max")
Condition = Literal["start", "termination", "iteration", "filter"]
Clause = Literal["SELECT", "WHERE", "ON", "GROUP BY", "HAVING"]


class _Typer(Typer):
    """What both kinds have in common."""

    def __init__(self, text: str, unit: str) -> None:
        super().__init__(text, unit, self.attribute, self.no_set)

    def attribute(self, var: str, attr: str, span: Span | None) -> x.Column:
        raise NotImplementedError

    def no_set(self, var: str, function: str, span: Span | None) -> None:
        raise AssertionError(function)  # sets are of patterns

    def call(self, e: s.Call) -> x.Expr:
        if e.name in SEQUENCE:
            return self.sequence(e)
        if e.name in AGGREGATES:
            return self.aggregate(e)
        if e.name not in FUNCTIONS:
            known = [*FUNCTIONS, *SEQUENCE, *AGGREGATES]
            hint = nearest(e.name, known) or "functions: " + " ".join(known)
            self.fail("E106", f"no function '{e.name}'", e.span, hint)
        if e.distinct:
            self.fail("E203", f"DISTINCT in {e.name}", e.span, "it is for aggregates")
        return super().call(e)

    def sequence(self, e: s.Call) -> x.Expr:
        raise NotImplementedError

    def aggregate(self, e: s.Call) -> x.Expr:
        raise NotImplementedError

    def plain(self, e: s.Call, names: int) -> None:
        """A sequence function with as many names as it takes, and nothing else."""
        if e.star or e.distinct or len(e.args) != names or not all(isinstance(a, s.Var | s.Attr) for a in e.args):
            takes = "nothing" if not names else "one attribute name"
            example = f"{e.name.upper()}({'a' if names else ''})"
            self.fail("E203", f"{e.name.upper()} takes {takes}", e.span, f"write {example}")

    def named(self, e: s.Scalar) -> x.Column:
        """The column that the argument of a sequence function names."""
        found = self.scalar(e)
        assert isinstance(found, x.Column)
        return found


class Conditions(_Typer):
    """The conditions of a pattern window over one stream."""

    def __init__(self, text: str, name: str, alias: str, tuples: Tuples, span: Span | None) -> None:
        super().__init__(text, timestamp_unit(tuples))
        self.names = (name, alias)
        self.scope = Scope([Item(alias, tuples, w.Now(), span)], text)
        self.place: Condition = "start"

    def typed(self, place: Condition, e: s.Scalar) -> x.Expr:
        self.place = place
        return self.condition(e)

    def attribute(self, var: str, attr: str, span: Span | None) -> x.Column:
        if var not in self.names:
            hint = f"a pattern window sees its own stream only: join in WHERE; here it is {self.names[1]}.{attr}"
            self.fail("E102", f"'{var}' cannot be seen in a pattern window", span, hint)
        return self.of(w.HERE, self.scope.column(0, attr, span))

    def word(self, e: s.Var) -> x.Expr:
        return self.of(w.HERE, self.scope.word(e.name, e.span))

    @staticmethod
    def of(var: str, column: x.Column) -> x.Column:
        return x.Column(var, column.attr, column.type, span=column.span)

    def sequence(self, e: s.Call) -> x.Expr:
        name = e.name.upper()
        start = self.place == "start"
        match e.name:
            case "last":
                hint = "an open window has no last tuple: write PREV(a) for the one before, a alone for the one at hand"
                self.fail("E901", "LAST() inside a pattern window", e.span, hint)
            case "prev" if start:
                hint = "the first tuple of a window has no previous one: test it in the other conditions"
                self.fail("E901", "PREV() in a start condition", e.span, hint)
            case "iter" | "num" if start:
                hint = "no window is open yet: test it in the other conditions"
                self.fail("E901", f"{name}() in a start condition", e.span, hint)
            case "iter" | "num":
                self.plain(e, 0)
                return x.Column(w.WINDOW, e.name, "int64", span=e.span)
            case _:
                self.plain(e, 1)
                var = w.HERE if start else w.FIRST if e.name == "first" else w.PREV  # at the start it is the first
                return x.Column(var, *self._attribute(e), span=e.span)

    def _attribute(self, e: s.Call) -> tuple[str, x.Type]:
        column = self.named(e.args[0])
        return column.attr, column.type

    def aggregate(self, e: s.Call) -> x.Expr:
        hint = "a window is tested tuple by tuple: NUM() counts its tuples, FIRST(a) and PREV(a) look back"
        self.fail("E903", f"{e.name.upper()} inside a pattern window", e.span, hint)


class Selected(_Typer):
    """The expressions of a SELECT; `aggregates` are those met so far."""

    def __init__(self, text: str, scope: Scope) -> None:
        super().__init__(text, timestamp_unit(scope.items[0].tuples))
        self.scope = scope
        self.clause: Clause = "SELECT"
        self.aggregates: list[w.Aggregate] = []
        self._inside: str | None = None  # the aggregate that is being typed

    def attribute(self, var: str, attr: str, span: Span | None) -> x.Column:
        return self.scope.qualified(var, attr, span)

    def word(self, e: s.Var) -> x.Expr:
        return self.scope.word(e.name, e.span)

    def sequence(self, e: s.Call) -> x.Expr:
        name = e.name.upper()
        if e.name == "prev":
            hint = "it is for the conditions of a pattern window; SELECT has FIRST(a) and LAST(a)"
            self.fail("E901", f"PREV() in {self.clause}", e.span, hint)
        if self.clause not in ("SELECT", "HAVING"):
            hint = "it is of the whole relation: use it in SELECT or HAVING"
            self.fail("E901", f"{name}() in {self.clause}", e.span, hint)
        if self._inside is not None:
            self.fail("E903", f"{name}() inside {self._inside}", e.span, "each is of the whole relation")
        if e.name in ("iter", "num"):
            return x.Column(f"w{self._window(e)}", e.name, "int64", span=e.span)
        if len(e.args) > 1:
            hint = f"{name}(a, b) stands alone in SELECT; here write {name}(a)"
            self.fail("E203", f"{name} of several attributes inside an expression", e.span, hint)
        self.plain(e, 1)
        column = self.named(e.args[0])
        return self._added(w.Aggregate(cast("Any", e.name), column, column.type, source=int(column.var[1:])), e.span)

    def _window(self, e: s.Call) -> int:
        """The pattern window that ITER() or NUM() counts; where there are several, ITER(x) says which."""
        name = e.name.upper()
        if len(e.args) == 1 and isinstance(e.args[0], s.Var) and not e.distinct:
            named = self.scope.source(e.args[0].name, e.args[0].span)
            if not isinstance(self.scope.items[named].window, w.PatternWindow):
                self.fail("E901", f"'{e.args[0].name}' is no pattern window", e.span, f"{name}() counts one")
            return named
        self.plain(e, 0)
        windows = [i for i, item in enumerate(self.scope.items) if isinstance(item.window, w.PatternWindow)]
        if not windows:
            self.fail("E901", f"{name}() without a pattern window", e.span, "COUNT(*) counts the rows of any relation")
        if len(windows) > 1:
            ways = " or ".join(f"{name}({self.scope.items[i].name})" for i in windows)
            self.fail("E108", f"{name}() of several pattern windows", e.span, f"write {ways}")
        return windows[0]

    def aggregate(self, e: s.Call) -> x.Expr:
        name = e.name.upper()
        if self.clause not in ("SELECT", "HAVING"):
            hint = "use HAVING" if self.clause == "WHERE" else "use it in SELECT or HAVING"
            self.fail("E903", f"{name} in {self.clause}", e.span, hint)
        if self._inside is not None:
            self.fail("E903", f"{name} inside {self._inside}", e.span, "name the inner query with WITH")
        if e.star:
            if e.name != "count":
                self.fail("E203", f"{name}(*) means nothing", e.span, f"write {name}(attribute)")
            return self._added(w.Aggregate("count", None, "int64"), e.span)
        if len(e.args) != 1:
            self.fail("E203", f"{name} takes one argument", e.span, f"write {name}(attribute)")
        self._inside = name
        value = self.scalar(e.args[0])
        self._inside = None
        takes = NUMBERS if e.name in ("sum", "avg") else {"int64", "float64", "string", "timestamp"}
        if e.name != "count" and value.type not in takes | {"null"}:
            hint = "it takes numbers" if takes is NUMBERS else "booleans have no order"
            self.fail("E201", f"{name} of {KIND_NAMES[value.type]}", e.args[0].span, hint)
        kinds: dict[str, x.Type] = {"count": "int64", "avg": "float64"}
        kind = kinds.get(e.name, "int64" if value.type == "null" else value.type)
        return self._added(w.Aggregate(cast("Any", e.name), value, kind, e.distinct), e.span)

    def _added(self, aggregate: w.Aggregate, span: Span | None) -> x.Column:
        if aggregate not in self.aggregates:
            self.aggregates.append(aggregate)
        return x.Column(w.AGGREGATE, str(self.aggregates.index(aggregate)), aggregate.type, span=span)


def timestamp_unit(tuples: Tuples) -> str:
    return tuples.unit if tuples.is_timestamp else "us"

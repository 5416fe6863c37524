"""Raw parse tree -> surface syntax: what each node was meant to be, decided by its shape.

The grammar has one ladder of operators for patterns and conditions. Here `A+ b` becomes a Kleene leaf and `a.x + 3` a
sum, `A & B` an AND and `a.x = 1 & b.y = 2` two conjuncts, and a mixture of the two becomes an error at the part that
is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

from quercus.compiler import syntax as s
from quercus.errors import QueryError, nearest
from quercus.ir.span import Span

if TYPE_CHECKING:
    from lark import Token, Tree

    Node = Tree[Token]

INT64_MAX = 2**63 - 1

_SPELLINGS = {
    "ns": "ns nanosecond",
    "us": "us µs μs microsecond",
    "ms": "ms msec millisecond",
    "s": "s sec second",
    "min": "m min minute",
    "h": "h hr hour",
    "d": "d day",
    "week": "week",
    "events": "unit event",
}
UNITS = {spelling: unit for unit, spellings in _SPELLINGS.items() for spelling in spellings.split()}

_LEAFY = {"word", "integer", "string"}
_PATTERNS = {"event", "times", "operator", "seq", "plus", "star"} | _LEAFY
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}


def shape_query(tree: Node, text: str) -> s.QueryText:
    return _Shaper(text).query(tree)


def _trees(node: Node) -> list[Node]:
    return [c for c in node.children if not isinstance(c, str)]


def _tokens(node: Node, *kinds: str) -> list[Token]:
    return [c for c in node.children if isinstance(c, str) and (not kinds or c.type in kinds)]


def _span(node: Node) -> Span:
    return Span(node.meta.start_pos, node.meta.end_pos)


def _at(token: Token) -> Span:
    return Span(int(token.start_pos or 0), int(token.end_pos or 0))


def _unquote(text: str) -> str:
    if text[:1] in "'\"":
        return text[1:-1].replace(text[0] * 2, text[0])
    return str(text)


class _Shaper:
    """One query's conversion. `_query_window` is the operator node whose WITHIN turned out to be the query's."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._query_window: Node | None = None

    def fail(self, code: str, message: str, span: Span, hint: str | None = None) -> NoReturn:
        raise QueryError(code, message, text=self.text, span=span, hint=hint)

    # the query and its clauses

    def query(self, tree: Node) -> s.QueryText:
        pattern, *clauses = _trees(tree)
        found: dict[str, Any] = {}
        for clause in clauses:
            stray = _take_trailing_window(clause)
            for kind, node in ((str(clause.data), clause), ("within", stray)):
                if node is None:
                    continue
                if kind in found:
                    first = next(iter(node.scan_values(lambda _: True)))
                    self.fail("E007", f"{str(first).upper()} stands twice", _at(first), "each clause stands once")
                found[kind] = self.clause(kind, node)
        window = found.get("within")
        if window is None:
            outside = list(_outside_parentheses(pattern))
            if outside:
                self._query_window = outside[-1]
                window = self.window(_window_of(outside[-1]))
        return s.QueryText(
            pattern=self.pattern(pattern),
            where=found.get("where", ()),
            window=window,
            partition_by=found.get("partition_by", ()),
            group_by=found.get("group_by", ()),
            aggregates=found.get("agg", ()),
            returns=found.get("returns", ()),
            text=self.text,
        )

    def clause(self, kind: str, node: Node) -> Any:
        match kind:
            case "where":
                return tuple(c for e in _trees(node) for c in self.conjuncts(e))
            case "partition_by":
                return tuple(_unquote(t) for t in _tokens(node, "IDENT", "STRING"))
            case "group_by":
                return tuple(self.group_item(i) for i in _trees(node))
            case "agg" | "returns":
                return tuple(self.item(i) for i in _trees(node))
            case _:
                return self.window(node if node.data == "window" else _trees(node)[0])

    def item(self, node: Node) -> s.Output:
        names = _tokens(node, "IDENT", "STRING")
        return s.Output(self.scalar(_trees(node)[0]), _unquote(names[0]) if names else None, span=_span(node))

    def group_item(self, node: Node) -> s.Attr | s.Var:
        item = self.item(node)
        value = s.as_variable(item.value)
        if item.name is not None or not isinstance(value, s.Attr | s.Var):
            self.fail("E602", "GROUPBY takes variable.attribute or a variable", _span(node), "for example GROUPBY a.id")
        return value

    def window(self, node: Node) -> s.WindowText:
        number = _tokens(node, "INT", "FLOAT")[0]
        size = self.float(number) if number.type == "FLOAT" else self.integer(number)
        unit = None
        for word in _tokens(node, "IDENT"):
            name = word.casefold()
            unit = UNITS.get(name) or UNITS.get(name.removesuffix("s"))
            if unit is None:
                known = ["ns", "us", "ms", "s", "sec", "min", "minutes", "hours", "days", "weeks", "events", "unit"]
                self.fail(
                    "E001",
                    f"'{word}' is no unit",
                    _at(word),
                    nearest(name, known) or "units: ns us ms s min h d week, EVENTS",
                )
        if size <= 0:
            self.fail("E402", "a window of no length", _at(number), "give a length above zero")
        if unit == "events" and isinstance(size, float):
            self.fail("E402", "a window counts whole events", _at(number), "give a whole number of EVENTS")
        return s.WindowText(size, cast("Any", unit), span=_span(node))

    def integer(self, token: Token) -> int:
        if len(token) > 19 or int(token) > INT64_MAX:
            self.fail("E009", "a whole number beyond 64 bits", _at(token), "write it as a float, with a decimal point")
        return int(token)

    # patterns

    def is_pattern(self, node: Node) -> bool:
        kind = str(node.data)
        if kind in {"add", "mul"}:
            left, right = _trees(node)
            return str(left.data) in _LEAFY and str(right.data) in {"word", "string"}
        if kind in {"not_", "and_", "or_"}:
            return any(self.is_pattern(c) for c in _trees(node))
        if kind == "group":
            inner = [e for part in _trees(node) if part.data == "list" for e in _trees(part)]
            return not inner or self.is_pattern(inner[0])
        return kind in _PATTERNS

    def pattern(self, node: Node) -> s.Pattern:
        if not self.is_pattern(node):
            self.fail(
                "E307",
                "a condition where an event pattern should stand",
                _span(node),
                "conditions stand inside SEQ(...), AND(...), OR(...) or after WHERE",
            )
        match str(node.data):
            case "word" | "integer" | "string":
                return s.Event(_unquote(_tokens(node)[0]), span=_span(node))
            case "event":
                name, var = _tokens(node)
                return s.Event(_unquote(name), _unquote(var), span=_span(node))
            case "times":
                return self.times(node)
            case "plus" | "add" | "star" | "mul" as kind:
                return self.kleene(node, least=1 if kind in {"plus", "add"} else 0)
            case "not_":
                return s.Negation(self.pattern(_trees(node)[0]), span=_span(node))
            case "seq" | "and_" | "or_" as kind:
                operator = {"seq": "SEQ", "and_": "AND", "or_": "OR"}[kind]
                parts = tuple(self.pattern(c) for c in _trees(node))
                return s.Operator(cast("Any", operator), parts, span=_span(node))
            case "operator":
                return self.operator(node, str(_tokens(node)[0]).upper())
            case _:
                return self.group(node)

    def times(self, node: Node) -> s.Event:
        name, _, count, _, *var = _tokens(node)
        n = self.integer(count)
        if n == 0:
            self.fail("E305", "a count of zero", _at(count), "[n] needs n of 1 or more; an absent event is written !B")
        return s.Event(_unquote(name), _unquote(var[0]) if var else None, n, n, True, span=_span(node))

    def kleene(self, node: Node, least: int) -> s.Event:
        type_, *var = _trees(node)
        if str(type_.data) not in _LEAFY:
            self.fail("E304", "Kleene stands on an event type only", _span(node), "write A+ a, A* a or A[3] a")
        name = _unquote(_tokens(var[0])[0]) if var else None
        return s.Event(_unquote(_tokens(type_)[0]), name, least, None, True, span=_span(node))

    def operator(self, node: Node, kind: str) -> s.Operator:
        parts, where = self.arguments(node)
        if not parts:
            self.fail("E302", f"{kind} has no component", _span(node), "name at least one event type")
        return s.Operator(cast("Any", kind), parts, where, self.own_window(node), span=_span(node))

    def group(self, node: Node) -> s.Pattern:
        """`(expr)` is transparent; `(T x, preds)` is a SEQ of one part; a window makes an operator of it."""
        parts, where = self.arguments(node)
        if not parts:
            self.fail("E302", "empty parentheses", _span(node), "name at least one event type")
        if len(parts) > 1:
            self.fail("E001", "a comma between patterns outside any operator", _span(node), "write SEQ(A, B) or A ; B")
        window, body = self.own_window(node), parts[0]
        if not where and window is None:
            return body
        if isinstance(body, s.Operator) and body.window is None:
            return s.Operator(body.kind, body.parts, body.where + where, window, span=_span(node))
        return s.Operator("SEQ", (body,), where, window, span=_span(node))

    def arguments(self, node: Node) -> tuple[tuple[s.Pattern, ...], tuple[s.Scalar, ...]]:
        parts: list[s.Pattern] = []
        where: list[s.Scalar] = []
        for listed in _trees(node):
            if listed.data != "list":
                continue
            for e in _trees(listed):
                if self.is_pattern(e):
                    parts.append(self.pattern(e))
                else:
                    where.extend(self.conjuncts(e))
        return tuple(parts), tuple(where)

    def own_window(self, node: Node) -> s.WindowText | None:
        window = _window_of(node)
        return None if window is None or node is self._query_window else self.window(window)

    # conditions

    def conjuncts(self, node: Node) -> list[s.Scalar]:
        """Top-level `and`s separate conjuncts; parentheses keep one together."""
        if node.data == "and_" and not self.is_pattern(node):
            return [c for e in _trees(node) for c in self.conjuncts(e)]
        if node.data == "same":
            return [s.SameAttr(_unquote(t), span=_at(t)) for t in _tokens(node, "IDENT", "STRING")]
        return [self.scalar(node)]

    def scalar(self, node: Node) -> s.Scalar:
        kind, span = str(node.data), _span(node)
        match kind:
            case "word":
                return s.Var(str(_tokens(node)[0]), span=span)
            case "integer":
                return s.Constant(self.integer(_tokens(node)[0]), span=span)
            case "float_":
                return s.Constant(self.float(_tokens(node)[0]), span=span)
            case "string":
                return s.Constant(_unquote(_tokens(node)[0]), span=span)
            case "constant":
                return s.Constant({"TRUE": True, "FALSE": False, "NULL": None}[_tokens(node)[0].type], span=span)
            case "attr":
                name, attr = _tokens(node)
                return s.Attr(_unquote(name), _unquote(attr[1:].strip()), span=span)
            case "call":
                return self.call(node)
            case "add" | "sub" | "mul" | "div" | "mod":
                left, right = _trees(node)
                return s.Binary(cast("Any", _ARITHMETIC[kind]), self.scalar(left), self.scalar(right), span=span)
            case "minus" if str(_trees(node)[0].data) == "integer" and _tokens(_trees(node)[0])[0] == str(
                INT64_MAX + 1
            ):
                return s.Constant(-INT64_MAX - 1, span=span)
            case "minus":
                return s.Unary("-", self.scalar(_trees(node)[0]), span=span)
            case "not_":
                return s.Unary("not", self.scalar(_trees(node)[0]), span=span)
            case "and_" | "or_":
                return _balanced("and" if kind == "and_" else "or", [self.scalar(c) for c in _trees(node)], span)
            case "chain":
                ops = tuple({"==": "=", "!=": "<>"}.get(str(t), str(t)) for t in _tokens(node, "COMPARE"))
                return s.Chain(tuple(self.scalar(c) for c in _trees(node)), cast("Any", ops), span=span)
            case "in_":
                value, *items = [self.scalar(c) for c in _trees(node)]
                return s.InList(value, tuple(items), bool(_tokens(node, "NOT")), span=span)
            case "between":
                value, low, high = [self.scalar(c) for c in _trees(node)]
                return s.Between(value, low, high, bool(_tokens(node, "NOT")), span=span)
            case "is_null":
                return s.IsNull(self.scalar(_trees(node)[0]), bool(_tokens(node, "NOT")), span=span)
            case "group":
                return self.parenthesised(node)
            case "same":
                self.fail("E504", "[attr] stands alone inside an operator", span, "write SEQ(A a, B b, [id])")
            case _:
                self.fail(
                    "E307",
                    "an event pattern where a condition should stand",
                    span,
                    "a value is written variable.attribute",
                )

    def float(self, token: Token) -> float:
        value = float(token)
        if value == float("inf"):
            self.fail("E009", "a number beyond float64", _at(token))
        return value

    def parenthesised(self, node: Node) -> s.Scalar:
        inner = [e for part in _trees(node) if part.data == "list" for e in _trees(part)]
        if len(inner) != 1 or _window_of(node) is not None:
            self.fail("E001", "parentheses in a condition hold one expression", _span(node))
        return self.scalar(inner[0])

    def call(self, node: Node) -> s.Call:
        name = str(_tokens(node)[0])
        arguments = [a for a in _trees(node) if a.data == "arguments"]
        star = bool(arguments) and bool(_tokens(arguments[0], "STAR"))
        args = tuple(self.scalar(e) for a in arguments for e in _trees(a))
        dots = _tokens(node, "DOTNAME")
        attr = _unquote(dots[0][1:].strip()) if dots else None
        return s.Call(name.casefold(), args, attr, star, span=_span(node))


def _balanced(op: Literal["and", "or"], items: list[s.Scalar], span: Span) -> s.Scalar:
    """A long list as a shallow tree; one span says that it was one list."""
    if len(items) == 1:
        return items[0]
    half = len(items) // 2
    return s.Binary(op, _balanced(op, items[:half], span), _balanced(op, items[half:], span), span=span)


def _window_of(node: Node) -> Any:
    return next((c for c in _trees(node) if c.data == "window"), None)


def _take_trailing_window(clause: Node) -> Node | None:
    """`WHERE (a.x = 1 or a.x = 2) WITHIN 5 s`: the grammar gives WITHIN to the parentheses; it is the query's."""
    node = clause
    while _trees(node) and node.data not in {"group", "call", "operator", "within"}:
        if isinstance(node.children[-1], str):
            return None
        node = _trees(node)[-1]
    window: Node | None = _window_of(node) if node.data == "group" else None
    if window is not None:
        node.children.remove(window)
    return window


def _outside_parentheses(node: Node) -> Any:
    """The operators whose WITHIN stands outside all parentheses, in the order of the text."""
    if node.data in {"operator", "group"}:
        if _window_of(node) is not None:
            yield node
    elif node.data in {"seq", "and_", "or_", "not_"}:
        for c in _trees(node):
            yield from _outside_parentheses(c)

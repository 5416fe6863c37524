"""Scalars of a parse tree as surface syntax: what the grammars have in common.

Both call the rules of their expressions alike (`add`, `chain`, `call`, ...), so that one reading serves them.
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


def unit_named(word: str) -> str | None:
    """The unit of windows that a word names, in the singular or the plural.

    >>> unit_named("hrs"), unit_named("EVENTS"), unit_named("PARTITION")
    ('h', 'events', None)
    """
    name = word.casefold()
    return UNITS.get(name) or UNITS.get(name.removesuffix("s"))


_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}


def trees(node: Node) -> list[Node]:
    return [c for c in node.children if not isinstance(c, str)]


def tokens(node: Node, *kinds: str) -> list[Token]:
    return [c for c in node.children if isinstance(c, str) and (not kinds or c.type in kinds)]


def span_of(node: Node) -> Span:
    return Span(node.meta.start_pos, node.meta.end_pos)


def place(token: Token) -> Span:
    return Span(int(token.start_pos or 0), int(token.end_pos or 0))


def unquote(text: str) -> str:
    if text[:1] in "'\"":
        return text[1:-1].replace(text[0] * 2, text[0])
    return str(text)


class Scalars:
    """Reads the expressions of one text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def fail(self, code: str, message: str, span: Span, hint: str | None = None) -> NoReturn:
        raise QueryError(code, message, text=self.text, span=span, hint=hint)

    def name(self, token: Token) -> str:
        """What the text calls something: a name is not empty, though a string may be."""
        return unquote(token) or self.fail("E001", "an empty name", place(token), "give it a name, or leave it out")

    def integer(self, token: Token) -> int:
        if len(token) > 19 or int(token) > INT64_MAX:
            self.fail(
                "E009", "a whole number beyond 64 bits", place(token), "write it as a float, with a decimal point"
            )
        return int(token)

    def window(self, node: Node) -> s.WindowText:
        number = tokens(node, "INT", "FLOAT")[0]
        size = self.float(number) if number.type == "FLOAT" else self.integer(number)
        unit = None
        for word in tokens(node, "IDENT"):
            unit = unit_named(word)
            if unit is None:
                known = ["ns", "us", "ms", "s", "sec", "min", "minutes", "hours", "days", "weeks", "events", "unit"]
                self.fail(
                    "E001",
                    f"'{word}' is no unit",
                    place(word),
                    nearest(word.casefold(), known) or "units: ns us ms s min h d week, EVENTS",
                )
        if size <= 0:
            self.fail("E402", "a window of no length", place(number), "give a length above zero")
        if unit == "events" and isinstance(size, float):
            self.fail("E402", "a window counts whole events", place(number), "give a whole number of EVENTS")
        return s.WindowText(size, cast("Any", unit), span=span_of(node))

    def scalar(self, node: Node) -> s.Scalar:
        kind, span = str(node.data), span_of(node)
        match kind:
            case "word":
                return s.Var(str(tokens(node)[0]), span=span)
            case "integer":
                return s.Constant(self.integer(tokens(node)[0]), span=span)
            case "float_":
                return s.Constant(self.float(tokens(node)[0]), span=span)
            case "string":
                return s.Constant(unquote(tokens(node)[0]), span=span)
            case "constant":
                return s.Constant({"TRUE": True, "FALSE": False, "NULL": None}[tokens(node)[0].type], span=span)
            case "attr":
                name, attr = tokens(node)
                return s.Attr(unquote(name), unquote(attr[1:].strip()), span=span)
            case "call":
                return self.call(node)
            case "add" | "sub" | "mul" | "div" | "mod":
                left, right = trees(node)
                return s.Binary(cast("Any", _ARITHMETIC[kind]), self.scalar(left), self.scalar(right), span=span)
            case "minus" if str(trees(node)[0].data) == "integer" and tokens(trees(node)[0])[0] == str(INT64_MAX + 1):
                return s.Constant(-INT64_MAX - 1, span=span)
            case "minus":
                return s.Unary("-", self.scalar(trees(node)[0]), span=span)
            case "not_":
                return s.Unary("not", self.scalar(trees(node)[0]), span=span)
            case "and_" | "or_":
                return _balanced("and" if kind == "and_" else "or", [self.scalar(c) for c in trees(node)], span)
            case "chain":
                ops = tuple({"==": "=", "!=": "<>"}.get(str(t), str(t)) for t in tokens(node, "COMPARE"))
                return s.Chain(tuple(self.scalar(c) for c in trees(node)), cast("Any", ops), span=span)
            case "in_":
                value, *items = [self.scalar(c) for c in trees(node)]
                return s.InList(value, tuple(items), bool(tokens(node, "NOT")), span=span)
            case "between":
                value, low, high = [self.scalar(c) for c in trees(node)]
                return s.Between(value, low, high, bool(tokens(node, "NOT")), span=span)
            case "is_null":
                return s.IsNull(self.scalar(trees(node)[0]), bool(tokens(node, "NOT")), span=span)
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
            self.fail("E009", "a number beyond float64", place(token))
        return value

    def parenthesised(self, node: Node) -> s.Scalar:
        inner = [e for part in trees(node) if part.data == "list" for e in trees(part)]
        if len(inner) != 1 or window_of(node) is not None:
            self.fail("E001", "parentheses in a condition hold one expression", span_of(node))
        return self.scalar(inner[0])

    def call(self, node: Node) -> s.Call:
        name = str(tokens(node)[0])
        arguments = [a for a in trees(node) if a.data == "arguments"]
        star = bool(arguments) and bool(tokens(arguments[0], "STAR"))
        args = tuple(self.scalar(e) for a in arguments for e in trees(a))
        dots = tokens(node, "DOTNAME")
        attr = unquote(dots[0][1:].strip()) if dots else None
        distinct = bool(arguments) and bool(tokens(arguments[0], "DISTINCT"))
        return s.Call(name.casefold(), args, attr, star, distinct, span=span_of(node))


def _balanced(op: Literal["and", "or"], items: list[s.Scalar], span: Span) -> s.Scalar:
    """A long list as a shallow tree; one span says that it was one list."""
    if len(items) == 1:
        return items[0]
    half = len(items) // 2
    return s.Binary(op, _balanced(op, items[:half], span), _balanced(op, items[half:], span), span=span)


def window_of(node: Node) -> Any:
    return next((c for c in trees(node) if c.data == "window"), None)

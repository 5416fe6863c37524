"""Raw parse tree -> surface syntax: what each node was meant to be, decided by its shape.

The grammar has one ladder of operators for patterns and conditions. Here `A+ b` becomes a Kleene leaf and `a.x + 3` a
sum, `A & B` an AND and `a.x = 1 & b.y = 2` two conjuncts, and a mixture of the two becomes an error at the part that
is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from quercus.compiler import syntax as s
from quercus.compiler.scalars import Scalars, place, span_of, tokens, trees, unquote, window_of

if TYPE_CHECKING:
    from quercus.compiler.scalars import Node

_LEAFY = {"word", "integer", "string"}
_PATTERNS = {"event", "times", "operator", "seq", "plus", "star"} | _LEAFY


def shape_query(tree: Node, text: str) -> s.QueryText:
    return _Shaper(text).query(tree)


class _Shaper(Scalars):
    """One query's conversion. `_query_window` is the operator node whose WITHIN turned out to be the query's."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._query_window: Node | None = None

    # the query and its clauses

    def query(self, tree: Node) -> s.QueryText:
        pattern, *clauses = trees(tree)
        found: dict[str, Any] = {}
        for clause in clauses:
            stray = _take_trailing_window(clause)
            for kind, node in ((str(clause.data), clause), ("within", stray)):
                if node is None:
                    continue
                if kind in found:
                    first = next(iter(node.scan_values(lambda _: True)))
                    self.fail("E007", f"{str(first).upper()} stands twice", place(first), "each clause stands once")
                found[kind] = self.clause(kind, node)
        window = found.get("within")
        if window is None:
            outside = list(_outside_parentheses(pattern))
            if outside:
                self._query_window = outside[-1]
                window = self.window(window_of(outside[-1]))
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
                return tuple(c for e in trees(node) for c in self.conjuncts(e))
            case "partition_by":
                return tuple(unquote(t) for t in tokens(node, "IDENT", "STRING"))
            case "group_by":
                return tuple(self.group_item(i) for i in trees(node))
            case "agg" | "returns":
                return tuple(self.item(i) for i in trees(node))
            case _:
                return self.window(node if node.data == "window" else trees(node)[0])

    def item(self, node: Node) -> s.Output:
        names = tokens(node, "IDENT", "STRING")
        return s.Output(self.scalar(trees(node)[0]), self.name(names[0]) if names else None, span=span_of(node))

    def group_item(self, node: Node) -> s.Attr | s.Var:
        item = self.item(node)
        value = s.as_variable(item.value)
        if item.name is not None or not isinstance(value, s.Attr | s.Var):
            self.fail(
                "E602", "GROUPBY takes variable.attribute or a variable", span_of(node), "for example GROUPBY a.id"
            )
        return value

    # patterns

    def is_pattern(self, node: Node) -> bool:
        kind = str(node.data)
        if kind in {"add", "mul"}:
            left, right = trees(node)
            return str(left.data) in _LEAFY and str(right.data) in {"word", "string"}
        if kind in {"not_", "and_", "or_"}:
            return any(self.is_pattern(c) for c in trees(node))
        if kind == "group":
            inner = [e for part in trees(node) if part.data == "list" for e in trees(part)]
            return not inner or self.is_pattern(inner[0])
        return kind in _PATTERNS

    def pattern(self, node: Node) -> s.Pattern:
        if not self.is_pattern(node):
            self.fail(
                "E307",
                "a condition where an event pattern should stand",
                span_of(node),
                "conditions stand inside SEQ(...), AND(...), OR(...) or after WHERE",
            )
        match str(node.data):
            case "word" | "integer" | "string":
                return s.Event(unquote(tokens(node)[0]), span=span_of(node))
            case "event":
                name, var = tokens(node)
                return s.Event(unquote(name), self.name(var), span=span_of(node))
            case "times":
                return self.times(node)
            case "plus" | "add" | "star" | "mul" as kind:
                return self.kleene(node, least=1 if kind in {"plus", "add"} else 0)
            case "not_":
                return s.Negation(self.pattern(trees(node)[0]), span=span_of(node))
            case "seq" | "and_" | "or_" as kind:
                operator = {"seq": "SEQ", "and_": "AND", "or_": "OR"}[kind]
                parts = tuple(self.pattern(c) for c in trees(node))
                return s.Operator(cast("Any", operator), parts, span=span_of(node))
            case "operator":
                return self.operator(node, str(tokens(node)[0]).upper())
            case _:
                return self.group(node)

    def times(self, node: Node) -> s.Event:
        name, _, count, _, *var = tokens(node)
        n = self.integer(count)
        if n == 0:
            self.fail(
                "E305", "a count of zero", place(count), "[n] needs n of 1 or more; an absent event is written !B"
            )
        return s.Event(unquote(name), self.name(var[0]) if var else None, n, n, True, span=span_of(node))

    def kleene(self, node: Node, least: int) -> s.Event:
        type_, *var = trees(node)
        if str(type_.data) not in _LEAFY:
            self.fail("E304", "Kleene stands on an event type only", span_of(node), "write A+ a, A* a or A[3] a")
        name = self.name(tokens(var[0])[0]) if var else None
        return s.Event(unquote(tokens(type_)[0]), name, least, None, True, span=span_of(node))

    def operator(self, node: Node, kind: str) -> s.Operator:
        parts, where = self.arguments(node)
        if not parts:
            self.fail("E302", f"{kind} has no component", span_of(node), "name at least one event type")
        return s.Operator(cast("Any", kind), parts, where, self.own_window(node), span=span_of(node))

    def group(self, node: Node) -> s.Pattern:
        """`(expr)` is transparent; `(T x, preds)` is a SEQ of one part; a window makes an operator of it."""
        parts, where = self.arguments(node)
        if not parts:
            self.fail("E302", "empty parentheses", span_of(node), "name at least one event type")
        if len(parts) > 1:
            self.fail(
                "E001", "a comma between patterns outside any operator", span_of(node), "write SEQ(A, B) or A ; B"
            )
        window, body = self.own_window(node), parts[0]
        if not where and window is None:
            return body
        if isinstance(body, s.Operator) and body.window is None:
            return s.Operator(body.kind, body.parts, body.where + where, window, span=span_of(node))
        return s.Operator("SEQ", (body,), where, window, span=span_of(node))

    def arguments(self, node: Node) -> tuple[tuple[s.Pattern, ...], tuple[s.Scalar, ...]]:
        parts: list[s.Pattern] = []
        where: list[s.Scalar] = []
        for listed in trees(node):
            if listed.data != "list":
                continue
            for e in trees(listed):
                if self.is_pattern(e):
                    parts.append(self.pattern(e))
                else:
                    where.extend(self.conjuncts(e))
        return tuple(parts), tuple(where)

    def own_window(self, node: Node) -> s.WindowText | None:
        window = window_of(node)
        return None if window is None or node is self._query_window else self.window(window)

    # conditions

    def conjuncts(self, node: Node) -> list[s.Scalar]:
        """Top-level `and`s separate conjuncts; parentheses keep one together."""
        if node.data == "and_" and not self.is_pattern(node):
            return [c for e in trees(node) for c in self.conjuncts(e)]
        if node.data == "same":
            return [s.SameAttr(unquote(t), span=place(t)) for t in tokens(node, "IDENT", "STRING")]
        return [self.scalar(node)]


def _take_trailing_window(clause: Node) -> Node | None:
    """`WHERE (a.x = 1 or a.x = 2) WITHIN 5 s`: the grammar gives WITHIN to the parentheses; it is the query's."""
    node = clause
    while trees(node) and node.data not in {"group", "call", "operator", "within"}:
        if isinstance(node.children[-1], str):
            return None
        node = trees(node)[-1]
    window: Node | None = window_of(node) if node.data == "group" else None
    if window is not None:
        node.children.remove(window)
    return window


def _outside_parentheses(node: Node) -> Any:
    """The operators whose WITHIN stands outside all parentheses, in the order of the text."""
    if node.data in {"operator", "group"}:
        if window_of(node) is not None:
            yield node
    elif node.data in {"seq", "and_", "or_", "not_"}:
        for c in trees(node):
            yield from _outside_parentheses(c)

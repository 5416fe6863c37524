"""The parse tree of a continuous query -> its surface syntax."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from quercus.compiler.continuous import syntax as c
from quercus.compiler.scalars import Scalars, place, span_of, tokens, trees, unquote
from quercus.compiler.syntax import Output, Scalar
from quercus.errors import nearest
from quercus.ir.span import Span

if TYPE_CHECKING:
    from lark import Token

    from quercus.compiler.scalars import Node

MAX_SELECTS = 64
MAX_SOURCES = 16
# What a SQL user may look for, and does not find.
NOT_HERE = {
    "order": "rows come in the order of time: there is no ORDER BY",
    "limit": "there is no LIMIT: a stream has no end",
    "left": "only inner joins: JOIN ... ON",
    "right": "only inner joins: JOIN ... ON",
    "full": "only inner joins: JOIN ... ON",
    "outer": "only inner joins: JOIN ... ON",
    "cross": "write the sources with a comma between them",
    "natural": "write JOIN ... ON, with the columns that must be equal",
    "using": "write JOIN ... ON, with the columns that must be equal",
    "group": "write GROUP BY",
    "except": "only UNION and UNION ALL",
    "intersect": "only UNION and UNION ALL",
    "case": "there is no CASE",
    "like": "there is no LIKE; strings are compared whole",
    "slide": "a window moves with every tuple: there is no SLIDE",
}


class Shaper(Scalars):
    """One query. `islands` are the texts of its patterns, and the windows in them, by the place of the word PATTERN."""

    def __init__(self, text: str, islands: Mapping[int, tuple[str, tuple[c.WindowedType, ...]]]) -> None:
        super().__init__(text)
        self.islands = islands

    def query(self, tree: Node) -> c.ContinuousText:
        *named, stream = trees(tree)
        found = []
        for one in trees(named[0]) if named else []:
            name = tokens(one, "IDENT", "STRING")[0]
            found.append((self.name(name), place(name), self.stream(trees(one)[0])))
        return c.ContinuousText(self.stream(stream), tuple(found), text=self.text)

    def stream(self, node: Node) -> c.Stream:
        kind = tokens(node)[0].type.lower()
        return c.Stream(cast("Any", kind), self.relation(trees(node)[0]), span=span_of(node))

    def relation(self, node: Node) -> c.Relation:
        """`a UNION ALL b UNION c` is `(a UNION ALL b) UNION c`, as in SQL."""
        found: c.Relation | None = None
        selects = trees(node)
        if len(selects) > MAX_SELECTS:
            hint = "split the query with WITH"
            self.fail("E309", f"a UNION of more than {MAX_SELECTS} SELECTs", span_of(selects[MAX_SELECTS]), hint)
        union, is_all = Span(0, 0), False
        for part in node.children:
            if not isinstance(part, str):
                new = self.select(part)
                found = new if found is None else c.Union(found, new, is_all, span=union)
            elif part.type == "UNION":
                union, is_all = place(part), False
            else:
                is_all = True
        assert found is not None
        return found

    def select(self, node: Node) -> c.Select:
        items: list[Output | c.All] = []
        sources: list[c.Source] = []
        clauses: dict[str, Node] = {}
        for part in trees(node):
            match str(part.data):
                case "all" | "all_of" | "output":
                    items.append(self.item(part))
                case "named_source" | "pattern_source":
                    sources.append(self.source(part))
                case "join":
                    source, on = trees(part)
                    sources.append(self.source(source, self.scalar(on)))
                case kind:
                    if kind in clauses:
                        word = tokens(part)[0]
                        self.fail("E007", f"{str(word).upper()} stands twice", place(word), "each clause stands once")
                    clauses[kind] = part
        if len(sources) > MAX_SOURCES:
            hint = "join some of them in a query of WITH"
            self.fail("E309", f"more than {MAX_SOURCES} sources in FROM", sources[MAX_SOURCES].span or Span(0, 0), hint)
        where, having = clauses.get("where"), clauses.get("having")
        return c.Select(
            tuple(items),
            tuple(sources),
            self.scalar(trees(where)[0]) if where else None,
            tuple(self.scalar(e) for e in trees(clauses["group_by"])) if "group_by" in clauses else (),
            self.scalar(trees(having)[0]) if having else None,
            bool(tokens(node, "DISTINCT")),
            span=span_of(node),
        )

    def item(self, node: Node) -> Output | c.All:
        names = tokens(node, "IDENT", "STRING")
        match str(node.data):
            case "all":
                return c.All(span=span_of(node))
            case "all_of":
                return c.All(unquote(names[0]), span=span_of(node))
            case _:
                return Output(self.scalar(trees(node)[0]), self.name(names[0]) if names else None, span=span_of(node))

    # FROM

    def source(self, node: Node, on: Scalar | None = None) -> c.Source:
        window = self.stream_window(trees(node)[0])
        names = tokens(node, "IDENT", "STRING")
        if node.data == "named_source":
            stream: c.StreamName | c.Island = c.StreamName(unquote(names[0]), span=place(names[0]))
            names = names[1:]
        else:
            word, over = tokens(node, "PATTERN")[0], tokens(node, "OVER")
            of = c.StreamName(unquote(names[0]), span=place(names[0])) if over else None
            names = names[1:] if over else names
            island = self.islands.get(place(word).start)
            if island is None:
                self.fail("E001", "a pattern is missing", place(word), "write (PATTERN SEQ(A a, B b) WITHIN 5 min)")
            stream = c.Island(island[0], of, island[1], span=place(word))
        if names and names[0].casefold() in NOT_HERE and not tokens(node, "AS"):
            self.fail("E001", f"'{names[0]}' is not expected here", place(names[0]), NOT_HERE[names[0].casefold()])
        return c.Source(stream, window, self.name(names[0]) if names else None, on, span=span_of(node))

    def stream_window(self, node: Node) -> c.Window:
        span = span_of(node)
        match str(node.data):
            case "pattern_window":
                conditions = [self.scalar(e) for e in trees(node)]
                if len(conditions) != 4:
                    self.fail(
                        "E403",
                        f"a pattern window has four conditions, not {len(conditions)}",
                        span,
                        "write [Pattern By (start; termination; iteration; filter)]",
                    )
                start, termination, iteration, chosen = conditions
                return c.PatternText(start, termination, iteration, chosen, span=span)
            case "range_window":
                length = self.window(node)
                if length.unit == "events":
                    self.fail("E402", "a range is a length of time", span, f"write [Rows {length.size}]")
                return c.RangeText(length, span=span)
            case "rows_window":
                return c.RowsText(self.count(tokens(node, "INT")[0]), span=span)
            case "partition_window":
                columns = [t for part in trees(node) for t in tokens(part)]
                word = tokens(node, "IDENT")[0]
                if word.casefold() != "rows":
                    hint = nearest(word, ["Rows"]) or "write [Partition By a, b Rows 3]"
                    self.fail("E001", f"'{word}' stands where Rows should be", place(word), hint)
                by = tuple((unquote(t), place(t)) for t in columns)
                return c.RowsText(self.count(tokens(node, "INT")[0]), by, span=span)
            case "no_window":
                self.fail("E403", "empty brackets", span, "write for example [Now] or [Range 2 min]")
            case "now_window":
                return c.NowText(span=span)
            case _:
                return c.UnboundedText(span=span)

    def count(self, token: Token) -> int:
        n = self.integer(token)
        if n == 0:
            self.fail("E402", "a window of no rows", place(token), "give a number above 0")
        return n

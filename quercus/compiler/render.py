"""Plans as pictures: buffers, joins, cursors, negations, each kind in its own shape and colour.

`.dot` needs nothing. Other formats are drawn by the `dot` program where there is one, else by the library inside
pygraphviz (the extra `viz`), else `RenderError` says what to install; `Plan.render` then draws .svg by itself.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from html import escape
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from quercus.compiler.analyzed import number
from quercus.compiler.explain import facts, kind, predicates, scope_text, when_text
from quercus.errors import DataError, QuercusError
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.ir import tree as t

if TYPE_CHECKING:
    from graphviz import Digraph

    from quercus.plan import Plan

FORMATS = ("svg", "png", "pdf", "dot")
FONT = "Helvetica"
WRAP = 46
# fill and border of each kind of node
LEAF = ("#e8f1fb", "#3b74b0")
KLEENE = ("#fdf0dc", "#c17f1f")
JOIN = ("#e9f5ea", "#3f8f4a")
STACK = ("#eef0f7", "#56618f")
UNION = ("#f6eefb", "#8a4fb0")
NEGATION = ("#fdeaea", "#c23b3b")
TEST = ("#f3f3f3", "#6b6b6b")
COMBINE = ("#fff7cc", "#a68a00")
NEST = ("#e6f4f4", "#2f8080")
EMPTY = ("#ffffff", "#999999")
CURSOR = {"style": "dashed", "color": "#9aa5b1", "arrowhead": "vee", "arrowtail": "vee", "constraint": "false"}


class RenderError(QuercusError):
    """There is nothing here to draw with."""


def graph(plan: Plan) -> Digraph:
    """The plan as a `graphviz.Digraph`, data flowing upwards."""
    return _Drawing(plan).digraph


def render(plan: Plan, path: Path) -> Path:
    """Write the picture; the suffix says in which format."""
    return save(graph(plan), path)


def save(drawing: Digraph, path: Path) -> Path:
    """Write a drawing; the suffix says in which format."""
    kind_ = path.suffix.removeprefix(".").casefold()
    if kind_ not in FORMATS:
        raise RenderError(f"cannot draw '{path.name}': the name must end in {', '.join('.' + f for f in FORMATS)}")
    source = drawing.source
    picture = source.encode() if kind_ == "dot" else drawn(source, kind_)
    try:
        path.write_bytes(picture)
    except OSError as e:
        raise DataError(f"cannot write '{path}': {e.strerror}") from None
    return path


def svg(plan: Plan) -> str:
    return svg_of(graph(plan))


def svg_of(drawing: Digraph) -> str:
    return drawn(drawing.source, "svg").decode()


def shown(text: str, drawing: Digraph) -> dict[str, str]:
    """What a notebook shows: the text, and a picture if there is something to draw with."""
    bundle = {"text/plain": text}
    with suppress(RenderError):  # the text says the same
        bundle["image/svg+xml"] = svg_of(drawing)
    return bundle


def drawn(source: str, kind_: str) -> bytes:
    """A picture in one of the formats."""
    if kind_ == "png":  # sharp enough to print
        source = source.replace("{", "{ dpi=144;", 1)
    if shutil.which("dot"):
        import graphviz

        return bytes(graphviz.Source(source).pipe(format=kind_))
    try:
        import pygraphviz
    except ImportError:
        raise RenderError(
            "nothing to draw with: install Graphviz (the program 'dot'), or 'pip install quercus[viz]'; "
            ".dot files need neither, nor do .svg files of plans"
        ) from None
    picture = pygraphviz.AGraph(string=source).draw(prog="dot", format=kind_)
    assert isinstance(picture, bytes)
    return picture


def digraph(name: str) -> Digraph:
    """An empty picture in the look of all of them, data flowing upwards."""
    import graphviz

    g = graphviz.Digraph(name)
    g.attr(
        rankdir="BT",
        nodesep="0.35",
        ranksep="0.45",
        fontname=FONT,
        fontsize="11",
        bgcolor="white",
        ordering="in",
    )
    g.attr("node", fontname=FONT, fontsize="11", style="filled", penwidth="1.2", margin="0.16,0.09")
    g.attr("edge", fontname=FONT, fontsize="9", color="#555555", arrowsize="0.7", penwidth="1.1")
    return g


class _Drawing:
    """Nodes are numbered in the order of the tree, so that equal plans give equal pictures."""

    def __init__(self, plan: Plan) -> None:
        self.unit: p.TimeUnit = plan.schema.timestamp_unit
        self.ids = count(1)
        g = self.digraph = digraph("plan")
        g.attr(label=_title(plan.tree), labelloc="b", labeljust="l")
        self.node(plan.tree.root)

    def new(
        self, label: str, colours: tuple[str, str], shape: str = "box", style: str = "filled,rounded", **more: str
    ) -> str:
        name = f"n{next(self.ids)}"
        self.digraph.node(name, label=label, shape=shape, style=style, fillcolor=colours[0], color=colours[1], **more)
        return name

    def edge(self, child: str, parent: str, **more: str) -> None:
        self.digraph.edge(child, parent, **more)

    def node(self, n: t.Node) -> str:
        """Draw a node with all below it; returns its name."""
        match n:
            case t.Buffer():
                where = [predicates(n.where, self.unit)] if n.where else []
                lines = [kind(n)] if kind(n) != n.var else []
                return self.new(label(n.var, [*lines, *where], n.estimate), KLEENE if n.kleene else LEAF)
            case t.Join():
                return self.join(n)
            case t.Union():
                lines = [f"#{n.number}", *([f"within {text.window(n.window)}"] if n.window else [])]
                me = self.new(
                    label("OR", [*lines, *(["equal matches once"] if n.distinct else [])], n.estimate),
                    UNION,
                    "house",
                    "filled",
                )
                for i, b in enumerate(n.branches, 1):
                    self.edge(self.node(b), me, label=f" {i}")
                return me
            case t.Stack():
                return self.stack(n)
            case t.Reject():
                source = self.node(n.source)
                me = self.negation(n.negation, n.estimate)
                self.edge(source, me)
                return me
            case t.Test():
                source = self.node(n.source)
                me = self.new(label("test", [predicates(n.where, self.unit)], n.estimate), TEST, "hexagon", "filled")
                self.edge(source, me)
                return me
            case t.Combine():
                source = self.node(n.source)
                sets = ", ".join(f"{v}[{c}]" for v, c in n.counts)
                me = self.new(label("combine", [f"every choice of {sets}"], n.estimate), COMBINE, "trapezium", "filled")
                self.edge(source, me)
                return me
            case t.Nest():
                source = self.node(n.source)
                me = self.new(label("sub-query", [f"by {n.strategy}"], n.estimate), NEST, "folder", "filled")
                self.edge(source, me)
                return me
            case t.Empty():
                return self.new(label("no match is possible", [n.reason], None), EMPTY, style="filled,dashed")
            case _:
                assert_never(n)

    def join(self, n: t.Join) -> str:
        lines = [f"on {predicates(n.equal, self.unit)}"] if n.equal else []
        lines += [predicates(n.where, self.unit)] if n.where else []
        lines += [f"within {text.window(n.window)}"] if n.window else []
        sign = {"SEQ": ";", "AND": "&"}[n.op]
        names = f" {sign} ".join(_names(c) for c in (n.left, n.right))
        left, right = self.node(n.left), self.node(n.right)
        me = self.new(label(n.op, [names, *lines], n.estimate), JOIN)
        for child, side in ((left, "left"), (right, "right")):
            self.edge(
                child, me, **({"label": f" Kleene {side}", "color": KLEENE[1]} if n.kleene in (side, "both") else {})
            )
        self.edge(left, right, dir="both" if n.cursor.previous else "forward", **CURSOR)
        return me

    def stack(self, n: t.Stack) -> str:
        """The automaton: the components side by side, each pointing back to the one bound after it."""
        within = [f"within {text.window(n.window)}"] if n.window else []
        order = ["bound from the last back"] if len(n.steps) > 1 else []
        drawn: list[str] = []
        for s in n.steps:
            drawn.append(self.node(s.component))
        me = self.new(label(f"stacks: {n.op}", [*order, *within], n.estimate), STACK, "box3d", "filled")
        for child in drawn:
            self.edge(child, me)
        for i, s in enumerate(n.steps[:-1]):
            tests = [f"on {predicates(s.equal, self.unit)}"] if s.equal else []
            tests += [predicates(s.where, self.unit)] if s.where else []
            said = "<" + "<br/>".join(line for part in tests for line in wrapped(part, 24)) + ">" if tests else ""
            self.edge(
                drawn[i + 1],
                drawn[i],
                style="dashed",
                color=STACK[1],
                constraint="false",
                label=said,
                fontcolor=STACK[1],
            )
        top = me
        for s in n.steps:
            for g in s.negations:
                negation = self.negation(g, None)
                self.edge(top, negation)
                top = negation
        return top

    def negation(self, g: t.Negation, estimate: t.Estimate | None) -> str:
        lines = [scope_text(g.scope)]
        lines += [" and ".join(text.scalar(c, self.unit) for c in g.where)] if g.where else []
        lines += [when_text(g.when)] if g.when else []
        lines += [f"by {g.strategy}" + "".join(f", {m}" for m in g.marks if m != "exists")]
        body = self.node(g.body)
        me = self.new(label(f"! {g.pattern}", lines, estimate), NEGATION, "octagon", "filled", margin="0.0,0.0")
        self.edge(body, me, style="dashed", color=NEGATION[1], arrowhead="tee")
        return me


def _names(n: t.Node) -> str:
    names = t.variables(n)
    return names[0] if len(names) == 1 else "(" + " ".join(names) + ")"


def _title(tree: t.Tree) -> str:
    shown = [
        f"{name}: {value}"
        for name, value in facts(tree)
        if name in ("shape", "cost", "window", "key", "keyed by", "totalled")
    ]
    lines = [escape(line) for fact in shown for line in _split(fact, 90)]
    return "<" + "".join(f'{line}<br align="left"/>' for line in lines) + ">"


def label(head: str, lines: list[str], estimate: t.Estimate | None) -> str:
    """An HTML-like label: a bold head, small lines, and the estimate in grey."""
    parts = ["<br/>".join(f"<b>{line}</b>" for line in wrapped(head, WRAP))]
    parts += [f'<font point-size="9">{line}</font>' for text_ in lines for line in wrapped(text_, WRAP)]
    if estimate is not None:
        cost = f", cost {number(estimate.cost)}" if estimate.cost else ""
        parts.append(f'<font point-size="8" color="#777777">~{number(estimate.rows)} rows{cost}</font>')
    return "<" + "<br/>".join(parts) + ">"


def wrapped(line: str, width: int) -> list[str]:
    return [escape(part) for part in _split(line, width)]


def _split(line: str, width: int) -> list[str]:
    """Break at spaces, never inside a name."""
    out, current = [], ""
    for word in line.split(" "):
        if current and len(current) + 1 + len(word) > width:
            out.append(current)
            current = word
        else:
            current = f"{current} {word}" if current else word
    return [*out, current]

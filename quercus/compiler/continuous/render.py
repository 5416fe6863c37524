"""A continuous query as a picture: the paper's operator tree, in the look of the plans."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from quercus.compiler.continuous.explain import Operator, Role, trees
from quercus.compiler.render import COMBINE, JOIN, KLEENE, LEAF, NEST, STACK, TEST, UNION, digraph, label
from quercus.ir import text
from quercus.ir import window as w

if TYPE_CHECKING:
    from graphviz import Digraph

    from quercus.plan import Plan
    from quercus.schema import Schema

_LOOKS: dict[Role, tuple[tuple[str, str], str, str]] = {
    "output": (STACK, "note", "filled"),
    "project": (TEST, "box", "filled,rounded"),
    "distinct": (TEST, "box", "filled,rounded"),
    "group": (COMBINE, "trapezium", "filled"),
    "select": (TEST, "hexagon", "filled"),
    "join": (JOIN, "box", "filled,rounded"),
    "union": (UNION, "house", "filled"),
    "window": (KLEENE, "box", "filled,rounded"),
    "stream": (LEAF, "box", "filled,rounded"),
    "pattern": (NEST, "folder", "filled"),
}


def graph(query: w.Continuous, patterns: tuple[Plan, ...], clock: Schema) -> Digraph:
    """The tree as a `graphviz.Digraph`, data flowing upwards. A stream is drawn once, however many windows read it."""
    return _Drawing(query, patterns, clock).digraph


class _Drawing:
    def __init__(self, query: w.Continuous, patterns: tuple[Plan, ...], clock: Schema) -> None:
        self.digraph = digraph("continuous")
        self.ids = count(1)
        self.streams: dict[str, str] = {}
        for name, tree in trees(query, patterns, clock):
            drawn = self.node(tree)
            if name:  # its output is a stream of those after it
                self.streams[text.name(name)] = self.new(Operator("stream", text.name(name)))
                self.digraph.edge(drawn, self.streams[text.name(name)])

    def new(self, o: Operator) -> str:
        colours, shape, style = _LOOKS[o.role]
        name = f"n{next(self.ids)}"
        self.digraph.node(
            name,
            label=label(o.head, list(o.lines), None),
            shape=shape,
            style=style,
            fillcolor=colours[0],
            color=colours[1],
        )
        return name

    def node(self, o: Operator) -> str:
        """Draw an operator with all below it; returns its name."""
        if o.role == "stream":
            if o.head not in self.streams:
                self.streams[o.head] = self.new(o)
            return self.streams[o.head]
        below = [self.node(one) for one in o.inputs]
        me = self.new(o)
        for one in below:
            self.digraph.edge(one, me)
        return me

"""A plan's tree as SVG, by a layout of our own: no Graphviz, and pages can zoom it, colour it and ask for each node.

A parent stands centred over its children, and data flows upwards. Edges are as thick as what flows through them, where
a run has counted it. Colours come from the page that the picture stands in; alone, it brings its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log10
from typing import TYPE_CHECKING, Any, assert_never

from attrs import frozen

from quercus.compiler.analyzed import number, words
from quercus.compiler.explain import MOST_BRANCHES, kind, predicates, scope_text, step_text, when_text
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.ir import tree as t
from quercus.ir.analysis import Actual, Analysis, Path, below
from quercus.show.assets import read
from quercus.show.measure import width_of, wrapped
from quercus.show.values import markup

if TYPE_CHECKING:
    from quercus.plan import Plan

MOST_NODES = 300
MOST_LINES = 6  # of one node; the rest is in what a page shows when it is pointed at
WRAP = 210.0  # pixels
LINE, PAD, GAP, RISE = 15.0, 10.0, 22.0, 46.0
HEAD, BODY, BOLD = 13.0, 11.0, 1.16  # pixels of a font, and how much wider bold is


@frozen
class Card:
    """One node: what is written in it."""

    path: Path
    kind: str
    head: str
    lines: tuple[str, ...]
    lead: str  # on the edge to its parent
    estimate: str
    actual: tuple[str, ...]
    flow: float | None
    below: tuple[Card, ...]

    @property
    def name(self) -> str:
        return ".".join(map(str, self.path)) or "root"


@frozen
class Placed:
    card: Card
    x: float  # of its middle
    y: float  # of its top
    width: float
    height: float
    shown: tuple[str, ...]
    foot: tuple[str, ...]


def cards(plan: Plan, analysis: Analysis | None = None) -> Card:
    """The tree of a plan, with what a run did if there was one."""
    return _Cards(plan.schema.timestamp_unit, analysis).of(plan.tree.root, (), "")


def picture(plan: Plan, analysis: Analysis | None = None, *, alone: bool = True) -> str:
    """The tree as an <svg>; `alone`: with its colours, not in a page that has them."""
    return drawn(cards(plan, analysis), alone=alone)


def details(root: Card) -> dict[str, dict[str, Any]]:
    """What a page tells of the node that is pointed at, by the node's name."""
    return {
        c.name: {
            "kind": c.kind,
            "head": c.head,
            "lines": [*c.lines, *([c.lead] if c.lead else [])],
            "estimate": c.estimate,
            "actual": list(c.actual),
        }
        for c in _walk(root)
    }


def _walk(c: Card) -> Iterator[Card]:
    yield c
    for child in c.below:
        yield from _walk(child)


# ---- what is written


class _Cards:
    def __init__(self, unit: p.TimeUnit, analysis: Analysis | None) -> None:
        self.unit, self.analysis, self.left = unit, analysis, MOST_NODES

    def of(self, n: t.Node | t.Negation, path: Path, lead: str) -> Card:
        self.left -= 1
        kind_, head, lines = _described(n, self.unit)
        actual = Actual() if self.analysis is None else self.analysis.nodes[path]
        leads = _leads(n, self.unit)
        children: list[Card] = []
        for i, child in enumerate(below(n)):
            if self.left <= 0 or i >= MOST_BRANCHES:
                more = len(below(n)) - i
                children.append(Card((*path, i), "more", f"{more} more", (), "", "", (), None, ()))
                break
            children.append(self.of(child, (*path, i), leads[i]))
        return Card(path, kind_, head, lines, lead, _estimated(n), tuple(words(actual)), _flow(actual), tuple(children))


def _described(n: t.Node | t.Negation, unit: p.TimeUnit) -> tuple[str, str, tuple[str, ...]]:
    """The kind of a node, its head, and the lines below it."""
    match n:
        case t.Buffer():
            head = kind(n) if kind(n) == n.var else f"{kind(n)} {n.var}"
            return ("kleene" if n.kleene else "leaf"), head, _some(predicates(n.where, unit))
        case t.Join():
            sign = {"SEQ": ";", "AND": "&"}[n.op]
            names = f" {sign} ".join(_names(c) for c in (n.left, n.right))
            on = f"on {predicates(n.equal, unit)}" if n.equal else ""
            return "join", f"{n.op} join", _some(names, on, predicates(n.where, unit), _within(n.window))
        case t.Union():
            return "union", "OR", _some(_within(n.window), "equal matches once" if n.distinct else "")
        case t.Stack():
            order = "bound from the last back" if len(n.steps) > 1 else "one component"
            return "stack", f"{n.op} stack", _some(order, _within(n.window))
        case t.Reject():
            return "reject", "reject", ("what the negation forbids",)
        case t.Test():
            return "test", "test", _some(predicates(n.where, unit))
        case t.Combine():
            return "combine", "combine", ("every choice of " + ", ".join(f"{v}[{c}]" for v, c in n.counts),)
        case t.Nest():
            return "nest", f"sub-query by {n.strategy}", (n.reason,)
        case t.Empty():
            return "empty", "no match is possible", (n.reason,)
        case t.Negation():
            marks = [m for m in n.marks if m != "exists"]
            tests = " and ".join(text.scalar(c, unit) for c in n.where)
            when = when_text(n.when) if n.when else ""
            return "negation", f"! {n.pattern}", _some(scope_text(n.scope), tests, when, ", ".join(marks), _how(n))
        case _:
            assert_never(n)


def _how(n: t.Negation) -> str:
    return f"by {n.strategy}: {n.reason}"


def _leads(n: t.Node | t.Negation, unit: p.TimeUnit) -> list[str]:
    """What stands at each child's edge: of a stack, what is tested when the component is bound."""
    if not isinstance(n, t.Stack):
        return [""] * len(below(n))
    found: list[str] = []
    for s in n.steps:
        found.append(step_text(s, unit))
        found.extend("" for _ in s.negations)
    return found


def _some(*lines: str) -> tuple[str, ...]:
    return tuple(line for line in lines if line)


def _within(w: p.Window | None) -> str:
    return f"within {text.window(w)}" if w is not None else ""


def _names(n: t.Node) -> str:
    names = t.variables(n)
    return names[0] if len(names) == 1 else "(" + " ".join(names) + ")"


def _estimated(n: t.Node | t.Negation) -> str:
    if isinstance(n, t.Empty | t.Negation):
        return ""
    cost = f", cost {number(n.estimate.cost)}" if n.estimate.cost else ""
    return f"~{number(n.estimate.rows)} rows{cost}"


def _flow(a: Actual) -> float | None:
    if a.rows is not None:
        return float(a.rows)
    return float(a.found) if a.found is not None else None


# ---- where it stands


def _placed(card: Card, left: float, top: float) -> tuple[list[Placed], list[tuple[Placed, Placed]], float]:
    """A node and all below it, the edges among them, and the width of all."""
    own = _sized(card, top)
    nodes: list[Placed] = []
    edges: list[tuple[Placed, Placed]] = []
    tops: list[Placed] = []
    lead = LINE * len(_leading(card))
    at, bottom = left, top + own.height + RISE + lead
    for child in card.below:
        part, inner, width = _placed(child, at, bottom)
        nodes += part
        edges += inner
        tops.append(part[-1])
        at += width + GAP
    spread = max(at - GAP - left, 0.0)
    width = max(spread, own.width)
    if width > spread:  # the parent is wider: its children stand in the middle
        shift = (width - spread) / 2
        moved = {id(n): _moved(n, shift) for n in nodes}
        nodes, tops = [moved[id(n)] for n in nodes], [moved[id(n)] for n in tops]
        edges = [(moved[id(a)], moved[id(b)]) for a, b in edges]
    x = (tops[0].x + tops[-1].x) / 2 if tops else left + width / 2
    x = min(max(x, left + own.width / 2), left + width - own.width / 2)
    me = Placed(card, x, top, own.width, own.height, own.shown, own.foot)
    return [*nodes, me], [*edges, *((child, me) for child in tops)], width


def _leading(card: Card) -> list[str]:
    """The longest of the texts at the edges below, line by line."""
    return max((wrapped(c.lead, WRAP, BODY - 1) for c in card.below if c.lead), key=len, default=[])


def _sized(card: Card, top: float) -> Placed:
    head = wrapped(card.head, WRAP, HEAD)
    body = [line for part in card.lines for line in wrapped(part, WRAP, BODY)]
    if len(head) + len(body) > MOST_LINES:
        body = [*body[: max(MOST_LINES - len(head), 0)], "..."]
    foot = tuple(wrapped(card.actual[0] if card.actual else card.estimate, WRAP, BODY))
    lead = wrapped(card.lead, WRAP, BODY - 1)
    widths = [BOLD * width_of(line, HEAD) for line in head] + [width_of(line, BODY) for line in body]
    widths += [BOLD * width_of(line, BODY) for line in foot]
    widths += [width_of(line, BODY - 1) - 2 * PAD for line in lead]
    width = max(64.0, *widths) + 2 * PAD
    height = LINE * (len(head) + len(body)) + PAD + (LINE * len(foot) + 6 if foot else 4)
    return Placed(card, 0, top, width, height, (*(f"*{line}" for line in head), *body), foot)


def _moved(n: Placed, by: float) -> Placed:
    return Placed(n.card, n.x + by, n.y, n.width, n.height, n.shown, n.foot)


# ---- how it is drawn


def drawn(root: Card, *, alone: bool = True) -> str:
    """The tree as an <svg>."""
    nodes, edges, width = _placed(root, 1.0, 1.0)
    height = max(n.y + n.height for n in nodes) + 1
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="qc-tree{" alone" if alone else ""}" role="img" '
        f'aria-label="The plan as a tree" viewBox="0 0 {width + 2:.0f} {height:.0f}" '
        f'width="{width + 2:.0f}" height="{height:.0f}">',
        f"<style>{read('show', 'tree.css')}</style>" if alone else "",
        '<g class="scene">',
    ]
    parts += [_edge(child, parent) for child, parent in edges]
    parts += [_node(n) for n in reversed(nodes)]
    return "".join([*parts, "</g></svg>"])


def _edge(child: Placed, parent: Placed) -> str:
    x0, y0, x1, y1 = child.x, child.y, parent.x, parent.y + parent.height
    lead = wrapped(child.card.lead, WRAP, BODY - 1) if child.card.lead else []
    knee = y0 - LINE * len(_leading(parent.card)) - 6 if _leading(parent.card) else y0
    middle = (knee + y1) / 2
    line = f"M{x0:.1f} {y0:.1f}V{knee:.1f}C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1 + 5:.1f}"
    thick = 1.3 if child.card.flow is None else 1.2 + 0.8 * log10(child.card.flow + 1)
    kind_ = "negated" if child.card.kind == "negation" else "flow"
    tip = f"M{x1 - 4:.1f} {y1 + 8:.1f}L{x1:.1f} {y1 + 1:.1f}L{x1 + 4:.1f} {y1 + 8:.1f}z"
    said = "".join(
        f'<text class="lead" x="{x0:.1f}" y="{y0 - 6 - LINE * (len(lead) - 1 - i):.1f}">{markup(text_)}</text>'
        for i, text_ in enumerate(lead)
    )
    drawn_ = f'<path class="line" d="{line}" stroke-width="{thick:.1f}"/><path class="tip" d="{tip}"/>'
    return f'<g class="edge {kind_}">{drawn_}{said}</g>'


def _node(n: Placed) -> str:
    c = n.card
    left = n.x - n.width / 2
    told = "\n".join(_some(c.head, *c.lines, c.lead, c.estimate, *c.actual))
    parts = [
        f'<g class="node {c.kind}" data-node="{c.name}" tabindex="0" role="button" aria-label="{markup(told)}">',
        f"<title>{markup(told)}</title>",
        f'<rect x="{left:.1f}" y="{n.y:.1f}" width="{n.width:.1f}" height="{n.height:.1f}" rx="7"/>',
    ]
    y = n.y + PAD + 6
    for line in n.shown:
        head = line.startswith("*")
        parts.append(f'<text class="{"head" if head else "body"}" x="{n.x:.1f}" y="{y:.1f}">')
        parts.append(f"{markup(line[1:] if head else line)}</text>")
        y += LINE
    if n.foot:
        at = n.y + n.height - LINE * len(n.foot) - 5
        measured = "actual" if c.actual else "estimate"
        parts.append(f'<path class="rule" d="M{left:.1f} {at:.1f}h{n.width:.1f}"/>')
        for i, line in enumerate(n.foot):
            y = at + 14 + LINE * i
            parts.append(f'<text class="foot {measured}" x="{n.x:.1f}" y="{y:.1f}">{markup(line)}</text>')
    return "".join([*parts, "</g>"])

"""A cube as a picture, after the paper's Fig. 1: general queries above, special ones below.

Thin edges say how queries refine each other; thick ones, from what the results of each are computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

from quercus.compiler.analyzed import number
from quercus.compiler.cube.explain import KINDS
from quercus.compiler.cube.refine import reduced
from quercus.compiler.cube.sequences import pattern_text
from quercus.compiler.cube.workload import Workload
from quercus.compiler.explain import essential
from quercus.compiler.render import FONT, JOIN, LEAF, WRAP, wrapped
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.ir.workload import Cuboid, Ordering

if TYPE_CHECKING:
    from graphviz import Digraph

DOWN, UP, SAME = "#2f7d3b", "#c17f1f", "#56618f"  # from the general query, from the special one, the same pattern
PLAIN = "#9aa5b1"


def graph(w: Workload, chosen: Ordering, sizes: Mapping[str, int] | None) -> Digraph:
    """The hierarchy as a `graphviz.Digraph`, with the ordering that was chosen."""
    import graphviz

    g = graphviz.Digraph("cube")
    g.attr(rankdir="TB", nodesep="0.4", ranksep="0.6", fontname=FONT, fontsize="11", bgcolor="white")
    g.attr("node", fontname=FONT, fontsize="11", shape="box", style="filled,rounded", margin="0.16,0.09")
    g.attr("edge", fontname=FONT, fontsize="9", color=PLAIN, fontcolor="#555555", arrowsize="0.7", penwidth="1.1")
    g.attr(label=_title(chosen), labelloc="b", labeljust="l")
    ids = {name: f"q{i}" for i, name in enumerate(w.plans, 1)}
    of = {c.name: c for c in chosen.cuboids}
    for name in w.plans:
        fill, border = JOIN if of[name].source is not None else LEAF
        label = _label(name, w, of[name], sizes)
        g.node(ids[name], label=label, fillcolor=fill, color=border, penwidth="1.2")
    drawn: set[tuple[str, str]] = set()
    for r in reduced(w.refinements):
        used = {pair for pair in ((r.general, r.special), (r.special, r.general)) if of[pair[1]].source == pair[0]}
        more = {}
        for source, name in used:
            more = _thick(of[name]) | ({"dir": "back"} if source == r.special else {})
        g.edge(ids[r.general], ids[r.special], label=f" {KINDS[r.kind]}{_cases(used, of)} ", **more)
        drawn |= used
    for c in chosen.cuboids:
        if c.source is not None and (c.source, c.name) not in drawn:
            g.edge(ids[c.source], ids[c.name], label=f" {_case(c)} ", constraint="false", **_thick(c))
    return g


def _thick(c: Cuboid) -> dict[str, str]:
    colour = SAME if c.case == "same" else DOWN if c.case in ("5.1", "5.2", "5.3") else UP
    return {"color": colour, "fontcolor": colour, "penwidth": "2.6"}


def _case(c: Cuboid) -> str:
    return "" if c.case in (None, "same") else str(c.case)


def _cases(used: set[tuple[str, str]], of: Mapping[str, Cuboid]) -> str:
    shown = [_case(of[name]) for _, name in used]
    return "".join(f", {s}" for s in shown if s)


def _label(name: str, w: Workload, c: Cuboid, sizes: Mapping[str, int] | None) -> str:
    plan, s = w.plans[name], w.sequences[name]
    q = essential(plan.query)
    unit = plan.schema.timestamp_unit
    pattern = pattern_text(s) if not isinstance(s, str) else text.pattern(q.pattern, unit)
    lines = [pattern, *_conditions(q, unit), f"within {text.window(q.window)}", *_outputs(q)]
    head = f"<b>{escape(name)}</b>"
    small = [f'<font point-size="9">{part}</font>' for line in lines for part in wrapped(line, WRAP)]
    known = -1 if sizes is None else sizes.get(name, -1)
    size = f"{known:,} rows" if known >= 0 else f"~{number(c.rows)} rows"
    how = "" if c.source is not None else ", alone"
    return "<" + "<br/>".join([head, *small, f'<font point-size="8" color="#777777">{size}{how}</font>']) + ">"


def _conditions(q: p.Query, unit: p.TimeUnit) -> list[str]:
    inside = [e for n in p.walk(q.pattern) if isinstance(n, p.Not) for e in n.where]
    shown = [text.scalar(e, unit) for e in (*q.where, *inside)]
    return [" and ".join(shown)] if shown else []


def _outputs(q: p.Query) -> list[str]:
    lines = text.query(q).splitlines()
    return [line for line in lines if line.split(" ")[0] in ("AGG", "GROUPBY", "PARTITION")]


def _title(chosen: Ordering) -> str:
    said = f"shared by {chosen.strategy}, cost {number(chosen.cost)} ns"
    return f'<<font point-size="9">{escape(said)}; thick edges: results computed from another query\'s</font>>'

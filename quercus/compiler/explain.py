"""A plan as text: stable, without ids or addresses, so that tests can compare it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, assert_never

from attrs import frozen

from quercus.compiler.analyzed import actual_text, compared, number, run_facts
from quercus.compiler.arrange import implied
from quercus.compiler.homes import Home, rewrite_homes
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.ir import tree as t
from quercus.ir.analysis import Analysis, Path

if TYPE_CHECKING:
    from quercus.plan import Plan


MOST_BRANCHES = 24
APART = "sub-queries by "  # how an alternative begins that keeps them apart
FAR = 4.0  # times the cost of what was chosen: who costs more was never in question
MOST_TEXT = 4_000


def explain(plan: Plan, *, verbose: bool = False, analysis: Analysis | None = None) -> str:
    """The logical query, the rules that fired, and the physical tree with its estimates, beside what a run did."""
    unit = plan.schema.timestamp_unit
    out = ["logical"]
    out += [f"  {cut(line)}" for line in text.query(essential(plan.query), unit).splitlines()]
    out += ["", "rules"]
    if verbose:
        out += list(_trace(plan))
    else:
        out.append("  " + (", ".join(dict.fromkeys(f.rule for f in plan.fired)) or "none fired"))
    out += ["", "plan"]
    out += [f"  {name:<12}{value}" for name, value in facts(plan.tree, unit)]
    out += [f"  {'sub-queries':<12}{line}" for line in _apart(plan)]
    for warning in plan.warnings:
        out.append(f"  {'warning':<12}{warning}")
    out += ["", "tree"]
    out += [f"  {line}" for line in tree_lines(plan.tree.root, unit, analysis)]
    if analysis is not None:
        out += ["", "run"]
        out += [f"  {name:<14}{value}" for name, value in run_facts(analysis, plan.tree.cost)]
    return "\n".join(out)


def _apart(plan: Plan) -> Iterator[str]:
    """Whether sub-queries are kept apart from the match around, where that is not out of the question."""
    listed = plan.alternatives()
    apart = next((a for a in listed if a.shape.startswith(APART)), None)
    if apart is None:
        return
    way = apart.shape.removeprefix(APART)
    if apart.chosen:
        yield f"apart, by {way}: cost {number(apart.cost)}"
        return
    own = next(a.cost for a in listed if a.chosen)
    if apart.cost < FAR * own:
        yield f"bound with the match around: cost {number(own)}; apart, by {way}, {number(apart.cost)}"


def cut(line: str) -> str:
    """A line that a reader can take in: the 720 orders of an AND of six sets are too many."""
    return line if len(line) <= MOST_TEXT else f"{line[:MOST_TEXT]} ... ({len(line) - MOST_TEXT:,} more characters)"


def essential(q: p.Query) -> p.Query:
    """The query without the equalities that others imply: the closure is there for the planner, not for the reader."""

    def keep(where: tuple[x.Expr, ...], home: Home) -> tuple[x.Expr, ...]:
        known = tuple(c for c in home.outer if x.is_equality(c))
        kept: list[x.Expr] = []
        for c in where:
            if x.is_equality(c):
                if implied(c, known, home.absent):
                    continue
                known = (*known, c)
            kept.append(c)
        return tuple(kept)

    return rewrite_homes(q, keep) or q


def facts(tree: t.Tree, unit: p.TimeUnit = "us") -> Iterator[tuple[str, str]]:
    """What holds for the whole tree, as (name, value)."""
    yield "shape", tree.shape
    yield "cost", f"{number(tree.cost)} ns a window, {number(tree.routing)} of it for routing"
    yield "window", text.window(tree.window)
    yield "purge", tree.purge
    if tree.partition_by:
        yield "keyed by", ", ".join(tree.partition_by) + " (declared: each key is a stream of its own)"
    if tree.key is not None:
        keys = (" = ".join(text.column(c.var, c.attr) for c in k.columns) for k in tree.keys)
        yield "key", "; ".join(keys) + " (found: keys never meet)"
    reads: dict[str, list[str]] = {}
    for c in tree.reads:
        reads.setdefault(c.var, []).append(c.attr)
    yield "reads", "; ".join(f"{v}: {', '.join(a)}" for v, a in reads.items()) or "no attributes"
    if tree.returns:
        yield "returns", ", ".join(o.name for o in tree.returns)
    if tree.aggregates:
        by = f" by {', '.join(text.column(g.var, g.attr) for g in tree.group_by)}" if tree.group_by else ""
        yield "aggregates", ", ".join(a.name for a in tree.aggregates) + by
    if tree.aggregation is not None:
        how = {"running": "running totals", "enumerated": "over all matches"}[tree.aggregation.strategy]
        yield "totalled", f"{how}: {tree.aggregation.reason}"
        if tree.aggregation.strategy == "running":
            reason = tree.aggregation.listed_live
            yield "in streams", f"over the matches of each push: {reason}" if reason else "running totals"


@frozen
class Traced:
    """A rule that fired: its law, the lines of the query that went and that came, or what it found."""

    rule: str
    law: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    finding: str


def trace(plan: Plan) -> Iterator[Traced]:
    """The rules that changed the query, in order."""
    from quercus.compiler.rules import BY_NAME

    unit = plan.schema.timestamp_unit
    for f in plan.fired:
        before, after = text.query(f.before, unit).splitlines(), text.query(f.after, unit).splitlines()
        yield Traced(
            f.rule,
            BY_NAME[f.rule].law,
            tuple(line for line in before if line not in after),
            tuple(line for line in after if line not in before),
            _finding(f.rule, f.after) if before == after else "",
        )


def _trace(plan: Plan) -> Iterator[str]:
    if not plan.fired:
        yield "  none fired"
    for step in trace(plan):
        yield f"  {step.rule}: {step.law}"
        yield from (f"    - {cut(line)}" for line in step.before)
        yield from (f"    + {cut(line)}" for line in step.after)
        if step.finding:
            yield f"    {step.finding}"


def _finding(rule: str, q: p.Query) -> str:
    if rule == "partition_key" and q.key is not None:
        return "key: " + " = ".join(text.column(c.var, c.attr) for c in q.key.columns)
    if rule == "prune_columns":
        return "reads: " + (", ".join(text.column(c.var, c.attr) for c in q.reads or ()) or "no attributes")
    mark = rule.removeprefix("mark_")
    return "marked: " + "; ".join(
        text.pattern(e) for e in p.walk(q.pattern) if isinstance(e, p.Not) and mark in e.marks
    )


# the tree


def tree_lines(
    node: t.Node, unit: p.TimeUnit = "us", analysis: Analysis | None = None, path: Path = ()
) -> Iterator[str]:
    """The tree, one line a node, with guides; with an analysis, what each node did at the end of its line."""
    label, children = describe(node, unit)
    yield label + (estimates(node) if analysis is None else compared(node, analysis.nodes[path], analysis.windows))
    for i, (lead, child) in enumerate(children):
        last = i == len(children) - 1
        lines = _lines(lead, child, unit, analysis, (*path, i))
        yield ("└─ " if last else "├─ ") + next(lines)
        yield from (("   " if last else "│  ") + line for line in lines)


def _lines(
    lead: str, child: t.Node | t.Negation, unit: p.TimeUnit, analysis: Analysis | None, path: Path
) -> Iterator[str]:
    if isinstance(child, t.Negation):
        did = "" if analysis is None else actual_text(analysis.nodes[path])
        yield lead + negation_text(child, unit) + did
        yield from ("   " + line for line in tree_lines(child.body, unit, analysis, (*path, 0)))
        return
    lines = tree_lines(child, unit, analysis, path)
    yield lead + next(lines)
    yield from lines


def estimates(n: t.Node) -> str:
    return "" if isinstance(n, t.Empty) else f"  ~{number(n.estimate.rows)} rows, cost {number(n.estimate.cost)}"


Child = tuple[str, "t.Node | t.Negation"]


def describe(n: t.Node, unit: p.TimeUnit) -> tuple[str, list[Child]]:
    """A node's own line and what hangs below it."""
    match n:
        case t.Buffer():
            tests = f" where {predicates(n.where, unit)}" if n.where else ""
            return f"buffer {n.var}: {kind(n)}{tests}", []
        case t.Join():
            return f"join {join_text(n, unit)}", [("", n.left), ("", n.right)]
        case t.Union():
            extra = _within(n.window) + (", equal matches once" if n.distinct else "")
            more = len(n.branches) - MOST_BRANCHES
            extra += f", {len(n.branches)} branches, of which {MOST_BRANCHES} are shown" if more > 0 else ""
            return f"union #{n.number} of OR{extra}", [("", b) for b in n.branches[:MOST_BRANCHES]]
        case t.Stack():
            below: list[Child] = []
            for s in n.steps:
                tests = step_text(s, unit)
                below.append((f"[{tests}] " if tests else "", s.component))
                below.extend(("", g) for g in s.negations)
            order = "bound from the last component back to the first" if len(n.steps) > 1 else "one component"
            return f"stack {n.op}{_within(n.window)}, {order}", below
        case t.Reject():
            return "reject", [("", n.source), ("", n.negation)]
        case t.Test():
            return f"test {predicates(n.where, unit)}", [("", n.source)]
        case t.Combine():
            sets = ", ".join(f"{v}[{c}]" for v, c in n.counts)
            return f"combine {sets}: every choice, last", [("", n.source)]
        case t.Nest():
            return f"sub-query by {n.strategy}: {n.reason}", [("", n.source)]
        case t.Empty():
            return f"empty: {n.reason}", []
        case _:
            assert_never(n)


def kind(n: t.Buffer) -> str:
    sign = "" if not n.kleene else f"[{n.most}]" if n.most is not None else "+" if n.least else "*"
    others = f" ({', '.join(n.accepts[1:4])}{', ...' if len(n.accepts) > 4 else ''})" if len(n.accepts) > 1 else ""
    return text.type_name(n.type) + sign + others


def join_text(n: t.Join, unit: p.TimeUnit) -> str:
    words: list[str] = [n.op]
    if n.kleene:
        words.append(f"Kleene {n.kleene}")
    if n.equal:
        words.append(f"on {predicates(n.equal, unit)}")
    if n.where:
        words.append(f"where {predicates(n.where, unit)}")
    cursors = " and ".join(c for c, there in (("next", n.cursor.next), ("previous", n.cursor.previous)) if there)
    return " ".join(words) + _within(n.window) + f", cursors {cursors}"


def step_text(s: t.Step, unit: p.TimeUnit) -> str:
    words = [f"on {predicates(s.equal, unit)}"] if s.equal else []
    if s.where:
        words.append(f"where {predicates(s.where, unit)}")
    return " ".join(words)


def negation_text(n: t.Negation, unit: p.TimeUnit) -> str:
    words = [f"!{n.pattern} {scope_text(n.scope)}"]
    if n.where:
        words.append("where " + " and ".join(text.scalar(c, unit) for c in n.where))
    if n.when:
        words.append(when_text(n.when))
    marks = [m for m in n.marks if m != "exists"]
    if marks:
        words.append(f"({', '.join(marks)})")
    return " ".join(words) + f"  by {n.strategy}: {n.reason}"


def scope_text(s: t.Scope) -> str:
    """`after w, before o`, or where the window reaches."""
    left = " or ".join(_group(g) for g in s.after)
    right = " or ".join(_group(g) for g in s.before)
    if s.left is not None:
        left = f"{left} or from end - window" if left else "from end - window"
    if s.right is not None:
        until = "to start + window" if s.right == "window" else "to end"
        right = f"{right} or {until}" if right else until
    return ", ".join(
        (
            f"after {left}" if s.after else left,
            f"before {right}" if s.before else right,
        )
    )


def _group(g: tuple[str, ...]) -> str:
    return g[0] if len(g) == 1 else "{" + " ".join(g) + "}"


def predicates(items: tuple[t.Predicate, ...], unit: p.TimeUnit) -> str:
    return " and ".join(text.scalar(c.expr, unit) + (f" {when_text(c.when)}" if c.when else "") for c in items)


def when_text(when: t.When) -> str:
    return "(when " + ", ".join(f"#{union} took branch {branch + 1}" for union, branch in when) + ")"


def _within(w: p.Window | None) -> str:
    return f" within {text.window(w)}" if w is not None else ""

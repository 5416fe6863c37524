"""What every node of a plan did in a run: `explain(analyze=events)`.

A run knows alternatives, not nodes. Here the counts of the alternatives go back to the nodes that they come from: those
of a leaf's buffer and level to the leaf, those of an internal buffer to its join, those of all levels to the operator
that is searched depth first. Over alternatives counts are summed; bytes are the most of any, since alternatives run one
after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, assert_never

from attrs import evolve
from numpy.typing import NDArray

from quercus.backends.base import Limits
from quercus.backends.local.buffers import spec_of
from quercus.backends.local.dialect import is_files
from quercus.backends.local.events import Events, load
from quercus.backends.local.run import Later, find, needed
from quercus.backends.local.specs import BufferSpec, Name
from quercus.backends.local.trace import Ran, Trace
from quercus.ir import tree as t
from quercus.ir.analysis import Actual, Analysis, places
from quercus.plan import Plan
from quercus.result import Matches

STAGES = ("load", "prepare", "route", "buffers", "plan again", "match", "order", "aggregate")
SOMETIMES = ("plan again", "aggregate")

DEPTH_FIRST = "bound with the match around it"
SETS_LAST = "not joined: its sets are completed last"
NEGATED = "counted with the negation around it"
UNUSED = "in no alternative"


def analyzed(plan: Plan, events: object, limits: Limits | None = None) -> Analysis:
    """What each node did of the plan that ran."""
    return run_and_analyze(plan, events, limits)[1]


def run_and_analyze(plan: Plan, events: object, limits: Limits | None = None) -> tuple[Plan, Analysis]:
    """Run a plan over events in memory, on one thread: the plan that ran, which may have been made from the events,
    and what each of its nodes did.
    """
    trace = Trace()
    stream = load(events, plan.schema, needed(plan) if is_files(events) else None)
    trace.lap("load")
    return analyze_stream(plan, stream, limits or Limits(), trace)[:2]


def analyze_stream(plan: Plan, stream: Events, limits: Limits, trace: Trace) -> tuple[Plan, Analysis, Matches]:
    """The same of a stream that is loaded, with what it found."""
    if plan.tree.aggregation is not None and plan.tree.aggregation.strategy == "running":
        from quercus.backends.local.analyze_totals import analyzed_totals
        from quercus.backends.local.running import Costly

        with suppress(Costly):
            analysis, table = analyzed_totals(plan, stream, limits, trace)
            later = Later(plan, stream, limits, 1)
            return plan, analysis, Matches.of_stream(plan.schema, plan.query, later, table)
    found = find(plan, stream, limits, trace=trace)
    matches = len(found[0]) if found else 0
    answer = Matches(stream.table, plan.schema, plan.query, found)
    groups = None
    if plan.query.aggregates:
        groups = len(answer)
        trace.lap("aggregate")
    if trace.again is not None:
        plan = trace.again.plan
    figures = Figures(plan, trace)
    nodes = {path: figures.of(n) for path, n in places(plan.tree.root)}
    nodes[()] = evolve(nodes[()], matches=matches)
    sizes = [figures.size(i) for i in range(len(figures.specs))]
    analysis = Analysis(
        nodes=nodes,
        events=len(stream),
        in_order=stream.rows is None,
        windows=windows(plan, stream),
        routed=sum(rows for rows, _ in sizes),
        buffers=len(sizes),
        bytes=sum(size for _, size in sizes),
        alternatives=len(trace.runs),
        compared=sum(r.compared for r in trace.runs),
        matches=matches,
        groups=groups,
        again="" if trace.again is None else trace.again.note,
        stages=tuple((s, trace.stages.get(s, 0.0)) for s in STAGES if s in trace.stages or s not in SOMETIMES),
    )
    return plan, analysis, answer


def windows(plan: Plan, stream: Events) -> float:
    """How many windows long a stream is."""
    w = plan.tree.window
    if len(stream) == 0:
        return 0.0
    if w.kind == "count":
        return len(stream) / w.size
    return (int(stream.ts[-1]) - int(stream.ts[0])) / max(w.size, 1)


class Figures:
    """Counts by the node of the plan that they belong to."""

    def __init__(self, plan: Plan, trace: Trace) -> None:
        self.tree, self.trace, self.runs = plan.tree, trace, trace.runs
        self.specs: list[BufferSpec] = [] if trace.program is None else trace.program.buffers
        leaves = [n for n in t.walk(plan.tree.root) if isinstance(n, t.Buffer)]
        self.users = [spec_of(b, plan.tree) for b in leaves]
        self.taken = [{id(n) for n in active(plan.tree.root, r)} for r in self.runs]
        positive = {id(n) for n in t.positive(plan.tree.root)}
        self.negated = {id(n) for n in t.walk(plan.tree.root)} - positive
        self.heads = [id(head(plan.tree.root, r)) for r in self.runs]

    def of(self, n: t.Node | t.Negation) -> Actual:
        match n:
            case t.Buffer():
                return self.leaf(n)
            case t.Negation():
                return self.negation(n)
            case t.Join() | t.Stack():
                return self.operator(n)
            case t.Union():
                taken = [dict(r.flat.choices).get(n.number) for r in self.runs]
                if all(c is None for c in taken):
                    return Actual(note=self.elsewhere(n))
                parts = range(len(n.branches))
                counts = (sum(r.matches for r, c in zip(self.runs, taken, strict=True) if c == b) for b in parts)
                return Actual(branches=tuple(counts))
            case t.Reject():
                g, through = self.negation(n.negation), list(self.through(n))
                everywhere = all(any(k.source is n.negation for k in r.flat.negations) for r in through)
                if g.tests is None or g.found is None or not through or not everywhere:
                    return Actual(note="" if through else self.elsewhere(n))
                return Actual(rows=g.tests - g.found)
            case t.Combine():
                through = list(self.through(n))
                if not through:
                    return Actual(note=self.elsewhere(n))
                return Actual(rows=sum(r.completed for r in through))
            case t.Test():
                tested = [r for r in self.through(n) if r.spec.tests]
                if not tested:
                    return Actual(note=self.elsewhere(n) if id(n) in self.negated else "tested event by event")
                return Actual(rows=sum(r.matches for r in tested), tests=sum(r.tested for r in tested))
            case t.Nest():
                if n.strategy != "rewrite" and (viewed := self.viewed(Actual(), n)).asked is not None:
                    return viewed
                rows = self.of(n.source).rows
                return Actual(rows=rows, note=self.elsewhere(n) if rows is None else "")
            case t.Empty():
                return Actual(rows=0)
            case _:
                assert_never(n)

    def through(self, n: t.Node) -> Iterator[Ran]:
        """The alternatives that a node is part of."""
        return (r for r, nodes in zip(self.runs, self.taken, strict=True) if id(n) in nodes)

    # leaves

    def size(self, buffer: int) -> tuple[int, int]:
        """Events and bytes of a buffer: its arrays, and the columns that conditions read."""
        assert self.trace.data is not None
        assert self.trace.program is not None
        b = self.trace.data.buffers[buffer]
        arrays: list[NDArray[Any]] = [a for a in (b.ts, b.pos, b.row, b.codes, b.starts) if a is not None]
        for c, (values, valid) in zip(self.trace.program.columns, self.trace.data.columns, strict=True):
            if c.buffer == buffer:
                arrays += [values] if valid is None else [values, valid]
        return len(b.row), sum(a.nbytes for a in {id(a): a for a in arrays}.values())

    def leaf(self, b: t.Buffer) -> Actual:
        spec = spec_of(b, self.tree)
        if spec not in self.specs:
            return Actual(note=UNUSED)
        rows, size = self.size(self.specs.index(spec))
        actual = Actual(rows=rows, bytes=size, shared=self.users.count(spec) > 1)
        for r in self.runs:
            for leaf, name in r.spec.leaves:
                if leaf is b:
                    actual = self.bound(actual, r, name)
        return actual

    def bound(self, a: Actual, r: Ran, name: Name) -> Actual:
        """A leaf with what one alternative bound of it, where levels and sets did that, and no join."""
        assert self.trace.matcher is not None
        if name.set is not None and not name.slots:
            compared = self.trace.matcher.tally_set(name.set)
            return evolve(a, sets=(a.sets or 0) + r.whole, compared=(a.compared or 0) + compared)
        found = [r.levels[s] for s in name.slots if s in r.levels]
        if not found:
            return a
        compared = sum(c for c, _ in found)
        return evolve(a, compared=(a.compared or 0) + compared, bound=(a.bound or 0) + found[-1][1])

    def viewed(self, a: Actual, n: t.Nest | t.Negation) -> Actual:
        """With what the view of a sub-query was asked for and held."""
        if self.trace.program is None or self.trace.matcher is None:
            return a
        for i, sub in enumerate(self.trace.program.subs):
            if sub.source is n:
                asked, hits, results, _, most = self.trace.matcher.tally_sub(i)
                size = (a.bytes or 0) + most if sub.strategy != "iterative" else a.bytes
                a = evolve(a, asked=(a.asked or 0) + asked, hits=a.hits + hits, results=a.results + results, bytes=size)
        return a

    # operators

    def operator(self, n: t.Join | t.Stack) -> Actual:
        joined = [[m for m in r.joins if m.source is n] for r in self.runs]
        searched = [r for r, h in zip(self.runs, self.heads, strict=True) if h == id(n) and not r.joins]
        actual = Actual()
        if any(joined):
            every = [m for found in joined for m in found]
            actual = Actual(
                rows=sum(found[-1].built for found in joined if found),
                compared=sum(m.compared for m in every),
                bytes=max(sum(m.bytes for m in found) for found in joined),
                seconds=sum(m.seconds for m in every),
            )
        if searched:
            actual = evolve(
                actual,
                rows=(actual.rows or 0) + sum(r.whole for r in searched),
                compared=(actual.compared or 0) + sum(self.looked_at(r) for r in searched),
                bound=sum(bound for r in searched for _, bound in r.levels.values()),
                seconds=(actual.seconds or 0.0) + sum(r.seconds for r in searched),
                note="searched depth first" if isinstance(n, t.Join) else "",
            )
        if any(joined) or searched:
            return actual
        return Actual(note=SETS_LAST if any(r.joins for r in self.through(n)) else self.elsewhere(n))

    def elsewhere(self, n: t.Node) -> str:
        """Where what a node did is counted, if not by itself."""
        return UNUSED if not self.runs else NEGATED if id(n) in self.negated else DEPTH_FIRST

    def looked_at(self, r: Ran) -> int:
        """Candidates of an alternative's own levels and sets, without those of negations."""
        assert self.trace.matcher is not None
        sets = sum(self.trace.matcher.tally_set(s) for s in r.spec.sets)
        return sum(compared for compared, _ in r.levels.values()) + sets

    # negations

    def negation(self, n: t.Negation) -> Actual:
        if self.trace.program is None or self.trace.matcher is None:
            return Actual(note=UNUSED)
        tests = found = compared = searched = 0
        methods: dict[str, None] = {}
        pointed = {g for f in self.trace.program.flats for g in f.pointed}
        own = [i for i, g in enumerate(self.trace.program.negations) if g.source is n]
        for i in own:
            methods |= {w.method: None for w in self.trace.program.negations[i].ways}
            asked, there, looked, searches = self.trace.matcher.tally_negation(i)
            tests, found, compared = tests + asked, found + there, compared + looked
            ways = zip(self.trace.program.negations[i].ways, searches, strict=True)
            searched += sum(count for w, count in ways if w.method == "latest")
        if not own:
            return Actual(note=UNUSED)
        if all(i in pointed for i in own):
            return Actual(note="by pointers from buffer to buffer, without single tests")
        note = "once for each event before it" if self.limits(own) else ""
        actual = Actual(
            tests=tests, found=found, compared=compared, methods=tuple(methods), searched=searched, note=note
        )
        return self.viewed(actual, n)

    def limits(self, negations: Iterable[int]) -> bool:
        """Whether negations are asked once for each event of the component before them."""
        assert self.trace.program is not None
        asked = {g for f in self.trace.program.flats for _, g in f.jump_limits}
        return all(i in asked for i in negations)


def active(root: t.Node, r: Ran) -> Iterator[t.Node]:
    """The nodes of an alternative: of each union the branch that it takes."""
    choices = dict(r.flat.choices)

    def visit(n: t.Node) -> Iterator[t.Node]:
        yield n
        match n:
            case t.Union():
                yield from visit(n.branches[choices[n.number]])
            case t.Stack():
                for s in n.steps:
                    yield from visit(s.component)
            case t.Reject():
                yield from visit(n.source)
            case _:
                for c in t.inputs(n):
                    yield from visit(c)

    return visit(root)


def head(root: t.Node, r: Ran) -> t.Node:
    """The operator whose match is an alternative's whole match."""
    return next(n for n in active(root, r) if isinstance(n, t.Join | t.Stack | t.Buffer | t.Empty))

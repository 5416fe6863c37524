"""Random queries that can be computed from each other, with the actions that do it, from a seed.

A target is drawn: a SEQ of components with negations in its gaps, conditions and a window. A source is what is left
when some components, negations and conditions go, types become concepts and the window wider. How the target comes from
the source is worked out here by the rules of the paper, apart from the compiler's own.
"""

from __future__ import annotations

from random import Random

from attrs import define, evolve, field

import quercus as qc
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import workload as w
from quercus.plan import Plan

HIERARCHY = {"X": ["A", "B"], "Y": {"Z": ["C", "D"], "E": []}}
ABOVE = {"A": ["X"], "B": ["X"], "C": ["Z", "Y"], "D": ["Z", "Y"], "Z": ["Y"], "E": ["Y"]}
LEAVES = ("A", "B", "C", "D", "E", "Z")


@define
class Part:
    var: str
    type: str
    where: list[str] = field(factory=list)


@define
class Drawn:
    """Positive parts, and negated ones by the gap that they stand in: before part 0, ..., after the last."""

    parts: list[Part]
    gaps: dict[int, list[Part]]
    where: list[str]
    window: tuple[str, int]  # unit, size
    partition: str = ""

    def text(self) -> str:
        items: list[str] = []
        for i in range(len(self.parts) + 1):
            for g in self.gaps.get(i, []):
                items.append(f"!({', '.join([f'{g.type} {g.var}', *g.where])})" if g.where else f"!{g.type} {g.var}")
            if i < len(self.parts):
                items.append(f"{self.parts[i].type} {self.parts[i].var}")
        where = [*self.where, *(c for part in self.parts for c in part.where)]
        said = f"PATTERN SEQ({', '.join(items)})" + (f" WHERE {' and '.join(where)}" if where else "")
        return f"{said}{self.partition} WITHIN {self.window[1]} {self.window[0]}"


class Drawing:
    """Queries over one schema and one stream."""

    def __init__(self, seed: int) -> None:
        self.r = Random(seed)
        r = self.r
        self.schema = qc.Schema(
            {"id": "int64", "v": "int64", "s": "string"}, hierarchy=HIERARCHY, ties=r.choice(["strict", "arrival"])
        )
        self.counts = r.random() < 0.3
        self.partition = r.choice(["", "", "", " PARTITION BY id", " PARTITION BY id, s"])
        self.keyed = r.random() < 0.4
        self.types = r.sample(LEAVES, r.choice([2, 3, 4]))
        self.events = self.stream(r.choice([3, 20, 30, 40, 60]) if r.random() < 0.97 else 0)

    def stream(self, n: int) -> dict[str, list[object]]:
        r, ts, times = self.r, 0, []
        steps = r.choice([(0, 1), (0, 0, 1, 2), (1, 2), (0, 3)])
        for _ in range(n):
            ts += r.choice(steps)
            times.append(ts)
        if r.random() < 0.2:
            r.shuffle(times)
        types = [*self.types, *(r.choice((*LEAVES, "X", "Y")) for _ in range(r.choice([0, 1])))]
        return {
            "ts": list(times),
            "type": [r.choice(types) for _ in range(n)],
            "id": [r.choice([1, 1, 2, 3, None] if r.random() < 0.3 else [1, 1, 2]) for _ in range(n)],
            "v": [r.randrange(4) for _ in range(n)],
            "s": [r.choice(["p", "p", "q", None]) for _ in range(n)],
        }

    def target(self) -> Drawn:
        r = self.r
        parts = [Part(f"a{i}", r.choice(self.types)) for i in range(r.choice([1, 2, 2, 3, 3, 4]))]
        gaps: dict[int, list[Part]] = {}
        for number in range(r.choice([0, 0, 1, 1, 2])):
            gaps.setdefault(r.randrange(len(parts) + 1), []).append(
                Part(f"n{number}", r.choice((*LEAVES, *self.types, "X")))
            )
        where = []
        for i in range(len(parts)):
            for j in range(i):
                if self.keyed and r.random() < 0.6:
                    where.append(f"a{i}.id = a{j}.id")
                elif r.random() < 0.1:
                    where.append(r.choice([f"a{i}.v >= a{j}.v", f"a{i}.s = a{j}.s", f"a{i}.id = a{j}.v"]))
            if r.random() < 0.2:
                parts[i].where.append(f"a{i}.v {r.choice(['>', '<='])} 1")
        for n in (n for gap in gaps.values() for n in gap):
            if r.random() < 0.3:
                n.where.append(f"{n.var}.v > 1")
            if r.random() < (0.6 if self.keyed else 0.2):
                other = r.choice(parts).var
                n.where.append(r.choice([f"{n.var}.id = {other}.id"] * 3 + [f"{n.var}.v <= {other}.v"]))
        unit = "UNIT" if self.counts else "ms"
        return Drawn(parts, gaps, where, (unit, r.choice([3, 6, 10, 15])), self.partition)

    def source(self, d: Drawn) -> Drawn:
        """A query that is more general, or the same."""
        r = self.r
        kept = sorted(r.sample(range(len(d.parts)), r.randint(1, len(d.parts))))
        if r.random() < 0.3:
            kept = list(range(len(d.parts)))
        parts = []
        for i in kept:
            part = d.parts[i]
            above = ABOVE.get(part.type, [])
            type_ = r.choice(above) if above and r.random() < 0.4 else part.type
            parts.append(Part(part.var, type_, [c for c in part.where if r.random() < 0.5]))
        names = {part.var for part in parts}
        gaps: dict[int, list[Part]] = {}
        for i, gap in d.gaps.items():
            ends = {0, len(d.parts) - 1} if i in (0, len(d.parts)) else set()
            near = {j for j in (i - 1, i) if 0 <= j < len(d.parts)} | ends
            for n in gap:
                tied = {v for v in (part.var for part in d.parts) if any(f"{v}." in c for c in n.where)}
                if near <= set(kept) and tied <= names and r.random() < 0.6:
                    gaps.setdefault(sum(k < i for k in kept), []).append(n)
        where = [c for c in d.where if _named(c) <= names and r.random() < (0.9 if self.keyed else 0.5)]
        wider = bool(gaps.keys() & {0, len(parts)})
        window = d.window if wider or r.random() < 0.6 else (d.window[0], d.window[1] + r.choice([1, 3]))
        return Drawn(parts, gaps, where, window, d.partition)


def _named(condition: str) -> set[str]:
    return {word.split(".")[0] for word in condition.split() if "." in word}


def part_of(plan: Plan, leaf: p.Leaf, where: tuple[x.Expr, ...], *, negated: bool = False) -> w.Part:
    own = tuple(c for c in where if x.variables(c) == {leaf.var})
    ties = tuple(c for c in where if leaf.var in x.variables(c) and len(x.variables(c)) > 1) if negated else ()
    return w.Part(leaf.var, leaf.type, tuple(sorted(plan.schema.accepts(leaf.type))), negated, own, ties)


def actions(source: Plan, target: Plan, r: Random) -> tuple[w.Action, ...]:
    """How a target's results are made from a source's, whose variables have the same names."""
    positive, negations = taken_apart(target)
    before, old = taken_apart(source)
    found: list[w.Action] = []
    window = target.query.window
    types = {leaf.var: leaf.type for leaf in before}
    if source.query.window != window:
        found.append(w.Narrow(window))
    for leaf in positive:
        if leaf.var in types and types[leaf.var] != leaf.type:
            found.append(w.Retype(leaf.var, tuple(sorted(target.schema.accepts(leaf.type)))))
    names = [leaf.var for leaf in before]
    todo = [c for c in target.query.where if c not in source.query.where]
    now = [c for c in todo if x.variables(c) <= set(names)]
    if now:
        found.append(w.Keep(tuple(now)))
    missing = [leaf for leaf in positive if leaf.var not in types]
    r.shuffle(missing)
    for leaf in missing:
        place = sum(other.var in names for other in positive[: positive.index(leaf)])
        names.insert(place, leaf.var)
        ties = [c for c in todo if leaf.var in x.variables(c) <= set(names) and len(x.variables(c)) > 1]
        found.append(w.Insert(part_of(target, leaf, tuple(todo)), place, tuple(ties), window))
    for n, after, ahead in negations:
        if (n, after, ahead) not in old:
            assert isinstance(n.body, p.Leaf)
            found.append(w.Forbid(part_of(target, n.body, n.where, negated=True), after, ahead, window))
    return tuple(found)


def taken_apart(plan: Plan) -> tuple[list[p.Leaf], list[tuple[p.Not, str | None, str | None]]]:
    """The positive leaves of a SEQ, and its negations with the variables before and after them."""
    parts = plan.query.pattern.parts if isinstance(plan.query.pattern, p.Seq) else (plan.query.pattern,)
    leaves = [c for c in parts if isinstance(c, p.Leaf)]
    found = []
    for i, c in enumerate(parts):
        if isinstance(c, p.Not):
            left = [k.var for k in parts[:i] if isinstance(k, p.Leaf)]
            right = [k.var for k in parts[i + 1 :] if isinstance(k, p.Leaf)]
            found.append((evolve(c, marks=()), left[-1] if left else None, right[0] if right else None))
    return leaves, found


# From the special to the general --------------------------------------------------------------------------------------


def other_names(d: Drawn) -> tuple[Drawn, tuple[tuple[str, str], ...]]:
    """The same with other variables, and what they are called there and here."""
    text = {part.var: f"z{part.var}" for part in (*d.parts, *(n for gap in d.gaps.values() for n in gap))}

    def renamed(condition: str) -> str:
        return " ".join(
            f"{text[w.split('.')[0]]}.{w.split('.')[1]}" if "." in w and w.split(".")[0] in text else w
            for w in condition.split()
        )

    def part(one: Part) -> Part:
        return Part(text[one.var], one.type, [renamed(c) for c in one.where])

    gaps = {i: [part(n) for n in gap] for i, gap in d.gaps.items()}
    made = Drawn([part(one) for one in d.parts], gaps, [renamed(c) for c in d.where], d.window, d.partition)
    return made, tuple((text[one.var], one.var) for one in d.parts)


def more_special(drawing: Drawing, d: Drawn) -> tuple[Drawn, tuple[w.Action, ...]] | None:
    """A query with one more component, negated or not, or with finer types; and how `d` comes from it."""
    r = drawing.r
    names = tuple(part.var for part in d.parts)
    kind = r.choice(["positive", "negative", "concept"])
    if kind == "concept":
        return _finer(drawing, d)
    free = [i for i in range(len(d.parts) + 1) if not d.gaps.get(i) and not (d.gaps.keys() & {0, len(d.parts)})]
    if not free:
        return None
    place = r.choice(free)
    near = r.choice([part.var for part in d.parts[max(place - 1, 0) : place + 1]])
    new = Part("m", r.choice(drawing.types), ["m.v > 1"] if r.random() < 0.3 else [])
    if r.random() < (0.6 if drawing.keyed else 0.2):
        new.where.append(f"m.id = {near}.id")
    positive = Drawn([*d.parts[:place], new, *d.parts[place:]], _moved(d.gaps, place), d.where, d.window, d.partition)
    negative = evolve(d, gaps={**d.gaps, place: [new]})
    if kind == "positive":
        delta = w.Delta(qc.compile(negative.text(), drawing.schema).bound)
        return positive, (w.Project(names), w.Add((delta,)))
    delta = w.Delta(qc.compile(positive.text(), drawing.schema).bound, actions=(w.Project(names),))
    return negative, (w.Add((delta,)),)


def _moved(gaps: dict[int, list[Part]], place: int) -> dict[int, list[Part]]:
    return {i + (i > place): gap for i, gap in gaps.items()}


def _finer(drawing: Drawing, d: Drawn) -> tuple[Drawn, tuple[w.Action, ...]] | None:
    """Finer types of some variables: deltas have the first of them that is not, those before it being so."""
    r, schema = drawing.r, drawing.schema
    parts = [evolve(part) for part in d.parts]
    changed: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
    for part in parts:
        below = schema.hierarchy.get(part.type, ())
        if below and r.random() < 0.7:
            wide, part.type = schema.accepts(part.type), r.choice(below)
            fine = schema.accepts(part.type)
            changed.append((part.var, tuple(sorted(fine)), tuple(sorted(set(wide) - set(fine)))))
    if not changed:
        return None
    bound = qc.compile(d.text(), schema).bound
    deltas = []
    for i, (var, _, rest) in enumerate(changed):
        accepts = (*((v, fine) for v, fine, _ in changed[:i]), (var, rest))
        deltas.append(w.Delta(bound, accepts))
    return evolve(d, parts=parts), (w.Add(tuple(deltas)),)

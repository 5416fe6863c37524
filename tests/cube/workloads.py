"""Random hierarchies and workloads of queries that are near each other, from a seed, with a stream to ask them of."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random

from quercus.schema import Schema
from tests.reference_stream import Options

ATTRIBUTES = {"id": "int64", "v": "int64"}
HIERARCHIES: tuple[dict[str, object], ...] = (
    {"X": ["A", "B"], "Y": ["C", "D"]},
    {"X": {"Y": ["A", "B"], "C": []}},
    {"X": {"Y": ["A", "B"], "Z": ["C", "D"]}},
    {"X": ["A", "B", "C"]},
)


@dataclass(frozen=True)
class Item:
    """A component, as it will be spelled."""

    type: str
    negated: bool = False
    asked: str = ""  # of its value: "> 2"
    tied: bool = False  # a negated one, by id to the match


@dataclass(frozen=True)
class Question:
    items: tuple[Item, ...]
    window: str
    same_id: bool = False
    rising: bool = False
    names: str = "abcdefghij"

    @property
    def positive(self) -> int:
        return sum(not i.negated for i in self.items)

    def text(self, keyed: bool) -> str:
        parts, where, seen = [], [], []
        for item, name in zip(self.items, self.names, strict=False):
            own = [f"{name}.v {item.asked}"] if item.asked else []
            if item.negated:
                anchor = next(n for i, n in zip(self.items, self.names, strict=False) if not i.negated)
                own += [f"{name}.id = {anchor}.id"] if item.tied else []
                inner = ", ".join([f"{item.type} {name}", *own])
                parts.append(f"!({inner})" if own else f"!{item.type} {name}")
            else:
                parts.append(f"{item.type} {name}")
                where += own
                seen.append(name)
        if self.same_id:
            where += [f"{a}.id = {b}.id" for a, b in pairwise(seen)]
        if self.rising and len(seen) > 1:
            where.append(f"{seen[0]}.v <= {seen[-1]}.v")
        asked = f" WHERE {' and '.join(where)}" if where else ""
        by = " PARTITION BY id" if keyed else ""
        return f"PATTERN SEQ({', '.join(parts)}){asked}{by} WITHIN {self.window}"


@dataclass(frozen=True)
class Workload:
    seed: int
    queries: dict[str, str]
    events: list[dict[str, object]]
    options: Options
    keyed: bool

    def schema(self) -> Schema:
        return Schema(ATTRIBUTES, ties=self.options.ties, hierarchy=dict(self.options.hierarchy))

    def __str__(self) -> str:
        queries = "\n".join(f"  {n}: {q}" for n, q in self.queries.items())
        rows = "\n  ".join(str(e) for e in self.events)
        return f"seed {self.seed}, ties {self.options.ties}, {self.options.hierarchy}\n{queries}\n  {rows}"


def workload(seed: int, size: int = 4, length: int = 11) -> Workload:
    return _Draw(Random(seed), seed).workload(size, length)


class _Draw:
    def __init__(self, random: Random, seed: int) -> None:
        self.r, self.seed = random, seed
        self.hierarchy = random.choice(HIERARCHIES)
        below = Schema({}, hierarchy=self.hierarchy).hierarchy
        self.parent = {c: name for name, of in below.items() for c in of}
        self.below = below
        self.types = sorted({*below, *self.parent, "E"})
        self.finest = [t for t in self.types if not below.get(t)]

    def workload(self, size: int, length: int) -> Workload:
        r = self.r
        kind = r.choice(["time", "time", "count"])
        first = self.question(kind)
        found = [first]
        while len(found) < size:
            found.append(self.near(r.choice(found), kind))
        keyed = r.random() < 0.2
        named = {f"q{i + 1}": self.renamed(q).text(keyed) for i, q in enumerate(found)}
        options = Options(ties=r.choice(["strict", "strict", "arrival"]), hierarchy=self.hierarchy)
        return Workload(self.seed, named, self.events(length), options, keyed)

    def events(self, length: int) -> list[dict[str, object]]:
        r, at = self.r, 0
        found = []
        names = [*self.finest, r.choice(self.types)]  # events may be of a concept that is no finest one, too
        for _ in range(r.randint(4, length)):
            at += r.choice([0, 1, 1, 1, 2])
            found.append({"ts": at, "type": r.choice(names), "id": r.choice([1, 1, 2, None]), "v": r.randint(1, 4)})
        return found

    def window(self, kind: str) -> str:
        n = self.r.choice([3, 5, 5, 5, 8])
        return str(n) if kind == "time" else f"{n} EVENTS"

    def item(self, negated: bool) -> Item:
        r = self.r
        asked = r.choice(["> 1", "> 2", "< 4"]) if r.random() < 0.2 else ""
        return Item(r.choice(self.types), negated, asked, negated and r.random() < 0.3)

    def question(self, kind: str) -> Question:
        r = self.r
        items = [self.item(negated=False) for _ in range(r.randint(1, 3))]
        for _ in range(r.choice([0, 0, 1, 1, 2])):
            items.insert(r.randint(0, len(items)), self.item(negated=True))
        return Question(tuple(items), self.window(kind), r.random() < 0.25, r.random() < 0.15)

    def near(self, q: Question, kind: str) -> Question:
        """A question that differs in a few things, most of them in one direction."""
        r = self.r
        direction = r.choice(["finer", "coarser"])
        for _ in range(r.choice([0, 1, 1, 2, 3])):
            q = self.changed(q, direction if r.random() < 0.85 else r.choice(["finer", "coarser"]), kind)
        return q

    def changed(self, q: Question, direction: str, kind: str) -> Question:
        r, items = self.r, list(q.items)
        i = r.randrange(len(items))
        what = r.choice(["concept", "concept", "pattern", "pattern", "pattern", "else"])
        if what == "concept":
            up = (direction == "coarser") != items[i].negated
            new = self.parent.get(items[i].type) if up else r.choice([*self.below.get(items[i].type, ()), None])
            if new is not None:
                items[i] = Item(new, items[i].negated, items[i].asked, items[i].tied)
        elif what == "pattern" and direction == "finer" and len(items) < 6:
            negated = r.random() < 0.4
            if negated or q.positive < 4:
                items.insert(r.randint(0, len(items)), self.item(negated))
        elif what == "pattern" and direction == "coarser":
            if items[i].negated or q.positive > 1:
                del items[i]
        elif what == "else":
            choice = r.choice(["window", "id", "rising", "asked", "tied"])
            if choice == "window":
                return Question(q.items, self.window(kind), q.same_id, q.rising)
            if choice == "id":
                return Question(q.items, q.window, not q.same_id, q.rising)
            if choice == "rising":
                return Question(q.items, q.window, q.same_id, not q.rising)
            asked = r.choice(["> 1", "> 2", ""]) if choice == "asked" else items[i].asked
            tied = not items[i].tied if choice == "tied" else items[i].tied
            items[i] = Item(items[i].type, items[i].negated, asked, tied)
        return Question(tuple(items), q.window, q.same_id, q.rising)

    def renamed(self, q: Question) -> Question:
        names = "abcdefghij" if self.r.random() < 0.3 else "".join(self.r.sample("abcdefghij", 10))
        return Question(q.items, q.window, q.same_id, q.rising, names)

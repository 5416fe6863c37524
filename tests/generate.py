"""Random queries with a schema and a stream, from a seed: small enough for tests/reference.py, yet every rule fires.

A pattern is drawn first, as a tree with names; then conditions are put where their variables can be seen; then the
whole is spelled, each operator in its functional or its infix form. What comes out is nearly always a valid query; the
few that the binder refuses are skipped by `valid`, and tests/test_roundtrip.py bounds how many those are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from unittest.mock import patch

from quercus.compiler.bind import bind
from quercus.compiler.parse import parse_query
from quercus.compiler.syntax import Attr, Call, Scalar
from quercus.errors import QueryError
from quercus.ir import pattern as p
from quercus.schema import Schema
from tests import reference, reference_pattern
from tests.reference_scalar import names

TYPES = ("A", "B", "C", "D")
ATTRIBUTES = {"id": "int64", "v": "int64", "f": "float64", "s": "string", "b": "bool"}
HIERARCHY = {"X": ["A", "B"]}
MAX_LEAVES, MAX_KLEENE, MAX_DEPTH = 5, 2, 3


@dataclass(frozen=True)
class Sample:
    """A query with a stream to ask it of. `query` is text; `options` and `schema()` say the same of the stream."""

    seed: int
    query: str
    events: list[dict[str, object]]
    options: reference.Options

    def schema(self) -> Schema:
        o = self.options
        return Schema(ATTRIBUTES, ties=o.ties, time_unit=o.time_unit, hierarchy=dict(o.hierarchy))

    def bind(self) -> p.Query:
        return bind(parse_query(self.query), self.schema())

    def answer(self, query: str | None = None) -> frozenset[object]:
        """What the reference says of the query, or of another one, over the sample's stream."""
        return evaluated(self.query if query is None else query, self.events, self.options)

    def __str__(self) -> str:
        rows = "\n  ".join(str(e) for e in self.events)
        return f"seed {self.seed}, ties {self.options.ties}\n{self.query}\n  {rows}"


# Printed queries ------------------------------------------------------------------------------------------------------


def evaluated(query: str, events: list[dict[str, object]], options: reference.Options) -> frozenset[object]:
    """The reference's answer, to text that may hold `same(b.id, c.id)`: what `[attr]` is called once it is bound."""
    with patch.object(reference, "conditions", _conditions), patch.object(reference_pattern, "conditions", _conditions):
        return reference.canonical(reference.matches(query, events, options))


_plain_conditions = reference_pattern.conditions


def _conditions(where: Sequence[Scalar], under: reference_pattern.Tree) -> list[reference_pattern.Condition]:
    return [
        reference_pattern.Agree(item.args[0].name, names(item))
        if isinstance(item, Call) and item.name == "same" and isinstance(item.args[0], Attr)
        else _plain_conditions([item], under)[0]
        for item in where
    ]


# The tree that is drawn -----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Leaf:
    type: str
    sign: str  # "", "+", "*", "[n]"
    var: str  # what conditions call it
    named: bool = True
    where: list[str] = field(default_factory=list)  # of a leaf in parentheses


@dataclass(eq=False)
class Op:
    kind: str
    parts: list[Leaf | Op | Not]
    where: list[str] = field(default_factory=list)
    window: str | None = None


@dataclass(eq=False)
class Not:
    body: Leaf | Op


Tree = Leaf | Op | Not


def leaves(tree: Tree) -> Iterator[Leaf]:
    match tree:
        case Leaf():
            yield tree
        case Not():
            yield from leaves(tree.body)
        case Op():
            for part in tree.parts:
                yield from leaves(part)


def positive_leaves(tree: Tree) -> Iterator[Leaf]:
    match tree:
        case Leaf():
            yield tree
        case Op():
            for part in tree.parts:
                yield from positive_leaves(part)


def can_be_empty(tree: Tree) -> bool:
    match tree:
        case Leaf():
            return tree.sign == "*"
        case Not():
            return True
        case Op(kind="OR"):
            return any(map(can_be_empty, tree.parts))
        case Op():
            return all(map(can_be_empty, tree.parts))


class Drawing:
    """One query being drawn."""

    def __init__(self, seed: int) -> None:
        self.seed, self.r = seed, Random(seed)
        self.budget = self.r.choice((2, 3, 3, 4, 4, 5)) if seed % 10 else MAX_LEAVES
        self.kleene = self.r.choice((0, 0, 1, 1, 2))
        self.names = iter([f"{c}{n or ''}" for n in range(3) for c in "abcdexyz"])
        self.types = self.r.sample(TYPES, self.r.choice((2, 3, 3, 4)))
        self.hierarchy = self.r.random() < 0.12
        self.rich = self.r.random() < 0.35  # any condition, rather than those that are often true

    # patterns

    def sample(self) -> Sample:
        tree = self.positive(1, negated=False)
        if isinstance(tree, Leaf) and self.r.random() < 0.8:
            tree = Op("SEQ", [tree, self.leaf(negated=False)])
        self.share_names(tree)
        self.leave_unnamed(tree)
        where = self.conditions(tree)
        self.windows(tree)
        query = f"PATTERN {self.spelled(tree, 0)}"
        if where:
            query += " WHERE " + self.r.choice((", ", " and ")).join(where)
        if self.r.random() < 0.1:
            query += f" PARTITION BY {self.r.choice(('id', 's'))}"
        query += f" WITHIN {self.window(3, 9)}"
        options = reference.Options(
            ties=self.r.choice(("strict", "strict", "arrival")),
            time_unit=self.r.choice(("ms", "s")),
            hierarchy=HIERARCHY if self.hierarchy else {},
        )
        wanted = [("AB"[self.r.random() < 0.5] if x.type == "X" else x.type) for x in positive_leaves(tree)]
        others = [x.type for x in leaves(tree) if x.type != "X"]
        return Sample(self.seed, query, stream(self.r, wanted, others), options)

    def leaf(self, *, negated: bool, kleene: bool = True) -> Leaf:
        self.budget -= 1
        sign = ""
        if kleene and self.kleene and self.r.random() < 0.4:
            self.kleene -= 1
            sign = self.r.choice(("+", "+", "[2]", "[1]") if negated else ("+", "+", "*", "*", "[2]", "[1]"))
        type_ = "X" if self.hierarchy and self.r.random() < 0.3 else self.r.choice(self.types)
        return Leaf(type_, sign, next(self.names))

    def positive(self, depth: int, *, negated: bool) -> Leaf | Op:
        if depth > MAX_DEPTH or self.budget <= 1 or (depth > 1 and self.r.random() < 0.45):
            return self.leaf(negated=negated)
        kind = self.r.choice(("SEQ", "SEQ", "SEQ", "AND", "AND", "OR", "OR"))
        count = self.r.choice((1, 2, 2, 2, 3, 3)) if depth > 1 else self.r.choice((2, 2, 3, 3, 4))
        parts: list[Tree] = []
        for i in range(count):
            if parts and self.budget <= 0:
                break
            if kind != "OR" and (count > 1 or i) and self.r.random() < 0.3 and self.budget > 1:
                parts.append(Not(self.negated(depth + 1)))
            else:
                parts.append(self.positive(depth + 1, negated=negated))
        if all(isinstance(part, Not) or can_be_empty(part) for part in parts):
            parts.insert(self.r.randint(0, len(parts)), self.leaf(negated=negated, kleene=False))
        op = Op(kind, parts)
        direct = any(isinstance(part, Leaf) and part.sign for part in parts)
        if kind == "AND" and direct and any(isinstance(part, Not) for part in parts):
            op.kind = "SEQ"
        return op

    def negated(self, depth: int) -> Leaf | Op:
        if self.r.random() < 0.5:
            return self.leaf(negated=True)
        return self.positive(depth, negated=True)

    def share_names(self, tree: Tree) -> None:
        """Some leaves of different branches of one OR get one name."""
        for op in self.ops(tree):
            if op.kind == "OR" and self.r.random() < 0.5:
                first = list(positive_leaves(op.parts[0]))
                for branch in op.parts[1:]:
                    twin, *_ = positive_leaves(branch)
                    one = self.r.choice(first)
                    if not isinstance(branch, Not) and one.var not in {x.var for x in leaves(branch)}:
                        twin.type, twin.sign, twin.var = one.type, one.sign, one.var

    def leave_unnamed(self, tree: Tree) -> None:
        everything = list(leaves(tree))
        uses = Counter(leaf.var for leaf in everything)
        chosen = [leaf for leaf in everything if uses[leaf.var] == 1 and self.r.random() < 0.25]
        types = Counter(leaf.type for leaf in chosen)
        seen: Counter[str] = Counter()
        for leaf in chosen:
            seen[leaf.type] += 1
            leaf.named = False
            leaf.var = leaf.type if types[leaf.type] == 1 else f"{leaf.type}_{seen[leaf.type]}"

    def ops(self, tree: Tree) -> Iterator[Op]:
        match tree:
            case Op():
                yield tree
                for part in tree.parts:
                    yield from self.ops(part)
            case Not():
                yield from self.ops(tree.body)

    def windows(self, tree: Tree) -> None:
        for op in self.ops(tree):
            if self.r.random() < 0.12:
                op.window = self.window(1, 6)

    def window(self, low: int, high: int) -> str:
        size = self.r.randint(low, high)
        return f"{size} {self.r.choice(('EVENTS', 'UNIT'))}" if self.r.random() < 0.25 else str(size)

    # conditions

    def conditions(self, tree: Tree) -> list[str]:
        """Put conditions into the tree; returns those of WHERE."""
        outside = list(dict.fromkeys((x.var, x.sign) for x in positive_leaves(tree)))
        places: list[tuple[list[str], list[tuple[str, str]]]] = []
        chains: list[list[tuple[str, str]]] = [outside]

        def visit(node: Tree, seen: list[tuple[str, str]]) -> None:
            match node:
                case Leaf():
                    places.append((node.where, seen))
                case Not():
                    inner = seen + list(dict.fromkeys((x.var, x.sign + "!") for x in positive_leaves(node.body)))
                    chains.append(inner)
                    own = node.body.where
                    places.extend([(own, inner)] * 3)
                    visit(node.body, inner)
                case Op():
                    places.extend([(node.where, seen)] * 2)
                    for part in node.parts:
                        visit(part, seen)

        visit(tree, outside)
        where: list[str] = []
        for _ in range(self.r.choice((0, 0, 1, 1, 2, 3) if not self.rich else (1, 2, 3, 4))):
            if self.r.random() < 0.4:
                where.append(self.condition(self.r.choice(chains)))
            else:
                home, seen = self.r.choice(places)
                home.append(self.condition(seen))
        for op in self.ops(tree):
            if self.r.random() < 0.12:
                op.where.append(f"[{self.r.choice(('id', 'id', 's', 'id, s'))}]")
        return where

    def pick(self, seen: list[tuple[str, str]], count: int) -> list[str]:
        """Some variables, at most one of them Kleene; the innermost are likelier."""
        pool = seen + seen[-1:]
        self.r.shuffle(pool)
        found: list[str] = []
        kleene = False
        for var, sign in pool:
            starred = sign not in ("", "!")
            if var in found or (starred and kleene) or len(found) == count:
                continue
            kleene |= starred
            found.append(var)
        return found

    def condition(self, seen: list[tuple[str, str]]) -> str:
        sets = [var for var, sign in seen if sign not in ("", "!") and "!" not in sign]
        if sets and self.r.random() < 0.15:
            return self.group_condition(self.r.choice(sets), seen)
        if not self.rich and self.r.random() < 0.8:
            return self.easy(seen)
        return self.any_condition(seen, 2)

    def easy(self, seen: list[tuple[str, str]]) -> str:
        r, names = self.r, self.pick(seen, 3)
        x, y = names[0], names[-1]
        if len(names) == 1 or r.random() < 0.3:
            return r.choice((f"{x}.v > 0", f"{x}.v < 3", f"3 >= {x}.v", f"{x}.id <> 2", f"{x}.s in ('p', 'q')"))
        attr = r.choice(("id", "id", "id", "s"))
        if len(names) == 3 and r.random() < 0.5:
            return f"{x}.{attr} = {names[1]}.{attr} = {y}.{attr}"
        return r.choice((f"{x}.{attr} = {y}.{attr}", f"{y}.id = {x}.id", f"{x}.v <= {y}.v", f"{y}.v >= {x}.v"))

    def any_condition(self, seen: list[tuple[str, str]], depth: int) -> str:
        r = self.r
        x, *more = self.pick(seen, 3)
        y = more[0] if more else x
        z = more[-1] if more else x
        op = r.choice(("=", "=", "==", "<>", "!=", "<", "<=", ">", ">="))
        n, m = r.randint(0, 3), r.randint(0, 3)
        kinds = [
            lambda: f"{x}.id = {y}.id",
            lambda: f"{x}.id = {y}.id = {z}.id",
            lambda: f"{x}.v {r.choice(('<', '<='))} {y}.v {r.choice(('<', '<='))} {z}.v",
            lambda: f"{x}.v {op} {n}",
            lambda: f"{n} {op} {x}.v",
            lambda: f"{x}.id = {n}",
            lambda: f"{x}.f {op} {y}.f",
            lambda: f"{x}.f {op} {n}.5",
            lambda: f"{x}.f {op} {y}.v",
            lambda: f"{x}.s {op} {r.choice((y + '.s', repr('p'), repr('Q')))}",
            lambda: f"{x}.v in ({n}, {m})",
            lambda: f"{x}.v not in ({n}, {m}, null)" if r.random() < 0.3 else f"{x}.v not in ({n}, {m})",
            lambda: f"{x}.v in ({n}, {y}.v)",
            lambda: f"{x}.v {r.choice(('', 'not '))}between {min(n, m)} and {max(n, m)}",
            lambda: f"{x}.v between {y}.v and {y}.v + 1",
            lambda: f"{x}.{r.choice(('id', 'v', 's', 'f'))} is {r.choice(('', 'not '))}null",
            lambda: f"{x}.v + {n} {op} {y}.v",
            lambda: f"{x}.v * 2 - 1 {op} {y}.v + {n}",
            lambda: f"{x}.v % 2 = {n % 2}",
            lambda: f"{x}.v / {n} {op} {y}.f",
            lambda: f"-{x}.v {op} -{n}",
            lambda: f"abs({x}.v - {y}.v) {op} {n}",
            lambda: f"{r.choice(('round', 'floor', 'ceil'))}({x}.f) {op} {n}",
            lambda: f"{r.choice(('lower', 'upper'))}({x}.s) = {r.choice(('lower', 'upper'))}({y}.s)",
            lambda: f"length({x}.s) {op} {n}",
            lambda: f"{y}.ts - {x}.ts {r.choice(('<', '<=', '>'))} {n}",
            lambda: f"{x}.type {r.choice(('=', '<>'))} {r.choice((repr('A'), y + '.type'))}",
            lambda: f"{x}.b",
            lambda: f"not {x}.b",
            lambda: f"{x}.b = {r.choice(('true', 'false', y + '.b'))}",
            lambda: r.choice(("true", "1 + 1 = 2", "2 < 1 + 3", "null is null", "not false", "1 / 0 is null")),
            lambda: f"{x}.v < {n} + {m}",
            lambda: f"({x}.v is null or {x}.v is not null)",
            lambda: f"{x}.v > {n + 2} and {x}.v < {m}",
            lambda: f"{x}.id = {n} and {x}.id in ({m}, {n + 1})",
        ]
        if not any("!" in sign for _, sign in seen):
            kinds.append(lambda: f"same({', '.join(f'{v}.id' for v, _ in seen[:3])})")
        if depth and r.random() < 0.35:
            a, b = self.any_condition([(x, "")], depth - 1), self.any_condition([(y, ""), (z, "")], depth - 1)
            if "same(" not in a + b:
                return r.choice(
                    (f"({a} or {b})", f"({a} and {b})", f"not ({a})", f"not ({a} or {b})", f"({a} or false)")
                )
        return r.choice(kinds)()

    def group_condition(self, b: str, seen: list[tuple[str, str]]) -> str:
        r = self.r
        plain = [var for var, sign in seen if sign == ""]
        op, n = r.choice(("=", "<", "<=", ">", ">=", "<>")), r.randint(0, 3)
        other = f"{r.choice(plain)}.v" if plain and r.random() < 0.5 else str(n)
        return r.choice(
            (
                f"count({b}) {r.choice(('>', '>=', '='))} {r.randint(0, 2)}",
                f"sum({b}.v) {op} {other}",
                f"avg({b}.v) {op} {other}",
                f"min({b}.v) {op} {other}",
                f"max({b}.v) {op} {other}",
                f"first({b}).v {op} last({b}).v",
                f"(max({b}.f) > {n} or count({b}) = 1)",
                f"(count({b}) > 0 and min({b}.v) {op} {n})",
            )
        )

    # spelling

    def spelled(self, tree: Tree, around: int) -> str:
        """`around` is how tightly the operator around binds: 0 nothing, 1 `;`, 2 `|`, 3 `&`, 4 `!`."""
        match tree:
            case Leaf():
                text = tree.type + tree.sign + (f" {tree.var}" if tree.named else "")
                return f"({', '.join([text, *tree.where])})" if tree.where else text
            case Not():
                return self.r.choice(("!", "!", "NOT ")) + self.spelled(tree.body, 4)
            case Op():
                return self.operator(tree, around)

    def operator(self, op: Op, around: int) -> str:
        r = self.r
        tail = f" WITHIN {op.window}" if op.window else ""
        if len(op.parts) == 1 or r.random() < 0.6:
            inside = [self.spelled(part, 0) for part in op.parts]
            mixed = list(inside)
            for condition in op.where:  # a condition may stand anywhere after the first component
                mixed.insert(r.randint(1, len(mixed)), condition)
            kind = op.kind if r.random() < 0.9 else op.kind.lower()
            return f"{kind}({', '.join(mixed)}){tail}"
        level = {"SEQ": 1, "OR": 2, "AND": 3}[op.kind]
        sign = {"SEQ": " ; ", "OR": r.choice((" | ", " or ")), "AND": r.choice((" & ", " and "))}[op.kind]
        text = sign.join(self.spelled(part, level) for part in op.parts)
        if op.where or tail or around >= level or r.random() < 0.2:
            return f"({', '.join([text, *op.where])}){tail}"
        return text


# The stream -----------------------------------------------------------------------------------------------------------


def stream(r: Random, wanted: Sequence[str], others: Sequence[str]) -> list[dict[str, object]]:
    """Five to nine events: the wanted types in order, with a few others between them, since most matches need that."""
    types = list(wanted)
    for _ in range(r.randint(5, 9) - len(types)):
        types.insert(r.randint(0, len(types)), r.choice([*wanted, *wanted, *others, *TYPES]))
    if r.random() < 0.3:
        r.shuffle(types)
    ts, rows = r.randint(0, 3), []
    nulls = r.choice((0.0, 0.05, 0.2))
    for type_ in types[:9]:
        values: dict[str, object] = {
            "id": r.choice((0, 1, 1, 1)),
            "v": r.randint(0, 4),
            "f": r.choice((0.0, 0.5, 1.5, 2.0, -0.5, math.nan)),
            "s": r.choice(("p", "p", "q", "Q")),
            "b": r.random() < 0.6,
        }
        rows.append({"type": type_, "ts": ts, **{k: None if r.random() < nulls else v for k, v in values.items()}})
        ts += r.choice((0, 1, 1, 1, 2))
    if r.random() < 0.15:
        r.shuffle(rows)  # times out of order: position counts, not input order
    return rows


def sample(seed: int) -> Sample:
    """The query and the stream of a seed, valid or not."""
    return Drawing(seed).sample()


def valid(seeds: range) -> Iterator[tuple[Sample, p.Query]]:
    """The samples of these seeds that the binder accepts, bound."""
    for seed in seeds:
        drawn = sample(seed)
        try:
            bound = drawn.bind()
        except QueryError:
            continue
        yield drawn, bound

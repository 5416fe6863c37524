"""Random continuous queries and small streams for them."""

from __future__ import annotations

from random import Random

import quercus as qc

COLUMNS = {"S": {"a": "int64", "b": "string", "x": "float64"}, "T": {"d": "int64", "e": "string", "y": "float64"}}
SCHEMAS = {name: qc.Schema(columns, type=None) for name, columns in COLUMNS.items()}
NUMBERS = {"S": ["a", "x"], "T": ["d", "y"]}
STRINGS = {"S": "b", "T": "e"}


def streams(random: Random, most: int = 9) -> dict[str, list[dict[str, object]]]:
    """A few tuples each, with ties of time, equal values and nulls."""
    return {name: _stream(random, name, random.randrange(most + 1)) for name in COLUMNS}


def _stream(random: Random, name: str, n: int) -> list[dict[str, object]]:
    a, b, x = COLUMNS[name]
    rows = [
        {
            "ts": random.randrange(12),
            a: random.choice([None, 0, 1, 1, 2, 3]),
            b: random.choice([None, "u", "u", "v", "w"]),
            x: random.choice([None, 0.0, 0.5, 1.0, 1.0, 2.5]),
        }
        for _ in range(n)
    ]
    return rows if random.random() < 0.3 else sorted(rows, key=lambda r: r["ts"])  # type: ignore[arg-type,return-value]


def has_order(text: str) -> bool:
    """Whether rows of one time come in an order that is specified: that of the tuples they are made of."""
    joins = any(f" AS {name}1" in text for name in "st")
    mixed = any(word in text.replace("UNION ALL", "") for word in ("DISTINCT", "UNION ", "GROUP BY"))
    return not joins and not mixed


class Draw:
    """One query, from a seed."""

    def __init__(self, random: Random, patterns: float = 0.3) -> None:
        self.random, self.patterns = random, patterns

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def query(self) -> str:
        kind = self.pick("ISTREAM", "ISTREAM", "DSTREAM", "RSTREAM")
        if self.chance(0.15):
            inner = f"{self.pick('ISTREAM', 'ISTREAM', 'RSTREAM', 'DSTREAM')}({self.select(3)})"
            if self.chance(0.4):  # the name twice
                pieces = [f"SELECT {p}, q FROM Q{self.pick('[Now]', '[Range 3]', '[Range 2]')}" for p in "pr"]
                return f"WITH Q AS ({inner}) {kind}({self.pick(' UNION ', ' UNION ALL ').join(pieces)})"
            windows, outers = ["[Now]", "[Range 3]", "[Unbounded]"], ["SELECT * FROM Q", "SELECT COUNT(*) FROM Q"]
            if has_order(inner):
                windows, outers = [*windows, "[Rows 2]"], [*outers, "SELECT LAST(p, q) FROM Q"]
            window, outer = self.random.choice(windows), self.random.choice(outers)
            return f"WITH Q AS ({inner}) {kind}({outer}{window})"
        return f"{kind}({self.relation()})"

    def relation(self) -> str:
        if not self.chance(0.2):
            return self.select()
        width = self.random.choice([1, 2, 3])
        parts = [self.select(width) for _ in range(self.random.choice([2, 2, 3]))]
        return "".join(p if not i else f" {self.pick('UNION', 'UNION ALL')} {p}" for i, p in enumerate(parts))

    def window(self, stream: str) -> str:
        if self.chance(self.patterns):
            return f"[Pattern By ({'; '.join(self.condition(stream, i == 0) for i in range(4))})]"
        by = ", ".join(self.random.sample([*COLUMNS[stream], "Timestamp"], self.random.choice([1, 1, 2])))
        return self.pick(
            f"[Range {self.random.randrange(1, 6)}]",
            f"[Rows {self.random.randrange(1, 4)}]",
            "[Now]",
            "[Unbounded]",
            f"[Partition By {by} Rows {self.random.randrange(1, 3)}]",
        )

    def condition(self, stream: str, start: bool) -> str:
        number, text = self.pick(*NUMBERS[stream]), STRINGS[stream]
        options = ["TRUE", "TRUE", "FALSE", f"{number} > 0", f"{text} = 'u'", f"{text} <> 'u'", f"{number} IS NOT NULL"]
        if start:
            options += [f"FIRST({number}) = {number}", "TRUE", "TRUE"]
        else:
            options += [
                f"{text} = FIRST({text})",
                f"{number} >= PREV({number})",
                "NUM() < 3",
                "ITER() > 1",
                f"{text} = FIRST({text}) AND {number} > 0",
                f"{number} = FIRST({number})",
                f"{number} = FIRST({number}) AND {text} = FIRST({text})",
                f"NOT {text} = FIRST({text})",
                f"{text} <> FIRST({text}) OR {number} > 1",
                "ITER() - NUM() = 1",
                "Timestamp - FIRST(Timestamp) < 5",
            ]
        return self.random.choice(options)

    def select(self, width: int | None = None) -> str:
        """With a width: as many columns, of types that fit any other such SELECT: a number, a string, a number."""
        names = [self.pick("S", "T") for _ in range(self.random.choice([1, 1, 1, 2, 2, 3]))]
        aliases = [f"{n.lower()}{i}" for i, n in enumerate(names)]
        sources = [f"{n}{self.window(n)} AS {a}" for n, a in zip(names, aliases, strict=True)]
        self.sources = list(zip(names, aliases, strict=True))
        from_ = sources[0]
        for source in sources[1:]:
            from_ += f" JOIN {source} ON {self.test()}" if self.chance(0.4) else f", {source}"
        where = f" WHERE {self.test()}" if self.chance(0.5) or len(names) > 2 else ""
        windows = [a for s, a in zip(sources, aliases, strict=True) if "Pattern" in s]
        distinct = "DISTINCT " if self.chance(0.2) else ""
        if self.chance(0.5):
            items = self.plain(width, windows)
            return f"SELECT {distinct}{', '.join(items)} FROM {from_}{where}"
        groups = self.random.sample([self.number(), self.text(), self.number()], self.random.choice([0, 0, 1, 2]))
        items = self.aggregates(groups, width, windows)
        group_by = f" GROUP BY {', '.join(groups)}" if groups else ""
        having = f" HAVING {self.aggregate()} {self.pick('>', '<', '<>')} 1" if self.chance(0.2) else ""
        return f"SELECT {distinct}{', '.join(items)} FROM {from_}{where}{group_by}{having}"

    # columns

    def column(self, names: dict[str, list[str]]) -> str:
        stream, alias = self.random.choice(self.sources)
        return f"{alias}.{self.random.choice(names[stream])}"

    def number(self) -> str:
        return self.column({n: [*c, "Timestamp"] if self.chance(0.2) else c for n, c in NUMBERS.items()})

    def text(self) -> str:
        return self.column({n: [c] for n, c in STRINGS.items()})

    def test(self) -> str:
        options = [
            f"{self.number()} > {self.random.randrange(3)}",
            f"{self.text()} = {self.text()}",
            f"{self.number()} = {self.number()}",
            f"{self.number()} <= {self.number()}",
            f"{self.text()} <> 'u'",
            f"NOT {self.text()} IN ('u', 'w')",
            f"{self.number()} IS NOT NULL OR {self.text()} = 'v'",
            f"{self.number()} + {self.number()} BETWEEN 1 AND 3",
            "TRUE",
        ]
        return self.random.choice(options)

    def plain(self, width: int | None, windows: list[str]) -> list[str]:
        if width is not None:
            return [f"{e} AS {n}" for e, n in zip((self.number(), self.text(), self.number()), "pqr", strict=True)][
                :width
            ]
        if len({n for n, _ in self.sources}) == len(self.sources) and self.chance(0.2):
            return ["*"]
        options = [self.number(), self.text(), f"{self.number()} * 2 - {self.number()}", f"{self.number()} > 1"]
        options += [f"{self.pick('ITER', 'NUM')}({w})" for w in windows]
        chosen = self.random.sample(options, self.random.randrange(1, 4))
        return [f"{e} AS c{i}" for i, e in enumerate(chosen)]

    def aggregate(self) -> str:
        distinct = "DISTINCT " if self.chance(0.15) else ""
        return self.pick(
            "COUNT(*)",
            f"COUNT({distinct}{self.text()})",
            f"SUM({distinct}{self.number()})",
            f"AVG({self.number()})",
            f"MIN({self.number()})",
            f"MAX({self.number()} + 1)",
            f"FIRST({self.number()})",
            f"LAST({self.number()})",
        )

    def aggregates(self, groups: list[str], width: int | None, windows: list[str]) -> list[str]:
        texts = [f"MIN({self.text()})", f"LAST({self.text()})", f"FIRST({self.text()})", f"MAX({self.text()})"]
        if width is not None:
            return [
                f"{e} AS {n}"
                for e, n in zip((self.aggregate(), self.random.choice(texts), self.aggregate()), "pqr", strict=True)
            ][:width]
        items = [*groups, self.aggregate(), self.random.choice(texts), f"{self.aggregate()} + {self.aggregate()}"]
        items += [f"{self.pick('ITER', 'NUM')}({w})" for w in windows]
        chosen = self.random.sample(items, self.random.randrange(1, 4))
        return [f"{e} AS c{i}" for i, e in enumerate(chosen)]

"""Whatever the text: a query, or a `QueryError` with a place. Nothing else escapes."""

from __future__ import annotations

from random import Random

import pytest

import quercus as qc
from tests.continuous import test_examples as examples
from tests.continuous.generate import SCHEMAS, Draw
from tests.continuous.test_continuous import TRIP

SEEDS = [
    *(text for name, text in vars(examples).items() if name.startswith("EXAMPLE_")),
    TRIP + "ISTREAM(SELECT * FROM (PATTERN SEQ(Trip t, !At x, RoomState+ r, t.Person = r.Room) WITHIN 5 min"
    " RETURN t.took AS took, count(r) AS n) [Range 5 min] AS m, At[Partition By Person Rows 2] WHERE n > 2)",
    "ISTREAM(SELECT who FROM (PATTERN SEQ(At[Pattern By (Location = 'Lab'; Person = FIRST(Person); TRUE; NUM() < 3)] w,"
    ' !"At" [ pattern by (TRUE; ITER() > 2; TRUE; FALSE)] x, RoomState r) WITHIN 5 min'
    " RETURN w.first_Person AS who)[Now])",
    'ISTREAM(SELECT DISTINCT "a".x AS \'y\', -1.5e3 % 2 FROM S[Rows 2] AS "a" UNION ALL SELECT NULL, 1 FROM S[Now])',
]
PARTS = [
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    "'",
    '"',
    ".",
    "*",
    "SELECT",
    "PATTERN",
    "[Now]",
    "FIRST(",
    "--",
    "\n",
    "é",
    "\0",
]
PARTS += [
    "UNION",
    "WITH",
    "AS",
    "OVER",
    "[Pattern By",
    "ISTREAM(",
    "1e999",
    "99999999999999999999",
    "NULL",
    "not",
    "x.y",
]


def attempt(text: str) -> None:
    try:
        qc.continuous(text, {**SCHEMAS, **examples.STREAMS}).explain()
    except qc.QueryError as e:
        assert e.code == "E703" or e.span is not None or e.code == "E001", str(e)  # noqa: PT017


def changed(text: str, random: Random) -> str:
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(text) + 1)
        end = min(len(text), at + random.randrange(8))
        match random.randrange(3):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:at] + random.choice(PARTS) + text[at:]
            case _:
                other = random.randrange(len(text) + 1)
                text = text[:at] + text[other : other + 20] + text[end:]
    return text


@pytest.mark.parametrize("seed", range(20))
def test_changed_queries(seed: int) -> None:
    random = Random(seed)
    for _ in range(20):
        attempt(changed(random.choice([*SEEDS, Draw(random).query()]), random))


@pytest.mark.parametrize(
    "text",
    [
        "(" * 40,
        "ISTREAM(" * 30 + ")" * 30,
        "ISTREAM(SELECT " + "-" * 200 + "1 FROM S[Now])",
        "ISTREAM(SELECT " + "not " * 500 + "TRUE AS x FROM S[Now])",
        "ISTREAM(SELECT " + " + ".join(["x"] * 3000) + " FROM S[Now])",
        "ISTREAM(SELECT x FROM S[Now] WHERE " + " OR ".join(["x = 1"] * 3000) + ")",
        "ISTREAM(" + " UNION ".join(["SELECT x FROM S[Now]"] * 500) + ")",
        "(PATTERN",
        "ISTREAM(SELECT x FROM (PATTERN) [Now])",
        "ISTREAM(SELECT x FROM (PATTERN PATTERN) [Now])",
        "ISTREAM(SELECT (PATTERN x) FROM S[Now])",
    ],
)
def test_odd_queries(text: str) -> None:
    attempt(text)


def test_a_long_condition_runs() -> None:
    text = "ISTREAM(SELECT a FROM S[Now] WHERE " + " OR ".join(f"a = {i}" for i in range(2000)) + ")"
    found = qc.continuous(text, SCHEMAS).run({"S": {"ts": [1, 2], "a": [1999, -1]}})
    assert list(found) == [{"ts": 1, "a": 1999}]

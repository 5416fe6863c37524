"""Trades: one question at several levels, answered together.

Does a fall of a computer maker's price come before a rise of a software house's? The sectors are concepts over the
tickers (E-Cube), so the same question can be asked of sectors and of single tickers, with and without an event between.
The cube computes each answer alone or from another, whatever is cheapest.
"""

from __future__ import annotations

from random import Random

import pyarrow as pa

import quercus as qc

SECTORS = {"Computer": ["DELL", "INTC", "AMAT"], "Software": ["MSFT", "ORCL"], "Internet": ["YHOO", "EBAY"]}
SCHEMA = qc.Schema({"change": "float64", "volume": "int64"}, time_unit="s", hierarchy=SECTORS)
QUERIES = {
    "sectors": "PATTERN SEQ(Computer a, Software b) WHERE a.change < -0.8 and b.change > 0.8 WITHIN 30 s",
    "tickers": "PATTERN SEQ(DELL a, MSFT b) WHERE a.change < -0.8 and b.change > 0.8 WITHIN 30 s",
    "unless": "PATTERN SEQ(DELL a, !Internet x, MSFT b) WHERE a.change < -0.8 and b.change > 0.8 WITHIN 30 s",
    "through": "PATTERN SEQ(DELL a, YHOO y, MSFT b) WHERE a.change < -0.8 and b.change > 0.8 WITHIN 30 s",
}


def stream(trades: int = 20_000) -> pa.Table:
    random = Random(5)
    tickers = [ticker for sector in SECTORS.values() for ticker in sector]
    return pa.table(
        {
            "ts": sorted(random.randrange(2 * trades) for _ in range(trades)),
            "type": random.choices(tickers, k=trades),
            "change": [round(random.uniform(-1, 1), 2) for _ in range(trades)],
            "volume": [random.randrange(1, 500) * 100 for _ in range(trades)],
        }
    )


def main() -> None:
    events, cube = stream(), qc.cube(QUERIES, SCHEMA)
    found = cube.run(events)
    for name, text in QUERIES.items():
        print(f"{len(found[name]):6,}  {name:8} {text.partition(' WHERE')[0]}")
    print(cube.explain())


if __name__ == "__main__":
    main()

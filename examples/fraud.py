"""Card fraud: a thief tries a card with a small sum, then buys in another country while the card still works.

A charge below 2, then within ten minutes three or more of above 200, all abroad, and no call of the owner's in between.
The stream: 50,000 charges of 2,000 cards, and four stolen ones, of which one was blocked in time.
"""

from __future__ import annotations

from random import Random

import pyarrow as pa

import quercus as qc

SCHEMA = qc.Schema(
    {"card": "int64", "amount": "float64", "country": "string"}, time="ts", type="type", time_unit="s", key="card"
)
QUERY = """
PATTERN SEQ(Charge test, !Blocked x, Charge+ big)
WHERE test.amount < 2 and big.amount > 200 and big.country <> test.country and count(big) >= 3
WITHIN 10 min
RETURN test.card AS card, test.ts AS tried, count(big) AS charges, round(sum(big.amount)) AS taken
"""
STOLEN = {100_001: 3, 100_002: 5, 100_003: 4}  # how often each was charged; 100004 was blocked after the first try


def stream() -> pa.Table:
    random = Random(11)
    events = []
    for _ in range(50_000):
        amount = round(random.expovariate(1 / 40), 2) + 2
        events.append((random.randrange(86_400), "Charge", random.randrange(2_000), amount, "NO"))
    for card, charges in {**STOLEN, 100_004: 4}.items():
        at = random.randrange(80_000)
        events.append((at, "Charge", card, 1.0, "NO"))
        if card == 100_004:
            events.append((at + 30, "Blocked", card, None, None))
        events += [(at + 60 + 45 * k, "Charge", card, 250.0 + k, "BR") for k in range(charges)]
    events.sort(key=lambda event: event[0])
    names = ("ts", "type", "card", "amount", "country")
    return pa.table(dict(zip(names, zip(*events, strict=True), strict=True)))


def main() -> None:
    events = stream()
    found = qc.compile(QUERY, SCHEMA).run(events)
    print(f"{events.num_rows:,} events, {len(found)} stolen cards:")
    for match in found.to_arrow().to_pylist():
        print("  card {card}: tried at {tried} s, then {charges} charges, {taken:,.0f} in all".format(**match))


if __name__ == "__main__":
    main()

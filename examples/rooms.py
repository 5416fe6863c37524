"""People in rooms, after the paper on pattern windows: how long it takes from the lab to home, and who goes straight.

A window opens at a person's last moment in the lab and closes when that person gets home; what lies between is a
relation, and SQL says what to do with it.
"""

from __future__ import annotations

from random import Random

import pyarrow as pa

import quercus as qc

AT = qc.Schema({"Person": "string", "Location": "string"}, type=None, time_unit="s")
QUERY = """
ISTREAM(
  SELECT FIRST(Person) AS Person, COUNT(*) - 2 AS stops, LAST(Timestamp) - FIRST(Timestamp) AS seconds
  FROM At[Pattern By (Location = 'Lab';
                      Person = FIRST(Person) AND Location = 'Home';
                      Person <> FIRST(Person) OR Location <> 'Lab';
                      Person = FIRST(Person))]
  HAVING COUNT(*) > 4)
"""


def stream(people: int = 40, steps: int = 25) -> pa.Table:
    random = Random(8)
    seen = []
    for n in range(people):
        at = random.randrange(3_600)
        for _ in range(steps):
            place = random.choices(("Lab", "Cafe", "Shop", "Library", "Home"), (3, 3, 2, 2, 1))[0]
            seen.append((at, f"person{n}", place))
            at += random.randrange(60, 1_800)
    seen.sort()
    return pa.table(dict(zip(("ts", "Person", "Location"), zip(*seen, strict=True), strict=True)))


def main() -> None:
    events = stream()
    query = qc.continuous(QUERY, {"At": AT})
    ways = query.run({"At": events})
    print(f"{events.num_rows:,} sightings, {len(ways)} long ways home:")
    for way in list(ways)[:5]:
        print("  at {ts}: {Person} made {stops} stops, {seconds} s from the lab".format(**way))


if __name__ == "__main__":
    main()

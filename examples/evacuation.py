"""Evacuation, after E-Cube: people with RFID tags are brought from Texas to Oklahoma. By which places do they come?

Stations are event types, and cities and states are concepts over them. The analyst begins with states, drills down to
cities, asks who was seen in Austin on the way, and has all levels in one table.
"""

from __future__ import annotations

from random import Random

import pyarrow as pa

import quercus as qc

PLACES = {
    "TX": {"Galveston": ["GBusStation", "GHospital"], "Dallas": ["DBusStation", "DHospital"], "Austin": ["AShelter"]},
    "OK": {"Tulsa": ["TBusStation", "THospital"]},
}
SCHEMA = qc.Schema({"person": "int64"}, time_unit="s", hierarchy=PLACES)
STATES = "PATTERN SEQ(TX, OK, [person]) WITHIN 2 days"


def stream(people: int = 500) -> pa.Table:
    """Each person is seen once in Galveston or Dallas, some then in Austin, and nearly all in Tulsa."""
    random = Random(2)
    seen = []
    for person in range(people):
        at = random.randrange(86_400)
        seen.append((at, random.choice(("GBusStation", "GHospital", "DBusStation", "DHospital")), person))
        if random.random() < 0.3:
            seen.append((at + 14_400, "AShelter", person))
        if random.random() < 0.9:
            seen.append((at + 43_200 + random.randrange(43_200), random.choice(("TBusStation", "THospital")), person))
    seen.sort()
    return pa.table(dict(zip(("ts", "type", "person"), zip(*seen, strict=True), strict=True)))


def journeys() -> qc.Cube:
    """From state to state, then from Dallas, and then whether Austin was on the way."""
    cube = qc.cube({"states": STATES}, SCHEMA)
    dallas = cube.concept_drill_down("states", [("TX", "Dallas", 1)], to="from Dallas")
    cube.pattern_drill_down(dallas, [("Austin", 2)], to="by Austin")
    cube.pattern_drill_down(dallas, [("!Austin", 2)], to="directly")
    return cube


def main() -> None:
    events, cube = stream(), journeys()
    found = cube.run(events)
    for name in cube.names:
        print(f"{len(found[name]):4}  {name}")
    print(cube.table("states", events, 1).to_pandas().to_string(index=False))


if __name__ == "__main__":
    main()

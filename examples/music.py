"""Music ratings, after FAEM: listeners of one track, and what they rate before and after it.

A rating of the first track, all ratings of the second in between, one of the third: Kleene sets are maximal, so that a
match has all of them. The tree is chosen by the planner from the data; `explain` says which and why.
"""

from __future__ import annotations

from random import Random

import pyarrow as pa

import quercus as qc

SCHEMA = qc.Schema({"stars": "int64"}, time_unit="s")
QUERY = """
PATTERN 147073 a; 56437+ b; 189820 c
WHERE b.stars >= a.stars and count(b) >= 3
WITHIN 600 EVENTS
RETURN a.ts AS began, count(b) AS ratings, avg(b.stars) AS stars, c.ts - a.ts AS seconds
"""
SHARES = {"147073": 5, "56437": 12, "189820": 4, "531386": 4, "others": 975}


def stream(ratings: int = 100_000) -> pa.Table:
    random = Random(4)
    return pa.table(
        {
            "ts": range(ratings),
            "type": random.choices(list(SHARES), list(SHARES.values()), k=ratings),
            "stars": random.choices(range(1, 6), k=ratings),
        }
    )


def main() -> None:
    events = stream()
    plan = qc.compile(QUERY, SCHEMA, stats=qc.Stats.collect(events))
    found = plan.run(events)
    print(f"{events.num_rows:,} ratings, {len(found):,} matches; the planner chose: {plan.tree.shape}")
    for match in found.to_arrow().slice(0, 3).to_pylist():
        print("  from {began}: {ratings} ratings of {stars:.1f} stars in {seconds} s".format(**match))


if __name__ == "__main__":
    main()

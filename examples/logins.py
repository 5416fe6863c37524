"""Failed logins, then success: somebody guessed a password.

Five or more failures of one user within ten minutes before a login that worked. The stream: a day of 400 users who
mistype now and then, and three accounts that were broken into.
"""

from __future__ import annotations

from random import Random

import pyarrow as pa

import quercus as qc

SCHEMA = qc.Schema({"user": "string", "address": "string"}, time="ts", type="type", time_unit="s")
QUERY = """
PATTERN SEQ(Failed+ f, Login s, [user])
WHERE count(f) >= 5
WITHIN 10 min
RETURN s.user AS user, count(f) AS failures, s.ts - first(f).ts AS seconds, s.address AS address
"""
BROKEN_INTO = {"user17": 6, "user230": 9, "user399": 14}


def stream() -> pa.Table:
    """Events in order of time; whose password was guessed, and how often it was tried, is in BROKEN_INTO."""
    random = Random(7)
    events = []
    for n in range(400):
        user, home = f"user{n}", f"10.0.{n // 256}.{n % 256}"
        for _ in range(random.randint(1, 4)):
            at = random.randrange(86_400)
            for mistake in range(random.choice((0, 0, 0, 1, 2))):
                events.append((at - 20 + mistake, "Failed", user, home))
            events.append((at, "Login", user, home))
        for attempt in range(tries := BROKEN_INTO.get(user, 0)):
            events.append((90_000 + n + 30 * attempt, "Failed", user, "203.0.113.9"))
        if tries:
            events.append((90_000 + n + 30 * tries, "Login", user, "203.0.113.9"))
    events.sort()
    return pa.table(dict(zip(("ts", "type", "user", "address"), zip(*events, strict=True), strict=True)))


def main() -> None:
    events = stream()
    found = qc.compile(QUERY, SCHEMA).run(events)
    print(f"{events.num_rows:,} events, {len(found)} accounts to look at:")
    for match in found.to_arrow().to_pylist():
        print("  {user}: {failures} failures in {seconds} s, then a login from {address}".format(**match))


if __name__ == "__main__":
    main()

"""A deployment, then errors, then a rollback: which releases were taken back, how soon, and how bad it was.

A deployment of a service, ten or more errors of that release, a rollback of the service; all within an hour, and no
other deployment before the first error. The stream: two weeks of 12 services, whose errors also come by themselves.
"""

from __future__ import annotations

from random import Random

import pyarrow as pa

import quercus as qc

SCHEMA = qc.Schema({"service": "string", "release": "string"}, time="ts", type="type", time_unit="s", key="service")
QUERY = """
PATTERN SEQ(Deploy d, !Deploy later, Error+ e, Rollback r)
WHERE e.release = d.release and count(e) >= 10
WITHIN 1 hour
RETURN d.service AS service, d.release AS release, count(e) AS errors, r.ts - d.ts AS seconds
"""
BAD = {("billing", "v4"), ("search", "v2"), ("search", "v9")}


def stream() -> pa.Table:
    random = Random(3)
    services = ("billing", "search", "mail", "login", "cart", "stock", "video", "chat", "maps", "ads", "jobs", "wiki")
    events = []
    for service in services:
        for n in range(1, 11):
            at, release = n * 100_000 + random.randrange(50_000), f"v{n}"
            events.append((at, "Deploy", service, release))
            # Some releases go wrong and are taken back; others only have errors now and then.
            if (service, release) in BAD:
                events += [(at + 60 + random.randrange(900), "Error", service, release) for _ in range(40)]
                events.append((at + 1_200, "Rollback", service, release))
            else:
                events += [(at + random.randrange(90_000), "Error", service, release) for _ in range(30)]
    events.sort()
    return pa.table(dict(zip(("ts", "type", "service", "release"), zip(*events, strict=True), strict=True)))


def main() -> None:
    events = stream()
    found = qc.compile(QUERY, SCHEMA).run(events)
    print(f"{events.num_rows:,} events, {len(found)} releases were taken back:")
    for match in found.to_arrow().to_pylist():
        print("  {service} {release}: {errors} errors, rolled back after {seconds} s".format(**match))


if __name__ == "__main__":
    main()

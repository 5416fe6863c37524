"""A live stream: a tool that was washed must be used or stored within 30 minutes, or someone should look for it.

The match waits until its half hour is over. In the middle the process is restarted: a snapshot carries the stream over.
"""

from __future__ import annotations

import pyarrow as pa

import quercus as qc

SCHEMA = qc.Schema({"id": "int64"}, time="ts", type="type", time_unit="s")
QUERY = "PATTERN SEQ(Wash w, !OR(Operate o, Store s), [id]) WITHIN 30 min RETURN w.id AS tool, w.ts AS washed"
MORNING = (
    "08:00 Wash 7, 08:05 Wash 9, 08:20 Operate 7, 08:31 Recycle 7, 08:36 Recycle 4, "
    "08:40 Wash 4, 08:45 Wash 7, 08:59 Store 4, 09:00 Recycle 9"
)


def seconds(clock: str) -> int:
    return int(clock[:2]) * 3600 + int(clock[3:]) * 60


def report(when: str, found: pa.Table) -> None:
    for m in found.to_pylist():
        hour, minute = divmod(m["washed"] // 60, 60)
        print(f"{when}: where is tool {m['tool']}, washed at {hour:02}:{minute:02}?")


def main() -> None:
    plan = qc.compile(QUERY, SCHEMA)
    stream = plan.stream(max_delay="1 min")
    for number, item in enumerate(MORNING.split(", ")):
        clock, kind, tool = item.split()
        decided = stream.push([{"ts": seconds(clock), "type": kind, "id": int(tool)}])
        report(clock, decided.to_arrow())
        if number == 3:
            state = stream.snapshot()
            print(f"{clock}: a snapshot of {len(state):,} bytes; a new process goes on from it")
            stream = plan.restore(state)
    report("held back until the end", stream.close().to_arrow())


if __name__ == "__main__":
    main()

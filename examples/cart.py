"""A cart without payment, live: who put something into the cart and neither paid nor emptied it within half an hour.

Nothing happens at the moment that matters: the match is decided when the half hour is over, by the clock alone. Only
the last thing that was put in counts: `Add again` among the negated leaves the others out.
"""

from __future__ import annotations

import quercus as qc

SCHEMA = qc.Schema({"session": "string", "item": "string"}, time="ts", type="type", time_unit="s")
QUERY = """
PATTERN SEQ(Add a, !OR(Pay p, Empty e, Add again), [session])
WITHIN 30 min
RETURN a.session AS session, a.item AS item, a.ts AS since
"""
EVENING = """
19:00 Add ann lamp    19:04 Add bob chair   19:10 Add ann bulb    19:15 Pay ann -
19:20 Add eve table   19:25 Empty eve -     19:28 Add dan book    19:40 Add eve vase
19:50 Visit zoe -     20:05 Visit zoe -     20:30 Visit zoe -
"""


def stream() -> list[dict[str, object]]:
    words = EVENING.split()
    return [
        {"ts": int(clock[:2]) * 3600 + int(clock[3:]) * 60, "type": kind, "session": session, "item": item}
        for clock, kind, session, item in zip(*(words[n::4] for n in range(4)), strict=True)
    ]


def clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds % 3600 // 60:02}"


def main() -> None:
    with qc.compile(QUERY, SCHEMA).stream() as carts:
        for event in stream():
            for left in carts.push([event]).to_arrow().to_pylist():
                print(f"{clock(event['ts'])}: remind {left['session']} of the {left['item']} of {clock(left['since'])}")
    for left in carts.final.to_arrow().to_pylist():
        print(f"at the end: remind {left['session']} of the {left['item']} of {clock(left['since'])}")


if __name__ == "__main__":
    main()

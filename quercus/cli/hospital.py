"""Hospital hygiene: a surgical tool went back into use without being sharpened, disinfected and checked.

`quercus demo` tells it: the query, the stream, the plan, the matches and why they are some.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from quercus.cli.terminal import bold
from quercus.compiler import compile
from quercus.errors import QuercusError
from quercus.plan import Plan
from quercus.schema import Schema

QUERY = """\
PATTERN SEQ(Recycle r, Wash w,
            !SEQ(Sharpen s, Disinfect d, Check c),
            Operate o, [id], o.instrument = 'surgical')
WITHIN 1 hour"""

SCHEMA = Schema({"id": "int64", "instrument": "string"}, time="ts", type="type", time_unit="s")

# Five tools on one morning. Times are seconds since midnight.
STORY = {
    (3, "surgical"): "07:40 Recycle, 07:45 Wash, 09:10 Operate",
    (5, "dental"): "08:01 Recycle, 08:06 Wash, 08:30 Operate",
    (7, "surgical"): "08:00 Recycle, 08:05 Wash, 08:12 Sharpen, 08:20 Disinfect, 08:31 Check, 08:40 Operate",
    (9, "surgical"): "08:10 Recycle, 08:14 Wash, 08:18 Disinfect, 08:24 Sharpen, 08:28 Check, 08:33 Operate",
    (12, "surgical"): "08:02 Recycle, 08:09 Wash, 08:15 Sharpen, 08:22 Disinfect, 08:35 Operate, 08:45 Check, "
    "08:50 Operate",
}
Event = dict[str, Any]
STEPS = ("Sharpen", "Disinfect", "Check")


def stream() -> list[Event]:
    """The events of all tools, in order of time."""
    events: list[Event] = []
    for (tool, instrument), story in STORY.items():
        for item in story.split(", "):
            time, kind = item.split()
            hours, minutes = map(int, time.split(":"))
            events.append({"ts": hours * 3600 + minutes * 60, "type": kind, "id": tool, "instrument": instrument})
    return sorted(events, key=lambda e: int(e["ts"]))


def clock(event: Event) -> str:
    return f"{event['ts'] // 3600:02}:{event['ts'] % 3600 // 60:02}"


def heading(text: str) -> str:
    return f"\n{bold(text)}\n{'-' * len(text)}"


def indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def table(events: list[Event]) -> str:
    """One row a moment, one column a tool."""
    tools = list(STORY)
    heads = [f"{tool} {instrument}" for tool, instrument in tools]
    width = max(map(len, heads)) + 2
    lines = ["time   " + "".join(h.ljust(width) for h in heads)]
    for event in events:
        cells = [event["type"] if event["id"] == tool else "." for tool, _ in tools]
        lines.append(f"{clock(event)}  " + "".join(str(c).ljust(width) for c in cells))
    return "\n".join(lines)


def reason(match: Any, events: list[Event]) -> str:
    """Why a match is a warning: what was done to the tool between the wash and the operation."""
    washed, used = events[match["w"]], events[match["o"]]
    between = [
        str(e["type"])
        for e in events
        if e["id"] == used["id"] and washed["ts"] < e["ts"] < used["ts"] and e["type"] in STEPS
    ]
    missing = [step for step in STEPS if step not in between]
    if missing:
        return f"there was no {' and no '.join(missing)} in between"
    return f"the steps were done in the order {', '.join(between)}"


def picture(plan: Plan, where: str) -> str:
    """Draw the plan, if there is something to draw with."""
    try:
        Path(where).parent.mkdir(parents=True, exist_ok=True)
        return f"The plan as a picture: {plan.render(where)}"
    except (QuercusError, OSError) as e:
        return f"No picture: {e}"


def tell(where: str | None) -> None:
    """The whole story; the picture goes to `where`."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # the tree's lines, on a terminal that cannot show them
    events = stream()
    plan = compile(QUERY, SCHEMA)
    found = plan.run(events)

    print(heading("The query"))
    print(indented(QUERY))
    print(heading(f"The stream: {len(events)} events of {len(STORY)} tools"))
    print(indented(table(events)))
    print(heading("The plan"))
    print(indented(plan.explain()))
    print(heading(f"The matches: {len(found)} warnings"))
    for match in found:
        recycled, washed, used = (events[match[v]] for v in ("r", "w", "o"))
        print(f"  Tool {used['id']}: recycled {clock(recycled)}, washed {clock(washed)}, back in use {clock(used)}.")
        print(f"    A warning, because {reason(match, events)}.")
    print()
    print("  No warning for tool 7: every step was done, in order. Tool 12 was checked before its second operation.")
    print("  No warning for tool 5: it is not surgical. Tool 3: more than an hour lies between.")
    if where is not None:
        print()
        print(picture(plan, where))

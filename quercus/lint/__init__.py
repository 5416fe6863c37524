"""What a query asks of these events in vain: `plan.check(events)`.

Each check is a function from a `Look` (the plan, its events, and questions that it can ask of the engine) to findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quercus.lint.finding import CODES, Finding
from quercus.lint.look import Look

if TYPE_CHECKING:
    from quercus.plan import Plan

__all__ = ["CODES", "Finding", "check"]


def check(plan: Plan, events: object) -> tuple[Finding, ...]:
    """What is wrong, or odd, about a query over these events: errors first, then in the order of the text."""
    from quercus.lint import negations, pairs, sizes, types, values, windows

    look = Look(plan, events)
    found = [*types.warned(look), *types.unknown(look)]
    for part in (values.nulls, values.conditions, windows.lengths, pairs.together, negations.idle, sizes.large):
        found += part(look)
    if not any(f.severity == "error" for f in found):
        found += sizes.nothing(look)
    return tuple(sorted(dict.fromkeys(found), key=Finding.order))

"""Types that the query names and the events do not have; what the compiler warns of."""

from __future__ import annotations

from collections.abc import Iterator

from quercus.errors import nearest
from quercus.lint.finding import Finding
from quercus.lint.look import Look


def warned(look: Look) -> Iterator[Finding]:
    for warning in look.plan.warnings:
        never = warning.startswith("no match is possible")
        yield look.finding("L001", "error" if never else "warning", warning)


def unknown(look: Look) -> Iterator[Finding]:
    for var, leaf in look.leaves.items():
        if look.count(leaf.type):
            continue
        hint = nearest(leaf.type, look.counts) or _listed(look)
        span = look.spans[var]
        if var in look.negated:
            what = "this branch of the negation" if var in look.branched else "what is negated"
            message = f"no event is a '{leaf.type}': {what} never happens"
            yield look.finding("L501", "warning", message, hint=hint, span=span)
        else:
            message = f"no event is a '{leaf.type}'"
            severity = "warning" if var in look.absent else "error"
            yield look.finding("L101", severity, message, hint=hint, span=span)  # type: ignore[arg-type]


def _listed(look: Look) -> str:
    if not look.counts:
        return "no event has a type" if len(look.table) else "there are no events"
    often = sorted(look.counts, key=lambda name: -look.counts[name])
    return "types: " + ", ".join(often[:8]) + (", ..." if len(often) > 8 else "")

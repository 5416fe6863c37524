"""Windows that leave nothing out."""

from __future__ import annotations

from collections.abc import Iterator

from quercus.ir import pattern as p
from quercus.ir import text
from quercus.lint.finding import Finding
from quercus.lint.look import Look


def lengths(look: Look) -> Iterator[Finding]:
    """A window as long as the whole stream, or an inner one no shorter than that around it."""
    n = len(look.ts)
    if not n:
        return
    outer = look.query.window
    if _covers(look, outer):
        whole = p.Window("time", int(look.ts[-1]) - int(look.ts[0]), look.schema.time_unit)
        length = f"{n:,} events" if outer.kind == "count" else text.window(whole)
        message = f"WITHIN {text.window(outer)} leaves nothing out: the whole stream is {length}"
        yield look.finding("L401", "note", message, span=outer.span)
    for node in p.walk(look.query.pattern):
        inner = None if isinstance(node, p.Leaf | p.Kleene | p.Not) else node.window
        if inner is not None and inner.kind == outer.kind and inner.size >= outer.size:
            message = f"WITHIN {text.window(inner)} is no shorter than that of the query: it leaves nothing out"
            yield look.finding("L401", "warning", message, span=inner.span)


def _covers(look: Look, window: p.Window) -> bool:
    if window.kind == "count":
        return window.size >= len(look.ts)
    return int(look.ts[-1]) - int(look.ts[0]) <= window.size

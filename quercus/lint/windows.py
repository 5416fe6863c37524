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
    yield from _inside(look, look.query.pattern, outer, "the query")


def _inside(look: Look, e: p.Pattern, outer: p.Window, whose: str) -> Iterator[Finding]:
    """Windows of sub-patterns, each beside the one around it."""
    inner = None if isinstance(e, p.Leaf | p.Kleene | p.Not) else e.window
    if inner is not None:
        said = f"WITHIN {text.window(inner)}"
        if inner.kind == outer.kind and inner.size >= outer.size:
            message = f"{said} is no shorter than that of {whose}: it leaves nothing out"
            yield look.finding("L401", "warning", message, span=inner.span)
        elif inner.kind != outer.kind and _covers(look, inner):
            yield look.finding("L401", "note", f"{said} leaves nothing out: the whole stream fits", span=inner.span)
        if inner.kind == outer.kind and inner.size < outer.size:
            outer, whose = inner, "what is around it"
    for part in p.parts(e):
        yield from _inside(look, part, outer, whose)


def _covers(look: Look, window: p.Window) -> bool:
    if window.kind == "count":
        return window.size >= len(look.ts)
    return int(look.ts[-1]) - int(look.ts[0]) <= window.size

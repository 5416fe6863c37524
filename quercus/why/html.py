"""A Why for notebooks and reports: tables without style of their own, all text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING

from quercus.why.words import listed, matches_told

if TYPE_CHECKING:
    from quercus.why.data import Failure, Funnel, Why

Row = tuple[object, ...]


def page(why: Why) -> str:
    return f'<div class="quercus-why">{"".join(_parts(why))}</div>'


def _parts(why: Why) -> Iterator[str]:
    yield f"<p><b>{escape(matches_told(why))}</b></p>"
    if why.impossible is not None:
        yield f"<p>no event can ever match: {escape(why.impossible)}</p>"
    if why.asked is not None:
        yield _titled(f"Asked for {listed(why.asked.events)}", "")
        if why.asked.is_match:
            yield "<p>this is a match</p>"
        yield _table(("requirement", "found", "smallest change"), _failures(why.asked.failures))
    for funnel in why.funnels:
        yield from _funnel(funnel)
    if why.obstacles:
        rows = [(o.what, o.stopped, "\n".join(o.examples)) for o in why.obstacles]
        yield _titled("What stopped them, each alone", _table(("requirement", "stopped", "for example"), rows))
    if why.misses:
        found = [(listed(m.events), *f) for m in why.misses for f in _failures(m.failures)]
        head = ("events", "requirement", "found", "smallest change")
        yield _titled("Nearest misses", _table(head, found))
    yield from (f"<p>note: {escape(note)}</p>" for note in why.notes)


def _funnel(funnel: Funnel) -> Iterator[str]:
    of = "" if funnel.reading is None else f", where the match binds {funnel.reading}"
    rows: list[Row] = []
    for c in funnel.components:
        rows.append((("!" if c.negated else "") + c.var, c.type, f"{c.events:,}", c.hint or ""))
        rows += [("", "", f"{p.passed:,}", p.condition) for p in c.conditions]
    yield _titled(f"Events{of}", _table(("variable", "type", "events", ""), rows))
    if funnel.stages:
        stages = [(", ".join(s.variables), s.count, s.what) for s in funnel.stages]
        yield _titled("Partial matches", _table(("of", "number", "with"), stages))
    if funnel.stopped is not None:
        yield f"<p>nothing is left at {escape(funnel.stopped)}</p>"


def _failures(failures: Iterable[Failure]) -> list[Row]:
    return [(f.what, f.found, f.change) for f in failures]


def _titled(title: str, body: str) -> str:
    return f"<h4>{escape(title)}</h4>{body}"


def _table(head: Row, rows: Iterable[Row]) -> str:
    def cells(row: Row, tag: str) -> str:
        made = (f"<{tag}>{escape(str(c)).replace(chr(10), '<br>')}</{tag}>" for c in row)
        return f"<tr>{''.join(made)}</tr>"

    return f"<table>{cells(head, 'th')}{''.join(cells(r, 'td') for r in rows)}</table>"

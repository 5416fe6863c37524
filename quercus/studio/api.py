"""What the page asks of the studio: plain data in, plain data out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

from quercus.compiler import SHAPES, compile
from quercus.compiler.explain import cut, facts, trace
from quercus.compiler.nested import STRATEGIES
from quercus.errors import DataError, QueryError
from quercus.plan import Plan
from quercus.schema import Schema
from quercus.show import tree as trees
from quercus.show.values import short
from quercus.stats import Stats
from quercus.studio.jobs import Jobs
from quercus.studio.source import Reading, Source
from quercus.studio.suggest import suggestions

MOST_ALTERNATIVES = 8
MOST_MATCHES, MOST_SECONDS = 1_000_000, 600
STATE = 2**30  # bytes of a join's internal buffers
KINDS = {"csv": "text/csv", "jsonl": "application/x-ndjson", "html": "text/html"}

Asked = dict[str, Any]


@frozen
class Download:
    """A file that is handed out once."""

    path: Path
    name: str
    type: str


class Api:
    """The requests of a page, by name."""

    def __init__(self, sources: tuple[Source, ...]) -> None:
        self.sources = sources
        self.jobs = Jobs()
        self.folder = tempfile.TemporaryDirectory(prefix="quercus-studio-")
        self.calls: dict[str, Callable[[Asked], dict[str, Any]]] = {
            "files": self.files,
            "columns": self.columns,
            "check": self.check,
            "suggest": self.suggest,
            "run": self.run,
            "poll": self.poll,
            "page": self.page,
            "cancel": self.cancel,
        }

    def close(self) -> None:
        self.jobs.end()
        self.folder.cleanup()

    # ---- files

    def files(self, asked: Asked) -> dict[str, Any]:
        """What the page begins with."""
        return {
            "files": [{"file": s.number, "name": Path(s.path).name, "path": s.path} for s in self.sources],
            "shapes": list(SHAPES),
            "nested": ["auto", *STRATEGIES],
        }

    def columns(self, asked: Asked) -> dict[str, Any]:
        return self._source(asked).facts()

    # ---- queries

    def check(self, asked: Asked) -> dict[str, Any]:
        """The plan of a query, or what is wrong with it and where."""
        schema, stats = self._read(asked)
        query = _text(asked, "query")
        known = {"types": sorted(schema.type_names() or ())}
        try:
            plan = _compiled(asked, schema, stats)
        except QueryError as e:
            return {**known, "error": _error(e, query)}
        return {**known, "plan": _plan(plan), "costs": dict(_costs(asked, schema, stats))}

    def suggest(self, asked: Asked) -> dict[str, Any]:
        schema, _ = self._read(asked)
        query, caret = _text(asked, "query"), asked.get("caret")
        if not isinstance(caret, int):
            raise DataError("caret: a whole number is needed")
        found = suggestions(query, _points(query, caret), schema)
        return {**found, "from": _units(query, found["from"]), "to": _units(query, found["to"])}

    # ---- runs

    def run(self, asked: Asked) -> dict[str, Any]:
        source, (schema, stats) = self._source(asked), self._read(asked)
        query = _text(asked, "query")
        try:
            _compiled(asked, schema, stats)
        except QueryError as e:
            return {"error": _error(e, query)}
        matches, seconds = (
            _number(asked, n, most) for n, most in (("matches", MOST_MATCHES), ("seconds", MOST_SECONDS))
        )
        request = {
            "do": "run",
            "query": query,
            "events": asdict(source.events),
            "schema": schema.to_dict(),
            "stats": None if stats is None else stats.to_json(),
            "shape": _text(asked, "shape"),
            "nested": _text(asked, "nested"),
            "limits": {"max_matches": matches, "max_seconds": seconds, "max_state_bytes": STATE},
        }
        return self.jobs.start(request).told()

    def poll(self, asked: Asked) -> dict[str, Any]:
        return self.jobs.get(asked.get("job")).told()

    def page(self, asked: Asked) -> dict[str, Any]:
        first, count = _number(asked, "from", 2**53), _number(asked, "count", 500)
        return self.jobs.get(asked.get("job")).process.ask({"do": "page", "from": first, "count": count})

    def cancel(self, asked: Asked) -> dict[str, Any]:
        job = self.jobs.get(asked.get("job"))
        job.cancel()
        job.thread.join(5)
        return job.told()

    def download(self, job: int, kind: str) -> Download:
        """The answer of a run as a file."""
        path = Path(self.folder.name) / f"{job}.{kind}"
        answer = self.jobs.get(job).process.ask({"do": "save", "path": str(path), "kind": kind})
        if "failed" in answer:
            raise DataError(answer["failed"])
        return Download(path, "report.html" if kind == "html" else f"matches.{kind}", KINDS[kind])

    # ---- what requests have in common

    def _source(self, asked: Asked) -> Source:
        number = asked.get("file")
        if not isinstance(number, int) or not 0 <= number < len(self.sources):
            raise DataError("no such file: the studio reads those that it was started with")
        return self.sources[number]

    def _read(self, asked: Asked) -> tuple[Schema, Stats | None]:
        return self._source(asked).read(Reading(_text(asked, "time"), _text(asked, "type"), _text(asked, "unit")))


def _text(asked: Asked, name: str) -> str:
    found = asked.get(name)
    if not isinstance(found, str):
        raise DataError(f"{name}: a text is needed")
    return found


def _number(asked: Asked, name: str, most: int) -> int:
    found = asked.get(name)
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= most:
        raise DataError(f"{name}: a whole number from 0 to {most:,} is needed")
    return found


def _compiled(asked: Asked, schema: Schema, stats: Stats | None, shape: str | None = None) -> Plan:
    chosen = _text(asked, "shape") if shape is None else shape
    return compile(_text(asked, "query"), schema, stats=stats, shape=chosen, nested=_text(asked, "nested"))


def _costs(asked: Asked, schema: Schema, stats: Stats | None) -> list[tuple[str, float]]:
    """What each shape would cost."""
    return [(s, _compiled(asked, schema, stats, s).tree.cost) for s in SHAPES]


def _plan(plan: Plan) -> dict[str, Any]:
    root = trees.cards(plan)
    listed = sorted(plan.alternatives(), key=lambda a: a.cost)[:MOST_ALTERNATIVES]
    return {
        "tree": trees.drawn(root, alone=False),
        "nodes": trees.details(root),
        "cost": plan.tree.cost,
        "shape": plan.tree.shape,
        "facts": [[name, short(value)] for name, value in facts(plan.tree, plan.schema.timestamp_unit)],
        "alternatives": [{"shape": short(a.shape), "cost": a.cost, "chosen": a.chosen} for a in listed],
        "considered": len(plan.alternatives()),
        "warnings": [short(w) for w in plan.warnings],
        "rules": [[step.rule, cut(step.law)] for step in trace(plan)],
    }


def _error(e: QueryError, query: str) -> dict[str, Any]:
    span = None
    if e.span is not None:
        start = min(e.span.start, len(query))
        span = [_units(query, start), _units(query, max(min(e.span.end, len(query)), start + 1))]
    return {"code": e.code, "message": e.message, "line": e.line, "column": e.column, "hint": e.hint, "span": span}


def _units(text: str, points: int) -> int:
    """A place in a text as scripts count it: a character beyond the first 65,536 is two."""
    return len(text[:points].encode("utf-16-le", "surrogatepass")) // 2


def _points(text: str, units: int) -> int:
    """The reverse."""
    cut_ = text.encode("utf-16-le", "surrogatepass")[: 2 * max(units, 0)]
    return len(cut_.decode("utf-16-le", "ignore"))

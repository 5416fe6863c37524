"""The files that a studio was started with: what their columns and types are, and what is known of their values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from quercus.backends.local import files
from quercus.backends.local.dialect import Files, as_files
from quercus.backends.local.infer import first_rows, infer_columns, refuse_dates, unit_of
from quercus.backends.local.inputs import as_table
from quercus.errors import DataError
from quercus.schema import Schema
from quercus.stats import Stats

MOST_TYPES = 500
KNOWN = 64 * 2**20  # bytes up to which a file is read for statistics
TIMES = ("ts", "time", "timestamp", "t", "date", "datetime")
TYPES = ("type", "event", "event_type", "kind", "name", "activity")


@frozen
class Reading:
    """How a file is read: the columns of time and type, and the unit of a time that is a number."""

    time: str
    type: str
    unit: str


@frozen(eq=False)
class Source:
    """One of the files (or globs) of a studio; pages know it by its number only."""

    number: int
    events: Files
    _schemas: dict[Reading, tuple[Schema, Stats | None]] = field(factory=dict, init=False, repr=False)

    @property
    def path(self) -> str:
        return ", ".join(self.events.paths)

    @cached_property
    def head(self) -> pa.Table:
        return first_rows(self.events, None)

    @property
    def columns(self) -> dict[str, str]:
        return {f.name: str(f.type) for f in self.head.schema}

    def facts(self) -> dict[str, Any]:
        """What a page shows of it, with a guess how it is to be read."""
        columns = self.columns
        timed = [n for n, t in columns.items() if t.startswith(("timestamp", "date"))]
        whole = [n for n, t in columns.items() if t.startswith(("int", "uint"))]
        named = [n for n, t in columns.items() if "string" in t or "dictionary" in t]
        text = named if self.events.time_format is not None else []
        time = _guess(TIMES, timed + whole + text)
        if time is not None and self.events.time_format is not None:
            columns = {**columns, time: "timestamp"}
        return {
            "file": self.number,
            "columns": [{"name": n, "type": t} for n, t in columns.items()],
            "time": time,
            "type": _guess(TYPES, [n for n in named if n != time]),
            "unit": (unit_of(self.head.column(time)) if time is not None else None) or "s",
        }

    def read(self, how: Reading) -> tuple[Schema, Stats | None]:
        """The schema, with the types that there are, and statistics of a file that is not too large."""
        if how not in self._schemas:
            self._schemas[how] = self._read(how)
        return self._schemas[how]

    def _read(self, how: Reading) -> tuple[Schema, Stats | None]:
        for name in (how.time, how.type):
            if name not in self.columns:
                raise DataError(f"no column '{name}' in this file", column=name)
        if self.events.time_format is None:
            refuse_dates(self.head.column(how.time), how.time)
        attributes = infer_columns(self.events, how.time, how.type)
        for taken, column in (("ts", how.time), ("type", how.type)):  # a column that would hide v.ts or v.type
            if taken != column:
                attributes.pop(taken, None)
        plain = Schema(attributes, time=how.time, type=how.type, time_unit=how.unit)
        small = sum(p.stat().st_size for p in files.find(self.events)) <= KNOWN
        table = as_table(self.events, plain, None if small else frozenset())
        kinds = pc.unique(table.column(how.type).cast(pa.string())).drop_null().to_pylist()
        types = kinds if len(kinds) <= MOST_TYPES else None
        schema = Schema(attributes, time=how.time, type=how.type, time_unit=how.unit, types=types)
        stats = Stats.collect(table, time=how.time, type=how.type) if small and len(table) else None
        return schema, stats


def _guess(names: Sequence[str], there: list[str]) -> str | None:
    by_fold = {n.casefold(): n for n in reversed(there)}
    return next((by_fold[n] for n in names if n in by_fold), there[0] if there else None)


def sources(given: str | Path | Files | Sequence[str | Path | Files]) -> tuple[Source, ...]:
    """The files, found once: a page can name no other."""
    listed = [given] if isinstance(given, str | Path | Files) else list(given)
    if not listed:
        raise DataError("the studio needs a file of events: Parquet, CSV, JSON Lines or Arrow")
    found = []
    for number, path in enumerate(listed):
        files.find(path)  # says what is wrong with it
        found.append(Source(number, as_files(path)))
    return tuple(found)

"""`q.stream()`: a continuous query over streams that have no end yet."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from quercus.backends.base import Limits
from quercus.backends.local.continuous import saved
from quercus.backends.local.continuous.live import BEGIN, Inbox, Pattern, Standing, empty, in_order
from quercus.backends.local.continuous.relations import NEVER
from quercus.backends.local.continuous.run import needs, output_schema
from quercus.backends.local.events import Events, load
from quercus.errors import DataError, OutOfOrder, nearest
from quercus.ir import window as w
from quercus.result import Tuples
from quercus.schema import Schema

if TYPE_CHECKING:
    from quercus.cql import Continuous


class ContinuousStream:
    """Push tuples as they come, stream by stream in order of time; each push gives the rows that are now certain.

    A row is certain when every stream is past its time: it has a later tuple, or `advance` says that none before that
    time will come. Made by `Continuous.stream()`; leaving the `with` block ends the streams.
    """

    def __init__(self, query: Continuous, limits: Limits | None = None) -> None:
        self.query, self.limits = query, limits or Limits()
        self.schemas = _narrowed(query)
        self.clocks: dict[str, int] = dict.fromkeys(self.schemas, BEGIN)
        known: dict[w.Stream, Schema] = {w.Given(n): s for n, s in self.schemas.items()}
        self.queries: list[tuple[w.Named | None, Standing]] = []
        self.patterns: dict[w.Matched, Pattern] = {}
        for name, one in (*query.query.named, ("", query.query.query)):
            for select in w.selects(one.relation):
                for source in select.sources:
                    if isinstance(source.stream, w.Matched):
                        self._add_pattern(source.stream, known)
            self.queries.append((w.Named(name) if name else None, Standing(one, known, query.clock, self.limits)))
            if name:
                known[w.Named(name)] = output_schema(one.columns, query.clock)
        self.readers: dict[w.Stream, list[Inbox]] = {}
        for _, standing in self.queries:
            for inboxes in standing.inboxes:
                for stream, inbox in inboxes:
                    self.readers.setdefault(stream, []).append(inbox)
        for pattern in self.patterns.values():
            for part, inbox in pattern.inboxes.items():
                self.readers.setdefault(part, []).append(inbox)
        self._final: Tuples | None = None
        self._closed = False
        self._failed = False

    def _add_pattern(self, stream: w.Matched, known: dict[w.Stream, Schema]) -> None:
        plan = self.query.patterns[stream.number]
        self.patterns[stream] = Pattern(stream, plan, known, self.query.clock, self.limits)
        known[stream] = self.patterns[stream].schema

    # tuples

    @property
    def clock(self) -> int | None:
        """The time before which everything is certain, in the unit of the time columns; None at the start."""
        reached = self.queries[-1][1].clock
        return None if reached == BEGIN else reached

    def push(self, streams: Mapping[str, Any]) -> Tuples:
        """Take in tuples of some streams, one or many; gives the rows that are now certain.

        Bad tuples, or tuples out of order, are errors that leave everything as it was.
        """
        self._check_open()
        if not isinstance(streams, Mapping):
            raise DataError(f"streams are given as {{name: events}}, not as a {type(streams).__name__}")
        loaded: dict[str, Events] = {}
        for name, given in streams.items():
            schema = self._schema(name)
            if schema is not None:
                loaded[name] = self._loaded(name, given, schema)
        for name, events in loaded.items():
            if len(events):
                table = in_order(events)
                for inbox in self.readers.get(w.Given(name), ()):
                    inbox.add(table)
                self.clocks[name] = max(self.clocks[name], int(events.ts[-1]))
        return self._step()

    def _loaded(self, name: str, given: Any, schema: Schema) -> Events:
        events = load(given, schema)
        if len(events) and events.ts[0] < self.clocks[name]:
            row = 0 if events.rows is None else int(events.rows[0])
            raise OutOfOrder(
                f"stream '{name}', row {row}: a tuple of time {events.ts[0]} comes after {self.clocks[name]}",
                column=schema.time,
                row=row,
            )
        return events

    def _schema(self, name: str) -> Schema | None:
        """That of a stream, as far as the query reads it; None: it does not read it."""
        if name not in self.query.schemas:
            known = list(self.query.schemas)
            raise DataError(f"no stream '{name}': {nearest(name, known) or ', '.join(known)}")
        return self.schemas.get(name)

    def advance(self, time: int | Mapping[str, int]) -> Tuples:
        """No tuple before this time will come, in any stream, or in those named: gives what that makes certain."""
        self._check_open()
        named = time if isinstance(time, Mapping) else dict.fromkeys(self.schemas, time)
        for name, ts in named.items():
            self._schema(name)
            if type(ts) is not int or not BEGIN < ts < NEVER:
                raise DataError(f"the clock cannot be {ts!r}: give an integer, a time in the unit of the time column")
        for name, ts in named.items():
            if name in self.clocks:
                self.clocks[name] = max(self.clocks[name], ts)
        return self._step()

    def _step(self) -> Tuples:
        self._failed = True  # unless it comes to its end
        clocks: dict[w.Stream, int] = {w.Given(name): ts for name, ts in self.clocks.items()}
        found = empty(self.query.schema)
        for name, standing in self.queries:
            streams = [stream for inboxes in standing.inboxes for stream, _ in inboxes]
            for stream in streams:
                if isinstance(stream, w.Matched) and stream not in clocks:
                    matches, clocks[stream] = self.patterns[stream].step(min(clocks[s] for s in stream.streams))
                    self._deliver(stream, matches)
            clock = min(clocks[s] for s in streams)
            if clock > standing.clock:
                found = standing.step(clock)
            else:
                found = empty(output_schema(standing.query.columns, self.query.clock))
            if name is not None:
                clocks[name] = clock
                self._deliver(name, found)
        self._failed = False
        return Tuples(found)

    def _deliver(self, stream: w.Stream, tuples: pa.Table) -> None:
        for inbox in self.readers.get(stream, ()):
            inbox.add(tuples)

    # the end

    def close(self) -> Tuples:
        """No more tuples: gives the rest, as leaving the `with` block does. `final` has it afterwards."""
        if not self._closed:
            self._check_open()
            self.clocks = dict.fromkeys(self.clocks, NEVER)
            self._final = self._step()
            self._closed = True
        return self.final

    @property
    def final(self) -> Tuples:
        """What was not certain until the streams ended."""
        if self._final is None:
            raise DataError("the stream was left on an error" if self._closed else "the stream is open: close it first")
        return self._final

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise DataError("the stream is closed: open another one, or restore a snapshot")
        if self._failed:
            raise DataError("the stream failed in the midst of a push: restore a snapshot of before")

    # snapshots

    def snapshot(self) -> bytes:
        """The state: what windows hold, and what waits for its turn. `Continuous.restore` goes on from it."""
        self._check_open()
        parts: list[pa.Table | bytes] = []
        sizes: list[int] = []
        nodes: list[Standing | Pattern] = [*(s for _, s in self.queries), *self.patterns.values()]
        for node in nodes:
            own = node.state()
            parts += own
            sizes.append(len(own))
        facts = {
            "clocks": self.clocks,
            "nodes": [node.clock for node in nodes],
            "started": [s.started for _, s in self.queries],
            "sizes": sizes,
        }
        return saved.write(facts, parts, saved.identity(self.query.text, self.query.schemas))

    @classmethod
    def restore(cls, query: Continuous, data: bytes, limits: Limits | None = None) -> Self:
        facts, parts = saved.read(data, saved.identity(query.text, query.schemas))
        made = cls(query, limits)
        nodes: list[Standing | Pattern] = [*(s for _, s in made.queries), *made.patterns.values()]
        try:
            made.clocks = {name: int(facts["clocks"][name]) for name in made.clocks}
            at = 0
            for i, node in enumerate(nodes):
                own = parts[at : at + facts["sizes"][i]]
                at += len(own)
                if isinstance(node, Standing):
                    node.restore(int(facts["nodes"][i]), bool(facts["started"][i]), own)
                else:
                    node.restore(int(facts["nodes"][i]), own)
        except (pa.ArrowException, KeyError, IndexError, TypeError, ValueError, AssertionError, StopIteration) as e:
            raise DataError(f"not a snapshot of a continuous query: {type(e).__name__}") from e
        return made


def _narrowed(query: Continuous) -> dict[str, Schema]:
    """The streams that a query reads, each with the columns that it reads of it."""
    found: dict[str, Schema] = {}
    for name, columns in needs(query.query, query.patterns).items():
        whole = query.schemas[name]
        attributes: dict[str, str] = {n: k for n, k in whole.columns().items() if n in columns}
        if whole.time_is_timestamp:
            attributes[whole.time] = f"timestamp[{whole.time_unit}]"
        found[name] = Schema(
            attributes,
            time=whole.time,
            type=whole.type if "type" in columns and whole.type else None,
            time_unit=whole.time_unit,
            ties=whole.ties,
        )
    return found

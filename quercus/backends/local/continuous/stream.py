"""`q.stream()`: a continuous query over streams that have no end yet."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from quercus.backends.base import Limits
from quercus.backends.local.continuous import saved
from quercus.backends.local.continuous.arrivals import (
    BEGIN,
    Arrivals,
    Arrived,
    Delays,
    Late,
    arrivals_of,
    empty,
    in_order,
)
from quercus.backends.local.continuous.live import Inbox, Pattern, Patterned, Standing, Watch
from quercus.backends.local.continuous.relations import NEVER
from quercus.backends.local.continuous.run import needs, output_schema
from quercus.backends.local.events import Events, load
from quercus.errors import DataError, LimitExceeded, nearest
from quercus.ir import window as w
from quercus.result import Tuples
from quercus.schema import Schema

if TYPE_CHECKING:
    from quercus.cql import Continuous


class ContinuousStream:
    """Push tuples as they come, stream by stream in order of time; each push gives the rows that are now certain.

    A row is certain when every stream is past its time: it has a later tuple, or `advance` says that none before that
    time will come. Made by `Continuous.stream()`; leaving the `with` block ends the streams. An error, or a limit that
    is reached, leaves everything as it was.
    """

    def __init__(
        self, query: Continuous, limits: Limits | None = None, *, max_delay: Delays = None, late: Late = "error"
    ) -> None:
        self.query, self.limits = query, Limits.of(limits)
        self.schemas = _narrowed(query)
        self.arrivals = arrivals_of(self.schemas, list(query.schemas), max_delay, late)
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
        watched: dict[w.Stream, list[Patterned]] = {}
        for _, standing in self.queries:
            for stream, window in zip(standing.streams, standing.every(), strict=True):
                if isinstance(window, Patterned):
                    watched.setdefault(stream, []).append(window)
                else:
                    self.readers.setdefault(stream, []).append(window.inbox)
        for pattern in self.patterns.values():
            for part, inbox in pattern.inboxes.items():
                self.readers.setdefault(part, []).append(inbox)
        self.watches = {stream: Watch(known[stream], own, self.limits) for stream, own in watched.items()}
        self._final: Tuples | None = None
        self._closed = False

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

        An error, or a limit that is reached, leaves everything as it was.
        """
        self._check_open()
        if not isinstance(streams, Mapping):
            raise DataError(f"streams are given as {{name: events}}, not as a {type(streams).__name__}")
        arrived = [
            (self.arrivals[name], self.arrivals[name].push(given))
            for name, given in streams.items()
            if self._schema(name) is not None
        ]
        return self._stepped(arrived)

    @property
    def dropped(self) -> int:
        """How many tuples came too late, of streams with late='drop'."""
        return sum(a.now.dropped for a in self.arrivals.values())

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
        moved = [(self.arrivals[n], self.arrivals[n].advance(ts)) for n, ts in named.items() if n in self.arrivals]
        return self._stepped(moved)

    def _stepped(self, arrived: list[tuple[Arrivals, tuple[Events, Arrived]]]) -> Tuples:
        """Take in what has arrived, or go back to how everything was."""
        parts: list[Watch | Standing | Pattern] = [*self.watches.values(), *self._nodes()]
        before = [part.memento() for part in parts]
        arrivals = [(one, one.now) for one, _ in arrived]
        try:
            for one, (events, now) in arrived:
                one.now = now
                self._deliver(w.Given(one.name), events)
            self._check_state()
            return Tuples(self._step())
        except BaseException:
            for one, was in arrivals:
                one.now = was
            for part, memento in zip(parts, before, strict=True):
                part.revert(memento)
            raise

    def _check_state(self) -> None:
        """What waits for its turn counts as well."""
        most = self.limits.max_state_bytes
        held = sum(a.bytes for a in self.arrivals.values())
        if most is not None and held > most:
            raise LimitExceeded(
                f"tuples that wait for their turn hold {held:,} bytes, more than {most:,}: allow a shorter max_delay, "
                "or raise Limits(max_state_bytes=)",
                limit="max_state_bytes",
                value=most,
            )

    def _step(self) -> pa.Table:
        clocks: dict[w.Stream, int] = {w.Given(name): one.clock for name, one in self.arrivals.items()}
        found = empty(self.query.schema)
        for name, standing in self.queries:
            for stream in standing.streams:
                if isinstance(stream, w.Matched) and stream not in clocks:
                    matches, clocks[stream] = self.patterns[stream].step(min(clocks[s] for s in stream.streams))
                    self._deliver(stream, load(matches, self.patterns[stream].schema))
            clock = min(clocks[s] for s in standing.streams)
            schema = output_schema(standing.query.columns, self.query.clock)
            found = standing.step(clock) if clock > standing.clock else empty(schema)
            if name is not None:
                clocks[name] = clock
                self._deliver(name, load(found, schema))
        return found

    def _deliver(self, stream: w.Stream, events: Events) -> None:
        for inbox in self.readers.get(stream, ()):
            inbox.add(in_order(events))
        if stream in self.watches:
            self.watches[stream].push(events)

    # the end

    def close(self) -> Tuples:
        """No more tuples: gives the rest, as leaving the `with` block does. `final` has it afterwards."""
        if not self._closed:
            self._check_open()
            self._final = self._stepped([(one, one.advance(NEVER)) for one in self.arrivals.values()])
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

    # snapshots

    def snapshot(self) -> bytes:
        """The state: what windows hold, and what waits for its turn. `Continuous.restore` goes on from it."""
        self._check_open()
        parts: list[pa.Table | bytes] = []
        sizes: list[int] = []
        nodes = self._nodes()
        for node in nodes:
            own = node.state()
            parts += own
            sizes.append(len(own))
        parts += [watch.stream.snapshot() for watch in self.watches.values()]
        parts += [one.state() for one in self.arrivals.values()]
        facts = {
            "streams": {name: one.facts() for name, one in self.arrivals.items()},
            "nodes": [node.clock for node in nodes],
            "started": [s.started for _, s in self.queries],
            "sizes": sizes,
        }
        return saved.write(facts, parts, saved.identity(self.query.text, self.query.schemas))

    def _nodes(self) -> list[Standing | Pattern]:
        return [*(s for _, s in self.queries), *self.patterns.values()]

    @classmethod
    def restore(cls, query: Continuous, data: bytes, limits: Limits | None = None) -> Self:
        facts, parts = saved.read(data, saved.identity(query.text, query.schemas))
        try:
            streams = facts["streams"]
            made = cls(
                query,
                limits,
                max_delay={name: one["delay"] for name, one in streams.items()},
                late={name: one["late"] for name, one in streams.items()},
            )
            left = iter(parts)
            for i, node in enumerate(made._nodes()):
                own = [next(left) for _ in range(facts["sizes"][i])]
                if isinstance(node, Standing):
                    node.restore(int(facts["nodes"][i]), bool(facts["started"][i]), own)
                else:
                    node.restore(int(facts["nodes"][i]), own)
            for watch in made.watches.values():
                state = next(left)
                assert isinstance(state, bytes)
                watch.stream.resume(state)
            for name, one in made.arrivals.items():
                table = next(left)
                assert isinstance(table, pa.Table)
                one.restore(streams[name], table)
        except (
            *(pa.ArrowException, KeyError, IndexError, TypeError, ValueError, AttributeError),
            *(AssertionError, StopIteration, RuntimeError),
        ) as e:
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

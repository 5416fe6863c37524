"""What is computed of a stream for its pattern windows, once however many of them ask for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from quercus.backends.local.events import Events
from quercus.backends.local.expressions import evaluate, true_mask
from quercus.backends.local.fill import labels, numbers, sorted_texts, valid
from quercus.backends.local.specs import ColumnData, Index
from quercus.backends.local.values import Mask, Values
from quercus.backends.local.windows.conditions import Key
from quercus.backends.local.windows.keyed import Keys, Part, part_of
from quercus.backends.local.windows.program import Programs
from quercus.ir import expr as x
from quercus.ir.window import HERE

_NONE = np.empty(0, np.int64)
_MOST_TEXTS = 1000  # that are looked for at once


class Columns:
    """Conditions, values, keys and ties of the tuples of a stream, by position."""

    def __init__(self, events: Events, asked: Iterable[x.Expr] = (), keys: Keys | None = None) -> None:
        """`asked`: conditions that will be. What they compare strings with is looked for in one go.

        `keys`: those that have numbers already.
        """
        self.events = events
        self.keys = Keys() if keys is None else keys
        self._made: dict[Hashable, Any] = {}
        self._texts: dict[str, dict[str, None]] = {}  # of each attribute
        for attr, text in (c for e in asked for n in x.walk(e) if (c := _text_compared(n)) is not None):
            self._texts.setdefault(attr, {})[text] = None

    def __len__(self) -> int:
        return len(self.events)

    def mask(self, e: x.Expr) -> Mask:
        """Where a condition on the tuple alone is true."""
        return self._once(("mask", e), lambda: self._in_order(self._true(e)))  # type: ignore[no-any-return]

    def values(self, e: x.Expr) -> Values:
        """The values of an expression over the tuple alone."""

        def make() -> Values:
            found = self._given(e)
            return found if self.events.rows is None else found.take(self.events.rows)

        return self._once(("values", e), make)  # type: ignore[no-any-return]

    def _given(self, e: x.Expr) -> Values:
        """The same in the order of the input."""
        return self._once(("given", e), lambda: evaluate(e, self._column, len(self)))  # type: ignore[no-any-return]

    def ends(self) -> Index:
        """For each tuple the position of the first later one; nothing where that is the next one everywhere."""

        def make() -> Index:
            ts = self.events.ts
            if self.by_arrival or not (ts[1:] == ts[:-1]).any():
                return _NONE
            last = np.append(np.flatnonzero(ts[1:] != ts[:-1]), len(ts) - 1) + 1  # where the tuples of a time end
            return np.repeat(last, np.diff(last, prepend=0))

        return self._once("ends", make)  # type: ignore[no-any-return]

    @property
    def by_arrival(self) -> bool:
        """Whether of tuples of one time, the one that came later is later."""
        return self.events.schema.ties == "arrival"

    def missing(self, parts: tuple[x.Expr, ...]) -> Mask | None:
        """Where a part of a key is null or NaN; None: nowhere."""
        found: list[Mask] = []
        for part in parts:
            v = self._given(part)
            if v.valid is not None:
                found.append(self._in_order(~v.valid))
            if v.kind == "float64":
                found.append(self._in_order(np.isnan(v.data)))
        return reduce(np.logical_or, found) if found else None

    def codes(self, parts: tuple[x.Expr, ...], space: tuple[Key, ...], at: Index) -> Index:
        """The numbers of keys at some positions, equal where keys are, in one `space`; -1 where a part is missing."""
        if not parts:
            return np.zeros(len(at), np.int64)
        return self.keys.table(space).codes(self._parts(parts), self.events.input_rows(at))

    def learn(self, parts: tuple[x.Expr, ...], space: tuple[Key, ...], at: Sequence[Index]) -> None:
        """Windows that have a key in common will ask for it at these positions: it is looked up once."""
        asked = np.zeros(len(self), np.bool_)
        for positions in at:
            asked[positions] = True
        once = np.flatnonzero(asked)
        known = np.empty(len(self), np.int64)
        known[once] = self.codes(parts, space, once)
        self._made["codes", parts, space] = known

    def _parts(self, parts: tuple[x.Expr, ...]) -> list[Part]:
        return [self._once(("part", p), partial(lambda p: part_of(self._given(p)), p)) for p in parts]

    def groups(self, keys: tuple[Key, ...], at: Index, starts: Mask) -> tuple[Index, Index]:
        """The codes of the tuples at some positions, and of windows that open there, where `starts` says so.

        Below 0: none. Only windows make keys known: a tuple whose key none has touches none.
        """
        here, home = tuple(k.here for k in keys), tuple(k.first for k in keys)
        if keys and here == home and ("codes", here, keys) not in self._made:
            rows = self.events.input_rows(at)
            codes = self.keys.table(keys).find_or_add(self._parts(here), rows, starts.view(np.uint8))
        else:
            codes = self._learnt(here, keys, at)
        return codes, codes if here == home else self._learnt(home, keys, at)

    def _learnt(self, parts: tuple[x.Expr, ...], space: tuple[Key, ...], at: Index) -> Index:
        known = self._made.get(("codes", parts, space))
        return self.codes(parts, space, at) if known is None else known[at]

    def filled(self, programs: Programs) -> tuple[list[ColumnData], Index]:
        """The columns and constants that programs read; strings as ranks of one sorted list."""
        program = programs.program
        values = [self.values(c.expr) for c in programs.columns]
        found = [v.data for c, v in zip(programs.columns, values, strict=True) if c.text]
        known = sorted_texts([*found, [s for _, s in program.texts]]) if found or program.texts else None
        columns = [
            (labels(v.data, known), valid(v)) if c.text else numbers(c, v)
            for c, v in zip(programs.columns, values, strict=True)
        ]
        constants = np.array(program.const_i, np.int64)
        for number, s in program.texts:
            constants[number] = labels([s], known)[0]
        return columns, constants

    def _true(self, e: x.Expr) -> Mask:
        """In the order of the input. `and`, `or` and `<>` are put together from what they are made of."""
        return self._once(("true", e), lambda: self._made_true(e))  # type: ignore[no-any-return]

    def _made_true(self, e: x.Expr) -> Mask:
        match e:
            case x.Logic():
                both = np.logical_and if e.op == "and" else np.logical_or
                return reduce(both, (self._true(i) for i in e.items))
            case x.Compare("<>", left, right) if "null" not in (left.type, right.type):
                differs = ~self._true(x.Compare("=", left, right))
                return reduce(np.logical_and, (self._known(side) for side in (left, right)), differs)
            case x.Compare("=") if (compared := _text_compared(e)) is not None and self._is_asked(*compared):
                return self._equal(*compared)
            case _:
                return true_mask(e, self._column, len(self))

    def _is_asked(self, attr: str, text: str) -> bool:
        return text in self._texts.get(attr, {}) and len(self._texts[attr]) < _MOST_TEXTS

    def _equal(self, attr: str, text: str) -> Mask:
        """Where a string attribute is this text."""
        texts = list(self._texts[attr])
        found = self._once(("rows", attr), lambda: self.events.rows_of(attr, texts))
        mask = np.zeros(len(self), np.bool_)
        mask[found[texts.index(text)]] = True
        return mask

    def _known(self, e: x.Expr) -> Mask | np.bool_:
        """Where a value is not null."""
        if isinstance(e, x.Const) and e.value is not None and not isinstance(e.value, int):
            return np.True_
        if isinstance(e, x.Column):
            found = self._column(e).valid
            return np.True_ if found is None else found
        return self._true(x.IsNull(e, True))

    def _column(self, c: x.Column) -> Values:
        return self.events.column(c.attr)

    def _in_order(self, found: Mask) -> Mask:
        return found if self.events.rows is None else found[self.events.rows]

    def _once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def _text_compared(e: x.Expr) -> tuple[str, str] | None:
    """(attribute, text), where a string attribute of the tuple at hand is compared with a text by = or <>."""
    if isinstance(e, x.Compare) and e.op in ("=", "<>"):
        for column, constant in ((e.left, e.right), (e.right, e.left)):
            is_text = isinstance(constant, x.Const) and isinstance(constant.value, str)
            if is_text and isinstance(column, x.Column) and column.var == HERE and column.attr not in ("ts", "type"):
                return column.attr, constant.value  # type: ignore[union-attr, return-value]
    return None

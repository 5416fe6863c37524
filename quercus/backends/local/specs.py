"""What `kernels.match.Matcher` reads: buffers, slots, levels, sets, negations and code, as plain lists and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

Index = NDArray[np.int64]


@frozen(eq=False)
class BufferData:
    """A leaf buffer's events in stream order (key by key where there is a key)."""

    ts: Index
    pos: Index
    row: Index  # the position in the whole stream: who the event is
    codes: Index | None  # of the key


@frozen
class Name:
    """What a variable of an alternative is to the matcher."""

    var: str
    buffer: int
    slots: tuple[int, ...]  # of a plain variable or of [n]
    set: int | None  # of a Kleene variable
    element: int | None  # the slot through which a set's elements pass


@define
class WindowSpec:
    count: bool
    size: int
    slots: list[int]
    sets: list[int]


@define
class SetSpec:
    slot: int
    least: int
    slots: list[int]
    after: list[int] = field(factory=list)
    before: list[int] = field(factory=list)
    distinct: list[int] = field(factory=list)
    preds: list[int] = field(factory=list)
    windows: list[int] = field(factory=list)


@define
class LevelSpec:
    slot: int
    previous: int
    after: list[int] = field(factory=list)
    before: list[int] = field(factory=list)
    distinct: list[int] = field(factory=list)
    preds: list[int] = field(factory=list)
    negations: list[int] = field(factory=list)
    reach: list[tuple[int, list[int]]] = field(factory=list)


@define
class NegationSpec:
    left: int
    right: int
    after: list[tuple[list[int], list[int]]]
    before: list[tuple[list[int], list[int]]]
    bodies: list[int]
    exclude_slots: list[int]
    exclude_sets: list[int]


@define
class FlatSpec:
    root: bool
    levels: list[LevelSpec] = field(factory=list)
    sets: list[int] = field(factory=list)
    counted: list[int] = field(factory=list)
    negations: list[int] = field(factory=list)
    tests: list[int] = field(factory=list)
    outs: list[int] = field(factory=list)
    out_sets: list[int] = field(factory=list)
    slots: list[int] = field(factory=list)
    pairs: list[tuple[int, int, int, int, int]] = field(factory=list)
    chain: int | None = None  # the window of a SEQ of plain components, which needs no search
    limits: list[tuple[int, int]] = field(factory=list)  # of a chain: (component, buffer of the leaf negated after it)
    natural: bool = False  # matches come out in the order of the answer
    variables: list[str] = field(factory=list)  # of outs
    set_variables: list[str] = field(factory=list)  # of out_sets


@define
class Program:
    """Everything `kernels.match.Matcher` reads."""

    by_arrival: bool
    count_window: bool
    window_size: int
    buffers: list[BufferData] = field(factory=list)
    slots: list[int] = field(factory=list)
    windows: list[WindowSpec] = field(factory=list)
    sets: list[SetSpec] = field(factory=list)
    negations: list[NegationSpec] = field(factory=list)
    flats: list[FlatSpec] = field(factory=list)
    code: list[int] = field(factory=list)
    preds: list[tuple[int, int, int]] = field(factory=list)
    columns: list[tuple[Any, Any]] = field(factory=list)
    const_i: list[int] = field(factory=list)
    const_f: list[float] = field(factory=list)

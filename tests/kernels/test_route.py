"""Routing by type: the kernel and its twin over the buffers of real Arrow arrays, whole, sliced and with nulls."""

import ctypes
import doctest
import importlib
import mmap
import os
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quercus.kernels import reference, route

BOTH = pytest.mark.parametrize("impl", [route, reference], ids=["kernel", "twin"])
BLOCK = 4096


def buffers(array: pa.Array) -> dict:
    """The keyword arguments that describe a string array, slice or not, to the kernel."""
    validity, offsets, data = array.buffers()
    dtype = np.int64 if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type) else np.int32
    return {
        "offsets": np.frombuffer(offsets, dtype)[array.offset : array.offset + len(array) + 1],
        "data": np.frombuffer(data or b"", np.uint8),
        "validity": None if validity is None else np.frombuffer(validity, np.uint8),
        "bit_offset": array.offset,
    }


def codes(impl: ModuleType, array: pa.Array, names: list[bytes]) -> list[int]:
    out = np.full(len(array), 99, np.int16)
    assert impl.code_strings(names=names, out=out, **buffers(array)) is None
    return out.tolist()


def rows(impl: ModuleType, array: pa.Array, names: list[bytes], first_row: int = 0) -> list[list[int]]:
    routed = impl.route_strings(names=names, first_row=first_row, **buffers(array))
    assert all(part.dtype == np.int64 for part in routed)
    return [part.tolist() for part in routed]


def expected(array: pa.Array, names: list[bytes]) -> list[int]:
    values = [None if value is None else value.encode() for value in array.to_pylist()]
    return [names.index(value) if value in names else -1 for value in values]


CASES = {
    "few": (["A", "B", "A", "C"], ["A", "C"]),
    "none wanted": (["A", "B"], []),
    "none found": (["A", "B"], ["Z"]),
    "no rows": ([], ["A"]),
    "nulls": (["A", None, None, "B"], ["B", "A"]),
    "all null": ([None, None], ["A"]),
    "empty name": (["", "A", "", None], ["", "A"]),
    "empty rows, none wanted": (["", "", ""], ["A"]),
    "prefix of another": (["T", "T1", "T12", "T123"], ["T1", "T12"]),
    "zero bytes": (["a", "a\0", "a\0\0", "\0", ""], ["a\0", "\0"]),
    "exactly eight": (["abcdefgh", "abcdefgi", "abcdefg"], ["abcdefgh"]),
    "nine share eight": (["abcdefghi", "abcdefghj", "abcdefgh"], ["abcdefghi", "abcdefgh"]),
    "sixteen": (["abcdefghijklmnop", "abcdefgh-jklmnop", "abcdefghijklmno"], ["abcdefghijklmnop"]),
    "differ in the middle": (["sensors/1/temperature", "sensors/2/temperature"], ["sensors/2/temperature"]),
    "differ out of every word read": (
        ["0" * 9 + "x" + "0" * 40, "0" * 10 + "x" + "0" * 39, "0" * 50],
        ["0" * 9 + "x" + "0" * 40, "0" * 10 + "x" + "0" * 39],
    ),
    "non-ASCII": (["é", "e", "Ωmega", "日本語のイベント"], ["é", "日本語のイベント", "Ω"]),
    "short and long": (["A", "a much longer name than that", "A name of 13b"], ["A", "a much longer name than that"]),
}


@BOTH
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_each_row_gets_the_index_of_its_name(impl: ModuleType, kind: pa.DataType, case: str) -> None:
    values, wanted = CASES[case]
    names = [name.encode() for name in wanted]
    array = pa.array(values, kind)
    want = expected(array, names)
    assert codes(impl, array, names) == want
    assert rows(impl, array, names) == [[i for i, code in enumerate(want) if code == k] for k in range(len(names))]


@BOTH
def test_slices_read_their_own_rows(impl: ModuleType) -> None:
    array = pa.array(["A", None, "B", "A", None, "C", "A", "B", "A", None, "B"])
    for start in range(len(array)):
        for length in range(len(array) - start + 1):
            part = array.slice(start, length)
            assert codes(impl, part, [b"A", b"B"]) == expected(part, [b"A", b"B"])


@BOTH
def test_rows_count_from_first_row(impl: ModuleType) -> None:
    assert rows(impl, pa.array(["A", "B", "A"]), [b"A"], first_row=2**40) == [[2**40, 2**40 + 2]]


@BOTH
@pytest.mark.parametrize("count", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
def test_block_edges(impl: ModuleType, count: int) -> None:
    array = pa.array([f"T{i % 3}" for i in range(count)])
    assert rows(impl, array, [b"T0", b"T2"]) == [list(range(0, count, 3)), list(range(2, count, 3))]


@BOTH
@pytest.mark.parametrize("count", [1, 20, 300, 5000])
def test_many_names(impl: ModuleType, count: int) -> None:
    names = [f"name-{i}".encode() for i in range(count)]
    array = pa.array([f"name-{i}" for i in range(-3, count + 3)])
    assert codes(impl, array, names) == [-1, -1, -1, *range(count), -1, -1, -1]


@BOTH
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"])
def test_dictionary_codes(impl: ModuleType, dtype: str) -> None:
    mapping = np.array([1, -1, 0], np.int16)
    routed = impl.route_codes(np.array([2, 0, 1, 2, 7], dtype), mapping, 2, first_row=10)
    assert [part.tolist() for part in routed] == [[10, 13], [11]]


@BOTH
def test_dictionary_column_end_to_end(impl: ModuleType) -> None:
    array = pa.array(["A", "B", None, "C", "A", "C", None, "B"]).dictionary_encode().slice(1)
    mapping = np.empty(len(array.dictionary), np.int16)
    impl.code_strings(names=[b"C", b"B"], out=mapping, **buffers(array.dictionary))
    validity, indices = array.indices.buffers()
    routed = impl.route_codes(
        np.frombuffer(indices, np.int32)[array.offset : array.offset + len(array)],
        mapping,
        2,
        np.frombuffer(validity, np.uint8),
        array.offset,
    )
    assert [part.tolist() for part in routed] == [[2, 4], [0, 6]]


# ---- what the kernel refuses; its twin trusts its caller

OFFSETS, DATA, OUT = np.array([0, 1, 2], np.int32), np.frombuffer(b"AB", np.uint8), np.empty(2, np.int16)


def test_refuses_buffers_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="3 entries for 2 rows"):
        route.code_strings(OFFSETS, DATA, [b"A"], np.empty(3, np.int16))
    with pytest.raises(ValueError, match="outside 1 bytes"):
        route.code_strings(OFFSETS, DATA[:1], [b"A"], OUT)
    with pytest.raises(ValueError, match="outside 2 bytes"):
        route.code_strings(OFFSETS - 1, DATA, [b"A"], OUT)
    with pytest.raises(ValueError, match="one more entry"):
        route.route_strings(OFFSETS[:0], DATA, [b"A"])
    with pytest.raises(ValueError, match="too short for 2 rows from bit 7"):
        route.route_strings(OFFSETS, DATA, [b"A"], np.zeros(1, np.uint8), 7)
    with pytest.raises(ValueError, match="given twice"):
        route.route_strings(OFFSETS, DATA, [b"A", b"A"])
    with pytest.raises(ValueError, match=r"mapping\[1\] is 2, with 2 names"):
        route.route_codes(np.zeros(2, np.int8), np.array([0, 2], np.int16), 2)
    with pytest.raises(ValueError, match="number of names"):
        route.route_codes(np.zeros(2, np.int8), np.zeros(1, np.int16), -1)
    with pytest.raises(TypeError, match="names must be bytes, got 'A'"):
        route.route_strings(OFFSETS, DATA, ["A"])


@pytest.mark.parametrize("offsets", [[0, 1 << 30, 2], [0, -(1 << 30), 2], [0, 2, 1, -5, 2]])
def test_wild_offsets_stay_inside_the_buffer(offsets: list[int]) -> None:
    for names in ([b"A" * 9], [b"A" * 12], [bytes(40)], [bytes(1 << 16), b"A" * 12]):
        out = np.full(len(offsets) - 1, 99, np.int16)
        route.code_strings(np.array(offsets, np.int32), DATA, names, out)
        assert (out == -1).all()


@pytest.mark.skipif(os.name != "posix", reason="needs mprotect")
@pytest.mark.parametrize("at_once", [0, 4, 8])
@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 15, 16, 17, 40])
def test_reads_nothing_past_the_end(length: int, at_once: int) -> None:
    """The data ends where an unreadable page begins: reading one byte too many ends the process."""
    page = mmap.PAGESIZE
    area = mmap.mmap(-1, 2 * page)
    held = (ctypes.c_char * (2 * page)).from_buffer(area)
    libc = ctypes.CDLL(None, use_errno=True)
    guard = ctypes.c_void_p(ctypes.addressof(held) + page)
    assert libc.mprotect(guard, page, 0) == 0
    try:
        count = page // length
        data = np.frombuffer(area, np.uint8, count * length, page - count * length)
        data[:] = ord("x")
        offsets = np.arange(count + 1, dtype=np.int32) * np.int32(length)
        names = [b"x" * length, b"y" * length, b"x" * (length + 1)]
        routed = route.route_strings(offsets, data, names, at_once=at_once)
        assert [len(part) for part in routed] == [count, 0, 0]
    finally:
        assert libc.mprotect(guard, page, mmap.PROT_READ | mmap.PROT_WRITE) == 0
        data = None
        del held
        area.close()


# ---- the kernel and its twin agree

texts = st.text(alphabet="ab\0é", max_size=4) | st.builds(
    lambda head, middle, tail: head * 8 + middle + tail * 9,
    st.sampled_from(["", "a", "b"]),
    st.text(alphabet="ab", max_size=3),
    st.sampled_from(["", "a", "b"]),
)


@st.composite
def columns(draw: st.DrawFn) -> tuple[list[str | None], list[str]]:
    """Values and wanted names from one small vocabulary, so that most rows meet a name or nearly do."""
    vocabulary = draw(st.lists(texts, min_size=1, max_size=14, unique=True))
    values = draw(st.lists(st.sampled_from(vocabulary) | st.none(), max_size=60))
    return values, draw(st.lists(st.sampled_from(vocabulary), unique=True))


@given(
    column=columns(),
    kind=st.sampled_from([pa.string(), pa.large_string()]),
    cut=st.integers(0, 12),
    first_row=st.integers(-5, 2**60),
)
def test_kernel_agrees_with_twin_on_strings(
    column: tuple[list[str | None], list[str]], kind: pa.DataType, cut: int, first_row: int
) -> None:
    values, names = column
    array = pa.array(values, kind).slice(min(cut, len(values)))
    wanted = [name.encode() for name in names]
    assert codes(route, array, wanted) == codes(reference, array, wanted) == expected(array, wanted)
    assert rows(route, array, wanted, first_row) == rows(reference, array, wanted, first_row)


@pytest.mark.parametrize("at_once", [0, 4, 8])
@given(
    column=columns(),
    kind=st.sampled_from([pa.string(), pa.large_string()]),
    repeats=st.integers(1, 9),
    after=st.sampled_from(["", "one more, of more than eight bytes"]),
)
def test_several_rows_at_once_are_what_they_are_one_by_one(
    at_once: int, column: tuple[list[str | None], list[str]], kind: pa.DataType, repeats: int, after: str
) -> None:
    values, names = column
    array = pa.array([v for v in values if v is not None] * repeats + [after], kind)
    wanted = [name.encode() for name in names][:8]
    found = route.route_strings(names=wanted, at_once=at_once, **buffers(array))
    assert [part.tolist() for part in found] == rows(reference, array, wanted)


@pytest.mark.parametrize("at_once", [0, 4, 8])
@pytest.mark.parametrize("count", [1, 3, 5, 8])
def test_a_rare_name_is_found_among_many_others(at_once: int, count: int) -> None:
    values = ["other"] * (5 * BLOCK)
    values[17::1009] = [f"wanted-{i % 10}" for i in range(len(values[17::1009]))]
    names = [f"wanted-{i}".encode() for i in range(count)]
    found = route.route_strings(names=names, at_once=at_once, **buffers(pa.array(values)))
    assert [part.tolist() for part in found] == rows(reference, pa.array(values), names)


@pytest.mark.parametrize("at_once", [0, 4, 8])
@pytest.mark.parametrize("wild", [1 << 30, -(1 << 30), 90])
def test_wild_offsets_stay_inside_the_buffer_at_once(at_once: int, wild: int) -> None:
    """What row 20 holds then is nothing that is wanted; the others are as they are."""
    data = np.full(80, ord("A"), np.uint8)
    offsets = np.arange(0, 80, 2, dtype=np.int32)
    offsets[20] = wild
    for names in ([b"AA"], [b"AA", b"A" * 12]):
        found = route.route_strings(offsets, data, names, at_once=at_once)
        assert found[0].tolist() == [i for i in range(39) if i not in (19, 20)]


@given(
    indices=st.lists(st.integers(0, 9), max_size=60),
    mapping=st.lists(st.integers(-1, 3), max_size=8),
    dtype=st.sampled_from(["int8", "uint16", "int32", "int64"]),
    bitmap=st.none() | st.binary(min_size=10, max_size=10),
    bit_offset=st.integers(0, 20),
)
def test_kernel_agrees_with_twin_on_codes(
    indices: list[int], mapping: list[int], dtype: str, bitmap: bytes | None, bit_offset: int
) -> None:
    validity = None if bitmap is None else np.frombuffer(bitmap, np.uint8)
    arguments = (np.array(indices, dtype), np.array(mapping, np.int16), 4, validity, bit_offset, 100)
    kernel, twin = (impl.route_codes(*arguments) for impl in (route, reference))
    assert [part.tolist() for part in kernel] == [part.tolist() for part in twin]


def test_examples_in_the_docstrings_run() -> None:
    failed, attempted = doctest.testmod(route, globs=vars(route))
    assert failed == 0
    assert attempted > 0


# ---- which build these tests ran on


def test_kernels_come_from_the_build_asked_for() -> None:
    elsewhere = os.environ.get("QUERCUS_KERNELS")
    for source in sorted(Path(reference.__file__).parent.glob("*.pyx")):
        module = importlib.import_module(f"quercus.kernels.{source.stem}")
        assert module.__file__ is not None
        if elsewhere:
            assert Path(module.__file__).resolve().parent == Path(elsewhere).resolve()
    assert elsewhere is None or route.CHECKED

"""Events of every kind as one table, and the stream they make."""

from __future__ import annotations

import doctest
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quercus.backends.local import events as events_module
from quercus.backends.local import inputs, keys
from quercus.backends.local.events import load
from quercus.backends.local.inputs import as_table
from quercus.errors import DataError
from quercus.schema import Schema

SCHEMA = Schema({"id": "int64", "price": "float64", "room": "string", "ok": "bool", "at": "timestamp"})
MOMENT = datetime(2026, 1, 2, 3, 4, 5)
COLUMNS = {
    "ts": [1, 2, 3],
    "type": ["A", None, "B"],
    "id": [7, None, 9],
    "price": [0.5, None, 2.5],
    "room": ["x", None, "é"],
    "ok": [True, None, False],
    "at": [MOMENT, None, MOMENT],
}
TABLE = pa.table(COLUMNS)
ROWS = TABLE.to_pylist()


def same(table: pa.Table) -> bool:
    return table.column_names == list(COLUMNS) and table.to_pydict() == COLUMNS


# Kinds of input -------------------------------------------------------------------------------------------------------

KINDS = {
    "table": TABLE,
    "record batch": TABLE.to_batches()[0],
    "chunks": pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1, 0), TABLE.slice(1)]),
    "columns": COLUMNS,
    "arrow columns": dict(zip(TABLE.column_names, TABLE.columns, strict=True)),
    "polars columns": {name: polars.Series(values) for name, values in COLUMNS.items()},
    "rows": ROWS,
    "sparse rows": [{k: v for k, v in row.items() if v is not None} for row in ROWS],
    "polars": polars.DataFrame(COLUMNS),
    "pandas": TABLE.to_pandas(types_mapper=pandas.ArrowDtype),
    "views": TABLE.set_column(4, "room", TABLE["room"].cast(pa.string_view())),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_input_gives_the_same_table(kind: str) -> None:
    assert same(as_table(KINDS[kind], SCHEMA))


def test_duckdb() -> None:
    with duckdb.connect() as connection:
        assert same(as_table(connection.from_arrow(TABLE), SCHEMA))


def test_a_reader_is_read_once() -> None:
    assert same(as_table(TABLE.to_reader(max_chunksize=2), SCHEMA))


def test_pandas_of_its_own_types() -> None:
    frame = pandas.DataFrame({"ts": [1, 2], "type": ["A", None], "id": [3, 4], "price": [1.5, np.nan]})
    schema = Schema({"id": "int64", "price": "float64"})
    assert as_table(frame, schema)["price"].to_pylist() == [1.5, None]
    assert as_table(frame, schema)["type"].to_pylist() == ["A", None]


def write(path: Path, table: pa.Table) -> Path:
    match path.suffix:
        case ".parquet":
            pa.parquet.write_table(table, path)
        case ".csv" | ".gz":
            pa.csv.write_csv(table, pa.CompressedOutputStream(path, "gzip") if path.suffix == ".gz" else path)
        case ".arrow":
            pa.feather.write_feather(table, path, compression="uncompressed")
        case ".jsonl":
            polars.from_arrow(table).write_ndjson(path)
    return path


@pytest.mark.parametrize("name", ["e.parquet", "e.csv", "e.csv.gz", "e.arrow", "e.jsonl"])
def test_every_kind_of_file(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, TABLE)
    assert same(as_table(path, SCHEMA))
    assert same(as_table(str(path), SCHEMA))
    assert same(as_table(tmp_path, SCHEMA))
    assert as_table(path, SCHEMA, frozenset({"room"})).column_names == ["ts", "type", "room"]


def test_ipc_streams_are_read_too(tmp_path: Path) -> None:
    with pa.OSFile(str(tmp_path / "e.arrow"), "w") as sink, pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    assert same(as_table(tmp_path / "e.arrow", SCHEMA))


def test_files_of_a_glob_are_read_in_sorted_order(tmp_path: Path) -> None:
    write(tmp_path / "b.parquet", TABLE.slice(2))
    write(tmp_path / "a.csv", TABLE.slice(0, 2))
    (tmp_path / "readme.txt").write_text("not an event")
    assert same(as_table(str(tmp_path / "[ab].*"), SCHEMA))
    assert same(as_table(tmp_path, SCHEMA))


def test_csv_columns_are_read_as_declared(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text('ts,type,room,price,id\n2026-01-02,007,010,3,1\n2026-01-03T01:00:00+01:00,1,"",,\n')
    table = as_table(tmp_path / "e.csv", SCHEMA, frozenset({"room", "price", "id"}))
    midnight = int(datetime(2026, 1, 2, tzinfo=UTC).timestamp()) * 1000
    assert table.to_pydict() == {
        "ts": [midnight, midnight + 86_400_000],
        "type": ["007", "1"],
        "id": [1, None],
        "price": [3.0, None],
        "room": ["010", ""],
    }


def test_json_lines_may_have_text_for_times_and_numbers_for_types(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text(
        '{"ts": "2026-01-02T00:00:00Z", "type": 147073, "x": {}}\n{"ts": "2026-01-02", "type": 2}'
    )
    table = as_table(tmp_path / "e.jsonl", Schema({"ts": "timestamp[s]", "id": "int64"}))
    assert table["type"].to_pylist() == ["147073", "2"]
    assert len(set(table["ts"].to_pylist())) == 1
    assert table["id"].null_count == 2


def test_an_empty_json_lines_file_is_an_empty_stream(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text("")
    assert len(load(tmp_path / "e.jsonl", SCHEMA)) == 0


def test_tables_by_type_are_merged_by_time() -> None:
    given = {
        "B": pa.table({"ts": [5, 1], "id": [10, 11]}),
        "A": {"ts": [1, 9], "room": ["x", "y"]},
        "C": [{"ts": 5, "type": "C"}, {"ts": 0, "id": 3}],
        "D": [],
    }
    table = as_table(given, SCHEMA)
    assert table["ts"].to_pylist() == [0, 1, 1, 5, 5, 9]
    assert table["type"].to_pylist() == ["C", "B", "A", "B", "C", "A"]
    assert table["id"].to_pylist() == [3, 11, None, 10, None, None]
    assert table["room"].to_pylist() == [None, None, "x", None, None, "y"]


def test_tables_by_type_with_attributes_by_type(tmp_path: Path) -> None:
    schema = Schema({"A": {"x": "int64", "s": "string"}, "B": {"x": "float64", "t": "timestamp"}}, time="when")
    given = {
        "A": write(tmp_path / "a.parquet", pa.table({"when": [1], "x": [1], "s": pa.array(["u"]).dictionary_encode()})),
        "B": polars.DataFrame({"when": [0], "x": [2]}),
    }
    assert as_table(given, schema).to_pylist() == [
        {"when": 0, "type": "B", "x": 2, "s": None, "t": None},
        {"when": 1, "type": "A", "x": 1, "s": "u", "t": None},
    ]


def test_a_table_by_type_keeps_to_its_type() -> None:
    with pytest.raises(DataError, match="column 'type', row 1: B in the table of type 'A'"):
        as_table({"A": pa.table({"ts": [1, 2], "type": ["A", "B"]})}, Schema({}))


# Types ----------------------------------------------------------------------------------------------------------------


def column(kind: str, values: pa.Array, **options: str) -> pa.ChunkedArray:
    schema = Schema({"x": kind}, **options)
    table = pa.table({"ts": range(len(values)), "type": ["A"] * len(values), "x": values})
    return as_table(table, schema)["x"]


NANOS = pa.array([1_500, -1_500, None], pa.timestamp("ns"))
PARIS = pa.array([MOMENT, None], pa.timestamp("us", "Europe/Paris"))

CONVERSIONS = {
    "int8": ("int64", pa.array([1, None], pa.int8()), [1, None]),
    "uint64": ("int64", pa.array([2**63 - 1], pa.uint64()), [2**63 - 1]),
    "whole decimal": ("int64", pa.array([Decimal(5), None]), [5, None]),
    "dictionary of integers": ("int64", pa.array([5, 5, None]).dictionary_encode(), [5, 5, None]),
    "integers as floats": ("float64", pa.array([2**60 + 1, None]), [2.0**60, None]),
    "half float": ("float64", pa.array([1.5], pa.float16()), [1.5]),
    "decimal": ("float64", pa.array([Decimal("5.25")]), [5.25]),
    "nulls": ("float64", pa.nulls(2), [None, None]),
    "large string": ("string", pa.array(["a", None], pa.large_string()), ["a", None]),
    "string view": ("string", pa.array(["a", None], pa.string_view()), ["a", None]),
    "dictionary": ("string", pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
    "date": ("timestamp", pa.array([date(2026, 1, 2), None]), [datetime(2026, 1, 2), None]),
    "date64": ("timestamp", pa.array([date(2026, 1, 2)], pa.date64()), [datetime(2026, 1, 2)]),
    "text": ("timestamp", pa.array(["2026-01-02 03:04:05", None]), [MOMENT, None]),
    "zone": ("timestamp", PARIS, PARIS.to_pylist()),
    "finer": ("timestamp", NANOS, [datetime(1970, 1, 1) + timedelta(microseconds=n) for n in (1, -2)] + [None]),
    "run ends": (
        "int64",
        pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([4, None], pa.int64())),
        [4, 4, None],
    ),
}


@pytest.mark.parametrize("case", CONVERSIONS)
def test_conversions(case: str) -> None:
    kind, given_values, expected = CONVERSIONS[case]
    assert column(kind, given_values).to_pylist() == expected


def test_what_fits_is_not_copied() -> None:
    loaded = load(TABLE, SCHEMA)
    for name in ("ts", "id", "price", "room", "at"):
        given_buffers, kept = TABLE[name].chunk(0).buffers(), loaded.table[name].chunk(0).buffers()
        assert [b and b.address for b in given_buffers] == [b and b.address for b in kept]
    assert loaded.ts.ctypes.data == TABLE["ts"].chunk(0).buffers()[1].address


REFUSED = {
    "beyond int64": ("int64", pa.array([1, 2**63], pa.uint64()), 1, "does not fit int64"),
    "float for an integer": ("int64", pa.array([1.0]), None, "holds double where the schema has int64: declare it"),
    "decimal for an integer": ("int64", pa.array([Decimal("1.5")]), None, "decimal128"),
    "string for a number": ("float64", pa.array(["1"]), None, "holds string where the schema has float64"),
    "number for a string": ("string", pa.array([1]), None, "holds int64"),
    "number for a bool": ("bool", pa.array([1]), None, "holds int64"),
    "list": ("int64", pa.array([[1]]), None, "list"),
    "bytes": ("string", pa.array([b"a"]), None, "binary"),
    "duration": ("int64", pa.array([timedelta(1)]), None, "duration"),
    "number for a time": ("timestamp", pa.array([1]), None, "holds int64"),
    "no time": ("timestamp", pa.array(["2026-01-02", "soon"]), 1, "'soon' is no ISO 8601 time"),
    "time out of range": ("timestamp", pa.array([0, 2**60], pa.timestamp("s")), 1, "is out of timestamp"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_columns_are_named_with_the_row(case: str) -> None:
    kind, values, row, message = REFUSED[case]
    with pytest.raises(DataError, match="column 'x'") as caught:
        column(kind, values)
    assert message in str(caught.value)
    assert (caught.value.column, caught.value.row) == ("x", row)


TIMES = {
    "moments for an integer": ("int64", pa.array([1_000, 2_000], pa.timestamp("us")), [1, 2]),
    "int32": ("int64", pa.array([1, 2], pa.int32()), [1, 2]),
    "dates": ("int64", pa.array([date(1970, 1, 2)]), [86_400_000]),
    "text": ("int64", pa.array(["1970-01-01T00:00:00.005", "1970-01-01T01:00:00.006+01:00"]), [5, 6]),
    "coarser": ("timestamp[ms]", pa.array([1, 2], pa.timestamp("s")), [1_000, 2_000]),
    "finer, but whole": ("timestamp[ms]", pa.array([1_000], pa.timestamp("us", "Asia/Tokyo")), [1]),
}


@pytest.mark.parametrize("case", TIMES)
def test_times(case: str) -> None:
    kind, values, expected = TIMES[case]
    schema = Schema({"ts": kind})
    assert load(pa.table({"ts": values, "type": ["A"] * len(values)}), schema).ts.tolist() == expected


BAD_TIMES = {
    "null": ("int64", pa.array([1, None]), 1, "an event without a time"),
    "rounded": ("int64", pa.array([1_000, 1_500], pa.timestamp("us")), 1, "no whole number of ms: declare the column"),
    "integers": ("timestamp", pa.array([1, 2]), None, "holds int64 where the schema has timestamps"),
    "floats": ("int64", pa.array([1.0, 2.0]), None, "holds double"),
    "all null": ("int64", pa.nulls(2), 0, "an event without a time"),
}


@pytest.mark.parametrize("case", BAD_TIMES)
def test_bad_times(case: str) -> None:
    kind, values, row, message = BAD_TIMES[case]
    with pytest.raises(DataError, match="column 'ts'") as caught:
        load(pa.table({"ts": values, "type": ["A"] * len(values)}), Schema({"ts": kind}))
    assert message in str(caught.value)
    assert (caught.value.column, caught.value.row) == ("ts", row)


def test_types_may_be_numbers() -> None:
    loaded = load({"ts": [1, 2], "type": [147073, None]}, Schema({}))
    assert [p.tolist() for p in loaded.route([("147073",)])] == [[0]]


BAD_INPUTS = {
    "no time column": ({"tss": [1], "type": ["A"]}, "no time column 'ts': did you mean 'tss'?"),
    "no type column": (pa.table({"ts": [1], "id": [1]}), "no type column 'type': columns: ts, id"),
    "no attribute": ({"ts": [1], "type": ["A"], "di": [1]}, "no column 'id'"),
    "twice": (pa.table([[1], ["A"], [1], [2]], names=["ts", "type", "id", "id"]), "more than once"),
    "lengths": ({"ts": [1], "type": ["A", "B"], "id": [1]}, "column 'type' has 2 rows, column 'ts' has 1"),
    "mixed values": ([{"ts": 1, "type": "A", "id": 1}, {"ts": 2, "type": "A", "id": "x"}], "column 'id', row 1"),
    "beyond int64": ([{"ts": 1, "type": "A", "id": 2**63}], "column 'id', row 0"),
    "an integer": (5, "events cannot be a int"),
    "nothing": ({}, "no column 'ts'"),
    "no rows with a time": ([{"type": "A"}], "no time column 'ts'"),
    "a scalar for a column": ({"ts": 1, "type": ["A"], "id": [1]}, "column 'ts': a int is no column"),
    "some tables": ({"A": {"ts": [1]}, "B": 5}, "'B' is no table"),
    "no file": ("nowhere/*.parquet", "no file at 'nowhere/*.parquet'"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_inputs(case: str) -> None:
    given_input, message = BAD_INPUTS[case]
    with pytest.raises(DataError) as caught:
        as_table(given_input, Schema({"id": "int64"}))
    assert message in str(caught.value)


def test_bad_files(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("no parquet")
    (tmp_path / "b.xlsx").write_text("")
    (tmp_path / "c.csv").write_text("")
    (tmp_path / "empty").mkdir()
    for name, message in [("a.parquet", "cannot be read"), ("b.xlsx", "suffixes"), ("c.csv", "cannot be read")]:
        with pytest.raises(DataError, match=message):
            as_table(tmp_path / name, SCHEMA)
    with pytest.raises(DataError, match="no file at"):
        as_table(tmp_path / "empty", SCHEMA)


@pytest.mark.parametrize(
    ("name", "text", "column_name", "row"),
    [
        ("e.csv", "ts,type,id\n1,A,5\n2,A,x\n", "id", 1),
        ("e.csv", "ts,type,id\n1,A,9223372036854775808\n", "id", 0),
        ("e.jsonl", '{"ts": 1, "type": "A", "id": 1}\n{"ts": 2, "type": "A", "id": "x"}\n', "id", 1),
        ("e.jsonl", '{"ts": 1, "type": "A", "id": 1.5}\n', "id", 0),
        ("e.jsonl", '{"ts": 1, "type": "A", "id": 1}\n{"ts": \n', None, None),
        ("e.csv", "ts,type,id\n1,A\n", None, None),
        ("e.csv", "ts,type,id\nsoon,A,1\n", "ts", 0),
    ],
)
def test_values_that_text_files_cannot_mean(tmp_path: Path, name: str, text: str, column_name: str, row: int) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as caught:
        as_table(tmp_path / name, Schema({"id": "int64"}))
    assert (caught.value.column, caught.value.row) == (column_name, row)
    assert name in str(caught.value)


def test_rows_of_later_files_count_on(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", pa.table({"ts": [1, 2], "type": ["A", "B"]}))
    write(tmp_path / "b.parquet", pa.table({"ts": [3, None], "type": ["A", "B"]}))
    with pytest.raises(DataError, match=r"column 'ts', row 3 in '.*b\.parquet'"):
        as_table(tmp_path, Schema({}))


def test_attributes_that_cannot_share_a_column() -> None:
    with pytest.raises(DataError, match="'x' is int64 in 'A' and string in 'B'"):
        Schema({"A": {"x": "int64"}, "B": {"x": "string"}})


# The stream -----------------------------------------------------------------------------------------------------------


def test_a_stream_in_order_is_not_permuted() -> None:
    loaded = load({"ts": [1, 1, 2], "type": ["A", "B", "A"]}, Schema({}))
    assert loaded.rows is None
    assert len(loaded) == 3


def test_an_empty_stream() -> None:
    loaded = load({"ts": [], "type": [], "id": []}, Schema({"id": "int64"}))
    assert len(loaded) == 0
    assert [p.tolist() for p in loaded.route([("A",), ("B", "C")])] == [[], []]
    none = np.empty(0, np.int64)
    assert len(loaded.values("id", none)) == 0
    assert loaded.key_codes(["id"], none).tolist() == []


def test_ts_and_type_are_attributes_under_any_column_name() -> None:
    loaded = load({"when": [5, 1], "what": ["A", "B"]}, Schema({}, time="when", type="what"))
    at = np.array([0, 1])
    assert loaded.values("ts", at).data.tolist() == [1, 5]
    assert loaded.values("when", at).data.tolist() == [1, 5]
    assert loaded.values("type", at).data.to_pylist() == ["B", "A"]


names = st.sampled_from(["A", "B", "C", "a longer name", "é"])
stream_rows = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(0, 6),
            "type": names | st.none(),
            "id": st.integers(-2, 2) | st.sampled_from([-(2**63), 2**63 - 1]) | st.none(),
            "price": st.sampled_from([0.0, -0.0, 1.5, float("inf"), float("nan")]) | st.none(),
            "room": st.sampled_from(["", "x", "xy"]) | st.none(),
            "ok": st.booleans() | st.none(),
        }
    ),
    max_size=25,
)
encodings = st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
SMALL = Schema({"id": "int64", "price": "float64", "room": "string", "ok": "bool"})


@settings(deadline=None)
@given(stream_rows, encodings, st.integers(1, 9), st.data())
def test_streams_agree_with_plain_python(rows: list[dict], kind: pa.DataType, chunk: int, data: st.DataObject) -> None:
    table = as_table(rows, SMALL)
    for name in ("type", "room"):
        table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()).cast(kind))
    table = pa.concat_tables([table.slice(i, chunk) for i in range(0, max(len(table), 1), chunk)])
    loaded = load(table, SMALL)
    order = sorted(range(len(rows)), key=lambda i: rows[i]["ts"])
    assert loaded.ts.tolist() == [rows[i]["ts"] for i in order]
    assert (loaded.rows is None) == (order == list(range(len(rows))))

    wanted = data.draw(st.lists(st.lists(names, max_size=3).map(tuple), max_size=4))
    expected = [[p for p, i in enumerate(order) if rows[i]["type"] in request] for request in wanted]
    assert [p.tolist() for p in loaded.route(wanted)] == expected

    at = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=30) if rows else st.just([])), np.int64)
    for name in ("ts", "type", "id", "price", "room", "ok"):
        assert str(loaded.values(name, at).to_arrow().to_pylist()) == str([rows[order[p]][name] for p in at])

    attrs = data.draw(st.lists(st.sampled_from(["id", "price", "room", "ok", "type"]), max_size=3, unique=True))
    half = len(at) // 2
    codes = [int(c) for part in (at[:half], at[half:]) for c in loaded.key_codes(attrs, part)]
    by_value: dict[object, int] = {}
    for code, p in zip(codes, at, strict=True):
        key = tuple(rows[order[p]][a] for a in attrs)
        if any(k is None or k != k for k in key):
            assert code == -1
        else:
            assert code >= 0
            assert by_value.setdefault(key, code) == code
    assert len(set(by_value.values())) == len(by_value)


def test_keys_of_different_names_share_a_space() -> None:
    loaded = load(
        {"ts": [1, 2], "type": ["A", "B"], "id": [5, 6], "ref": [6, 5]}, Schema({"id": "int64", "ref": "int64"})
    )
    at = np.array([0, 1])
    assert loaded.key_codes(["id"], at, "k").tolist() == loaded.key_codes(["ref"], at[::-1].copy(), "k").tolist()


@pytest.mark.parametrize("module", [events_module, inputs, keys], ids=lambda m: m.__name__)
def test_examples_in_the_docstrings_run(module: object) -> None:
    failed, attempted = doctest.testmod(module)  # type: ignore[arg-type]
    assert failed == 0
    assert attempted > 0

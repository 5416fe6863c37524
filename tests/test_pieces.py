"""Files read in pieces, and results written as they come."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.json
import pyarrow.parquet
import pytest

import quercus as qc
from quercus.backends.local import files, inputs, scan
from quercus.backends.local.run import run_plan

SCHEMA = qc.Schema({"id": "int64", "s": "string"})
QUERIES = [
    "PATTERN SEQ(A a, B b, [id]) WITHIN 40",
    "PATTERN SEQ(A a, B+ b, C c) WITHIN 9",
    "PATTERN SEQ(A a, !B b) WITHIN 5",
    "PATTERN AND(A a, C c, [s]) WITHIN 12 EVENTS",
    "PATTERN OR(A a, SEQ(B b, C+ c)) WITHIN 6",
]


def events(n: int = 3_000) -> pa.Table:
    r = np.random.default_rng(7)
    ts = np.cumsum(r.integers(0, 3, n))
    return pa.table(
        {"ts": ts, "type": r.choice(list("ABCD"), n), "id": r.integers(0, 5, n), "s": r.choice(["x", "y"], n)}
    )


def save(table: pa.Table, path: Path) -> None:
    match path.suffix:
        case ".parquet":
            pa.parquet.write_table(table, path)
        case ".csv":
            pa.csv.write_csv(table, path)
        case ".arrow":
            with pa.ipc.new_file(str(path), table.schema) as out:
                out.write_table(table, max_chunksize=100)
        case _:
            path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Everything counts as large and pieces are small; the sizes of the pieces that were read."""
    monkeypatch.setattr(inputs, "LARGE", 0)
    monkeypatch.setattr(files, "_PIECE", 100)
    monkeypatch.setattr(files, "_BLOCK", 2_000)
    sizes: list[int] = []
    whole = scan.as_pieces

    def counted(*given: object) -> object:
        for piece in whole(*given):  # type: ignore[arg-type]
            sizes.append(len(piece))
            yield piece

    monkeypatch.setattr(scan, "as_pieces", counted)
    return sizes


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow", "jsonl"])
def test_a_file_in_pieces_gives_what_the_whole_gives(suffix: str, tmp_path: Path, in_pieces: list[int]) -> None:
    table = events()
    for i in range(3):
        save(table.slice(1_000 * i, 1_000), tmp_path / f"part{i}.{suffix}")
    for query in QUERIES:
        plan = qc.compile(query, SCHEMA)
        whole = plan.run(table)
        found = plan.run(tmp_path / f"part*.{suffix}")
        assert found.rows() == whole.rows(), query
        assert found.to_arrow().to_pylist() == whole.to_arrow().to_pylist(), query
        assert len(found) > 10
    assert len(in_pieces) >= 15
    assert max(in_pieces) < 1_000


def test_totals_of_pieces(tmp_path: Path, in_pieces: list[int]) -> None:
    save(events(), tmp_path / "events.parquet")
    plan = qc.compile("PATTERN SEQ(A a, B b) AGG COUNT(*) AS n, SUM(b.id) AS total GROUPBY a.s WITHIN 9", SCHEMA)
    assert plan.run(tmp_path / "events.parquet").to_arrow() == plan.run(events()).to_arrow()
    assert len(in_pieces) == 30


def test_events_out_of_order_are_sorted_first(tmp_path: Path, in_pieces: list[int]) -> None:
    table = events()
    save(table.take(np.r_[1_500:3_000, 0:1_500]), tmp_path / "events.parquet")
    plan = qc.compile(QUERIES[0], SCHEMA)
    found = plan.run(tmp_path / "events.parquet")
    moved = [{k: (v + 1_500) % 3_000 for k, v in m.items()} for m in plan.run(table).rows()]
    assert found.rows() == moved
    assert in_pieces


def test_only_the_columns_that_an_answer_needs_are_read(tmp_path: Path, in_pieces: list[int]) -> None:
    save(events().drop_columns(["id"]), tmp_path / "events.parquet")
    plan = qc.compile("PATTERN SEQ(A a, B b) RETURN a.s AS s WITHIN 2", SCHEMA)
    assert plan.run(tmp_path / "events.parquet").to_arrow().column_names == ["s"]
    with pytest.raises(qc.DataError, match="no column 'id'"):
        qc.compile("PATTERN SEQ(A a, B b) WITHIN 2", SCHEMA).run(tmp_path / "events.parquet")


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow", "jsonl"])
def test_matches_are_written_as_they_come(suffix: str, tmp_path: Path, in_pieces: list[int]) -> None:
    save(events(), tmp_path / "events.parquet")
    plan = qc.compile(QUERIES[1], SCHEMA)
    whole = plan.run(events())
    assert plan.write(tmp_path / "events.parquet", tmp_path / f"out.{suffix}") == len(whole)
    whole.write(tmp_path / f"whole.{suffix}")
    written, expected = (_lines(tmp_path / f"{n}.{suffix}") for n in ("out", "whole"))
    assert sorted(map(str, written)) == sorted(map(str, expected))
    assert {p.name for p in tmp_path.iterdir()} == {"events.parquet", f"out.{suffix}", f"whole.{suffix}"}


def _lines(path: Path) -> list[object]:
    match path.suffix:
        case ".parquet":
            return list(pa.parquet.read_table(path).to_pylist())
        case ".arrow":
            with pa.ipc.open_file(str(path)) as file:
                return list(file.read_all().to_pylist())
        case _:
            return list(path.read_text().splitlines())


def test_a_reader_is_read_in_pieces(tmp_path: Path, in_pieces: list[int]) -> None:
    table = events()
    plan = qc.compile(QUERIES[0], SCHEMA)
    assert plan.write(table.to_reader(max_chunksize=50), tmp_path / "out.arrow") == len(plan.run(table))
    assert len(in_pieces) == 60


def test_a_reader_out_of_order_is_refused(tmp_path: Path) -> None:
    table = events().take(np.r_[1_500:3_000, 0:1_500])
    plan = qc.compile(QUERIES[0], SCHEMA)
    with pytest.raises(qc.DataError, match="column 'ts', row 1500"):
        plan.write(table.to_reader(max_chunksize=50), tmp_path / "out.arrow")
    assert not list(tmp_path.iterdir())
    assert plan.write(table, tmp_path / "out.arrow") == len(plan.run(table))


def test_an_error_leaves_no_file(tmp_path: Path, in_pieces: list[int]) -> None:
    save(events(), tmp_path / "events.parquet")
    plan = qc.compile(QUERIES[0], SCHEMA)
    with pytest.raises(qc.LimitExceeded):
        plan.write(tmp_path / "events.parquet", tmp_path / "out.parquet", limits=qc.Limits(max_matches=3))
    with pytest.raises(qc.DataError, match="cannot write"):
        plan.write(tmp_path / "events.parquet", tmp_path / "out.xlsx")
    assert [p.name for p in tmp_path.iterdir()] == ["events.parquet"]
    with pytest.raises(qc.LimitExceeded):
        plan.run(tmp_path / "events.parquet", limits=qc.Limits(max_matches=200))


def test_a_bad_value_names_its_row_in_the_whole(tmp_path: Path, in_pieces: list[int]) -> None:
    save(events(300), tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("ts,type,id,s\n" + "9999,A,1,x\n" * 20 + "9999,A,many,x\n")
    with pytest.raises(qc.DataError, match="row 320") as e:
        qc.compile(QUERIES[0], SCHEMA).run(str(tmp_path / "*.csv"))
    assert e.value.row == 320


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow", "jsonl"])
def test_a_run_says_how_far_it_has_come(suffix: str, tmp_path: Path, in_pieces: list[int]) -> None:
    table = events()
    for i in range(3):
        save(table.slice(1_000 * i, 1_000), tmp_path / f"part{i}.{suffix}")
    plan = qc.compile(QUERIES[0], SCHEMA)
    told: list[tuple[int, int, float]] = []
    found = run_plan(plan, tmp_path, qc.Limits(), progress=lambda *now: told.append(now))
    assert told == sorted(told)
    assert len({part for _, _, part in told}) > 5
    assert told[-1] == (3_000, len(found), 1.0)


@pytest.mark.parametrize("codec", ["gzip", "bz2", "zstd", "lz4"])
def test_compressed_text_in_pieces(codec: str, tmp_path: Path, in_pieces: list[int]) -> None:
    table, plan = events(), qc.compile(QUERIES[0], SCHEMA)
    save(table, tmp_path / "events.csv")
    suffix = {"gzip": "gz", "zstd": "zst"}.get(codec, codec)
    with pa.output_stream(str(tmp_path / f"events.csv.{suffix}"), compression=codec) as file:
        file.write((tmp_path / "events.csv").read_bytes())
    assert plan.run(tmp_path / f"events.csv.{suffix}").rows() == plan.run(table).rows()
    assert len(in_pieces) > 5


def test_files_that_need_describing_in_pieces(tmp_path: Path, in_pieces: list[int]) -> None:
    table = pa.table({"ts": list(range(1_000)), "type": ["A", "B"] * 500, "id": [1] * 1_000})
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 3", qc.Schema({"id": "int64"}))
    text = "".join(f"{r['id']};{r['type']};{r['ts']}\n" for r in table.to_pylist())
    (tmp_path / "one.txt").write_text(text)
    files = qc.Files(tmp_path / "one.txt", format="csv", delimiter=";", columns=["id", "type", "ts"])
    assert plan.run(files).rows() == plan.run(table).rows()
    assert len(in_pieces) > 3
    (tmp_path / "two.txt").write_text(text + "x;A;1000\n")
    with pytest.raises(qc.DataError, match=r"column 'id', row 1000.*'x' is no int64"):
        plan.run(qc.Files(tmp_path / "two.txt", format="csv", delimiter=";", columns=["id", "type", "ts"]))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"format": "xls"}, "no format 'xls'"),
        ({"delimiter": "ab"}, "not one character"),
        ({"columns": "abc"}, "a list of names"),
        ({"columns": ["a", "a"]}, "twice"),
        ({"decimal": ";"}, "neither a point nor a comma"),
    ],
)
def test_files_that_cannot_be(options: dict[str, object], said: str) -> None:
    with pytest.raises(qc.DataError, match=said):
        qc.Files("x", **options)  # type: ignore[arg-type]
    with pytest.raises(qc.DataError, match="no path"):
        qc.Files()


@pytest.mark.parametrize("later", ["2020-01-01 00:00:01.125", "2020-01-01T00:00:01.125Z", "2020-01-02"])
def test_times_that_look_different_later_on(later: str, tmp_path: Path, in_pieces: list[int]) -> None:
    first = "2020-01-01" if len(later) == 10 else "2020-01-01 00:00:01"
    (tmp_path / "e.csv").write_text(f"ts,type\n{chr(10).join([first + ',A'] * 2000)}\n{later},B\n")
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 2 d AGG COUNT(*) AS n", qc.Schema({"ts": "timestamp[us]"}))
    assert list(plan.run(tmp_path / "e.csv")) == [{"n": 2000}]
    assert len(in_pieces) > 1


@pytest.mark.parametrize("zone", ["", "Z"])
def test_times_have_the_zone_that_they_have_as_a_whole(
    zone: str, tmp_path: Path, in_pieces: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"2020-01-01T00:{i // 60:02}:{i % 60:02}{zone},{'AB'[i % 2]}" for i in range(3000)]
    (tmp_path / "e.csv").write_text("\n".join(["ts,type", *rows, ""]))
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 1 s", qc.Schema({"ts": "timestamp[us]"}))
    found = plan.run(tmp_path / "e.csv").to_arrow()
    assert len(in_pieces) > 1
    monkeypatch.undo()
    assert found.equals(plan.run(tmp_path / "e.csv").to_arrow())


def test_decimal_commas_in_pieces(tmp_path: Path, in_pieces: list[int]) -> None:
    rows = [f"2020-01-01T00:{i // 60:02}:{i % 60:02};{'AB'[i % 2]};{i},5" for i in range(1000)]
    (tmp_path / "e.csv").write_text("\n".join(["ts;type;v", *rows, ""]))
    given = qc.Files(tmp_path / "e.csv", delimiter=";", decimal=",")
    schema = qc.Schema.infer(given)
    assert schema.attributes("A")["v"] == "float64"
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 1 s AGG SUM(b.v) AS s", schema)
    assert list(plan.run(given)) == [{"s": sum(i + 0.5 for i in range(1, 1000, 2))}]
    assert len(in_pieces) > 1


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_seconds_since_1970_in_pieces(suffix: str, tmp_path: Path, in_pieces: list[int]) -> None:
    times = [1_704_103_200, *(1_704_103_200 + i / 4 for i in range(1, 1000))]
    if suffix == ".csv":
        lines = ["ts,type", *(f"{t},{'AB'[i % 2]}" for i, t in enumerate(times))]
    else:
        lines = [f'{{"ts": {t}, "type": "{"AB"[i % 2]}"}}' for i, t in enumerate(times)]
    path = tmp_path / f"e{suffix}"
    path.write_text("\n".join([*lines, ""]))
    schema = qc.Schema({"ts": "timestamp[us]"})
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 250 ms", schema)
    rows = plan.run(qc.Files(path, time_format="unix")).rows()
    assert rows == [{"a": i, "b": i + 1} for i in range(0, 1000, 2)]
    assert len(in_pieces) > 1
    if suffix == ".csv":
        path.write_text("ts;type\n1704103200,25;A\n1704103200,5;B\n")
        given = qc.Files(path, time_format="unix", delimiter=";", decimal=",")
        assert plan.run(given).rows() == [{"a": 0, "b": 1}]
    path.write_text(lines[0] + "\n" + lines[1].replace("200", "x00") + "\n")
    if suffix == ".csv":
        with pytest.raises(qc.DataError, match=r"row 0: '1704103x00' is no time of the format 'unix'"):
            plan.run(qc.Files(path, time_format="unix"))
    with pytest.raises(qc.DataError, match=r"holds double: .*reads seconds since 1970"):
        plan.run({"ts": [0.5], "type": ["A"]})


def test_totals_of_files_list_nothing(tmp_path: Path, in_pieces: list[int]) -> None:
    save(events(), tmp_path / "e.parquet")
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 9 AGG COUNT(*) AS n, SUM(b.id) AS s", SCHEMA)
    few = qc.Limits(max_matches=3)
    expected = list(plan.run(events(), limits=few))
    found = plan.run(tmp_path / "e.parquet", limits=few)
    assert list(found) == expected
    assert plan.write(tmp_path / "e.parquet", tmp_path / "o.parquet", limits=few) == 1
    assert len(plan.run(tmp_path / "e.parquet").rows()) == expected[0]["n"]


def test_what_an_answer_shows_is_read_though_nothing_can_match(tmp_path: Path, in_pieces: list[int]) -> None:
    save(events(), tmp_path / "e.parquet")
    for tail in ("RETURN a.s", "AGG COUNT(*) AS n GROUPBY a.s", "AGG MAX(b.id) AS most"):
        plan = qc.compile(f"PATTERN SEQ(A a, B b, a.id = 1, a.id = 2) WITHIN 9 {tail}", SCHEMA)
        assert plan.run(tmp_path / "e.parquet").to_arrow().to_pylist() == plan.run(events()).to_arrow().to_pylist()


@pytest.mark.parametrize("text", ["null\n", "\nnull", '{"ts": 1, "type": "A"}\nnull\n{"ts": 2, "type": "A"}\n'])
def test_null_is_no_event(text: str, tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text(text)
    plan = qc.compile("PATTERN A a WITHIN 9", qc.Schema({}))
    line = text.split("\n").index("null") + 1
    for act in (lambda: plan.run(tmp_path / "e.jsonl"), lambda: plan.write(tmp_path / "e.jsonl", tmp_path / "o.csv")):
        with pytest.raises(qc.DataError, match=f"null where an object should stand, in line {line}"):
            act()


@pytest.mark.parametrize(
    ("name", "text"), [("e.jsonl", ""), ("e.jsonl", "\n\n"), ("e.csv", "ts,type,id,s"), ("E.CSV", "ts,type,id,s\n")]
)
def test_files_without_events(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    plan = qc.compile("PATTERN A a WITHIN 9", SCHEMA)
    assert plan.run(tmp_path / name).rows() == []
    assert plan.write(tmp_path / name, tmp_path / "o.jsonl") == 0


def test_damaged_and_double_columns_of_arrow_files(tmp_path: Path) -> None:
    table = pa.table({"ts": list(range(8)), "type": list("ABABABAB"), "s": ["xyz"] * 8, "id": [1] * 8})
    with pa.ipc.new_file(str(tmp_path / "e.arrow"), table.schema) as writer:
        writer.write_table(table)
    good, bad = np.arange(0, 27, 3, np.int32), np.array([0, 3, 6, 9, 2**30, 15, 18, 21, 24], np.int32)
    data = (tmp_path / "e.arrow").read_bytes()
    assert data.count(good.tobytes()) == 1
    (tmp_path / "e.arrow").write_bytes(data.replace(good.tobytes(), bad.tobytes()))
    twice = table.append_column("id", table.column("id"))
    with pa.ipc.new_file(str(tmp_path / "two.arrow"), twice.schema) as writer:
        writer.write_table(twice)
    plan = qc.compile("PATTERN SEQ(A a, B b, a.s = b.s) WITHIN 9", SCHEMA)
    for name, said in (("e", "cannot be read"), ("two", "stands more than once")):
        path = tmp_path / f"{name}.arrow"
        with pytest.raises(qc.DataError, match=said):
            plan.run(path)
        with pytest.raises(qc.DataError, match=said):
            plan.write(path, tmp_path / "o.csv")
    assert not list(tmp_path.glob(".*"))

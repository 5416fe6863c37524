"""`quercus run`: what goes in, what comes out, and what is said when it cannot."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

from quercus.backends.local import inputs
from quercus.cli import exits
from quercus.cli.parser import COMMANDS
from tests.cli.helpers import ENVIRONMENT, EVENTS, MATCHES, QUERY, Run, quercus, save


def lines(out: str) -> list[Any]:
    return [json.loads(line) for line in out.splitlines()]


# What goes in ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl", "arrow"])
def test_every_format_comes_in_and_goes_out(run: Run, tmp_path: Path, suffix: str) -> None:
    source, target = save(tmp_path / f"events.{suffix}"), tmp_path / f"matches.{suffix}"
    code, out, err = run("run", QUERY, source)
    assert (code, lines(out), err) == (exits.OK, MATCHES, "")
    code, out, err = run("run", QUERY + " RETURN w.ts AS washed, o.ts AS used", source, "-o", target)
    assert (code, out) == (exits.OK, "")
    assert f"2 matches in {target}" in err
    again = ("run", "PATTERN used u WITHIN 1", target, "--time", "washed", "--type", "used")
    assert run(*again, "--count")[1] in ("0\n", "")  # it is a file that can be read


def test_the_query_is_a_file_if_there_is_one(
    run: Run, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "my query.txt"
    path.write_text(QUERY)
    for given in (path, f"@{path}"):
        assert lines(run("run", given, events)[1]) == MATCHES
    monkeypatch.setattr("sys.stdin", io.StringIO(QUERY))
    assert lines(run("run", "-", events)[1]) == MATCHES
    monkeypatch.chdir(tmp_path)
    (tmp_path / QUERY).write_text("PATTERN Wash w WITHIN 1")  # a file with such a name wins, too
    assert run("run", QUERY, events, "--count")[1] == "2\n"
    assert run("run", "PATTERN Operate o WITHIN 1", events, "--count")[1] == "2\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [("query.txt", "no file 'query.txt', and no query either"), ("", "empty"), ("@missing.txt", "missing.txt")],
)
def test_what_is_no_query(run: Run, events: Path, given: str, said: str) -> None:
    code, _, err = run("run", given, events)
    assert code in (exits.USAGE, exits.DATA)
    assert said in err


def test_several_files_and_globs(run: Run, tmp_path: Path) -> None:
    one, two = save(tmp_path / "1.csv", EVENTS[:2]), save(tmp_path / "2.csv", EVENTS[2:])
    for given in ((one, two), (tmp_path / "*.csv",), (tmp_path,)):
        assert lines(run("run", QUERY, *given)[1]) == MATCHES


@pytest.mark.parametrize("kind", ["csv", "jsonl", "arrow", "parquet"])
def test_standard_input(tmp_path: Path, kind: str) -> None:
    path = save(tmp_path / f"events.{kind}")
    done = quercus("run", QUERY, "-", given=path.read_bytes())
    assert (done.returncode, lines(done.stdout.decode())) == (0, MATCHES), done.stderr
    streamed = io.BytesIO()
    table = pa.Table.from_pylist(EVENTS)
    with pa.ipc.new_stream(streamed, table.schema) as writer:
        writer.write_table(table)
    if kind == "arrow":
        assert lines(quercus("run", QUERY, "-", given=streamed.getvalue()).stdout.decode()) == MATCHES


def test_text_that_needs_describing(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bars.txt"
    path.write_text("MSFT,200802010900,31.25\nDRIV,200802010901,33.69\nMSFT,200802010903,31.0\n")
    query = "PATTERN SEQ(MSFT a, DRIV b, b.close > a.close) WITHIN 1 min"
    described = ("--columns", "type,ts,close", "--time-format", "%Y%m%d%H%M")
    code, out, _ = run("run", query, path, *described)
    assert code == exits.OK
    assert [m["b"]["ts"] for m in lines(out)] == ["2008-02-01T09:01:00"]
    code, _, err = run("run", query, path, "--columns", "type,ts,close", "--time-format", "%Y-%m")
    assert code == exits.DATA
    assert "'200802010900' is no time of the format '%Y-%m'" in err
    code, _, err = run("run", query, path)
    assert code == exits.DATA
    assert "name its format" in err
    code, _, err = run("run", query, path, "--format", "csv")
    assert code == exits.DATA
    assert "--columns" in err
    assert "MSFT, 200802010900, 31.25" in err


@pytest.mark.parametrize(
    ("time", "format"),
    [(200802010900, "%Y%m%d%H%M"), (20080201, "%Y%m%d"), (20080201090000, "%Y%m%d%H%M%S")],
)
def test_dates_in_digits_are_not_taken_for_numbers(run: Run, tmp_path: Path, time: int, format: str) -> None:
    path = save(tmp_path / "bars.csv", [{"ts": time, "type": "A"}, {"ts": time + 1, "type": "B"}])
    query = "PATTERN SEQ(A a, B b) WITHIN 1 day"
    code, out, err = run("run", query, path)
    assert (code, out) == (exits.DATA, "")
    assert f"--time-format '{format}'" in err
    assert run("run", query, path, "--time-format", format, "--count")[:2] == (exits.OK, "1\n")
    assert run("run", query, path, "--time-unit", "s", "--count")[:2] == (exits.OK, "1\n")
    assert run("run", "PATTERN SEQ(A a, B b) WITHIN 1", path, "--count")[:2] == (exits.OK, "1\n")
    other = save(tmp_path / "other.csv", [{"ts": time, "type": "A"}, {"ts": time + 80, "type": "B"}])  # no such date
    assert run("run", "PATTERN SEQ(A a, B b) WITHIN 1 s", other, "--count")[:2] == (exits.OK, "1\n")


def test_a_window_without_a_unit_over_moments_is_said(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,type\n2024-01-01 00:00:00,A\n2024-01-01 00:00:03,B\n")
    for query, said in (
        ("PATTERN SEQ(A a, B b) WITHIN 3", True),
        ("PATTERN SEQ(A a, B b) WITHIN 3 RETURN a.ts", True),
        ("PATTERN SEQ(A a, B b) WITHIN 3 s", False),
        ("PATTERN SEQ(A a, B b) WITHIN 30 minutes RETURN a.ts", False),
        ("PATTERN SEQ(A a, B b) WITHIN 2h", False),
        ("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS", False),
    ):
        assert ("quercus: taken: WITHIN 3 s;" in run("run", query, path)[2]) == said, query


@pytest.mark.parametrize("megabytes", [2, 20])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_long_line(run: Run, tmp_path: Path, suffix: str, megabytes: int) -> None:
    events = [{"ts": 1, "type": "Wash", "id": 7, "x": "y" * megabytes * 2**20}, {**EVENTS[3], "x": "z"}]
    path = save(tmp_path / f"events.{suffix}", events)
    assert run("run", QUERY.replace("[id]", "[id], w.x <> o.x"), path, "--count") == (exits.OK, "1\n", "")


def test_what_is_too_long_is_said(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quercus.backends.local.files._LONGEST", 2**20)
    monkeypatch.setattr("quercus.backends.local.infer._BLOCK", 2**20)
    path = tmp_path / "events.csv"
    path.write_text('ts,type,id\n1,Wash,"' + "7\n" * 2**20)
    code, _, err = run("run", QUERY, path)
    assert (code, "is a quote not closed?" in err) == (exits.DATA, True), err


def test_what_integer_times_count_is_said_where_it_matters(run: Run, tmp_path: Path) -> None:
    path = str(save(tmp_path / "events.csv"))
    said = "quercus: taken: --time-unit ms\n"
    for query in (f"{QUERY} ms", f"{QUERY} min", "PATTERN SEQ(Wash w, Operate o) within 2hours"):
        assert run("run", query, path, "--count") == (exits.OK, run("run", query, path, "--count", "-q")[1], said)
    assert run("run", f"{QUERY} s", path, "--count", "--time-unit", "s")[2] == ""
    for query in (QUERY, f"{QUERY} EVENTS", f"{QUERY} RETURN w.id AS s"):
        assert run("run", query, path, "--count")[2] == ""


def test_another_delimiter_is_noticed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts;type;id\n1;Wash;7\n2;Operate;7\n")
    code, out, err = run("run", QUERY, path, "--count")
    assert (code, out) == (exits.OK, "1\n")
    assert "--delimiter ';'" in err
    assert run("run", QUERY, path, "--count", "--delimiter", ";") == (exits.OK, "1\n", "")


PRICES = "PATTERN SEQ(Wash w, Operate o) WHERE w.price < o.price WITHIN 5 RETURN w.price AS a, o.price - w.price AS b"


def test_decimal_commas_are_noticed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts;type;price\n1;Wash;9,5\n2;Operate;10,25\n")  # as text, 10,25 is less than 9,5
    hint = "quercus: column 'price' is text: --decimal , reads it as numbers"
    code, _, err = run("run", PRICES, path)
    assert (code, "E201" in err, hint in err) == (exits.QUERY, True, True), err
    code, out, err = run("run", PRICES, path, "--decimal", ",")
    assert (code, out) == (exits.OK, '{"a": 9.5, "b": 0.75}\n')
    assert hint not in err
    code, _, err = run("run", PRICES, path, "--decimal", ",", "--delimiter", ",")
    assert (code, "cannot be both" in err) == (exits.DATA, True), err
    path.write_text("ts;type;price\n1;Wash;9,5\n2;Operate;x\n")
    code, _, err = run("run", PRICES, path, "--decimal", ",", "--attribute", "price=float64")
    assert (code, "'x' is no float64" in err) == (exits.DATA, True), err


@pytest.mark.parametrize("fields", ["1,234;5,678", "1,2,3;4,5", "a,1;2,5x", "1.5;2.5"])
def test_what_is_no_decimal_comma_is_not_noticed(run: Run, tmp_path: Path, fields: str) -> None:
    """Groups of three digits may be thousands."""
    first, _, second = fields.partition(";")
    path = tmp_path / "events.csv"
    path.write_text(f"ts;type;x\n1;Wash;{first}\n2;Operate;{second}\n")
    assert "--decimal" not in run("run", "PATTERN SEQ(Wash w, Operate o) WITHIN 5", path)[2]


# What columns mean ----------------------------------------------------------------------------------------------------


def test_columns_are_guessed_and_it_is_said(run: Run, tmp_path: Path) -> None:
    events = [{"Timestamp": 1_700_000_000 + e["ts"], "event": e["type"], "id": e["id"]} for e in EVENTS]
    path = save(tmp_path / "events.csv", events)
    code, out, err = run("run", "PATTERN SEQ(Wash w, Operate o, [id]) WITHIN 1 s", path, "--count")
    assert (code, out) == (exits.OK, "1\n")
    assert "--time 'Timestamp' --type 'event' --time-unit s" in err
    assert run("run", QUERY, path, "--count", "--quiet")[2] == ""


def test_nothing_fits(run: Run, tmp_path: Path) -> None:
    path = save(tmp_path / "events.csv", [{"when": 1, "what": "A"}])
    code, _, err = run("run", QUERY, path)
    assert code == exits.DATA
    assert "say which with --time; columns: when, what" in err
    code, _, err = run("run", QUERY, path, "--time", "wen")
    assert "no time column 'wen': columns: when, what" in err


def test_options_of_the_schema(run: Run, tmp_path: Path) -> None:
    events = [{"t": i // 2, "k": k, "id": i % 2, "ts": 5} for i, k in enumerate("ABAB")]
    path = save(tmp_path / "events.csv", events)
    options = ("--time", "t", "--type", "k", "--count")
    _, out, err = run("run", "PATTERN SEQ(A a, B b) WITHIN 5 s", path, *options, "--time-unit", "s")
    assert out == "1\n"
    assert "left out: ts" in err
    assert run("run", "PATTERN SEQ(A a, B b) WITHIN 5", path, *options, "--ties", "arrival")[1] == "3\n"
    assert run("run", "PATTERN SEQ(A a, B b) WITHIN 5", path, *options, "--key", "id")[1] == "0\n"
    assert run("run", "PATTERN X x WITHIN 5", path, *options, "--hierarchy", '{"X": ["A", "B"]}')[1] == "4\n"
    typed = ("--attribute", "id=string", "-q")
    assert run("run", "PATTERN SEQ(A a, B b, a.id = '0') WITHIN 5", path, *options, *typed)[1] == "1\n"


def test_a_schema_from_a_file(run: Run, events: Path, tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({"attributes": {"id": "int64"}, "time": "ts", "type": "type", "time_unit": "s"}))
    assert run("run", "PATTERN SEQ(Wash w, Operate o) WITHIN 1 s", events, "--schema", path, "--count")[1] == "1\n"
    assert run("run", QUERY, events, "--schema", path, "--time", "ts")[0] == exits.USAGE
    for text in ("{", "[]", '{"attributes": {}, "zeit": 3}'):
        path.write_text(text)
        code, _, err = run("run", QUERY, events, "--schema", path)
        assert (code, "no schema" in err) == (exits.DATA, True), text


# What comes out -------------------------------------------------------------------------------------------------------


def test_counts_limits_and_groups(run: Run, events: Path) -> None:
    assert run("run", QUERY, events, "--count") == (exits.OK, "2\n", "")
    assert lines(run("run", QUERY, events, "--count", "--json")[1]) == [{"matches": 2}]
    assert lines(run("run", QUERY, events, "--limit", 1)[1]) == MATCHES[:1]
    assert lines(run("run", QUERY + " AGG COUNT(*) AS n GROUPBY w.id", events)[1]) == [
        {"w.id": 9, "n": 1},
        {"w.id": 7, "n": 1},
    ]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "arrow", "parquet"])
def test_standard_output(events: Path, kind: str) -> None:
    done = quercus("run", QUERY + " RETURN w.ts AS washed", str(events), "-o", "-", "--to", kind)
    assert (done.returncode, done.stderr) == (0, b"")
    match kind:
        case "jsonl":
            found = lines(done.stdout.decode())
        case "csv":
            found = pa.csv.read_csv(io.BytesIO(done.stdout)).to_pylist()
        case "arrow":
            found = pa.ipc.open_stream(done.stdout).read_all().to_pylist()
        case _:
            found = pa.parquet.read_table(io.BytesIO(done.stdout)).to_pylist()
    assert found == [{"washed": 2}, {"washed": 1}]


def test_large_files_in_pieces_give_the_same(run: Run, events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "LARGE", 0)
    assert lines(run("run", QUERY, events)[1]) == MATCHES


def test_a_continuous_query(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "at.csv"
    path.write_text("ts,Person,Location\n10,Tom,Lab\n20,Ann,Cafe\n")
    query = "ISTREAM(SELECT Person FROM At[Now] WHERE Location = 'Lab')"
    assert lines(run("run", query, f"At={path}")[1]) == [{"ts": 10, "Person": "Tom"}]
    code, _, err = run("run", query, path)
    assert (code, "NAME=PATH" in err) == (exits.USAGE, True)


# What goes wrong ------------------------------------------------------------------------------------------------------


def test_exit_codes(run: Run, events: Path, tmp_path: Path) -> None:
    assert run("run", QUERY, events, "--fail-on-match")[0] == exits.FOUND
    assert run("run", "PATTERN Operate o WITHIN 1 RETURN o.ts", events, "--fail-on-match", "--limit", 0)[0] == 1
    assert run("run", "PATTERN Nothing n WITHIN 1", events, "--fail-on-match")[0] == exits.OK
    code, _, err = run("run", "PATTERN SEQ(Wash w, Operate o, w.idd = 3) WITHIN 5", events)
    assert code == exits.QUERY
    assert "did you mean 'id'?" in err
    assert "^^^" in err
    assert run("run", QUERY, tmp_path / "no.csv")[0] == exits.DATA
    code, _, err = run("run", QUERY, events, "--max-matches", 1)
    assert (code, "raise --max-matches" in err) == (exits.LIMIT, True)
    assert run("run", QUERY)[0] == exits.USAGE
    assert run("run", QUERY, events, "--limit", -1)[0] == exits.USAGE
    assert run("run", QUERY + " AGG COUNT(*) AS n", events, "--fail-on-match")[0] == exits.USAGE
    assert run("run", QUERY, events, "-o", tmp_path / "out.xls")[0] == exits.DATA
    assert run("run", QUERY, events, "--backend", "sprak")[0] == exits.QUERY
    assert run("frobnicate")[0] == exits.USAGE
    assert run("--version")[0] == exits.OK


def test_the_help_has_all_exit_codes(run: Run) -> None:
    out = run("--help")[1]
    codes = {v for k, v in vars(exits).items() if k.isupper() and isinstance(v, int)}
    assert codes == set(exits.CODES)
    assert all(f"{code:>5}  {what}" in out for code, what in exits.CODES.items())


def test_bad_data_is_no_traceback(run: Run, tmp_path: Path) -> None:
    for name, text in {
        "a.csv": "ts,type,id\n1,A,x\n",
        "b.csv": "",
        "c.jsonl": '{"ts": 1, "type": "A"',
        "d.parquet": "nothing",
        "e.arrow": "nothing",
        "f.csv": "ts,type\n,A\n",
        "g.jsonl": "",
    }.items():
        path = tmp_path / name
        path.write_text(text)
        code, _, err = run("run", "PATTERN SEQ(A a, B b) WITHIN 5", path)
        assert code in (exits.OK, exits.DATA), name
        assert code == exits.OK or name in err or "column" in err, (name, err)


def test_times_of_another_form(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("ts,type\n01.02.2026 10:00,A\n01.02.2026 10:05,B\n")
    code, _, err = run("run", "PATTERN SEQ(A a, B b) WITHIN 1 hour", path)
    assert (code, "--time-format reads times of another form" in err) == (exits.DATA, True), err


def test_the_time_that_is_to_blame_is_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,type\n1,A\n2,B\nthree,B\n")
    code, _, err = run("run", "PATTERN SEQ(A a, B b) WITHIN 5", path)
    assert (code, "row 2" in err, "'three' is no number" in err) == (exits.DATA, True, True), err


def test_a_folder_that_is_not_there(run: Run, events: Path, tmp_path: Path) -> None:
    code, _, err = run("run", QUERY, events, "-o", tmp_path / "no" / "out.csv")
    assert (code, f"no folder '{tmp_path / 'no'}'" in err) == (exits.DATA, True)


def test_an_error_of_ours_is_told_as_one(run: Run, events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> None:
        raise KeyError("broken")

    monkeypatch.setattr("quercus.cli.run.asked", broken)
    monkeypatch.delenv("QUERCUS_DEBUG", raising=False)
    code, _, err = run("run", QUERY, events)
    assert (code, "please report it" in err) == (exits.INTERNAL, True)


def test_the_document_has_all_exit_codes_and_commands() -> None:
    text = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    assert all(f"\n| {code} | " in text for code in exits.CODES)
    assert all(f"\n| `{name}" in text for name in COMMANDS)


def test_why_not(run: Run, events: Path) -> None:
    code, out, _ = run("run", QUERY.replace("5", "1"), events, "--why")
    assert (code, bool(out)) == (exits.OK, True)


def test_why_speaks_of_options(run: Run, tmp_path: Path) -> None:
    path = save(tmp_path / "events.csv", [{"ts": 1, "type": "A"}, {"ts": 1, "type": "B"}])
    out = run("run", "PATTERN SEQ(A a, B b) WITHIN 5", path, "--why")[1]
    assert "-> --ties arrival" in out


def test_errors_are_json_where_json_is_asked_for(run: Run, events: Path) -> None:
    code, out, err = run("run", "PATTERN SEQ(Wash w, Operate o, w.idd > 3) WITHIN 5", events, "--json")
    place = {"code": "E104", "line": 1, "column": 34, "hint": "did you mean 'id'?"}
    assert (code, out) == (exits.QUERY, "")
    assert json.loads(err)["error"] == {"exit": 3, "message": "no attribute 'idd' in event type 'Wash'", **place}
    code, _, err = run("run", QUERY, events, "--json", "--max-matches", "1")
    said = json.loads(err)["error"]
    assert (code, said["exit"], said["limit"], said["value"]) == (exits.LIMIT, exits.LIMIT, "max_matches", 1)
    assert "--max-matches" in said["message"]
    code, _, err = run("check", QUERY, "nowhere.csv", "--json")
    assert (code, json.loads(err)["error"]["message"]) == (exits.DATA, "no file at 'nowhere.csv'")
    code, out, err = run("run", "--json", QUERY)
    said = json.loads(err)["error"]
    assert (code, out, said["exit"]) == (exits.USAGE, "", exits.USAGE)
    assert said["message"].startswith("the following arguments are required: EVENTS")
    for given in (("--js", "--limit", "x", QUERY, events), ("--js", QUERY, "nowhere.csv")):
        assert json.loads(run("run", *given)[2])["error"]["exit"] in (exits.USAGE, exits.DATA)
    assert run("run", QUERY, "--", "--json")[2].startswith("quercus: no file at '--json'")


def test_where_nothing_is_found_it_says_how_to_learn_why(run: Run, events: Path) -> None:
    query = "PATTERN SEQ(Nothing a, Operate o) WITHIN 5"
    code, out, err = run("run", query, events)
    assert (code, out) == (exits.OK, "")
    assert "no match: no event is a 'Nothing'; --why says" in err
    assert "(did you mean 'Wash'?)" in run("run", "PATTERN SEQ(Wahs+ a, Operate o) WITHIN 5", events)[2]
    assert "no match; --why says" in run("run", "PATTERN SEQ(Operate o, !Nothing, Wash w) WITHIN 1", events)[2]
    assert run("run", query, events, "--quiet") == (exits.OK, "", "")
    assert "no match" not in run("run", query, events, "--count")[2]


@pytest.mark.parametrize("unit", ["mins", "m", "hrs", "hr", "secs", "msecs", "µs", "minutes"])
def test_units_are_known_in_every_spelling(run: Run, tmp_path: Path, unit: str) -> None:
    """What the language takes for a unit, the guard against dates in digits does too."""
    path = tmp_path / "bars.csv"
    path.write_text("ts,type\n200802010959,A\n200802011000,B\n")
    code, out, err = run("run", f"PATTERN SEQ(A a, B b) WITHIN 5 {unit}", str(path), "--count")
    assert (code, out) == (4, "")
    assert "look like dates" in err
    code, out, err = run("run", "PATTERN SEQ(A a, B b) WITHIN 5 events", str(path), "--count")
    assert (code, out) == (0, "1\n")


def test_whole_numbers_beyond_64_bits_stay_apart(run: Run, tmp_path: Path) -> None:
    ids = 2**63 + 1, 2**63
    text, jsonl = tmp_path / "e.csv", tmp_path / "e.jsonl"
    text.write_text(f"ts,type,id\n1,Wash,{ids[0]}\n2,Operate,{ids[1]}\n3,Operate,{ids[0]}\n")
    code, out, err = run("run", QUERY, str(text))
    assert [m["o"]["ts"] for m in lines(out)] == [3]
    jsonl.write_text(f'{{"ts":1,"type":"Wash","id":{ids[0]}}}\n{{"ts":2,"type":"Operate","id":{ids[1]}}}\n')
    code, out, err = run("run", QUERY, str(jsonl))
    assert (code, out) == (4, "")
    assert f"'{ids[0]}' is no int64: --attribute id=float64 reads it, rounded" in err


@pytest.mark.parametrize("query", [QUERY, "PATTERN SEQ(Wash w, Operate o) WHERE w.id = 'x' WITHIN 5"])
@pytest.mark.parametrize("rows", ["", "1,Wash,\n2,Operate,\n"])
def test_columns_without_a_value_are_columns(run: Run, tmp_path: Path, query: str, rows: str) -> None:
    path = tmp_path / "e.csv"
    path.write_text(f"ts,type,id\n{rows}")
    code, out, err = run("run", query, str(path), "--count")
    assert (code, out) == (0, "0\n"), err


def test_words_for_null(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("ts,type,id,note\n1,Wash,7,NA\n2,Operate,NA,b\n3,Operate,7,c\n")
    code, out, err = run("run", QUERY, str(path))
    assert (code, out) == (4, "")
    assert "'NA' is no int64, and null if --null NA says so" in err
    code, out, err = run("run", QUERY, str(path), "--null", "NA")
    [found] = lines(out)
    assert (found["o"]["ts"], found["w"]["note"]) == (3, None)


def test_times_of_day_and_nanoseconds(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("ts,type,at\n1,Wash,10:00:00\n2,Operate,11:00:00\n")
    code, out, err = run("run", "PATTERN SEQ(Wash w, Operate o) WHERE w.at = '10:00:00' WITHIN 5", str(path), "--count")
    assert (code, out) == (0, "1\n"), err
    jsonl = tmp_path / "e.jsonl"
    fine = "2024-01-01T10:00:0{}.123456789+02:00"
    jsonl.write_text("".join(f'{{"ts":"{fine.format(i)}","type":"{t}"}}\n' for i, t in enumerate(("Wash", "Operate"))))
    code, out, err = run("run", "PATTERN SEQ(Wash w, Operate o) WITHIN 1 s RETURN w.ts", str(jsonl))
    assert json.loads(out) == {"w_ts": "2024-01-01T08:00:00.123456789"}, err


def test_an_answer_is_never_written_over_its_events(run: Run, events: Path, tmp_path: Path) -> None:
    before = events.read_bytes()
    link = tmp_path / f"other{events.suffix}"
    link.symlink_to(events)
    for output in (events, link):
        code, _, err = run("run", QUERY, str(events), "-o", str(output))
        assert (code, events.read_bytes()) == (2, before)
        assert "is one of the files of events" in err


@pytest.mark.parametrize(
    "options",
    [
        ["--why", "--count"],
        ["--why", "-o", "x.csv"],
        ["-o", "x.jsonl", "--to", "csv"],
        ["--follow", "--count"],
        ["--follow", "--limit", "1"],
        ["--follow", "--why"],
    ],
)
def test_options_that_cannot_be_had_together(run: Run, events: Path, options: list[str]) -> None:
    code, out, err = run("run", QUERY, str(events), *options)
    assert (code, out) == (2, "")
    assert "--" in err


def test_a_query_with_a_byte_order_mark(run: Run, events: Path, tmp_path: Path) -> None:
    path = tmp_path / "query.txt"
    path.write_text(QUERY, encoding="utf-8-sig")
    assert run("run", str(path), str(events), "--count")[:2] == (0, "2\n")


def test_one_array_is_not_json_lines(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text(json.dumps(EVENTS))
    code, _, err = run("run", QUERY, str(path))
    assert code == 4
    assert "is one JSON array" in err


def test_the_input_is_not_called_by_names_of_ours() -> None:
    done = quercus("run", QUERY, "-", "--format", "parquet", given=b"no parquet at all")
    assert done.returncode == 4
    assert b"the input cannot be read" in done.stderr
    assert b"quercus-" not in done.stderr
    done = quercus("run", QUERY, "-", given=b"\x1f\x8b\x08\x00")
    assert (done.returncode, b"standard input is compressed" in done.stderr) == (4, True)


@pytest.mark.parametrize("command", [["run"], ["run", "--why"], ["check"], ["explain", "--analyze"]])
def test_ctrl_c_is_not_lost_while_pandas_is_imported(tmp_path: Path, command: list[str]) -> None:
    """pyarrow imports it when it first meets NumPy; in to_numpy() it swallows whatever is raised meanwhile."""
    path = save(tmp_path / "events.csv", [{**e, "price": 1.5} for e in EVENTS])
    code = f"""
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from quercus.cli import main
sys.exit(main({[*command, QUERY, str(path)]!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=ENVIRONMENT, timeout=120)
    assert (done.returncode, done.stderr[-12:]) == (exits.INTERRUPTED, b"interrupted\n"), done.stderr

"""explain, plan, cube, check, test, demo, bench, version, completion."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import quercus as qc
from quercus.cli import exits
from quercus.cli.parser import COMMANDS
from tests.cli.helpers import QUERY, Run, quercus, save


def test_explain(run: Run, events: Path, tmp_path: Path) -> None:
    assert "tree\n" in run("explain", QUERY, events)[1]
    assert "partition_key: " in run("explain", QUERY, events, "--verbose")[1]
    for given in ((events, "--analyze"), ("--analyze", events)):
        assert "matches       2" in run("explain", QUERY, *given)[1]
    assert "chosen" in run("explain", QUERY, events, "--alternatives")[1]
    plan = qc.Plan.from_json(run("explain", QUERY, events, "--json")[1])
    assert plan.text == QUERY
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(plan.schema.to_dict()))
    assert "tree\n" in run("explain", QUERY, "--schema", schema)[1]
    assert run("explain", QUERY)[0] == exits.USAGE
    assert run("explain", QUERY, "--schema", schema, "--analyze")[0] == exits.USAGE


def test_explain_for_machines(run: Run, events: Path) -> None:
    told = json.loads(run("explain", QUERY, events, "--json", "--analyze")[1])
    assert told["run"]["matches"] == 2
    assert {tuple(n["path"]): n.get("rows") for n in told["run"]["nodes"]}[0,] == 2
    assert qc.Plan.from_json(json.dumps(told["plan"])).text == QUERY
    shapes = json.loads(run("explain", QUERY, events, "--json", "--alternatives")[1])
    assert [a["chosen"] for a in shapes].count(True) == 1


def test_where_pages_and_pictures_go(run: Run, events: Path, tmp_path: Path) -> None:
    code, out, _ = run("report", QUERY, events, "-o", "-")
    assert (code, out[:15]) == (0, "<!DOCTYPE html>")
    assert run("report", QUERY, events, "-o", tmp_path / "r.pdf")[0] == 2
    assert run("plan", QUERY, events, "-o", tmp_path / "none" / "p.svg")[0] == 4
    path = tmp_path / "queries.txt"
    path.write_text(f"a: {QUERY}\n")
    assert run("cube", path, events, "-o", "-")[0] == 2
    assert run("cube", path, events, "--graph", tmp_path / "none" / "g.svg")[0] == 4


def test_what_tests_nothing_does_not_pass(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.case"
    case = "case: x\nquery: PATTERN SEQ(A a, B b) WITHIN 5\nevents: a1 b2\nmust not match: {}=a1\n"
    path.write_text(case.format("aa"))
    code, out, _ = run("test", path)
    assert code == 1
    assert "no variable 'aa' in a match: they are a, b" in out
    path.write_text(case.format("b"))
    assert run("test", path)[0] == 0
    assert run("test", path, "-k", "zzz")[0] == 4
    path.write_text("")
    assert run("test", path)[0] == 4


def test_plan(run: Run, events: Path, tmp_path: Path) -> None:
    assert run("plan", QUERY, "-o", "-", events)[1].startswith("digraph")
    code, out, _ = run("plan", QUERY, events, "-o", tmp_path / "plan.dot")
    assert (code, out) == (exits.OK, f"{tmp_path / 'plan.dot'}\n")
    assert (tmp_path / "plan.dot").exists()
    assert run("plan", QUERY, events, "-o", tmp_path / "plan.xyz")[0] != exits.OK


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "q.toml",
            '[queries]\none = "PATTERN SEQ(Wash w, Operate o, [id]) WITHIN 5"\ntwo = "PATTERN Wash w WITHIN 5"\n',
        ),
        ("q.json", '{"one": "PATTERN SEQ(Wash w, Operate o, [id]) WITHIN 5", "two": "PATTERN Wash w WITHIN 5"}'),
        ("q.txt", "# both\none: PATTERN SEQ(Wash w, Operate o,\n  [id]) WITHIN 5\ntwo: PATTERN Wash w WITHIN 5\n"),
    ],
)
def test_cube(run: Run, events: Path, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    code, out, _ = run("cube", tmp_path / name, events, "--graph", tmp_path / "cube.dot", "-o", tmp_path / "out")
    assert code == exits.OK
    assert [line.split()[:2] for line in out.splitlines()] == [["query", "matches"], ["one", "2"], ["two", "2"]]
    assert (tmp_path / "cube.dot").exists()
    assert (tmp_path / "out" / "one.parquet").exists()
    assert json.loads(run("cube", tmp_path / name, events, "--json")[1]) == {"one": 2, "two": 2}


@pytest.mark.parametrize("text", ["", "one PATTERN", " PATTERN A WITHIN 3", "one: x\none: y"])
def test_no_cube(run: Run, events: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "q.txt").write_text(text)
    assert run("cube", tmp_path / "q.txt", events)[0] == exits.DATA


def test_a_cube_with_a_hierarchy(run: Run, events: Path, tmp_path: Path) -> None:
    path = tmp_path / "q.toml"
    path.write_text('[hierarchy]\nAny = ["Wash", "Operate"]\n[queries]\nall = "PATTERN Any a WITHIN 5"\n')
    assert json.loads(run("cube", path, events, "--json")[1]) == {"all": 4}


def test_check(run: Run, events: Path) -> None:
    assert run("check", QUERY.replace("5", "2"), events) == (exits.OK, "nothing found\n", "")
    code, out, _ = run("check", "PATTERN SEQ(Wahs w, Operate o, o.id > 100) WITHIN 5", events)
    assert code == exits.FOUND
    assert "error[L101]" in out
    assert "did you mean 'Wash'?" in out
    assert "2 errors" in out
    code, out, _ = run("check", "PATTERN SEQ(Wahs w, Operate o) WITHIN 2", events, "--json")
    assert [f["code"] for f in json.loads(out)] == ["L101"]
    noted = ("check", "PATTERN SEQ(Wash w, Operate o, o.id > 1) WITHIN 3", events)
    assert run(*noted)[0] == exits.OK
    assert run(*noted, "--strict")[0] == exits.FOUND


def test_version(run: Run) -> None:
    assert run("version")[1].startswith(f"quercus {qc.__version__}\n")
    assert json.loads(run("version", "--json")[1])["quercus"] == qc.__version__


def test_demo(run: Run, tmp_path: Path) -> None:
    assert "Tool 12: recycled 08:02" in run("demo", "-o", tmp_path / "plan.dot")[1]
    assert (tmp_path / "plan.dot").exists()
    assert run("demo", "--data", tmp_path / "h.csv")[0] == exits.OK
    (tmp_path / "query.txt").write_text(run("demo", "--query")[1])
    assert run("run", tmp_path / "query.txt", tmp_path / "h.csv", "--time-unit", "s", "--count")[1] == "2\n"


def test_bench(run: Run) -> None:
    code, out, _ = run("bench", "--events", 5000, "--json", "-q")
    rows = json.loads(out)["results"]
    assert code == exits.OK
    pairs = {r["engine"]: r["matches"] for r in rows if r["query"] == "pairs by key"}
    assert len(set(pairs.values())) == 1, pairs  # all engines count the same
    assert "pairs by key" in run("bench", "--events", 5000, "-q")[1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_has_every_command(run: Run, shell: str) -> None:
    out = run("completion", shell)[1]
    assert all(name in out for name in COMMANDS)
    assert "max-matches" in out
    assert run("completion", "csh")[0] == exits.USAGE


def test_bash_completes(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "completion"
    script.write_text(run("completion", "bash")[1])

    def completed(*words: str) -> list[str]:
        given = " ".join(f"'{w}'" for w in words)
        ask = f"COMP_WORDS=({given}); COMP_CWORD={len(words) - 1}; _quercus; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        done = subprocess.run(["bash", "-c", f"source {script}; {ask}"], capture_output=True, check=True, text=True)
        return done.stdout.split()

    assert completed("quercus", "ex") == ["explain"]
    assert completed("quercus", "run", "--max-m") == ["--max-matches"]
    assert completed("quercus", "run", "--ties", "") == ["strict", "arrival"]


def test_every_command_has_help() -> None:
    for name in COMMANDS:
        done = quercus(name, "--help")
        assert (done.returncode, done.stderr) == (0, b""), name
        assert len(done.stdout) > 100


def test_from_outside_the_project(tmp_path: Path) -> None:
    save(tmp_path / "events.csv")
    done = quercus("run", QUERY, "events.csv", "--count", cwd=tmp_path)
    assert done.returncode == 0 or b"No module named quercus" in done.stderr


def test_continuous_queries_are_shown(run: Run, events: Path, tmp_path: Path) -> None:
    query = "ISTREAM(SELECT id FROM S[Now])"
    code, out, _ = run("explain", query, f"S={events}")
    assert code == exits.OK
    assert "select: id" in out
    assert run("plan", query, f"S={events}", "-o", "-")[1].startswith("digraph")
    assert run("explain", query, f"S={events}", "--analyze")[0] == exits.USAGE
    assert run("check", query, f"S={events}")[0] == exits.USAGE
    assert run("explain", query)[0] == exits.QUERY


@pytest.mark.parametrize(
    "option",
    [("--snapshot", "s"), ("--bad", "drop"), ("--late", "drop"), ("--max-delay", "5 s"), ("--idle-advance", "1")],
)
def test_options_of_live_streams_need_one(run: Run, events: Path, option: tuple[str, str]) -> None:
    code, out, err = run("run", QUERY, events, *option)
    assert (code, out) == (exits.USAGE, "")
    assert f"{option[0]} is about live streams: give --follow" in err

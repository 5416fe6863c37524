"""What benchmarks wrote is what the documents show, and a run that got worse is noticed. No time is measured here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import aims, documents, record
from benchmarks.all import PARTS
from benchmarks.compare import changes
from benchmarks.record import Ratio
from benchmarks.tables import TABLES
from benchmarks.tables.markdown import markdown, short, times
from tests.test_readme import ROOT


def saved(folder: Path, **ratios: Ratio) -> Path:
    record.record("engine", {}, ratios, folder)
    return folder


@pytest.mark.parametrize("path", documents.documents(), ids=lambda p: p.name)
def test_tables_are_those_of_the_results(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert documents.written(text) == text, "run: python -m benchmarks.documents"


def test_a_table_that_was_changed_by_hand_is_noticed() -> None:
    text = "<!-- figures: engine -->\n| W1 | 0.1 |\n<!-- end of figures -->\n"
    if record.read("engine") is None:
        assert documents.written(text) == text
    else:
        assert documents.written(text) != text


def test_every_result_is_read_back() -> None:
    for path in record.RESULTS.glob("*.json"):
        found = record.read(path.stem)
        assert found is not None
        assert record.ratios(found)


@pytest.mark.parametrize(
    ("before", "after", "worse"),
    [
        (Ratio(10), Ratio(9), False),
        (Ratio(10), Ratio(7), True),
        (Ratio(10), Ratio(30), False),
        (Ratio(1.5, less=True), Ratio(1.4, less=True), False),
        (Ratio(1.5, less=True), Ratio(2.5, less=True), True),
    ],
)
def test_what_got_worse_is_found(before: Ratio, after: Ratio, worse: bool, tmp_path: Path) -> None:
    old, new = saved(tmp_path / "old", W1=before), saved(tmp_path / "new", W1=after)
    [change] = changes(old, new)
    assert (change.factor < 1 / 1.2) == worse
    command = [sys.executable, "-m", "benchmarks.compare", str(old), str(new)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == int(worse), done.stderr
    assert ("WORSE" in done.stdout) == worse


def test_nothing_in_common_is_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.compare", str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no results in common" in done.stderr


def test_asked_and_met() -> None:
    assert Ratio(5, 4).met
    assert not Ratio(3, 4).met
    assert Ratio(1.1, 1.3, less=True).met
    assert Ratio(3).met is None


# ---- tables from small results, written by hand

MACHINE = {
    "cpu": "Some",
    "cores": 2,
    "python": "3.11.7",
    "load": 1.5,
    "versions": {"duckdb": "2.0.0", "polars": "2.1.0"},
}
CLOSE = {"queries": 44, "near": 0.955, "middle": 1.01, "worst": 1.26}
NEGATED = {"iterative": 8.0, "balanced": 4.0, "index": 2.0, "auto": 2.0}
ROW = {"iterative": 160.0, "balanced": 20.0, "rewrite": 7.0, "auto": 7.2}
EXPERIMENTS = {
    name: {"rows": {query: row}, "matches": {query: 23_424}}
    for name, query, row in (
        *((name, "500 s", ROW) for name in ("fig10", "fig10-plain")),
        *((name, "2", ROW) for name in ("fig19", "fig21")),
        ("fig23", "2", NEGATED),
        *((name, "q1", NEGATED) for name in ("neel6a", "neel6b", "neel6c")),
        ("neel8", "q10", ROW),
    )
}
WORK = {
    "500 s": {"iterative": {"asked": 9, "results": 7_000}, "balanced": {"asked": 9, "hits": 8, "results": 1}},
    "2": {"iterative": {"tests": 5, "compared": 50}, "balanced": {"asked": 4, "tests": 5}, "index": {"tests": 3}},
}


def grown(of: str, query: str = "PATTERN SEQ(A) WITHIN 1") -> dict[str, object]:
    return {"of": of, "query": query, "events": 1_000, "matches": 10, "seconds": 0.002}


FIGURES: dict[str, object] = {
    "engine": {
        "workloads": [
            {
                "workload": "W1",
                "what": "SEQ of 3",
                "matches": 5,
                "cpu_seconds": {"quercus": 0.004, "duckdb": 0.4, "polars": 0.04},
                "cpu_ratio": 10.0,
                "floor": {"types": 0.0002, "copy": 0.001},
            }
        ],
        "stages": {"W1": dict.fromkeys(("load", "route", "buffers", "match", "order", "prepare"), 0.0005)},
        "growth": {
            "W1, more events": [grown("1,000 events")],
            "W1, longer window (x1: 100)": [grown("few, x1"), grown("few, x10")],
            "longer pattern": [grown("2 components")],
            "larger sets, 1,000 matches": [grown("at the end, 10 elements")],
        },
        "negations": [{**grown("leaf"), "index": 0.001, "search": 0.02}],
        "sifted": [{**grown(f"SEQ of 2, 50%, x{x}"), "sifted": 0.01, "one by one": 0.5} for x in (1, 10, 100)],
        "threads": [{**grown("W1"), "one": 0.01, "two": 0.005, "cpu": 1.2}],
        "streams": {
            "beside a run": {"batch": 1_000, "run_seconds": 0.005, "stream_seconds": 0.009, "ratio": 1.8},
            "by batch": [{"batch": 10, "events": 100, "seconds": 0.001}],
        },
        "aggregates": {
            "W6": {"quercus": 0.008, "duckdb": 8.0, "times": 1000.0},
            "streamed": {"run": 0.01, "stream": 0.03},
            "windows": {"count": [[100, 22.5, "1e+8"], [1000, 23.7, "2e+10"]]},
        },
        "small": {"W1": 0.0015},
    },
    "flink": {
        "version": "2.3.0",
        "workloads": {
            "W2": {"matches": 25_176, "flink": {"cpu_seconds": 7.4}, "quercus": {"cpu_seconds": 0.01}, "ratio": 740.0}
        },
    },
    "adaptive": {"orders": [{"a b": 1.0, "b a": 4.0}, {"a b": 3.0, "b a": 1.0}], "adaptive": [1.1, 1.2]},
    "views": {
        "least": 0.7,
        "experiments": EXPERIMENTS,
        "correlated": {"1": {"partitioned": 0.15, "one view": 0.22}},
        "memory": {"100 s": {"aggressive": 4.3, "passive": 3.2, "balanced": 2.2}},
        "longer": {"2": {"balanced": 57.0, "index": 5.2}},
        "work": WORK,
    },
    "faem": {"summary": {"chosen plan": CLOSE, "first runs": CLOSE}},
    "random": {"summary": {"chosen plan": CLOSE, "first runs": CLOSE}},
    "windows": {
        "example 5": {"quercus": 0.022, "duckdb, lead": 0.105, "python, straight": 39.5},
        "open": [100, 1_000],
        "growth": {"strings: run": [16.0, 32.0]},
        "beyond": [0.1, 0.63],
        "windows": [1, 8],
        "shared": {"run: alone": [17.0, 100.0], "run: one pass": [17.0, 80.0]},
    },
    "cube": {
        "workloads": {
            "1": {
                "matches": {"a": 2, "b": 3},
                "seconds": {way: [0.03, 0.04, 0.02] for way in ("independent", "top_down", "bottom_up", "chase")},
            }
        },
        "rounds": 3,
        "chase": 0.008,
        "hundred": {"cube": 0.3, "all": 1.0, "dearest": 0.1, "matches": 9.0},
    },
    "cube-bars": {
        "rounds": 3,
        "workloads": {
            "1": {
                "events": 3_017,
                "matches": {"a": 2, "b": 3},
                "seconds": {
                    "chase": [0.02, 0.04, 0.01],
                    "independent": [0.03, 0.05, 0.02],
                    "top_down": [0.01, 0.04, 0.01],
                    "bottom_up": [0.20, 0.02, 0.03],
                },
            }
        },
    },
    "calibrate": {
        "runs": 700,
        "queries": 120,
        "times": {"before": {"half": 1.1, "most": 1.4}, "after": {"half": 1.05, "most": 1.3}},
        "rows": {"half": 1.1, "most": 4.2},
    },
    "why": [{"stopped by": "a window", "run": 0.1, "why": 0.9, "obstacles": 1, "misses": 3}],
    "spark-keyed": {
        "times": {name: {"wall": 2.0, "cpu": 3.0} for name in ("empty", "engine", "first", "applyInPandas")}
    },
    "spark-unkeyed": {
        "ways": {
            name: {"times": {"engine": {"wall": 3.0}}, "metrics": {"halo": 1.0, "events": 1_001.0}}
            for name in ("one core", "two cores")
        },
        "machine": 1.9,
    },
    "spark-joins": {"times": {name: {"wall": 1.0} for name in ("W1", "W2", "W2 joins", "W1 joins", "W1 plain joins")}},
    "spark-streams": [{"rows": 250_000.0, "groups": 2, "early": 144_059.0, "rate": 198_696.5, "state": 24_233_424}],
}
CELLS = {  # one line of each table
    "engine": "| W1 | 4.0 | 400.0 | 40.0 | 10.0 |",
    "flink": "| W2 | 25,176 | 10 | 7,400 | 740x |",
    "summary": "| SEQ of 3 | 5 | 4.0 ms | 100x | 10x |  |",
    "stages": "| W1 | 0.5 | 0.5 | 0.5 | 0.5 | 0.5 | 0.5 | 0.2 | 1.0 |",
    "growth-events": "| ns an event | 2000.0 |",
    "growth-windows": "| window | 100 | 1,000 |",
    "growth-length": "| components | 2 |",
    "growth-sets": "| `SEQ(A)` | 2.0 |",
    "counted": "| DuckDB, its fastest form known | 8,000 | 1,000x |",
    "aggregates": "| `SEQ(T0 a, T1 b, T2 c)`, COUNT(*) | 22 | 24 | 2e+10 |",
    "sifted": "| SEQ of 2 | 50% | 10 / 500 | 10 / 500 | 10 / 500 | 10 |",
    "negations": "| `SEQ(A) WITHIN 1` | 10 | 1.0 | 20 | 20.0x |",
    "streamed": "| pushes of 1,000 events | 9.0 | 1.80x |",
    "pushes": "| µs a push | 100 |",
    "threads": "| W1 | 10 | 5.0 | 2.00 | 1.20 |",
    "small": "| W1 | 1.5 |",
    "adaptive": "| over the best order | 1.10x | 1.20x |",
    "views-windows": "| 500 s | 23,424 | 160 | 20 | 7.0 | 7.2 | 8.0x |",
    "views-work": "| 500 s | 9 | 8 | 1 | 7,000 |",
    "views-plain": "| 500 s | 23,424 | 160 | 20 | 7.0 | 7.2 |",
    "views-positive": "| number 2 | 23,424 | 160 | 20 | 7.0 | 7.2 |",
    "views-negated": "| q1 | 23,424 | 8.0 | 4.0 | 2.0 | 2.0 |",
    "views-tests": "| length 2 | index | 3 |  |",
    "views-long": "| factor | 11.0x |",
    "views-cached": "| q10 | 23,424 | 160 | 20 | 7.0 | 7.2 |",
    "views-correlated": "| parts | 0.15 |",
    "views-memory": "| 100 s | 4.3 | 3.2 | 2.2 |",
    "faem": "| a plan that has seen its data | 44 | 95.5% | 1.01 | 1.26 |",
    "random": "| the first run of a plan | 44 | 95.5% | 1.01 | 1.26 |",
    "windows-example": "| DuckDB, `lead` over persons | 105 | 4.8x |",
    "windows-open": "| strings: run | 16 | 32 | 2.0x |",
    "windows-shared": "| run: one pass | 17 | 80 | 20% |",
    "cube": "| 1 | 5 | 30 / 40 / 20 | 30 / 40 / 20 | 30 / 40 / 20 | 30 / 40 / 20 | 1.00x | 1.00x | 1.00x |",
    "cube-bars": "| 1 | 5 | 20 / 40 / 10 | 1.50x | 0.50x | 10.0x | 1.25x | 1.00x | 0.50x | 2.0x | 1.00x | 3.0x |",
    "calibrate": "| time of 700 runs, constants fitted to them | 1.05 | 1.30 |",
    "why": "| a window | 0.10 | 0.90 | 1 | 3 |",
    "spark": "| the same, one core | 3.00 | 1.00x |",
    "spark-joins": "| a key; joined on it | 1.00 | 1.00 | 1.00x |",
    "spark-streams": "| 250,000 | 2 | 144,059 | 198,696 | 24 |",
}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of small results, instead of those that were measured."""
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    monkeypatch.setattr(record.measure, "machine", lambda: MACHINE)
    for name, figures in FIGURES.items():
        record.record(name, figures, {"a": Ratio(1)})
    return tmp_path


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_made_from_results(name: str, small: Path) -> None:
    made = TABLES[name]()
    assert made is not None
    lines = [line for line in made.splitlines() if line.startswith("|")]
    assert CELLS[name] in lines, made
    assert len({line.count("|") - line.count("\\|") for line in lines}) == 1, made
    text = f"Before\n<!-- figures: {name} -->\n<!-- end of figures -->\nafter\n"
    assert documents.written(documents.written(text)) == documents.written(text)
    assert made.strip() in documents.written(text)


def test_without_results_documents_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    for path in documents.documents():
        text = path.read_text(encoding="utf-8")
        assert documents.written(text) == text


def test_every_table_is_shown_somewhere() -> None:
    shown = {name for path in documents.documents() for _, name, _ in documents.PLACE.findall(path.read_text("utf-8"))}
    assert shown == set(TABLES) == set(CELLS)


def test_every_result_has_a_part_that_measures_it() -> None:
    made = {name.partition("-")[0] for name in (*(t.result for t in TABLES.values()), *_measured())}
    assert made <= set(PARTS)
    for module in PARTS.values():
        assert (ROOT / f"{module.replace('.', '/')}.py").exists()


def _measured() -> set[str]:
    return {path.stem for path in record.RESULTS.glob("*.json")}


def test_missed_aims_are_named(tmp_path: Path) -> None:
    record.record("views", {}, {"a": Ratio(5, 6), "b": Ratio(1.1, 1.2, less=True), "c": Ratio(7)}, tmp_path)
    record.record("faem", {}, {"share": Ratio(0.95, 0.9)}, tmp_path)
    told = aims.told(list(aims.aims(tmp_path)))
    assert told.splitlines() == ["MISSED  views: a: 5, asked: at least 6", "2 of 3 aims met, 1 missed"]


def test_all_names_its_parts() -> None:
    command = [sys.executable, "-m", "benchmarks.all", "nothing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert all(name in done.stderr for name in PARTS)


def test_a_quick_run_keeps_its_results_where_it_is_told(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.all", "why", "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert record.read("why", tmp_path) is not None
    assert "aims" in done.stdout


def test_numbers_are_short() -> None:
    assert [short(v) for v in (0.123, 1.23, 12.3, 12_345.6)] == ["0.12", "1.2", "12", "12,346"]
    assert [times(v) for v in (1.014, 2.04, 1_529.2)] == ["1.01x", "2.0x", "1,529x"]
    assert markdown(("", "n"), [("a", "1")]) == "|  | n |\n| --- | ---: |\n| a | 1 |"

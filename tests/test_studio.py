"""The studio's server: who may ask, what it answers, and that it reads nothing but the files it was given."""

from __future__ import annotations

import csv
import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import quercus as qc
from quercus.studio.server import MOST_BODY, STATIC, Studio
from quercus.studio.source import sources
from quercus.studio.suggest import suggestions

QUERY = "PATTERN SEQ(Wash w, Operate+ o, [id]) WITHIN 10 min"
SCHEMA = qc.Schema({"id": "int64", "room no": "string"}, types=["Wash", "Operate", "Hand wash"], time_unit="s")


def rows() -> list[dict[str, Any]]:
    return [
        {"ts": 10 * i, "type": ("Wash", "Operate", "Rest")[i % 3], "id": i % 5, "room": f"r{i % 2}"} for i in range(300)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("studio")
    with (made / "tools.csv").open("w", newline="") as out:
        written = csv.DictWriter(out, ["ts", "type", "id", "room"])
        written.writeheader()
        written.writerows(rows())
    (made / "secret.csv").write_text("ts,type\n1,Secret\n")
    return made


@pytest.fixture(scope="module")
def studio(folder: Path) -> Iterator[Studio]:
    with Studio(folder / "tools.csv") as made:
        yield made


def request(
    studio: Studio, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, bytes, http.client.HTTPMessage]:
    """One request with exactly these headers, and Host."""
    line = http.client.HTTPConnection("127.0.0.1", studio.port, timeout=20)
    try:
        line.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
        if body is not None and "Content_Length" not in headers:
            line.putheader("Content-Length", str(len(body)))
        for name, value in headers.items():
            line.putheader(name.replace("_", "-"), value)
        line.endheaders(body)
        answer = line.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        line.close()


def asked(studio: Studio, name: str, **body: object) -> dict[str, Any]:
    status, text, _ = request(
        studio, "POST", f"/{studio.token}/api/{name}", json.dumps(body).encode(), Content_Type="application/json"
    )
    assert status == 200, text
    found: dict[str, Any] = json.loads(text)
    return found


def of(query: str = QUERY, **more: object) -> dict[str, Any]:
    return {
        "file": 0,
        "time": "ts",
        "type": "type",
        "unit": "s",
        "query": query,
        "shape": "auto",
        "nested": "auto",
        **more,
    }


def finished(studio: Studio, **body: object) -> dict[str, Any]:
    told = asked(studio, "run", **{**of(), "matches": 1_000, "seconds": 60, **body})
    end = time.monotonic() + 60
    while told["state"] == "running" and time.monotonic() < end:
        time.sleep(0.02)
        told = asked(studio, "poll", job=told["job"])
    return told


# ---- who may ask


def test_the_page_needs_its_secret(studio: Studio) -> None:
    assert request(studio, "GET", f"/{studio.token}/")[0] == 200
    for path in ("/", "//", "/x/", f"/{studio.token[:-1]}/", f"/{studio.token}", f"/{studio.token}x/", "/%C3%A9/", "*"):
        status, text, _ = request(studio, "GET", path)
        assert status == 403, path
        assert studio.token.encode() not in text


@pytest.mark.parametrize("token", ["", "x", "A" * 43])
def test_no_request_is_answered_without_it(studio: Studio, token: str) -> None:
    status, _, _ = request(studio, "POST", f"/{token}/api/files", b"{}", Content_Type="application/json")
    assert status == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", ""]
)
def test_another_host_name_is_refused(studio: Studio, host: str) -> None:
    """As after DNS rebinding: the name is another page's, the address is ours."""
    status, _, _ = request(studio, "GET", f"/{studio.token}/", Host=host.format(port=studio.port))
    assert status == 403


def test_localhost_is_the_same(studio: Studio) -> None:
    assert request(studio, "GET", f"/{studio.token}/", Host=f"localhost:{studio.port}")[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_other_pages_are_refused(studio: Studio, headers: dict[str, str]) -> None:
    for method, path, body in (("GET", "", None), ("POST", "api/files", b"{}")):
        given = {"Content_Type": "application/json", **headers}
        assert request(studio, method, f"/{studio.token}/{path}", body, **given)[0] == 403


def test_our_own_page_is_not(studio: Studio) -> None:
    own = {
        "Origin": f"http://127.0.0.1:{studio.port}",
        "Sec_Fetch_Site": "same-origin",
        "Content_Type": "application/json",
    }
    assert request(studio, "POST", f"/{studio.token}/api/files", b"{}", **own)[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        *("../secret.csv", "..%2f..%2fsecret.csv", "studio/../../secret.csv", "show/../server.py", "studio/server.py"),
        *("show/static/base.css", "/etc/passwd", "//etc/passwd", "studio/", "report/report.js", "download/../x.csv"),
        *(
            "download/1.exe",
            "download/.csv",
            "download/1.csv/..",
            "download/-1.csv",
            "download/9999999999.csv",
            "api/files",
        ),
    ],
)
def test_nothing_else_is_served(studio: Studio, path: str) -> None:
    assert request(studio, "GET", f"/{studio.token}/{path}")[0] == 404


def test_every_file_of_the_page_is(studio: Studio) -> None:
    assert {"studio/index.html", "studio/studio.js", "show/timeline.js", "show/base.css"} <= STATIC
    for name in sorted(STATIC):
        status, body, headers = request(studio, "GET", f"/{studio.token}/{name}")
        assert (status, bool(body)) == (200, True)
        assert headers["Content-Type"].endswith("charset=utf-8")


def test_answers_carry_their_guards(studio: Studio) -> None:
    for path in (f"/{studio.token}/", "/wrong/"):
        headers = request(studio, "GET", path)[2]
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Frame-Options"] == "DENY"
        assert "Access-Control-Allow-Origin" not in headers
        assert "Set-Cookie" not in headers


def test_the_page_has_no_script_of_its_own(studio: Studio) -> None:
    page = request(studio, "GET", f"/{studio.token}/")[1].decode()
    assert page.count("<script") == page.count('<script type="module" src="studio/') == 1
    assert "style=" not in page


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content_Length": str(MOST_BODY + 1)}, 413),
        ({"Content_Length": "9" * 30}, 413),
        ({"Content_Length": "-1"}, 411),
        ({"Content_Length": "x"}, 411),
        ({"Content_Length": "2", "Transfer_Encoding": "chunked"}, 411),
    ],
)
def test_bodies_are_bounded(studio: Studio, headers: dict[str, str], status: int) -> None:
    given = {"Content_Type": "application/json", **headers}
    assert request(studio, "POST", f"/{studio.token}/api/files", b"{}", **given)[0] == status


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b"\xff", b"[" * 100_000])
def test_only_json_objects_are_read(studio: Studio, body: bytes) -> None:
    path = f"/{studio.token}/api/files"
    assert request(studio, "POST", path, body, Content_Type="application/json")[0] == 400
    assert request(studio, "POST", path, b"{}", Content_Type="text/plain")[0] == 415


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_not_known(studio: Studio, method: str) -> None:
    assert request(studio, method, f"/{studio.token}/")[0] == 501


def test_it_listens_on_the_loopback_address_only(studio: Studio) -> None:
    assert studio.server.socket.getsockname()[0] == "127.0.0.1"
    with pytest.raises(OSError, match="refused"), socket.create_connection(("127.0.0.2", studio.port), timeout=2):
        pass


def test_the_address_for_the_browser_works_once(studio: Studio) -> None:
    path = studio.once().removeprefix(f"http://127.0.0.1:{studio.port}")
    assert studio.token not in path
    status, _, headers = request(studio, "GET", path)
    assert (status, headers["Location"]) == (303, f"/{studio.token}/")
    assert request(studio, "GET", path)[0] == 403
    assert request(studio, "GET", "/once/guessed")[0] == 403


@pytest.mark.parametrize("file", [1, -1, "0", "secret.csv", "../secret.csv", None, 0.0])
def test_other_files_have_no_name(studio: Studio, file: object) -> None:
    assert "no such file" in asked(studio, "columns", file=file)["failed"]
    assert "no such file" in asked(studio, "run", **{**of(), "file": file, "matches": 1, "seconds": 1})["failed"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"query": 3},
        {"time": "nope"},
        {"unit": "weeks"},
        {"shape": "round"},
        {"nested": None},
        {"matches": -1},
        {"seconds": 10**9},
    ],
)
def test_what_is_wrong_is_said(studio: Studio, wrong: dict[str, object]) -> None:
    told = asked(studio, "run", **{**of(), "matches": 10, "seconds": 10, **wrong})
    assert told.get("failed") or told["error"]["message"]


# ---- what it answers


def test_files_and_columns(studio: Studio) -> None:
    assert asked(studio, "files")["files"][0]["name"] == "tools.csv"
    found = asked(studio, "columns", file=0)
    assert (found["time"], found["type"]) == ("ts", "type")
    assert [c["name"] for c in found["columns"]] == ["ts", "type", "id", "room"]


def test_files_that_need_describing(tmp_path: Path) -> None:
    path = tmp_path / "bars.txt"
    path.write_text("MSFT;200802010900;31.25\nDRIV;200802010959;33.69\nMSFT;200802011000;31\n")
    described = {"format": "csv", "delimiter": ";", "columns": ["type", "ts", "close"]}
    query = "PATTERN SEQ(DRIV b, MSFT a) WITHIN 1 min"
    with Studio([qc.Files(path, **described, time_format="%Y%m%d%H%M"), qc.Files(path, **described)]) as studio:
        facts = asked(studio, "columns", file=0)
        assert (facts["time"], facts["type"]) == ("ts", "type")
        assert {"name": "ts", "type": "timestamp"} in facts["columns"]
        assert finished(studio, query=query)["summary"]["matches"] == "1"
        assert "--time-format '%Y%m%d%H%M'" in asked(studio, "check", **of(query, file=1))["failed"]


@pytest.mark.parametrize(("first", "unit"), [(1, "s"), (1_700_000_000, "s"), (1_700_000_000_000, "ms")])
def test_the_unit_of_times_is_guessed(tmp_path: Path, first: int, unit: str) -> None:
    (tmp_path / "events.csv").write_text(f"ts,type\n{first},A\n")
    [source] = sources(tmp_path / "events.csv")
    assert source.facts()["unit"] == unit


def test_a_query_is_planned(studio: Studio) -> None:
    found = asked(studio, "check", **of())
    assert "error" not in found
    assert found["plan"]["tree"].startswith("<svg")
    assert set(found["costs"]) == {"auto", "left", "right", "bushy", "inner", "stack"}
    assert found["costs"]["auto"] == min(found["costs"].values())
    assert asked(studio, "check", **of(shape="left"))["plan"]["shape"] == "left"
    assert found["types"] == ["Operate", "Rest", "Wash"]


@pytest.mark.parametrize("lead", ["", "-- 🌳🌳\n"])
def test_errors_have_their_place(studio: Studio, lead: str) -> None:
    """In code units: scripts count a tree as two."""
    query = f"{lead}PATTERN SEQ(Wash w, Operate o)\nWHERE o.rom = 'r1' WITHIN 1 min"
    error = asked(studio, "check", **of(query))["error"]
    units = query.encode("utf-16-le")
    start, end = error["span"]
    assert units[2 * start : 2 * end].decode("utf-16-le") == "rom"
    assert (error["code"], error["line"], error["column"]) == ("E104", 2 + bool(lead), 9)
    assert error["hint"] == "did you mean 'room'?"


def test_an_unknown_type_is_an_error(studio: Studio) -> None:
    assert asked(studio, "check", **of("PATTERN Wsh w WITHIN 1 s"))["error"]["hint"] == "did you mean 'Wash'?"


def test_suggestions_for_half_a_query(studio: Studio) -> None:
    query = "-- 🌳\nPATTERN SEQ(Wash w, w.ro"
    found = asked(studio, "suggest", **of(query), caret=len(query.encode("utf-16-le")) // 2)
    assert [i["insert"] for i in found["items"]] == ["room"]
    assert found["to"] - found["from"] == 2


def test_a_run_gives_what_run_gives(studio: Studio) -> None:
    told = finished(studio)
    assert told["state"] == "done", told
    events = [{k: v for k, v in r.items() if k != "room"} for r in rows()]
    found = qc.compile(QUERY, qc.Schema({"id": "int64"}, time_unit="s")).run(events)
    assert told["summary"]["matches"] == str(len(found)) == str(told["table"]["total"])
    rows_of = told["matches"]["events"]["row"]
    shown = [{"w": rows_of[w], "o": [rows_of[e] for e in o]} for w, o in told["matches"]["matches"]]
    assert shown == found.rows()
    page = asked(studio, "page", job=told["job"], **{"from": 20, "count": 20})
    assert [r[0]["ts"] for r in page["rows"]] == [events[m["w"]]["ts"] for m in found.rows()[20:40]]  # type: ignore[index]


def test_results_are_downloaded(studio: Studio) -> None:
    told = finished(studio)
    status, body, headers = request(studio, "GET", f"/{studio.token}/download/{told['job']}.jsonl")
    lines = [json.loads(line) for line in body.decode().splitlines()]
    assert status == 200
    assert len(lines) == told["table"]["total"]
    assert headers["Content-Disposition"] == 'attachment; filename="matches.jsonl"'
    status, body, _ = request(studio, "GET", f"/{studio.token}/download/{told['job']}.csv")
    assert len(list(csv.reader(body.decode().splitlines()))) == len(lines) + 1
    status, body, _ = request(studio, "GET", f"/{studio.token}/download/{told['job']}.html")
    assert body.startswith(b"<!DOCTYPE html>")
    assert not list(Path(studio.api.folder.name).iterdir())  # nothing stays behind


def test_a_limit_stops_a_run(studio: Studio) -> None:
    told = finished(studio, matches=3)
    assert told["state"] == "done"
    assert told["summary"]["matches"] is None
    assert "stopped" in told["warnings"][-1]
    assert told["matches"]["matches"]


def test_a_run_is_cancelled(studio: Studio) -> None:
    slow = (
        "PATTERN SEQ(Wash a, Operate b, Wash c, Operate d, Wash e, a.id + c.id > b.id * d.id * e.id + 99) WITHIN 1 hour"
    )
    told = asked(studio, "run", **of(slow, matches=1_000_000, seconds=600))
    assert told["state"] == "running"
    process = studio.api.jobs.get(told["job"]).process.child
    assert asked(studio, "cancel", job=told["job"])["state"] == "cancelled"
    assert process.poll() is not None
    assert finished(studio)["state"] == "done"  # the next one runs


def test_the_run_before_is_gone(studio: Studio) -> None:
    first, second = finished(studio), finished(studio)
    assert "no longer there" in asked(studio, "page", job=first["job"], **{"from": 0, "count": 5})["failed"]
    assert asked(studio, "page", job=second["job"], **{"from": 0, "count": 5})["rows"]
    assert request(studio, "GET", f"/{studio.token}/download/{first['job']}.csv")[0] == 409


def test_it_stops_cleanly(folder: Path) -> None:
    """Ctrl-C ends the server and its workers, and says so."""
    code = f"from quercus.studio import serve; serve({str(folder / 'tools.csv')!r}, open_browser=False)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    url = child.stdout.readline().split()[-1]
    port = int(url.split(":")[2].split("/")[0])
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        pass
    child.send_signal(2)
    out, err = child.communicate(timeout=20)
    assert (child.returncode, err) == (0, "")
    assert out.endswith("stopped\n")


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(qc.DataError, match="no file"):
        Studio(tmp_path / "no.csv")
    with pytest.raises(qc.DataError, match="needs a file"):
        sources([])


def test_a_port_that_is_taken_is_an_error(studio: Studio, folder: Path) -> None:
    with pytest.raises(qc.QuercusError, match="cannot listen"):
        Studio(folder / "tools.csv", port=studio.port)


# ---- suggestions


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("", ["PATTERN "]),
        ("pat", ["PATTERN "]),
        ("PATTERN ", ['"Hand wash"', "Operate", "Wash", "SEQ("]),
        ("PATTERN se", ["SEQ("]),
        ("PATTERN SEQ(Wash w, !", ['"Hand wash"', "Operate", "Wash", "SEQ("]),
        ("PATTERN SEQ(Wash w, Op", ["Operate"]),
        ("PATTERN SEQ(Wash w, Operate o, w.", ["id", '"room no"', "ts", "type"]),
        ("PATTERN SEQ(Wash w, Operate+ o, last(o).", ["id", '"room no"', "ts", "type"]),
        ("PATTERN SEQ(Wash w, Operate o, [", ["id", '"room no"']),
        ("PATTERN Wash w WITHIN 5 ", ["ms", "s", "min"]),
        ("PATTERN SEQ(Wash w, Operate o) WHERE ", ["w", "o"]),
        ("PATTERN SEQ(Wash w, Operate o) W", ["WHERE ", "WITHIN "]),
        ("PATTERN SEQ(Wash w) WITHIN 5 s AGG ", ["COUNT(*)", "COUNT(", "SUM("]),
        ("PATTERN SEQ(Wash w, w.id = 'x", []),
        ("PATTERN Wash w -- W", []),
    ],
)
def test_what_fits_at_the_caret(text: str, first: list[str]) -> None:
    found = [i["insert"] for i in suggestions(text, len(text), SCHEMA)["items"]]
    assert found[: len(first)] == first
    assert bool(found) == bool(first)


def test_the_whole_word_is_replaced() -> None:
    text = "PATTERN SEQ(Operte o)"
    found = suggestions(text, text.index("rte"), SCHEMA)
    assert text[found["from"] : found["to"]] == "Operte"

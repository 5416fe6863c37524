"""`quercus run --follow`: matches as they happen, clean ends, snapshots."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quercus.cli import exits
from tests.cli.helpers import ENVIRONMENT, EVENTS, MATCHES, QUERY, quercus

UNUSED = "PATTERN SEQ(Wash w, !Operate o, [id]) WITHIN 5"
HEADER = "ts,type,id\n"


class Following:
    """A `quercus run --follow` that goes on."""

    def __init__(self, *args: str) -> None:
        command = [sys.executable, "-m", "quercus", "run", *args, "--follow"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, env=ENVIRONMENT)

    def tell(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def line(self) -> object:
        """The next match; it comes while the stream goes on."""
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], 60)[0], "nothing came"
        return json.loads(self.process.stdout.readline())

    def stop(self, number: int | None) -> tuple[int, bytes, bytes]:
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        assert b"Traceback" not in err
        return self.process.returncode, out, err


@pytest.fixture
def following() -> Iterator[type[Following]]:
    started: list[Following] = []

    class Kept(Following):
        def __init__(self, *args: str) -> None:
            super().__init__(*args)
            started.append(self)

    yield Kept
    for one in started:
        one.process.kill()
        one.process.wait()
        for pipe in (one.process.stdin, one.process.stdout, one.process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_matches_come_as_they_happen(following: type[Following], kind: str) -> None:
    def event(ts: int, type_: str, tool: int) -> str:
        return f"{ts},{type_},{tool}\n" if kind == "csv" else json.dumps({"ts": ts, "type": type_, "id": tool}) + "\n"

    live = following(QUERY, "-")
    live.tell((HEADER if kind == "csv" else "") + event(1, "Wash", 7))
    live.tell(event(2, "Operate", 7))
    assert live.line() == {"w": {"ts": 1, "type": "Wash", "id": 7}, "o": {"ts": 2, "type": "Operate", "id": 7}}
    live.tell(event(3, "Operate", 7)[:-3])
    time.sleep(0.3)
    live.tell(event(3, "Operate", 7)[-3:])
    assert live.line()["o"]["ts"] == 3  # type: ignore[index]
    code, out, err = live.stop(signal.SIGINT)
    assert (code, out) == (exits.INTERRUPTED, b"")
    assert b"2 matches in 3 events" in err


def test_the_end_gives_what_was_held_back(following: type[Following]) -> None:
    live = following(UNUSED, "-")
    live.tell(HEADER + "1,Wash,7\n2,Wash,9\n3,Operate,9")  # the last line has no end
    live.process.stdin.close()  # type: ignore[union-attr]
    live.process.stdin = None
    code, out, _ = live.stop(None)
    assert (code, [json.loads(x)["w"]["id"] for x in out.splitlines()]) == (exits.OK, [7])


def test_a_growing_file(following: type[Following], tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(HEADER + "1,Wash,7\n")
    live = following(QUERY, str(path))
    time.sleep(0.5)
    with path.open("a") as file:
        file.write("2,Operate,7\n")
    assert live.line()["o"]["ts"] == 2  # type: ignore[index]
    code, _, err = live.stop(signal.SIGTERM)
    assert code == exits.TERMINATED
    assert b"1 match in 2 events" in err


def test_a_file_that_is_replaced_has_a_header_of_its_own(following: type[Following], tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(HEADER + "1,Wash,7\n2,Operate,7\n")
    live = following(QUERY, str(path))
    assert live.line()["o"]["ts"] == 2  # type: ignore[index]
    path.rename(tmp_path / "log.csv.1")
    path.write_text("id,type,ts\n7,Operate,3\n")
    assert live.line()["o"]["ts"] == 3  # type: ignore[index]
    assert live.stop(signal.SIGTERM)[0] == exits.TERMINATED


def test_the_last_lines_of_a_file_that_is_replaced(following: type[Following], tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(HEADER + "1,Operate,7\n")
    live = following("PATTERN Operate o WITHIN 5 RETURN o.ts AS ts", str(path))
    assert live.line() == {"ts": 1}
    with path.open("a") as file:
        file.write("2,Operate,7\n3,Operate,7")  # without an end of its line
        path.rename(tmp_path / "log.csv.1")
        path.write_text(HEADER + "4,Operate,7\n")
    assert [live.line() for _ in range(3)] == [{"ts": 2}, {"ts": 3}, {"ts": 4}]
    assert live.stop(signal.SIGTERM)[0] == exits.TERMINATED


def test_a_header_in_quotes() -> None:
    given = b'\nts,type,id,"a,b"\n1,Wash,7,1\n2,Operate,7,2\n'
    done = quercus("run", QUERY, "-", "--follow", given=given)
    assert json.loads(done.stdout)["o"] == {"ts": 2, "type": "Operate", "id": 7, "a,b": 2}


def test_the_clock_goes_on_without_events(following: type[Following]) -> None:
    live = following(UNUSED.replace("WITHIN 5", "WITHIN 500 ms"), "-", "--idle-advance", "0.3")
    live.tell(HEADER + "1,Wash,7\n")
    assert live.line() == {"w": {"ts": 1, "type": "Wash", "id": 7}}
    assert live.stop(signal.SIGINT)[0] == exits.INTERRUPTED


def test_a_snapshot_goes_on(following: type[Following], tmp_path: Path) -> None:
    path, state = tmp_path / "log.csv", tmp_path / "state"
    path.write_text(HEADER + "1,Wash,7\n2,Operate,7\n")
    first = following(QUERY, str(path), "--snapshot", str(state))
    assert first.line()["o"]["ts"] == 2  # type: ignore[index]
    first.stop(signal.SIGINT)
    with path.open("a") as file:
        file.write("3,Operate,7\n")
    second = following(QUERY, str(path), "--snapshot", str(state))
    assert second.line()["o"]["ts"] == 3  # type: ignore[index]
    assert second.stop(signal.SIGTERM)[1] == b""
    state.write_text("no")
    code, _, err = following(QUERY, str(path), "--snapshot", str(state)).stop(None)
    assert (code, b"no snapshot" in err) == (exits.DATA, True)


@pytest.mark.parametrize("again", ["", HEADER])
def test_standard_input_goes_on_from_a_snapshot(again: str, tmp_path: Path) -> None:
    args = ("run", QUERY, "-", "--follow", "--snapshot", str(tmp_path / "state"))
    assert quercus(*args, given=f"{HEADER}1,Wash,7\n".encode()).returncode == exits.OK
    done = quercus(*args, given=f"{again}2,Operate,7\n".encode())
    assert json.loads(done.stdout)["o"] == {"ts": 2, "type": "Operate", "id": 7}


def test_late_events() -> None:
    given = (HEADER + "5,Wash,7\n1,Wash,7\n").encode()
    done = quercus("run", QUERY, "-", "--follow", given=given)
    assert done.returncode == exits.DATA
    assert b"--max-delay" in done.stderr
    assert b"--late drop" in done.stderr
    done = quercus("run", QUERY, "-", "--follow", "--late", "drop", given=given)
    assert (done.returncode, b"1 event dropped as late" in done.stderr) == (exits.OK, True)
    given = (HEADER + "5,Operate,7\n4,Wash,7\n9,Wash,7\n").encode()
    done = quercus("run", QUERY, "-", "--follow", "--max-delay", "2 ms", given=given)
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("x.parquet",), exits.USAGE),
        (("a.csv", "b.csv"), exits.USAGE),
        (("missing.csv",), exits.DATA),
        (("-", "--format", "parquet"), exits.USAGE),
        (("-", "-o", "out.csv"), exits.USAGE),
    ],
)
def test_what_cannot_be_followed(args: tuple[str, ...], code: int, tmp_path: Path) -> None:
    done = quercus("run", QUERY, *args, "--follow", given=b"")
    assert done.returncode == code
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (b"PAR1\x15\x04\r\x15\n", exits.USAGE, b"reads lines, CSV or JSON, not parquet"),
        (b"\xff\xff\xff\xff\n", exits.USAGE, b"with --format arrow"),
        (b"ts,type\r1,Wash\r2,Operate\n", exits.DATA, b"no header of a CSV file"),
    ],
)
def test_what_does_not_come_in_lines(given: bytes, code: int, said: bytes) -> None:
    done = quercus("run", QUERY, "-", "--follow", given=given)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


def test_another_delimiter_is_noticed(tmp_path: Path) -> None:
    given = "\n" + (HEADER + "".join(f"{e['ts']},{e['type']},{e['id']}\n" for e in EVENTS[:2])).replace(",", ";")
    saved = ("--follow", "--snapshot", str(tmp_path / "state"))
    done = quercus("run", QUERY, "-", *saved, given=given.encode())
    assert (done.returncode, b"taken: --delimiter ';'" in done.stderr) == (0, True), done.stderr
    done = quercus("run", QUERY, "-", *saved, given=b"3;Operate;9\n4;Operate;7\n")
    assert [json.loads(line) for line in done.stdout.splitlines()] == MATCHES, done.stderr


def test_bad_lines_are_no_traceback() -> None:
    done = quercus("run", QUERY, "-", "--follow", given=b'{"ts": 1, "type": "Wash", "id": 1}\nnonsense\n')
    assert done.returncode == exits.DATA
    assert b"Traceback" not in done.stderr


def test_bad_lines_can_be_dropped() -> None:
    lines = [
        *map(json.dumps, EVENTS[:2]),
        '{"ts": 2, oops',
        "",
        '{"ts": null, "type": "Wash"}',
        *map(json.dumps, EVENTS[2:]),
    ]
    done = quercus("run", QUERY, "-", "--follow", "--bad", "drop", given="\n".join(lines).encode())
    assert [json.loads(line) for line in done.stdout.splitlines()] == MATCHES
    assert done.stderr.count(b"a line is dropped: ") == 2
    assert b"2 matches in 4 events, 2 lines dropped that cannot be read" in done.stderr
    given = b"ts,type,id\n" + b"1,Wash\n" * 20 + b"2,Wash,9\n3,Operate,9\n"
    done = quercus("run", QUERY, "-", "--follow", "--bad", "drop", given=given)
    assert [json.loads(line) for line in done.stdout.splitlines()] == MATCHES[:1]
    assert (done.returncode, done.stderr.count(b"a line is dropped")) == (0, 10)
    assert b"20 lines dropped" in done.stderr


@pytest.mark.parametrize("given", [b"", HEADER.encode()])
def test_nothing_comes(given: bytes) -> None:
    done = quercus("run", QUERY, "-", "--follow", given=given)
    assert (done.returncode, done.stdout, done.stderr) == (exits.OK, b"", b"")


@pytest.mark.parametrize("follow", [(), ("--follow",)])
def test_nobody_reads_any_more(tmp_path: Path, follow: tuple[str, ...]) -> None:
    path = tmp_path / "events.csv"
    path.write_text(HEADER + "".join(f"{i},Wash,1\n{i},Operate,1\n" for i in range(1, 2_000)))
    command = [sys.executable, "-m", "quercus", "run", QUERY.replace("5", "40"), str(path), *follow]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
    assert process.stdout is not None
    assert process.stderr is not None
    os.read(process.stdout.fileno(), 100)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == exits.PIPE
    assert b"Traceback" not in err
    assert b"Exception ignored" not in err


ROOMS = """ISTREAM(SELECT FIRST(who) AS who, LAST(Timestamp) - FIRST(Timestamp) AS took
FROM At[Pattern By (place = 'Lab'; who = FIRST(who) AND place = 'Home'; who <> FIRST(who) OR place <> 'Lab'; FALSE)])"""


def test_a_continuous_query_is_followed(following: type[Following]) -> None:
    live = following(ROOMS, "At=-", "--time", "ts")
    live.tell("ts,who,place\n1,Ann,Lab\n4,Tom,Cafe\n9,Ann,Home\n")
    live.tell("12,Tom,Lab\n")  # the clock went on: what was at 9 is certain
    assert live.line() == {"ts": 9, "who": "Ann", "took": 8}
    live.tell("15,Tom,Home\n")
    assert live.process.stdin is not None
    live.process.stdin.close()
    live.process.stdin = None
    assert live.line() == {"ts": 15, "who": "Tom", "took": 3}
    code, out, err = live.stop(None)
    assert (code, out) == (exits.OK, b"")
    assert b"2 tuples in 5 events" in err


def test_a_continuous_query_goes_on_from_a_snapshot(following: type[Following], tmp_path: Path) -> None:
    events, state = tmp_path / "at.csv", tmp_path / "state"
    events.write_text("ts,who,place\n1,Ann,Lab\n4,Tom,Lab\n5,Tom,Home\n6,Tom,Cafe\n")
    live = following(ROOMS, f"At={events}", "--time", "ts", "--snapshot", str(state))
    assert live.line() == {"ts": 5, "who": "Tom", "took": 1}
    live.stop(signal.SIGINT)
    with events.open("a") as more:
        more.write("9,Ann,Home\n10,Ann,Cafe\n")
    again = following(ROOMS, f"At={events}", "--time", "ts", "--snapshot", str(state))
    assert again.line() == {"ts": 9, "who": "Ann", "took": 8}
    again.stop(signal.SIGINT)


def test_one_stream_is_followed() -> None:
    done = quercus("run", ROOMS, "At=a.csv", "Other=b.csv", "--follow")
    assert done.returncode == exits.USAGE
    assert b"watches one stream" in done.stderr
    assert b"NAME=PATH" in quercus("run", ROOMS, "a.csv", "--follow").stderr

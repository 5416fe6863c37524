"""The six examples of the paper, as printed but for its typos, on streams made by hand."""

from __future__ import annotations

import pytest

import quercus as qc
from tests.reference_windows import closed_windows

AT = qc.Schema({"Person": "string", "Location": "string"}, time_unit="s")
ROOM_STATE = qc.Schema({"Room": "string", "State": "string"}, time_unit="s")
STREAMS = {"At": AT, "RoomState": ROOM_STATE}

EXAMPLE_1 = """
ISTREAM(
  SELECT LAST(Location)
  FROM At[Pattern By
    (Person = 'Tom' AND
     Location = 'Lab';
     Person = 'Tom';
     TRUE;
     FALSE)]
  WHERE Location <> 'Lab')
"""
EXAMPLE_2 = """
ISTREAM(
  SELECT LAST(Location)
  FROM At[Pattern By
    (Location = 'Lab';
     Person = FIRST(Person);
     TRUE;
     FALSE)]
  WHERE Location <> 'Lab')
"""
EXAMPLE_3 = """
ISTREAM(
  SELECT LAST(Location)
  FROM At[Pattern By
    (Location = 'Lab';
     Person = FIRST(Person) AND
     Location = 'Room101';
     Person <> FIRST(Person);
     FALSE)]
  WHERE Location <> 'Lab')
"""
EXAMPLE_4 = """
ISTREAM(
  SELECT Person, State
  FROM At[Pattern By
    (Location = 'Lab';
     Person = FIRST(Person);
     TRUE;
     FALSE)],
    RoomState[Range 2min]
  WHERE At.Location = RoomState.Room
  AND At.Location <> 'Lab')
"""
EXAMPLE_5 = """
ISTREAM(
  SELECT FIRST(Person),
         LAST(Timestamp) - FIRST(Timestamp)
  FROM At[Pattern By
    (Location = 'Lab';
     Person = FIRST(Person) AND
     Location = 'Home';
     Person <> FIRST(Person) OR
     Location <> 'Lab';
     Person = FIRST(Person))])
"""
EXAMPLE_6 = """
RSTREAM(
  SELECT *
  FROM At[Pattern By
    ( Location = 'Lab';
     Person = FIRST(Person) AND
     Location = 'Home';
     Person <> FIRST(Person) OR
     Location <> 'Lab';
     Person = FIRST(Person))]
  WHERE Location <> 'Lab' AND
         Location <> 'Home')
"""

# Tom: Lab 10, Cafe 30, Lab 40, Lab 50, Room101 60, Shop 80, Home 90. Ann: Lab 20, Room101 35, Home 45. Bob: Lab 70.
WALKS = [
    (10, "Tom", "Lab"),
    (20, "Ann", "Lab"),
    (30, "Tom", "Cafe"),
    (35, "Ann", "Room101"),
    (40, "Tom", "Lab"),
    (45, "Ann", "Home"),
    (50, "Tom", "Lab"),
    (60, "Tom", "Room101"),
    (70, "Bob", "Lab"),
    (80, "Tom", "Shop"),
    (90, "Tom", "Home"),
]
# The state of -90 is gone at 35, that of -60 is there until 60.
STATES = [
    (-90, "Room101", "dirty"),
    (-60, "Room101", "full"),
    (20, "Room101", "quiet"),
    (36, "Room101", "loud"),
    (55, "Cafe", "open"),
]


def tuples(text: str, at: list[tuple[int, str, str]] = WALKS) -> list[tuple[object, ...]]:
    given = {
        "At": [{"ts": t, "Person": p, "Location": place} for t, p, place in at],
        "RoomState": [{"ts": t, "Room": r, "State": s} for t, r, s in STATES],
    }
    query, used = qc.continuous(text, STREAMS), {n: given[n] for n in given if n in text}
    found = [tuple(row.values()) for row in query.run(used)]
    assert [tuple(row.values()) for row in query.run_with(closed_windows, used)] == found
    return found


def test_the_next_place_where_tom_goes() -> None:
    """Lab 10 -> Cafe 30; Lab 40 -> Lab 50 is left out by WHERE, and leaves no row; Lab 50 -> Room101 60."""
    assert tuples(EXAMPLE_1) == [(30, "Cafe"), (60, "Room101")]


def test_the_next_place_where_anyone_goes() -> None:
    """Bob goes nowhere."""
    assert tuples(EXAMPLE_2) == [(30, "Cafe"), (35, "Room101"), (60, "Room101")]


def test_the_next_place_is_room_101() -> None:
    """Tom's window of 10 is dropped in the Cafe, that of 40 at Lab 50."""
    assert tuples(EXAMPLE_3) == [(35, "Room101"), (60, "Room101")]


def test_the_state_of_the_next_room() -> None:
    """What was reported up to 2 min before counts, both ends included; the Cafe's state comes too late for Tom."""
    assert tuples(EXAMPLE_4) == [
        (35, "Ann", "full"),
        (35, "Ann", "quiet"),
        (60, "Tom", "full"),
        (60, "Tom", "quiet"),
        (60, "Tom", "loud"),
    ]


def test_how_long_it_takes_to_get_home() -> None:
    """Tom's windows of 10 and 40 end when he is in the lab again."""
    assert tuples(EXAMPLE_5) == [(45, "Ann", 25), (90, "Tom", 40)]


def test_where_one_passes_on_the_way_home() -> None:
    assert tuples(EXAMPLE_6) == [(45, "Ann", "Room101"), (90, "Tom", "Room101"), (90, "Tom", "Shop")]


@pytest.mark.parametrize("example", [EXAMPLE_1, EXAMPLE_2, EXAMPLE_3, EXAMPLE_5, EXAMPLE_6])
def test_nothing_comes_of_nothing(example: str) -> None:
    assert tuples(example, []) == []

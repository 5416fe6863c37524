"""Definitions 3 to 5 on the paper's own queries, and on what the definitions leave open."""

from __future__ import annotations

import pytest

import quercus as qc
from quercus.compiler.cube.refine import kind_of, reduced, refinements
from quercus.compiler.cube.sequences import sequence_of
from quercus.ir.workload import Sequence

TRAVEL = {
    "TX": {"D": ["DBusStation", "DHospital", "DShelter"], "G": ["GBusStation"], "A": ["AHospital"]},
    "OK": {"T": ["TBusStation", "THospital", "TShelter"]},
}
# Fig. 1. Its q4 and q7 are told apart by Examples 2 and 7: the negated type of q4 is the finer one.
FIGURE_1 = {
    "q1": "SEQ(TX, OK)",
    "q2": "SEQ(D, T)",
    "q3": "SEQ(G, A, T)",
    "q4": "SEQ(G, !DBusStation, A, T)",
    "q5": "SEQ(DBusStation, TBusStation, THospital)",
    "q6": "SEQ(G, A, D, T)",
    "q7": "SEQ(G, !D, A, T)",
}
SCHEMA = qc.Schema({"id": "int64", "v": "int64"}, hierarchy=TRAVEL)


def sequence(pattern: str, window: str = "48 h", where: str = "", schema: qc.Schema = SCHEMA) -> Sequence:
    asked = f" WHERE {where}" if where else ""
    found = sequence_of(qc.compile(f"PATTERN {pattern}{asked} WITHIN {window}", schema))
    assert not isinstance(found, str), found
    return found


def test_figure_1() -> None:
    found = refinements({name: sequence(q) for name, q in FIGURE_1.items()})
    assert {(r.general, r.special, r.kind) for r in reduced(found)} == {
        ("q1", "q2", "concept"),
        ("q1", "q3", "both"),
        ("q2", "q5", "both"),
        ("q2", "q6", "pattern"),
        ("q3", "q4", "pattern"),
        ("q3", "q6", "pattern"),
        ("q4", "q7", "concept"),
    }
    assert {(r.general, r.special, r.kind) for r in found} - {
        (r.general, r.special, r.kind) for r in reduced(found)
    } == {
        ("q1", "q4", "both"),
        ("q1", "q5", "both"),
        ("q1", "q6", "both"),
        ("q1", "q7", "both"),
        ("q3", "q7", "pattern"),
    }


@pytest.mark.parametrize(
    ("general", "special", "kind"),
    [
        ("SEQ(TX, OK)", "SEQ(D, OK)", "concept"),
        ("SEQ(D, OK)", "SEQ(TX, OK)", None),
        ("SEQ(TX, !DBusStation, OK)", "SEQ(TX, !D, OK)", "concept"),  # negated types the other way round
        ("SEQ(TX, !D, OK)", "SEQ(TX, !DBusStation, OK)", None),
        ("SEQ(TX, !DBusStation, OK)", "SEQ(D, !D, OK)", "concept"),
        ("SEQ(TX, !D, OK)", "SEQ(D, !DBusStation, OK)", None),  # one finer, one coarser: neither
        ("SEQ(D, T)", "SEQ(G, A, D, T)", "pattern"),
        ("SEQ(T, D)", "SEQ(G, A, D, T)", None),  # not in this order
        ("SEQ(D)", "SEQ(!D, A)", None),  # a positive type is no negated one
        ("SEQ(TX, OK)", "SEQ(D, !A, T)", "both"),
        ("SEQ(A, A)", "SEQ(A, D, A, D)", "pattern"),
        ("SEQ(A, A, A)", "SEQ(A, D, A, D)", None),
        ("SEQ(D d, T t)", "SEQ(D x, T y)", "same"),
    ],
)
def test_kinds(general: str, special: str, kind: str | None) -> None:
    assert kind_of(sequence(general), sequence(special)) == kind


def test_the_same_pattern_with_more_conditions_or_a_tighter_window() -> None:
    found = refinements(
        {
            "tight": sequence("SEQ(D d, T t)", "1 h"),
            "wide": sequence("SEQ(D a, T b)", "2 h"),
            "keyed": sequence("SEQ(D d, T t)", "1 h", "t.id = d.id and d.v > 5"),
            "other": sequence("SEQ(D d, T t)", "2 h", "d.v > 7 and d.id = t.id and d.v <> 8"),
            "again": sequence("SEQ(D b, T a)", "2 h"),
        }
    )
    assert {(r.general, r.special) for r in found} == {
        ("wide", "tight"),
        ("wide", "keyed"),
        ("wide", "other"),
        ("wide", "again"),  # equal: the first stands for both
        ("tight", "keyed"),
    }
    assert {r.kind for r in found} == {"same"}


def test_conditions_and_windows_agree_with_the_order() -> None:
    keyed = sequence("SEQ(TX a, OK b)", "24 h", "a.id = b.id and a.v > 5")
    assert refinements({"keyed": keyed, "cities": sequence("SEQ(D, T)")}) == ()
    finer = sequence("SEQ(D x, !(A n, n.id = x.id), T y)", "12 h", "x.id = y.id and x.v > 6")
    assert [(r.general, r.kind) for r in refinements({"finer": finer, "keyed": keyed})] == [("keyed", "both")]
    # a negation that forbids less is the general one's
    some, all_ = sequence("SEQ(D, !(A n, n.v > 5), T)"), sequence("SEQ(D, !A n, T)")
    assert [r.general for r in refinements({"all": all_, "some": some})] == ["some"]


def test_keys_and_kinds_of_windows_are_not_compared() -> None:
    keyed = sequence_of(qc.compile("PATTERN SEQ(D, T) PARTITION BY id WITHIN 48 h", SCHEMA))
    assert isinstance(keyed, Sequence)
    assert kind_of(sequence("SEQ(TX, OK)"), keyed) is None
    assert kind_of(sequence("SEQ(TX, OK)"), sequence("SEQ(D, T)", "5 EVENTS")) is None


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("SEQ(D, T+)", "it binds sets of events (T+)"),
        ("SEQ(D, T[2], A)", "it binds sets of events (T[2])"),
        ("AND(D, T)", "it is an AND, no SEQ"),
        ("OR(D, SEQ(T, A))", "it is an OR, no SEQ"),
        ("SEQ(D, AND(T, A))", "it has a sub-query, an AND"),
        ("SEQ(D, OR(T, A))", "it is an OR, no SEQ"),
        ("SEQ(D, !SEQ(T, A), G)", "it negates a SEQ of its own"),
        ("SEQ(D, !AND(T, A), G)", "it negates an AND"),
        ("SEQ(D, SEQ(T, A) WITHIN 1 h)", "it has a sub-query, a SEQ of its own"),
        ("SEQ(D d, T) WHERE d.v > 3 and d.v < 2", "it can never match"),
    ],
)
def test_what_cannot_be_taken_apart_says_why(pattern: str, reason: str) -> None:
    assert sequence_of(qc.compile(f"PATTERN {pattern} WITHIN 48 h", SCHEMA)) == reason


def test_a_sequence_is_taken_apart_after_rewriting() -> None:
    nested = sequence("SEQ(D d, SEQ(!OR(A, G), T t))", where="3 < d.v and t.id = d.id and d.id = 7")
    assert [(c.type, c.negated) for c in nested.parts] == [("D", False), ("A", True), ("G", True), ("T", False)]
    assert len(nested.parts[0].where) == 2
    assert len(nested.parts[3].where) == 1  # closure: t.id = 7
    assert len(nested.where) == 1

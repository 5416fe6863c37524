"""The reference held to answers worked out by hand from the contract.

A stream is written `a1 b2{id=3}`: type A at time 1, type B at time 2 with id 3, in input order. A match is written
`a:a1 b:{b2,b3}`; events are known by their text up to the brace.
"""

from __future__ import annotations

import ast
import math
import re

import pytest

from quercus.compiler.syntax import Event, Negation, Operator, QueryText, WindowText
from tests.reference import Options, aggregate, canonical, matches, rows

ARRIVAL = Options(ties="arrival")
SECONDS = Options(time_unit="s")
BY_ID = Options(key=("id",))
SHOPS = Options(hierarchy={"Computer": ["DELL", "INTC"], "TX": {"Dallas": ["DBusStation"], "Austin": ["ABusStation"]}})


def stream(text: str) -> list[dict[str, object]]:
    events: list[dict[str, object]] = []
    for word in text.split():
        found = re.fullmatch(r"([A-Za-z]+)(\d+)(?:\{(.*)\})?", word)
        assert found, word
        name, ts, attributes = found.groups()
        event: dict[str, object] = {"type": name[0].upper() + name[1:], "ts": int(ts)}
        for pair in attributes.split(",") if attributes else []:
            key, value = pair.split("=")
            event[key] = ast.literal_eval(value)
        events.append(event)
    return events


def expected(text: str, lines: tuple[str, ...]) -> list[dict[str, int | list[int]]]:
    labels = [word.split("{")[0] for word in text.split()]
    assert len(set(labels)) == len(labels), "two events of one name"
    result: list[dict[str, int | list[int]]] = []
    for line in lines:
        match: dict[str, int | list[int]] = {}
        for pair in line.split():
            name, value = pair.split(":")
            if value.startswith("{"):
                match[name] = sorted(labels.index(label) for label in value[1:-1].split(",") if label)
            else:
                match[name] = labels.index(value)
        result.append(match)
    return result


def check(query: str, events: str, lines: tuple[str, ...], options: Options = Options()) -> None:  # noqa: B008
    found = matches(f"PATTERN {query}", stream(events), options)
    assert canonical(found) == canonical(expected(events, lines)), found


SHOP = "g1 a5 a6 t9 d10 t15"
RECYCLE = "SEQ(Recycle r, Wash w, !AND(Sharpen s, Disinfect d), Operate o, [id])"
DOUBLE = "SEQ(A, !SEQ(B, !C), D)"
TRIPLE = "SEQ(A, !SEQ(B, !SEQ(C, !E)), D)"
EACH = "SEQ(A a, B+ b, !(C c, c.id = b.id), D d)"

# query, stream, expected matches, and the reason
WORKED: list[tuple[str, str, tuple[str, ...], str]] = [
    ("SEQ(G, A, T)", SHOP, ("G:g1 A:a5 T:t9", "G:g1 A:a6 T:t9", "G:g1 A:a5 T:t15", "G:g1 A:a6 T:t15"), "all"),
    ("SEQ(G, A, !D, T)", SHOP, ("G:g1 A:a5 T:t9", "G:g1 A:a6 T:t9"), "d10 stands before t15"),
    ("SEQ(G, A, D, T)", SHOP, ("G:g1 A:a5 D:d10 T:t15", "G:g1 A:a6 D:d10 T:t15"), "d10 is bound"),
    (
        RECYCLE,
        "recycle1{id=7} wash2{id=7} sharpen3{id=7} disinfect10{id=7} operate11{id=7} sharpen13{id=7} operate20{id=7}",
        (),
        "both in each gap",
    ),
    (
        RECYCLE,
        "recycle1{id=7} wash2{id=7} sharpen3{id=7} operate11{id=7} disinfect12{id=7} operate20{id=7}",
        ("r:recycle1 w:wash2 o:operate11",),
        "only Sharpen before operate11",
    ),
    (
        "G & M+ WITHIN 5 UNIT",
        "m1 m2 g3 g4 m5 g6 m7",
        ("M:{m1,m2} G:g3", "M:{m1,m2} G:g4", "M:{m2,m5} G:g6", "G:g3 M:{m5,m7}", "G:g4 M:{m5,m7}", "G:g6 M:{m7}"),
        "FAEM, Fig. 3",
    ),
    (
        "A; B[2]; C",
        "a1 b2 b3 b4 c5",
        ("A:a1 B:{b2,b3} C:c5", "A:a1 B:{b2,b4} C:c5", "A:a1 B:{b3,b4} C:c5"),
        "combinations",
    ),
    ("SEQ(A, !B) WITHIN 5", "a1 b7 a8 b9", ("A:a1",), "b9 kills a8"),
    ("SEQ(!A, B) WITHIN 5", "a1 b6 b7", ("B:b7",), "reaches back to end.ts - w inclusive"),
    # further examples in the running text
    ("B+ WITHIN 3", "b1 b3 b5", ("B:{b1,b3}", "B:{b3,b5}"), "two maximal sets"),
    ("SEQ(A, SEQ(B, !C), SEQ(D, E), F)", "a1 b2 c3 d4 e5 f6", (), "bound by adjacent query"),
    ("SEQ(A, SEQ(B, !C), SEQ(D, E), F)", "a1 b2 d3 c4 e5 f6", ("A:a1 B:b2 D:d3 E:e5 F:f6",), "C after D is free"),
    ("SEQ(A, SEQ(B, !C), D)", "a1 b2 c3 d4", (), "the gap reaches to D"),
    ("SEQ(A, SEQ(B, !C), D)", "a1 c2 b3 d4 c5", ("A:a1 B:b3 D:d4",), "C before B or after D is free"),
    ("AND(A a, !A b) WITHIN 5", "a1 a3 a9", ("a:a1", "a:a9"), "one A and no other"),
    ("A+ & B", "a1 b2 a3", ("A:{a1} B:b2", "A:{a3} B:b2"), "each order its own set"),
    (EACH, "a1 b2{id=1} b3{id=2} c4{id=1} d5", ("a:a1 b:{b2,b3} d:d5",), "c4 agrees with b2 only"),
    (EACH, "a1 b2{id=1} b3{id=1} c4{id=1} d5", (), "c4 agrees with every element"),
]

ORDER: list[tuple[str, str, tuple[str, ...], str]] = [
    ("SEQ(A, B)", "a1 b1", (), "equal times are in no order"),
    ("AND(A, B)", "b1 a1", ("A:a1 B:b1",), "AND asks for no order"),
    ("SEQ(A, B)", "b5 a1", ("A:a1 B:b5",), "the input need not be sorted"),
    ("SEQ(AND(A, B), C)", "a1 c2 b3 c4", ("A:a1 B:b3 C:c4",), "c2 is not after the composite's end"),
    ("SEQ(C, AND(A, B))", "a1 c2 b3 a4", ("C:c2 A:a4 B:b3",), "c2 is not before {a1 b3}'s start"),
    ("AND(A x, A y)", "a1 a2", ("x:a1 y:a2", "x:a2 y:a1"), "no event twice, both ways round"),
    ("AND(A x, A y)", "a1", (), "no event is bound twice"),
    ("SEQ(A, B, A)", "a1 b2 a3", ("A_1:a1 B:b2 A_2:a3",), "unnamed twice: numbered in text order"),
    ("SEQ(A, !A, C)", "a1 a2 c3", ("A_1:a2 C:c3",), "negated leaves are numbered too"),
    ("SEQ(A, A x, C)", "a1 a2 c3", ("A:a1 x:a2 C:c3",), "unnamed once: the type's name"),
    ("A; B | C; D", "a1 b2 c3 d4", ("A:a1 B:b2 D:d4", "A:a1 C:c3 D:d4"), "| binds tighter than ;"),
]

WINDOWS: list[tuple[str, str, tuple[str, ...], str]] = [
    ("SEQ(A, B) WITHIN 5", "a1 b6 b7", ("A:a1 B:b6",), "time windows are inclusive"),
    ("SEQ(A, B) WITHIN 2 s", "a1 b2001 b2002", ("A:a1 B:b2001",), "seconds over milliseconds"),
    ("SEQ(A, B) WITHIN 0.3 s", "a0 b300 b301", ("A:a0 B:b300",), "a decimal is meant exactly"),
    ("SEQ(A, B) WITHIN 3 EVENTS", "a1 x2 b3 b4", ("A:a1 B:b3",), "3 consecutive events, unnamed types too"),
    ("SEQ(A, B) WITHIN 2 UNIT", "a1 b1 b2", (), "b1 takes a place: b2 is the third event"),
    ("SEQ(A, SEQ(B, C) WITHIN 2, D) WITHIN 100", "a1 b2 b4 c5 d9", ("A:a1 B:b4 C:c5 D:d9",), "b2..c5 is 3 long"),
    ("SEQ(A, SEQ(B, C) WITHIN 2 EVENTS, D)", "a1 b2 x3 c4 d5", (), "an inner count window"),
    ("SEQ(A, SEQ(B, C) WITHIN 9, D) WITHIN 3", "a1 b2 c3 d5", (), "the outer one is enforced too"),
    ("SEQ(A, OR(B, C) WITHIN 1, D) WITHIN 3", "a1 b2 d4", ("A:a1 B:b2 D:d4",), "one event fits any window"),
    ("SEQ(A, OR(SEQ(B, C), E) WITHIN 1, D)", "a1 b2 c4 e5 d6", ("A:a1 E:e5 D:d6",), "an OR's window: b2..c4 is 2"),
    ("(SEQ(A, !B) WITHIN 2) WITHIN 10", "a1 b5", (), "an inner window narrows no scope"),
    ("(AND(A, !B) WITHIN 2) WITHIN 10", "b1 a9", (), "nor a root AND's"),
    ("SEQ(A, (B+) WITHIN 2, C)", "a1 b2 b3 b5 c6", ("A:a1 B:{b2,b3} C:c6", "A:a1 B:{b3,b5} C:c6"), "two answers"),
    ("SEQ(A, !SEQ(B, C) WITHIN 2, D)", "a1 b2 c5 d9", ("A:a1 D:d9",), "what N binds must fit N's window"),
    ("SEQ(A, !SEQ(B, C) WITHIN 2, D)", "a1 b2 c4 d9", (), "and here it does"),
]

KLEENE: list[tuple[str, str, tuple[str, ...], str]] = [
    ("A; B+; C", "a1 b2 b3 c4", ("A:a1 B:{b2,b3} C:c4",), "the maximal set only"),
    ("A; B+; C", "a1 c2 b3", (), "+ needs an element"),
    ("A; B+; C", "b1 a2 b3 c4 b5", ("A:a2 B:{b3} C:c4",), "elements stand at their place"),
    ("A; B+; C", "a1 b1 b2 c2 c3", ("A:a1 B:{b2} C:c3",), "ties are in no order, elements too"),
    ("SEQ(A, B*, C)", "a1 c2", ("A:a1 B:{} C:c2",), "* may be empty"),
    ("SEQ(A, B*, C)", "a1 b2 c3", ("A:a1 B:{b2} C:c3",), "but the empty set is not maximal here"),
    ("SEQ(A, B*, C)", "c1 a2", (), "around an empty set the neighbours face each other"),
    ("B+; C", "b1 c2 b3 c4", ("B:{b1} C:c2", "B:{b1,b3} C:c4"), "leading"),
    ("A; B+", "a1 b2 a3 b4", ("A:a1 B:{b2,b4}", "A:a3 B:{b4}"), "trailing"),
    ("A+; B+", "a1 b2 a3 b4", ("A:{a1} B:{b2,b4}", "A:{a1,a3} B:{b4}"), "two maximal matches"),
    ("A*; B+", "b1 a2 b3", ("A:{} B:{b1,b3}", "A:{a2} B:{b3}"), "two maximal matches, one with an empty set"),
    ("B+ WITHIN 2 EVENTS", "b1 x2 b3 b4", ("B:{b1}", "B:{b3,b4}"), "a set in a count window"),
    ("B+; C WITHIN 3", "b1 b2 b4 c5", ("B:{b2,b4} C:c5",), "elements obey the window"),
    ("SEQ(A a, B+ b, C c, b.x > 3)", "a1 b2{x=5} b3{x=1} b4{x=9} c5", ("a:a1 b:{b2,b4} c:c5",), "b3 is left out"),
    ("SEQ(A a, B+ b) WHERE b.x = a.x", "a1{x=1} b2{x=2} b3", (), "nothing is left: null is no better"),
    ("B[2]; C", "b1 b2 b3 c4", ("B:{b1,b2} C:c4", "B:{b1,b3} C:c4", "B:{b2,b3} C:c4"), "combinations, leading"),
    ("A; B[2]", "a1 b2 b3", ("A:a1 B:{b2,b3}",), "combinations, trailing"),
    ("B[3]", "b1 b2", (), "too few"),
    ("B[1]", "b1 b2", ("B:{b1}", "B:{b2}"), "a set of one is still a set"),
    ("B[2] b WHERE b.x > 0", "b1{x=1} b2{x=0} b3{x=2}", ("b:{b1,b3}",), "each element"),
    ("B[1]; C+", "b1 c2 b3 c4", ("B:{b1} C:{c2,c4}", "B:{b3} C:{c4}"), "[n] is fixed when supersets are compared"),
    ("SEQ(A a, B+ b, C c, [id])", "a1{id=1} b2{id=1} b3{id=2} b4 c5{id=1}", ("a:a1 b:{b2} c:c5",), "[id]: no null"),
    ("SEQ(B+ b, [id])", "b1{id=1} b2{id=2} b3{id=1}", ("b:{b1,b3}", "b:{b2}"), "[id] compares a set's elements"),
    ("SEQ(B+ b, [id])", "b1 b2", ("b:{b1}", "b:{b2}"), "null agrees with nothing, but one event needs no other"),
    ("SEQ(A+ a, B+ b, [id])", "a1{id=1} a2{id=2} b3{id=2} b4{id=1}", ("a:{a1} b:{b4}", "a:{a2} b:{b3}"), "[id] pairs"),
    ("SEQ(A a, B* b, C c) WHERE b.x = 1", "a1 b2{x=2} c3", ("a:a1 b:{} c:c3",), "an empty set is not tested"),
    ("SEQ(A a, B* b, C c) WHERE a.x = b.x = c.x", "a1{x=1} c2{x=2}", ("a:a1 b:{} c:c2",), "no closure through b"),
]

AND_KLEENE: list[tuple[str, str, tuple[str, ...], str]] = [
    ("AND(A+, B, C)", "a1 b2 a3 c4 a5", ("A:{a1} B:b2 C:c4", "A:{a3} B:b2 C:c4", "A:{a5} B:b2 C:c4"), "every order"),
    ("AND(SEQ(A+), B)", "a1 b2 a3", ("A:{a1} B:b2", "A:{a3} B:b2"), "one component is transparent"),
    ("AND(OR(A+, C), B)", "a1 b2 a3", ("A:{a1,a3} B:b2",), "A+ stands directly in the OR, so no order"),
    ("AND((A+) WITHIN 9, B)", "a1 b2 a3", ("A:{a1,a3} B:b2",), "a window keeps the parentheses"),
    ("AND(A*, B)", "b1 a2", ("A:{} B:b1", "A:{a2} B:b1"), "each order its own maximal set"),
    ("AND(A*, B)", "b1", ("A:{} B:b1",), "duplicates are removed"),
    ("A[2] & B", "a1 b2 a3 a4", ("A:{a3,a4} B:b2",), "a set does not stand on both sides"),
    ("A+ & B", "a1 b1", (), "each order is a SEQ: ties are in no order"),
    ("AND(A+, SEQ(B, C))", "b1 a2 c3 a4", ("A:{a4} B:b1 C:c3",), "a2 is inside the other component"),
    ("AND(A+ a, B b) WHERE count(a) > 1", "a1 a2 b3 a4", ("a:{a1,a2} b:b3",), "a group function per order"),
]

OR: list[tuple[str, str, tuple[str, ...], str]] = [
    ("SEQ(A, OR(B, C), D)", "a1 b2 c3 d4", ("A:a1 B:b2 D:d4", "A:a1 C:c3 D:d4"), "others are absent"),
    ("OR(A x, A y)", "a1", ("x:a1", "y:a1"), "exactly one branch, either one"),
    ("A a | SEQ(A a, B* b)", "a1", ("a:a1", "a:a1 b:{}"), "an empty set is bound, an absent one is not"),
    (
        "SEQ(A a, OR(B b, C c), D d) WHERE b.x = a.x",
        "a1{x=1} b2{x=2} c3{x=3} d4",
        ("a:a1 c:c3 d:d4",),
        "a conjunct that names an absent variable is not tested",
    ),
    ("SEQ(A a, OR(SEQ(B b, a.x > 5), C c))", "a1{x=1} b2 c3", ("a:a1 c:c3",), "it stands in a branch"),
    ("SEQ(A a, OR((B b, a.x > 5), C c))", "a1{x=1} b2 c3", ("a:a1 c:c3",), "also where its SEQ is transparent"),
    ("SEQ(A a, OR(B b, C c, a.x > 5))", "a1{x=1} b2 c3", (), "it stands in the OR: tested on both"),
    (
        "OR(SEQ(A a, B b), SEQ(C c, B b)) WHERE b.x = 1",
        "a1 c2 b3{x=1} b4{x=2}",
        ("a:a1 b:b3", "c:c2 b:b3"),
        "one name in two branches",
    ),
    ("SEQ(A a, OR(B b, C c)) WHERE (a.x = 2 and b.x = 1)", "a1{x=1} c2", ("a:a1 c:c2",), "one conjunct as written"),
    ("SEQ(A a, OR(B b, C c)) WHERE a.x = 2 and b.x = 1", "a1{x=1} c2", (), "two conjuncts as written"),
    ("SEQ(A a, OR(B b, D d), C c) WHERE a.x = b.x = c.x", "a1{x=1} d2 c3{x=2}", ("a:a1 d:d2 c:c3",), "no closure"),
    ("OR(SEQ(A, !B), C) WITHIN 5", "a1 b3 c4", ("C:c4",), "a branch of a root OR is the root: trailing"),
    ("OR(AND(A, !B), C) WITHIN 5", "a2 b3", ("A:a2",), "a branch of a root OR is the root: up to end.ts"),
    ("OR(AND(A, !B), C) WITHIN 5", "b1 a2", (), "and back to end.ts - w"),
    ("SEQ(A, OR(SEQ(B, !C), D), E)", "a1 b2 c3 e4", (), "the branch stands in the OR's place"),
    ("SEQ(A, OR(SEQ(B, !C), D), E)", "a1 b2 e3 c4", ("A:a1 B:b2 E:e3",), "and ends where E begins"),
    ("OR(SEQ(A a, !B b), C c) WHERE b.x = 1 WITHIN 9", "a1 b2{x=2} c3", ("a:a1", "c:c3"), "a negated name in a branch"),
]

NEGATION: list[tuple[str, str, tuple[str, ...], str]] = [
    ("SEQ(!A, B) WITHIN 5", "a5 b5", ("B:b5",), "the scope is open: a tie is not before"),
    ("SEQ(A, !B) WITHIN 5", "a5 b5", ("A:a5",), "nor after"),
    ("SEQ(A, !B) WITHIN 5", "a1 b6", (), "start.ts + w is inside"),
    ("SEQ(A, B, !C) WITHIN 5", "a1 b4 c6", (), "trailing is counted from the start"),
    ("SEQ(A, B, !C) WITHIN 5", "a1 b4 c7", ("A:a1 B:b4",), "and ends there"),
    ("SEQ(!C, A, B) WITHIN 5", "c1 a3 b6", (), "leading is counted from the end"),
    ("SEQ(!C, A, B) WITHIN 5", "c1 a3 b7", ("A:a3 B:b7",), "and begins there"),
    ("SEQ(A, !B) WITHIN 2 EVENTS", "a1 b2", (), "pos < start.pos + c"),
    ("SEQ(A, !B) WITHIN 2 EVENTS", "a1 x2 b3", ("A:a1",), "the third event is past it"),
    ("SEQ(!A, B) WITHIN 2 EVENTS", "a1 b2", (), "pos > end.pos - c"),
    ("SEQ(!A, B) WITHIN 2 EVENTS", "a1 x2 b3", ("B:b3",), "the third event back is past it"),
    ("SEQ(A, !B, !C, D)", "a1 d2 b3 d4", ("A:a1 D:d2",), "adjacent negations: b3 kills d4"),
    ("SEQ(A, !B, !C, D)", "a1 c2 d4", (), "adjacent negations share one scope: C may stand first"),
    ("SEQ(A, !B, !C) WITHIN 9", "a1 c2 b3 a4", ("A:a4",), "adjacent and trailing"),
    ("SEQ(A, !SEQ(B, C), D)", "a1 c2 b3 d4", ("A:a1 D:d4",), "a negated SEQ in the wrong order"),
    ("SEQ(A, !SEQ(B, C), D)", "a1 b2 c3 d4", (), "and in the right one"),
    ("SEQ(A, !SEQ(B, C), D)", "b1 a2 c3 d4", ("A:a2 D:d4",), "every event of N lies inside the scope"),
    ("SEQ(A, !AND(B, C), D)", "a1 c2 b3 d4", (), "a negated AND in any order"),
    ("SEQ(A, !OR(B, C), D)", "a1 c2 d3", (), "a negated OR: either branch"),
    ("SEQ(A, !OR(B, C), D)", "a1 e2 d3", ("A:a1 D:d3",), "neither branch"),
    ("SEQ(A, !SEQ(B, C)) WITHIN 5", "a1 b3 c6", (), "a trailing composite, inclusive"),
    ("SEQ(A, !SEQ(B, C)) WITHIN 5", "a1 b3 c7", ("A:a1",), "c7 is outside"),
    ("SEQ(A, !B+, C)", "a1 b2 c3", (), "a negated + binds one"),
    ("SEQ(A, !B[2], C)", "a1 b2 c3", ("A:a1 C:c3",), "a negated [2] needs two"),
    ("SEQ(A, !B[2], C)", "a1 b2 b3 b4 c5", (), "any two of three"),
    ("SEQ(A, !AND(B+, C), D)", "a1 b2 c2 d3", ("A:a1 D:d3",), "AND's orders are taken first: a tie is no order"),
    ("SEQ(A, !AND(B, C), D)", "a1 b2 c2 d3", (), "without Kleene a tie is fine"),
    ("SEQ(A, !SEQ(!C, B+, !E), D)", "a1 b2 c3 e4 b5 d6", ("A:a1 D:d6",), "{b2,b5} would match N, one B does not"),
    ("AND(A, !B)", "a1 b2 a3", ("A:a1",), "no window: everything up to end.ts"),
    ("SEQ(A, !B)", "a1 b2 a3", ("A:a3",), "no window: to the end of the input"),
    (DOUBLE, "a1 b2 c3 d4", ("A:a1 D:d4",), "B followed by C is no match of N"),
    (DOUBLE, "a1 b2 d4 c5", (), "the inner scope ends at D"),
    (DOUBLE, "a1 c2 b3 d4", (), "C before B does not help"),
    (DOUBLE, "a1 b2 c3 b4 d5", (), "b4 has no C after it"),
    (TRIPLE, "a1 b2 c3 d9", ("A:a1 D:d9",), "C without E keeps B from matching"),
    (TRIPLE, "a1 b2 c3 e4 d9", (), "C with E does not"),
    ("SEQ(A, !SEQ(!C, B), D)", "c1 a2 b3 d4", (), "inside N a leading negation begins at A"),
    ("SEQ(A, !SEQ(!C, B), D)", "a1 c2 b3 d4", ("A:a1 D:d4",), "c2 keeps b3 from matching"),
    ("SEQ(A, !AND(B, !C), D)", "a1 b2 c3 d4", ("A:a1 D:d4",), "inside N an AND's scope is N's"),
    ("SEQ(A, !AND(B, !C), D)", "a1 b2 d4 c5", (), "which ends at D"),
    ("AND(A, B, !C) WITHIN 5", "a4 b6 c7", ("A:a4 B:b6",), "root AND: up to end.ts"),
    ("AND(A, B, !C) WITHIN 5", "c1 a4 b6", (), "from end.ts - w, inclusive"),
    ("AND(A, B, !C) WITHIN 5", "c0 a4 b6", ("A:a4 B:b6",), "and no earlier"),
    ("AND(A, B, !C) WITHIN 5", "a4 b6 c6", (), "end.ts is inside"),
    ("AND(A, !B) WITHIN 2 EVENTS", "b1 a2", (), "the c events up to end"),
    ("AND(A, !B) WITHIN 2 EVENTS", "b1 x2 a3 b4", ("A:a3",), "b1 before and b4 after them"),
    ("SEQ(X, AND(A, !C), Y)", "x1 c2 a3 y4", (), "an AND's scope is its gap: before A"),
    ("SEQ(X, AND(A, !C), Y)", "x1 a2 c3 y4", (), "and after A"),
    ("SEQ(X, AND(A, !C), Y)", "c1 x2 a3 y4 c5", ("X:x2 A:a3 Y:y4",), "and nowhere else"),
    ("SEQ(AND(A, !C), Y) WITHIN 5", "c1 a4 y6", (), "an AND without a left neighbour has the root's reach"),
    ("AND(SEQ(A, !B), C) WITHIN 9", "a1 b2 c3", (), "a component inherits the AND's scope"),
    ("AND(SEQ(A, !B), C) WITHIN 9", "a1 c3 b4", ("A:a1 C:c3",), "which ends at end.ts"),
    ("AND(SEQ(A, !B), C) WITHIN 9", "a1 c3 b3", (), "inclusive"),
    ("AND(A a, B b, !SEQ(A x, B y)) WITHIN 9", "a1 a2 b3", ("a:a1 b:b3", "a:a2 b:b3"), "b3 is a sibling's"),
    ("SEQ(A, B*, !C, D)", "a1 c2 d3", (), "an empty set is no neighbour"),
    ("SEQ(A, B*, !C, D)", "a1 c2 b3 d4", ("A:a1 B:{b3} D:d4",), "a set is one"),
    ("SEQ(A, SEQ(B*, !C), D)", "a1 c2 d3", (), "an empty component leaves the whole gap"),
    ("SEQ(A, B+, !C, D)", "a1 b2 c3 b4 d5", ("A:a1 B:{b2,b4} D:d5",), "the scope begins at the set's end"),
    ("SEQ(A, B+, !C, D)", "a1 b2 b3 c4 d5", (), "a negation never shrinks a set"),
    ("SEQ(B+, !C) WITHIN 3", "b1 b3 b5 c6", ("B:{b1,b3}",), "each maximal match has its own scope"),
    ("SEQ(SEQ(!C, A), B) WITHIN 5", "c1 a4 b6", (), "a nested leading negation has the root's reach"),
    ("SEQ(SEQ(!C, A), B) WITHIN 5", "c0 a4 b6", ("A:a4 B:b6",), "c0 is before end.ts - w"),
    ("SEQ(A, SEQ(!C, B), D)", "c0 a1 b3 c4 d5", ("A:a1 B:b3 D:d5",), "a nested leading negation begins at A"),
    ("SEQ(A, SEQ(!C, B), D)", "a1 c2 b3 d5", (), "and ends at B"),
    ("AND(A+, SEQ(B, !C)) WITHIN 9", "a1 b2 c3", (), "each order is a root SEQ: C is after B and within start + w"),
]

NEGATION_PREDICATES: list[tuple[str, str, tuple[str, ...], str]] = [
    ("SEQ(A a, !(B b, b.x = a.x), C c)", "a1{x=1} b2{x=2} c3", ("a:a1 c:c3",), "another x"),
    ("SEQ(A a, !(B b, b.x = a.x), C c)", "a1{x=1} b2{x=1} c3", (), "the same x"),
    ("SEQ(A a, !(B b, b.x = a.x), C c)", "a1{x=1} b2 c3", ("a:a1 c:c3",), "unknown does not violate"),
    ("SEQ(A a, !B b, C c) WHERE b.x > 5", "a1 b2{x=1} c3", ("a:a1 c:c3",), "WHERE acts inside the negation"),
    ("SEQ(A a, !B b, C c) WHERE b.x > 5", "a1 b2{x=9} c3", (), "where it lets b2 through"),
    ("SEQ(A a, !(B b, a.x > 5), C c)", "a1{x=1} b2 c3", ("a:a1 c:c3",), "a conjunct of positives acts in N"),
    ("SEQ(A a, !(B b, a.x > 5), C c)", "a1{x=9} b2 c3", (), "and holds here"),
    ("SEQ(A a, !(B b, b.x = c.x), C c)", "a1 b2{x=1} c3{x=1} c4{x=2}", ("a:a1 c:c4",), "a later variable is visible"),
    (
        "SEQ(A a, !SEQ(B b, !C c), D d) WHERE c.x = b.x",
        "a1 b2{x=1} c3{x=2} d4",
        (),
        "acts in the inner negation: c3 does not save b2",
    ),
    ("SEQ(A a, !SEQ(B b, !C c), D d) WHERE c.x = b.x", "a1 b2{x=1} c3{x=1} d4", ("a:a1 d:d4",), "c3 does"),
    ("SEQ(A a, !OR(B b, C c), D d) WHERE b.x = 1", "a1 c2{x=2} d3", (), "b is absent in the other branch of N"),
    ("SEQ(A a, !OR(B b, C c), D d) WHERE b.x = 1", "a1 b2{x=2} d3", ("a:a1 d:d3",), "and tested in its own"),
    ("SEQ(A a, !B b, C c, [id])", "a1{id=1} b2{id=2} c3{id=1}", ("a:a1 c:c3",), "[id] holds for negated events"),
    ("SEQ(A a, !B b, C c, [id])", "a1{id=1} b2{id=1} c3{id=1}", (), "b2 agrees"),
    ("SEQ(A a, !B b, !C c, D d, [id])", "a1{id=1} b2{id=2} c3{id=1} d4{id=1}", (), "two negations, each alone"),
    (
        "SEQ(A a, !SEQ(B b, !C c), D d, [id])",
        "a1{id=1} b2{id=1} c3{id=2} d4{id=1}",
        (),
        "[id] reaches the inner negation: c3 does not count",
    ),
    ("SEQ(A a, !SEQ(B b, !C c), D d, [id])", "a1{id=1} b2{id=1} c3{id=1} d4{id=1}", ("a:a1 d:d4",), "c3 counts"),
    ("SEQ(A a, !SEQ(B b, C c, [id]), D d)", "a1{id=1} b2{id=2} c3{id=2} d4{id=1}", (), "[id] inside N is N's own"),
    ("SEQ(A a, B* b, !(C c, c.id = b.id), D d)", "a1 c2{id=1} d3", (), "an empty set: the conjunct is not tested"),
    ("SEQ(A a, OR(B b, E e), !(C c, c.id = b.id), D d)", "a1 e2 c3 d4", (), "b absent: not tested"),
    ("SEQ(A a, !(B[2] b, b.x = 1), C c)", "a1 b2{x=1} b3{x=2} c4", ("a:a1 c:c4",), "each of N's elements"),
    ("SEQ(B+ b, !(C c, c.x > max(b.x)), D d)", "b1{x=1} b2{x=5} c3{x=3} d4", ("b:{b1,b2} d:d4",), "3 < 5"),
    ("SEQ(B+ b, !(C c, c.x > max(b.x)), D d)", "b1{x=1} b2{x=5} c3{x=7} d4", (), "7 > 5"),
]

GROUPS: list[tuple[str, str, tuple[str, ...], str]] = [
    ("SEQ(A, B+ b, C) WHERE count(b) >= 2", "a1 b2 c3 b4 c5", ("A:a1 b:{b2,b4} C:c5",), "count"),
    ("SEQ(A, B+ b, C) WHERE avg(b.x) > 3", "a1 b2{x=1} b3{x=4} c4", (), "never shrinks: {b3} alone would pass"),
    ("SEQ(A, B+ b, C) WHERE sum(b.x) = 4", "a1 b2{x=4} b3 c4", ("A:a1 b:{b2,b3} C:c4",), "sum ignores null"),
    ("SEQ(A, B+ b, C) WHERE avg(b.x) = 4", "a1 b2{x=4} b3 c4", ("A:a1 b:{b2,b3} C:c4",), "avg ignores null"),
    ("SEQ(A, B+ b, C) WHERE sum(b.x) is null", "a1 b2 b3 c4", ("A:a1 b:{b2,b3} C:c4",), "nulls only: null"),
    ("B+ b WHERE last(b).x > first(b).x WITHIN 2", "b1{x=1} b3{x=2} b9{x=5} b10{x=3}", ("b:{b1,b3}",), "first, last"),
    ("B+ b WHERE max(b.x) - min(b.x) = 2", "b1{x=1} b3{x=2} b9{x=3}", ("b:{b1,b3,b9}",), "min and max"),
    ("SEQ(A, B* b, C) WHERE count(b) = 0", "a1 c2 b3 c4", ("A:a1 b:{} C:c2",), "count of an empty set is 0"),
    ("SEQ(A, B* b, C) WHERE count(b) > 0", "a1 c2 b3 c4", ("A:a1 b:{b3} C:c4",), "so this one fails on it"),
    ("SEQ(A, B* b, C) WHERE sum(b.x) is null", "a1 c2", ("A:a1 b:{} C:c2",), "the others are null"),
    ("SEQ(A, B* b, C) WHERE sum(b.x) < 9", "a1 c2", (), "and null does not pass"),
    ("B+ b WHERE b.x >= avg(b.x)", "b1{x=1} b2{x=3}", (), "tested on the built set, for each element"),
    ("SEQ(A a, OR(SEQ(B+ b), C c)) WHERE count(b) > 1", "a1 b2 c3", ("a:a1 c:c3",), "b absent: not tested"),
    ("SEQ(A, B[2] b) WHERE sum(b.x) = 5", "a1 b2{x=1} b3{x=2} b4{x=3}", ("A:a1 b:{b3,b4}",), "over combinations"),
    ("B+ b WHERE sum(b.x) is null", "b1{x=9223372036854775807} b2{x=1}", ("b:{b1,b2}",), "int64 overflow"),
    ("SEQ(A+ a, B+ b) WHERE count(a) = count(b)", "a1 a2 b3 b4", ("a:{a1,a2} b:{b3,b4}",), "two group functions"),
]

TABLES = WORKED + ORDER + WINDOWS + KLEENE + AND_KLEENE + OR + NEGATION + NEGATION_PREDICATES + GROUPS


@pytest.mark.parametrize(("query", "events", "lines", "reason"), TABLES)
def test_matches(query: str, events: str, lines: tuple[str, ...], reason: str) -> None:
    check(query, events, lines)


OPTIONS: list[tuple[str, str, tuple[str, ...], Options, str]] = [
    ("SEQ(A, B)", "a1 b1", ("A:a1 B:b1",), ARRIVAL, "arrival breaks the tie"),
    ("SEQ(A, B)", "b1 a1", (), ARRIVAL, "the other way"),
    ("SEQ(!A, B) WITHIN 5", "a5 b5", (), ARRIVAL, "a5 arrived before"),
    ("SEQ(A, !B) WITHIN 5", "a5 b5", (), ARRIVAL, "b5 arrived after"),
    ("SEQ(A, !B, C)", "a1 b1 c1", (), ARRIVAL, "b1 between by position"),
    ("SEQ(A, !B, C)", "b1 a1 c1", ("A:a1 C:c1",), ARRIVAL, "b1 before by position"),
    ("SEQ(A, !B) WITHIN 5", "a1 x6 b6", (), ARRIVAL, "the root's bound is by time"),
    ("AND(A, !B) WITHIN 5", "a1 b1", (), ARRIVAL, "end.ts is inside, whatever the position"),
    ("A; B+; C", "a1 b1 b2 c2", ("A:a1 B:{b1,b2} C:c2",), ARRIVAL, "elements by position"),
    ("SEQ(A, B) WITHIN 1 min", "a0 b60 b61", ("A:a0 B:b60",), SECONDS, "minutes over seconds"),
    ("SEQ(A, B) WITHIN 1500 ms", "a0 b1 b2", ("A:a0 B:b1",), SECONDS, "a window of one and a half units"),
    ("SEQ(A, B)", "a1{id=1} b2{id=2} b3{id=1}", ("A:a1 B:b3",), BY_ID, "a stream for each key"),
    ("SEQ(A, B)", "a1 b2", (), BY_ID, "null keys belong to no stream"),
    ("SEQ(A, B) WITHIN 2 EVENTS", "a1{id=1} x2{id=2} x3{id=2} b4{id=1}", ("A:a1 B:b4",), BY_ID, "positions per key"),
    ("SEQ(A, !B, C)", "a1{id=1} b2{id=2} c3{id=1}", ("A:a1 C:c3",), BY_ID, "a negation sees its own key"),
    ("SEQ(A, B) PARTITION BY id", "a1{id=1} b2{id=2} b3{id=1}", ("A:a1 B:b3",), Options(), "a key in the query"),
    (
        "SEQ(A, B) PARTITION BY id, k",
        "a1{id=1,k='x'} b2{id=1,k='y'} b3{id=1,k='x'} b4{id=1}",
        ("A:a1 B:b3",),
        Options(),
        "two columns, one of them null in b4",
    ),
    ("SEQ(A, !B) PARTITION BY id WITHIN 2 EVENTS", "a1{id=1} x2{id=2} b3{id=1}", (), Options(), "per key: b3 is next"),
    (
        "SEQ(Computer c, DELL d)",
        "INTC1 DELL2 DELL3",
        ("c:INTC1 d:DELL2", "c:INTC1 d:DELL3", "c:DELL2 d:DELL3"),
        SHOPS,
        "",
    ),
    ("TX t", "dBusStation1 DELL2 aBusStation3", ("t:dBusStation1", "t:aBusStation3"), SHOPS, "two levels up"),
    ("Dallas t", "dBusStation1 aBusStation2 dallas3", ("t:dBusStation1", "t:dallas3"), SHOPS, "one level; its own too"),
    ("DELL d", "computer1", (), SHOPS, "an ancestor is no descendant"),
    ("Computer c WHERE c.type = 'DELL'", "INTC1 DELL2", ("c:DELL2",), SHOPS, "v.type is the finest type"),
    ("AND(DELL d, !Computer c) WITHIN 5", "INTC1 DELL2", (), SHOPS, "another Computer"),
    ("AND(DELL d, !Computer c) WITHIN 5", "DELL1 INTC2", ("d:DELL1",), SHOPS, "a sibling's event is not N's"),
    ("AND(DELL d, Computer c)", "DELL1", (), SHOPS, "no event twice, by any of its types"),
]


@pytest.mark.parametrize(("query", "events", "lines", "options", "reason"), OPTIONS)
def test_options(query: str, events: str, lines: tuple[str, ...], options: Options, reason: str) -> None:
    check(query, events, lines, options)


def test_names_of_the_columns() -> None:
    events = [{"kind": "B", "at": 3}, {"kind": "A", "at": 2}]
    options = Options(type_column="kind", time_column="at")
    assert matches("PATTERN SEQ(A a, B b) WHERE b.ts - a.at = 1, a.type = 'A'", events, options) == [{"a": 1, "b": 0}]


# Predicates on one event: x, y, s, n (null), f ------------------------------------------------------------------------

ROW: dict[str, object] = {
    "x": 5,
    "y": -7,
    "s": "Zoë",
    "n": None,
    "f": 2.5,
    "nan": math.nan,
    "t": True,
    "big": 2**63 - 1,
    "low": -(2**63),
}

TRUE = [
    "a.x = 5",
    "a.x == 5 and a.x != 6",
    "a.f > 2 and a.f < 3",
    "1 < a.x <= 5 < 6",
    "a.t",
    "not (a.x = 4)",
    "a.n is null and a.x is not null and a.missing is null",
    "a.n = 1 or a.x = 5",
    "not (a.n = 1 and a.x = 4)",
    "(a.n = a.n) is null",
    "a.x in (1, 5, null)",
    "a.x not in (1, 2)",
    "a.x between 5 and 6",
    "a.x not between 6 and a.n",
    "a.x / 2 = 2.5",
    "a.x / 0 is null and a.x % 0 is null and a.f / 0 is null",
    "a.y % 3 = -1 and a.x % -3 = 2",
    "-a.f % 2 = -0.5",
    "a.big + 1 is null and a.big * 2 is null and a.low - 1 is null",
    "-a.low is null and abs(a.low) is null",
    "a.big + 0 = a.big",
    "a.x + a.n is null",
    "a.x + 2 * 3 - 1 = 10",
    "round(a.f) = 3 and round(-a.f) = -3 and round(2.4) = 2 and round(a.x) = 5",
    "floor(a.f) = 2 and ceil(a.f) = 3 and floor(-a.f) = -3 and abs(a.y) = 7",
    "a.nan <> a.nan and not (a.nan = a.nan) and not (a.nan < 1)",
    "a.nan is not null",
    "lower(a.s) = 'zoë' and upper('b') = 'B' and length(a.s) = 3",
    "'Z' < 'a' and 'zz' < 'é'",
    "abs(a.n) is null and length(a.n) is null",
    "a.ts = 9 and a.type = 'A'",
]

NOT_TRUE = [
    "a.n = a.n",
    "a.n <> 1",
    "not (a.n = 1)",
    "a.x in (1, null)",
    "a.x not in (1, null)",
    "a.n in (1, 2)",
    "a.n = 1 and a.x = 5",
    "a.x between 1 and a.n",
    "a.x not between 1 and a.n",
    "a.nan = a.nan",
    "a.nan >= a.nan",
    "a.x / 0 = 1 or a.x / 0 <> 1",
    "1 < a.x < 5",
    "1 = 2",
]


@pytest.mark.parametrize("predicate", TRUE)
def test_predicate_is_true(predicate: str) -> None:
    assert matches(f"PATTERN A a WHERE {predicate}", [{"type": "A", "ts": 9, **ROW}]) == [{"a": 0}]


@pytest.mark.parametrize("predicate", NOT_TRUE)
def test_predicate_is_false_or_unknown(predicate: str) -> None:
    assert matches(f"PATTERN A a WHERE {predicate}", [{"type": "A", "ts": 9, **ROW}]) == []


# RETURN and AGG -------------------------------------------------------------------------------------------------------

SALES = "a1{x=1} b2{x=3} b3{x=4} c4{x=1} c5"


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("SEQ(A a, C c) RETURN a.x, c.x AS y", [(1, 1), (1, None)]),
        ("SEQ(A a, B b) RETURN a.x", [(1,), (1,)]),  # equal rows stay
        ("SEQ(A a, B+ b, C c) RETURN b.x, count(b), sum(b.x) / 2, last(b).ts", [([3, 4], 2, 3.5, 3)] * 2),
        ("SEQ(A a, B+ b, C c) WHERE c.x = 1 RETURN b.x + a.x", [([4, 5],)]),
        ("SEQ(A a, OR(D d, C c)) RETURN d.x, c.ts", [(None, 4), (None, 5)]),
        ("SEQ(A a, D* d) RETURN d.x, count(d), max(d.x)", [([], 0, None)]),
        ("SEQ(A a, B+ b)", [{"a.type": "A", "a.ts": 1, "a.x": 1, "b.type": ["B", "B"], "b.ts": [2, 3], "b.x": [3, 4]}]),
        ("A a RETURN a", [({"type": "A", "ts": 1, "x": 1},)]),
    ],
)
def test_return(query: str, wanted: list[object]) -> None:
    assert rows(f"PATTERN {query}", stream(SALES)) == wanted


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("SEQ(A a, B b) AGG COUNT(*) AS n, SUM(b.x) AS s", [{"n": 2, "s": 7}]),
        ("SEQ(A a, C c) AGG COUNT(c), SUM(c.x), AVG(c.x), MIN(c.ts), MAX(c.ts)",
         [{"COUNT(c)": 2, "SUM(c.x)": 1, "AVG(c.x)": 1.0, "MIN(c.ts)": 4, "MAX(c.ts)": 5}]),
        ("SEQ(A a, B+ b, C c) AGG COUNT(*) AS n, COUNT(b) AS k, SUM(b.x) AS s", [{"n": 2, "k": 4, "s": 14}]),
        ("D d AGG COUNT(*) AS n, COUNT(d) AS k, SUM(d.x) AS s", [{"n": 0, "k": 0, "s": None}]),
        ("D d AGG COUNT(*) AS n GROUPBY d.x", []),
        ("SEQ(B b, C c) AGG COUNT(*) AS n GROUPBY c.x", [{"c.x": 1, "n": 2}, {"c.x": None, "n": 2}]),
        ("SEQ(A a, OR(B b, C c)) AGG COUNT(*) AS n, COUNT(b) AS k GROUPBY b.x",
         [{"b.x": 3, "n": 1, "k": 1}, {"b.x": 4, "n": 1, "k": 1}, {"b.x": None, "n": 2, "k": 0}]),
    ],
)  # fmt: skip
def test_aggregate(query: str, wanted: list[dict[str, object]]) -> None:
    assert aggregate(f"PATTERN {query}", stream(SALES)) == wanted


def test_group_by_a_variable_is_by_its_finest_type() -> None:
    found = aggregate("PATTERN Computer c AGG COUNT(*) AS n GROUPBY c", stream("DELL1 INTC2 DELL3"), SHOPS)
    assert found == [{"c.type": "DELL", "n": 2}, {"c.type": "INTC", "n": 1}]


def test_integer_sums_are_exact() -> None:
    events = stream("a1{x=9223372036854775807} a2{x=9223372036854775807}")
    assert aggregate("PATTERN A a AGG SUM(a.x) AS s", events) == [{"s": 2**64 - 2}]


# The interface --------------------------------------------------------------------------------------------------------


def test_syntax_is_taken_as_it_is() -> None:
    pattern = Operator("SEQ", (Event("A", "a"), Negation(Event("B")), Event("C", "c", 1, None, True)))
    query = QueryText(pattern, window=WindowText(9, None))
    assert matches(query, stream("a1 c2 b3 a4 c5 c6")) == [{"a": 0, "c": [1, 4, 5]}, {"a": 3, "c": [4, 5]}]


def test_matches_come_by_end_then_start_then_rows() -> None:
    found = matches("PATTERN AND(A a, B b)", stream("a1 b2 a3 b4"))
    assert found == [{"a": 0, "b": 1}, {"a": 2, "b": 1}, {"a": 0, "b": 3}, {"a": 2, "b": 3}]


@pytest.mark.parametrize(
    "other",
    [
        [],
        [{"a": 0, "b": [1, 2]}],
        [{"a": 0, "b": [1]}, {"a": 3, "b": [4]}],
        [{"a": 0, "b": [1, 2]}, {"a": 3, "b": 4}],
        [{"a": 0, "b": [1, 2]}, {"a": 3}],
        [{"a": 0, "b": [1, 2]}, {"a": 3, "b": [4], "c": []}],
        [{"a": 0, "b": [1, 2]}, {"a": 3, "c": [4]}],
        [{"a": 0, "b": [1, 2]}, {"a": 3, "b": [4]}, {"a": 3, "b": [4, 5]}],
    ],
)
def test_comparator_tells_answers_apart(other: list[dict[str, int | list[int]]]) -> None:
    assert canonical(other) != canonical([{"a": 0, "b": [1, 2]}, {"a": 3, "b": [4]}])


def test_comparator_ignores_order_only() -> None:
    assert canonical([{"b": [2, 1], "a": 0}, {"a": 3}]) == canonical([{"a": 3}, {"a": 0, "b": [1, 2]}])
    with pytest.raises(ValueError, match="twice"):
        canonical([{"a": 0}, {"a": 0}])


def test_a_wrong_expectation_fails() -> None:
    with pytest.raises(AssertionError):
        check("SEQ(A, B)", "a1 b2 b3", ("A:a1 B:b2",))
    with pytest.raises(AssertionError):
        check("SEQ(A, B)", "a1 b2", ("A:a1 B:b2", "A:b2 B:a1"))

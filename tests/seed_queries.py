"""Every query printed in the four papers on event patterns, as printed and as Quercus reads it.

`printed` is the text of the paper as far as it is legible, without its typesetting commands. `window` is the window
given to a query that is printed without one. `mended` says what else had to change; it is empty where the printed text
stands as it is, and the tests hold it to that. Many queries are printed as bare patterns: PATTERN is put before them,
and a semicolon that only ends a line is dropped.

Schemes such as SEQ(E1, ..., En) and fragments that a paper names while it takes a query apart are no queries and are
left out. UNREADABLE lists the queries that exist only in figures which the text of the paper does not contain.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class SeedQuery(NamedTuple):
    paper: str
    where: str
    printed: str
    text: str
    window: str | None
    mended: tuple[str, ...]


class Unreadable(NamedTuple):
    paper: str
    where: str
    what: str


def assembled(printed: str, window: str | None) -> str:
    """The printed text with what its paper leaves out: PATTERN before it, the window after it."""
    body = re.sub(r"\s*;\s*$", "", printed)
    head = "" if body.startswith("PATTERN") else "PATTERN "
    return head + body + (f" WITHIN {window}" if window else "")


def query(
    paper: str,
    where: str,
    printed: str,
    *,
    window: str | None = None,
    text: str | None = None,
    mended: tuple[str, ...] = (),
) -> SeedQuery:
    return SeedQuery(paper, where, printed, text or assembled(printed, window), window, mended)


def workload(paper: str, where: str, window: str, printed: dict[str, str]) -> list[SeedQuery]:
    return [query(paper, f"{where}, {name}", text, window=window) for name, text in printed.items()]


# NEEL -----------------------------------------------------------------------------------------------------------------
# Section 4.1: 'a sliding window of size 10 ms'.

NEEL = [
    query(
        "NEEL",
        "section 1, Q1",
        "SEQ(Recycle r, Washing w, NOT SEQ(Sharpening s, Disinfection d, Checking c), Operating op)",
        window="1 hour",
        text=(
            "PATTERN SEQ(Recycle r, Washing w, NOT SEQ(Sharpening s, Disinfection d, Checking c), Operating op, "
            '[ID], op.ins_type = "surgery") WITHIN 1 hour'
        ),
        mended=(
            'the conditions that the sentence goes on with, (ID) and op.ins-type = "surgery", are written in',
            "ins-type is no name: ins_type, as in Figure 1",
        ),
    ),
    query(
        "NEEL",
        "Figure 1, Q1",
        "PATTERN SEQ(Recycle r, Washing w, ! SEQ(Sharpening s, Disinfection d, Checking c, s.id=d.id=c.id=o.id, "
        'Operating o, r.id=w.id=o.id and o.ins_type="surgery") WITHIN 1 hour',
        text=(
            "PATTERN SEQ(Recycle r, Washing w, ! SEQ(Sharpening s, Disinfection d, Checking c, s.id=d.id=c.id=o.id), "
            'Operating o, r.id=w.id=o.id and o.ins_type="surgery") WITHIN 1 hour'
        ),
        mended=("the inner SEQ is not closed: ')' after c.id=o.id",),
    ),
    *workload(
        "NEEL",
        "text",
        "10 ms",
        {
            "section 2.2": "SEQ(E1, ! E2, ! E3, E4)",
            "section 3.3, adjacent negations": "SEQ(A, !B, !C, D)",
            "section 3.3, their equivalent": "SEQ(A, !C, !B, D)",
            "section 3.3, a negated sub-query": "SEQ(A, ! AND(B, C), D)",
            "section 3.3, bound by upper query, first": "SEQ(A, !B, C)",
            "section 3.3, bound by upper query, second": "SEQ(A, SEQ(B, !C), D)",
            "section 3.3, bound by adjacent query, first": "SEQ(A, SEQ(B, !C), SEQ(D, E), F)",
            "section 3.3, bound by adjacent query, second": "SEQ(A, !B, SEQ(C, D), E)",
        },
    ),
    query(
        "NEEL",
        "Example 2, Q",
        "SEQ(Recycle r, ! SEQ(Washing w, Drying dr, Sharpening s), Disinfection d, "
        "SEQ(Checking c, Relabeling rl), Operating op)",
        window="30",
    ),
    query(
        "NEEL",
        "Example 2, Q with correlated predicates",
        "SEQ(Recycle r, ! SEQ(Washing w, Drying dr, Sharpening s), Disinfection d, "
        "SEQ(Checking c, Relabeling rl), Operating op)",
        window="30",
        text=(
            "PATTERN SEQ(Recycle r, ! SEQ(Washing w, Drying dr, Sharpening s), Disinfection d, "
            "SEQ(Checking c, Relabeling rl), Operating op, [id]) WITHIN 30"
        ),
        mended=("[id], which the sentence adds, is written in",),
    ),
    *workload(
        "NEEL",
        "section 4.2",
        "10 ms",
        {
            "q1": "SEQ(MSFT, ! SEQ(RIMM, AMAT), ORCL, IPIX, INTC);",
            "q2": "SEQ(MSFT, ! SEQ(RIMM, AMAT), ORCL, ! SEQ(YHOO, DELL), IPIX, INTC);",
            "q3": "SEQ(MSFT, ! SEQ(RIMM, AMAT), ORCL, ! SEQ(YHOO, DELL), IPIX, ! SEQ(CSCO, QQQ), INTC);",
        },
    ),
    *workload(
        "NEEL",
        "section 4.3",
        "10 ms",
        {
            "q4": "SEQ(MSFT, !SEQ(RIMM, AMAT), ORCL, INTC);",
            "q5": "SEQ(MSFT, !SEQ(RIMM, AMAT, YHOO), ORCL, INTC);",
            "q6": "SEQ(MSFT, !SEQ(RIMM, AMAT, YHOO, DELL), ORCL, INTC);",
        },
    ),
    *workload(
        "NEEL",
        "section 4.4",
        "10 ms",
        {
            "q7": "SEQ(MSFT, !SEQ(IPIX, QQQ), ORCL, INTC);",
            "q8": "SEQ(MSFT, !SEQ(IPIX, SEQ(RIMM, AMAT), QQQ), ORCL, INTC);",
            "q9": "SEQ(MSFT, !SEQ(IPIX, SEQ(RIMM, SEQ(YHOO, DELL), AMAT), QQQ), ORCL, INTC);",
        },
    ),
    *workload("NEEL", "section 5.1", "10 ms", {"q10": "SEQ(YHOO, SEQ(QQQ, AMAT, DELL), ORCL, IPIX);"}),
]

# E-Cube ---------------------------------------------------------------------------------------------------------------
# Section 7.1: 'sliding window of size 1 second'. Figure 1 is missing; its q5 has 48 hours, which the others get too.

E_CUBE = [
    *workload(
        "E-Cube",
        "Figure 1",
        "48 hours",
        {
            "q1 (printed in Example 2)": "SEQ(TX, OK)",
            "q2 (printed in Example 2)": "SEQ(D, T)",
            "q3 (printed in Example 1)": "SEQ(G, A, T)",
            "q6 (printed in Example 2)": "SEQ(G, A, D, T)",
            "q7 (printed in Example 2; by Definition 3 and Example 7 this is q4)": "SEQ(G, !D, A, T)",
            "section 5.4, the delta results of q3": "SEQ(G, A, !D, T)",
        },
    ),
    query(
        "E-Cube",
        "Figure 1, q7 by Definition 3 and Example 7",
        "SEQ(G, !D, A, T)",
        window="48 hours",
        text="PATTERN SEQ(G, !DBusStation, A, T) WITHIN 48 hours",
        mended=("Example 2 prints D; Definition 3 and Example 7 say that the negative type of q7 is DBusStation",),
    ),
    query(
        "E-Cube",
        "section 1.1, q5 in words",
        "starting from the Dallas bus station, traveling through the Tulsa bus station, and ending in the Tulsa "
        "hospital within a 48 hours time window",
        text="PATTERN SEQ(DBusStation, TBusStation, THospital) WITHIN 48 hours",
        mended=("given in words only; DBusStation is the paper's name, the others are formed like it",),
    ),
    *workload(
        "E-Cube",
        "workload 1",
        "1 second",
        {
            "q1": "SEQ(INTC, ! MSFT, FCF)",
            "q2": "SEQ(INTC, ! MSFT, FCF, ROM)",
            "q3": "SEQ(INTC, ! MSFT, FCF, EFC)",
            "q4": "SEQ(INTC, ! MSFT, FCF, ANAT)",
            "q5": "SEQ(INTC, ! MSFT, FCF, OREL)",
        },
    ),
    *workload(
        "E-Cube",
        "workload 2",
        "1 second",
        {
            "q6": "SEQ(DELL, INTC, ! MSFT, FCF)",
            "q7": "SEQ(DELL, INTC, ! MSFT, FCF, ROM)",
            "q8": "SEQ(DELL, INTC, ! MSFT, FCF, OREL)",
            "q9": "SEQ(DELL, INTC, ! MSFT, FCF, ANAT)",
            "q10": "SEQ(DELL, INTC, ! MSFT, FCF, QQQ)",
        },
    ),
    *workload(
        "E-Cube",
        "workload 3",
        "1 second",
        {
            "q11": "SEQ(QQQ, DELL, INTC, ! MSFT, FCF)",
            "q12": "SEQ(QQQ, DELL, INTC, ! MSFT, FCF, ROM)",
            "q13": "SEQ(QQQ, DELL, INTC, ! MSFT, FCF, ANAT)",
            "q14": "SEQ(QQQ, DELL, INTC, ! MSFT, FCF, OREL)",
            "q15": "SEQ(QQQ, DELL, INTC, ! MSFT, FCF, EFC)",
        },
    ),
    *workload(
        "E-Cube",
        "workload 4",
        "1 second",
        {"q16": "SEQ(Computer, Finance, Education)", "q17": "SEQ(Computer, Finance, EFC)"},
    ),
    *workload(
        "E-Cube",
        "workload 5",
        "1 second",
        {
            "q16 (printed as q18)": "SEQ(Computer, Finance, Education)",
            "q18 (printed as q19, which workload 6 gives to another)": "SEQ(Computer, QQQ, EFC)",
        },
    ),
    *workload(
        "E-Cube",
        "workload 6",
        "1 second",
        {"q16": "SEQ(Computer, Finance, Education)", "q19": "SEQ(INTC, QQQ, EFC)"},
    ),
    *workload(
        "E-Cube",
        "workload 7",
        "1 second",
        {
            "q20": "SEQ(DELL, QQQ, ANAT)",
            "q21": "SEQ(DELL, QQQ, ANAT, ROM)",
            "q22": "SEQ(FCF, DELL, QQQ, ANAT)",
            "q23": "SEQ(DELL, QQQ, ANAT, OREL)",
            "q24": "SEQ(DELL, QQQ, ANAT, INTC)",
            "q25": "SEQ(DELL, QQQ, ANAT, INTC, EFC)",
            "q16": "SEQ(Computer, Finance, Education)",
            "q26": "SEQ(Computer, Finance, ANAT)",
            "q27": "SEQ(DELL, Finance, ANAT)",
            "q28": "SEQ(QQQ, DELL, Finance, ANAT)",
        },
    ),
    *workload(
        "E-Cube",
        "workload 8",
        "1 second",
        {
            "q16": "SEQ(Computer, Finance, Education)",
            "q29": "SEQ(Computer, Finance, OREL)",
            "q30": "SEQ(INTC, QQQ, Education)",
            "q31": "SEQ(INTC, QQQ, EFC)",
            "q32": "SEQ(MSFT, INTC, QQQ, EFC)",
            "q33": "SEQ(INTC, QQQ, EFC, DELL)",
            "q34": "SEQ(Computer, ROM, Education)",
            "q35": "SEQ(Computer, ROM, ANAT)",
            "q36": "SEQ(INTC, ROM, ANAT)",
        },
    ),
]

# Sliding views --------------------------------------------------------------------------------------------------------

SLIDING_VIEWS = [
    query(
        "sliding views",
        "Figure 1, Q1",
        "SEQ(Recycle r, Wash w, !AND(Sharpen s, Disinfect d ,s.roomID=d.roomID, s.id = r.id, d.id =r.id), "
        "Operate o, r.id = o.id, r.id =w.id) WITHIN 10 minutes",
    ),
    query("sliding views", "section 1.1, outer query of Q1", "SEQ(Recycle, Washing, Operating)", window="10 minutes"),
    query(
        "sliding views",
        "Figure 3, first",
        "SEQ(Recycle r, Wash w, !(Sharpen s, s.roomID=d.roomID, s.id = r.id Disinfect d, Operate o, "
        "r.id = o.id, r.id =w.id , d.id =r.id)",
        window="10 minutes",
        text=(
            "PATTERN SEQ(Recycle r, Wash w, !(Sharpen s, s.roomID=d.roomID, s.id = r.id), Disinfect d, Operate o, "
            "r.id = o.id, r.id =w.id , d.id =r.id) WITHIN 10 minutes"
        ),
        mended=("the end of the first line, '),', is out of place",),
    ),
    query(
        "sliding views",
        "Figure 3, second",
        "SEQ(Recycle r, Wash w, Sharpen s, !(Disinfect d, s.roomID=d.room d.id = r.id), Operate o, "
        "r.id = o.id, r.id =w.id , s.id =r.id)",
        window="10 minutes",
        text=(
            "PATTERN SEQ(Recycle r, Wash w, Sharpen s, !(Disinfect d, s.roomID=d.roomID, d.id = r.id), Operate o, "
            "r.id = o.id, r.id =w.id , s.id =r.id) WITHIN 10 minutes"
        ),
        mended=("the end of the first line, 'ID,', is out of place",),
    ),
    query(
        "sliding views",
        "Figure 3, third",
        "SEQ(Recycle r, Wash w, !(Disinfect d, s.roomID=d.roomID, d.id = r. Sharpen s, Operate o, "
        "r.id = o.id, r.id =w.id , s.id =r.id)",
        window="10 minutes",
        text=(
            "PATTERN SEQ(Recycle r, Wash w, !(Disinfect d, s.roomID=d.roomID, d.id = r.id), Sharpen s, Operate o, "
            "r.id = o.id, r.id =w.id , s.id =r.id) WITHIN 10 minutes"
        ),
        mended=("the end of the first line, 'id),', is out of place",),
    ),
    query(
        "sliding views",
        "Figure 3, fourth",
        "SEQ(Recycle r, Wash w, !(Disinfect d, d.id = r.id), !(Sharpen s, s.id = r.id) Operate o, "
        "r.id = o.id, r.id =w.id)",
        window="10 minutes",
        text=(
            "PATTERN SEQ(Recycle r, Wash w, !(Disinfect d, d.id = r.id), !(Sharpen s, s.id = r.id), Operate o, "
            "r.id = o.id, r.id =w.id) WITHIN 10 minutes"
        ),
        mended=("a comma is missing before Operate",),
    ),
    query(
        "sliding views",
        "Figure 3, fifth",
        "SEQ(Recycle r, Wash w, !(Sharpen s, s.id =r.id), !(Disinfect d, d.id = r.id), Operate o, "
        "r.id = o.id, r.id =w.id)",
        window="10 minutes",
    ),
    query(
        "sliding views",
        "Figure 6 (printed in Example 2)",
        "SEQ(Recycle r, !AND(Sharpen, Disinfect), Washing w, Operating o)",
        window="10 minutes",
        text="PATTERN SEQ(Recycle r, AND(Sharpen, Disinfect), Washing w, Operating o) WITHIN 10 minutes",
        mended=("the figure is missing; Example 2 prints it with its sub-query negated",),
    ),
    query(
        "sliding views",
        "Example 2",
        "SEQ(Recycle r, !AND(Sharpen, Disinfect), Washing w, Operating o)",
        window="10 minutes",
    ),
]

# FAEM -----------------------------------------------------------------------------------------------------------------

_TRACKS = ("147073", "56437", "189820", "531386")
_AT = ("first", "second", "third", "fourth")


def _kleene_positions() -> list[SeedQuery]:
    """Figure 11: 'the position of kleene Num (with size = 3), + and * changes from 1st to 4th position'."""
    found = []
    for kleene in ("[3]", "+", "*"):
        for position, at in enumerate(_AT):
            tracks = [track + (kleene if i == position else "") for i, track in enumerate(_TRACKS)]
            found.append(
                query(
                    "FAEM",
                    f"Figure 11, {kleene} at the {at} position",
                    "PATTERN 147073; 56437; 189820; 531386 WITHIN 10000 unit",
                    text=f"PATTERN {'; '.join(tracks)} WITHIN 10000 unit",
                    mended=(f"{kleene} on the {at} type, as the sentence says",),
                )
            )
    return found


FAEM = [
    query(
        "FAEM",
        "Query 1",
        "PATTERN Google; Microsoft+ WHERE Google.value >100$ AND Google.value <Microsoft WITHIN 5 UNIT",
        text=("PATTERN Google; Microsoft+ WHERE Google.value >100 AND Google.value <Microsoft.value WITHIN 5 UNIT"),
        mended=("100$ is the number 100", "Microsoft has no attribute: Microsoft.value"),
    ),
    query(
        "FAEM",
        "Query 2",
        "PATTERN Google; Microsoft [3] and Del WHERE Google.value>1.12 * Mircosoft.value "
        "AND Google.value >1.2 * Del.value WITHIN 10 SEC",
        text=(
            "PATTERN Google; Microsoft [3] and Del WHERE Google.value>1.12 * Microsoft.value "
            "AND Google.value >1.2 * Del.value WITHIN 10 SEC"
        ),
        mended=("Mircosoft is Microsoft",),
    ),
    query(
        "FAEM",
        "Query 3",
        "PATTERN Google; Microsoft*; Del; Intel WHERE Intel.value>Mircosoft.value WITHIN 200 UNIT",
        text="PATTERN Google; Microsoft*; Del; Intel WHERE Intel.value>Microsoft.value WITHIN 200 UNIT",
        mended=("Mircosoft is Microsoft",),
    ),
    *workload(
        "FAEM",
        "kleene on concurrent join",
        "5 UNIT",
        {"A+ and B": "A+&B", "Figure 3": "G & M+", "A* and B": "A* &B", "leading": "A+ ; B", "trailing": "A ; B+"},
    ),
    query(
        "FAEM",
        "kleene on concurrent join, A+ and B spelled out",
        "(A+;B) U (B;A+)",
        window="5 UNIT",
        text="PATTERN (A+;B) | (B;A+) WITHIN 5 UNIT",
        mended=("the sign of union is OR",),
    ),
    query(
        "FAEM",
        "kleene on concurrent join, A* and B spelled out",
        "(A*;B) U (B;A*)",
        window="5 UNIT",
        text="PATTERN (A*;B) | (B;A*) WITHIN 5 UNIT",
        mended=("the sign of union is OR",),
    ),
    query(
        "FAEM",
        "kleene on concurrent join, A[num] and B",
        "A [num]&B",
        window="5 UNIT",
        text="PATTERN A [3]&B WITHIN 5 UNIT",
        mended=("num stands for any number: 3",),
    ),
    query(
        "FAEM",
        "kleene on concurrent join, A[num] and B spelled out",
        "(A [num]; B) U (B;A [num])",
        window="5 UNIT",
        text="PATTERN (A [3]; B) | (B;A [3]) WITHIN 5 UNIT",
        mended=("the sign of union is OR", "num stands for any number: 3"),
    ),
    query(
        "FAEM",
        "combination algorithm",
        "A; B (Cugola and Margara, 2012); C; D",
        window="200 UNIT",
        text="PATTERN A; B[3]; C; D WITHIN 200 UNIT",
        mended=("[3] was taken for a citation and replaced by it",),
    ),
    query(
        "FAEM",
        "performance, shortcomings of a ternary",
        "Google; Microsoft (Mei and Madden, 2009); Dell",
        window="200 UNIT",
        text="PATTERN Google; Microsoft[3]; Dell WITHIN 200 UNIT",
        mended=("[n] was taken for a citation and replaced by it; the number is lost, 3 as elsewhere",),
    ),
    *workload(
        "FAEM",
        "order of joins",
        "5000 unit",
        {
            "pattern": "G; M; D; I",
            "left plan": "((G; M); D); I",
            "right plan": "(G; (M; (D; I)))",
            "bushy plan": "((G; M); (D; I))",
            "inner plan": "(G; ((M; D); I))",
        },
    ),
    query("FAEM", "order of joins, first", "PATTERN 147073; 56437; 189820; 531386+ WITHIN 5000 unit"),
    query("FAEM", "order of joins, second", "PATTERN 147073+; 56437; 189820; 531386 WITHIN 5000 unit"),
    query("FAEM", "order of joins, third", "PATTERN 147073; 56437; 189820; 531386 WITHIN 5000 unit"),
    query("FAEM", "population of events, first", "531386; 189820; 56437; 147073+", window="5000 events"),
    query(
        "FAEM",
        "population of events, second",
        "+531386; 189820; 56437; 147073",
        window="5000 events",
        text="PATTERN 531386+; 189820; 56437; 147073 WITHIN 5000 events",
        mended=("+ before a type is + after it",),
    ),
    query(
        "FAEM",
        "population of events, third",
        "+147073; 56437; 189820; 531386",
        window="5000 events",
        text="PATTERN 147073+; 56437; 189820; 531386 WITHIN 5000 events",
        mended=("+ before a type is + after it",),
    ),
    query("FAEM", "population of events, fourth", "147073; 56437; 189820", window="5000 events"),
    query("FAEM", "selectivity of events", "PATTERN 147073; 56437; 189820; 531386+", window="5000 unit"),
    query("FAEM", "position of kleene", "PATTERN 147073; 56437; 189820; 531386 WITHIN 10000 unit"),
    *_kleene_positions(),
]

QUERIES = [*NEEL, *E_CUBE, *SLIDING_VIEWS, *FAEM]

UNREADABLE = [
    Unreadable("E-Cube", "Figure 1", "the WHERE, GROUPBY and AGG clauses of q1 to q7"),
    Unreadable("sliding views", "Figure 8", "the predicates of Figure 6's query between r, s and d"),
    Unreadable("sliding views", "Figure 9", "the nested query of the experiments in sections 4.6 and 8.5"),
    Unreadable("sliding views", "Figures 11, 14 and 15", "the queries of Examples 4, 5 and 6"),
    Unreadable("sliding views", "Figure 18", "three queries with sub-queries of two to four types"),
    Unreadable("sliding views", "Figure 20", "three queries with one to three positive sub-queries"),
    Unreadable("sliding views", "Figure 22", "three queries with negative sub-queries of two to four types"),
    Unreadable("sliding views", "Figure 24", "the queries with predicate correlation"),
    Unreadable("FAEM", "Figure 1", "the query over Google and Microsoft with Google.value < 1.2 * Microsoft.value"),
    Unreadable("FAEM", "Figure 10", "the patterns whose window length varies"),
]

"""Every `tests/cases/*.case` on every engine.

A new engine is one more entry in ENGINES. Where it cannot do something yet, `gaps` names the case and says why; the
test then fails as soon as the gap has closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from attrs import field, frozen

from quercus import compile
from quercus.compiler.bind import bind
from quercus.compiler.parse import parse_query
from quercus.errors import QueryError
from quercus.result import Matches
from quercus.testing import Actual, Case, compare, compare_rows, read, update
from quercus.testing.expectations import Match, Row
from quercus.testing.run import columns_of, schema_of
from tests import reference

FOLDER = Path(__file__).parent / "cases"


@frozen
class Engine:
    """`matches` and `rows` answer a case; `gaps` maps 'file: case name' to the reason why this engine fails it."""

    name: str
    matches: Callable[[Case], list[Match]]
    rows: Callable[[Case], list[Row]]
    gaps: Mapping[str, str] = field(factory=dict)


def reference_options(case: Case) -> reference.Options:
    options = case.options
    return reference.Options(
        ties=options.ties, time_unit=options.time_unit, key=options.key, hierarchy=options.hierarchy
    )


def reference_matches(case: Case) -> list[Match]:
    return reference.matches(case.query, case.events, reference_options(case))


def reference_rows(case: Case) -> list[Row]:
    query = parse_query(case.query)
    if query.aggregates:
        return reference.aggregate(query, case.events, reference_options(case))
    names = [output.name or reference.label(output.value) for output in query.returns]
    found = reference.rows(query, case.events, reference_options(case))
    return [dict(zip(names, row, strict=True)) for row in found]


def local(case: Case) -> Matches:
    return compile(case.query, schema_of(case)).run(columns_of(case))


def local_matches(case: Case) -> list[Match]:
    return local(case).rows()


def local_rows(case: Case) -> list[Row]:
    return local(case).to_arrow().to_pylist()


# The first engine is the one whose answers --update writes; a declared gap is never written over.
ENGINES = [
    Engine("reference", reference_matches, reference_rows),
    Engine("local", local_matches, local_rows),
]

# Queries that the compiler refuses with another code than the list in quercus.errors has for them, or does not refuse.
COMPILER_GAPS: dict[str, str] = {}

CASES = [case for path in sorted(FOLDER.glob("*.case")) for case in read(path)]


def title(case: Case) -> str:
    return f"{case.path.stem}: {case.name}"


def refusal(case: Case) -> str | None:
    """The code with which the compiler refuses the query of a case, or None."""
    try:
        bind(parse_query(case.query), schema_of(case))
    except QueryError as e:
        return e.code
    return None


def marks(case: Case, gaps: Mapping[str, str]) -> list[pytest.MarkDecorator]:
    return [pytest.mark.xfail(strict=True, reason=gaps[title(case)])] if title(case) in gaps else []


def answers() -> list[object]:
    return [
        pytest.param(engine, case, id=f"{engine.name}: {title(case)}", marks=marks(case, engine.gaps))
        for engine in ENGINES
        for case in CASES
        if case.error is None
    ]


@pytest.mark.parametrize(("engine", "case"), answers())
def test_answer(engine: Engine, case: Case, updating: bool) -> None:
    actual = Actual(
        matches=None if case.matches is None else engine.matches(case),
        rows=None if case.rows is None else engine.rows(case),
    )
    differences = [
        difference
        for difference in (
            None if actual.matches is None else compare(case, actual.matches),
            None if actual.rows is None else compare_rows(case, actual.rows),
        )
        if difference is not None
    ]
    if differences and updating and engine is ENGINES[0] and title(case) not in engine.gaps:
        update(case.path, {case.name: actual})
        pytest.skip(f"rewrote {title(case)}")
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize("case", [pytest.param(c, id=title(c), marks=marks(c, COMPILER_GAPS)) for c in CASES])
def test_the_compiler_accepts_or_refuses(case: Case, updating: bool) -> None:
    code = refusal(case)
    if updating and title(case) not in COMPILER_GAPS and None not in (code, case.error) and code != case.error:
        update(case.path, {case.name: Actual(error=code)})
        pytest.skip(f"rewrote {title(case)}")
    assert code == case.error, f"{case.path}:{case.line}: expected {case.error or 'no error'}, got {code or 'no error'}"


def test_gaps_name_cases() -> None:
    titles = {title(case) for case in CASES}
    gaps = [*COMPILER_GAPS, *(gap for engine in ENGINES for gap in engine.gaps)]
    assert [gap for gap in gaps if gap not in titles] == []


def test_every_case_says_why() -> None:
    assert [title(case) for case in CASES if not case.why] == []


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
@pytest.mark.parametrize("broken", ["matches: none", "match: A=a1 B=b3", "match: A=a1 B=b2\nmatch: A=a1 B=b3"])
def test_a_broken_expectation_fails(tmp_path: Path, engine: Engine, broken: str) -> None:
    path = tmp_path / "broken.case"
    path.write_text(f"case: broken\nquery: PATTERN SEQ(A, B) WITHIN 1\nevents: a1 b2 b3\n{broken}\n")
    [case] = read(path)
    with pytest.raises(AssertionError, match="broken"):
        test_answer(engine, case, updating=False)


def test_update_writes_what_the_first_engine_answers(tmp_path: Path) -> None:
    path = tmp_path / "broken.case"
    path.write_text("case: broken\nquery: PATTERN SEQ(A, B) WITHIN 1\nevents: a1 b2 b3\nmatches: none\n")
    with pytest.raises(pytest.skip.Exception, match="rewrote broken: broken"):
        test_answer(ENGINES[0], read(path)[0], updating=True)
    test_answer(ENGINES[0], read(path)[0], updating=False)

"""The public face: the names that examples and documents rely on, their signatures, and docstrings that run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import quercus as qc

SCHEMA = qc.Schema(
    {"id": "int64", "price": "float64", "room": "string"},
    time="ts",
    type="type",
    time_unit="ms",
    ties="strict",
    hierarchy={"Computer": ["DELL", "INTC"], "TX": {"Dallas": ["DBusStation"]}},
    order=None,
    key=None,
)
QUERY = "PATTERN SEQ(Recycle r, Wash w, !AND(Sharpen s, Disinfect d), Operate o, [id]) WITHIN 10 min"


def modules() -> list[str]:
    found = [m.name for m in pkgutil.walk_packages(qc.__path__, "quercus.") if not m.name.endswith("__main__")]
    return ["quercus", *found]


def test_public_names() -> None:
    for name in ("Schema", "Stats", "Plan", "compile", "QuercusError", "QueryError", "DataError", "LimitExceeded"):
        assert name in qc.__all__
        assert getattr(qc, name).__doc__
    assert list(qc.__all__) == sorted(qc.__all__)
    assert all(hasattr(qc, name) for name in qc.__all__)
    assert qc.__version__


def test_errors_have_one_base() -> None:
    assert all(issubclass(e, qc.QuercusError) for e in (qc.QueryError, qc.DataError, qc.LimitExceeded))
    assert not issubclass(qc.QueryError, ValueError)


def test_compile_takes_what_is_promised() -> None:
    parameters = inspect.signature(qc.compile).parameters
    assert list(parameters)[:2] == ["text", "schema"]
    defaults = {name: p.default for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    assert {"stats": None, "shape": "auto", "nested": "auto"}.items() <= defaults.items()
    for shape in ("left", "right", "bushy", "inner", "stack", "auto"):
        for nested in ("iterative", "aggressive", "passive", "balanced", "index", "auto"):
            assert isinstance(qc.compile(QUERY, SCHEMA, stats=None, shape=shape, nested=nested), qc.Plan)


def test_a_plan_has_what_is_promised() -> None:
    plan = qc.compile(QUERY, SCHEMA)
    assert isinstance(plan.explain(), str)
    assert plan.graph().source.startswith("digraph")
    assert plan.alternatives()
    assert qc.Plan.from_json(plan.to_json()) == plan
    assert plan == qc.compile(QUERY, SCHEMA)
    assert plan != qc.compile(QUERY, SCHEMA, shape="left")


def test_plans_and_schemas_are_frozen() -> None:
    plan = qc.compile(QUERY, SCHEMA)
    with pytest.raises(AttributeError):
        plan.text = "other"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        SCHEMA.time = "other"  # type: ignore[misc]


def test_a_query_error_carries_its_place() -> None:
    with pytest.raises(qc.QueryError) as caught:
        qc.compile("PATTERN SEQ(Wash w, Operate o)\nWHERE w.pice > 3 WITHIN 5", SCHEMA)
    e = caught.value
    assert (e.code, e.line, e.column, e.hint) == ("E104", 2, 9, "did you mean 'price'?")
    assert str(e).splitlines()[1:] == ["  2 | WHERE w.pice > 3 WITHIN 5", "              ^^^^  did you mean 'price'?"]


def test_per_type_attributes() -> None:
    schema = qc.Schema({"Wash": {"id": "int64"}, "Operate": {"id": "int64", "ins": "string"}})
    assert qc.compile("PATTERN SEQ(Wash w, Operate o, o.ins = 'x', [id]) WITHIN 5", schema).tree.key is not None
    with pytest.raises(qc.QueryError, match="E104"):
        qc.compile("PATTERN SEQ(Wash w, Operate o, w.ins = 'x') WITHIN 5", schema)
    with pytest.raises(qc.QueryError, match="E101"):
        qc.compile("PATTERN SEQ(Wash w, Operat o) WITHIN 5", schema)


@pytest.mark.parametrize("name", modules())
def test_docstrings_run(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as e:
        if (e.name or "").startswith("quercus"):
            raise
        pytest.skip(f"needs {e.name}")
    failures, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failures == 0


@pytest.mark.parametrize("name", ["Schema", "Stats", "Plan", "compile", "QueryError"])
def test_public_names_have_examples(name: str) -> None:
    assert ">>>" in (getattr(qc, name).__doc__ or "")


def test_every_module_says_what_it_is() -> None:
    for path in Path(qc.__file__).parent.rglob("*.py"):
        source = path.read_text()
        assert not source.strip() or source.startswith('"""') or "rules" in path.parts, path.name

"""Who may import whom: stages depend downward only. Read from the source with `ast`, so that lazy imports count too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "quercus"
FILES = sorted(PACKAGE.rglob("*.py"))

# What a part of the package may import of ours, by the first parts of the name; and itself, and errors.
ALLOWED = {
    "errors": {"ir.span"},
    "ir": set(),
    "schema": {"ir", "backends.local.infer"},  # Schema.infer reads data, as a front door does
    "stats": {"collect"},  # Stats.collect reads data, as a front door does
    "collect": {"stats"},
    "running_stats": {"stats"},
    "adapt": set(),
    "kernels": None,  # nothing of ours but kernels
    "compiler": {"ir", "schema", "stats", "plan"},
    "cql": {"compiler", "ir", "schema", "backends", "plan", "result"},
    "plan": {"compiler", "ir", "schema", "stats", "adapt", "backends", "result", "lint", "why", "show", "report"},
    "lint": {"ir", "plan", "backends"},
    "backends": {
        *("ir", "kernels", "schema", "stats", "collect", "running_stats", "adapt", "plan", "result", "cql"),
        *("compiler.cost", "compiler.stream_cost"),  # a live stream is planned again as it goes on
    },
    "cubes": {"compiler", "ir", "plan", "schema", "stats", "adapt", "backends", "levels"},
    "levels": {"compiler", "ir", "plan", "schema", "backends"},
    "why": {"compiler.homes", "ir", "plan", "schema", "backends"},
    "pytest_plugin": {"testing"},
    "testing": {"ir", "schema", "plan", "compiler"},
    "show": {"compiler", "ir", "schema", "plan", "result", "backends.local.outputs", "backends.local.records"},
    "report": {"show", "compiler", "ir", "schema", "plan", "result", "backends"},
    "studio": {"report", "show", "compiler", "ir", "schema", "stats", "plan", "result", "backends"},
}
# Only these may know these packages at all: each behind a name of its own.
KNOWS = {
    "lark": {"compiler/reading.py", "compiler/parse.py", "compiler/scalars.py", "compiler/continuous"},
    "cattrs": {"ir/codec.py"},
    "graphviz": {
        *("compiler/render.py", "compiler/cube/render.py", "compiler/continuous/render.py"),
        *("plan.py", "cubes.py", "cql.py"),
    },
    "pygraphviz": {"compiler/render.py"},
    "pyspark": {"backends/spark"},
}


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, wherever in it, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parts = parts[: len(parts) - node.level + is_package]
                base = ".".join([*parts, *([node.module] if node.module else [])])
            for alias in node.names:
                inside = PACKAGE.parent / Path(*base.split("."), alias.name)
                is_module = inside.is_dir() or inside.with_suffix(".py").exists()
                yield (f"{base}.{alias.name}" if is_module else base), node.lineno


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def violations(source: str, module: str, *, is_package: bool = False) -> list[str]:
    own = module.removeprefix("quercus").removeprefix(".")
    layer = own.split(".")[0]
    if layer not in ALLOWED:
        return []  # the front door: __init__, cli
    allowed = ALLOWED[layer]
    found = []
    for name, line in imports(ast.parse(source), module, is_package):
        if name != "quercus" and not name.startswith("quercus."):
            continue
        target = name.removeprefix("quercus").removeprefix(".")
        same = target.split(".")[0] == layer
        free = set() if allowed is None else allowed | {"errors"}
        if not same and not any(target == f or target.startswith(f"{f}.") for f in free):
            found.append(f"{module}:{line} imports {name}")
    return found


# Open: files that break the rules today. The test fails as soon as one of them no longer does.
GAPS: dict[str, str] = {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downward(path: Path) -> None:
    found = violations(path.read_text(), name_of(path), is_package=path.name == "__init__.py")
    assert bool(found) == (path.relative_to(PACKAGE).as_posix() in GAPS), found


def test_every_part_of_the_package_has_a_rule() -> None:
    parts = {p.stem for p in PACKAGE.iterdir() if p.suffix == ".py"} | {
        p.name for p in PACKAGE.iterdir() if (p / "__init__.py").exists()
    }
    front = {"__init__", "__main__", "cli", "result", "inputs", "events"}
    assert parts - front <= ALLOWED.keys()


@pytest.mark.parametrize(("package", "homes"), KNOWS.items(), ids=list(KNOWS))
def test_other_packages_have_one_home(package: str, homes: set[str]) -> None:
    found = set()
    for path in FILES:
        used = {
            n.split(".")[0] for n, _ in imports(ast.parse(path.read_text()), name_of(path), path.name == "__init__.py")
        }
        place = path.relative_to(PACKAGE).as_posix()
        if package in used and not any(place == home or place.startswith(f"{home}/") for home in homes):
            found.add(place)
    assert found == set()


@pytest.mark.parametrize(
    ("source", "module", "wrong"),
    [
        ("from quercus.compiler import bind", "quercus.ir.expr", True),
        ("def f():\n    import quercus.compiler.parse", "quercus.backends.local.run", True),
        ("from quercus.ir import tree", "quercus.kernels.reference", True),
        ("from quercus import errors", "quercus.kernels.reference", True),
        ("from ..ir import tree", "quercus.kernels.reference", True),
        ("import quercus", "quercus.compiler.parse", True),
        ("from quercus.backends import local", "quercus.compiler.planner", True),
        ("from quercus.ir import tree\nimport numpy", "quercus.backends.local.run", False),
        ("from quercus.errors import QueryError", "quercus.ir.codec", False),
        ("from . import expr\nfrom .expr import Column", "quercus.ir.tree", False),
    ],
)
def test_a_violation_is_noticed(source: str, module: str, wrong: bool) -> None:
    assert bool(violations(source, module)) == wrong


def test_files_stay_readable() -> None:
    lengths = {path.relative_to(PACKAGE).as_posix(): len(path.read_text().splitlines()) for path in FILES}
    assert {name: n for name, n in lengths.items() if n > 1_000} == {}

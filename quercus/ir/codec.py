"""The IR as JSON and back: tagged nodes, a version, nothing unknown accepted. Spans stay behind."""

from __future__ import annotations

import json
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, get_args

import attrs

from quercus.errors import QueryError
from quercus.ir import expr, pattern, span, tree

if TYPE_CHECKING:
    from cattrs import Converter

VERSION = 1


def encode(value: Any, kind: Any) -> Any:
    """A node as plain dicts and lists."""
    return _converter().unstructure(value, unstructure_as=kind)


def decode(data: Any, kind: Any) -> Any:
    """Plain data as a node; `QueryError` E701 names what does not fit."""
    from cattrs.errors import BaseValidationError
    from cattrs.v import transform_error

    try:
        return _converter().structure(data, kind)
    except BaseValidationError as e:
        raise QueryError("E701", "not a plan: " + "; ".join(transform_error(e)[:3])) from None
    except (ValueError, TypeError, KeyError, AttributeError) as e:
        raise QueryError("E701", f"not a plan: {e}") from None


def loads(text: str | bytes) -> dict[str, Any]:
    """A plan document, its version checked."""
    try:
        data = json.loads(text)
    except (ValueError, TypeError, RecursionError) as e:
        raise QueryError("E701", f"not a plan: {e}") from None
    if not isinstance(data, dict) or "quercus_plan" not in data:
        raise QueryError("E701", "not a plan: no 'quercus_plan' version in it")
    if type(data["quercus_plan"]) is not int or data["quercus_plan"] != VERSION:
        raise QueryError(
            "E701", f"a plan of version {data['quercus_plan']}; this is version {VERSION}", hint="compile it again"
        )
    return data


def _classes(module: ModuleType) -> list[type]:
    return [
        v for v in vars(module).values() if isinstance(v, type) and attrs.has(v) and v.__module__ == module.__name__
    ]


@lru_cache(maxsize=1)
def _converter() -> Converter:
    from cattrs import Converter
    from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

    converter = Converter()
    constant = bool | int | float | str | None
    converter.register_structure_hook(constant, _scalar)
    converter.register_unstructure_hook(constant, lambda v: v)
    for plain in (str, int, float, bool):
        converter.register_structure_hook(plain, _exactly)
    for union in (expr.Expr, pattern.Pattern, tree.Node, pattern.Leaf | pattern.Kleene):
        _register_union(converter, union)
    from_expr, as_expr = _register_union(converter, expr.Expr)
    converter.register_structure_hook(expr.Expr | str, lambda v, _: v if isinstance(v, str) else as_expr(v, None))
    converter.register_unstructure_hook(expr.Expr | str, lambda v: v if isinstance(v, str) else from_expr(v))

    def hidden(c: type) -> dict[str, Any]:
        return {"span": override(omit=True)} if any(a.name == "span" for a in attrs.fields(c)) else {}

    names = {**vars(expr), **vars(pattern), **vars(tree), **vars(span)}
    for c in (c for m in (expr, pattern, tree) for c in _classes(m)):
        attrs.resolve_types(c, globalns=names)
    converter.register_unstructure_hook_factory(
        attrs.has, lambda c: make_dict_unstructure_fn(c, converter, **hidden(c))
    )
    converter.register_structure_hook_factory(
        attrs.has, lambda c: make_dict_structure_fn(c, converter, _cattrs_forbid_extra_keys=True, **hidden(c))
    )
    return converter


def _register_union(converter: Converter, union: Any) -> tuple[Any, Any]:
    """A node of a union carries its class's name under 'node'."""
    by_name = {c.__name__: c for c in get_args(union)}

    def unstructure(value: Any) -> dict[str, Any]:
        return {"node": type(value).__name__, **converter.unstructure(value)}

    def structure(data: Any, _: Any) -> Any:
        kind = by_name.get(data.get("node")) if isinstance(data, dict) else None
        if kind is None:
            found = data.get("node") if isinstance(data, dict) else data
            raise ValueError(f"unknown node {found!r}; expected one of {', '.join(sorted(by_name))}")
        return converter.structure({k: v for k, v in data.items() if k != "node"}, kind)

    converter.register_unstructure_hook(union, unstructure)
    converter.register_structure_hook(union, structure)
    return unstructure, structure


def _scalar(value: Any, _: Any) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise ValueError(f"{value!r} is no constant")


def _exactly(value: Any, kind: Any) -> Any:
    """No coercion: a whole number may stand for a float, nothing else for anything else."""
    if type(value) is kind or (kind is float and type(value) is int):
        return float(value) if kind is float else value
    raise ValueError(f"{value!r} is no {kind.__name__}")

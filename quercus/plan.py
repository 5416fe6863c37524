"""A compiled query: what `quercus.compile` returns."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from quercus.compiler.explain import explain
from quercus.compiler.pipeline import Fired, check_invariants
from quercus.errors import DataError, QueryError
from quercus.ir import codec, pattern, tree
from quercus.schema import Schema

if TYPE_CHECKING:
    import graphviz

    from quercus.backends.base import Limits


@frozen
class Alternative:
    """A shape that the planner considered for the root operator, with its cost."""

    shape: str
    cost: float
    chosen: bool


@frozen
class Plan:
    """A query compiled to a tree, ready to run. Frozen: plans can be kept, compared and sent as JSON.

    >>> import quercus as qc
    >>> plan = qc.compile("PATTERN A; B+; C WITHIN 5 EVENTS", qc.Schema({"x": "int64"}))
    >>> qc.Plan.from_json(plan.to_json()) == plan
    True
    """

    text: str
    schema: Schema
    bound: pattern.Query = field(repr=False)
    query: pattern.Query = field(repr=False)
    tree: tree.Tree = field(repr=False)
    fired: tuple[Fired, ...] = field(repr=False, eq=False)
    considered: tuple[Alternative, ...] = field(repr=False)
    warnings: tuple[str, ...]

    def explain(self, *, verbose: bool = False) -> str:
        """The plan as text:

        logical query, rules that fired (with `verbose`, what each changed), tree with estimated costs.
        """
        return explain(self, verbose=verbose)

    def alternatives(self) -> tuple[Alternative, ...]:
        """The shapes considered for the root operator, cheapest first, with the cost of its joins alone.

        For a SEQ of up to five components these are all binary trees, the stack, and, beyond, the named shapes and the
        cheapest tree found.
        """
        return self.considered

    def graph(self) -> graphviz.Digraph:
        """The tree as a `graphviz.Digraph`."""
        from quercus.compiler.render import graph

        return graph(self)

    def render(self, path: str | Path) -> Path:
        """Draw the plan into an .svg, .png, .pdf or .dot file."""
        from quercus.compiler.render import render

        return render(self, Path(path))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """A picture in notebooks, and the text beside it."""
        from quercus.compiler.render import RenderError, svg

        bundle = {"text/plain": self.explain()}
        with suppress(RenderError):  # nothing to draw with: the text says the same
            bundle["image/svg+xml"] = svg(self)
        return bundle

    def run(
        self, events: Any, backend: str | None = None, *, threads: int | None = None, limits: Limits | None = None
    ) -> Any:
        """Find all matches in a stream that is at hand as a whole.

        >>> import quercus as qc
        >>> plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 3", qc.Schema({}))
        >>> plan.run({"ts": [1, 2, 9], "type": ["A", "B", "B"]}).rows()
        [{'a': 0, 'b': 1}]
        """
        from quercus import backends

        chosen = backends.get(backend or "local")
        reason = chosen.supports(self)
        if reason is not None:
            raise QueryError("E703", f"the backend '{chosen.name}' cannot run this plan: {reason}")
        return chosen.run(self, events, threads=threads, limits=limits or backends.Limits())

    def to_json(self) -> str:
        """The plan as JSON, versioned. `from_json` reads it back."""
        data = {
            "quercus_plan": codec.VERSION,
            "text": self.text,
            "schema": self.schema.to_dict(),
            "bound": codec.encode(self.bound, pattern.Query),
            "query": codec.encode(self.query, pattern.Query),
            "tree": codec.encode(self.tree, tree.Tree),
            "fired": [
                {
                    "rule": f.rule,
                    "before": codec.encode(f.before, pattern.Query),
                    "after": codec.encode(f.after, pattern.Query),
                }
                for f in self.fired
            ],
            "alternatives": [codec.encode(a, Alternative) for a in self.considered],
            "warnings": list(self.warnings),
        }
        return json.dumps(data, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """Read a plan; anything that is not one of this version is a `QueryError` (E701)."""
        data = codec.loads(text)
        if set(data) != _KEYS:
            raise QueryError("E701", f"not a plan: unknown or missing keys {sorted(set(data) ^ _KEYS)}")
        try:
            fired = tuple(
                Fired(
                    _text(f["rule"]), codec.decode(f["before"], pattern.Query), codec.decode(f["after"], pattern.Query)
                )
                for f in _list(data["fired"])
            )
            plan = cls(
                text=_text(data["text"]),
                schema=Schema.from_dict(data["schema"]),
                bound=codec.decode(data["bound"], pattern.Query),
                query=codec.decode(data["query"], pattern.Query),
                tree=codec.decode(data["tree"], tree.Tree),
                fired=fired,
                considered=tuple(codec.decode(a, Alternative) for a in _list(data["alternatives"])),
                warnings=tuple(_text(w) for w in _list(data["warnings"])),
            )
            check_invariants(plan.query, "the plan document")
        except (KeyError, TypeError, ValueError, AssertionError, DataError) as e:
            raise QueryError("E701", f"not a plan: {e!r}") from None
        return plan


_KEYS = {"quercus_plan", "text", "schema", "bound", "query", "tree", "fired", "alternatives", "warnings"}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value

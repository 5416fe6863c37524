"""Types that no event has, and types of the data that look like them."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from quercus.ir import pattern as p
from quercus.ir import text
from quercus.why.engine import Engine
from quercus.why.funnel import types_of
from quercus.why.readings import positive
from quercus.why.requirements import Requirement


def missing_types(engine: Engine, q: p.Query) -> Iterator[Requirement]:
    """The leaves of a type that no event has, where another type of the schema that looks alike has some."""
    known = engine.schema.type_names()
    there = {t.casefold(): t for t in types_of(engine) if known is None or t in known}
    for path, e in positive(q.pattern):
        if not isinstance(e, p.Leaf | p.Kleene):
            continue
        kind = e.leaf.type if isinstance(e, p.Kleene) else e.type
        if len(engine.stream.route([engine.schema.accepts(kind)])[0]):
            continue
        for near in get_close_matches(kind.casefold(), list(there), n=1, cutoff=0.6):
            yield Requirement("type", f"type {text.type_name(kind)}", (e.var,), path, instead=there[near])

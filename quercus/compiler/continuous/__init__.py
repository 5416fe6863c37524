"""Continuous queries: text -> surface syntax -> typed IR, and the plans of the patterns in it."""

from __future__ import annotations

from collections.abc import Mapping

from quercus.compiler.continuous.bind import Bound, bind_continuous
from quercus.compiler.continuous.parse import parse_continuous
from quercus.schema import Schema

__all__ = ["Bound", "compiled"]


def compiled(text: str, schemas: Mapping[str, Schema]) -> Bound:
    """The query, bound to the streams that it names; or `QueryError` with the place and what to do."""
    return bind_continuous(parse_continuous(text), schemas)

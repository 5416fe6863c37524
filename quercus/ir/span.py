"""Where in the query text a node came from. Never part of a node's identity."""

from __future__ import annotations

from attrs import field, frozen


@frozen
class Span:
    """Offsets [start, end) into the query text."""

    start: int
    end: int


def span_field() -> Span | None:
    """The last field of every node: kept out of equality, hashing and repr."""
    return field(default=None, eq=False, repr=False, kw_only=True)  # type: ignore[no-any-return]

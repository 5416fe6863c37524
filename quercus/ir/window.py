"""Continuous queries: windows over streams, relations over windows, and streams out of relations.

A pattern window (Shen et al.) opens at a tuple that meets `start`, and looks at every later tuple: `termination` closes
it, else `iteration` lets it go on, and `filter` takes the tuple in; anything else drops it.

Conditions are expressions over columns of these variables: `""`, the tuple at hand; `first`, the first tuple of the
window; `prev`, the last one that it took in; `window`, with the attributes `iter` and `num`, its two counts. Of a
tuple's own columns, `ts` is its time.
"""

from __future__ import annotations

from attrs import frozen

from quercus.ir.expr import Expr

HERE, FIRST, PREV, WINDOW = "", "first", "prev", "window"


@frozen
class PatternWindow:
    """`Stream[Pattern By (start; termination; iteration; filter)]`."""

    start: Expr
    termination: Expr
    iteration: Expr
    filter: Expr

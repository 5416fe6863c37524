"""What grows: more matches than a run may list, sets of very many events; and no match at all."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np

from quercus.backends.base import Limits
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.lint.finding import Finding
from quercus.lint.look import Look

MANY = 8_192  # elements of a set


def large(look: Look) -> Iterator[Finding]:
    limit = Limits().max_matches
    if not look.query.aggregates:
        total = look.total(look.query)
        if total is not None and total > limit:
            message = f"there are {total:,} matches, more than the limit of {limit:,}"
            hint = "tighten WITHIN, add conditions, or count them with AGG COUNT(*)"
            yield look.finding("L601", "warning", message, hint=hint, span=look.query.window.span)
    if look.query.partition_by or look.schema.key:
        return  # how many of one key are in a window is another matter
    for k in p.leaves(look.query.pattern):
        if not isinstance(k, p.Kleene):
            continue
        most = _most(look, k.leaf.type)
        span, words = look.spans[k.var], f"WITHIN {text.window(look.query.window)}"
        if k.most is not None and comb(most, k.most) > limit:
            message = f"up to {most:,} events of '{k.leaf.type}' {words}: {comb(most, k.most):.1e} choices of {k.most}"
            yield look.finding("L602", "warning", message, hint="tighten the window", span=span)
        elif k.most is None and most > MANY:
            message = f"'{k.var}' can have up to {most:,} events of '{k.leaf.type}' {words}"
            yield look.finding("L602", "warning", message, hint="tighten the window, or add conditions", span=span)


def _most(look: Look, type_name: str) -> int:
    """How many events of a type one window holds at most."""
    window, times = look.query.window, look.times(type_name)
    if not len(times):
        return 0
    if window.kind == "count":
        return min(window.size, len(times))
    return int((np.searchsorted(times, times + window.size, "right") - np.arange(len(times))).max())


def nothing(look: Look) -> Iterator[Finding]:
    """No match, though each part by itself could have one."""
    if look.total(look.query) == 0:
        hint = "`quercus run --why` says how far partial matches get"
        yield look.finding("L701", "warning", "no match in these events", hint=hint)

"""Counts and integer sums as decimals, exact up to 38 digits."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from quercus.errors import LimitExceeded

TOTAL = pa.decimal128(38, 0)  # what counts and integer sums are
_DIGITS = 38


def exact(totals: list[Any], name: str) -> pa.Array:
    for total in totals:
        if total is not None and abs(total) >= 10**_DIGITS:
            raise LimitExceeded(f"'{name}' has more than {_DIGITS} digits", limit="decimal digits", value=_DIGITS)
    return pa.array([None if t is None else Decimal(t) for t in totals], TOTAL)

"""Values as whole numbers in the same order, so that the least can be found among them; and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from quercus.backends.local.values import Values

Index = NDArray[np.int64]
_SAFE = 2**62
_NO_VALUE = 2**63 - 2


def ranked(values: Values, function: str) -> tuple[Index, Callable[[int], Any]]:
    """Numbers of which the least is that of the least value (of the greatest, for `max`), and the value of a number.

    Null is above all others. A NaN is below: what it touches is NaN.

    >>> numbers, value_of = ranked(Values("float64", np.array([2.5, 0.5, 9.0])), "max")
    >>> value_of(int(numbers.min()))
    9.0
    """
    sign = 1 if function == "min" else -1
    if values.kind == "string":
        known = pc.unique(values.data).drop_null()
        known = known.take(pc.sort_indices(known))
        places = pc.index_in(values.data, value_set=known).fill_null(0).to_numpy().astype(np.int64)
        return _without_nulls(sign * places, values), lambda n: known[sign * n].as_py()
    data: Any = values.data
    if values.kind == "bool":
        return _without_nulls(sign * data.astype(np.int64), values), lambda n: bool(sign * n)
    if values.kind == "float64":
        numbers = np.isnan(data)
        distinct, places = np.unique(np.where(numbers, 0.0, data), return_inverse=True)
        found = np.where(numbers, -_SAFE, sign * places)
        return _without_nulls(found, values), lambda n: float("nan") if n == -_SAFE else float(distinct[sign * n])
    if not len(data) or (data.max() < _SAFE and data.min() > -_SAFE):
        return _without_nulls(sign * data, values), lambda n: sign * n
    distinct, places = np.unique(data, return_inverse=True)
    return _without_nulls(sign * places, values), lambda n: int(distinct[sign * n])


def _without_nulls(numbers: Index, values: Values) -> Index:
    return numbers if values.valid is None else np.where(values.valid, numbers, _NO_VALUE)

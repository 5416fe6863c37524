"""Codes for keys: small integers that are equal where the keys are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quercus.backends.local.values import Values

Codes = NDArray[np.int64]
_PART = 2**31  # codes of one part of a key stay below


class Dictionary:
    """Gives every value it meets a code: 0, 1, 2, ... in the order of appearance; null and NaN: -1.

    NaN is equal to nothing, itself included; 0.0 and -0.0 are one value.

    >>> seen = Dictionary()
    >>> seen.codes(pa.array(["x", "y", None, "x"])).tolist(), seen.codes(pa.array(["z", "y"])).tolist()
    ([0, 1, -1, 0], [2, 1])
    """

    def __init__(self) -> None:
        self.known: Any = None  # a pa.Array: the value of each code

    def __len__(self) -> int:
        return 0 if self.known is None else len(self.known)

    def codes(self, values: pa.Array) -> Codes:
        encoded = values.dictionary_encode()
        own: pa.Array = encoded.dictionary
        if self.known is None:
            mapping = np.arange(len(own), dtype=np.int64)
            self.known = own
        else:
            if own.type != self.known.type:
                own = own.cast(self.known.type, safe=False)
            at = pc.index_in(own, value_set=self.known)
            new = at.is_null().to_numpy(zero_copy_only=False)
            mapping = at.fill_null(-1).to_numpy().astype(np.int64)
            if new.any():
                mapping[new] = np.arange(len(self.known), len(self.known) + int(new.sum()))
                self.known = pa.concat_arrays([self.known, own.filter(pa.array(new))])
        if len(self.known) >= _PART:
            raise OverflowError("more than 2**31 different keys")
        mapping = np.append(mapping, -1)  # where null points
        return np.asarray(mapping[encoded.indices.fill_null(-1).to_numpy()])


def part_codes(dictionary: Dictionary, values: Values) -> Codes:
    """The codes of one attribute of a key."""
    if values.kind != "float64":
        return dictionary.codes(values.to_arrow())
    mask = np.isnan(values.data)
    if values.valid is not None:
        mask |= ~values.valid
    return dictionary.codes(pa.array(values.data + 0.0, mask=mask))


def pair_codes(dictionary: Dictionary, left: Codes, right: Codes) -> Codes:
    """The codes of pairs of codes."""
    missing = (left < 0) | (right < 0)
    return dictionary.codes(pa.array(left * _PART + right, mask=missing))

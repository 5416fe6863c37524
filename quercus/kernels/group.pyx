"""Sorting by counting: the order that brings equal keys together, and the stable order of whole numbers."""

from libc.string cimport memset

import numpy as np

from quercus.kernels._typedefs cimport int64_t
from quercus.kernels.memory import empty

cdef extern from "sorted.h":
    bint ascends(const int64_t* values, Py_ssize_t n) noexcept nogil

cdef enum:
    DIGIT = 11              # bits that one pass sorts by
    DIGITS = 4              # passes at most


def is_sorted(const int64_t[::1] values):
    """Whether no value is less than the one before it."""
    cdef Py_ssize_t n = values.shape[0]
    cdef bint sorted_ = True
    if n:
        with nogil:
            sorted_ = ascends(&values[0], n)
    return sorted_


def stable_order(const int64_t[::1] values):
    """The stable order of the values; None where their range is too wide to sort them by counting.

    >>> import numpy as np
    >>> stable_order(np.array([30, 10, 20, 10])).tolist()
    [1, 3, 2, 0]
    """
    cdef Py_ssize_t n = values.shape[0], i
    cdef int64_t least, most, at, span
    cdef int64_t counts[1 << DIGIT]
    cdef int shift = 0, digit, passes = 0
    if n == 0:
        return np.empty(0, dtype=np.int64)
    least = most = values[0]
    with nogil:
        for i in range(n):
            least, most = min(least, values[i]), max(most, values[i])
    if <object> most - <object> least >= 2 ** (DIGIT * DIGITS):
        return None
    span = most - least
    order, spare = empty(n), empty(n)
    cdef int64_t[::1] first = order
    cdef int64_t[::1] second = spare
    cdef int64_t* now = &first[0]
    cdef int64_t* then = &second[0]
    with nogil:
        for i in range(n):
            now[i] = i
        while passes == 0 or span >> shift:
            memset(counts, 0, sizeof(counts))
            for i in range(n):
                counts[((values[i] - least) >> shift) & ((1 << DIGIT) - 1)] += 1
            at = 0
            for digit in range(1 << DIGIT):
                at += counts[digit]
                counts[digit] = at - counts[digit]
            for i in range(n):
                digit = ((values[now[i]] - least) >> shift) & ((1 << DIGIT) - 1)
                then[counts[digit]] = now[i]
                counts[digit] += 1
            now, then = then, now
            shift += DIGIT
            passes += 1
    return spare if passes & 1 else order


def group_by_code(const int64_t[::1] codes, Py_ssize_t count):
    """A stable order of the codes 0..count-1, and count + 1 offsets into it. Negative codes are left out."""
    cdef Py_ssize_t n = codes.shape[0], i, kept = 0
    starts = np.zeros(count + 2, dtype=np.int64)
    cdef int64_t[::1] start = starts
    cdef int64_t c
    with nogil:
        for i in range(n):
            c = codes[i]
            if c >= count:
                with gil:
                    raise ValueError("a code beyond the count")
            if c >= 0:
                start[c + 2] += 1
                kept += 1
        for i in range(2, count + 2):
            start[i] += start[i - 1]
    order = np.empty(kept, dtype=np.int64)
    cdef int64_t[::1] out = order
    with nogil:
        for i in range(n):
            c = codes[i]
            if c >= 0:
                out[start[c + 1]] = i
                start[c + 1] += 1
    return order, starts[: count + 1]

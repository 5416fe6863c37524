"""Counting sort by small codes: the order that brings equal keys together, and where each key begins."""

import numpy as np

from quercus.kernels._typedefs cimport int64_t


def is_sorted(const int64_t[::1] values):
    """Whether no value is less than the one before it."""
    cdef Py_ssize_t i, n = values.shape[0]
    cdef bint back = False
    with nogil:
        for i in range(1, n):
            back |= values[i] < values[i - 1]
    return not back


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

"""Sets as ranges of one array: their elements end to end, and functions of each without listing them."""

from libc.string cimport memcpy

import numpy as np

from quercus.kernels._typedefs cimport int64_t
from quercus.kernels.memory import empty

ctypedef fused number:
    int64_t
    double


cdef int check(Py_ssize_t size, const int64_t[::1] starts, const int64_t[::1] ends) except -1:
    """Every range must lie inside."""
    cdef Py_ssize_t i
    cdef bint sound = starts.shape[0] == ends.shape[0]
    if sound:
        with nogil:
            for i in range(starts.shape[0]):
                sound &= (starts[i] >= 0) & (starts[i] <= ends[i]) & (ends[i] <= size)
    if not sound:
        raise ValueError("a range that is none")
    return 0


cdef int check_owners(const int64_t[::1] starts, const int64_t[::1] owners, Py_ssize_t count) except -1:
    cdef Py_ssize_t i
    if owners.shape[0] != starts.shape[0]:
        raise ValueError("an owner for each range")
    for i in range(owners.shape[0]):
        if not 0 <= owners[i] < count:
            raise ValueError("an owner beyond the count")
    return 0


def elements(const int64_t[::1] values, const int64_t[::1] starts, const int64_t[::1] ends):
    """The values of all ranges, one range after the other.

    >>> import numpy as np
    >>> elements(np.array([5, 6, 7, 8]), np.array([1, 0]), np.array([3, 2])).tolist()
    [6, 7, 5, 6]
    """
    cdef Py_ssize_t i, at = 0, total = 0
    check(values.shape[0], starts, ends)
    with nogil:
        for i in range(starts.shape[0]):
            total += ends[i] - starts[i]
    found = empty(total)
    if total == 0:
        return found
    cdef int64_t[::1] out = found
    with nogil:
        for i in range(starts.shape[0]):
            if starts[i] < ends[i]:
                memcpy(&out[at], &values[starts[i]], (ends[i] - starts[i]) * sizeof(int64_t))
                at += ends[i] - starts[i]
    return found


def sums(const double[::1] values, const int64_t[::1] starts, const int64_t[::1] ends, const int64_t[::1] owners, Py_ssize_t count):
    """The sum of the ranges of each of `count` owners, added from left to right."""
    cdef Py_ssize_t i, j
    cdef double total
    check(values.shape[0], starts, ends)
    check_owners(starts, owners, count)
    found = np.zeros(count, np.float64)
    cdef double[::1] out = found
    with nogil:
        for i in range(starts.shape[0]):
            total = out[owners[i]]
            for j in range(starts[i], ends[i]):
                total += values[j]
            out[owners[i]] = total
    return found


def extremes(
    const number[::1] values, const int64_t[::1] starts, const int64_t[::1] ends, const int64_t[::1] owners, Py_ssize_t count, bint most,
):
    """The least or greatest value in the ranges of each of `count` owners, 0 where there is none. A NaN goes through."""
    cdef Py_ssize_t i, j
    cdef number best
    check(values.shape[0], starts, ends)
    check_owners(starts, owners, count)
    found = np.zeros(count, np.int64 if number is int64_t else np.float64)
    some = np.zeros(count, np.uint8)
    cdef number[::1] out = found
    cdef unsigned char[::1] known = some
    with nogil:
        for i in range(starts.shape[0]):
            if starts[i] >= ends[i]:
                continue
            best = out[owners[i]] if known[owners[i]] else values[starts[i]]
            known[owners[i]] = 1
            for j in range(starts[i], ends[i]):
                if number is double:
                    if best != best:
                        break
                if most:
                    best = best if best >= values[j] else values[j]
                else:
                    best = best if best <= values[j] else values[j]
            out[owners[i]] = best
    return found

"""Columns of routed events: the values at some rows, and rows grouped by a key of small range."""

import numpy as np

from quercus.kernels._typedefs cimport int64_t
from quercus.kernels.memory import empty

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define fetch_early(p) __builtin_prefetch(p)
    #else
    #define fetch_early(p) ((void) (p))
    #endif
    """
    void fetch_early(const void* p) noexcept nogil

cdef enum:
    AHEAD = 24          # rows that are on their way while one is read

ctypedef fused value_t:
    int64_t
    double


cdef object place(Py_ssize_t n, out):
    if out is not None and len(out) != n:
        raise ValueError(f"{len(out)} places for {n} rows")
    return empty(n) if out is None else out


def take(const value_t[::1] column, const int64_t[::1] rows, out=None):
    """The values at some rows, in a new array or in `out`.

    >>> import numpy as np
    >>> take(np.array([5, 6, 7]), np.array([2, 0])).tolist()
    [7, 5]
    """
    cdef Py_ssize_t i, n = rows.shape[0], near = n - AHEAD if n > AHEAD else 0
    found = place(n, out)
    if value_t is double and out is None:
        found = found.view(np.float64)
    cdef value_t[::1] to = found
    with nogil:
        for i in range(near):
            fetch_early(&column[rows[i + AHEAD]])
            to[i] = column[rows[i]]
        for i in range(near, n):
            to[i] = column[rows[i]]
    return found


def take_with_range(const int64_t[::1] column, const int64_t[::1] rows, out=None):
    """The values at some rows, the least and the greatest of them; of no rows 0 and -1.

    >>> import numpy as np
    >>> values, least, most = take_with_range(np.array([5, 6, 7]), np.array([2, 0]))
    >>> values.tolist(), least, most
    ([7, 5], 5, 7)
    """
    cdef Py_ssize_t i, n = rows.shape[0], near = n - AHEAD if n > AHEAD else 0
    found = place(n, out)
    cdef int64_t[::1] to = found
    cdef int64_t value, least, most
    if n == 0:
        return found, 0, -1
    least = most = column[rows[0]]
    with nogil:
        for i in range(n):
            if i < near:
                fetch_early(&column[rows[i + AHEAD]])
            value = column[rows[i]]
            to[i] = value
            least = value if value < least else least
            most = value if value > most else most
    return found, least, most


def by_key(const int64_t[::1] keys, int64_t least, Py_ssize_t count, const int64_t[::1] rows, const int64_t[::1] column):
    """Rows grouped by their keys least..least + count - 1, in each group in the order given; the column at these rows,
    which are ascending; and count + 1 offsets of the groups.

    >>> import numpy as np
    >>> rows, values, starts = by_key(np.array([8, 7, 8]), 7, 2, np.array([0, 1, 3]), np.array([10, 11, 12, 13]))
    >>> rows.tolist(), values.tolist(), starts.tolist()
    ([1, 0, 3], [11, 10, 13], [0, 1, 3])
    """
    cdef Py_ssize_t n = rows.shape[0], i, near = n - AHEAD if n > AHEAD else 0
    cdef int64_t at, row, key, last = least + (count - 1) if count else least
    cdef bint beyond = count == 0 and n > 0
    if keys.shape[0] != n:
        raise ValueError(f"{keys.shape[0]} keys for {n} rows")
    starts = np.zeros(count + 2, dtype=np.int64)
    cdef int64_t[::1] start = starts
    with nogil:
        for i in range(n):
            key = keys[i]
            if beyond or key < least or key > last:
                beyond = True
                break
            start[key - least + 2] += 1
        for i in range(2, count + 2):
            start[i] += start[i - 1]
    if beyond:
        raise ValueError("a key outside the range given")
    grouped, values = empty(n), empty(n)
    cdef int64_t[::1] out = grouped
    cdef int64_t[::1] value = values
    with nogil:
        for i in range(n):
            if i < near:
                fetch_early(&column[rows[i + AHEAD]])
            row, key = rows[i], keys[i] - least + 1
            at = start[key]
            start[key] = at + 1
            out[at] = row
            value[at] = column[row]
    return grouped, values, starts[: count + 1]

"""Sorting by counting: the order that brings equal keys together, the stable order of whole numbers, that of matches."""

from libc.stdint cimport INT64_MAX
from libc.string cimport memcpy, memset

import numpy as np

from quercus.kernels._typedefs cimport int64_t
from quercus.kernels.memory import empty

cdef extern from "sorted.h":
    bint ascends(const int64_t* values, Py_ssize_t n) noexcept nogil

cdef enum:
    DIGIT = 11              # bits that one pass sorts by
    DIGITS = 4              # passes at most
    FEW = 16                # matches that are put in order one by one


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


cdef struct Keys:               # what matches are ordered by: the greatest position first, then the least, then these
    int64_t* most
    int64_t* least
    const int64_t** firsts
    int n


cdef inline bint follows(Keys* k, int64_t i, int64_t j) noexcept nogil:
    """Whether match i comes after match j."""
    cdef int c
    if k.most[i] != k.most[j]:
        return k.most[i] > k.most[j]
    if k.least[i] != k.least[j]:
        return k.least[i] > k.least[j]
    for c in range(k.n):
        if k.firsts[c][i] != k.firsts[c][j]:
            return k.firsts[c][i] > k.firsts[c][j]
    return False


cdef void insert(Keys* k, int64_t* order, Py_ssize_t n) noexcept nogil:
    """Put a few matches in order."""
    cdef Py_ssize_t i, j
    cdef int64_t moved
    for i in range(1, n):
        moved, j = order[i], i
        while j > 0 and follows(k, order[j - 1], moved):
            order[j] = order[j - 1]
            j -= 1
        order[j] = moved


cdef void arrange(Keys* k, int64_t* order, int64_t* spare, Py_ssize_t n) noexcept nogil:
    """Put matches in order; equal ones stay as they are."""
    cdef Py_ssize_t half = n // 2, i = 0, j, at = 0
    if n <= FEW:
        insert(k, order, n)
        return
    arrange(k, order, spare, half)
    arrange(k, order + half, spare, n - half)
    if not follows(k, order[half - 1], order[half]):
        return
    memcpy(spare, order, half * sizeof(int64_t))
    j = half
    while i < half:
        if j < n and follows(k, spare[i], order[j]):
            order[at] = order[j]
            j += 1
        else:
            order[at] = spare[i]
            i += 1
        at += 1


def order_of(list firsts, list lasts):
    """The order of matches by their greatest position, then the least, then the first of each variable; None: as they are.

    Each variable has the first and the last position that it is bound to in each match, -1 where it is absent.

    >>> import numpy as np
    >>> a, b = np.array([2, 1, 5]), np.array([3, 3, 0])
    >>> order_of([a, b], [a, b]).tolist(), order_of([b], [b]) is None, order_of([np.array([1, 2])] * 2, [np.array([4, 4])] * 2)
    ([1, 0, 2], False, None)
    """
    cdef Py_ssize_t n = len(firsts[0]) if firsts else 0, i, begin
    cdef int c
    cdef const int64_t[::1] first, last
    cdef int64_t[::1] most, least, order, spare, counts, pointers
    cdef int64_t low = INT64_MAX, high = -1, at_ = 0, count
    cdef Keys k
    if n < 2:
        return None
    held = [np.ascontiguousarray(f, np.int64) for f in firsts]
    most, least = empty(n), empty(n)
    pointers = np.empty(len(held), np.int64)
    k.most, k.least, k.firsts, k.n = &most[0], &least[0], <const int64_t**> &pointers[0], len(held)
    for i in range(n):
        most[i], least[i] = -1, INT64_MAX
    for c in range(k.n):
        first, last = held[c], np.ascontiguousarray(lasts[c], np.int64)
        if first.shape[0] != n or last.shape[0] != n:
            raise ValueError("variables of different length")
        k.firsts[c] = &first[0]
        with nogil:
            for i in range(n):
                most[i] = max(most[i], last[i])
                least[i] = min(least[i], first[i] if first[i] >= 0 else INT64_MAX)
    with nogil:
        i = 1
        while i < n and not follows(&k, i - 1, i):
            i += 1
    if i == n:
        return None
    made, other = empty(n), empty(n)
    order, spare = made, other
    with nogil:
        for i in range(n):
            low, high = min(low, most[i]), max(high, most[i])
    if high - low > 8 * n:  # few matches in a long stream
        with nogil:
            for i in range(n):
                order[i] = i
            arrange(&k, &order[0], &spare[0], n)
        return made
    counts = np.zeros(high - low + 2, np.int64)
    with nogil:
        for i in range(n):
            counts[most[i] - low + 1] += 1
        for i in range(1, counts.shape[0]):
            counts[i] += counts[i - 1]
        for i in range(n):  # counts[e]: where the next match that ends there goes; in the end, where the next end begins
            at_ = most[i] - low
            order[counts[at_]] = i
            counts[at_] += 1
        begin = 0
        for i in range(high - low + 1):
            count = counts[i] - begin
            if count > 1:
                arrange(&k, &order[begin], &spare[0], count)
            begin = counts[i]
    return made

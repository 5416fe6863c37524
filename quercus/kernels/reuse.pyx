"""Results of a query made into those of another: ranges of partners, counts before bounds, orders, and their listing.

Tables have an entry for each position of the stream. A range of a buffer's events, from `lo` to `hi`, belongs to each
match; as these alone are the results of one more component, nothing is listed before it is asked for.
"""

cimport cython
from libc.string cimport memset

from quercus.kernels._typedefs cimport int32_t, int64_t, uint8_t, uint64_t


@cython.overflowcheck(False)
cdef inline uint64_t gap(int64_t early, int64_t late) noexcept nogil:
    """How much later: times may be as far apart as int64 goes."""
    return <uint64_t> late - <uint64_t> early


def reach(const int64_t[::1] ts, int64_t width, int32_t[::1] out):
    """Of each position, the first whose time is more than `width` later; times ascend.

    >>> import numpy as np
    >>> out = np.empty(4, np.int32)
    >>> reach(np.array([1, 1, 3, 9]), 2, out)
    >>> out.tolist()
    [3, 3, 3, 4]
    """
    cdef Py_ssize_t n = ts.shape[0], p, q = 0
    same_length(n, out.shape[0])
    with nogil:
        for p in range(n):
            while q < n and gap(ts[p], ts[q]) <= <uint64_t> width:
                q += 1
            out[p] = q


def back(const int64_t[::1] ts, int64_t width, int32_t[::1] out):
    """Of each position, the first whose time is at most `width` earlier; times ascend.

    >>> import numpy as np
    >>> out = np.empty(4, np.int32)
    >>> back(np.array([1, 1, 3, 9]), 2, out)
    >>> out.tolist()
    [0, 0, 0, 3]
    """
    cdef Py_ssize_t n = ts.shape[0], p, q = 0
    same_length(n, out.shape[0])
    with nogil:
        for p in range(n):
            while gap(ts[q], ts[p]) > <uint64_t> width:
                q += 1
            out[p] = q


def counted(const int32_t[::1] bound, const int64_t[::1] at, int32_t[::1] out):
    """Of each position, how many of the ascending `at` lie before its bound; bounds ascend.

    >>> import numpy as np
    >>> out = np.empty(3, np.int32)
    >>> counted(np.array([0, 2, 3], np.int32), np.array([0, 1]), out)
    >>> out.tolist()
    [0, 2, 2]
    """
    cdef Py_ssize_t n = bound.shape[0], m = at.shape[0], p, j = 0
    same_length(n, out.shape[0])
    with nogil:
        for p in range(n):
            while j < m and at[j] < bound[p]:
                j += 1
            out[p] = j


def counted_by_key(
    const int64_t[::1] order,
    const int64_t[::1] first,
    const int32_t[::1] bound,
    const int64_t[::1] at,
    const int64_t[::1] starts,
    int32_t[::1] out,
):
    """The same where only events of the position's own key count.

    `order` has the positions key by key, those of key c from first[c] on; `at` the events, those of key c from starts[c]
    on. The result is a place in `at`; of positions without a key 0. Bounds ascend in each key.
    """
    cdef Py_ssize_t keys = starts.shape[0] - 1, c, i
    cdef int64_t j, p
    same_length(bound.shape[0], out.shape[0])
    same_length(first.shape[0], starts.shape[0])
    with nogil:
        for i in range(out.shape[0]):
            out[i] = 0
        for c in range(keys):
            j = starts[c]
            for i in range(first[c], first[c + 1]):
                p = order[i]
                while j < starts[c + 1] and at[j] < bound[p]:
                    j += 1
                out[p] = j


def spans(
    const int32_t[::1] low,
    const int64_t[::1] low_at,
    const int32_t[::1] high,
    const int64_t[::1] high_at,
    int32_t[::1] lo,
    int32_t[::1] hi,
):
    """The range of each match: from low[low_at] to high[high_at], and how long all are together.

    >>> import numpy as np
    >>> table, lo, hi = np.array([0, 1, 1, 2], np.int32), np.empty(2, np.int32), np.empty(2, np.int32)
    >>> spans(table, np.array([0, 3]), table, np.array([3, 1]), lo, hi), lo.tolist(), hi.tolist()
    (2, [0, 2], [2, 2])
    """
    cdef Py_ssize_t n = low_at.shape[0], i
    cdef int64_t total = 0
    cdef int32_t a, b
    same_length(n, high_at.shape[0])
    same_length(n, lo.shape[0])
    same_length(n, hi.shape[0])
    with nogil:
        for i in range(n):
            a, b = low[low_at[i]], high[high_at[i]]
            b = b if b > a else a
            lo[i], hi[i] = a, b
            total += b - a
    return total


def clip_low(const int32_t[::1] table, const int64_t[::1] at, int32_t[::1] lo, int32_t[::1] hi):
    """Ranges that begin at table[at] at the earliest, in place; how long all are together."""
    cdef Py_ssize_t n = at.shape[0], i
    cdef int64_t total = 0
    cdef int32_t a
    same_length(n, lo.shape[0])
    same_length(n, hi.shape[0])
    with nogil:
        for i in range(n):
            a = table[at[i]]
            a = a if a > lo[i] else lo[i]
            lo[i] = a
            hi[i] = hi[i] if hi[i] > a else a
            total += hi[i] - a
    return total


def clip_high(const int32_t[::1] table, const int64_t[::1] at, int32_t[::1] lo, int32_t[::1] hi):
    """Ranges that end at table[at] at the latest, in place; how long all are together."""
    cdef Py_ssize_t n = at.shape[0], i
    cdef int64_t total = 0
    cdef int32_t b
    same_length(n, lo.shape[0])
    same_length(n, hi.shape[0])
    with nogil:
        for i in range(n):
            b = table[at[i]]
            b = b if b < hi[i] else hi[i]
            hi[i] = b if b > lo[i] else lo[i]
            total += hi[i] - lo[i]
    return total


def offsets(const int32_t[::1] lo, const int32_t[::1] hi, int64_t[::1] out):
    """Where the results with each event begin, if they stand event by event, and the end: one more than there are events.

    >>> import numpy as np
    >>> out = np.empty(4, np.int64)
    >>> offsets(np.array([0, 1], np.int32), np.array([2, 2], np.int32), out)
    >>> out.tolist()
    [0, 1, 3, 3]
    """
    cdef Py_ssize_t n = lo.shape[0], m = out.shape[0] - 1, i
    cdef int64_t now = 0, at = 0, change
    same_length(n, hi.shape[0])
    if m < 0:
        raise ValueError("no room for the end")
    with nogil:
        memset(&out[0], 0, (m + 1) * sizeof(int64_t))
        for i in range(n):
            out[lo[i]] += 1
            out[hi[i]] -= 1
        for i in range(m + 1):
            change = out[i]
            out[i] = at
            now += change
            at += now


def by_event(const int32_t[::1] lo, const int32_t[::1] hi, int64_t[::1] cursors, int32_t[::1] rows):
    """The match of each result, event by event, for each event in the order of the matches.

    `cursors` is what `offsets` gives; in the end, where the next event's results begin.
    """
    cdef Py_ssize_t n = lo.shape[0], i
    cdef int64_t at
    cdef int32_t x
    same_length(n, hi.shape[0])
    with nogil:
        for i in range(n):
            for x in range(lo[i], hi[i]):
                at = cursors[x]
                cursors[x] = at + 1
                rows[at] = i


def by_match(const int32_t[::1] lo, const int32_t[::1] hi, int32_t[::1] rows, int32_t[::1] events):
    """The match and the event of each result, match by match."""
    cdef Py_ssize_t n = lo.shape[0], i, at = 0
    cdef int32_t x
    same_length(n, hi.shape[0])
    same_length(rows.shape[0], events.shape[0])
    with nogil:
        for i in range(n):
            for x in range(lo[i], hi[i]):
                rows[at], events[at] = i, x
                at += 1


def by_group(
    const uint8_t[::1] begins, const int32_t[::1] lo, const int32_t[::1] hi, int32_t[::1] rows, int32_t[::1] events
):
    """The match and the event of each result, group by group, in a group event by event, then in the order of matches.

    A group of matches begins where `begins` is not 0. In it, neither `lo` nor `hi` descends.
    """
    cdef Py_ssize_t n = lo.shape[0], first = 0, last, s, e, i, at = 0
    cdef int32_t x
    same_length(n, hi.shape[0])
    same_length(n, begins.shape[0])
    same_length(rows.shape[0], events.shape[0])
    with nogil:
        while first < n:
            last = first + 1
            while last < n and not begins[last]:
                last += 1
            s = e = first
            x = lo[first]
            while True:
                while s < last and (hi[s] <= x or hi[s] <= lo[s]):
                    s += 1
                if s == last:
                    break
                e = s if e < s else e
                x = lo[s] if lo[s] > x else x
                while e < last and lo[e] <= x:
                    e += 1
                for i in range(s, e):
                    rows[at], events[at] = i, x
                    at += 1
                x += 1
            first = last


def mark_changes(const int64_t[::1] column, uint8_t[::1] begins):
    """Set `begins` where a value is not the one before it, and at the first."""
    cdef Py_ssize_t n = column.shape[0], i
    same_length(n, begins.shape[0])
    if n:
        begins[0] = 1
    with nogil:
        for i in range(1, n):
            begins[i] |= column[i] != column[i - 1]


def ordered(const int64_t[::1] column, int64_t least, int32_t[::1] counts, const int32_t[::1] order, int32_t[::1] out):
    """A stable order by a column of rows that are in some order already; values from `least`, one less than counts on.

    >>> import numpy as np
    >>> out = np.empty(3, np.int32)
    >>> ordered(np.array([7, 5, 7]), 5, np.empty(4, np.int32), np.array([2, 1, 0], np.int32), out)
    >>> out.tolist()
    [1, 2, 0]
    """
    cdef Py_ssize_t n = column.shape[0], i
    cdef int64_t value
    cdef int32_t at
    same_length(n, order.shape[0])
    same_length(n, out.shape[0])
    with nogil:
        memset(&counts[0], 0, counts.shape[0] * sizeof(int32_t))
        for i in range(n):
            counts[column[i] - least + 1] += 1
        for i in range(1, counts.shape[0]):
            counts[i] += counts[i - 1]
        for i in range(n):
            value = column[order[i]] - least
            at = counts[value]
            counts[value] = at + 1
            out[at] = order[i]


def take(const int64_t[::1] column, const int32_t[::1] rows, int64_t[::1] out):
    """The values at some rows."""
    cdef Py_ssize_t n = rows.shape[0], i
    same_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[i] = column[rows[i]]


def take_small(const int32_t[::1] column, const int32_t[::1] rows, int32_t[::1] out):
    """The same of small numbers."""
    cdef Py_ssize_t n = rows.shape[0], i
    same_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[i] = column[rows[i]]


def repeated(const int64_t[::1] values, const int64_t[::1] ends, int64_t[::1] out):
    """Each value up to its end, one after the other."""
    cdef Py_ssize_t n = values.shape[0], i, at = 0
    cdef int64_t value
    same_length(n, ends.shape[0])
    with nogil:
        for i in range(n):
            value = values[i]
            while at < ends[i]:
                out[at] = value
                at += 1


def of_kinds(const int32_t[::1] kinds, int32_t low, int32_t high, int64_t[::1] out):
    """The positions whose code is from `low` up to before `high`, and how many they are."""
    cdef Py_ssize_t n = kinds.shape[0], p, at = 0
    with nogil:
        for p in range(n):
            if low <= kinds[p] < high:
                out[at] = p
                at += 1
    return at


def kept_of_kinds(
    const int32_t[::1] kinds, int32_t low, int32_t high, const int64_t[::1] column, int32_t[::1] out
):
    """The matches whose event in a column is of these codes, and how many they are."""
    cdef Py_ssize_t n = column.shape[0], i, at = 0
    cdef int32_t kind
    same_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            kind = kinds[column[i]]
            out[at] = i
            at += low <= kind < high
    return at


def kept_empty(
    const int32_t[::1] low, const int64_t[::1] low_at, const int32_t[::1] high, const int64_t[::1] high_at,
    int32_t[::1] out,
):
    """The matches whose range, as `spans` has it, is empty, and how many they are."""
    cdef Py_ssize_t n = low_at.shape[0], i, at = 0
    same_length(n, high_at.shape[0])
    same_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[at] = i
            at += low[low_at[i]] >= high[high_at[i]]
    return at


def kept_before(const int32_t[::1] bound, const int64_t[::1] at_, const int64_t[::1] column, int32_t[::1] out):
    """The matches whose position in a column lies before bound[at_], and how many they are."""
    cdef Py_ssize_t n = column.shape[0], i, at = 0
    same_length(n, at_.shape[0])
    same_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[at] = i
            at += column[i] < bound[at_[i]]
    return at


cdef inline int same_length(Py_ssize_t a, Py_ssize_t b) except -1:
    if a != b:
        raise ValueError(f"arrays of different length: {a} and {b}")
    return 0

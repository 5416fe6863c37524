"""Results of a query made into those of another: ranges of partners, counts before bounds, orders, and their listing.

Tables have an entry for each position of the stream. A range of a buffer's events, from `lo` to `hi`, belongs to each
match; as these alone are the results of one more component, nothing is listed before it is asked for.
"""

cimport cython
from libc.stdint cimport INT64_MAX
from libc.string cimport memcpy, memset

from quercus.kernels._typedefs cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

ctypedef fused place_t:         # positions in a column: of matches in the order of the answer, and of those in lexical order
    int64_t
    int32_t

ctypedef fused taken_t:
    int64_t
    int32_t

cdef enum:
    DIGIT = 16                  # bits of one pass of a sort, at most
    PARTS = 64                  # that are merged at once
    RUN = 16                    # matches of one event that are worth looking for their end


include "columns.pxi"


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
    const place_t[::1] low_at,
    const int32_t[::1] high,
    const place_t[::1] high_at,
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


def clip_low(const int32_t[::1] table, const place_t[::1] at, int32_t[::1] lo, int32_t[::1] hi):
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


def clip_high(const int32_t[::1] table, const place_t[::1] at, int32_t[::1] lo, int32_t[::1] hi):
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


cdef inline void spread(
    const int k, Py_ssize_t n, const int32_t* lo, const int32_t* hi, int64_t* cursors,
    const int32_t** columns, int64_t** out
) noexcept nogil:
    """Up to four columns of all matches, each value to the results with each event of its range."""
    cdef Py_ssize_t i
    cdef int64_t at
    cdef int32_t x, a = 0, b = 0, c = 0, d = 0
    for i in range(n):
        a = columns[0][i]
        if k > 1:
            b = columns[1][i]
        if k > 2:
            c = columns[2][i]
        if k > 3:
            d = columns[3][i]
        for x in range(lo[i], hi[i]):
            at = cursors[x]
            cursors[x] = at + 1
            out[0][at] = a
            if k > 1:
                out[1][at] = b
            if k > 2:
                out[2][at] = c
            if k > 3:
                out[3][at] = d


def columns_by_event(const int32_t[::1] lo, const int32_t[::1] hi, int64_t[::1] cursors, list columns, list out):
    """Up to four columns of the results, event by event, for each event in the order of the matches.

    `cursors` has where the results of each event begin; in the end, where they end.
    """
    cdef Py_ssize_t n = lo.shape[0]
    cdef int k = len(columns)
    cdef const int32_t* from_[COLUMNS]
    cdef int64_t* to[COLUMNS]
    same_length(n, hi.shape[0])
    same_length(k, len(out))
    if not 1 <= k <= 4:
        raise ValueError("one to four columns at once")
    pointers(columns, n, from_)
    places(out, len(out[0]), to)
    if n == 0:
        return
    with nogil:
        if k == 1:
            spread(1, n, &lo[0], &hi[0], &cursors[0], from_, to)
        elif k == 2:
            spread(2, n, &lo[0], &hi[0], &cursors[0], from_, to)
        elif k == 3:
            spread(3, n, &lo[0], &hi[0], &cursors[0], from_, to)
        else:
            spread(4, n, &lo[0], &hi[0], &cursors[0], from_, to)


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


def mark_changes(const place_t[::1] column, uint8_t[::1] begins):
    """Set `begins` where a value is not the one before it, and at the first."""
    cdef Py_ssize_t n = column.shape[0], i
    same_length(n, begins.shape[0])
    if n:
        begins[0] = 1
    with nogil:
        for i in range(1, n):
            begins[i] |= column[i] != column[i - 1]


def widths(const int64_t[::1] first, const int64_t[::1] last):
    """The least and the greatest of the first positions, and how far the last ones are from them at most."""
    cdef Py_ssize_t n = first.shape[0], i
    cdef int64_t low, high, far = 0
    same_length(n, last.shape[0])
    if n == 0:
        return 0, 0, 0
    low = high = first[0]
    with nogil:
        for i in range(n):
            low = first[i] if first[i] < low else low
            high = first[i] if first[i] > high else high
            far = last[i] - first[i] if last[i] - first[i] > far else far
    return low, high, far


def pack(list columns, int64_t low, int bits, uint64_t[::1] keys):
    """Each match as one number: how far its first position is from `low`, then, in so many bits each, how far the others
    are from the first.
    """
    cdef Py_ssize_t n = keys.shape[0], i
    cdef int k = len(columns), c
    cdef uint64_t key
    cdef int64_t start
    cdef const int64_t* from_[COLUMNS]
    pointers(columns, n, from_)
    packs(k, bits)
    with nogil:
        for i in range(n):
            start = from_[0][i]
            key = start - low
            for c in range(1, k):
                key = key << bits | <uint64_t> (from_[c][i] - start)
            keys[i] = key


def unpack(const uint64_t[::1] keys, int64_t low, int bits, list out):
    """The columns of matches that are one number each."""
    cdef Py_ssize_t n = keys.shape[0], i
    cdef int k = len(out), c
    cdef uint64_t mask = (1 << bits) - 1
    cdef int64_t start
    cdef int32_t* to[COLUMNS]
    cdef int32_t[::1] place
    packs(k, bits)
    for c in range(k):
        place = out[c]
        same_length(n, place.shape[0])
        to[c] = &place[0] if n else NULL
    with nogil:
        for i in range(n):
            start = low + <int64_t> (keys[i] >> bits * (k - 1))
            to[0][i] = start
            for c in range(1, k):
                to[c][i] = start + <int64_t> (keys[i] >> bits * (k - 1 - c) & mask)


cdef int packs(int k, int bits) except -1:
    if not 2 <= k <= COLUMNS or not 1 <= bits <= DIGIT or bits * (k - 1) >= 64:
        raise ValueError(f"{k} positions of {bits} bits are no number")
    return 0


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


def take(const place_t[::1] column, const int32_t[::1] rows, taken_t[::1] out):
    """The values at some rows, as larger or smaller numbers where `out` has these."""
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


cdef inline bint is_of(int32_t kind, int32_t low, int32_t high) noexcept nogil:
    """Whether a code, which may be -1, lies in a range, without a branch: what passes is not to be foretold."""
    return <int> (low <= kind) & <int> (kind < high)


def kept_of_kinds(
    const int32_t[::1] kinds, int32_t low, int32_t high, const place_t[::1] column, int32_t[::1] out
):
    """The matches whose event in a column is of these codes, and how many they are."""
    cdef Py_ssize_t n = column.shape[0], i, at = 0
    same_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[at] = i
            at += is_of(kinds[column[i]], low, high)
    return at


def kept_runs(
    const int32_t[::1] kinds, int32_t low, int32_t high, const place_t[::1] column, int32_t[::1] out
):
    """What `kept_of_kinds` says of a column that ascends: many matches of one event are looked at together."""
    cdef Py_ssize_t n = column.shape[0], i = 0, j, at = 0
    same_length(n, out.shape[0])
    with nogil:
        while i < n:
            j = i + RUN
            if j >= n or column[j] != column[i]:
                for i in range(i, j if j < n else n):
                    out[at] = i
                    at += is_of(kinds[column[i]], low, high)
            else:
                j = run_end(&column[0], j, n, column[j])
                if is_of(kinds[column[i]], low, high):
                    for i in range(i, j):
                        out[at] = i
                        at += 1
            i = j
    return at


cdef inline Py_ssize_t run_end(const place_t* column, Py_ssize_t i, Py_ssize_t n, place_t value) noexcept nogil:
    """The first of an ascending column, from i on, that is greater than a value."""
    cdef Py_ssize_t step = 1, low = i, high, middle
    while i + step < n and column[i + step] <= value:
        low = i + step
        step <<= 1
    high = i + step if i + step < n else n
    if low >= n or column[low] > value:
        return low
    low += 1
    while low < high:
        middle = (low + high) >> 1
        if column[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


cdef struct Weave:              # lots of matches that are put into one order
    int parts
    int width
    const int64_t* columns[PARTS][COLUMNS]
    int64_t* out[COLUMNS]
    int order[COLUMNS]          # the columns that they are ordered by


cdef Py_ssize_t copied(Weave* w, int part, Py_ssize_t first, Py_ssize_t last, Py_ssize_t at) noexcept nogil:
    cdef int c
    for c in range(w.width):
        memcpy(w.out[c] + at, w.columns[part][c] + first, (last - first) * sizeof(int64_t))
    return at + last - first


cdef Py_ssize_t weave(Weave* w, int level, Py_ssize_t* first, const Py_ssize_t* last, Py_ssize_t at) noexcept nogil:
    """Put the matches of each part from `first` to `last`, which agree in the columns before, in order."""
    cdef int part, least, holders, c = w.order[level]
    cdef int64_t value, lowest, next_
    cdef Py_ssize_t ends[PARTS]
    cdef Py_ssize_t begins[PARTS]
    while True:
        least, holders, lowest, next_ = -1, 0, INT64_MAX, INT64_MAX
        for part in range(w.parts):
            if first[part] == last[part]:
                continue
            value = w.columns[part][c][first[part]]
            if value < lowest:
                least, holders, next_, lowest = part, 1, lowest, value
            elif value == lowest:
                holders += 1
            elif value < next_:
                next_ = value
        if holders == 0:
            return at
        if holders == 1 or level == w.width - 1:
            ends[0] = run_end(w.columns[least][c], first[least], last[least], next_ - 1 if holders == 1 else lowest)
            at = copied(w, least, first[least], ends[0], at)
            first[least] = ends[0]
            continue
        for part in range(w.parts):
            begins[part] = ends[part] = first[part]
            if first[part] < last[part] and w.columns[part][c][first[part]] == lowest:
                ends[part] = run_end(w.columns[part][c], first[part], last[part], lowest)
                first[part] = ends[part]
        at = weave(w, level + 1, begins, ends, at)


def merge(list parts, list out):
    """Lots of matches, each a list of columns in the order of the answer, as one in this order.

    >>> import numpy as np
    >>> a, b = np.empty(3, np.int64), np.empty(3, np.int64)
    >>> merge([[np.array([1, 2]), np.array([4, 4])], [np.array([1]), np.array([3])]], [a, b])
    >>> a.tolist(), b.tolist()
    ([1, 1, 2], [3, 4, 4])
    """
    cdef Weave w
    cdef Py_ssize_t first[PARTS]
    cdef Py_ssize_t last[PARTS]
    cdef int part, c
    if not 1 <= len(parts) <= PARTS or not out:
        raise ValueError(f"no lots of matches, or more than {PARTS}")
    w.parts, w.width = len(parts), len(out)
    for part in range(w.parts):
        same_length(w.width, len(parts[part]))
        first[part], last[part] = 0, len(parts[part][0])
        pointers(parts[part], last[part], w.columns[part])
    places(out, sum([len(own[0]) for own in parts]), w.out)
    w.order[0] = w.width - 1
    for c in range(1, w.width):
        w.order[c] = c - 1
    with nogil:
        weave(&w, 0, first, last, 0)


def kept_empty(
    const int32_t[::1] low, const place_t[::1] low_at, const int32_t[::1] high, const place_t[::1] high_at,
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


def kept_before(const int32_t[::1] bound, const place_t[::1] at_, const place_t[::1] column, int32_t[::1] out):
    """The matches whose position in a column lies before bound[at_], and how many they are."""
    cdef Py_ssize_t n = column.shape[0], i, at = 0
    same_length(n, at_.shape[0])
    same_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[at] = i
            at += column[i] < bound[at_[i]]
    return at

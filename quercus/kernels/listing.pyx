"""Results with one more event at the end, listed: first in lexical order, then event by event.

A result is a match of so many small positions. In the order of the answer matches stand by their last event, then by the
others from the first on; in lexical order from the first event on.
"""

cimport cython
from libc.string cimport memset

from quercus.kernels._typedefs cimport int32_t, int64_t, uint32_t, uint64_t

cdef extern from "listing.h":
    ctypedef struct Sink:       # rows on their way to the columns that are written
        pass
    void sink_open(Sink* s, int64_t** out, int columns, Py_ssize_t room, int past) noexcept nogil
    Py_ssize_t sink_close(Sink* s) noexcept nogil
    void listing_begin() noexcept nogil
    int pack_plain(
        const int32_t** columns, Py_ssize_t first, Py_ssize_t stop, int32_t limit, int32_t event, Sink* s) noexcept nogil
    int pack_256(
        const int32_t** columns, Py_ssize_t first, Py_ssize_t stop, int32_t limit, int32_t event, Sink* s) noexcept nogil
    int pack_512(
        const int32_t** columns, Py_ssize_t first, Py_ssize_t stop, int32_t limit, int32_t event, Sink* s) noexcept nogil
    int packed_at_once(int most) noexcept nogil

ctypedef fused offsets_t:       # how far all events of a match but the first are from it, in one number
    uint32_t
    uint64_t

cdef enum:
    DIGIT = 11                  # bits of one pass of a sort, at most
    FEW = 24                    # matches that are sorted by comparing

PAST = 1 << 24                  # bytes of results that are written past the caches
listing_begin()


include "columns.pxi"


cdef struct Scan:               # the matches that one event may stand behind, event after event
    Py_ssize_t first            # of these matches
    Py_ssize_t stop
    Py_ssize_t start            # the first position that an event's window reaches
    Py_ssize_t limit            # ... after which the event does not come


cdef inline void forward(
    Scan* s, int32_t x, const int32_t[::1] low, const int32_t[::1] high, const int32_t[::1] column
) noexcept nogil:
    """To the event with number x: its matches begin not before `start`, and end before `limit`."""
    cdef Py_ssize_t n = column.shape[0]
    while s.start < high.shape[0] and high[s.start] <= x:
        s.start += 1
    while s.first < n and column[s.first] < s.start:
        s.first += 1
    while s.limit < low.shape[0] and low[s.limit] <= x:
        s.limit += 1
    while s.stop < n and column[s.stop] < s.limit:
        s.stop += 1


def candidates(const int32_t[::1] low, const int32_t[::1] high, const int32_t[::1] first, Py_ssize_t events):
    """How many matches `by_event` looks at, for so many events.

    >>> import numpy as np
    >>> table = np.array([0, 0, 1, 1], np.int32)
    >>> candidates(table, table + 1, np.array([0, 2], np.int32), 2)
    2
    """
    cdef Scan s = Scan(0, 0, 0, 0)
    cdef int64_t found = 0
    cdef int32_t x
    same_length(low.shape[0], high.shape[0])
    with nogil:
        for x in range(events):
            forward(&s, x, low, high, first)
            found += s.stop - s.first if s.stop > s.first else 0
    return found


def by_event(
    const int32_t[::1] low, const int32_t[::1] high, const int64_t[::1] at, list columns, list out, int most=16,
    Py_ssize_t past=PAST
):
    """Matches in lexical order with the events `at` that may come at their end: event by event, for each in that order.

    An event with number x comes after a match whose last position has low[last] <= x, in a window with its first if
    x < high[first]. Both tables ascend. `out` has a column more than the matches, and as many rows as there are results:
    it is written past the caches, if it takes `past` bytes and its columns begin lines of a cache.
    """
    cdef Py_ssize_t n, rows = len(out[0])
    cdef int k = len(columns), wide = packed_at_once(most), r = 0
    cdef const int32_t* from_[COLUMNS]
    cdef int64_t* to[COLUMNS]
    cdef Sink sink
    cdef int32_t event
    cdef Scan s = Scan(0, 0, 0, 0)
    cdef const int32_t[::1] first = columns[0]
    cdef int32_t x
    n = first.shape[0]
    same_length(low.shape[0], high.shape[0])
    same_length(k + 1, len(out))
    pointers(columns, n, from_)
    places(out, rows, to)
    with nogil:
        sink_open(&sink, to, k + 1, rows, rows * (k + 1) * <Py_ssize_t> sizeof(int64_t) >= past)
        for x in range(at.shape[0]):
            forward(&s, x, low, high, first)
            if s.first >= s.stop:
                continue
            event = <int32_t> at[x]
            if event != at[x]:
                r = -2
            elif wide == 16:
                r = pack_512(from_, s.first, s.stop, s.limit, event, &sink)
            elif wide == 8:
                r = pack_256(from_, s.first, s.stop, s.limit, event, &sink)
            else:
                r = pack_plain(from_, s.first, s.stop, s.limit, event, &sink)
            if r:
                break
        n = sink_close(&sink)
    if r == -2:
        raise ValueError("a position beyond 32 bits")
    if r or n != rows:
        raise ValueError(f"room for {rows} results, not for those that there are")


def lexical(list columns, int64_t low, int bits, offsets_t[::1] keys, offsets_t[::1] spare, uint32_t[::1] begins, list out):
    """Matches in the order of the answer, in lexical order.

    `low` is the least first position, `begins` has room for one more than there are up to the greatest; `bits` are those
    of the distance between the first and the last position of a match, at most.

    >>> import numpy as np
    >>> columns, out = [np.array([1, 0, 1]), np.array([2, 3, 3])], [np.empty(3, np.int32), np.empty(3, np.int32)]
    >>> keys, spare = np.empty(3, np.uint32), np.empty(3, np.uint32)
    >>> lexical(columns, 0, 2, keys, spare, np.empty(3, np.uint32), out)
    >>> out[0].tolist(), out[1].tolist()
    ([0, 1, 1], [3, 2, 3])
    """
    cdef Py_ssize_t n = keys.shape[0], buckets = begins.shape[0] - 1, i, j, b, first, size, moved
    cdef int k = len(columns), c, room = sizeof(keys[0]) * 8
    cdef const int64_t* from_[COLUMNS]
    cdef int32_t* to[COLUMNS]
    cdef int32_t[::1] place
    cdef const int64_t[::1] column
    cdef uint32_t counts[1 << DIGIT]
    cdef int64_t start
    cdef offsets_t key, mask
    cdef offsets_t* sorted_
    same_length(n, spare.shape[0])
    same_length(k, len(out))
    if not 2 <= k <= COLUMNS or bits < 1 or bits * (k - 1) > room:
        raise ValueError(f"{k} positions of {bits} bits are no number")
    for c in range(k):
        column, place = columns[c], out[c]
        same_length(n, column.shape[0])
        same_length(n, place.shape[0])
        from_[c] = &column[0] if n else NULL
        to[c] = &place[0] if n else NULL
    if n == 0:
        return
    mask = <offsets_t> -1 if bits == room else (<offsets_t> 1 << bits) - 1
    with nogil:
        memset(&begins[0], 0, (buckets + 1) * sizeof(uint32_t))
        i = 0
        while i < n:                            # matches with one last and one first event stand side by side
            j = run_of(from_[0], i, n)
            begins[from_[0][i] - low + 1] += j - i
            i = j
        for b in range(buckets):
            begins[b + 1] += begins[b]
        i = 0
        while i < n:
            start = from_[0][i]
            j = run_of(from_[0], i, n)
            moved = begins[start - low] - i
            begins[start - low] += j - i
            for i in range(i, j):
                key = 0
                for c in range(1, k):
                    key = key << bits | <offsets_t> (from_[c][i] - start)
                keys[i + moved] = key
            i = j
        first = 0
        for b in range(buckets):                # begins[b] is where it ends by now
            size = begins[b] - first
            if size:
                sorted_ = ordered_bucket(&keys[first], &spare[first], size, bits, k, counts)
                start = low + b
                for i in range(size):
                    to[0][first + i] = start
                for c in range(1, k):
                    for i in range(size):
                        to[c][first + i] = start + <int32_t> (sorted_[i] >> bits * (k - 1 - c) & mask)
                first = begins[b]


cdef inline Py_ssize_t run_of(const int64_t* column, Py_ssize_t i, Py_ssize_t n) noexcept nogil:
    """Where the run of equal values ends that begins at i."""
    cdef int64_t value = column[i]
    i += 1
    while i < n and column[i] == value:
        i += 1
    return i


@cython.cdivision(True)
cdef inline offsets_t* ordered_bucket(
    offsets_t* here, offsets_t* there, Py_ssize_t n, int bits, int k, uint32_t* counts
) noexcept nogil:
    """Numbers that stand by their last position, in order: in one of the two arrays."""
    cdef Py_ssize_t i, j
    cdef int shift = bits, most = bits * (k - 1), passes, digit
    cdef offsets_t key
    if n <= FEW:
        for i in range(1, n):
            key, j = here[i], i
            while j > 0 and here[j - 1] > key:
                here[j] = here[j - 1]
                j -= 1
            here[j] = key
        return here
    passes = (most - bits + DIGIT - 1) // DIGIT
    digit = (most - bits + passes - 1) // passes if passes else 0
    while shift < most:
        digit = digit if digit < most - shift else most - shift
        by_digit(here, there, n, shift, digit, counts)
        here, there = there, here
        shift += digit
    return here


cdef inline void by_digit(
    const offsets_t* here, offsets_t* there, Py_ssize_t n, int shift, int bits, uint32_t* counts
) noexcept nogil:
    cdef Py_ssize_t i
    cdef uint32_t now = 0, count, mask = (1 << bits) - 1
    memset(counts, 0, (1 << bits) * sizeof(uint32_t))
    for i in range(n):
        counts[<uint32_t> (here[i] >> shift) & mask] += 1
    for i in range(1 << bits):
        count = counts[i]
        counts[i] = now
        now += count
    for i in range(n):
        count = <uint32_t> (here[i] >> shift) & mask
        there[counts[count]] = here[i]
        counts[count] += 1

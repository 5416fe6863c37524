"""Totals over all matches in a sliding window, without listing them: counts, sums, least values.

A pattern is an automaton whose states are what a partial match has bound so far; an event moves what waits in one state
to the next. What a window has done is a product of small matrices, kept on two stacks: events come on one and leave the
other, so that nothing is ever taken back and each event costs about as many steps as there are states, whatever the
number of matches. Counts and integer sums are exact: in 64 bits, and again in 128 where that is not enough.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memmove, memset

import numpy as np

from quercus.kernels._typedefs cimport int64_t
from quercus.kernels.memory import empty
from quercus.kernels.route cimport Router

cdef extern from "running.h":
    cdef enum:
        RUN_OK
        RUN_TOO_LARGE
        RUN_STOPPED
    ctypedef struct run_automaton:
        int states, gaps, symbols
        const int32_t* top
        const int32_t* base
        const int32_t* gap_of
        const int32_t* first
        const int32_t* size
        const int32_t* moves
        const int32_t* edge_at
        const int32_t* edges
        const int32_t* stay_at
        const int32_t* stays
        const uint8_t* kind
        const uint8_t* accepts
    ctypedef int (*look_t)(void*) noexcept nogil
    ctypedef struct run_events:
        int64_t count
        const uint8_t* symbol
        const uint8_t* mark
        const int64_t* at
        const int64_t* reach
        const int64_t* row
        const int32_t* group
        const int64_t* integer
        const double* real
        uint64_t window
        int role
        int64_t skipped
        const int32_t* slot
        const int64_t* tag
        look_t look
        void* context
        uint64_t* steps
    ctypedef struct run_kept:
        void* block
        void* row
        int64_t low, middle, room, group
        int64_t from_ "from"
        int open_ "open"
        int valid
    ctypedef struct run_segment:
        uint8_t* symbol
        uint8_t* mark
        int64_t* at
        int64_t* tag
        int64_t** value
        run_kept* kept
        int64_t lo, hi, before, room, first, ts, ts_before
        int touched
    ctypedef struct run_push:
        run_segment** touched
        int64_t count
        int number, role, ties
        uint64_t window
        const int64_t* row
        const int32_t* group
        const int32_t* slot
        int delayed
        int64_t until
        look_t look
        void* context
    int push_u64(...) noexcept nogil
    int push_u128(...) noexcept nogil
    int push_i64(...) noexcept nogil
    int push_i128(...) noexcept nogil
    int push_f64(...) noexcept nogil
    int push_min(...) noexcept nogil
    ctypedef struct run_buffer:
        const int64_t* row
        const int64_t* at
        const int64_t* ts
        const int64_t* starts
    ctypedef int (*pass_t)(const run_automaton*, const run_events*, void*, int64_t*, int64_t*) noexcept nogil
    int run_u64(...) noexcept nogil
    int run_u128(...) noexcept nogil
    int run_i64(...) noexcept nogil
    int run_i128(...) noexcept nogil
    int run_f64(...) noexcept nogil
    int run_min(...) noexcept nogil
    int64_t run_merge_dense(const run_buffer*, int, const int64_t*, int, int64_t, int64_t, uint8_t*, int64_t*, uint8_t*,
                            int64_t*, int64_t*) noexcept nogil
    void run_reach(const uint8_t*, const int64_t*, int64_t, uint64_t, int64_t*) noexcept nogil
    ctypedef struct wide_count:
        pass
    int run_row_of(const run_events*, const int32_t*, int, wide_count*) noexcept nogil
    cdef enum:
        RUN_LEAVES
    int64_t run_merge(const run_buffer*, int, int64_t, int, int64_t*, uint8_t*, int64_t*, int64_t*) noexcept nogil

MOST_STATES = 62
MOST_SYMBOLS = 255
MOST_BUFFERS = 62
NONE = 2**63 - 1            # of least: no match
NO_VALUE = 2**63 - 2        # of least: matches, but none with a value


cdef extern from "Python.h":
    int PyErr_CheckSignals() noexcept
    void PyErr_Clear() noexcept

cdef extern from "time.h" nogil:
    struct timespec:
        int64_t tv_sec
        int64_t tv_nsec
    int clock_gettime(int, timespec*)
    int CLOCK_MONOTONIC


cdef class Watch:
    """When passes must stop: at a time of `time.monotonic`, or on Ctrl-C. They look every 32,768 events."""

    cdef int64_t end
    cdef bint interrupted

    def __init__(self, end=None):
        self.end = NONE if end is None else int(end * 1e9)

    cdef int refuse(self) except -1:
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt
        raise TimeoutError("not done in time")


cdef int looked(void* context) noexcept with gil:
    """Whether to stop."""
    cdef Watch w = <Watch> context
    cdef timespec now
    if PyErr_CheckSignals():
        PyErr_Clear()
        w.interrupted = True
        return 1
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec * 1000000000 + now.tv_nsec >= w.end


def merge(buffers, const int64_t[:, ::1] starts, bint ties):
    """Events of several buffers in order, each once: (buffers that hold it as bits, marks, where, row).

    A buffer is (row, at, ts), sorted by row in each segment; `starts` has a row for each, of the segments' first events
    and the end. A mark is 1 at the first event of a tie group (with `ties`, of equal ts; else of each), 3 at the first
    of a segment.
    """
    cdef int count = len(buffers), k
    cdef int64_t segments = starts.shape[1] - 1, total = 0, made = 0
    cdef run_buffer given[64]
    cdef const int64_t[::1] row, at, ts
    cdef int64_t counts[8]
    cdef int64_t least = NONE, most = -1
    memset(counts, 0, sizeof(counts))
    if count > MOST_BUFFERS or starts.shape[0] != count or segments < 0:
        raise ValueError("too many buffers, or not as many starts")
    for k in range(count):
        row, at, ts = buffers[k]
        if row.shape[0] != at.shape[0] or row.shape[0] != ts.shape[0]:
            raise ValueError("columns of different lengths")
        if starts[k, segments] != row.shape[0] or starts[k, 0] != 0:
            raise ValueError("segments that are not those of the buffer")
        total += row.shape[0]
        given[k].row = &row[0] if row.shape[0] else NULL
        given[k].at = &at[0] if row.shape[0] else NULL
        given[k].ts = &ts[0] if row.shape[0] else NULL
        given[k].starts = &starts[k, 0]
        if row.shape[0]:
            least, most = min(least, row[0]), max(most, row[row.shape[0] - 1])
            counts[k if k < 8 else 0] = row.shape[0]
    mask, where, rows = empty(total + 1), empty(total + 1), empty(total + 1)
    mark = empty(total // 8 + 1).view(np.uint8)
    cdef int64_t[::1] to_mask = mask, to_where = where, to_rows = rows
    cdef uint8_t[::1] to_mark = mark, to_held
    if segments == 1 and count <= 8 and 0 <= most - least < 32 * total:
        held = empty((most - least) // 8 + 2).view(np.uint8)
        held[:] = 0
        to_held = held
        with nogil:
            made = run_merge_dense(given, count, counts, ties, least, most - least + 1, &to_held[0], &to_mask[0],
                                   &to_mark[0], &to_where[0], &to_rows[0])
    else:
        with nogil:
            made = run_merge(given, count, segments, ties, &to_mask[0], &to_mark[0], &to_where[0], &to_rows[0])
    return mask[:made], mark[:made], where[:made], rows[:made]


def reach(const uint8_t[::1] mark, const int64_t[::1] at, uint64_t window):
    """Of each event, the first of its segment that is in a window with it."""
    cdef int64_t n = mark.shape[0]
    low = np.empty(n, np.int64)
    cdef int64_t[::1] out = low
    if at.shape[0] != n or (n and mark[0] != 3):
        raise ValueError("columns of different lengths")
    if n:
        with nogil:
            run_reach(&mark[0], &at[0], n, window, &out[0])
    return low


cdef class Automaton:
    """States, gaps and symbols as arrays: see running.h for what each holds."""

    cdef run_automaton made
    cdef object kept
    cdef object component   # of each symbol of a row of plain leaves; None: it is more than that
    cdef list starts        # of each symbol: whether it can begin a match
    cdef uint64_t taken
    cdef public Watch watch

    def __init__(self, int states, gaps, symbols, accepts=()):
        """`gaps`: (first state, size, moves as 8 lists of places). `symbols`: (edges, stays), each a list of tuples.

        An edge is (from, to, role, inner), to -1 where a match ends; a stay is (gap, flag, role). `accepts`: states of
        whole matches that wait for the end of their window, if any do.
        """
        if not 0 < states <= MOST_STATES or len(symbols) > MOST_SYMBOLS or not 0 < len(gaps) <= states:
            raise ValueError("too many states or symbols")
        gap_of = np.full(states, -1, np.int32)
        top, base = np.arange(states, dtype=np.int32), np.arange(states, dtype=np.int32)
        moves = np.full((len(gaps), 8, 4), -1, np.int32)
        for g, (first, size, table) in enumerate(gaps):
            if not (0 <= first and 0 < size <= 4 and first + size <= states):
                raise ValueError("a gap beyond the states")
            gap_of[first : first + size] = g
            top[first : first + size], base[first : first + size] = first + size - 1, first
            for mask, places in enumerate(table):
                if len(places) != size or not all(-1 <= place < size for place in places):
                    raise ValueError("moves beyond the gap")
                moves[g, mask, :size] = places
        edges, stays, edge_at, stay_at, kinds = [], [], [0], [0], []
        for own, waits in symbols:
            for source, target, _, _ in own:
                if not (0 <= source < states and -1 <= target < states and (target < 0 or source < target)):
                    raise ValueError("an edge beyond the states, or backwards")
            for gap, flag, _ in waits:
                if not (0 <= gap < len(gaps) and flag in (1, 2, 4)):
                    raise ValueError("a stay in no gap")
            edges += sorted(own, key=lambda e: (e[1] >= 0, -e[0], e))
            stays += waits
            edge_at.append(len(edges))
            stay_at.append(len(stays))
            kinds.append(0 if own and waits else 1 if own else 2)
        arrays = {
            "top": top,
            "base": base,
            "gap_of": gap_of,
            "first": np.array([g[0] for g in gaps], np.int32),
            "size": np.array([g[1] for g in gaps], np.int32),
            "moves": moves.ravel(),
            "edge_at": np.array(edge_at, np.int32),
            "edges": np.array([*edges, (0, 0, 0, 0)], np.int32).ravel(),
            "stay_at": np.array(stay_at, np.int32),
            "stays": np.array([*stays, (0, 0, 0)], np.int32).ravel(),
            "kind": np.array([*kinds, 0], np.uint8),
            "accepts": np.array([s in accepts for s in range(states)], np.uint8),
        }
        self.starts = [any(source == 0 for source, _, _, _ in own) for own, _ in symbols]
        self.kept = arrays
        simple = states == len(gaps) <= RUN_LEAVES and all(
            not waits and len(own) == 1 and own[0][1] == (own[0][0] + 1 if own[0][0] + 1 < states else -1)
            for own, waits in symbols
        )
        self.component = np.array([own[0][0] for own, _ in symbols] + [0], np.int32) if simple else None
        self.made.states, self.made.gaps, self.made.symbols = states, len(gaps), len(symbols)
        self.made.top = _address(arrays["top"])
        self.made.base = _address(arrays["base"])
        self.made.gap_of = _address(arrays["gap_of"])
        self.made.first = _address(arrays["first"])
        self.made.size = _address(arrays["size"])
        self.made.moves = _address(arrays["moves"])
        self.made.edge_at = _address(arrays["edge_at"])
        self.made.edges = _address(arrays["edges"])
        self.made.stay_at = _address(arrays["stay_at"])
        self.made.stays = _address(arrays["stays"])
        cdef const uint8_t[::1] kind = arrays["kind"]
        cdef const uint8_t[::1] accepting = arrays["accepts"]
        self.made.kind, self.made.accepts = &kind[0], &accepting[0]

    @property
    def steps(self):
        """Events looked at in all passes, also those that became the older part of a window."""
        return self.taken

    def count(self, events, groups=1):
        """The number of matches of each group, and the first event that ended one (-1: none). OverflowError beyond
        128 bits.
        """
        if self.component is not None and events.group is None and groups == 1 and np.all(events.mark):
            kinds = (6, 0, 1)
        else:
            kinds = (0, 1)
        return self._integers(kinds, events, groups, -1, None, signed=False)

    def sums(self, events, groups, int role, const int64_t[::1] values):
        """Of all matches of each group, the sum of the values of what has the role."""
        return self._integers((2, 3), events, groups, role, values, signed=True)[0]

    def real_sums(self, events, int groups, int role, const double[::1] values):
        """The same of floats."""
        totals = np.zeros(max(groups, 1), np.float64)
        cdef double[::1] out = totals
        self._run(4, events, groups, role, None, values, &out[0], None)
        return totals[:groups]

    def least(self, events, int groups, int role, const int64_t[::1] values, each=None):
        """The least value of each group, below NO_VALUE; of each event that ends matches, into `each`."""
        totals = np.full(max(groups, 1), NONE, np.int64)
        cdef int64_t[::1] out = totals
        self._run(5, events, groups, role, values, None, &out[0], each)
        return totals[:groups]

    def _integers(self, kinds, events, int groups, int role, values, *, bint signed):
        cdef char* totals = <char*> calloc(max(groups, 1), 16)
        cdef uint8_t[::1] out
        if totals == NULL:
            raise MemoryError
        try:
            for kind in kinds:
                found = self._run(kind, events, groups, role, values, None, totals, None)
                if found is not None:
                    break
                free(totals)
                totals = <char*> calloc(max(groups, 1), 16)
                if totals == NULL:
                    raise MemoryError
            else:
                raise OverflowError("a number of matches, or a sum over them, beyond 128 bits")
            data = np.empty(16 * max(groups, 1), np.uint8)
            out = data
            memcpy(&out[0], totals, 16 * max(groups, 1))
        finally:
            free(totals)
        low, high = data.view(np.uint64)[0::2].tolist(), data.view(np.int64 if signed else np.uint64)[1::2].tolist()
        return [lo + (hi << 64) for lo, hi in zip(low[:groups], high[:groups])], found[:groups]

    cdef object _run(self, int kind, events, int groups, int role, integer, real, void* totals, each):
        """The first event that ended a match of each group; None: too large."""
        cdef const uint8_t[::1] symbol = events.symbol
        cdef const uint8_t[::1] mark = events.mark
        cdef const int64_t[::1] at = events.at
        cdef const int64_t[::1] row = events.row
        cdef const int64_t[::1] reach
        cdef const int32_t[::1] group
        cdef const int64_t[::1] integers
        cdef const double[::1] reals
        cdef int64_t[::1] out
        cdef run_events given
        cdef int64_t n = symbol.shape[0]
        cdef int64_t* into = NULL
        cdef const int32_t[::1] component
        cdef int status = RUN_OK
        first = np.full(max(groups, 1), -1, np.int64)
        cdef int64_t[::1] to_first = first
        if n == 0:
            return first
        if mark.shape[0] != n or at.shape[0] != n or row.shape[0] != n or mark[0] != 3:
            raise ValueError("columns of different lengths")
        if self.made.symbols == 0 or np.max(events.symbol) >= self.made.symbols:
            raise ValueError("a symbol that is not known")
        given.count, given.window, given.role, given.skipped = n, events.window, role, 0
        given.symbol, given.mark, given.at, given.row = &symbol[0], &mark[0], &at[0], &row[0]
        given.group, given.integer, given.real, given.reach = NULL, NULL, NULL, NULL
        given.slot, given.tag, given.look, given.context, given.steps = NULL, NULL, NULL, NULL, &self.taken
        if self.watch is not None:
            given.look, given.context = looked, <void*> self.watch
        if events.reach is not None:
            reach = events.reach
            if reach.shape[0] != n or np.any(np.asarray(reach) > np.arange(n)):
                raise ValueError("not a window for each event")
            given.reach = &reach[0]
        if events.group is not None:
            group = events.group
            if group.shape[0] != n or np.min(events.group) < 0 or np.max(events.group) >= groups:
                raise ValueError("a group that is not there")
            given.group = &group[0]
        if integer is not None:
            integers = integer
            if integers.shape[0] != n:
                raise ValueError("not a value for each event")
            given.integer = &integers[0]
        if real is not None:
            reals = real
            if reals.shape[0] != n:
                raise ValueError("not a value for each event")
            given.real = &reals[0]
        if each is not None:
            out = each
            if out.shape[0] != n:
                raise ValueError("not a place for each event")
            into = &out[0]
        if kind == 6:
            component = self.component
        with nogil:
            if kind == 6:
                status = run_row_of(&given, &component[0], self.made.states, <wide_count*> totals)
            elif kind == 0:
                status = run_u64(&self.made, &given, totals, &to_first[0], into)
            elif kind == 1:
                status = run_u128(&self.made, &given, totals, &to_first[0], into)
            elif kind == 2:
                status = run_i64(&self.made, &given, totals, &to_first[0], into)
            elif kind == 3:
                status = run_i128(&self.made, &given, totals, &to_first[0], into)
            elif kind == 4:
                status = run_f64(&self.made, &given, totals, &to_first[0], into)
            else:
                status = run_min(&self.made, &given, totals, &to_first[0], into)
        if status == RUN_TOO_LARGE:
            return None
        if status == RUN_STOPPED:
            self.watch.refuse()
        if status != RUN_OK:
            raise MemoryError
        return first


cdef const int32_t* _address(const int32_t[::1] array):
    return &array[0]


include "running_stream.pxi"
include "running_inlet.pxi"

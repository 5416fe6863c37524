# A batch straight from Arrow: routed and appended in one call, for queries whose events need no look before they are kept.

cdef extern from *:
    """
    #ifndef ARROW_C_DATA_INTERFACE
    #define ARROW_C_DATA_INTERFACE
    #include <stdint.h>
    struct ArrowArray {
      int64_t length; int64_t null_count; int64_t offset; int64_t n_buffers; int64_t n_children;
      const void** buffers; struct ArrowArray** children; struct ArrowArray* dictionary;
      void (*release)(struct ArrowArray*); void* private_data;
    };
    struct ArrowDeviceArray {
      struct ArrowArray array; int64_t device_id; int32_t device_type; void* sync_event; int64_t reserved[3];
    };
    #endif
    """
    struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_children
        const void** buffers
        ArrowArray** children
        ArrowArray* dictionary
        void (*release)(ArrowArray*) noexcept

    struct ArrowDeviceArray:
        ArrowArray array
        int32_t device_type


DEF BRIEF = 4096    # events that are routed sooner than another thread could be let in

cdef enum:
    ON_CPU = 1


cdef extern from "sorted.h":
    int ascends(const int64_t* values, Py_ssize_t n) noexcept nogil


cdef inline bint has_nulls(ArrowArray* a) noexcept nogil:
    return a.buffers[0] != NULL and a.null_count != 0


cdef class Piece
cdef class Like
cdef class Inlet
cdef class Raw


cdef class Feed:
    """Takes record batches of one schema into a stream's buffers, each of which holds the events of one type."""

    cdef StreamMatcher matcher
    cdef Router router
    cdef int ts_column
    cdef int type_column
    cdef bint wide

    def __init__(self, StreamMatcher matcher, list names, int ts_column, int type_column, bint wide):
        """`names`: the type of each buffer. `wide`: the strings' offsets have 8 bytes."""
        if matcher.keyed or matcher.m.n_cols or len(names) != matcher.m.n_bufs:
            raise ValueError("a query whose events need a closer look")
        self.matcher, self.router = matcher, Router(names)
        self.ts_column, self.type_column, self.wide = ts_column, type_column, wide

    def step(self, capsule, int64_t place, int64_t clock, int64_t reach, int64_t max_matches, int64_t max_nanoseconds):
        """Append a batch, the `arrow_array` of the C data interface, run the searches of the one alternative over it, and purge.

        Returns what was found, or None, with nothing taken, where the times are not in order or begin before the clock, or where
        there are nulls. If the status of what was found is not OK, the batch must be taken back by the matcher's undo().
        """
        return self._step(<ArrowArray*> PyCapsule_GetPointer(capsule, "arrow_array"), place, clock, reach, max_matches, max_nanoseconds)

    cdef Raw _step(self, ArrowArray* batch, int64_t place, int64_t clock, int64_t reach, int64_t max_matches, int64_t max_nanoseconds):
        cdef StreamMatcher matcher = self.matcher
        cdef Flat* f = &matcher.m.flats[matcher.searches[0].flat]
        cdef Segment* s = matcher.segs
        cdef int64_t last = 0
        cdef Raw raw
        try:
            if not self._take(batch, place, clock, &last):
                return None
            raw = self._search(f, last, place + batch.length, place, clock, max_matches, max_nanoseconds)
        except BaseException:
            matcher.undo()
            raise
        if raw.status == 0:
            matcher._purge(s, sat_sub(last, reach), matcher.m.now.pos - reach)
            s.touched = False
            matcher.touched.n = 0
        return raw

    cdef Raw _search(self, Flat* f, int64_t last, int64_t next_, int64_t place, int64_t clock, int64_t max_matches, int64_t max_nanoseconds):
        """What the searches find between two moments, one after the other: they bind the same variables."""
        cdef int i
        cdef StreamMatcher matcher = self.matcher
        cdef Raw raw = Raw.__new__(Raw)
        matcher.m.before, matcher.m.now = Moment(clock, place, place), Moment(last, next_, next_)
        matcher.chosen.n = 0
        if push(&matcher.chosen, 0):
            raise MemoryError()
        for i in range(matcher.n_searches):
            matcher._make_room(&matcher.searches[i])
        matcher._begin(f, max_matches, max_nanoseconds)
        with nogil:
            for i in range(matcher.n_searches):
                raw.status = matcher._run_segment(&matcher.searches[i], &matcher.m.flats[matcher.searches[i].flat], matcher.segs)
                if raw.status < 0:
                    break
        raw.clock, raw.count, raw.n_columns, raw.n_sets = last, matcher.m.n_matches, f.outs.n, f.out_sets.n
        raw.outs = matcher.m.outs
        matcher.m.outs = NULL
        free_joins(&matcher.m, f)
        let_out()
        return raw

    cdef bint _take(self, ArrowArray* batch, int64_t place, int64_t clock, int64_t* last) except -1:
        cdef ArrowArray* times = batch.children[self.ts_column]
        cdef ArrowArray* types = batch.children[self.type_column]
        cdef int64_t n = batch.length, at_ = types.offset + batch.offset, size, found = 0, i
        cdef const int64_t* ts = <const int64_t*> times.buffers[1] + times.offset + batch.offset
        cdef const void* offsets
        cdef const uint32_t* rows
        cdef bint back = False
        cdef int b, failed = 0
        cdef Segment* s = self.matcher.segs
        cdef Run* r
        if n == 0 or n > 2147483647 or has_nulls(times) or has_nulls(types) or ts[0] < clock or ts[0] == INT64_MIN or ts[n - 1] == INT64_MAX:
            return False
        if self.wide:
            offsets = <const int64_t*> types.buffers[1] + at_
            size = (<const int64_t*> offsets)[n]
        else:
            offsets = <const int32_t*> types.buffers[1] + at_
            size = (<const int32_t*> offsets)[n]
        if n <= BRIEF:
            back = not ascends(ts, n)
            if not back:
                failed = self.router.route(offsets, self.wide, <const uint8_t*> types.buffers[2], size, n)
        else:
            with nogil:
                back = not ascends(ts, n)
                if not back:
                    failed = self.router.route(offsets, self.wide, <const uint8_t*> types.buffers[2], size, n)
        if failed:
            raise MemoryError()
        if back:
            return False
        self.matcher._touch(s, 0)
        for b in range(self.matcher.m.n_bufs):
            rows = self.router.found(b, &found)
            r = &s.runs[b]
            if r.hi + found > r.cap:
                self.matcher._reserve(s, b, found)
            if QUERCUS_IS_CHECKED and not (0 <= r.lo <= r.hi and r.hi + found <= r.cap):
                abort()
            for i in range(found):
                r.ts[r.hi + i] = ts[rows[i]]
                r.pos[r.hi + i] = place + rows[i]
                r.row[r.hi + i] = place + rows[i]
            r.hi += found
            self.matcher.events += found
        last[0] = ts[n - 1]
        return True


@cython.no_gc  # nothing that it holds leads back to it
@cython.freelist(8)
cdef class Raw:
    """What a step found, as the matcher wrote it: made into arrays when somebody looks."""

    cdef Out* outs
    cdef int n_columns
    cdef int n_sets
    cdef readonly int status
    cdef readonly int64_t clock
    cdef readonly int64_t count
    cdef tuple arrays
    # of a push
    cdef Inlet inlet
    cdef object engine
    cdef object later           # the same, looked at more closely
    cdef tuple bound
    cdef readonly tuple pieces  # where the events are

    def __dealloc__(self):
        cdef int i
        if self.outs != NULL:
            for i in range(self.n_columns + 3 * self.n_sets):
                give(self.outs[i].v, self.outs[i].cap * sizeof(int64_t))
            free(self.outs)

    def __len__(self):
        return self.count

    def take(self):
        """(columns, sets)."""
        cdef int i, k = self.n_columns
        if self.arrays is None:
            columns = [taken(&self.outs[i]) for i in range(k)]
            sets = [
                (taken(&self.outs[k + 3 * i]), taken(&self.outs[k + 3 * i + 1]), taken(&self.outs[k + 3 * i + 2]))
                for i in range(self.n_sets)
            ]
            self.arrays = columns, sets
        return self.arrays

    def numbered(self):
        """What each variable is bound to, as rows that were pushed."""
        if self.bound is None:
            self.bound = self._bound() if self.inlet.bound is not None and self._straight() else self.closer().numbered()
        return self.bound

    def answer(self):
        """The matches with their events."""
        return self.closer().answer()

    def closer(self):
        """The same as the engine's own `Found`."""
        if self.later is None:
            self.later = self.engine.found_by(self)
        return self.later

    cdef bint _straight(self):
        """Whether nothing was out of order or left out: then places are rows."""
        cdef Piece p
        for p in self.pieces:
            if not p.straight:
                return False
        return True

    cdef tuple _bound(self):
        cdef list like = self.inlet.bound, columns = self.take()[0]
        cdef int i
        return tuple([(<Like> like[i]).make(columns[i]) for i in range(self.n_columns)])


cdef taken(Out* o):
    cdef int64_t* v = o.v
    o.v = NULL
    return adopt(v, o.n, o.cap * sizeof(int64_t))

# A push of one record batch into running totals: routed, taken in and totalled in one call.

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
        const void** buffers
        ArrowArray** children
        void (*release)(ArrowArray*) noexcept

    struct ArrowDeviceArray:
        ArrowArray array
        int32_t device_type

cdef extern from "sorted.h":
    int ascends(const int64_t* values, Py_ssize_t n) noexcept nogil

cdef enum:
    ON_CPU = 1
    ONES = 0
    INTEGERS = 1
    REALS = 2

VALUES = {"one": ONES, "integer": INTEGERS, "real": REALS}


cdef inline bint has_nulls(ArrowArray* a) noexcept nogil:
    return a.buffers[0] != NULL and a.null_count != 0


cdef class Inflow:
    """Takes record batches of one schema into totals that have one segment and one group."""

    cdef Running running
    cdef Automaton automaton
    cdef Router router
    cdef int ts_column
    cdef int type_column
    cdef bint wide
    cdef bint counted
    cdef uint8_t symbols[64]
    cdef int n_names
    cdef int columns[64]        # of a pass: where its values are
    cdef int sources[64]
    cdef uint8_t* held          # of each event: 1 + its name, or 0
    cdef Py_ssize_t room
    cdef readonly int64_t last  # the time of the last event that was taken in
    cdef readonly int64_t count # the events of that push

    def __init__(self, Running running, Automaton automaton, list names, symbols, int ts_column, int type_column, bint wide, bint counted, values):
        """`names`: types, with the symbol of each. `values`: of each pass but counts ('one', 'integer' or 'real'; the column)."""
        cdef int k
        self.running, self.automaton, self.router = running, automaton, Router(names)
        self.ts_column, self.type_column, self.wide, self.counted = ts_column, type_column, wide, counted
        self.n_names = len(names)
        if len(symbols) != len(names) or len(values) != running.passes or max(symbols) >= automaton.made.symbols or running.delayed:
            raise ValueError("not a symbol for each name, or not a source for each pass")
        for k in range(self.n_names):
            self.symbols[k] = symbols[k]
        for k in range(running.passes):
            self.sources[k], self.columns[k] = (ONES, -1) if values[k] is None else (VALUES[values[k][0]], values[k][1])

    def __dealloc__(self):
        free(self.held)

    def step(self, batch, int64_t place, int64_t clock):
        """The totals of each pass over the matches that a batch ends; None, with nothing taken in, if it must be looked at more
        closely. What was taken in must be kept, or taken back.
        """
        cdef ArrowDeviceArray exported
        cdef int p
        exported.array.release = NULL
        try:
            batch._export_to_c_device(<size_t> &exported)
            if exported.device_type != ON_CPU or not self._take(&exported.array, place, clock):
                return None
        finally:
            if exported.array.release != NULL:
                exported.array.release(&exported.array)
        return [self.running._pass(self.automaton, p, NULL, NULL, 1)[0] for p in range(self.running.passes)]

    cdef bint _take(self, ArrowArray* batch, int64_t place, int64_t clock) except -1:
        cdef ArrowArray* times = batch.children[self.ts_column]
        cdef ArrowArray* types = batch.children[self.type_column]
        cdef int64_t n = batch.length, at_ = types.offset + batch.offset, size, found = 0, total = 0, i
        cdef const int64_t* ts = <const int64_t*> times.buffers[1] + times.offset + batch.offset
        cdef const int64_t* values[64]
        cdef const void* offsets
        cdef const uint32_t* rows
        cdef int k, p, failed = 0
        cdef bint back
        cdef run_segment* s
        cdef Running r = self.running
        cdef ArrowArray* column
        if n == 0 or n > 2147483647 or has_nulls(times) or has_nulls(types) or ts[0] < clock or ts[0] == INT64_MIN or ts[n - 1] == INT64_MAX or r.n_touched:
            return False
        for p in range(r.passes):
            values[p] = NULL
            if self.columns[p] >= 0:
                column = batch.children[self.columns[p]]
                if has_nulls(column):
                    return False
            if self.sources[p] != ONES:
                values[p] = <const int64_t*> column.buffers[1] + column.offset + batch.offset
        if self.wide:
            offsets = <const int64_t*> types.buffers[1] + at_
            size = (<const int64_t*> offsets)[n]
        else:
            offsets = <const int32_t*> types.buffers[1] + at_
            size = (<const int32_t*> offsets)[n]
        with nogil:
            back = not ascends(ts, n)
            if not back:
                failed = self.router.route(offsets, self.wide, <const uint8_t*> types.buffers[2], size, n)
        if failed:
            raise MemoryError
        if back:
            return False
        if n > self.room:
            self.held = <uint8_t*> _larger(self.held, n)
            self.room = n
        s = r._segment(0)
        r._touch(s)
        s.first = 0
        memset(self.held, 0, n)
        for k in range(self.n_names):
            rows = self.router.found(k, &found)
            total += found
            for i in range(found):
                self.held[rows[i]] = k + 1
        while s.room - s.hi < total:
            r._make_room(s, total)
        for i in range(n):
            if not self.held[i]:
                continue
            if s.lo == s.hi:
                s.mark[s.hi] = 3
            else:
                s.mark[s.hi] = not r.ties or ts[i] != s.ts
            s.ts = ts[i]
            s.symbol[s.hi], s.at[s.hi] = self.symbols[self.held[i] - 1], place + i if self.counted else ts[i]
            for p in range(r.passes):
                if r.kinds[p] > 1:
                    s.value[p][s.hi] = 1 if values[p] == NULL else values[p][i]
            s.hi += 1
        r.n_new = total
        self.last, self.count = ts[n - 1], n
        return True

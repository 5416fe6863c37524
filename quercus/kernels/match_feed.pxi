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


cdef inline bint has_nulls(ArrowArray* a) noexcept nogil:
    return a.buffers[0] != NULL and a.null_count != 0


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

    def take(self, capsule, int64_t place, int64_t clock):
        """Append a batch, the `arrow_array` of the C data interface; returns its last time, or None, with nothing taken, where
        its times are not in order or begin before the clock, or where it has nulls.
        """
        cdef ArrowArray* batch = <ArrowArray*> PyCapsule_GetPointer(capsule, "arrow_array")
        cdef ArrowArray* times = batch.children[self.ts_column]
        cdef ArrowArray* types = batch.children[self.type_column]
        cdef int64_t n = batch.length, at_ = types.offset + batch.offset, size, found = 0, i
        cdef const int64_t* ts = <const int64_t*> times.buffers[1] + times.offset + batch.offset
        cdef const void* offsets
        cdef const uint32_t* rows
        cdef bint back = False
        cdef int b
        cdef Segment* s = self.matcher.segs
        cdef Run* r
        if n == 0 or n > 2147483647 or has_nulls(times) or has_nulls(types) or ts[0] < clock:
            return None
        if self.wide:
            offsets = <const int64_t*> types.buffers[1] + at_
            size = (<const int64_t*> offsets)[n]
        else:
            offsets = <const int32_t*> types.buffers[1] + at_
            size = (<const int32_t*> offsets)[n]
        with nogil:
            for i in range(1, n):
                back |= ts[i] < ts[i - 1]
            if not back and self.router.route(offsets, self.wide, <const uint8_t*> types.buffers[2], size, n):
                found = -1
        if found < 0:
            raise MemoryError()
        if back:
            return None
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
        return ts[n - 1]

# Windows of which only the first tuple and the last are asked for. Part of windows.pyx.

cdef struct Queue:          # the open windows of a group, by the steps that opened them
    int32_t head            # -1: none
    int32_t tail


cdef class Pairs(Pass):
    """The windows that close, where all of a group are alike, tuples touch their own group only, no two times are equal, and
    only the first tuple and the last of each are asked for: `Windows` in short. `codes` may be -1 for tuples without a key.
    """

    cdef const int64_t[::1] steps, codes
    cdef const uint16_t[::1] flags
    cdef Queue* queues
    cdef size_t room
    cdef object _later
    cdef int32_t[::1] later     # of a step that opened a window, if it is not the tail: the one that opened the next
    cdef Py_ssize_t at
    cdef int64_t n_groups, n_open, max_closed, deadline, max_state
    cdef Out outs[2]

    def __cinit__(
        self, const int64_t[::1] steps, const int64_t[::1] codes, const uint16_t[::1] flags, int64_t n_groups, int64_t max_closed,
        int64_t max_nanoseconds, int64_t max_state,
    ):
        if not steps.shape[0] == codes.shape[0] == flags.shape[0] or steps.shape[0] >= 2 ** 31:
            raise ValueError("steps that differ in length, or too many")
        self.steps, self.codes, self.flags, self.n_groups = steps, codes, flags, n_groups
        self.max_closed, self.max_state = max_closed, max_state
        self.deadline = sat_add(monotonic(), max_nanoseconds) if max_nanoseconds >= 0 else 0
        self.later = self._later = np.empty(steps.shape[0], np.int32)
        self.room = max(n_groups, 1) * sizeof(Queue)
        self.queues = <Queue*> take(&self.room)
        if self.queues == NULL:
            raise MemoryError()
        memset(self.queues, 255, n_groups * sizeof(Queue))

    def __dealloc__(self):
        cdef int i
        give(self.queues, self.room)
        for i in range(2):
            give(self.outs[i].v, self.outs[i].cap * sizeof(int64_t))

    def finish(self):
        """(status, close, first)."""
        cdef int i
        found = [self.status]
        for i in range(2):
            found.append(adopt(self.outs[i].v, self.outs[i].n, self.outs[i].cap * sizeof(int64_t)))
            self.outs[i] = Out(NULL, 0, 0)
        return tuple(found)

    cdef int64_t _holds_bytes(self) noexcept nogil:
        return self.n_open * <int64_t> sizeof(Window)

    cdef int _advance(self, int64_t until) noexcept nogil:
        cdef Py_ssize_t s, n = self.steps.shape[0]
        cdef const int64_t* steps = &self.steps[0] if n else NULL
        cdef const int64_t* codes = &self.codes[0] if n else NULL
        cdef int64_t code, j
        cdef Queue* q
        cdef int f
        s = self.at
        while s < n and steps[s] < until:
            code, f = codes[s], self.flags[s]
            if s + 2 * AHEAD < n:
                if codes[s + 2 * AHEAD] >= 0:
                    prefetch(&self.queues[codes[s + 2 * AHEAD]])
                if codes[s + AHEAD] >= 0 and not self.flags[s + AHEAD] & STARTS_:
                    j = self.queues[codes[s + AHEAD]].head
                    if j >= 0:
                        prefetch(&steps[j])
            s += 1
            if s & 65535 == 0:
                if self.cancelled:
                    return -1
                if self.deadline and monotonic() >= self.deadline:
                    return -3
                with gil:
                    if check_signals() < 0:
                        return -1
            if code < 0:
                continue
            if QUERCUS_IS_CHECKED and code >= self.n_groups:
                abort()
            q = &self.queues[code]
            if f & ENDS_ or not f & STAYS_:
                j = q.head
                while j >= 0:
                    if f & ENDS_:
                        if self.outs[0].n == self.max_closed:
                            return -2
                        if push(&self.outs[0], steps[s - 1]) or push(&self.outs[1], steps[j]):
                            return -5
                    self.n_open -= 1
                    j = self.later[j] if j != q.tail else -1
                q.head = -1
            if f & STARTS_:
                if q.head < 0:
                    q.head = <int32_t> (s - 1)
                else:
                    self.later[q.tail] = <int32_t> (s - 1)
                q.tail = <int32_t> (s - 1)
                self.n_open += 1
                if self._holds_bytes() > self.max_state:
                    return -6
        self.at = s
        return 0

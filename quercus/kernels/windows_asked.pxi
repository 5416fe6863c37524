# What conditions say of a tuple and a window: programs of the matcher's machine. Part of windows.pyx.

cdef struct Read:           # what programs read of tuples that windows hold
    int slot                # 1: of the first, 2: of the one before
    int column


cdef class Asked(Kept):
    """Windows, and the programs that are asked about them.

    Columns 0 and 1 of the programs are the window's two counts, iter and num; those that are loaded follow. `code` and
    `preds` are the programs of termination, iteration, filter and bound, as (start, end) each or None where the flags say
    all. `alike`: see windows.pyx. `keeping`: NOWHERE, BY_GROUP, BY_WINDOW.
    """

    cdef Machine m
    cdef Pred programs[4]
    cdef bint has[4]
    cdef Buf bufs[2]
    cdef int slot_buf[4]
    cdef Py_ssize_t cur[4]
    cdef int64_t counts[2]
    cdef list _keep
    cdef object _code
    cdef object _const_f
    cdef int n_columns
    cdef int keeping
    cdef Read reads[4]      # some of them, to be sent for
    cdef int n_reads

    def __cinit__(self, code, preds, const_f, int n_columns, bint alike, int keeping):
        cdef int i
        self._keep = []
        self._code = np.ascontiguousarray(code, dtype=np.intc)
        self._const_f = np.ascontiguousarray(const_f, dtype=np.float64)
        self.n_columns, self.alike, self.keeping = n_columns, alike, keeping
        cdef int[::1] view = self._code
        self.m.code = &view[0] if view.shape[0] else <int*> &NOTHING
        for i, p in enumerate(preds):
            self.has[i] = p is not None
            if p is None:
                continue
            start, end = p
            if not 0 <= start < end <= len(code) or (end - start) % 3:
                raise ValueError("a program that is none")
            own = code[start:end]
            self.programs[i] = Pred(start, end, -1, -1, 0, 0, 0, 0)
            for k in range(start, end, 3):
                if code[k] in (LOAD_I, LOAD_F) and code[k + 1] in (1, 2) and self.n_reads < 4:
                    self.reads[self.n_reads] = Read(code[k + 1], code[k + 2])
                    self.n_reads += 1
            if len(own) == 9 and own[0] in (LOAD_I, LOAD_F) and own[0] == own[3] and EQ_I <= own[6] <= GE_F:
                self.programs[i] = Pred(start, end, -1, own[6], own[1], own[4], own[2], own[5])
        self.m.n_cols = n_columns + 2   # the two counts of a window come first
        self.m.cols = <Col*> calloc(self.m.n_cols, sizeof(Col))
        if self.m.cols == NULL:
            raise MemoryError()
        self.m.cols[0].i, self.m.cols[1].i = &self.counts[0], &self.counts[1]
        self.m.bufs, self.m.n_bufs = self.bufs, 2
        self.bufs[1].n = self.bufs[1].hi = 1
        self.slot_buf[0] = self.slot_buf[1] = self.slot_buf[2] = 0
        self.slot_buf[3] = 1
        self.m.slot_buf, self.m.cur, self.m.n_slots = self.slot_buf, self.cur, 4
        self.m.max_state = INT64_MAX

    def __dealloc__(self):
        free(self.m.cols)

    def load(self, Py_ssize_t n, columns, const_i):
        """The columns that programs read, with `n` tuples each, and the integer constants."""
        cdef int i
        if len(columns) != self.n_columns:
            raise ValueError("not the columns of this program")
        self._keep = []
        self.bufs[0].n = self.bufs[0].hi = n
        self.m.const_i, self.m.const_f = self._int64(const_i), self._float64(self._const_f)
        for i, (values, valid) in enumerate(columns):
            if len(values) < n or (valid is not None and len(valid) < n):
                raise ValueError("a column that is too short")
            self.m.cols[i + 2].i = self._int64(values) if values.dtype == np.int64 else NULL
            self.m.cols[i + 2].f = self._float64(values) if values.dtype != np.int64 else NULL
            self.m.cols[i + 2].valid = self._uint8(valid) if valid is not None else NULL

    cdef const int64_t* _int64(self, a) except? NULL:
        cdef const int64_t[::1] v = a
        self._keep.append(a)
        return &v[0] if v.shape[0] else &NOTHING

    cdef const double* _float64(self, a) except? NULL:
        cdef const double[::1] v = a
        self._keep.append(a)
        return &v[0] if v.shape[0] else <const double*> &NOTHING

    cdef const uint8_t* _uint8(self, a) except? NULL:
        cdef const uint8_t[::1] v = a
        self._keep.append(a)
        return &v[0] if v.shape[0] else <const uint8_t*> &NOTHING

    cdef inline bint _holds(self, int program, int64_t here, Window* w, int64_t iter_, int64_t num) noexcept nogil:
        if QUERCUS_IS_CHECKED and not self.has[program]:
            abort()
        self.cur[0], self.cur[1], self.cur[2] = here, w.first, w.prev
        self.counts[0], self.counts[1] = iter_, num
        return evaluate(&self.m, &self.programs[program])

    cdef inline bint _true(self, int program, int f, int may, int must, int64_t here, Window* w, int64_t iter_, int64_t num) noexcept nogil:
        """Whether a condition is true: as the flags of the tuple say, if they do."""
        if f >= 0:
            if not f & may:
                return False
            if f & must:
                return True
        return self._holds(program, here, w, iter_, num)

# What routing found in a part of a column, until there are arrays to write it to: the parts of a column are routed side
# by side, and written one behind the other, each row number once.

cdef class Found:
    """The rows of each name, in row order: `counts` of them."""

    cdef Rows few[FEW_NAMES]    # a few names
    cdef Hits hits              # or all others
    cdef int64_t names
    cdef row_t first_row
    cdef readonly list counts

    def __cinit__(self, int64_t names, row_t first_row):
        self.names, self.first_row, self.counts = names, first_row, []

    def __dealloc__(self):
        cdef int k
        for k in range(FEW_NAMES):
            give(self.few[k].rows, self.few[k].capacity * sizeof(uint32_t))
        free(self.hits.rows)
        free(self.hits.codes)

    cdef Found counted(self):
        cdef int64_t i, k
        cdef int64_t* counts = <int64_t*>calloc(self.names + 1, sizeof(int64_t))
        if counts == NULL:
            raise MemoryError
        with nogil:
            for k in range(min(self.names, <int64_t>FEW_NAMES)):
                counts[k] = self.few[k].size
            for i in range(self.hits.size):
                counts[self.hits.codes[i]] += 1
        self.counts = [counts[k] for k in range(self.names)]
        free(counts)
        return self

    def write(self, list arrays, starts):
        """The row numbers of each name, from a place in its array on."""
        cdef int64_t i, k, start
        cdef code_t code
        cdef row_t[::1] view
        cdef row_t first_row = self.first_row
        cdef row_t** ends = <row_t**>calloc(self.names + 1, sizeof(row_t*))
        if ends == NULL:
            raise MemoryError
        try:
            for k in range(self.names):
                view, start = arrays[k], starts[k]
                if start < 0 or start + self.counts[k] > view.shape[0]:
                    raise ValueError("no room for the rows of a name")
                if self.counts[k]:
                    ends[k] = &view[start]
            with nogil:
                for k in range(min(self.names, <int64_t>FEW_NAMES)):
                    for i in range(self.few[k].size):
                        ends[k][i] = first_row + self.few[k].rows[i]
                for i in range(self.hits.size):
                    code = self.hits.codes[i]
                    ends[code][0] = first_row + self.hits.rows[i]
                    ends[code] += 1
        finally:
            free(ends)

    def arrays(self):
        """The row numbers of each name as an array."""
        made = [empty(count) for count in self.counts]
        self.write(made, [0] * self.names)
        return made

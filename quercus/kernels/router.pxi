# A few names, routed again and again: what a stream does with every batch.

cdef struct Routing:
    Table table
    Few few
    Rows found[FEW_NAMES]
    int width


cdef class Router:
    """Finds the rows of a few short names in plain string columns without nulls; `can` says whether these names are such.

    >>> Router.can([b"A", b"B"]), Router.can([b"a name of more than sixteen bytes"])
    (True, False)
    """

    @staticmethod
    def can(list names):
        return bool(few_width(8)) and 0 < len(names) <= FEW_NAMES and max(len(n) for n in names) <= 2 * WORD

    def __cinit__(self, list names):
        cdef Routing* r = <Routing*>calloc(1, sizeof(Routing))
        if r == NULL:
            raise MemoryError
        self.state, self.names = r, list(names)
        if not Router.can(names):
            raise ValueError("names that are too many or too long")
        build(&r.table, self.names)
        describe(&r.few, &r.table, self.names)
        r.width = few_width(8)

    def __dealloc__(self):
        cdef Routing* r = <Routing*>self.state
        cdef int k
        if r != NULL:
            drop(&r.table)
            for k in range(FEW_NAMES):
                give(r.found[k].rows, r.found[k].capacity * sizeof(uint32_t))
            free(r)

    cdef int route(self, const void* offsets, bint wide, const uint8_t* data, int64_t size, int64_t rows) noexcept nogil:
        """The rows of each name among `rows` strings, for `found`; -1: out of memory."""
        cdef Routing* r = <Routing*>self.state
        cdef int k
        for k in range(FEW_NAMES):
            r.found[k].size = 0
        r.few.data = data
        if wide:
            return few_rows(&r.few, &r.table, <const int64_t*>offsets, size, rows, r.width, r.found)
        return few_rows(&r.few, &r.table, <const int32_t*>offsets, size, rows, r.width, r.found)

    cdef const uint32_t* found(self, int k, int64_t* n) noexcept nogil:
        """The rows of one name, as the last call found them."""
        n[0] = (<Routing*>self.state).found[k].size
        return (<Routing*>self.state).found[k].rows

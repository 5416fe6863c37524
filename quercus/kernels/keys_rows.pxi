# The rows at hand, as they lie in Arrow's buffers, and hashes of their keys. Part of keys.pyx.

cdef struct Part:               # of a key, in the rows at hand
    const int64_t* numbers      # NULL: strings
    const int32_t* short_       # offsets, of one of two widths
    const int64_t* long_
    const uint8_t* data
    const uint8_t* valid        # NULL: all are


cdef class Rows:
    """Keys of rows, in parts."""

    cdef int n_parts
    cdef uint64_t seed
    cdef bint alone             # the key is one whole number
    cdef int texts[MOST_PARTS]  # whether a part is a string; -1: not known yet
    cdef list _held
    cdef Part parts[MOST_PARTS]

    def __cinit__(self, int n_parts, seed):
        cdef int i
        if not 0 < n_parts <= MOST_PARTS:
            raise ValueError(f"keys of {n_parts} parts")
        self.n_parts, self.seed = n_parts, <uint64_t> (seed & 0xFFFFFFFFFFFFFFFF)
        self._held = []
        for i in range(n_parts):
            self.texts[i] = -1

    cdef int _load(self, parts, const int64_t[::1] rows) except -1:
        """The parts of keys, checked against the rows that are asked for."""
        cdef int i
        cdef Py_ssize_t k, most = 0
        cdef const int64_t[::1] numbers
        cdef const int32_t[::1] short_
        cdef const int64_t[::1] long_
        cdef const uint8_t[::1] data, valid
        cdef int text
        for k in range(rows.shape[0]):
            if rows[k] < 0:
                raise IndexError("a row before the first")
            most = max(most, rows[k])
        if len(parts) != self.n_parts:
            raise ValueError("not the parts of these keys")
        for i, given in enumerate(parts):
            self.parts[i] = Part(NULL, NULL, NULL, NULL, NULL)
            text = len(given) == 3
            if self.texts[i] not in (-1, text):
                raise ValueError("keys of another kind")
            if not text:
                numbers = given[0]
                length = numbers.shape[0]
                self.parts[i].numbers = &numbers[0] if length else NULL
            else:
                offsets, data = given[0], given[1]
                length = len(offsets) - 1
                if offsets.dtype == np.int32:
                    short_ = offsets
                    self.parts[i].short_ = &short_[0]
                else:
                    long_ = offsets
                    self.parts[i].long_ = &long_[0]
                if data.shape[0]:
                    self.parts[i].data = &data[0]
                if length > most and not 0 <= offsets[0] <= offsets[most + 1] <= data.shape[0]:
                    raise ValueError("strings that are not there")
            if length <= most:
                raise IndexError("a row after the last")
            known = given[1 + text]
            if known is not None:
                valid = known
                if valid.shape[0] <= most:
                    raise IndexError("a row after the last")
                self.parts[i].valid = &valid[0]
            self._held.append(given)
        for i in range(self.n_parts):
            self.texts[i] = len(parts[i]) == 3
        self.alone = self.n_parts == 1 and not self.texts[0]
        return 0

    @cython.overflowcheck(False)
    cdef void _hash(self, const int64_t* rows, Py_ssize_t n, uint64_t* hashes, uint8_t* whole) noexcept nogil:
        """The hashes of the keys of some rows, and whether they have all their parts."""
        cdef int p
        cdef Py_ssize_t i
        cdef int64_t begin, size
        cdef Part* part
        for i in range(n):
            hashes[i], whole[i] = self.seed, 1
        for p in range(self.n_parts):
            part = &self.parts[p]
            if part.valid != NULL:
                for i in range(n):
                    whole[i] &= part.valid[rows[i]] != 0
            if part.numbers != NULL:
                for i in range(n):
                    hashes[i] = hash_number(part.numbers[rows[i]], hashes[i])
                continue
            for i in range(min(n, <Py_ssize_t> AHEAD)):
                self._send_for(part, rows[i])
            for i in range(n):
                if i + AHEAD < n:
                    self._send_for(part, rows[i + AHEAD])
                self._text(part, rows[i], &begin, &size)
                hashes[i] = hash_bytes(part.data + begin, size, hashes[i])

    cdef inline void _send_for(self, Part* part, int64_t row) noexcept nogil:
        prefetch(part.data + (part.short_[row] if part.short_ != NULL else part.long_[row]))

    cdef inline void _text(self, Part* p, int64_t row, int64_t* begin, int64_t* size) noexcept nogil:
        if p.short_ != NULL:
            begin[0] = p.short_[row]
            size[0] = p.short_[row + 1] - p.short_[row]
        else:
            begin[0] = p.long_[row]
            size[0] = p.long_[row + 1] - p.long_[row]

"""Rows of tables, kept row by row: all that a tuple holds lies together, so that one that is asked for costs one or two
lines of the cache, however many are kept and however many columns they have. In Arrow it lies as far apart as it has columns.

A row is a byte for each eight columns, with a bit for each null; eight bytes for each number, four for the length of each
string; and then the strings.
"""

cimport cython
from libc.string cimport memcpy, memset

import numpy as np

from quercus.kernels._typedefs cimport int32_t, int64_t, uint8_t, uint32_t
from quercus.kernels.memory cimport give, take
from quercus.kernels.memory import empty

cdef extern from "prefetch.h":
    void prefetch(const void* at) noexcept nogil

cdef enum:
    AHEAD = 16                  # rows that are on their way while one is read
    MOST = 2147483647           # bytes of a string


cdef struct Part:               # a column, in the rows at hand
    bint text
    const int64_t* numbers
    const int32_t* short_       # offsets, of one of two widths
    const int64_t* long_
    const uint8_t* data
    const uint8_t* known        # a byte for each row; NULL: all are
    int64_t* to                 # when rows are read: numbers, or offsets
    uint8_t* texts
    uint8_t* valid


@cython.final
cdef class Rows:
    """Rows by place: 0, 1, 2, ... in the order in which they were added. `texts`: which columns are strings.

    A column is (values, known) for numbers of eight bytes, (offsets, data, known) for strings; `known`, a byte for each row,
    may be None. Of rows that are taken it is None as long as no column ever had it.

    >>> rows = Rows([False, True])
    >>> strings = np.array([0, 1, 3, 3], np.int32), np.frombuffer(b"abc", np.uint8), np.array([1, 1, 0], np.uint8)
    >>> rows.add([(np.array([7, 8, 9]), None), strings])
    >>> (numbers, known), (offsets, data, there) = rows.take(np.array([1, 2]))
    >>> numbers.tolist(), known.tolist(), offsets.tolist(), data.tobytes(), there.tolist()
    ([8, 9], [1, 1], [0, 2, 2], b'bc', [1, 0])
    """

    cdef int n_parts, n_texts, nulls, fixed     # fixed: bytes of a row before its strings
    cdef Part* parts
    cdef object _parts
    cdef int64_t* at            # where each begins, and where the last one ends
    cdef size_t at_bytes
    cdef int64_t n
    cdef uint8_t* arena
    cdef size_t room
    cdef bint gaps              # some nulls were added

    def __cinit__(self, texts):
        cdef int i
        self.n_parts = len(texts)
        if self.n_parts == 0:
            raise ValueError("rows without columns")
        self._parts = np.zeros(self.n_parts * sizeof(Part), np.uint8)
        cdef uint8_t[::1] view = self._parts
        self.parts = <Part*> &view[0]
        for i in range(self.n_parts):
            self.parts[i].text = texts[i]
            self.n_texts += self.parts[i].text
        self.nulls = (self.n_parts + 7) // 8
        self.fixed = self.nulls + 8 * (self.n_parts - self.n_texts) + 4 * self.n_texts
        if self._widen(63) or self._ensure(4096):
            raise MemoryError()
        self.at[0] = 0

    def __dealloc__(self):
        give(self.at, self.at_bytes)
        give(self.arena, self.room)

    def __len__(self):
        return self.n

    @property
    def bytes(self):
        """What the rows take."""
        return self.at[self.n] + 8 * self.n

    # adding

    def add(self, columns, const uint8_t[::1] wanted=None):
        """Rows after those that are there; only of those that are `wanted`, if that is given, anything is kept."""
        cdef int64_t n = -1, more
        cdef const uint8_t* which = NULL
        if len(columns) != self.n_parts:
            raise ValueError("not the columns of these rows")
        for i, column in enumerate(columns):
            size = self._load(&self.parts[i], column)
            if n >= 0 and n != size:
                raise ValueError("columns that differ in length")
            n = size
        if wanted is not None and wanted.shape[0] != n:
            raise ValueError("rows that differ in number")
        if wanted is not None and n:
            which = &wanted[0]
        more = self._size(n)
        if more < 0:
            raise OverflowError("a string of more than 2**31 - 1 bytes")
        if self._widen(self.n + n) or self._ensure(self.at[self.n] + more):
            raise MemoryError("no memory left for rows")
        with nogil:
            self._write(n, which)

    cdef int64_t _load(self, Part* p, column) except -1:
        """A column, checked, and how many rows it has."""
        cdef const int64_t[::1] numbers
        cdef const int32_t[::1] short_
        cdef const int64_t[::1] long_
        cdef const uint8_t[::1] data, known
        cdef int64_t n
        if p.text != (len(column) == 3):
            raise ValueError("columns of another kind")
        p.numbers, p.short_, p.long_, p.data, p.known = NULL, NULL, NULL, NULL, NULL
        if p.text:
            offsets, data = column[0], column[1]
            n = len(offsets) - 1
            if n < 0 or not 0 <= offsets[0] <= offsets[n] <= data.shape[0]:
                raise ValueError("strings that are not there")
            if offsets.dtype == np.int32:
                short_ = offsets
                p.short_ = &short_[0]
            else:
                long_ = offsets
                p.long_ = &long_[0]
            p.data = &data[0] if data.shape[0] else <const uint8_t*> p
        else:
            numbers = column[0]
            n = numbers.shape[0]
            p.numbers = &numbers[0] if n else NULL
        if column[1 + p.text] is not None:
            known = column[1 + p.text]
            if known.shape[0] != n:
                raise ValueError("columns that differ in length")
            p.known = &known[0] if n else NULL
            self.gaps = True
        return n

    cdef int64_t _size(self, int64_t n) noexcept:
        """How many bytes so many rows take at most; -1 where a string is too long."""
        cdef int64_t more = n * self.fixed, i, size
        cdef int k
        cdef Part* p
        for k in range(self.n_parts):
            p = &self.parts[k]
            if not p.text:
                continue
            if p.short_ != NULL:
                more += p.short_[n] - p.short_[0]
                continue
            for i in range(n):
                size = p.long_[i + 1] - p.long_[i]
                if size > MOST:
                    return -1
                more += size
        return more

    cdef void _write(self, int64_t n, const uint8_t* wanted) noexcept nogil:
        cdef int64_t i, begin, size, end = self.at[self.n]
        cdef uint32_t length
        cdef uint8_t* to
        cdef uint8_t* nulls
        cdef uint8_t* texts
        cdef int k
        cdef Part* p
        for i in range(n):
            if wanted == NULL or wanted[i]:
                nulls = self.arena + end
                to, texts = nulls + self.nulls, nulls + self.fixed
                memset(nulls, 0, self.nulls)
                for k in range(self.n_parts):
                    p = &self.parts[k]
                    if p.known != NULL and not p.known[i]:
                        nulls[k >> 3] |= 1 << (k & 7)
                    if not p.text:
                        memcpy(to, &p.numbers[i], 8)
                        to += 8
                        continue
                    if p.short_ != NULL:
                        begin, size = p.short_[i], p.short_[i + 1] - p.short_[i]
                    else:
                        begin, size = p.long_[i], p.long_[i + 1] - p.long_[i]
                    length = <uint32_t> size
                    memcpy(to, &length, 4)
                    memcpy(texts, p.data + begin, size)
                    to += 4
                    texts += size
                end = texts - self.arena
            self.n += 1
            self.at[self.n] = end

    # asking

    def there(self):
        """The places of rows that were wanted."""
        return np.flatnonzero(np.diff(np.asarray(<int64_t[:self.n + 1]> self.at)))

    def take(self, const int64_t[::1] places):
        """The columns of the rows at some places, as they were given, with offsets of eight bytes. They must be wanted ones."""
        cdef Py_ssize_t n = places.shape[0], i
        cdef int k
        cdef Part* p
        cdef int64_t[::1] to
        cdef uint8_t[::1] bytes_
        cdef const int64_t* at = &places[0] if n else NULL
        for i in range(n):
            if not 0 <= places[i] < self.n or self.at[places[i] + 1] == self.at[places[i]]:
                raise IndexError("a row that is not there")
        sizes_ = np.zeros(self.n_parts, np.int64)
        cdef int64_t[::1] sizes = sizes_
        with nogil:
            self._measure(at, n, &sizes[0])
        if sizes_.max() > MOST:
            raise OverflowError("strings of more than 2**31 - 1 bytes in all")
        found = []
        for k in range(self.n_parts):
            p = &self.parts[k]
            numbers = empty(n + p.text)
            to = numbers
            p.to = &to[0] if n + p.text else NULL
            known = None
            if self.gaps:
                known = np.empty(n, np.uint8)
                bytes_ = known
                p.valid = &bytes_[0] if n else NULL
            if p.text:
                texts = np.empty(sizes[k], np.uint8)
                bytes_ = texts
                p.texts = &bytes_[0] if sizes[k] else NULL
                p.to[0] = 0
            found.append((numbers, texts, known) if p.text else (numbers, known))
        with nogil:
            self._read(at, n)
        return found

    cdef inline void _fetch(self, const int64_t* places, Py_ssize_t i, Py_ssize_t n) noexcept nogil:
        """Send for a row that is asked for soon."""
        cdef const uint8_t* row
        if i + 2 * AHEAD < n:
            prefetch(&self.at[places[i + 2 * AHEAD]])
        if i + AHEAD < n:
            row = self.arena + self.at[places[i + AHEAD]]
            prefetch(row)
            prefetch(row + 63)

    cdef void _measure(self, const int64_t* places, Py_ssize_t n, int64_t* sizes) noexcept nogil:
        """How many bytes the strings of each column take."""
        cdef Py_ssize_t i
        cdef const uint8_t* row
        cdef uint32_t length
        cdef int k
        for i in range(n):
            self._fetch(places, i, n)
            row = self.arena + self.at[places[i]] + self.nulls
            for k in range(self.n_parts):
                if not self.parts[k].text:
                    row += 8
                    continue
                memcpy(&length, row, 4)
                sizes[k] += length
                row += 4

    cdef void _read(self, const int64_t* places, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t i
        cdef const uint8_t* nulls
        cdef const uint8_t* row
        cdef const uint8_t* texts
        cdef uint32_t length
        cdef int k
        cdef Part* p
        for i in range(n):
            self._fetch(places, i, n)
            nulls = self.arena + self.at[places[i]]
            row, texts = nulls + self.nulls, nulls + self.fixed
            for k in range(self.n_parts):
                p = &self.parts[k]
                if self.gaps:
                    p.valid[i] = not nulls[k >> 3] >> (k & 7) & 1
                if not p.text:
                    memcpy(&p.to[i], row, 8)
                    row += 8
                    continue
                memcpy(&length, row, 4)
                if length:
                    memcpy(p.texts + p.to[i], texts, length)
                p.to[i + 1] = p.to[i] + length
                row += 4
                texts += length

    # forgetting

    def keep(self, const int64_t[::1] places):
        """Let go of all other rows. Those at these places, ascending, are 0, 1, 2, ... from now on."""
        cdef Py_ssize_t n = places.shape[0], i
        cdef int64_t begin, size, filled = 0
        cdef uint8_t* arena
        cdef size_t room
        for i in range(n):
            if not (places[i - 1] if i else -1) < places[i] < self.n:
                raise IndexError("places that do not ascend, or that are not there")
            filled += self.at[places[i] + 1] - self.at[places[i]]
        room = max(2 * filled, 4096)
        arena = <uint8_t*> take(&room)
        if arena == NULL:
            raise MemoryError("no memory left for rows")
        filled = 0
        with nogil:
            for i in range(n):      # a row never moves to a later place
                begin = self.at[places[i]]
                size = self.at[places[i] + 1] - begin
                memcpy(arena + filled, self.arena + begin, size)
                self.at[i] = filled
                filled += size
        self.at[n] = filled
        self.n = n
        give(self.arena, self.room)
        self.arena, self.room = arena, room

    # room

    cdef int _widen(self, int64_t n) noexcept:
        """Room for so many rows."""
        cdef size_t wanted = (n + 1) * sizeof(int64_t)
        cdef int64_t* at
        if wanted <= self.at_bytes:
            return 0
        wanted = max(wanted, 2 * self.at_bytes)
        at = <int64_t*> take(&wanted)
        if at == NULL:
            return 1
        if self.at != NULL:
            memcpy(at, self.at, (self.n + 1) * sizeof(int64_t))
        give(self.at, self.at_bytes)
        self.at, self.at_bytes = at, wanted
        return 0

    cdef int _ensure(self, int64_t bytes_) noexcept:
        """Room for so many bytes of rows."""
        cdef size_t wanted = bytes_
        cdef uint8_t* arena
        if wanted <= self.room:
            return 0
        wanted = max(wanted, 2 * self.room)
        arena = <uint8_t*> take(&wanted)
        if arena == NULL:
            return 1
        if self.arena != NULL:
            memcpy(arena, self.arena, self.at[self.n])
        give(self.arena, self.room)
        self.arena, self.room = arena, wanted
        return 0

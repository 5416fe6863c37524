"""Numbers for keys: equal keys have one number, whenever they come. A key is a whole number, a string, or several of them.

Open addressing. Strings are hashed and compared as they lie in Arrow buffers, and copied once, when they are new. Rows are
taken in blocks: all hashes of a block first, so that the memory of its slots, and then that of its keys, is on its way
before it is needed. So a key costs about the same, however many there are.

A slot is found by the first bits of a hash. More slots keep the keys in their order, so that they are made in one go from
first to last, and nothing else of a hash is needed than what stands in the slot.
"""

cimport cython
from libc.math cimport exp
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

import numpy as np

from quercus.kernels._typedefs cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from quercus.kernels.memory cimport give, take
from quercus.kernels.memory import empty

cdef extern from "hashes.h":
    uint64_t hash_number(int64_t value, uint64_t seed) noexcept nogil
    uint64_t hash_bytes(const uint8_t* at, int64_t size, uint64_t seed) noexcept nogil
    bint same_bytes(const uint8_t* one, const uint8_t* other, int64_t size) noexcept nogil
    void copy_bytes(uint8_t* to, const uint8_t* at, int64_t size) noexcept nogil

cdef extern from "prefetch.h":
    void prefetch(const void* at) noexcept nogil

cdef enum:
    BLOCK = 64
    AHEAD = 16                  # rows whose strings are on their way while one is hashed
    MOST_PARTS = 32
    SAMPLE = 8192               # rows that are looked at to tell how many keys there are

MISSING, UNKNOWN = -1, -2       # a part is null; a key that was not seen before


cdef struct Slot:
    uint64_t word               # the key, where it is one number; else where it lies
    uint32_t tag                # the first bits of its hash
    int32_t code                # -1: nothing here


include "keys_rows.pxi"


cdef void insert(uint8_t* sorted_, Py_ssize_t n, uint8_t value) noexcept nogil:
    """One more among numbers that ascend."""
    while n > 0 and sorted_[n - 1] > value:
        sorted_[n] = sorted_[n - 1]
        n -= 1
    sorted_[n] = value


cdef double expected(double looked_at, double different, double most) noexcept nogil:
    """How many keys there are, all as likely, of which so many in a sample differ: keys * (1 - e ** (-sample / keys))."""
    cdef double low = different, high = most, middle
    cdef int i
    for i in range(30):
        middle = (low + high) / 2
        if middle * (1 - exp(-looked_at / middle)) < different:
            low = middle
        else:
            high = middle
    return low


@cython.final
cdef class Table(Rows):
    """The keys that were seen, as 0, 1, 2, ... in the order of appearance; numbers that were let go are given again.

    A part is (values, valid) for whole numbers, (offsets, data, valid) for strings; `valid`, a byte for each row, may be None.

    >>> import numpy as np
    >>> table = Table(1, 7)
    >>> table.codes([(np.array([30, 10, 30]), None)], np.array([0, 1, 2])).tolist(), len(table)
    ([0, 1, 0], 2)
    >>> table.find([(np.array([10, 20]), None)], np.array([0, 1])).tolist()
    [1, -2]
    """

    cdef Slot* slots
    cdef size_t slot_bytes
    cdef uint64_t mask
    cdef int shift              # of a hash, to the place where its slot is looked for
    cdef int64_t used           # keys that are there
    cdef int64_t n              # numbers that were ever given
    cdef int32_t* free_codes
    cdef int64_t n_free
    cdef uint8_t* arena
    cdef int64_t filled
    cdef size_t room

    def __cinit__(self):
        if self._resize(1024):
            raise MemoryError()

    def __dealloc__(self):
        give(self.slots, self.slot_bytes)
        free(self.free_codes)
        give(self.arena, self.room)

    def __len__(self):
        return self.used

    @property
    def size(self):
        """One more than the greatest number that was ever given."""
        return self.n

    @property
    def bytes(self):
        """What is held."""
        return self.slot_bytes + self.n * sizeof(int32_t) * (self.free_codes != NULL) + self.room

    def codes(self, parts, const int64_t[::1] rows):
        """The numbers of the keys at some rows; new keys get one. MISSING where a part is null."""
        return self._codes(parts, rows, True, None)

    def find(self, parts, const int64_t[::1] rows):
        """The same; UNKNOWN where the key was not seen: it stays so."""
        return self._codes(parts, rows, False, None)

    def find_or_add(self, parts, const int64_t[::1] rows, const uint8_t[::1] new):
        """The same, row by row; a key that was not seen gets a number where `new` is 1.

        >>> import numpy as np
        >>> table = Table(1, 7)
        >>> table.find_or_add([(np.array([5, 5, 5]), None)], np.array([0, 1, 2]), np.array([0, 1, 0], np.uint8)).tolist()
        [-2, 0, 0]
        """
        if new.shape[0] != rows.shape[0]:
            raise ValueError("rows that differ in number")
        return self._codes(parts, rows, True, new)

    cdef _codes(self, parts, const int64_t[::1] rows, bint learn, const uint8_t[::1] new):
        cdef Py_ssize_t n = rows.shape[0], begin = 0, size
        cdef int status = 0
        cdef const uint8_t* which = NULL
        found = empty(n)
        cdef int64_t[::1] out = found
        if n == 0:
            return found
        self._load(parts, rows)
        if new is not None:
            which = &new[0]
        try:
            with nogil:
                if learn:
                    status = self._foresee(&rows[0], n, which)
                while begin < n and not status:
                    size = min(n - begin, <Py_ssize_t> BLOCK)
                    if learn and 2 * (self.used + BLOCK) > <int64_t> self.mask:
                        status = self._resize(2 * (self.mask + 1))
                    if not status:
                        status = self._block(&rows[begin], &out[begin], size, learn, which + begin if which != NULL else NULL)
                    begin += size
        finally:
            self._held.clear()
        if status == -1:
            raise MemoryError("no memory left for keys")
        if status == -2:
            raise OverflowError("more than 2**31 different keys")
        if status == -3:
            raise OverflowError("a key of 4 GiB or more")
        return found

    # a block of rows

    cdef int _block(
        self, const int64_t* rows, int64_t* out, Py_ssize_t n, bint learn, const uint8_t* new
    ) noexcept nogil:
        cdef uint64_t hashes[BLOCK]
        cdef uint64_t at[BLOCK]
        cdef uint8_t whole[BLOCK]
        cdef uint8_t seen[BLOCK]        # rows whose key seems to be there
        cdef uint8_t left[BLOCK]        # ... and the others
        cdef Py_ssize_t i, k, n_seen = 0, n_left = 0
        cdef int r
        self._hash(rows, n, hashes, whole)
        for i in range(n):
            at[i] = hashes[i] >> self.shift
            prefetch(&self.slots[at[i]])
        for i in range(n):
            if not whole[i]:
                out[i] = -1
            elif self._seems_there(hashes[i], &at[i]):
                seen[n_seen] = <uint8_t> i
                n_seen += 1
            else:
                left[n_left] = <uint8_t> i
                n_left += 1
        for k in range(n_seen):
            i = seen[k]
            if self._is(self.slots[at[i]].word, rows[i]):
                out[i] = self.slots[at[i]].code
            else:
                insert(left, n_left, <uint8_t> i)
                n_left += 1
        for k in range(n_left):
            i = left[k]
            r = self._find(rows[i], hashes[i], at[i], learn and (new == NULL or new[i]), &out[i])
            if r:
                return r
        return 0

    cdef inline bint _seems_there(self, uint64_t hash_, uint64_t* at) noexcept nogil:
        """Go on to the slot that has the tag, whose key is sent for, or to the empty one before."""
        cdef Slot* slot = &self.slots[at[0]]
        while slot.code >= 0:
            if slot.tag == <uint32_t> (hash_ >> 32):
                if not self.alone:
                    prefetch(self.arena + slot.word)
                    prefetch(self.arena + slot.word + 24)       # keys are short; they may reach into the next line
                return True
            at[0] = (at[0] + 1) & self.mask
            slot = &self.slots[at[0]]
        return False

    cdef inline int _find(self, int64_t row, uint64_t hash_, uint64_t at, bint learn, int64_t* out) noexcept nogil:
        """The number of the key of a row, which stands in this slot or a later one if it is there."""
        cdef Slot* slot
        cdef uint32_t tag = <uint32_t> (hash_ >> 32)
        while True:
            slot = &self.slots[at]
            if slot.code < 0:
                break
            if slot.tag == tag and self._is(slot.word, row):
                out[0] = slot.code
                return 0
            at = (at + 1) & self.mask
        if not learn:
            out[0] = -2
            return 0
        return self._add(row, tag, slot, out)

    cdef inline bint _is(self, uint64_t word, int64_t row) noexcept nogil:
        """Whether the key of a row is this one."""
        cdef int i
        cdef int64_t begin, size, number
        cdef uint32_t length
        cdef const uint8_t* at
        cdef Part* p
        if self.alone:
            return <int64_t> word == self.parts[0].numbers[row]
        at = self.arena + word
        for i in range(self.n_parts):
            p = &self.parts[i]
            if p.numbers != NULL:
                memcpy(&number, at, 8)
                if number != p.numbers[row]:
                    return False
                at += 8
            else:
                memcpy(&length, at, 4)
                self._text(p, row, &begin, &size)
                if <int64_t> length != size or not same_bytes(at + 4, p.data + begin, size):
                    return False
                at += 4 + size
        return True

    cdef int _add(self, int64_t row, uint32_t tag, Slot* slot, int64_t* out) noexcept nogil:
        cdef int64_t code
        cdef uint64_t word
        cdef int r
        if self.alone:
            word = <uint64_t> self.parts[0].numbers[row]
        else:
            word = <uint64_t> self.filled
            r = self._write(row)
            if r:
                self.filled = <int64_t> word
                return r
        if self.n_free:
            self.n_free -= 1
            code = self.free_codes[self.n_free]
        else:
            code = self.n
            if code >= 2147483647:
                return -2
            self.n += 1
        self.used += 1
        slot.word, slot.tag, slot.code = word, tag, <int32_t> code
        out[0] = code
        return 0

    cdef int _write(self, int64_t row) noexcept nogil:
        """Keep the key of a row: of each part the number, or the length and the bytes."""
        cdef int i
        cdef int64_t begin, size
        cdef uint32_t length
        cdef Part* p
        for i in range(self.n_parts):
            p = &self.parts[i]
            if p.numbers != NULL:
                if self._ensure(8):
                    return -1
                memcpy(self.arena + self.filled, &p.numbers[row], 8)
                self.filled += 8
            else:
                self._text(p, row, &begin, &size)
                length = <uint32_t> size
                if <int64_t> length != size:
                    return -3
                if self._ensure(4 + size):
                    return -1
                memcpy(self.arena + self.filled, &length, 4)
                copy_bytes(self.arena + self.filled + 4, p.data + begin, size)
                self.filled += 4 + size
        return 0

    # room

    cdef int _ensure(self, int64_t more) noexcept nogil:
        cdef size_t room = self.room
        cdef uint8_t* arena
        if <size_t> (self.filled + more) > room:
            room = max(4 * room, <size_t> (2 * (self.filled + more)), <size_t> 4096)
            arena = <uint8_t*> take(&room)
            if arena == NULL:
                return -1
            if self.filled:
                memcpy(arena, self.arena, self.filled)
            give(self.arena, self.room)
            self.arena, self.room = arena, room
        return 0

    cdef int _foresee(self, const int64_t* rows, Py_ssize_t n, const uint8_t* new) noexcept nogil:
        """Room for the keys that many rows may add, as far as some of them tell how many these are."""
        cdef Py_ssize_t k, m = min(n // 64, <Py_ssize_t> SAMPLE), step = n // max(m, 1), n_some = 0, looked_at = 0, different = 0
        cdef int64_t some[BLOCK]
        cdef uint32_t* met
        cdef uint64_t slots = self.mask + 1
        cdef double keys
        if m < 8 * BLOCK:
            return 0
        met = <uint32_t*> calloc(2 * SAMPLE, sizeof(uint32_t))
        if met == NULL:
            return -1
        for k in range(m):
            if new == NULL or new[k * step]:
                some[n_some] = rows[k * step]
                n_some += 1
            if n_some == BLOCK or k == m - 1:
                different += self._meet(some, n_some, met)
                looked_at += n_some
                n_some = 0
        free(met)
        keys = expected(<double> looked_at, <double> different, <double> n * <double> looked_at / <double> m)
        while <double> slots < 2 * keys:
            slots *= 2
        return self._resize(slots) if slots > self.mask + 1 else 0

    cdef Py_ssize_t _meet(self, const int64_t* rows, Py_ssize_t n, uint32_t* met) noexcept nogil:
        """How many of some rows have a key that was not met before, by the two halves of its hash."""
        cdef uint64_t hashes[BLOCK]
        cdef uint8_t whole[BLOCK]
        cdef Py_ssize_t i, new = 0
        cdef uint64_t at
        cdef uint32_t tag
        self._hash(rows, n, hashes, whole)
        for i in range(n):
            tag = <uint32_t> hashes[i] | 1
            at = hashes[i] >> 50                # of 2 * SAMPLE
            while met[at] != 0 and met[at] != tag:
                at = (at + 1) & <uint64_t> (2 * SAMPLE - 1)
            if whole[i] and met[at] == 0:
                new += 1
                met[at] = tag
        return new

    cdef int _resize(self, uint64_t size) noexcept nogil:
        """So many slots, a power of two, with all keys in them."""
        cdef size_t held = size * sizeof(Slot)
        cdef Slot* slots = <Slot*> take(&held)
        cdef uint64_t i, at, mask = size - 1
        cdef int shift = 64
        if slots == NULL:
            return -1
        while size >> (64 - shift) > 1:
            shift -= 1
        memset(slots, 255, size * sizeof(Slot))
        if self.slots != NULL:
            for i in range(self.mask + 1):
                if self.slots[i].code >= 0:
                    at = <uint64_t> self.slots[i].tag << 32 >> shift
                    while slots[at].code >= 0:
                        at = (at + 1) & mask
                    slots[at] = self.slots[i]
        give(self.slots, self.slot_bytes)
        self.slots, self.slot_bytes, self.mask, self.shift = slots, held, mask, shift
        return 0

    # forgetting

    def keep(self, const int64_t[::1] codes):
        """Let go of all other keys."""
        cdef Py_ssize_t k
        cdef int64_t code, size, filled = 0
        cdef uint64_t i, slots = 1024
        cdef Slot* slot
        cdef uint8_t* arena = NULL
        cdef int32_t* given
        cdef size_t room = 0
        for k in range(codes.shape[0]):
            if not 0 <= codes[k] < self.n:
                raise ValueError("a number that no key has")
        given = <int32_t*> realloc(self.free_codes, max(self.n, 1) * sizeof(int32_t))
        if given == NULL:
            raise MemoryError()
        self.free_codes = given
        wanted_, places_ = np.zeros(self.n, np.uint8), np.full(self.n, -1)
        cdef uint8_t[::1] wanted = wanted_
        cdef int64_t[::1] places = places_      # of slots, by number
        for k in range(codes.shape[0]):
            wanted[codes[k]] = 1
        for i in range(self.mask + 1):
            if self.slots[i].code >= 0:
                places[self.slots[i].code] = <int64_t> i
        if not self.alone and self.filled:
            room = self.filled
            arena = <uint8_t*> take(&room)
            if arena == NULL:
                raise MemoryError()
        self.used = 0
        for code in range(self.n):
            if places[code] < 0:
                continue
            slot = &self.slots[places[code]]
            if not wanted[code]:
                slot.code = -1
                self.free_codes[self.n_free] = <int32_t> code
                self.n_free += 1
                continue
            self.used += 1
            if not self.alone:
                size = self._length(slot.word)
                memcpy(arena + filled, self.arena + slot.word, size)
                slot.word = <uint64_t> filled
                filled += size
        if not self.alone and self.filled:
            give(self.arena, self.room)
            self.arena, self.room, self.filled = arena, room, filled
        while 2 * (self.used + BLOCK) > <int64_t> slots:
            slots *= 2
        if self._resize(slots):
            raise MemoryError()

    cdef int64_t _length(self, uint64_t word) noexcept nogil:
        """How many bytes a key takes."""
        cdef int64_t at = <int64_t> word
        cdef uint32_t length
        cdef int i
        for i in range(self.n_parts):
            if self.texts[i]:
                memcpy(&length, self.arena + at, 4)
                at += 4 + <int64_t> length
            else:
                at += 8
        return at - <int64_t> word

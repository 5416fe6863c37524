"""Routing of events by type: which rows of a type column carry which of a few wanted names.

A row is recognised without a branch that depends on the data: its first eight bytes are read as one integer,
masked to its length, and looked up in a small hash table of the wanted names.  Names of 9 to 16 bytes add their
last eight bytes, longer ones eight from the middle; these alone are then compared in full, where all of that agrees.

Up to eight names of up to 16 bytes need no table: route_few.h compares several rows at once with each of them, where
the processor can.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy

from quercus.kernels._typedefs cimport (
    QUERCUS_IS_CHECKED, code_t, index_t, int32_t, int64_t, offset_t, row_t, uint8_t, uint32_t, uint64_t,
)
from quercus.kernels.memory cimport give, take

import numpy as np

from quercus.kernels.memory import empty

CHECKED = bool(QUERCUS_IS_CHECKED)

cdef enum:
    WORD = 8                    # bytes read at once
    BLOCK = 4096                # rows scanned between two looks at the room left for hits
    TRIES = 64                  # multipliers tried for a table without collisions
    MOST_NAMES = 32767          # what a code_t can tell apart
    MOST_ROWS = 2147483647      # of one call; Arrow advises the same limit for one array


cdef struct Slot:
    uint64_t head               # the first WORD bytes, zero padded
    uint64_t tail               # what tail_of makes of the rest of a longer name, otherwise equal to head
    int64_t length              # -1: nothing here
    int32_t code
    int32_t next                # the next slot with this hash, -1: none


cdef struct Table:
    Slot* slots                 # 1 << bits slots found by hash, then the collisions
    const char** texts          # by code; borrowed from the caller's bytes objects
    uint64_t multiplier
    uint64_t masks[WORD + 1]    # masks[k] keeps the first k bytes of a word in memory order
    int shift
    bint chained                # some names share a hash
    int words                   # what the longest wanted name needs: 1 its head, 2 its tail, 3 its middle


cdef struct Hits:
    uint32_t* rows              # within this call: half the memory traffic of row_t
    code_t* codes
    int64_t size
    int64_t capacity


# ---- the table of wanted names

@cython.overflowcheck(False)    # wraps on purpose
cdef inline uint64_t hash_of(const Table* table, uint64_t head, uint64_t tail, int64_t length,
                             int words) noexcept nogil:
    cdef uint64_t mixed = head ^ (<uint64_t>length << 56)
    if words > 1:
        mixed ^= (tail << 23) | (tail >> 41)
    return (mixed * table.multiplier) >> table.shift


cdef uint64_t word_near_end(const uint8_t* data, int64_t size, int64_t start) noexcept nogil:
    """The bytes from start to the end of the buffer, then zeros."""
    cdef uint64_t word = 0
    if 0 <= start < size:
        memcpy(&word, data + start, min(size - start, <int64_t>WORD))
    return word


cdef inline uint64_t word_at(const uint8_t* data, int64_t size, int64_t start) noexcept nogil:
    """The eight bytes at start; what lies outside the buffer reads as zero."""
    cdef uint64_t word
    if start < 0 or start > size - WORD:
        return word_near_end(data, size, start)
    memcpy(&word, data + start, WORD)
    return word


@cython.overflowcheck(False)    # bits shifted out are put back at the other end
cdef inline uint64_t tail_of(const uint8_t* data, int64_t size, int64_t start, int64_t length, uint64_t mask,
                             int words) noexcept nogil:
    """What the rest of the string adds to its head; the mask keeps the next string's bytes out of a short one's."""
    cdef int64_t rest = length - WORD if length > WORD else 0
    cdef uint64_t tail = word_at(data, size, start + rest) & mask, middle
    if words > 2:
        middle = word_at(data, size, start + (rest >> 1)) & mask
        tail ^= (middle << 31) | (middle >> 33)
    return tail


cdef inline int32_t find(const Table* table, const uint8_t* data, int64_t size, int64_t start, int64_t length,
                         int words, bint chained) noexcept nogil:
    """The code of the string at start, or -1.  Arithmetic instead of tests: a type column is a random sequence."""
    cdef uint64_t head, tail, mask, miss
    cdef const Slot* slot
    mask = table.masks[length if <uint64_t>length < WORD else WORD]
    head = word_at(data, size, start) & mask
    tail = head
    if words > 1:
        tail = tail_of(data, size, start, length, mask, words)
    slot = &table.slots[hash_of(table, head, tail, length, words)]
    while True:
        miss = (slot.head ^ head) | <uint64_t>(slot.length ^ length)
        if words > 1:
            miss |= slot.tail ^ tail
        if words > 2 and miss == 0 and length > WORD:
            miss = start < 0 or start + length > size or memcmp(
                data + start + WORD, table.texts[slot.code] + WORD, length - WORD) != 0
        if not chained or slot.next < 0 or miss == 0:
            return slot.code | -<int32_t>(miss != 0)
        slot = &table.slots[slot.next]


cdef int fill(Table* table, list names, int64_t width) except -1:
    """Lay the names out under the table's multiplier; returns how many collided."""
    cdef int64_t i, length, code, spare = width
    cdef int collisions = 0
    cdef const uint8_t* text
    cdef uint64_t head, tail
    cdef Slot* slot
    cdef Slot* last
    for i in range(width):
        table.slots[i].length = -1
        table.slots[i].code = -1
        table.slots[i].next = -1
    for code in range(len(names)):
        text = <const uint8_t*>table.texts[code]
        length = PyBytes_GET_SIZE(names[code])
        head = word_at(text, length, 0)
        tail = head
        if table.words > 1:
            tail = tail_of(text, length, 0, length, table.masks[min(length, <int64_t>WORD)], table.words)
        slot = &table.slots[hash_of(table, head, tail, length, table.words)]
        if slot.length >= 0:
            collisions += 1
            last = slot
            while last.next >= 0:
                last = &table.slots[last.next]
            last.next = spare
            slot = &table.slots[spare]
            spare += 1
        slot.head, slot.tail, slot.length, slot.code, slot.next = head, tail, length, code, -1
    return collisions


@cython.overflowcheck(False)    # the multipliers wrap on purpose
cdef int build(Table* table, list names) except -1:
    cdef int64_t i, count = len(names), width = 16, longest = 0
    cdef int bits = 4, attempt
    cdef uint8_t ones[WORD]
    for name in names:
        if not isinstance(name, bytes):
            raise TypeError(f"names must be bytes, got {name!r}")
    if count > MOST_NAMES:
        raise ValueError(f"at most {MOST_NAMES} names can be routed, got {count}")
    if len(set(names)) != count:
        raise ValueError("a name to route is given twice")
    while width < 4 * count:
        width, bits = 2 * width, bits + 1
    table.texts = <const char**>calloc(count + 1, sizeof(char*))
    table.slots = <Slot*>calloc(width + count, sizeof(Slot))
    if table.texts == NULL or table.slots == NULL:
        raise MemoryError
    for i in range(WORD):
        ones[i] = 255
    for i in range(WORD + 1):
        table.masks[i] = 0
        memcpy(&table.masks[i], ones, i)
    table.shift = 64 - bits
    for i in range(count):
        table.texts[i] = PyBytes_AS_STRING(names[i])
        longest = max(longest, PyBytes_GET_SIZE(names[i]))
    table.words = 1 if longest <= WORD else 2 if longest <= 2 * WORD else 3
    table.multiplier = <uint64_t>0x9E3779B97F4A7C15
    for attempt in range(TRIES if count <= TRIES else 1):
        if attempt:
            table.multiplier = (table.multiplier * <uint64_t>0xD1342543DE82EF95 + 2) | 1
        table.chained = fill(table, names, width) != 0
        if not table.chained:
            break
    return 0


cdef void drop(Table* table) noexcept:
    free(table.texts)
    free(table.slots)


# ---- passes over the rows

cdef inline int valid_bit(const uint8_t[::1] validity, int64_t bit) noexcept nogil:
    return (validity[bit >> 3] >> (bit & 7)) & 1


cdef inline void code_block(const Table* table, const offset_t[::1] offsets, const uint8_t* data, int64_t size,
                            const uint8_t[::1] validity, int64_t bit_offset, bint nulls, int words,
                            int64_t first, int64_t count, code_t[::1] out) noexcept nogil:
    cdef int64_t i, start, end = offsets[first]
    cdef int32_t code
    cdef bint chained = table.chained
    for i in range(count):
        start = end
        end = offsets[first + i + 1]
        code = find(table, data, size, start, end - start, words, chained)
        if nulls:
            code |= valid_bit(validity, bit_offset + first + i) - 1
        out[i] = <code_t>code


cdef void code_rows(const Table* table, const offset_t[::1] offsets, const uint8_t* data, int64_t size,
                    const uint8_t[::1] validity, int64_t bit_offset, bint nulls,
                    int64_t first, int64_t count, code_t[::1] out) noexcept nogil:
    # Literal flags: the C compiler makes six loops, each without the tests it does not need.
    if nulls:
        if table.words == 1:
            code_block(table, offsets, data, size, validity, bit_offset, True, 1, first, count, out)
        elif table.words == 2:
            code_block(table, offsets, data, size, validity, bit_offset, True, 2, first, count, out)
        else:
            code_block(table, offsets, data, size, validity, bit_offset, True, 3, first, count, out)
    elif table.words == 1:
        code_block(table, offsets, data, size, validity, bit_offset, False, 1, first, count, out)
    elif table.words == 2:
        code_block(table, offsets, data, size, validity, bit_offset, False, 2, first, count, out)
    else:
        code_block(table, offsets, data, size, validity, bit_offset, False, 3, first, count, out)


cdef inline void map_block(const index_t[::1] codes, const code_t[::1] mapping, const uint8_t[::1] validity,
                           int64_t bit_offset, bint nulls, int64_t first, int64_t count,
                           code_t[::1] out) noexcept nogil:
    cdef int64_t i, known = mapping.shape[0]
    cdef int64_t index
    cdef code_t code
    for i in range(count):
        index = codes[first + i]
        code = mapping[index] if 0 <= index < known else -1
        if nulls:
            code |= valid_bit(validity, bit_offset + first + i) - 1
        out[i] = code


cdef int make_room(Hits* hits) noexcept nogil:
    """Room for one more block of hits; -1: out of memory."""
    cdef int64_t capacity = hits.capacity
    cdef void* grown
    if hits.size + BLOCK <= capacity:
        return 0
    capacity = 2 * capacity + 2 * BLOCK
    grown = realloc(hits.rows, capacity * sizeof(uint32_t))
    if grown == NULL:
        return -1
    hits.rows = <uint32_t*>grown
    grown = realloc(hits.codes, capacity * sizeof(code_t))
    if grown == NULL:
        return -1
    hits.codes = <code_t*>grown
    hits.capacity = capacity
    return 0


cdef void keep_hits(Hits* hits, const code_t[::1] codes, int64_t count, int64_t first) noexcept nogil:
    """Append the rows of a block that carry a wanted name: always written, kept by moving the end."""
    cdef int64_t i, size = hits.size
    cdef uint32_t* rows = hits.rows
    cdef code_t* kept = hits.codes
    cdef code_t code
    for i in range(count):
        code = codes[i]
        rows[size] = <uint32_t>(first + i)
        kept[size] = code
        size += code >= 0
    hits.size = size


include "route_few.pxi"
include "route_found.pxi"
include "router.pxi"


cdef int64_t check_rows(int64_t rows, const uint8_t[::1] validity, int64_t bit_offset) except -1:
    if rows > MOST_ROWS:
        raise ValueError(f"at most {MOST_ROWS} rows can be routed at once, got {rows}")
    if validity is not None and (bit_offset < 0 or 8 * validity.shape[0] - bit_offset < rows):
        raise ValueError(f"a validity bitmap of {validity.shape[0]} bytes is too short for {rows} rows "
                         f"from bit {bit_offset}")
    return rows


cdef int64_t check_strings(const offset_t[::1] offsets, int64_t size, const uint8_t[::1] validity,
                           int64_t bit_offset) except -1:
    """The number of rows.  Looks at the ends only: word_at keeps what lies between inside the buffer."""
    cdef int64_t rows = offsets.shape[0] - 1
    if rows < 0:
        raise ValueError("offsets need one more entry than there are rows, got none")
    if offsets[0] < 0 or offsets[rows] > size:
        raise ValueError(f"offsets {offsets[0]}..{offsets[rows]} lie outside {size} bytes of data")
    return check_rows(rows, validity, bit_offset)


# ---- what Python calls

def code_strings(const offset_t[::1] offsets, const uint8_t[::1] data, list names, code_t[::1] out,
                 const uint8_t[::1] validity=None, int64_t bit_offset=0):
    """Fill out with the index in names of each row's string, -1 where it is null or none of them.

    >>> import numpy as np
    >>> out = np.empty(3, np.int16)
    >>> code_strings(np.array([0, 2, 3, 5], np.int32), np.frombuffer(b"abcab", np.uint8), [b"ab"], out)
    >>> out.tolist()
    [0, -1, 0]
    """
    cdef int64_t size = data.shape[0]
    cdef int64_t rows = check_strings(offsets, size, validity, bit_offset)
    cdef const uint8_t* bytes_ = &data[0] if size else NULL
    cdef bint nulls = validity is not None
    cdef Table table
    if out.shape[0] != rows:
        raise ValueError(f"out has {out.shape[0]} entries for {rows} rows")
    table.texts, table.slots = NULL, NULL
    try:
        build(&table, names)
        with nogil:
            code_rows(&table, offsets, bytes_, size, validity, bit_offset, nulls, 0, rows, out)
    finally:
        drop(&table)


def find_strings(const offset_t[::1] offsets, const uint8_t[::1] data, list names,
                 const uint8_t[::1] validity=None, int64_t bit_offset=0, row_t first_row=0, int at_once=8):
    """The rows of each name's events, counted from first_row; at_once bounds how many rows a step takes."""
    cdef int64_t size = data.shape[0]
    cdef int64_t rows = check_strings(offsets, size, validity, bit_offset)
    cdef const uint8_t* bytes_ = &data[0] if size else NULL
    cdef bint nulls = validity is not None
    cdef int64_t first = 0, count
    cdef int failed = 0
    cdef code_t[::1] codes
    cdef Found found = Found(len(names), first_row)
    cdef Table table
    cdef Few few
    cdef int width = few_width(at_once)
    table.texts, table.slots = NULL, NULL
    try:
        build(&table, names)
        if width and not nulls and 0 < len(names) <= FEW_NAMES and table.words < 3:
            describe(&few, &table, names)
            few.data = bytes_
            with nogil:
                failed = few_rows(&few, &table, &offsets[0], size, rows, width, found.few)
        else:
            codes = np.full(BLOCK, -1, dtype=np.int16)
            with nogil:
                while first < rows:
                    failed = make_room(&found.hits)
                    if failed:
                        break
                    count = min(<int64_t>BLOCK, rows - first)
                    code_rows(&table, offsets, bytes_, size, validity, bit_offset, nulls, first, count, codes)
                    keep_hits(&found.hits, codes, count, first)
                    first += count
        if failed:
            raise MemoryError
        return found.counted()
    finally:
        drop(&table)


def find_codes(const index_t[::1] codes, const code_t[::1] mapping, int64_t names,
               const uint8_t[::1] validity=None, int64_t bit_offset=0, row_t first_row=0):
    """find_strings for a dictionary-encoded column: mapping[code] is the index of the wanted name, or -1."""
    cdef int64_t rows = check_rows(codes.shape[0], validity, bit_offset)
    cdef bint nulls = validity is not None
    cdef int64_t first = 0, count
    cdef int failed = 0
    cdef int64_t i
    cdef code_t[::1] block = np.full(BLOCK, -1, dtype=np.int16)
    cdef Found found
    if names < 0 or names > MOST_NAMES:
        raise ValueError(f"the number of names must be from 0 to {MOST_NAMES}, got {names}")
    for i in range(mapping.shape[0]):
        if mapping[i] < -1 or mapping[i] >= names:
            raise ValueError(f"mapping[{i}] is {mapping[i]}, with {names} names")
    found = Found(names, first_row)
    with nogil:
        while first < rows:
            failed = make_room(&found.hits)
            if failed:
                break
            count = min(<int64_t>BLOCK, rows - first)
            if nulls:
                map_block(codes, mapping, validity, bit_offset, True, first, count, block)
            else:
                map_block(codes, mapping, validity, bit_offset, False, first, count, block)
            keep_hits(&found.hits, block, count, first)
            first += count
    if failed:
        raise MemoryError
    return found.counted()


def route_strings(const offset_t[::1] offsets, const uint8_t[::1] data, list names,
                  const uint8_t[::1] validity=None, int64_t bit_offset=0, row_t first_row=0, int at_once=8):
    """For each name the row numbers of its events, counted from first_row.

    >>> import numpy as np
    >>> offsets, data = np.array([0, 2, 3, 5], np.int32), np.frombuffer(b"abcab", np.uint8)
    >>> [rows.tolist() for rows in route_strings(offsets, data, [b"c", b"ab"])]
    [[1], [0, 2]]
    """
    return find_strings(offsets, data, names, validity, bit_offset, first_row, at_once).arrays()


def route_codes(const index_t[::1] codes, const code_t[::1] mapping, int64_t names,
                const uint8_t[::1] validity=None, int64_t bit_offset=0, row_t first_row=0):
    """route_strings for a dictionary-encoded column: mapping[code] is the index of the wanted name, or -1.

    The mapping is what code_strings makes of the dictionary's values.

    >>> import numpy as np
    >>> codes, mapping = np.array([2, 0, 2, 1], np.int8), np.array([-1, 1, 0], np.int16)
    >>> [rows.tolist() for rows in route_codes(codes, mapping, 2)]
    [[0, 2], [3]]
    """
    return find_codes(codes, mapping, names, validity, bit_offset, first_row).arrays()

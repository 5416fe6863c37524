# A few short names: several rows at once, where the processor can.

cdef extern from "route_few.h":
    enum:
        FEW_NAMES
        FEW_SPARE

    ctypedef struct Few:
        const void* offsets
        const uint8_t* data
        int64_t limit
        uint64_t* heads
        uint64_t* tails
        int64_t* lengths
        uint32_t** ends
        int names
        int longer

    int few_width(int most) noexcept nogil
    int64_t few_pass(Few* few, int64_t first, int64_t stop, int width, int wide, int rare) noexcept nogil


cdef struct Rows:               # of one name
    uint32_t* rows              # within this call: half the memory traffic of row_t
    int64_t size
    int64_t capacity


cdef void describe(Few* few, const Table* table, list names) noexcept:
    """The names as route_few.h compares them."""
    cdef int64_t i, length
    cdef int shift
    few.names, few.longer = <int>len(names), 0
    for i in range(few.names):
        few.longer |= PyBytes_GET_SIZE(names[i]) >= WORD
    for i in range(few.names):
        length = PyBytes_GET_SIZE(names[i])
        shift = <int>(64 - 8 * min(length, <int64_t>WORD))
        few.lengths[i] = length
        few.heads[i] = word_at(<const uint8_t*>table.texts[i], length, 0) << shift if shift < 64 else 0
        few.tails[i] = few.heads[i] if length <= WORD else word_at(<const uint8_t*>table.texts[i], length, length - WORD)
        if not few.longer:
            few.heads[i] |= <uint64_t>length


cdef int make_rooms(Rows* found, int names, int64_t rows) noexcept nogil:
    """Room for one more block of rows of each name; -1: out of memory."""
    cdef int k
    cdef size_t size
    cdef uint32_t* grown
    for k in range(names):
        if found[k].size + BLOCK + FEW_SPARE <= found[k].capacity:
            continue
        size = (2 * found[k].capacity if found[k].capacity else min(rows, BLOCK + rows // 8)) + BLOCK + FEW_SPARE
        size *= sizeof(uint32_t)
        grown = <uint32_t*>take(&size)
        if grown == NULL:
            return -1
        if found[k].size:
            memcpy(grown, found[k].rows, found[k].size * sizeof(uint32_t))
        give(found[k].rows, found[k].capacity * sizeof(uint32_t))
        found[k].rows, found[k].capacity = grown, size // sizeof(uint32_t)
    return 0


cdef int few_rows(Few* few, const Table* table, const offset_t* offsets, int64_t size, int64_t rows, int width,
                  Rows* found) noexcept nogil:
    """The rows of each name; -1: out of memory."""
    cdef int64_t first = 0, stop, at, hits = 0, before
    cdef int32_t code
    cdef int k, rare = 0
    few.offsets, few.limit = offsets, size - WORD
    while first < rows:
        if make_rooms(found, few.names, rows):
            return -1
        for k in range(few.names):
            few.ends[k] = found[k].rows + found[k].size
        stop = min(first + BLOCK, rows)
        before, hits = hits, 0
        at = first
        while at < stop:
            at = few_pass(few, at, stop, width, sizeof(offset_t) == 8, rare)
            for at in range(at, min(at + width, stop)):
                code = find(table, few.data, size, offsets[at], offsets[at + 1] - offsets[at], table.words, table.chained)
                if code >= 0:
                    few.ends[code][0] = <uint32_t>at
                    few.ends[code] += 1
            at += 1
        for k in range(few.names):
            found[k].size = (<Py_ssize_t>few.ends[k] - <Py_ssize_t>found[k].rows) // <Py_ssize_t>sizeof(uint32_t)
            hits += found[k].size
        rare = 64 * (hits - before) < stop - first  # then, to pass over a group without any is quicker
        first = stop
    return 0

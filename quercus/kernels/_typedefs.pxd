# The C types every kernel speaks, in one place.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef int64_t row_t          # a row number of the input
ctypedef int16_t code_t         # which wanted name a row carries; -1: none of them

ctypedef fused offset_t:        # Arrow offsets: string and large_string
    int32_t
    int64_t

ctypedef fused index_t:         # indices of a dictionary-encoded column
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t

cdef extern from *:
    """
    #ifdef QUERCUS_CHECKED
    #define QUERCUS_IS_CHECKED 1
    #else
    #define QUERCUS_IS_CHECKED 0
    #endif
    """
    const bint QUERCUS_IS_CHECKED

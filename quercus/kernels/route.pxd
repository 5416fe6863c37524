from quercus.kernels._typedefs cimport int64_t, uint8_t, uint32_t


cdef class Router:
    cdef void* state
    cdef list names
    cdef int route(self, const void* offsets, bint wide, const uint8_t* data, int64_t size, int64_t rows) noexcept nogil
    cdef const uint32_t* found(self, int k, int64_t* n) noexcept nogil

from quercus.kernels._typedefs cimport int64_t


cdef class Block:
    cdef void* data
    cdef size_t room


cdef void* take(size_t* size) noexcept nogil
cdef void give(void* at, size_t size) noexcept nogil
cdef object adopt(void* data, Py_ssize_t n, size_t room)

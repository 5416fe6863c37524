"""Memory of large arrays, kept for the next ones when nobody holds them any more: see pool.h."""

cimport cython
cimport numpy as cnp
from cpython.ref cimport Py_INCREF

import numpy as np

from quercus.kernels._typedefs cimport int64_t

cdef extern from "pool.h":
    void* pool_take(size_t* size) noexcept nogil
    void pool_give(void* at, size_t size) noexcept nogil
    size_t pool_kept() noexcept nogil
    enum:
        POOL_MOST
        POOL_LENT

cnp.import_array()

MOST = POOL_MOST + POOL_LENT


cdef void* take(size_t* size) noexcept nogil:
    """At least so many bytes, and how many they are; NULL: no memory."""
    return pool_take(size)


cdef void give(void* at, size_t size) noexcept nogil:
    """What `take` gave, with its size; NULL is nothing."""
    pool_give(at, size)


@cython.freelist(64)
cdef class Block:
    """Memory that a kernel filled, given to numpy without a copy."""

    def __dealloc__(self):
        pool_give(self.data, self.room)


cdef object adopt(void* data, Py_ssize_t n, size_t room):
    """An array of the n integers in memory that `take` gave, `room` bytes in all; gives it back in the end."""
    cdef Block b = Block.__new__(Block)
    b.data, b.room = data, room
    return numbers(b, n)


cdef object numbers(Block b, Py_ssize_t n):
    """An array of the first n integers of a block."""
    cdef cnp.npy_intp size = n
    if n == 0:
        return np.empty(0, dtype=np.int64)
    made = cnp.PyArray_SimpleNewFromData(1, &size, cnp.NPY_INT64, b.data)
    Py_INCREF(b)  # the array takes it
    cnp.PyArray_SetBaseObject(made, b)
    return made


def empty(Py_ssize_t n):
    """An array of n integers, whatever they are."""
    cdef size_t size
    cdef void* at
    if n < 0:
        raise ValueError("an array of less than nothing")
    size = n * sizeof(int64_t)
    at = pool_take(&size)
    if at == NULL and size:
        raise MemoryError()
    return adopt(at, n, size)


def extended(array, Py_ssize_t n):
    """An array of n integers that begins as the one given, which must not be used again, does.

    Without a copy, where it came from `adopt` or `empty` and there is room behind it.

    >>> extended(empty(0), 2).shape, extended(np.arange(3), 4)[:3].tolist()
    ((2,), [0, 1, 2])
    """
    cdef Block b
    if isinstance(array.base, Block):
        b = array.base
        if n * sizeof(int64_t) <= b.room and <size_t> cnp.PyArray_DATA(array) == <size_t> b.data:
            return numbers(b, n)
    made = empty(n)
    made[:len(array)] = array
    return made


def kept():
    """Bytes that wait for the next arrays, those that the system may take among them."""
    return pool_kept()

# Columns of matches as pointers: what reuse.pyx and listing.pyx both read and write.

cdef enum:
    COLUMNS = 32                # of one match

ctypedef fused number_t:
    const int32_t
    const int64_t


cdef int pointers(list columns, Py_ssize_t n, number_t** at) except -1:
    """Where columns of n numbers lie, each as long as the others."""
    cdef number_t[::1] column
    cdef int c
    if len(columns) > COLUMNS:
        raise ValueError(f"more than {COLUMNS} columns")
    for c in range(len(columns)):
        column = columns[c]
        same_length(n, column.shape[0])
        at[c] = &column[0] if n else NULL
    return 0


cdef int places(list columns, Py_ssize_t n, int64_t** at) except -1:
    """The same of columns that are written."""
    cdef int64_t[::1] column
    cdef int c
    pointers(columns, n, <const int64_t**> at)
    for c in range(len(columns)):
        column = columns[c]  # refused, if it may only be read
    return 0


cdef inline int same_length(Py_ssize_t a, Py_ssize_t b) except -1:
    if a != b:
        raise ValueError(f"arrays of different length: {a} and {b}")
    return 0

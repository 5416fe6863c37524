# Pointers between sorted buffers: for each event of one, the first of the other that comes after it.

cdef extern from "ranks.h":
    void ranks_below(
        const int64_t* a, Py_ssize_t j, Py_ssize_t n, const int64_t* b, Py_ssize_t p, Py_ssize_t end, int64_t back, int64_t* out
    ) noexcept nogil
    void ranks_up_to(
        const int64_t* a, Py_ssize_t j, Py_ssize_t n, const int64_t* b, Py_ssize_t p, Py_ssize_t end, int64_t back, int64_t* out
    ) noexcept nogil


cdef inline void pointers(
    const int64_t* a, Py_ssize_t a_lo, Py_ssize_t a_hi, const int64_t* b, Py_ssize_t b_lo, Py_ssize_t b_hi,
    int64_t back, bint at_least, int64_t* out,
) noexcept nogil:
    """For each a: the first b above a - back, or not below it. Only what lies between the first and the last is merged."""
    if a_lo >= a_hi:
        return
    b_lo = first_above(b, b_lo, b_hi, a[a_lo] - back, at_least, b_lo)
    b_hi = first_above(b, b_lo, b_hi, a[a_hi - 1] - back, at_least, b_hi - 1)
    if at_least:
        ranks_below(a, a_lo, a_hi, b, b_lo, b_hi, back, out)
    else:
        ranks_up_to(a, a_lo, a_hi, b, b_lo, b_hi, back, out)


cdef void first_later(
    const int64_t* a, Py_ssize_t a_lo, Py_ssize_t a_hi, const int64_t* b, Py_ssize_t b_lo, Py_ssize_t b_hi, int64_t* out
) noexcept nogil:
    """For each a: the first b above it. Both are sorted."""
    pointers(a, a_lo, a_hi, b, b_lo, b_hi, 0, False, out)


cdef void first_not_before(
    const int64_t* a, Py_ssize_t a_lo, Py_ssize_t a_hi, const int64_t* b, Py_ssize_t b_lo, Py_ssize_t b_hi,
    int64_t back, int64_t* out,
) noexcept nogil:
    """For each a: the first b not below a - back. Both are sorted, and back is not negative."""
    while a_lo < a_hi and a[a_lo] < INT64_MIN + back:
        out[a_lo] = b_lo
        a_lo += 1
    pointers(a, a_lo, a_hi, b, b_lo, b_hi, back, True, out)


cdef void first_beyond(
    const int64_t* a, Py_ssize_t a_lo, Py_ssize_t a_hi, const int64_t* b, Py_ssize_t b_lo, Py_ssize_t b_hi,
    int64_t reach, int64_t* out,
) noexcept nogil:
    """For each a: the first b above a + reach. Both are sorted, and reach is not negative."""
    while a_lo < a_hi and a[a_hi - 1] > INT64_MAX - reach:
        a_hi -= 1
        out[a_hi] = b_hi
    pointers(a, a_lo, a_hi, b, b_lo, b_hi, -reach, False, out)

# Pointers between sorted buffers: for each event of one, the first of the other that comes after it.

DEF LANES = 4       # merges that run side by side


cdef inline void step(
    const int64_t* a, const int64_t* b, Py_ssize_t* j, Py_ssize_t* p, int64_t back, bint at_least, int64_t* out
) noexcept nogil:
    """One step of a merge without a branch on the data: which side moves cannot be foretold."""
    cdef Py_ssize_t moves = b[p[0]] < a[j[0]] - back if at_least else b[p[0]] <= a[j[0]] - back
    out[j[0]] = p[0]
    p[0] += moves
    j[0] += 1 - moves


cdef inline void merge(
    const int64_t* a, Py_ssize_t j, Py_ssize_t a_hi, const int64_t* b, Py_ssize_t p, Py_ssize_t b_hi,
    int64_t back, bint at_least, int64_t* out,
) noexcept nogil:
    while j < a_hi and p < b_hi:
        step(a, b, &j, &p, back, at_least, out)
    while j < a_hi:
        out[j] = p
        j += 1


cdef inline void merge_lanes(
    const int64_t* a, Py_ssize_t a_lo, Py_ssize_t a_hi, const int64_t* b, Py_ssize_t b_lo, Py_ssize_t b_hi,
    int64_t back, bint at_least, int64_t* out,
) noexcept nogil:
    """A step waits for what the step before it has loaded: parts of the buffers, side by side, wait together."""
    cdef Py_ssize_t j0, j1, j2, j3, p0, p1, p2, p3, steps, s
    cdef Py_ssize_t js[LANES + 1]
    cdef Py_ssize_t ps[LANES + 1]
    js[0], ps[0], js[LANES], ps[LANES] = a_lo, b_lo, a_hi, b_hi
    for s in range(1, LANES):
        js[s] = a_lo + s * ((a_hi - a_lo) >> 2)
        ps[s] = first_above(b, ps[s - 1], b_hi, a[js[s]] - back, at_least, ps[s - 1])
    j0, j1, j2, j3, p0, p1, p2, p3 = js[0], js[1], js[2], js[3], ps[0], ps[1], ps[2], ps[3]
    while True:  # so many steps reach no end, whichever side they move
        steps = min(
            min(min(js[1] - j0, ps[1] - p0), min(js[2] - j1, ps[2] - p1)),
            min(min(js[3] - j2, ps[3] - p2), min(js[4] - j3, ps[4] - p3)),
        )
        if steps < 4:
            break
        for s in range(steps):
            step(a, b, &j0, &p0, back, at_least, out)
            step(a, b, &j1, &p1, back, at_least, out)
            step(a, b, &j2, &p2, back, at_least, out)
            step(a, b, &j3, &p3, back, at_least, out)
    merge(a, j0, js[1], b, p0, ps[1], back, at_least, out)
    merge(a, j1, js[2], b, p1, ps[2], back, at_least, out)
    merge(a, j2, js[3], b, p2, ps[3], back, at_least, out)
    merge(a, j3, js[4], b, p3, ps[4], back, at_least, out)


cdef inline void pointers(
    const int64_t* a, Py_ssize_t a_lo, Py_ssize_t a_hi, const int64_t* b, Py_ssize_t b_lo, Py_ssize_t b_hi,
    int64_t back, bint at_least, int64_t* out,
) noexcept nogil:
    """For each a: the first b above a - back, or not below it. Only what lies between the first and the last is merged."""
    if a_lo >= a_hi:
        return
    b_lo = first_above(b, b_lo, b_hi, a[a_lo] - back, at_least, b_lo)
    b_hi = first_above(b, b_lo, b_hi, a[a_hi - 1] - back, at_least, b_hi - 1)
    if a_hi - a_lo < 64:
        merge(a, a_lo, a_hi, b, b_lo, b_hi, back, at_least, out)
    else:
        merge_lanes(a, a_lo, a_hi, b, b_lo, b_hi, back, at_least, out)


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

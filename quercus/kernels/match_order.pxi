# The order of a SEQ's matches: by the last event, then by the others from the first on. A tree's root gives them by the last only.


cdef int put_in_order(Machine* m, Flat* f, Py_ssize_t first) noexcept nogil:
    """Put the matches from `first` on in order: those with one last event are together already."""
    cdef Py_ssize_t n = m.outs[0].n - first, a = 0, b, i
    cdef const int64_t* last = m.outs[f.outs.n - 1].v + first
    cdef int64_t* order
    cdef int64_t* spare
    cdef int c
    if n < 2:
        return 0
    order, spare = <int64_t*> malloc(n * sizeof(int64_t)), <int64_t*> malloc(n * sizeof(int64_t))
    if order == NULL or spare == NULL:
        free(order)
        free(spare)
        return -5
    for i in range(n):
        order[i] = i
    while a < n:
        b = a + 1
        while b < n and last[b] == last[a]:
            b += 1
        sort_matches(m, f, first, order, spare, a, b)
        a = b
    for c in range(f.outs.n - 1):
        memcpy(spare, m.outs[c].v + first, n * sizeof(int64_t))
        for i in range(n):
            m.outs[c].v[first + i] = spare[order[i]]
    free(order)
    free(spare)
    return 0


cdef inline bint comes_before(Machine* m, Flat* f, Py_ssize_t first, int64_t a, int64_t b) noexcept nogil:
    cdef int c
    cdef const int64_t* v
    for c in range(f.outs.n - 1):
        v = m.outs[c].v + first
        if v[a] != v[b]:
            return v[a] < v[b]
    return False


cdef void sort_matches(
    Machine* m, Flat* f, Py_ssize_t first, int64_t* order, int64_t* spare, Py_ssize_t lo, Py_ssize_t hi
) noexcept nogil:
    """Merge sort of order[lo:hi]; what is sorted already costs one pass."""
    cdef Py_ssize_t i, j, k, mid
    cdef int64_t x
    if hi - lo <= 12:
        for i in range(lo + 1, hi):
            x, j = order[i], i
            while j > lo and comes_before(m, f, first, x, order[j - 1]):
                order[j] = order[j - 1]
                j -= 1
            order[j] = x
        return
    mid = (lo + hi) >> 1
    sort_matches(m, f, first, order, spare, lo, mid)
    sort_matches(m, f, first, order, spare, mid, hi)
    if not comes_before(m, f, first, order[mid], order[mid - 1]):
        return
    memcpy(spare + lo, order + lo, (mid - lo) * sizeof(int64_t))
    i, j, k = lo, mid, lo
    while i < mid:
        if j < hi and comes_before(m, f, first, order[j], spare[i]):
            order[k] = order[j]
            j += 1
        else:
            order[k] = spare[i]
            i += 1
        k += 1

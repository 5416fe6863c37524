# The last two components of a chain, where nothing tests them: each event of one with its whole range of the other.


cdef struct Pairs:          # components x and y, between what is bound
    const int64_t* x
    const int64_t* y
    Py_ssize_t n_y
    const int64_t* next_    # for each x: its first y
    const int64_t* limit    # for each x: the first y that is too late for it, or NULL
    int64_t* out_x
    int64_t* out_y


cdef inline bint open_pair(Flat* f, int i) noexcept nogil:
    """Whether components i and i + 1 are the last to be bound, and nothing tests them."""
    return open_end(f) and f.levels[i + 1].preds.n == 0 and f.levels[i + 1].negs.n == 0


cdef inline int64_t partners(const Pairs* w, Py_ssize_t j, int64_t down, int64_t upto) noexcept nogil:
    """How many y from down to upto an x has."""
    cdef int64_t to = w.limit[j] if w.limit != NULL and w.limit[j] < upto else upto
    cdef int64_t n = to - max(w.next_[j], down)
    return n if n > 0 else 0


cdef inline Py_ssize_t write_pairs(
    const Pairs* w, Py_ssize_t lo, Py_ssize_t hi, int64_t down, int64_t upto, Py_ssize_t n
) noexcept nogil:
    """Pairs of the x from lo to hi with the y from down to upto, written from n on; returns the end.

    There must be room for WIDE more. How many partners an x has cannot be foretold, so that no branch depends on it,
    but for how often WIDE are written.
    """
    cdef Py_ssize_t j, k
    cdef int64_t q, count, row
    cdef const int64_t* y = w.y
    cdef int64_t* out_x = w.out_x
    cdef int64_t* out_y = w.out_y
    for j in range(lo, hi):
        q, count, row = max(w.next_[j], down), partners(w, j, down, upto), w.x[j]
        if q + count + WIDE > w.n_y:
            for k in range(count):
                out_x[n + k] = row
                out_y[n + k] = y[q + k]
        else:
            k = 0
            while True:
                write_row(out_x + n + k, row)
                memcpy(out_y + n + k, y + q + k, WIDE * sizeof(int64_t))
                k += WIDE
                if k >= count:
                    break
        n += count
    return n


cdef int64_t count_pairs(const Pairs* w, Py_ssize_t lo, Py_ssize_t hi, int64_t down, int64_t upto) noexcept nogil:
    cdef int64_t total = 0
    cdef Py_ssize_t j
    for j in range(lo, hi):
        total += partners(w, j, down, upto)
    return total


cdef inline void write_row(int64_t* out, int64_t row) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(WIDE):
        out[i] = row


cdef inline void repeat(int64_t* out, int64_t row, Py_ssize_t n) noexcept nogil:
    """`row` n times, and more of it in the room after that."""
    cdef Py_ssize_t k = 0
    while k < n:
        write_row(out + k, row)
        k += WIDE


cdef int pair_room(
    Machine* m, Flat* f, int i, const Pairs* w, Py_ssize_t lo, Py_ssize_t hi, int64_t down, int64_t upto
) noexcept nogil:
    """Room for the pairs of one range and WIDE more in every output."""
    cdef int c
    cdef Py_ssize_t room = (hi - lo) * (upto - max(w.next_[lo], down))
    if room > 65536:  # many pairs may not fit between: count before making room
        room = count_pairs(w, lo, hi, down, upto)
        if room > m.max_matches - m.n_matches:
            return -2
    for c in range(f.outs.n):
        if m.outs[c].n + room + WIDE > m.outs[c].cap and enlarge(&m.outs[c], m.outs[c].n + room + WIDE):
            return -5
    return 0


cdef inline void pairs_of(Machine* m, Flat* f, int i, Pairs* w) noexcept nogil:
    cdef Buf* y = component(m, f, i + 1)
    w.x, w.y, w.n_y = component(m, f, i).row, y.row, y.n
    w.next_, w.limit, w.out_x, w.out_y = f.next_[i], f.limit[i], NULL, NULL


cdef int emit_pairs(Machine* m, Flat* f, int i, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    """The pairs of components i and i + 1, with everything else that is bound."""
    cdef Pairs w
    cdef Py_ssize_t n
    cdef int c, r
    pairs_of(m, f, i, &w)
    r = pair_room(m, f, i, &w, lo, hi, f.down[i + 1], f.upto[i + 1])
    if r < 0:
        return r
    for c in range(f.outs.n):
        if f.outs.v[c] == f.levels[i + 1].slot:
            w.out_x = m.outs[c].v
        elif f.outs.v[c] == f.levels[i + 2].slot:
            w.out_y = m.outs[c].v
    inside(component(m, f, i), lo)
    inside(component(m, f, i), hi - 1)
    n = write_pairs(&w, lo, hi, f.down[i + 1], f.upto[i + 1], m.n_matches) - m.n_matches
    count_bound(m, f, i, hi - lo)
    count_bound(m, f, i + 1, n)
    if n > m.max_matches - m.n_matches:
        return -2
    for c in range(f.outs.n):
        if m.outs[c].v != w.out_x and m.outs[c].v != w.out_y:
            repeat(m.outs[c].v + m.n_matches, row_of(m, f.outs.v[c]), n)
        m.outs[c].n += n
    m.n_matches += n
    m.ticks += 1
    return pause(m) if m.ticks & 4095 == 0 else 0


cdef inline void count_bound(Machine* m, Flat* f, int i, int64_t n) noexcept nogil:
    """Events of component i that were bound."""
    m.compared += n
    m.bound += n
    f.levels[i + 1].compared += n
    f.levels[i + 1].bound += n

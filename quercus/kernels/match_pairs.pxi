# The last two components of a chain, where nothing tests them: each event of one with its whole range of the other.


cdef struct Pairs:          # components x and y, between what is bound
    const int64_t* x
    const int64_t* y
    Py_ssize_t n_y
    const int64_t* next_    # for each x: its first y
    const int64_t* limit    # for each x: the first y that is too late for it, or NULL
    int64_t* out_x
    int64_t* out_y


cdef inline bint open_pair(Machine* m, Flat* f, int i) noexcept nogil:
    """Whether components i and i + 1 are the last to be bound, and nothing tests them."""
    return f.plain_last and f.levels[i + 1].preds.n == 0 and f.levels[i + 1].negs.n == 0 and f.limit[i + 1] == NULL


cdef inline int64_t end_of(const Pairs* w, Py_ssize_t j, int64_t upto) noexcept nogil:
    return w.limit[j] if w.limit != NULL and w.limit[j] < upto else upto


cdef inline Py_ssize_t write_pairs(
    const Pairs* w, Py_ssize_t* lo, Py_ssize_t hi, int64_t upto, int64_t* out_z, int64_t row_z, Py_ssize_t n
) noexcept nogil:
    """Pairs of the x from lo to hi with the y before upto, written from n on; returns the end, and where x ended.

    There must be room for WIDE more. How many partners an x has cannot be foretold, so that no branch depends on it.
    Where there is an out_z, row_z goes there beside each pair.
    """
    cdef Py_ssize_t j = lo[0], k
    cdef int64_t q, count, row
    while j < hi:
        q = w.next_[j]
        if q >= upto:
            break
        count = end_of(w, j, upto) - q
        row = w.x[j]
        if q + WIDE > w.n_y or count > WIDE:
            for k in range(count):
                w.out_x[n + k] = row
                w.out_y[n + k] = w.y[q + k]
                if out_z != NULL:
                    out_z[n + k] = row_z
        else:
            for k in range(WIDE):
                w.out_x[n + k] = row
            memcpy(w.out_y + n, w.y + q, WIDE * sizeof(int64_t))
            if out_z != NULL:
                for k in range(WIDE):
                    out_z[n + k] = row_z
        n += count if count > 0 else 0
        j += 1
    lo[0] = j
    return n


cdef int64_t count_pairs(const Pairs* w, Py_ssize_t lo, Py_ssize_t hi, int64_t upto) noexcept nogil:
    cdef int64_t total = 0, to
    cdef Py_ssize_t j
    for j in range(lo, hi):
        to = end_of(w, j, upto)
        total += to - w.next_[j] if to > w.next_[j] else 0
    return total


cdef inline void repeat(int64_t* out, int64_t row, Py_ssize_t n) noexcept nogil:
    """`row` n times, and more of it in the room after that."""
    cdef Py_ssize_t k = 0, i
    while k < n:
        for i in range(WIDE):
            out[k + i] = row
        k += WIDE


cdef int pair_room(Machine* m, Flat* f, int i, Pairs* w, Py_ssize_t lo, Py_ssize_t hi, int64_t upto) noexcept nogil:
    """Room for the pairs of one range and WIDE more in every output; sets where they go."""
    cdef int c, slot_x = f.levels[i + 1].slot, slot_y = f.levels[i + 2].slot
    cdef Py_ssize_t room = (hi - lo) * (upto - w.next_[lo])
    if room > 65536:  # many pairs may not fit between: count before making room
        room = count_pairs(w, lo, hi, upto)
        if room > m.max_matches - m.n_matches:
            return -2
    for c in range(f.outs.n):
        if m.outs[c].n + room + WIDE > m.outs[c].cap and enlarge(&m.outs[c], m.outs[c].n + room + WIDE):
            return -5
        if f.outs.v[c] == slot_x:
            w.out_x = m.outs[c].v
        elif f.outs.v[c] == slot_y:
            w.out_y = m.outs[c].v
    return 0


cdef inline void pairs_of(Machine* m, Flat* f, int i, Pairs* w) noexcept nogil:
    cdef Buf* y = component(m, f, i + 1)
    w.x, w.y, w.n_y = component(m, f, i).row, y.row, y.n
    w.next_, w.limit, w.out_x, w.out_y = f.next_[i], f.limit[i], NULL, NULL


cdef inline void count_bound(Machine* m, Flat* f, int i, int64_t n_x, int64_t n_y) noexcept nogil:
    """Events of components i and i + 1 that were bound."""
    m.compared += n_x + n_y
    m.bound += n_x + n_y
    f.levels[i + 1].compared += n_x
    f.levels[i + 1].bound += n_x
    f.levels[i + 2].compared += n_y
    f.levels[i + 2].bound += n_y


cdef int emit_pairs(Machine* m, Flat* f, int i, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    """The pairs of components i and i + 1, with everything else that is bound."""
    cdef Pairs w
    cdef Py_ssize_t first = lo, n
    cdef int c, r
    pairs_of(m, f, i, &w)
    r = pair_room(m, f, i, &w, lo, hi, f.upto[i + 1])
    if r < 0:
        return r
    n = write_pairs(&w, &lo, hi, f.upto[i + 1], NULL, 0, m.n_matches) - m.n_matches
    count_bound(m, f, i, lo - first, n)
    if n > m.max_matches - m.n_matches:
        return -2
    for c in range(f.outs.n):
        if m.outs[c].v != w.out_x and m.outs[c].v != w.out_y:
            repeat(m.outs[c].v + m.n_matches, row_of(m, f.outs.v[c]), n)
        m.outs[c].n += n
    m.n_matches += n
    m.ticks += 1
    return pause(m) if m.ticks & 4095 == 0 else 0


cdef int pairs_before(Machine* m, Flat* f, Py_ssize_t begin, const int* some, int count) noexcept nogil:
    """emit_pairs for some events of the last of three components, with all that it needs at hand."""
    cdef const int64_t* rows = component(m, f, 2).row
    cdef Py_ssize_t e, first, lo, hi, n = m.n_matches, before = n, looked = 0, room = -1
    cdef int64_t* out_z = NULL
    cdef int64_t upto
    cdef Pairs w
    cdef int c, r, j
    pairs_of(m, f, 0, &w)
    for j in range(count):
        e = begin + some[j]
        lo, hi, upto = f.from_at[e], f.upto_at[0][e], f.upto_at[1][e]
        if n + (hi - lo) * (upto - w.next_[lo]) + WIDE > room:
            m.n_matches = n
            for c in range(3):
                m.outs[c].n = n
            r = pair_room(m, f, 0, &w, lo, hi, upto)
            if r < 0:
                return r
            room = min(min(m.outs[0].cap, m.outs[1].cap), m.outs[2].cap)
            for c in range(3):
                if m.outs[c].v != w.out_x and m.outs[c].v != w.out_y:
                    out_z = m.outs[c].v
        first = lo
        n = write_pairs(&w, &lo, hi, upto, out_z, rows[e], n)
        looked += lo - first
        if n > m.max_matches:
            return -2
    count_bound(m, f, 0, looked, n - before)
    for c in range(3):
        m.outs[c].n = n
    m.n_matches = n
    m.ticks += count
    return pause(m) if m.ticks & 4095 < count else 0

# The last two components of a chain, where nothing tests them: each event of one with its whole range of the other.

DEF WIDE = 8        # rows written at once, whether there are as many or not: what is too much is written over


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
    const Pairs* w, Py_ssize_t* lo, Py_ssize_t hi, int64_t upto, Py_ssize_t n
) noexcept nogil:
    """Pairs of the x from lo to hi with the y before upto, written from n on; returns the end, and where x ended.

    There must be room for WIDE more. How many partners an x has cannot be foretold, so that no branch depends on it.
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
        else:
            for k in range(WIDE):
                w.out_x[n + k] = row
            memcpy(w.out_y + n, w.y + q, WIDE * sizeof(int64_t))
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


cdef int emit_pairs(Machine* m, Flat* f, int i, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    """The pairs of components i and i + 1, with everything else that is bound."""
    cdef Pairs w
    cdef Py_ssize_t first = lo, n
    cdef int c, r
    pairs_of(m, f, i, &w)
    r = pair_room(m, f, i, &w, lo, hi, f.upto[i + 1])
    if r < 0:
        return r
    n = write_pairs(&w, &lo, hi, f.upto[i + 1], m.n_matches) - m.n_matches
    m.compared += lo - first + n
    m.bound += lo - first + n
    if n > m.max_matches - m.n_matches:
        return -2
    for c in range(f.outs.n):
        if m.outs[c].v != w.out_x and m.outs[c].v != w.out_y:
            repeat(m.outs[c].v + m.n_matches, row_of(m, f.outs.v[c]), n)
        m.outs[c].n += n
    m.n_matches += n
    m.ticks += 1
    return pause(m) if m.ticks & 4095 == 0 else 0


cdef int chain_of_three(Machine* m, Flat* f) noexcept nogil:
    """emit_pairs for every event of the last component, with all that it needs at hand."""
    cdef Buf* end = component(m, f, 2)
    cdef Py_ssize_t e, first, lo, hi, n = m.n_matches, before, room = -1, last = min(end.hi, m.last)
    cdef Py_ssize_t sample = end.lo + ((end.hi - end.lo) >> 5) if end.hi - end.lo > 4096 else -1
    cdef const int64_t* from_at = f.from_at
    cdef const int64_t* upto_x = f.upto_at[0]
    cdef const int64_t* upto_y = f.upto_at[1]
    cdef int64_t* out_z = NULL
    cdef int64_t upto
    cdef Pairs w
    cdef int c, r
    pairs_of(m, f, 0, &w)
    for e in range(max(end.lo, m.first), last):
        m.compared += 1
        lo, hi, upto = from_at[e], upto_x[e], upto_y[e]
        if e == sample:
            reserve(m, f)
            room = -1
        if lo >= hi or w.next_[lo] >= upto:
            continue
        if n + (hi - lo) * (upto - w.next_[lo]) + WIDE > room:
            r = pair_room(m, f, 0, &w, lo, hi, upto)
            if r < 0:
                return r
            room = INT64_MAX
            for c in range(f.outs.n):
                room = min(room, m.outs[c].cap)
                if m.outs[c].v != w.out_x and m.outs[c].v != w.out_y:
                    out_z = m.outs[c].v
        before, first = n, lo
        n = write_pairs(&w, &lo, hi, upto, n)
        repeat(out_z + before, end.row[e], n - before)
        m.compared += lo - first + n - before
        m.bound += lo - first + n - before
        if n > m.max_matches:
            return -2
        m.n_matches = n
        for c in range(f.outs.n):
            m.outs[c].n = n
        m.ticks += 1
        if m.ticks & 4095 == 0:
            r = pause(m)
            if r < 0:
                return r
    return 0

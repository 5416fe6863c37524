# A chain in which nothing tests single events: all its matches, written column by column.

DEF MOST = 16       # components


cdef struct Walk:
    Pairs pairs             # of the last two components to be bound
    int64_t* out[MOST]      # by component: where its rows go
    Py_ssize_t n            # matches so far
    Py_ssize_t room
    int64_t looked[MOST]    # by component: events that were bound


cdef bint is_open(Flat* f) noexcept nogil:
    """Whether a chain can be walked: every component goes out, and nothing but order, window and limits is asked of it."""
    cdef int i
    if not 3 <= f.n_levels <= MOST or f.outs.n != f.n_levels or not open_end(f):
        return False
    for i in range(f.n_levels):
        if f.levels[i].preds.n or f.levels[i].negs.n:
            return False
    return True


cdef void find_outs(Machine* m, Flat* f, Walk* w) noexcept nogil:
    """Where the rows of each component go, and how many there is room for."""
    cdef int i, c
    w.room = m.outs[0].cap
    for i in range(f.n_levels):
        for c in range(f.outs.n):
            if f.outs.v[c] == f.levels[level_of(m, f, i)].slot:
                w.out[i] = m.outs[c].v
                w.room = min(w.room, m.outs[c].cap)
    w.pairs.out_x, w.pairs.out_y = w.out[f.n_levels - 3], w.out[f.n_levels - 2]


cdef int walk_before(Machine* m, Flat* f, Py_ssize_t begin, const int* some, int count) noexcept nogil:
    """The matches of some events of the last component."""
    cdef int k = f.n_levels, i, j, r = 0
    cdef const int64_t* rows = component(m, f, k - 1).row
    cdef Py_ssize_t e, start
    cdef Walk w
    pairs_of(m, f, k - 3, &w.pairs)
    find_outs(m, f, &w)
    w.n = m.n_matches
    for i in range(k):
        w.looked[i] = 0
    for j in range(count):
        e, start = begin + some[j], w.n
        look_back(f, e)
        r = walk(m, f, &w, 0, f.from_at[e], f.upto_at[0][e])
        if r < 0:
            return r
        repeat(w.out[k - 1] + start, rows[e], w.n - start)
    for i in range(k - 1):
        count_bound(m, f, i, w.looked[i])
    f.levels[0].bound += count
    settle_walk(m, f, &w)
    return 0


cdef inline void settle_walk(Machine* m, Flat* f, Walk* w) noexcept nogil:
    cdef int c
    for c in range(f.outs.n):
        m.outs[c].n = w.n
    m.n_matches = w.n


cdef int walk(Machine* m, Flat* f, Walk* w, int i, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    """What the events of component i from lo to hi lead to, without the components before it."""
    cdef const int64_t* rows
    cdef Py_ssize_t j, start, first = 0, upto = 0
    cdef int r
    if i == f.n_levels - 3:
        return walk_pairs(m, f, w, lo, hi)
    rows = component(m, f, i).row
    w.looked[i] += hi - lo
    for j in range(lo, hi):
        range_after(f, i, inside(component(m, f, i), j), &first, &upto)
        if first >= upto:
            continue
        start = w.n
        r = walk(m, f, w, i + 1, first, upto)
        if r < 0:
            return r
        repeat(w.out[i] + start, rows[j], w.n - start)
    return 0


cdef inline int walk_pairs(Machine* m, Flat* f, Walk* w, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    cdef int i = f.n_levels - 3, r
    cdef int64_t down = f.down[i + 1], upto = f.upto[i + 1]
    cdef Py_ssize_t start = w.n
    inside(component(m, f, i), lo)
    inside(component(m, f, i), hi - 1)
    if w.n + (hi - lo) * (upto - max(w.pairs.next_[lo], down)) + WIDE > w.room:
        settle_walk(m, f, w)
        r = pair_room(m, f, i, &w.pairs, lo, hi, down, upto)
        if r < 0:
            return r
        find_outs(m, f, w)
    w.n = write_pairs(&w.pairs, lo, hi, down, upto, w.n)
    w.looked[i] += hi - lo
    w.looked[i + 1] += w.n - start
    if w.n > m.max_matches:
        return -2
    m.ticks += 1
    return pause(m) if m.ticks & 4095 == 0 else 0

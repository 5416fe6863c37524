# A SEQ of plain components that ends in a set, SEQ(a, b, C+), in one window: bound from the first component on.
#
# The set is all of C between the last plain component and the end of the window after the first one. Where the first
# component is earlier, the set ends no later: so the matches come out by end, then by start, and need no sorting.


cdef void point_ahead(Machine* m, Flat* f) noexcept nogil:
    """Pointers of this segment: to the next component, to the first event of the set that can be reached, and where the
    window ends.
    """
    cdef int i, k = f.n_levels
    cdef Buf* a
    cdef Buf* first = component(m, f, 0)
    cdef Buf* set_ = &m.bufs[m.slot_buf[m.sets[f.trail_set].slot]]
    cdef Win* w = &m.wins[f.chain_win]
    cdef Py_ssize_t j
    for i in range(k - 1, -1, -1):
        a = component(m, f, i)
        f.lows[i], f.highs[i] = a.lo, a.hi
        if i == k - 1:
            first_later(a.order_, a.lo, a.hi, set_.order_, set_.lo, set_.hi, f.next_[i])
            memcpy(f.chase[i] + a.lo, f.next_[i] + a.lo, (a.hi - a.lo) * sizeof(int64_t))
        else:
            point_between(m, f, i)
            for j in range(a.lo, a.hi):
                f.chase[i][j] = pointer(m, f, f.chase, i + 1, f.next_[i][j]) if f.next_[i][j] < component(m, f, i + 1).hi else set_.hi
    if w.count:
        first_beyond(first.pos, first.lo, first.hi, set_.pos, set_.lo, set_.hi, w.size, f.beyond)
    else:
        first_beyond(first.ts, first.lo, first.hi, set_.ts, set_.lo, set_.hi, w.size, f.beyond)
    point_limits(m, f)


cdef int trail(Machine* m, Flat* f) noexcept nogil:
    cdef Buf* first = component(m, f, 0)
    cdef Py_ssize_t a
    cdef Level* level = &f.levels[level_of(m, f, 0)]
    cdef int r
    point_ahead(m, f)
    for a in range(max(first.lo, m.first), min(first.hi, m.last)):
        m.compared += 1
        level.compared += 1
        if f.chase[0][a] >= f.beyond[a]:
            continue
        m.bound += 1
        level.bound += 1
        m.cur[level.slot] = inside(first, a)
        r = emit_sets(m, f, a, a + 1, f.beyond[a]) if f.n_levels == 1 else ahead(m, f, 1, a, f.beyond[a])
        if r < 0:
            return r
    return 0


cdef int ahead(Machine* m, Flat* f, int i, Py_ssize_t before, int64_t beyond) noexcept nogil:
    """Bind component i to each event after that of the component before it, as long as the set can be reached."""
    cdef Buf* b = component(m, f, i)
    cdef Py_ssize_t j, lo = pointer(m, f, f.next_, i - 1, before), hi = b.hi
    cdef Level* level = &f.levels[level_of(m, f, i)]
    cdef int r
    if f.limit[i - 1] != NULL and f.limit[i - 1][before] < hi:
        hi = f.limit[i - 1][before]
    if i == f.n_levels - 1:
        j = lo
        while j < hi and pointer(m, f, f.next_, i, j) < beyond:
            j += 1
        m.compared += j - lo
        m.bound += j - lo
        level.compared += j - lo
        level.bound += j - lo
        return emit_sets(m, f, lo, j, beyond) if lo < j else 0
    for j in range(lo, hi):
        if pointer(m, f, f.chase, i, j) >= beyond:
            break
        m.compared += 1
        m.bound += 1
        level.compared += 1
        level.bound += 1
        m.cur[level.slot] = j
        r = tick(m)
        if r >= 0:
            r = ahead(m, f, i + 1, j, beyond)
        if r < 0:
            return r
    return 0


cdef int emit_sets(Machine* m, Flat* f, Py_ssize_t lo, Py_ssize_t hi, int64_t beyond) noexcept nogil:
    """A match for each event of the last plain component from lo to hi, with what is bound and the set after it."""
    cdef Buf* last = component(m, f, f.n_levels - 1)
    cdef const int64_t* next_ = f.next_[f.n_levels - 1]
    cdef Out* starts = &m.elems[0]
    cdef Out* ends = &m.elems[1]
    cdef Out* o
    cdef Py_ssize_t n = hi - lo, j
    cdef int c, slot = f.levels[level_of(m, f, f.n_levels - 1)].slot
    if n > m.max_matches - m.n_matches:
        return -2
    if starts.n + n > starts.cap and enlarge(starts, starts.n + n):
        return -5
    if ends.n + n + WIDE > ends.cap and enlarge(ends, ends.n + n + WIDE):
        return -5
    for c in range(f.outs.n):
        o = &m.outs[c]
        if o.n + n + WIDE > o.cap and enlarge(o, o.n + n + WIDE):
            return -5
        if f.outs.v[c] == slot:
            memcpy(o.v + o.n, last.row + lo, n * sizeof(int64_t))
        else:
            repeat(o.v + o.n, row_of(m, f.outs.v[c]), n)
        o.n += n
    if QUERCUS_IS_CHECKED:
        for j in range(lo, hi):
            if next_[inside(last, j)] >= beyond or beyond > m.bufs[m.slot_buf[m.sets[f.trail_set].slot]].hi:
                abort()
    memcpy(starts.v + starts.n, next_ + lo, n * sizeof(int64_t))
    starts.n += n
    repeat(ends.v + ends.n, beyond, n)
    ends.n += n
    m.n_matches += n
    m.ticks += 1
    return pause(m) if m.ticks & 4095 == 0 else 0

# Releases: whether a match of a stream is decided, and whether this search is the one that gives it (local/release.py).


cdef bint is_released(Machine* m, Flat* f) noexcept nogil:
    """Whether the match that is bound came to be decided between `before` and `now`, and no other search gives it."""
    cdef int i
    cdef int64_t least = 0
    cdef Win* w
    if not over(m, f, &m.now) or (m.end_row < m.before.row and over(m, f, &m.before)):
        return False
    if not has_pivot(m, f) or (f.ending != NO_ENDING and is_ending(m, f)):
        return False
    for i in range(f.earlier.n):
        w = &m.wins[f.earlier.v[i]]
        if has_least(m, w, &least) and past(&m.now, w.count, least, w.size) and not past(&m.before, w.count, least, w.size):
            return False
    return True


cdef bint has_pivot(Machine* m, Flat* f) noexcept nogil:
    """Whether what was bound first is the last event of the match, or the first in the window that is over."""
    cdef int slot = f.levels[0].slot, i
    cdef Set* s
    cdef Buf* b
    if f.due < 0:
        s = &m.sets[f.pivot_set] if f.pivot_set >= 0 else NULL
        if s != NULL and (s.n == 0 or element(s, s.n - 1) != m.cur[slot]):
            return False
        return row_of(m, slot) == m.end_row and (f.exact.n == 0 or fills(m))
    for i in range(m.wins[f.due].sets.n):
        s = &m.sets[m.wins[f.due].sets.v[i]]
        b = &m.bufs[m.slot_buf[s.slot]]
        if s.n and b.pos[inside(b, element(s, 0))] < pos_of(m, slot):
            return False
    return f.pivot_set < 0 or (m.sets[f.pivot_set].n > 0 and element(&m.sets[f.pivot_set], 0) == m.cur[slot])


cdef bint is_ending(Machine* m, Flat* f) noexcept nogil:
    """Whether the search from the last event finds the match in this push."""
    cdef int i
    cdef bint fixed = f.ending == BY_ANY
    for i in range(f.slots.n):
        fixed = fixed or row_of(m, f.slots.v[i]) == m.end_row
    if not fixed or (f.ending == BY_EXACT and not fills(m)):
        return False
    return m.end_row >= m.before.row or (f.ending in (BY_DELAYED, BY_ANY) and m.before.ts < m.now.ts and m.end_ts >= m.before.ts)


cdef inline bint fills(Machine* m) noexcept nogil:
    """Whether the match takes up the whole window."""
    return sat_sub(m.end_ts, m.start_ts) >= m.window_size


cdef bint can_fill(Machine* m, Flat* f, int64_t ts) noexcept nogil:
    """Whether a match that ends then can begin a whole window before."""
    cdef int i
    cdef Py_ssize_t at_
    cdef Buf* b
    cdef int64_t start
    if sub_overflows(ts, m.window_size, &start):
        return False
    for i in range(f.exact.n):
        b = &m.bufs[f.exact.v[i]]
        at_ = first_above(b.ts, b.lo, b.hi, start, True, b.lo)
        if at_ < b.hi and b.ts[inside(b, at_)] == start:
            return True
    return False


cdef void beyond_previous(Machine* m, Flat* f, Bounds* b) noexcept nogil:
    """The event before the pivot is no element of the set: so the last component lies beyond a window from there."""
    cdef Buf* buf = &m.bufs[m.slot_buf[f.levels[0].slot]]
    cdef Py_ssize_t i = m.cur[f.levels[0].slot] - 1
    if i < buf.lo:
        return
    if m.count_window:
        b.lo_pos = max(b.lo_pos, sat_add(buf.pos[inside(buf, i)], sat_add(m.window_size, 1)))
    else:
        b.lo_ts = max(b.lo_ts, sat_add(buf.ts[inside(buf, i)], sat_add(m.window_size, 1)))


cdef bint can_begin(Machine* m, Flat* f) noexcept nogil:
    """Whether the pivot can be the first element of its set: nothing before it could be one as well."""
    cdef Set* s = &m.sets[f.pivot_set]
    cdef Buf* b = &m.bufs[m.slot_buf[s.slot]]
    cdef Py_ssize_t lo = 0, hi = 0, pivot = m.cur[f.levels[0].slot], i
    if f.due < 0:
        return True  # it is to be the last
    set_interval(m, s, &lo, &hi)
    if not lo <= pivot < hi:
        return False
    if f.sets.n > 1 or f.n_pairs or not fits(m, s, lo, hi - 1):
        return True  # sets that begin later may not fit with earlier elements
    for i in range(pivot - 1, lo - 1, -1):
        m.compared += 1
        s.compared += 1
        if is_element(m, s, inside(b, i)):
            return False
    return True


cdef bint is_element(Machine* m, Set* s, Py_ssize_t i) noexcept nogil:
    """Whether an event between a set's neighbours could be an element."""
    cdef int j
    m.cur[s.slot] = i
    for j in range(s.distinct.n):
        if row_of(m, s.distinct.v[j]) == m.bufs[m.slot_buf[s.slot]].row[i]:
            return False
    for j in range(s.preds.n):
        if not holds(m, s.preds.v[j]):
            return False
    return True


cdef bint over(Machine* m, Flat* f, Moment* t) noexcept nogil:
    """Whether at that moment no later event could violate the match or enlarge a set of it."""
    cdef int i
    for i in range(f.all_negs.n):
        if not out_of_reach(m, &m.negs[f.all_negs.v[i]], t):
            return False
    for i in range(f.holds_sets.n):
        if not cannot_grow(m, f, f.holds_sets.v[i], t):
            return False
    return True


cdef bint out_of_reach(Machine* m, Neg* g, Moment* t) noexcept nogil:
    """Whether no event from that moment on can lie in a negation's scope."""
    cdef int64_t after = INT64_MIN, unused = 0, end
    if g.right == 0 or edge(m, g.before, g.n_before, False, &unused):
        return True
    if m.count_window:
        return g.right == 2 or past(t, True, m.start_pos, m.window_size)
    end = sat_add(m.start_ts, m.window_size) if g.right == 1 else m.end_ts
    if t.ts > end or t.ts == INT64_MAX:
        return True
    return not m.by_arrival and edge(m, g.after, g.n_after, True, &after) and after >= end


cdef bint cannot_grow(Machine* m, Flat* f, int number, Moment* t) noexcept nogil:
    """Whether no event from that moment on can be an element of a set: a window is over, or what follows is there."""
    cdef Set* s = &m.sets[number]
    cdef int64_t after = INT64_MIN, least
    cdef int i
    cdef Set* other
    cdef Buf* b
    cdef Win* w
    for i in range(s.after.n):
        after = max(after, order_of(m, s.after.v[i]))
    for i in range(f.n_pairs):
        if f.pairs[i].kind != 0:
            continue
        if f.pairs[i].a == number and m.sets[f.pairs[i].b].n:
            return True
        other = &m.sets[f.pairs[i].a]
        if f.pairs[i].b == number and other.n:
            b = &m.bufs[m.slot_buf[other.slot]]
            after = max(after, b.order_[inside(b, element(other, other.n - 1))])
    for i in range(s.wins.n):
        w = &m.wins[s.wins.v[i]]
        if window_over(m, w, t):
            return True
        if not m.by_arrival and not w.count and has_least(m, w, &least) and after >= sat_add(least, w.size):
            return True  # strict order leaves no time
    return False


cdef inline bint past(Moment* t, bint count, int64_t start, int64_t size) noexcept nogil:
    return (t.pos if count else t.ts) > sat_add(start, size) or (t.pos if count else t.ts) == INT64_MAX


cdef bint window_over(Machine* m, Win* w, Moment* t) noexcept nogil:
    """Whether a window around what is bound of it takes in no event from that moment on."""
    cdef int64_t least = INT64_MAX
    has_least(m, w, &least)
    return past(t, w.count, least, w.size)


cdef bint has_least(Machine* m, Win* w, int64_t* least) noexcept nogil:
    """Where a window begins, if anything is bound in it."""
    cdef int i
    cdef bint found = False
    cdef Set* s
    cdef Buf* b
    least[0] = INT64_MAX
    for i in range(w.slots.n):
        least[0] = min(least[0], place_of(m, w.slots.v[i], w.count))
        found = True
    for i in range(w.sets.n):
        s = &m.sets[w.sets.v[i]]
        b = &m.bufs[m.slot_buf[s.slot]]
        if s.n:
            least[0] = min(least[0], (b.pos if w.count else b.ts)[inside(b, element(s, 0))])
            found = True
    return found

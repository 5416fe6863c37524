# Searching: the range of each component from what is bound, predicates, negations, and the match when all are bound.


cdef void narrow(Machine* m, Level* level, Bounds* b) noexcept nogil:
    """Bounds of a slot from what is bound: order from its neighbours, windows from the extent so far."""
    cdef int i, j, slot
    cdef int64_t v, low, high
    cdef Win* w
    for i in range(level.after.n):
        v = order_of(m, level.after.v[i])
        if v > b.lo_order:
            b.lo_order = v
    for i in range(level.before.n):
        v = order_of(m, level.before.v[i])
        if v < b.hi_order:
            b.hi_order = v
    for i in range(level.below.n):
        b.hi_pos = min(b.hi_pos, pos_of(m, level.below.v[i]) - 1)
    for i in range(level.above.n):
        b.lo_pos = max(b.lo_pos, pos_of(m, level.above.v[i]) + 1)
    for i in range(level.n_reach):
        w = &m.wins[level.reach[i].win]
        low, high = INT64_MAX, INT64_MIN
        for j in range(level.reach[i].slots.n):
            slot = level.reach[i].slots.v[j]
            v = place_of(m, slot, w.count)
            low = min(low, v)
            high = max(high, v)
        if low == INT64_MAX and high == INT64_MIN:
            continue
        if w.count:
            b.lo_pos, b.hi_pos = max(b.lo_pos, sat_sub(high, w.size)), min(b.hi_pos, sat_add(low, w.size))
        else:
            b.lo_ts, b.hi_ts = max(b.lo_ts, sat_sub(high, w.size)), min(b.hi_ts, sat_add(low, w.size))


cdef void interval(Machine* m, Buf* buf, Bounds* b, Py_ssize_t* lo, Py_ssize_t* hi) noexcept nogil:
    """The part of a buffer inside the bounds. `lo` and `hi` come in as hints."""
    cdef Py_ssize_t first = buf.lo, last = buf.hi, hint_lo = lo[0], hint_hi = hi[0]
    if b.lo_order != INT64_MIN:
        first = first_above(buf.order_, first, last, b.lo_order, False, hint_lo)
    if b.lo_ts != INT64_MIN:
        first = first_above(buf.ts, first, last, b.lo_ts, True, hint_lo)
    if b.lo_pos != INT64_MIN:
        first = first_above(buf.pos, first, last, b.lo_pos, True, hint_lo)
    if b.hi_order != INT64_MAX:
        last = first_above(buf.order_, first, last, b.hi_order, True, hint_hi)
    if b.hi_ts != INT64_MAX:
        last = first_above(buf.ts, first, last, b.hi_ts, False, hint_hi)
    if b.hi_pos != INT64_MAX:
        last = first_above(buf.pos, first, last, b.hi_pos, False, hint_hi)
    lo[0], hi[0] = first, last


cdef bint excluded(Machine* m, int neg, int64_t row) noexcept nogil:
    cdef Neg* g = &m.negs[neg]
    cdef int i
    cdef Py_ssize_t j
    cdef Set* s
    cdef Buf* b
    for i in range(g.ex_slots.n):
        if row_of(m, g.ex_slots.v[i]) == row:
            return True
    for i in range(g.ex_sets.n):
        s = &m.sets[g.ex_sets.v[i]]
        b = &m.bufs[m.slot_buf[s.slot]]
        if s.dense:
            j = first_above(b.row, s.first, s.first + s.n, row, True, s.first)
            if j < s.first + s.n and b.row[inside(b, j)] == row:
                return True
            continue
        for j in range(s.n):
            if b.row[inside(b, s.elems[j])] == row:
                return True
    return False


cdef int search(Machine* m, Flat* f, int k, Bounds* scope) noexcept nogil:
    """Bind level k and all after it. 1: found (a negated body), 0: went through, below 0: stop."""
    cdef Level* level
    cdef Buf* buf
    cdef Bounds b
    cdef Py_ssize_t lo, hi, i
    cdef int j, r
    cdef int64_t row
    cdef bint good, sifted
    cdef Sift sift
    if k == f.n_levels:
        return complete(m, f, scope)
    level = &f.levels[k]
    if level.sub >= 0:
        return hold_match(m, f) if k == f.hold and k and not m.released else bind_results(m, f, k, scope)
    buf = &m.bufs[m.slot_buf[level.slot]]
    b = scope[0]
    narrow(m, level, &b)
    if k == f.beyond_level:
        beyond_previous(m, f, &b)
    lo, hi = level.hint_lo, level.hint_hi
    interval(m, buf, &b, &lo, &hi)
    level.hint_lo, level.hint_hi = lo, hi
    if level.previous >= 0 and lo <= m.cur[level.previous]:
        lo = m.cur[level.previous] + 1
    if level.following >= 0 and hi > m.cur[level.following]:
        hi = m.cur[level.following]
    if k == 0 and f.root and f.n_joins == 0:
        lo, hi = max(lo, m.first), min(hi, m.last)
    if lo >= hi:
        return 0
    if k == f.n_levels - 1 and f.plain_last:
        return emit_range(m, f, level.slot, buf, lo, hi)
    sifted = hi - lo >= m.sift_from and level.sieves.n > 0
    if not sifted:
        level.compared += hi - lo
    elif k == f.n_levels - 1 and f.sifted_last:
        return emit_sifted(m, f, level, buf, lo, hi)
    elif not begin_sift(m, &level.sieves, buf, lo, hi, &level.compared, &sift):
        return 0
    i = lo - 1
    while True:
        if sifted:
            i = next_sifted(m, &sift)
            if i == hi:
                return sift.stop
        else:
            i += 1
            if i == hi:
                return 0
            m.compared += 1
        m.cur[level.slot] = i
        r = tick(m)
        if r < 0:
            return r
        row = buf.row[inside(buf, i)]
        good = k > 0 or f.exact.n == 0 or can_fill(m, f, buf.ts[i])
        for j in range(level.distinct.n):
            if row_of(m, level.distinct.v[j]) == row:
                good = False
                break
        if good and b.neg >= 0 and excluded(m, b.neg, row):
            good = False
        if not good:
            continue
        for j in range(level.sifted if sifted else 0, level.preds.n):
            if not holds(m, level.preds.v[j]):
                good = False
                break
        if not good:
            continue
        for j in range(level.negs.n):
            r = exists(m, level.negs.v[j])
            if r < 0:
                return r
            if r:
                good = False
                break
        if not good:
            continue
        m.bound += 1
        level.bound += 1
        r = search(m, f, k + 1, scope)
        if k == 0 and f.hold and r == 0:
            r = release(m, f, scope)
        if r != 0:
            if not sifted:
                level.compared -= hi - 1 - i
            return r


cdef inline int tick(Machine* m) noexcept nogil:
    """Now and then, look at the clock and at signals: 0 to go on."""
    m.ticks += 1
    return pause(m) if m.ticks & 65535 == 0 else 0


cdef int pause(Machine* m) noexcept nogil:
    if m.cancelled:
        return -1
    if m.deadline and monotonic() >= m.deadline:
        return -3
    with gil:
        return -1 if check_signals() < 0 else 0  # the exception stays set: `run` lets it out


cdef int finish(Machine* m, Flat* f) noexcept nogil:
    """Everything is bound: negations, tests on whole sets, then out."""
    cdef int i, r
    if f.root:
        extent(m, f)
        if f.held and not is_released(m, f):
            return 0
    f.whole += 1
    for i in range(f.negs.n):
        r = exists(m, f.negs.v[i])
        if r != 0:
            return r if r < 0 else 0
    f.tested += 1
    for i in range(f.tests.n):
        if not holds(m, f.tests.v[i]):
            return 0
    return emit(m, f) if f.root else store(m, f) if f.into != NULL else 1


cdef void extent(Machine* m, Flat* f) noexcept nogil:
    cdef int i
    cdef Set* s
    m.start_ts, m.end_ts, m.start_pos, m.end_pos, m.end_row = INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, -1
    for i in range(f.slots.n):
        stretch(m, &m.bufs[m.slot_buf[f.slots.v[i]]], m.cur[f.slots.v[i]])
    for i in range(f.sets.n):
        s = &m.sets[f.sets.v[i]]
        if s.n:     # in order of time, of position and of row
            stretch(m, &m.bufs[m.slot_buf[s.slot]], element(s, 0))
            stretch(m, &m.bufs[m.slot_buf[s.slot]], element(s, s.n - 1))


cdef inline void stretch(Machine* m, Buf* b, Py_ssize_t i) noexcept nogil:
    inside(b, i)
    m.start_ts, m.end_ts = min(m.start_ts, b.ts[i]), max(m.end_ts, b.ts[i])
    m.start_pos, m.end_pos = min(m.start_pos, b.pos[i]), max(m.end_pos, b.pos[i])
    m.end_row = max(m.end_row, b.row[i])


# negations


cdef int exists(Machine* m, int neg) noexcept nogil:
    """Whether the negated pattern has a match in its scope."""
    cdef Neg* g = &m.negs[neg]
    cdef Bounds b = Bounds(INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, -1)
    cdef int i, r = 0
    cdef int64_t compared = m.compared
    m.negation_tests += 1
    g.tests += 1
    if g.ex_slots.n or g.ex_sets.n:
        b.neg = neg
    if not edge(m, g.after, g.n_after, True, &b.lo_order) and g.left:
        if m.count_window:
            b.lo_pos = sat_sub(m.end_pos, m.window_size)
        else:
            b.lo_ts = sat_sub(m.end_ts, m.window_size)
    if not edge(m, g.before, g.n_before, False, &b.hi_order) and g.right:
        if m.count_window:
            b.hi_pos = sat_add(m.start_pos, m.window_size) if g.right == 1 else m.end_pos
        else:
            b.hi_ts = sat_add(m.start_ts, m.window_size) if g.right == 1 else m.end_ts
    for i in range(g.n_ways):
        r = has_match(m, &g.ways[i], &b)
        if r != 0:
            break
    g.found += r > 0
    g.compared += m.compared - compared
    return r


cdef bint edge(Machine* m, Group* groups, int n, bint latest, int64_t* out) noexcept nogil:
    """The end of the nearest neighbour that has bound anything."""
    cdef int i, j
    cdef Set* s
    cdef bint found = False
    cdef int64_t v, best = 0
    for i in range(n):
        for j in range(groups[i].slots.n):
            v = order_of(m, groups[i].slots.v[j])
            best = v if not found else max(best, v) if latest else min(best, v)
            found = True
        for j in range(groups[i].sets.n):
            s = &m.sets[groups[i].sets.v[j]]
            if s.n:
                v = m.bufs[m.slot_buf[s.slot]].order_[inside(&m.bufs[m.slot_buf[s.slot]], element(s, s.n - 1 if latest else 0))]
                best = v if not found else max(best, v) if latest else min(best, v)
                found = True
        if found:
            out[0] = best
            return True
    return False

# output


cdef int emit(Machine* m, Flat* f) noexcept nogil:
    cdef int i
    if m.n_matches >= m.max_matches:
        return -2
    for i in range(f.outs.n):
        if push(&m.outs[i], row_of(m, f.outs.v[i])):
            return -5
    for i in range(f.out_sets.n):
        if emit_set(m, &m.sets[f.out_sets.v[i]], &m.elems[3 * i], &m.elems[3 * i + 1], &m.elems[3 * i + 2]):
            return -5
    m.n_matches += 1
    return 0


cdef int emit_range(Machine* m, Flat* f, int last, Buf* buf, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    """The last component's whole range at once: no single event needs a look."""
    cdef Py_ssize_t n = hi - lo, j
    cdef int i
    cdef int64_t row
    cdef Out* o
    m.compared += n
    m.bound += n
    f.levels[f.n_levels - 1].compared += n
    f.levels[f.n_levels - 1].bound += n
    if n > m.max_matches - m.n_matches:
        return -2
    if n > 0:
        inside(buf, lo)
        inside(buf, hi - 1)
    for i in range(f.outs.n):
        o = &m.outs[i]
        if o.n + n > o.cap and enlarge(o, o.n + n):
            return -5
        if f.outs.v[i] == last:
            memcpy(o.v + o.n, buf.row + lo, n * sizeof(int64_t))
        else:
            row = row_of(m, f.outs.v[i])
            for j in range(n):
                o.v[o.n + j] = row
        o.n += n
    m.n_matches += n
    return 0

# a SEQ of plain components: FAEM's and NEEL's stacks with pointers, from the last component backwards


cdef inline int level_of(Machine* m, Flat* f, int component) noexcept nogil:
    """Levels are bound last, first, then the rest."""
    return 0 if component == f.n_levels - 1 else component + 1


cdef inline Buf* component(Machine* m, Flat* f, int i) noexcept nogil:
    return &m.bufs[m.slot_buf[f.levels[level_of(m, f, i)].slot]]


cdef void follow(
    const int64_t* a, Py_ssize_t j, Py_ssize_t a_hi, const int64_t* b, Py_ssize_t p, Py_ssize_t b_hi,
    int64_t back, int64_t at_least, int64_t* out,
) noexcept nogil:
    """For each a: the first b above it (with at_least: the first not below a - back). Both are sorted.

    One step a turn and no branch on the data: which side moves cannot be foretold.
    """
    cdef int64_t move
    while j < a_hi and p < b_hi:
        out[j] = p
        move = b[p] < sat_sub(a[j], back) + (not at_least)
        p += move
        j += 1 - move
    while j < a_hi:
        out[j] = p
        j += 1


cdef void point(Machine* m, Flat* f) noexcept nogil:
    """Pointers of this segment: to the next component's first later event, and from each last event back to the others."""
    cdef int i, k = f.n_levels
    cdef Buf* a
    cdef Buf* b
    cdef Buf* x
    cdef Buf* end = component(m, f, k - 1)
    cdef Win* w = &m.wins[f.chain_win]
    cdef Py_ssize_t j
    cdef int64_t p
    cdef Limit* limit
    for i in range(k - 1):
        a, b = component(m, f, i), component(m, f, i + 1)
        follow(a.order_, a.lo, a.hi, b.order_, b.lo, b.hi, 0, 0, f.next_[i])
        follow(end.order_, end.lo, end.hi, a.order_, a.lo, a.hi, 0, 1, f.upto_at[i])
        if f.limit[i] != NULL:
            for j in range(a.lo, a.hi):
                f.limit[i][j] = b.hi
    a = component(m, f, 0)
    if w.count:
        follow(end.pos, end.lo, end.hi, a.pos, a.lo, a.hi, w.size, 1, f.from_at)
    else:
        follow(end.ts, end.lo, end.hi, a.ts, a.lo, a.hi, w.size, 1, f.from_at)
    for k in range(f.n_limits):
        limit = &f.limits[k]
        a, b, x = component(m, f, limit.component), component(m, f, limit.component + 1), &m.bufs[limit.bufs.v[0]]
        follow(a.order_, a.lo, a.hi, x.order_, x.lo, x.hi, 0, 0, limit.after)
        for i in range(limit.bufs.n):
            x = &m.bufs[limit.bufs.v[i]]
            end = &m.bufs[limit.bufs.v[i + 1]] if i + 1 < limit.bufs.n else b
            follow(x.order_, x.lo, x.hi, end.order_, end.lo, end.hi, 0, 0, limit.beyond[i])
        for j in range(a.lo, a.hi):
            p = limit.after[j]
            for i in range(limit.bufs.n):
                if p >= m.bufs[limit.bufs.v[i]].hi:
                    break
                p = limit.beyond[i][p]
            else:
                if p < f.limit[limit.component][j]:
                    f.limit[limit.component][j] = p


cdef int chain(Machine* m, Flat* f) noexcept nogil:
    cdef int k = f.n_levels, i, r
    cdef Level* last = &f.levels[0]
    cdef Buf* end = component(m, f, k - 1)
    cdef Buf* first = component(m, f, 0)
    cdef Py_ssize_t e, a, lo, hi, sample
    cdef bint pair = k == 3 and open_pair(m, f, 0), tested = last.preds.n > 0 or last.negs.n > 0
    sample = end.lo + ((end.hi - end.lo) >> 5) if end.hi - end.lo > 4096 else -1
    point(m, f)
    for i in range(f.n_jump_limits):
        r = point_by_jumps(m, f, &f.jump_limits[i])
        if r < 0:
            return r
    for e in range(max(end.lo, m.first), min(end.hi, m.last)):
        m.cur[last.slot] = e
        m.compared += 1
        if e == sample:
            reserve(m, f)
        lo, hi = f.from_at[e], f.upto_at[0][e]
        for i in range(1, k - 1):
            f.upto[i] = f.upto_at[i][e]
        if lo >= hi or (k > 2 and f.next_[0][lo] >= f.upto[1]):
            continue
        if tested:
            r = passes(m, last)
            if r < 0:
                return r
            if not r:
                continue
        if k == 2 and f.plain_last and f.limit[0] == NULL:
            r = emit_range(m, f, f.levels[1].slot, first, lo, hi)
            if r != 0:
                return r
            continue
        if pair:
            r = emit_pairs(m, f, 0, lo, hi)
            if r != 0:
                return r
            continue
        for a in range(lo, hi):
            if k > 2 and f.next_[0][a] >= f.upto[1]:
                break   # pointers only move forward: no later event has a partner either
            r = link(m, f, 0, a, e)
            if r < 0:
                return r
    return 0


cdef int link(Machine* m, Flat* f, int i, Py_ssize_t at_, Py_ssize_t e) noexcept nogil:
    """Bind component i to an event, then the next ones along the pointers."""
    cdef int k = f.n_levels, r
    cdef Level* level = &f.levels[i + 1]
    cdef Py_ssize_t lo, hi, j
    cdef Buf* b
    m.cur[level.slot] = at_
    m.compared += 1
    r = tick(m)
    if r < 0:
        return r
    if i == k - 2 and f.limit[i] != NULL and f.limit[i][at_] <= e:
        return 0
    r = passes(m, level)
    if r <= 0:
        return r
    m.bound += 1
    if i == k - 2:
        return complete(m, f, NULL)
    lo, hi = f.next_[i][at_], f.upto[i + 1]
    if f.limit[i] != NULL and f.limit[i][at_] < hi:
        hi = f.limit[i][at_]
    if lo >= hi:
        return 0
    b = component(m, f, i + 1)
    if i + 1 == k - 2 and f.plain_last and f.limit[i + 1] == NULL:
        return emit_range(m, f, f.levels[i + 2].slot, b, lo, hi)
    if i + 1 == k - 3 and open_pair(m, f, i + 1):
        return emit_pairs(m, f, i + 1, lo, hi)
    for j in range(lo, hi):
        if i + 1 < k - 2 and f.next_[i + 1][j] >= f.upto[i + 2]:
            break
        r = link(m, f, i + 1, j, e)
        if r < 0:
            return r
    return 0


cdef inline bint open_pair(Machine* m, Flat* f, int i) noexcept nogil:
    """Whether components i and i + 1 are the last to be bound, and nothing tests them."""
    return f.plain_last and f.levels[i + 1].preds.n == 0 and f.levels[i + 1].negs.n == 0 and f.limit[i + 1] == NULL


cdef int emit_pairs(Machine* m, Flat* f, int i, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    """The last two components: each event of one with all its partners of the other, along the pointers."""
    cdef Buf* x = component(m, f, i)
    cdef Buf* y = component(m, f, i + 1)
    cdef const int64_t* next_ = f.next_[i]
    cdef const int64_t* limit = f.limit[i]
    cdef const int64_t* rows = y.row
    cdef int64_t upto = f.upto[i + 1], to, q, row
    cdef int64_t* out_x = NULL
    cdef int64_t* out_y = NULL
    cdef int slot_x = f.levels[i + 1].slot, slot_y = f.levels[i + 2].slot, c
    cdef Py_ssize_t j, n = 0, room = (hi - lo) * (upto - next_[lo])
    if room > 65536:  # many pairs may not fit between: count before making room
        room = 0
        for j in range(lo, hi):
            q, to = next_[j], upto if limit == NULL or limit[j] > upto else limit[j]
            room += to - q if to > q else 0
        if room > m.max_matches - m.n_matches:
            return -2
    for c in range(f.outs.n):
        if m.outs[c].n + room > m.outs[c].cap and enlarge(&m.outs[c], m.outs[c].n + room):
            return -5
        if f.outs.v[c] == slot_x:
            out_x = m.outs[c].v + m.outs[c].n
        elif f.outs.v[c] == slot_y:
            out_y = m.outs[c].v + m.outs[c].n
    for j in range(lo, hi):
        q, to = next_[j], upto
        if q >= upto:
            hi = j
            break
        if limit != NULL and limit[j] < to:
            to = limit[j]
        row = x.row[j]
        while q < to:
            out_x[n] = row
            out_y[n] = rows[q]
            n += 1
            q += 1
    m.compared += hi - lo + n
    m.bound += hi - lo + n
    if n > m.max_matches - m.n_matches:
        return -2
    for c in range(f.outs.n):
        if f.outs.v[c] != slot_x and f.outs.v[c] != slot_y:
            row = row_of(m, f.outs.v[c])
            out_x = m.outs[c].v + m.outs[c].n
            for j in range(n):
                out_x[j] = row
        m.outs[c].n += n
    m.n_matches += n
    m.ticks += 1
    return pause(m) if m.ticks & 4095 == 0 else 0


cdef void reserve(Machine* m, Flat* f) noexcept nogil:
    """Room for the whole answer, judged by its first part: memory that is not written costs nothing."""
    cdef int c
    cdef Py_ssize_t room = min(m.n_matches * 40, m.max_matches)
    for c in range(f.outs.n):
        if room > m.outs[c].cap:
            enlarge_to(&m.outs[c], room)  # if there is none, it grows as it goes


cdef int passes(Machine* m, Level* level) noexcept nogil:
    """Predicates and early negations of a level: 1 when all hold."""
    cdef int j, r
    for j in range(level.preds.n):
        if not holds(m, level.preds.v[j]):
            return 0
    for j in range(level.negs.n):
        r = exists(m, level.negs.v[j])
        if r != 0:
            return r if r < 0 else 0
    return 1

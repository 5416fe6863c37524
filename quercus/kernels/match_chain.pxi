# a SEQ of plain components: FAEM's and NEEL's stacks with pointers, from the last component backwards

DEF BATCH = 512     # events of the last component between two looks at the room left


cdef inline int level_of(Machine* m, Flat* f, int component) noexcept nogil:
    """Levels are bound last, first, then the rest."""
    return 0 if component == f.n_levels - 1 else component + 1


cdef inline Buf* component(Machine* m, Flat* f, int i) noexcept nogil:
    return &m.bufs[m.slot_buf[f.levels[level_of(m, f, i)].slot]]


cdef inline int64_t pointer(Machine* m, Flat* f, int64_t** pointers, int i, Py_ssize_t j) noexcept nogil:
    """Where an event of component i points to."""
    return pointers[i][inside(component(m, f, i), j)]


cdef void point_between(Machine* m, Flat* f, int i) noexcept nogil:
    """From each event of a component that counts to the next component's first later event."""
    cdef Buf* a = component(m, f, i)
    cdef Buf* b = component(m, f, i + 1)
    first_later(a.order_, f.lows[i], f.highs[i], b.order_, b.lo, b.hi, f.next_[i])


cdef void point_limits(Machine* m, Flat* f) noexcept nogil:
    """Where negated events end the range of the next component."""
    cdef int i, k
    cdef Buf* a
    cdef Buf* b
    cdef Buf* x
    cdef Py_ssize_t j, lo, hi, first, last
    cdef int64_t p
    cdef Limit* limit
    cdef Buf* y
    for k in range(f.n_limits + f.n_jump_limits):
        i = f.limits[k].component if k < f.n_limits else f.jump_limits[k - f.n_limits].component
        for j in range(f.lows[i], f.highs[i]):
            f.limit[i][j] = component(m, f, i + 1).hi
    for k in range(f.n_limits):
        limit = &f.limits[k]
        lo, hi = f.lows[limit.component], f.highs[limit.component]
        if lo >= hi:
            continue
        a, b, x = component(m, f, limit.component), component(m, f, limit.component + 1), &m.bufs[limit.bufs.v[0]]
        first_later(a.order_, lo, hi, x.order_, x.lo, x.hi, limit.after)
        first, last = limit.after[inside(a, lo)], min(limit.after[inside(a, hi - 1)] + 1, x.hi)
        for i in range(limit.bufs.n):
            x = &m.bufs[limit.bufs.v[i]]
            y = &m.bufs[limit.bufs.v[i + 1]] if i + 1 < limit.bufs.n else b
            first_later(x.order_, first, last, y.order_, y.lo, y.hi, limit.beyond[i])
            if first < last:
                inside(x, first)
                inside(x, last - 1)
            first, last = limit.beyond[i][first] if first < last else y.hi, min(limit.beyond[i][last - 1] + 1, y.hi) if first < last else y.hi
        for j in range(lo, hi):
            p = limit.after[j]
            for i in range(limit.bufs.n):
                if p >= m.bufs[limit.bufs.v[i]].hi:
                    break
                p = limit.beyond[i][inside(&m.bufs[limit.bufs.v[i]], p)]
            else:
                if p < f.limit[limit.component][j]:
                    f.limit[limit.component][j] = p


cdef bint point(Machine* m, Flat* f, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    """Pointers for the last events from lo to hi: back to the others, and of these to the next component's first later event.

    Only what these events can reach is looked at. False: they reach nothing.
    """
    cdef int i, k = f.n_levels
    cdef Buf* a = component(m, f, 0)
    cdef Buf* end = component(m, f, k - 1)
    cdef Win* w = &m.wins[f.chain_win]
    if w.count:
        first_not_before(end.pos, lo, hi, a.pos, a.lo, a.hi, w.size, f.from_at)
    else:
        first_not_before(end.ts, lo, hi, a.ts, a.lo, a.hi, w.size, f.from_at)
    f.lows[0] = f.from_at[lo]
    for i in range(k - 1):
        a = component(m, f, i)
        f.highs[i] = first_above(a.order_, a.lo, a.hi, end.order_[inside(end, hi - 1)], True, a.hi - 1)
        if f.lows[i] >= f.highs[i]:
            return False
        if i < k - 2:  # the last event is at hand: nobody looks for it
            point_between(m, f, i)
            f.lows[i + 1] = pointer(m, f, f.next_, i, f.lows[i])
    first_not_before(end.order_, lo, hi, a.order_, a.lo, a.hi, 0, f.upto_at[k - 2])
    for i in range(k - 3, -1, -1):
        first_not_before(f.upto_at[i + 1], lo, hi, f.next_[i], f.lows[i], f.highs[i], 0, f.upto_at[i])
    point_limits(m, f)
    return True


cdef void point_down(Machine* m, Flat* f, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    """For each of the last events from lo to hi: where the events of the components before it begin that limits leave a way from.

    That is where the limit lies beyond the first such event of the next component. A limit that never falls shuts off a
    first part of its component, and nothing after that.
    """
    cdef int i, k = f.n_levels
    cdef Py_ssize_t e, j
    for i in range(k - 1):  # a negated match after an event lies after those before it as well
        if f.limit[i] != NULL and f.rising[i]:
            for j in range(f.highs[i] - 2, f.lows[i] - 1, -1):
                f.limit[i][j] = min(f.limit[i][j], f.limit[i][j + 1])
    for i in range(k - 2, -1, -1):
        if f.down_at[i] == NULL:
            return
        if i == k - 2:
            for e in range(lo, hi):
                f.down_at[i][e] = e
        first_later(f.down_at[i] if i == k - 2 else f.down_at[i + 1], lo, hi, f.limit[i], f.lows[i], f.highs[i], f.down_at[i])
        for e in range(lo, hi):
            if i == 0:
                f.from_at[e] = max(f.from_at[e], f.down_at[0][e])
            elif f.down_at[i][e] >= f.upto_at[i][e]:
                f.from_at[e] = component(m, f, 0).hi


cdef int promising(Flat* f, Py_ssize_t lo, Py_ssize_t hi, int* out) noexcept nogil:
    """Which events of the last component have others before them in their window: distances from lo, and how many.

    No branch depends on the data: in a stream of many keys, hardly any of them could be foretold.
    """
    cdef const int64_t* from_at = f.from_at
    cdef const int64_t* upto = f.upto_at[0]
    cdef Py_ssize_t e
    cdef int n = 0
    for e in range(lo, hi):
        out[n] = <int> (e - lo)
        n += from_at[e] < upto[e]
    return n


cdef int chain(Machine* m, Flat* f) noexcept nogil:
    cdef int k = f.n_levels, r, n
    cdef Buf* end = component(m, f, k - 1)
    cdef Py_ssize_t begin = max(end.lo, m.first), stop = min(end.hi, m.last), e, hi
    cdef Py_ssize_t sample = end.lo + ((end.hi - end.lo) >> 5) if end.hi - end.lo > 4096 else -1
    cdef Level* last = &f.levels[0]
    cdef bint open_
    cdef int[BATCH] some
    if begin >= stop:
        return 0
    if not point(m, f, begin, stop):
        m.compared += stop - begin
        last.compared += stop - begin
        return 0
    use_index(m, f, begin, stop)
    for r in range(f.n_jump_limits):
        n = 0
        if not f.jump_limits[r].by_index:
            n = point_by_jumps(m, f, &f.jump_limits[r])
        elif f.limits_known:
            n = point_by_index(m, f, &f.jump_limits[r], begin, stop)
        if n < 0:
            return n
    point_down(m, f, begin, stop)
    open_ = is_open(f)
    for e in range(begin, stop, BATCH):
        hi = min(e + BATCH, stop)
        m.compared += hi - e
        last.compared += hi - e
        n = promising(f, e, hi, some)
        r = walk_before(m, f, e, some, n) if open_ else chain_before(m, f, e, some, n)
        if r < 0:
            return r
        if e <= sample < hi:
            reserve(m, f, c_div(<double> (end.hi - begin), <double> (hi - begin)))
    return 0


cdef inline bint open_end(Flat* f) noexcept nogil:
    """Whether nothing tests single events of the component before the last, which is the last to be bound."""
    return f.plain_last and (f.limit[f.n_levels - 2] == NULL or f.down_at[f.n_levels - 2] != NULL)


cdef inline void look_back(Flat* f, Py_ssize_t e) noexcept nogil:
    """The bounds of the components before an event of the last one."""
    cdef int i
    for i in range(1, f.n_levels - 1):
        f.upto[i] = f.upto_at[i][e]
        if f.down_at[i] != NULL:
            f.down[i] = f.down_at[i][e]


cdef int chain_before(Machine* m, Flat* f, Py_ssize_t begin, const int* some, int n) noexcept nogil:
    """The matches of some events of the last component."""
    cdef int k = f.n_levels, j, r
    cdef Level* last = &f.levels[0]
    cdef Buf* first = component(m, f, 0)
    cdef Py_ssize_t e, lo, hi
    cdef bint pair = k == 3 and open_pair(f, 0), tested = last.preds.n > 0 or last.negs.n > 0
    for j in range(n):
        e = begin + some[j]
        m.cur[last.slot] = inside(component(m, f, k - 1), e)
        lo, hi = f.from_at[e], f.upto_at[0][e]
        look_back(f, e)
        if tested:
            r = passes(m, last, 0)
            if r < 0:
                return r
            if not r:
                continue
        last.bound += 1
        if k == 2 and open_end(f):
            r = emit_range(m, f, f.levels[1].slot, first, lo, hi)
            if r != 0:
                return r
            continue
        if pair:
            r = emit_pairs(m, f, 0, lo, hi)
            if r != 0:
                return r
            continue
        r = link_range(m, f, 0, lo, hi, e)
        if r < 0:
            return r
    return 0


cdef inline int link_range(Machine* m, Flat* f, int i, Py_ssize_t lo, Py_ssize_t hi, Py_ssize_t e) noexcept nogil:
    """Bind component i to each event of a range, then the next ones."""
    cdef Level* level = &f.levels[i + 1]
    cdef Py_ssize_t j
    cdef int r
    if hi - lo >= m.sift_from and level.sieves.n:
        return link_sifted(m, f, i, lo, hi, e)
    for j in range(lo, hi):
        m.compared += 1
        level.compared += 1
        r = link(m, f, i, j, e, 0)
        if r < 0:
            return r
    return 0


cdef int link_sifted(Machine* m, Flat* f, int i, Py_ssize_t lo, Py_ssize_t hi, Py_ssize_t e) noexcept nogil:
    cdef Level* level = &f.levels[i + 1]
    cdef Py_ssize_t j
    cdef Sift sift
    cdef int r
    if i == f.n_levels - 2 and f.sifted_last and (f.limit[i] == NULL or f.down_at[i] != NULL):
        return emit_sifted(m, f, level, component(m, f, i), lo, hi)
    if not begin_sift(m, &level.sieves, component(m, f, i), lo, hi, &level.compared, &sift):
        return 0
    while True:
        j = next_sifted(m, &sift)
        if j == hi:
            return sift.stop
        r = link(m, f, i, j, e, level.sifted)
        if r < 0:
            return r


cdef inline void range_after(Flat* f, int i, Py_ssize_t at_, Py_ssize_t* lo, Py_ssize_t* hi) noexcept nogil:
    """What of component i + 1 can follow an event of component i."""
    lo[0], hi[0] = max(f.next_[i][at_], f.down[i + 1]), f.upto[i + 1]
    if f.limit[i] != NULL:
        hi[0] = min(hi[0], f.limit[i][at_])


cdef int link(Machine* m, Flat* f, int i, Py_ssize_t at_, Py_ssize_t e, int sifted) noexcept nogil:
    """Bind component i to an event, then the next ones along the pointers."""
    cdef int k = f.n_levels, r
    cdef Level* level = &f.levels[i + 1]
    cdef Py_ssize_t lo = 0, hi = 0
    m.cur[level.slot] = inside(component(m, f, i), at_)
    r = tick(m)
    if r < 0:
        return r
    if i == k - 2 and f.limit[i] != NULL and f.limit[i][at_] <= e:
        return 0
    r = passes(m, level, sifted)
    if r <= 0:
        return r
    m.bound += 1
    level.bound += 1
    if i == k - 2:
        return complete(m, f, NULL)
    range_after(f, i, at_, &lo, &hi)
    if lo >= hi:
        return 0
    if i + 1 == k - 2 and open_end(f):
        return emit_range(m, f, f.levels[i + 2].slot, component(m, f, i + 1), lo, hi)
    if i + 1 == k - 3 and open_pair(f, i + 1):
        return emit_pairs(m, f, i + 1, lo, hi)
    return link_range(m, f, i + 1, lo, hi, e)


cdef void reserve(Machine* m, Flat* f, double times) noexcept nogil:
    """Room for the whole answer, so many times its first part and a quarter more: memory that is not written costs nothing."""
    cdef int c
    cdef double all_ = 1.25 * times * <double> m.n_matches
    cdef Py_ssize_t room = <Py_ssize_t> all_ if all_ < <double> m.max_matches else m.max_matches
    for c in range(f.outs.n):
        if room > m.outs[c].cap:
            enlarge_to(&m.outs[c], room)  # if there is none, it grows as it goes


cdef int passes(Machine* m, Level* level, int sifted) noexcept nogil:
    """Predicates from that one on, and early negations of a level: 1 when all hold."""
    cdef int j, r
    for j in range(sifted, level.preds.n):
        if not holds(m, level.preds.v[j]):
            return 0
    for j in range(level.negs.n):
        r = exists(m, level.negs.v[j])
        if r != 0:
            return r if r < 0 else 0
    return 1

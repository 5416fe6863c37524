# Existence indexes: whether a negated body has a match in its scope, without a search for one.


cdef int has_match(Machine* m, Way* way, Bounds* scope) noexcept nogil:
    if way.method == BY_JUMPS:
        return jumps(m, way, scope)
    if way.method == BY_VIEW:
        return has_result(m, way, scope)
    if way.method == BY_LATEST and m.build_indexes != BUILD_NEVER:
        return latest(m, way, scope)
    way.searched += 1
    return search(m, &m.flats[way.flat], 0, scope)


cdef void forget_indexes(Machine* m) noexcept nogil:
    """The buffers have changed: what was built over them goes."""
    cdef int i, j, k
    cdef End* end
    forget_views(m)
    for i in range(m.n_cols):
        drop_zones(&m.zones[i])
    for i in range(m.n_keys):
        drop_keys(&m.keys[i])
        m.keys[i].debt = 0
    for i in range(m.n_negs):
        for j in range(m.negs[i].n_ways):
            for k in range(m.negs[i].ways[j].n_ends):
                end = &m.negs[i].ways[j].ends[k]
                free(end.start_pos)
                free(end.start_ts)
                end.start_pos = end.start_ts = NULL
                drop_steps(end)
                end.begin = end.upto = end.debt = end.work = end.done = 0

# the first event of each leaf in turn


cdef int jumps(Machine* m, Way* way, Bounds* scope) noexcept nogil:
    """Leaves that nothing but order ties together: the first of each that can be ends no later than any other choice."""
    cdef Flat* f = &m.flats[way.flat]
    cdef Level* level
    cdef Buf* buf
    cdef Bounds b
    cdef Py_ssize_t lo, hi, i = 0
    cdef int k, r
    for k in range(f.n_levels):
        level = &f.levels[k]
        buf = &m.bufs[m.slot_buf[level.slot]]
        b = scope[0]
        narrow(m, level, &b)
        lo, hi = level.hint_lo, level.hint_hi
        interval(m, buf, &b, &lo, &hi)
        level.hint_lo, level.hint_hi = lo, hi
        if level.previous >= 0 and lo <= m.cur[level.previous]:
            lo = m.cur[level.previous] + 1
        if lo >= hi:
            return 0
        r = first_of(m, &way.jumps[k], buf, lo, hi, scope.neg, &i)
        if r <= 0:
            return r
        m.cur[level.slot] = i
    return 1


cdef int first_of(Machine* m, Jump* jump, Buf* buf, Py_ssize_t lo, Py_ssize_t hi, int neg, Py_ssize_t* out) noexcept nogil:
    """The first event of [lo, hi) that the match ties to itself and has not bound. 1: found, 0: none."""
    cdef Keys* keys = NULL
    cdef int64_t group
    cdef Py_ssize_t i, j
    cdef int r
    if jump.n_ties:
        keys = &m.keys[jump.keys]
        r = ready(m, keys)
        if r < 0:
            return r
        if r:
            group = group_of_match(m, keys, jump)
            if group < 0:
                return 0
            j = first_above(keys.members, keys.start[group], keys.start[group + 1], lo, True, keys.start[group])
            while j < keys.start[group + 1] and keys.members[j] < hi:
                m.compared += 1
                i = inside(buf, at(keys.members, j, buf.n))
                if neg < 0 or not excluded(m, neg, at(buf.row, i, buf.n)):
                    out[0] = i
                    return 1
                j += 1
            return 0
    for i in range(lo, hi):
        m.compared += 1
        if jump.n_ties:
            keys.debt += 1
            r = tick(m)
            if r < 0:
                return r
            if not tied(m, jump, i):
                continue
        if neg < 0 or not excluded(m, neg, buf.row[inside(buf, i)]):
            out[0] = i
            return 1
    return 0


cdef bint tied(Machine* m, Jump* jump, Py_ssize_t i) noexcept nogil:
    """Whether an event agrees with the match on every column of the key."""
    cdef Tie t
    cdef int64_t x = 0, y = 0
    for t in jump.ties[:jump.n_ties]:
        if not value(&m.cols[t.col], i, &x) or not value(&m.cols[t.outer], bound_at(m, t.slot), &y) or x != y:
            return False
    return True


cdef bint is_tied(Neg* g) noexcept nogil:
    """Whether values of the match choose among the events of a negated pattern."""
    cdef int i, k
    for i in range(g.n_ways):
        for k in range(g.ways[i].n_jumps):
            if g.ways[i].jumps[k].n_ties:
                return True
        for k in range(g.ways[i].n_ends):
            if g.ways[i].ends[k].key.n_ties:
                return True
    return False


cdef int point_by_jumps(Machine* m, Flat* f, JumpLimit* limit) noexcept nogil:
    """For each event of a component: the first of the next component that a match of the negated pattern lies before."""
    cdef Neg* g = &m.negs[limit.neg]
    cdef Buf* a = component(m, f, limit.component)
    cdef Buf* b = component(m, f, limit.component + 1)
    cdef Win* w = &m.wins[f.chain_win]
    cdef Bounds scope = Bounds(INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, -1)
    cdef int slot = f.levels[level_of(m, f, limit.component)].slot, i, k, r
    cdef int64_t* out = f.limit[limit.component]
    cdef int64_t last, compared = m.compared
    cdef bint some
    cdef Flat* body
    cdef Buf* end = component(m, f, f.n_levels - 1)
    cdef const int64_t* clock = a.pos if w.count else a.ts
    cdef Py_ssize_t first = max(end.lo, m.first), upto = min(end.hi, m.last), j, p = b.lo
    if first >= upto:
        return 0
    last = sat_sub((end.pos if w.count else end.ts)[first], w.size)  # what the ends at hand can reach
    for j in range(first_above(clock, a.lo, a.hi, last, True, a.lo), f.highs[limit.component]):
        m.cur[slot] = inside(a, j)
        m.negation_tests += 1
        g.tests += 1
        some = False
        r = tick(m)
        if r < 0:
            return r
        scope.lo_order = a.order_[j]
        if w.count:
            scope.hi_pos = sat_add(a.pos[j], w.size)
        else:
            scope.hi_ts = sat_add(a.ts[j], w.size)
        for i in range(g.n_ways):
            r = jumps(m, &g.ways[i], &scope)
            if r < 0:
                return r
            if r == 0:
                continue
            some = True
            body, last = &m.flats[g.ways[i].flat], INT64_MIN
            for k in range(body.n_levels):
                last = max(last, order_of(m, body.levels[k].slot))
            p = first_above(b.order_, b.lo, b.hi, last, False, p)
            out[j] = min(out[j], p)
        g.found += some
    g.compared += m.compared - compared
    return 0


cdef void use_index(Machine* m, Flat* f, Py_ssize_t begin, Py_ssize_t stop) noexcept nogil:
    """Whether negations become limits by their indexes, for the last events from begin to stop: where the tests that this saves are many."""
    cdef int i, k, known = -1
    cdef int64_t tests, ends
    cdef Way* way
    cdef JumpLimit* limit
    for i in range(f.n_jump_limits):
        limit = &f.jump_limits[i]
        if limit.by_index:
            tests, ends = tests_between(m, f, limit.component, begin, stop), 0
            for k in range(m.negs[limit.neg].n_ways):
                way = &m.negs[limit.neg].ways[k]
                ends += ends_between(m, f, way, limit.component, begin, stop) if way.method == BY_LATEST else 0
            known = known != 0 and tests >= 4 * ends and m.build_indexes != BUILD_NEVER
    if known < 0:
        return
    f.limits_known = known
    f.plain_last, f.sifted_last = f.plain_limited if known else f.plain_tested, f.sifted_limited if known else f.sifted_tested
    for i in range(f.n_levels):
        k = f.levels[i].n_limiting
        if k and known == f.levels[i].limited:
            continue
        f.levels[i].negs.n += -k if known else k
        f.levels[i].limited = known


cdef int64_t tests_between(Machine* m, Flat* f, int i, Py_ssize_t begin, Py_ssize_t stop) noexcept nogil:
    """About how many pairs of a component and the next one there are in a window; conditions leave an eighth each."""
    cdef Buf* a = component(m, f, i)
    cdef Win* w = &m.wins[f.chain_win]
    cdef const int64_t* clock = a.pos if w.count else a.ts
    cdef Py_ssize_t n = f.highs[i] - f.lows[i], others
    cdef double pairs, span
    cdef int j
    if n <= 0:
        return 0
    others = stop - begin if i == f.n_levels - 2 else f.highs[i + 1] - f.lows[i + 1]
    span = <double> clock[inside(a, f.highs[i] - 1)] - <double> clock[inside(a, f.lows[i])]
    pairs = <double> n * <double> max(others, <Py_ssize_t> 0)
    if span > <double> w.size:
        pairs = pairs * c_div(<double> w.size, span)
    for j in range(f.n_levels):
        pairs = c_div(pairs, <double> (<int64_t> 1 << min(3 * f.levels[j].preds.n, 60)))
    return <int64_t> pairs if pairs < 1e18 else <int64_t> 1000000000000000000


cdef Py_ssize_t ends_between(Machine* m, Flat* f, Way* way, int i, Py_ssize_t begin, Py_ssize_t stop) noexcept nogil:
    """How many events can end a match between a component and the next one."""
    cdef Py_ssize_t lo = 0, hi = 0, n = 0
    cdef int k
    for k in range(way.n_ends):
        ends_of(m, f, &way.ends[k], i, stop, &lo, &hi)
        n += max(hi - lo, <Py_ssize_t> 0)
    return n


cdef void ends_of(Machine* m, Flat* f, End* end, int i, Py_ssize_t stop, Py_ssize_t* lo, Py_ssize_t* hi) noexcept nogil:
    """The range of events that can end a match, between the first event of a component and the last of the next."""
    cdef Buf* a = component(m, f, i)
    cdef Buf* b = component(m, f, i + 1)
    cdef Buf* buf = &m.bufs[m.slot_buf[m.flats[end.flat].levels[0].slot]]
    cdef Py_ssize_t last = stop if i == f.n_levels - 2 else f.highs[i + 1]
    lo[0] = hi[0] = 0
    if f.lows[i] < f.highs[i] and b.lo < last:
        lo[0] = first_above(buf.order_, buf.lo, buf.hi, a.order_[inside(a, f.lows[i])], False, buf.lo)
        hi[0] = first_above(buf.order_, lo[0], buf.hi, b.order_[inside(b, last - 1)], True, lo[0])


cdef int point_by_index(Machine* m, Flat* f, JumpLimit* limit, Py_ssize_t begin, Py_ssize_t stop) noexcept nogil:
    """As `point_by_jumps` does, by the latest starts: the first end whose latest start comes after an event is the first end after it."""
    cdef Neg* g = &m.negs[limit.neg]
    cdef Buf* a = component(m, f, limit.component)
    cdef int i, k, r
    cdef int64_t compared = m.compared
    for i in range(g.n_ways):
        for k in range(g.ways[i].n_ends):
            r = limits_of_end(m, f, limit.component, &g.ways[i].ends[k], stop)
            if r < 0:
                return r
    g.tests += f.highs[limit.component] - f.lows[limit.component]
    m.negation_tests += f.highs[limit.component] - f.lows[limit.component]
    for i in range(f.lows[limit.component], f.highs[limit.component]):
        g.found += f.limit[limit.component][inside(a, i)] < component(m, f, limit.component + 1).hi
    g.compared += m.compared - compared
    return 0


cdef int limits_of_end(Machine* m, Flat* f, int i, End* end, Py_ssize_t stop) noexcept nogil:
    cdef Buf* a = component(m, f, i)
    cdef Buf* b = component(m, f, i + 1)
    cdef Buf* buf = &m.bufs[m.slot_buf[m.flats[end.flat].levels[0].slot]]
    cdef Keys* keys = NULL
    cdef Py_ssize_t lo = 0, hi = 0, j, e, p = b.lo, x, y
    cdef int slot = f.levels[level_of(m, f, i)].slot, r
    cdef int64_t group
    cdef const int64_t* starts
    ends_of(m, f, end, i, stop, &lo, &hi)
    if lo >= hi:
        return 0
    if end.key.n_ties:
        keys = &m.keys[end.key.keys]
        if not keys.built:
            r = build_keys(m, keys)
            if r < 0:
                return r
    r = reach_to(m, end, buf, lo, hi, True)
    if r < 0:
        return r
    starts = end.start_pos if m.by_arrival else end.start_ts
    e = lo
    for j in range(f.lows[i], f.highs[i]):
        m.compared += 1
        if keys == NULL:
            e = first_above(starts, lo, hi, a.order_[inside(a, j)], False, e)
        else:
            m.cur[slot] = inside(a, j)
            group, e = group_of_match(m, keys, &end.key), hi
            if group >= 0:
                x = first_above(keys.members, keys.start[group], keys.start[group + 1], lo, True, keys.start[group])
                y = first_above(keys.members, x, keys.start[group + 1], hi, True, x)
                while x < y:  # starts only grow along the events of a key
                    e = (x + y) >> 1
                    if starts[at(keys.members, e, buf.n)] > a.order_[j]:
                        y = e
                    else:
                        x = e + 1
                e = keys.members[x] if x < keys.start[group + 1] and keys.members[x] < hi else hi
        if e < hi:
            p = first_above(b.order_, b.lo, b.hi, buf.order_[inside(buf, e)], False, p)
            f.limit[i][j] = min(f.limit[i][j], p)
    return 0

# keys


cdef inline bint value(Col* c, Py_ssize_t i, int64_t* out) noexcept nogil:
    """A value such that equal values are equal numbers; False for what equals nothing: null and NaN."""
    cdef double d
    if c.valid != NULL and not c.valid[i]:
        return False
    if c.i != NULL:
        out[0] = c.i[i]
        return True
    d = c.f[i] + 0.0  # -0.0 equals 0.0
    memcpy(out, &d, sizeof(double))
    return d == d


cdef int ready(Machine* m, Keys* keys) noexcept nogil:
    """Whether events can be looked up by key; 0 as long as going through them has cost less than that would."""
    if keys.built:
        return 1
    if m.build_indexes == BUILD_AT_ONCE or (m.build_indexes == BUILD_PAID and keys.debt >= m.bufs[keys.buf].n):
        return build_keys(m, keys)
    return 0


cdef void drop_keys(Keys* keys) noexcept nogil:
    free(keys.table)
    free(keys.group_of)
    free(keys.start)
    free(keys.members)
    keys.table = keys.group_of = keys.start = keys.members = NULL
    keys.built = False


cdef int build_keys(Machine* m, Keys* keys) noexcept nogil:
    """Group a buffer's events by key, over all segments: a segment is a range of the buffer, as a scope is."""
    cdef Py_ssize_t n = m.bufs[keys.buf].n, e, n_groups = 0
    cdef int64_t size = 16, g, kept, next_, v = 0
    cdef uint64_t h
    cdef int k, r
    cdef bint known
    while size < 2 * n:
        size *= 2
    keys.mask = size - 1
    keys.table = <int64_t*> calloc(size, sizeof(int64_t))
    keys.group_of = <int64_t*> malloc((n + 1) * sizeof(int64_t))
    keys.start = <int64_t*> calloc(n + 2, sizeof(int64_t))
    keys.members = <int64_t*> malloc((n + 1) * sizeof(int64_t))
    if keys.table == NULL or keys.group_of == NULL or keys.start == NULL or keys.members == NULL:
        drop_keys(keys)
        return -5
    for e in range(n):
        r = tick(m)
        if r < 0:
            drop_keys(keys)
            return r
        h, known = 0, True
        for k in range(keys.cols.n):
            if not value(&m.cols[keys.cols.v[k]], e, &v):
                known = False
                break
            h = mixed(h, v)
        keys.group_of[e] = -1
        if not known:
            continue
        h = h & <uint64_t> keys.mask
        while keys.table[h] and not same_key(m, keys, keys.members[keys.table[h] - 1], e):
            h = (h + 1) & <uint64_t> keys.mask
        if keys.table[h] == 0:
            keys.members[n_groups] = e  # a group's first event speaks for it
            n_groups += 1
            keys.table[h] = n_groups
        g = keys.table[h] - 1
        keys.group_of[e] = g
        keys.start[g] += 1
    kept = 0
    for g in range(n_groups):
        next_ = kept + keys.start[g]
        keys.start[g] = kept
        kept = next_
    for e in range(n):
        g = keys.group_of[e]
        if g >= 0:
            keys.members[keys.start[g]] = e
            keys.start[g] += 1
    for g in range(n_groups, 0, -1):  # each has moved to where the next one began
        keys.start[g] = keys.start[g - 1]
    keys.start[0] = 0
    keys.built = True
    return 1


cdef bint same_key(Machine* m, Keys* keys, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef int k
    cdef int64_t x = 0, y = 0
    for k in range(keys.cols.n):
        if not value(&m.cols[keys.cols.v[k]], a, &x) or not value(&m.cols[keys.cols.v[k]], b, &y) or x != y:
            return False
    return True


cdef int64_t group_of_match(Machine* m, Keys* keys, Jump* jump) noexcept nogil:
    """The group of events that agree with the match, or -1."""
    cdef uint64_t h = 0
    cdef int64_t v = 0, g
    cdef int k
    for k in range(jump.n_ties):
        if not value(&m.cols[jump.ties[k].outer], bound_at(m, jump.ties[k].slot), &v):
            return -1
        h = mixed(h, v)
    h = h & <uint64_t> keys.mask
    while keys.table[h]:
        g = keys.table[h] - 1
        if tied(m, jump, keys.members[keys.start[g]]):
            return g
        h = (h + 1) & <uint64_t> keys.mask
    return -1

# the latest start for each end


cdef int latest(Machine* m, Way* way, Bounds* scope) noexcept nogil:
    """Whether a match that ends in the scope starts in it too: the latest start decides."""
    cdef End* end
    cdef Buf* buf
    cdef Level* level
    cdef Keys* keys = NULL
    cdef Py_ssize_t lo, hi, e
    cdef int64_t group, compared, pos, j
    cdef int i, r
    for i in range(way.n_ends):
        end = &way.ends[i]
        level = &m.flats[end.flat].levels[0]
        buf = &m.bufs[m.slot_buf[level.slot]]
        lo, hi = level.hint_lo, level.hint_hi
        interval(m, buf, scope, &lo, &hi)
        level.hint_lo, level.hint_hi = lo, hi
        if lo >= hi:
            continue
        r = 1
        if end.key.n_ties:
            keys = &m.keys[end.key.keys]
            r = ready(m, keys)
        if r > 0:
            r = reach_to(m, end, buf, lo, hi, m.build_indexes == BUILD_AT_ONCE)
        if r < 0:
            return r
        if r == 0:
            compared = m.compared
            way.searched += 1
            r = search(m, &m.flats[way.flat], 0, scope)
            end.debt += m.compared - compared + 1
            if end.key.n_ties:
                keys.debt += m.compared - compared + 1
            return r
        m.compared += 1
        e = hi - 1
        if end.key.n_ties:
            group = group_of_match(m, keys, &end.key)
            if group < 0:
                continue
            j = first_above(keys.members, keys.start[group], keys.start[group + 1], hi, True, keys.start[group]) - 1
            if j < keys.start[group] or keys.members[j] < lo:
                continue
            e = at(keys.members, j, buf.n)
        pos = at(end.start_pos, e, end.upto)
        if pos == INT64_MIN or pos < scope.lo_pos or end.start_ts[e] < scope.lo_ts:
            continue
        if (pos if m.by_arrival else end.start_ts[e]) > scope.lo_order or scope.lo_order == INT64_MIN:
            return 1
    return 0


cdef int reach_to(Machine* m, End* end, Buf* buf, Py_ssize_t lo, Py_ssize_t hi, bint at_once) noexcept nogil:
    """See that events [lo, hi) are there; 0 as long as searches have cost less than that would, unless it is to be `at_once`.

    What is there grows with the scopes. It begins some windows before the first scope, since scopes move forward but for
    a window or two.
    """
    cdef int64_t back = sat_add(m.window_size, sat_add(m.window_size, m.window_size)), compared = m.compared
    cdef const int64_t* clock = buf.pos if m.count_window else buf.ts
    cdef Py_ssize_t begin = end.begin, upto = end.upto, e
    cdef int r
    if buf.lo <= begin <= lo and hi <= upto:
        return 1
    e = first_above(clock, buf.lo, lo, sat_sub(clock[lo], back), True, lo)
    if not (buf.lo <= begin <= lo and begin < upto and e <= upto):  # nothing is there that goes on to here
        begin = upto = e
    if not at_once:
        if end.debt < (1 + (c_div(<double> end.work, <double> end.done) if end.done else 4)) * (hi - upto):
            return 0
    if end.start_pos == NULL:
        end.start_pos = <int64_t*> malloc((buf.n + 1) * sizeof(int64_t))
        end.start_ts = <int64_t*> malloc((buf.n + 1) * sizeof(int64_t))
        if end.start_pos == NULL or end.start_ts == NULL or make_steps(m, end):
            return -5
    end.begin = begin
    end.upto = upto
    for e in range(upto, hi):
        r = tick(m)
        if r == 0:
            r = latest_start(m, end, buf, e)
        if r < 0:
            return r
        end.upto = e + 1
    end.debt = 0
    end.work += m.compared - compared
    end.done += hi - upto
    return 1


cdef int latest_start(Machine* m, End* end, Buf* buf, Py_ssize_t e) noexcept nogil:
    """Of matches that end with event e or, in the same key, before it."""
    cdef Flat* f = &m.flats[end.flat]
    cdef Level* level = &f.levels[0]
    cdef Keys* keys
    cdef Bounds b = Bounds(INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, -1)
    cdef Py_ssize_t before = e - 1
    cdef int64_t g, j, pos, ts = 0
    cdef int i, r
    end.start_pos[e] = end.start_ts[e] = INT64_MIN
    if end.key.n_ties:
        keys = &m.keys[end.key.keys]
        g = keys.group_of[e]
        if g < 0:
            return 0
        j = first_above(keys.members, keys.start[g], keys.start[g + 1], e, True, keys.start[g]) - 1
        before = keys.members[j] if j >= keys.start[g] else -1
    if before >= end.begin:
        end.start_pos[e], end.start_ts[e] = at(end.start_pos, before, end.upto), at(end.start_ts, before, end.upto)
    m.cur[level.slot] = inside(buf, e)
    m.compared += 1
    for i in range(level.preds.n):
        if not holds(m, level.preds.v[i]):
            return 0
    if end.n_steps:
        pos = end.start_pos[e]
        r = step_back(m, end, end.n_steps, e, &pos, &ts)
        if pos > end.start_pos[e] and (pos if m.count_window else ts) >= sat_sub((buf.pos if m.count_window else buf.ts)[e], m.window_size):
            end.start_pos[e], end.start_ts[e] = pos, ts
        return r
    b.hi_pos = buf.pos[e]
    if m.count_window:
        b.lo_pos = sat_sub(buf.pos[e], m.window_size)
    else:
        b.lo_ts = sat_sub(buf.ts[e], m.window_size)
    while end.start_pos[e] < buf.pos[e]:
        if end.start_pos[e] != INT64_MIN:
            b.lo_pos = max(b.lo_pos, end.start_pos[e] + 1)
        r = search(m, f, 1, &b)
        if r <= 0:
            return r
        end.start_pos[e], end.start_ts[e] = buf.pos[e], buf.ts[e]
        for i in range(f.slots.n):
            if pos_of(m, f.slots.v[i]) < end.start_pos[e]:
                end.start_pos[e], end.start_ts[e] = pos_of(m, f.slots.v[i]), place_of(m, f.slots.v[i], False)
    return 0

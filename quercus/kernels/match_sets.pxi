# Sets: the maximal sets of `+` and `*`, completed when every single event of the match is bound.
#
# A set whose elements are neighbours in its buffer is their range, however many there are, and goes out as two numbers: where it
# starts and where it ends. Where predicates leave holes, the elements are listed: their rows go out beside, and -1 - start and
# -1 - end say where they are.


cdef bint holds(Machine* m, int pred) noexcept nogil:
    cdef Pred* p = &m.preds[pred]
    cdef Set* s
    cdef Py_ssize_t i, kept
    if p.over < 0:
        return evaluate(m, p)
    s = &m.sets[p.over]
    kept = m.cur[s.slot]
    for i in range(s.n):
        m.cur[s.slot] = element(s, i)
        if not evaluate(m, p):
            m.cur[s.slot] = kept
            return False
    m.cur[s.slot] = kept
    return True


cdef int complete(Machine* m, Flat* f, Bounds* scope) noexcept nogil:
    cdef int i, j
    cdef Set* s
    cdef Py_ssize_t lo = 0, hi = 0
    f.completed += 1
    for i in range(f.counted.n):
        s = &m.sets[f.counted.v[i]]
        s.n, s.dense = 0, False
        for j in range(s.slots.n):
            if grow(s, s.n + 1):
                return -5
            s.elems[s.n] = m.cur[s.slots.v[j]]
            s.n += 1
    if f.sets.n == 0:
        return finish(m, f)
    if f.pivot_set >= 0 and not can_begin(m, f):
        return 0
    if f.sets.n == 1 and f.n_pairs == 0:
        s = &m.sets[f.sets.v[0]]
        if s.preds.n == 0 and s.distinct.n == 0:
            set_interval(m, s, &lo, &hi)
            return dense_runs(m, f, s, lo, hi)
    for i in range(f.sets.n):
        if candidates(m, &m.sets[f.sets.v[i]]):
            return -5
    if f.sets.n == 1 and f.n_pairs == 0:
        return runs(m, f, &m.sets[f.sets.v[0]])
    return cliques(m, f)


cdef bint fits(Machine* m, Set* s, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """Whether two elements fit into every window of their set."""
    cdef Buf* buf = &m.bufs[m.slot_buf[s.slot]]
    cdef const int64_t* v
    cdef int k
    for k in range(s.wins.n):
        v = buf.pos if m.wins[s.wins.v[k]].count else buf.ts
        if sat_sub(v[inside(buf, j)], v[inside(buf, i)]) > m.wins[s.wins.v[k]].size:
            return False
    return True


cdef int dense_runs(Machine* m, Flat* f, Set* s, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    """One set of which every event from lo to hi could be an element: the maximal runs that fit every window."""
    cdef Py_ssize_t i = lo, j = lo
    cdef int r
    s.first, s.n, s.dense = 0, 0, True
    if lo >= hi:
        return finish(m, f) if s.least == 0 else 0
    while True:
        j = hi - 1 if fits(m, s, i, hi - 1) else last_fitting(m, s, i, j, hi)
        s.first, s.n, s.dense = i, j - i + 1, True
        r = tick(m)
        if r == 0:
            r = finish(m, f)
        if r != 0 or j == hi - 1:
            return r
        i = first_fitting(m, s, i + 1, j + 1)
        j += 1


cdef Py_ssize_t last_fitting(Machine* m, Set* s, Py_ssize_t i, Py_ssize_t j, Py_ssize_t hi) noexcept nogil:
    """The last event before hi that fits together with event i, as event j does."""
    cdef Py_ssize_t step = 1, end, mid
    while j + step < hi and fits(m, s, i, j + step):
        j += step
        step <<= 1
    end = min(j + step, hi)
    while end - j > 1:
        mid = (j + end) >> 1
        if fits(m, s, i, mid):
            j = mid
        else:
            end = mid
    return j


cdef Py_ssize_t first_fitting(Machine* m, Set* s, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """The first event from i on that fits together with event j."""
    cdef Py_ssize_t step = 1, end, mid
    if fits(m, s, i, j):
        return i
    while i + step < j and not fits(m, s, i + step, j):
        i += step
        step <<= 1
    end = min(i + step, j)
    while end - i > 1:
        mid = (i + end) >> 1
        if fits(m, s, mid, j):
            end = mid
        else:
            i = mid
    return end


cdef void set_interval(Machine* m, Set* s, Py_ssize_t* lo, Py_ssize_t* hi) noexcept nogil:
    """The part of a set's buffer between its neighbours and inside what is left of its windows."""
    cdef Buf* buf = &m.bufs[m.slot_buf[s.slot]]
    cdef Bounds b = Bounds(INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, -1)
    cdef int j, k, slot
    cdef int64_t v, low, high
    cdef Win* w
    for j in range(s.after.n):
        b.lo_order = max(b.lo_order, order_of(m, s.after.v[j]))
    for j in range(s.before.n):
        b.hi_order = min(b.hi_order, order_of(m, s.before.v[j]))
    for j in range(s.wins.n):
        w = &m.wins[s.wins.v[j]]
        if w.slots.n == 0:
            continue
        low, high = INT64_MAX, INT64_MIN
        for k in range(w.slots.n):
            slot = w.slots.v[k]
            v = place_of(m, slot, w.count)
            low, high = min(low, v), max(high, v)
        if w.count:
            b.lo_pos, b.hi_pos = max(b.lo_pos, sat_sub(high, w.size)), min(b.hi_pos, sat_add(low, w.size))
        else:
            b.lo_ts, b.hi_ts = max(b.lo_ts, sat_sub(high, w.size)), min(b.hi_ts, sat_add(low, w.size))
    lo[0], hi[0] = s.hint_lo, s.hint_hi
    interval(m, buf, &b, lo, hi)
    s.hint_lo, s.hint_hi = lo[0], hi[0]


cdef int candidates(Machine* m, Set* s) noexcept nogil:
    """The events that could be elements, each by itm."""
    cdef Buf* buf = &m.bufs[m.slot_buf[s.slot]]
    cdef Py_ssize_t lo = 0, hi = 0, i
    cdef int j
    cdef bint good
    set_interval(m, s, &lo, &hi)
    s.n_cands = 0
    if hi <= lo:
        return 0
    if s.cand_cap < hi - lo:
        free(s.cands)
        s.cands = <Py_ssize_t*> malloc((hi - lo) * sizeof(Py_ssize_t))
        s.cand_cap = hi - lo if s.cands != NULL else 0
        if s.cands == NULL:
            return 1
    s.compared += hi - lo
    for i in range(lo, hi):
        m.cur[s.slot] = inside(buf, i)
        m.compared += 1
        good = True
        for j in range(s.distinct.n):
            if row_of(m, s.distinct.v[j]) == buf.row[i]:
                good = False
                break
        if not good:
            continue
        for j in range(s.preds.n):
            if not holds(m, s.preds.v[j]):
                good = False
                break
        if good:
            s.cands[s.n_cands] = i
            s.n_cands += 1
    return 0


cdef int runs(Machine* m, Flat* f, Set* s) noexcept nogil:
    """One set: its maximal sets are the maximal runs of candidates that fit every window."""
    cdef Py_ssize_t i, j = 0, last = -1
    cdef int r
    if s.n_cands == 0:
        s.n, s.dense = 0, False
        return finish(m, f) if s.least == 0 else 0
    for i in range(s.n_cands):
        if j < i:
            j = i
        while j + 1 < s.n_cands:
            if not fits(m, s, s.cands[i], s.cands[j + 1]):
                break
            j += 1
        if j > last:
            last = j
            if grow(s, j - i + 1):
                return -5
            memcpy(s.elems, s.cands + i, (j - i + 1) * sizeof(Py_ssize_t))
            s.n, s.dense = j - i + 1, False
            r = finish(m, f)
            if r != 0:
                return r
    return 0


cdef bint compatible(Machine* m, Flat* f, int a, Py_ssize_t x, int b, Py_ssize_t y) noexcept nogil:
    """Whether element x of set a and element y of set b can stand in one match."""
    cdef Set* p = &m.sets[a]
    cdef Set* q = &m.sets[b]
    cdef Buf* pb = &m.bufs[m.slot_buf[p.slot]]
    cdef Buf* qb = &m.bufs[m.slot_buf[q.slot]]
    cdef int k, j
    cdef Win* w
    cdef int64_t u, v
    cdef Pair* pair
    inside(pb, x)
    inside(qb, y)
    for k in range(p.wins.n):
        w = &m.wins[p.wins.v[k]]
        for j in range(w.sets.n):
            if w.sets.v[j] == b:
                u = pb.pos[x] if w.count else pb.ts[x]
                v = qb.pos[y] if w.count else qb.ts[y]
                if sat_sub(max(u, v), min(u, v)) > w.size:
                    return False
    for k in range(f.n_pairs):
        pair = &f.pairs[k]
        if pair.a == a and pair.b == b:
            if not agree(m, pair, x, y, pb, qb):
                return False
        elif pair.a == b and pair.b == a:
            if not agree(m, pair, y, x, qb, pb):
                return False
    return True


cdef bint agree(Machine* m, Pair* pair, Py_ssize_t x, Py_ssize_t y, Buf* xb, Buf* yb) noexcept nogil:
    cdef Col* c
    cdef Col* d
    if pair.kind == 0:
        return xb.order_[x] < yb.order_[y]
    if pair.kind == 1:
        return xb.row[x] != yb.row[y]
    c, d = &m.cols[pair.col_a], &m.cols[pair.col_b]
    if (c.valid != NULL and not c.valid[x]) or (d.valid != NULL and not d.valid[y]):
        return False
    return c.i[x] == d.i[y] if pair.kind == 2 else c.f[x] == d.f[y]


cdef int cliques(Machine* m, Flat* f) noexcept nogil:
    """Several sets: maximal matches are the maximal cliques of compatible elements (Bron-Kerbosch with a pivot)."""
    cdef Py_ssize_t total = 0, words, i, j, n
    cdef int a, b, r = 0
    cdef Set* s
    cdef int* owner = NULL
    cdef Py_ssize_t* item = NULL
    cdef uint64_t* graph = NULL
    cdef uint64_t* start = NULL
    for a in range(f.sets.n):
        s = &m.sets[f.sets.v[a]]
        if s.n_cands == 0 and s.least > 0:
            return 0
        total += s.n_cands
    if total > 8192:
        return -4
    words = ((total + 63) >> 6) if total else 1
    owner = <int*> malloc((total + 1) * sizeof(int))
    item = <Py_ssize_t*> malloc((total + 1) * sizeof(Py_ssize_t))
    graph = <uint64_t*> calloc(total * words + 1, sizeof(uint64_t))
    start = <uint64_t*> calloc(3 * words, sizeof(uint64_t))
    if owner == NULL or item == NULL or graph == NULL or start == NULL:
        r = -5
    else:
        n = 0
        for a in range(f.sets.n):
            s = &m.sets[f.sets.v[a]]
            for i in range(s.n_cands):
                owner[n], item[n] = f.sets.v[a], s.cands[i]
                n += 1
        for i in range(total):
            start[words + (i >> 6)] |= (<uint64_t> 1) << (i & 63)
            for j in range(i):
                if compatible(m, f, owner[i], item[i], owner[j], item[j]):
                    graph[i * words + (j >> 6)] |= (<uint64_t> 1) << (j & 63)
                    graph[j * words + (i >> 6)] |= (<uint64_t> 1) << (i & 63)
        r = expand(m, f, owner, item, graph, total, words, start, start + words, start + 2 * words)
    free(owner)
    free(item)
    free(graph)
    free(start)
    return r


cdef int expand(
    Machine* m, Flat* f, int* owner, Py_ssize_t* item, uint64_t* graph, Py_ssize_t total, Py_ssize_t words,
    uint64_t* chosen, uint64_t* open_, uint64_t* closed,
) noexcept nogil:
    cdef Py_ssize_t i, w, u, pivot = -1
    cdef int count, best = -1, r
    cdef uint64_t any_open = 0, any_closed = 0, bits
    cdef uint64_t* next_
    r = tick(m)
    if r < 0:
        return r
    for w in range(words):
        any_open |= open_[w]
        any_closed |= closed[w]
    if any_open == 0:
        return report(m, f, owner, item, total, chosen) if any_closed == 0 else 0
    for u in range(total):
        if not ((open_[(u >> 6)] | closed[(u >> 6)]) >> (u & 63)) & 1:
            continue
        count = 0
        for w in range(words):
            count += count_bits(open_[w] & graph[u * words + w])
        if count > best:
            best, pivot = count, u
    next_ = <uint64_t*> malloc(3 * words * sizeof(uint64_t))
    if next_ == NULL:
        return -5
    r = 0
    for w in range(words):
        bits = open_[w] & ~graph[pivot * words + w]
        while bits and r == 0:
            i = w * 64 + lowest_bit(bits)
            bits &= bits - 1
            memcpy(next_, chosen, words * sizeof(uint64_t))
            next_[(i >> 6)] |= (<uint64_t> 1) << (i & 63)
            for u in range(words):
                next_[words + u] = open_[u] & graph[i * words + u]
                next_[2 * words + u] = closed[u] & graph[i * words + u]
            r = expand(m, f, owner, item, graph, total, words, next_, next_ + words, next_ + 2 * words)
            open_[(i >> 6)] &= ~((<uint64_t> 1) << (i & 63))
            closed[(i >> 6)] |= (<uint64_t> 1) << (i & 63)
        if r != 0:
            break
    free(next_)
    return r


cdef int report(Machine* m, Flat* f, int* owner, Py_ssize_t* item, Py_ssize_t total, uint64_t* chosen) noexcept nogil:
    cdef int a
    cdef Py_ssize_t i
    cdef Set* s
    for a in range(f.sets.n):
        m.sets[f.sets.v[a]].n, m.sets[f.sets.v[a]].dense = 0, False
    for i in range(total):
        if (chosen[(i >> 6)] >> (i & 63)) & 1:
            s = &m.sets[owner[i]]
            if grow(s, s.n + 1):
                return -5
            s.elems[s.n] = item[i]
            s.n += 1
    for a in range(f.sets.n):
        if m.sets[f.sets.v[a]].n < m.sets[f.sets.v[a]].least:
            return 0
    return finish(m, f)

# output


cdef int emit_set(Machine* m, Set* s, Out* starts, Out* ends, Out* own) noexcept nogil:
    """A set of a match: its range, or its rows; 1: no memory."""
    cdef Buf* buf = &m.bufs[m.slot_buf[s.slot]]
    cdef Py_ssize_t i, first = element(s, 0) if s.n else 0
    if s.n == 0:
        return push(starts, 0) or push(ends, 0)
    inside(buf, first)
    inside(buf, element(s, s.n - 1))
    if s.dense or (s.slots.n == 0 and s.elems[s.n - 1] - first == s.n - 1):
        return push(starts, first) or push(ends, first + s.n)
    if own.n + s.n > own.cap and enlarge(own, own.n + s.n):
        return 1
    for i in range(s.n):
        own.v[own.n + i] = buf.row[inside(buf, s.elems[i])]
    own.n += s.n
    return push(starts, -1 - (own.n - s.n)) or push(ends, -1 - own.n)


cdef int settle(Machine* m, Flat* f, int number, Py_ssize_t since) noexcept nogil:
    """Let a set's ranges of the matches from `since` on point into its own rows: -5, no memory.

    What all of them cover is copied once; or each by itself, where that is less.
    """
    cdef Out* starts = &m.elems[3 * number]
    cdef Out* ends = &m.elems[3 * number + 1]
    cdef Out* own = &m.elems[3 * number + 2]
    cdef Buf* buf = &m.bufs[m.slot_buf[m.sets[f.out_sets.v[number]].slot]]
    cdef int64_t lo = INT64_MAX, hi = 0, total = 0, a, b, moved = 0
    cdef Py_ssize_t k
    cdef bint once
    for k in range(since, starts.n):
        if 0 <= starts.v[k] < ends.v[k]:
            lo, hi = min(lo, starts.v[k]), max(hi, ends.v[k])
            total += ends.v[k] - starts.v[k]
    if QUERCUS_IS_CHECKED and total and hi > buf.n:
        abort()
    once = total > 0 and hi - lo <= total
    total = hi - lo if once else total
    if own.n + total > own.cap and enlarge(own, own.n + total):
        return -5
    if once:
        memcpy(own.v + own.n, buf.row + lo, total * sizeof(int64_t))
        moved = own.n - lo
        own.n += total
    for k in range(since, starts.n):
        a, b = starts.v[k], ends.v[k]
        if a < 0:
            starts.v[k], ends.v[k] = -1 - a, -1 - b
        elif a == b:
            starts.v[k] = ends.v[k] = 0
        elif once:
            starts.v[k], ends.v[k] = a + moved, b + moved
        else:
            memcpy(own.v + own.n, buf.row + a, (b - a) * sizeof(int64_t))
            starts.v[k], ends.v[k] = own.n, own.n + b - a
            own.n += b - a
    return 0

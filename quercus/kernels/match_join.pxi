# Trees of joins: FAEM's internal buffers, from the leaves up. A composite is two links and an extent, and holds no event.
#
# A segment is taken in rounds. Each lets all leaves go forward to one time; then each node, children first, joins what is new with
# what is there. So composites come sorted by end. What lies too far back for all that is still to come is dropped between rounds: an
# internal buffer holds about one window of composites, however long the stream is.


cdef int join_tree(Machine* m, Flat* f) noexcept nogil:
    """All matches of one segment."""
    cdef int k, r
    cdef int64_t began, now, matches
    if not begin(m, f):
        return 0
    while advance(m, f):
        began = monotonic()
        for k in range(f.n_joins):
            if f.joins[k].child[0] < 0:
                continue
            matches = m.n_matches
            r = join(m, f, k)
            if r == 0 and f.natural and k == f.n_joins - 1:
                r = put_in_order(m, f, matches)
            now = monotonic()
            f.joins[k].nanoseconds += now - began
            began = now
            if r != 0:
                return r
        forget(m, f)
    return 0


cdef bint begin(Machine* m, Flat* f) noexcept nogil:
    """Empty internal buffers, leaves at their first event. With a part of the owner's events goes what a window from them reaches."""
    cdef int k
    cdef Join* n
    cdef Buf* b
    cdef Buf* owner = &m.bufs[m.slot_buf[f.owner]]
    cdef Py_ssize_t lo = max(owner.lo, m.first), hi = min(owner.hi, m.last)
    cdef bint part = lo > owner.lo or hi < owner.hi
    cdef const int64_t* v
    cdef int64_t low = 0, high = 0
    if lo >= hi:
        return False
    if part:
        v = owner.pos if m.count_window else owner.ts
        low, high = sat_sub(v[lo], m.window_size), sat_add(v[hi - 1], m.window_size)
    for k in range(f.n_joins):
        n = &f.joins[k]
        n.base = n.live = n.fresh = n.n = n.low[0] = n.low[1] = 0
        if n.child[0] >= 0:
            clear_chains(&n.chains[0])
            clear_chains(&n.chains[1])
            continue
        b = &m.bufs[m.slot_buf[n.slot]]
        n.start_ts = n.end_ts = <int64_t*> b.ts
        n.start_pos = n.end_pos = <int64_t*> b.pos
        n.n, n.stop = b.lo, b.hi
        if n.slot == f.owner:
            n.n, n.stop = lo, hi
        elif part:
            v = b.pos if m.count_window else b.ts
            n.n = first_above(v, b.lo, b.hi, low, True, b.lo)
            n.stop = first_above(v, n.n, b.hi, high, False, b.hi)
        n.fresh = n.live = n.n
    for k in range(f.n_joins):
        n = &f.joins[k]
        if n.child[0] >= 0:
            n.low[0], n.low[1] = f.joins[n.child[0]].live, f.joins[n.child[1]].live
            n.chains[0].base = n.chains[0].upto = n.low[0]
            n.chains[1].base = n.chains[1].upto = n.low[1]
    return True


cdef bint advance(Machine* m, Flat* f) noexcept nogil:
    """Each leaf goes forward to the time that the fullest one reaches in a round; False at the end."""
    cdef int k
    cdef Join* n
    cdef Join* fullest = NULL
    cdef Buf* b
    cdef int64_t until = INT64_MAX
    for k in range(f.n_joins):
        n = &f.joins[k]
        n.fresh = n.n
        if n.child[0] < 0 and (fullest == NULL or n.stop - n.n > fullest.stop - fullest.n):
            fullest = n
    if fullest.n == fullest.stop:
        return False
    if fullest.stop - fullest.n > m.round_:
        until = m.bufs[m.slot_buf[fullest.slot]].order_[fullest.n + m.round_ - 1]
    for k in range(f.n_joins):
        n = &f.joins[k]
        if n.child[0] < 0:
            b = &m.bufs[m.slot_buf[n.slot]]
            n.n = n.stop if until == INT64_MAX else first_above(b.order_, n.n, n.stop, until, False, n.n)
    return True


cdef void forget(Machine* m, Flat* f) noexcept nogil:
    """Let go what ended further back than the query's window from the next event.

    A later composite may hold a link to what is let go, but then it is itself too old for any test to follow the link.
    """
    cdef int k, side
    cdef Join* n
    cdef Join* below
    cdef const int64_t* v
    cdef int64_t cut = INT64_MAX
    for k in range(f.n_joins):
        n = &f.joins[k]
        if n.child[0] < 0 and n.n < n.stop:
            cut = min(cut, (n.end_pos if m.count_window else n.end_ts)[n.n])
    if cut == INT64_MAX:
        return
    cut = sat_sub(cut, m.window_size)
    for k in range(f.n_joins):
        n = &f.joins[k]
        v = n.end_pos if m.count_window else n.end_ts
        while n.live < n.n and v[n.live - n.base] < cut:
            n.live += 1
        if n.child[0] < 0:
            continue
        if n.live - n.base > (n.n - n.base) >> 1:
            shift(n.links[0], n.live - n.base, n.n - n.live)
            shift(n.links[1], n.live - n.base, n.n - n.live)
            shift(n.start_ts, n.live - n.base, n.n - n.live)
            shift(n.end_ts, n.live - n.base, n.n - n.live)
            shift(n.start_pos, n.live - n.base, n.n - n.live)
            shift(n.end_pos, n.live - n.base, n.n - n.live)
            n.base = n.live
        for side in range(2):
            below = &f.joins[n.child[side]]
            n.low[side] = max(n.low[side], below.live)
            forget_chains(&n.chains[side], below)


cdef inline void shift(int64_t* v, Py_ssize_t by, Py_ssize_t n) noexcept nogil:
    if v != NULL:
        memmove(v, v + by, n * sizeof(int64_t))


cdef int join(Machine* m, Flat* f, int k) noexcept nogil:
    """Join what is new of one child with what is there of the other."""
    cdef Join* n = &f.joins[k]
    cdef Join* left = &f.joins[n.child[0]]
    cdef Join* right = &f.joins[n.child[1]]
    cdef const int64_t* a
    cdef const int64_t* b
    cdef Py_ssize_t i, j, passed
    cdef int r
    if n.n_keys:
        r = hash_new(m, f, k, 0)
        if r == 0 and not n.ordered:
            r = hash_new(m, f, k, 1)
        if r != 0:
            return r
    if n.ordered:
        a, b = left.end_pos if m.by_arrival else left.end_ts, right.start_pos if m.by_arrival else right.start_ts
        passed = left.live
        for i in range(right.fresh, right.n):
            passed = left.base + first_above(
                a, n.low[0] - left.base, left.n - left.base, b[composite(right, i)], True, passed - left.base
            )
            if n.n_keys:
                while n.chains[0].upto < passed:
                    link_next(&n.chains[0])
            r = drive(m, f, k, 1, i, passed)
            if r != 0:
                return r
        return 0
    a, b = left.end_pos if f.keeps_pos else left.end_ts, right.end_pos if f.keeps_pos else right.end_ts
    i, j = left.fresh, right.fresh
    while i < left.n or j < right.n:
        if j == right.n or (i < left.n and a[composite(left, i)] <= b[composite(right, j)]):
            r = drive(m, f, k, 0, i, j)
            if n.n_keys:
                link_next(&n.chains[0])
            i += 1
        else:
            r = drive(m, f, k, 1, j, i)
            if n.n_keys:
                link_next(&n.chains[1])
            j += 1
        if r != 0:
            return r
    return 0


cdef inline Py_ssize_t composite(Join* n, Py_ssize_t i) noexcept nogil:
    """Where composite i of an internal buffer, or event i of a leaf, is kept."""
    if QUERCUS_IS_CHECKED and (i < n.live or i >= n.n):
        abort()
    return i - n.base


cdef inline bint apart(Join* n, Join* own, Py_ssize_t i, Join* other, Py_ssize_t j) noexcept nogil:
    """Whether j ended too long before i ends."""
    if n.within_ts != INT64_MAX and sat_sub(own.end_ts[composite(own, i)], other.end_ts[composite(other, j)]) > n.within_ts:
        return True
    return n.within_pos != INT64_MAX and sat_sub(own.end_pos[composite(own, i)], other.end_pos[composite(other, j)]) > n.within_pos


cdef int drive(Machine* m, Flat* f, int k, int side, Py_ssize_t i, Py_ssize_t passed) noexcept nogil:
    """Composite i of one child looks for partners among the other's composites before `passed`."""
    cdef Join* n = &f.joins[k]
    cdef Join* own = &f.joins[n.child[side]]
    cdef Join* other = &f.joins[n.child[1 - side]]
    cdef Chains* c
    cdef Sift sift
    cdef Py_ssize_t j, low = n.low[1 - side]
    cdef int64_t h = 0
    cdef int r
    while low < passed and apart(n, own, i, other, low):
        low += 1
    n.low[1 - side] = low
    if low >= passed:
        return 0
    if n.bare:
        return take_all(m, f, k, i, low, passed)
    fetch(m, f, n, side, i)
    if passed - low >= m.sift_from and n.sieves[1 - side].n:
        if not begin_sift(m, &n.sieves[1 - side], &m.bufs[m.slot_buf[other.slot]], low, passed, &n.compared, &sift):
            return 0
        while True:
            j = next_sifted(m, &sift)
            if j == passed:
                return sift.stop
            r = meet(m, f, k, side, i, j)
            if r != 0:
                return r
    if n.n_keys == 0:
        n.compared += passed - low
        m.compared += passed - low
        for j in range(low, passed):
            r = meet(m, f, k, side, i, j)
            if r != 0:
                return r
        return 0
    if not hash_of(m, n, side, &h):
        return 0
    c = &n.chains[1 - side]
    j = c.heads[h & (c.n_buckets - 1)]
    while j >= low:
        if c.hashes[chained(c, j)] == h and j < passed:
            n.compared += 1
            m.compared += 1
            r = meet(m, f, k, side, i, j)
            if r != 0:
                return r
        j = c.earlier[chained(c, j)]
    return 0


cdef int meet(Machine* m, Flat* f, int k, int side, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """One candidate: composite i of a child, whose events are fetched, and composite j of the other."""
    cdef Join* n = &f.joins[k]
    cdef Join* own = &f.joins[n.child[side]]
    cdef Join* other = &f.joins[n.child[1 - side]]
    cdef int64_t start_ts = 0, end_ts = 0, start_pos = 0, end_pos = 0
    cdef Bounds free_scope
    cdef int q, r
    r = tick(m)
    if r < 0:
        return r
    if f.keeps_ts:
        start_ts = min(own.start_ts[composite(own, i)], other.start_ts[composite(other, j)])
        end_ts = max(own.end_ts[composite(own, i)], other.end_ts[composite(other, j)])
        if sat_sub(end_ts, start_ts) > n.within_ts:
            return 0
    if f.keeps_pos:
        start_pos = min(own.start_pos[composite(own, i)], other.start_pos[composite(other, j)])
        end_pos = max(own.end_pos[composite(own, i)], other.end_pos[composite(other, j)])
        if sat_sub(end_pos, start_pos) > n.within_pos:
            return 0
    fetch(m, f, n, 1 - side, j)
    for q in range(n.n_distinct):
        if row_of(m, n.distinct[0].v[q]) == row_of(m, n.distinct[1].v[q]):
            return 0
    for q in range(n.preds.n):
        if not holds(m, n.preds.v[q]):
            return 0
    for q in range(n.negs.n):
        r = exists(m, n.negs.v[q])
        if r != 0:
            return r if r < 0 else 0
    n.built += 1
    m.bound += 1
    if not n.keeps:
        bind(m, f, n.child[side], i)
        bind(m, f, n.child[1 - side], j)
        if f.plain_root:
            return emit(m, f)
        free_scope = Bounds(INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, -1)
        return search(m, f, 0, &free_scope)
    if n.n - n.base == n.cap:
        r = make_room(m, f, k, n.cap + 1)
        if r != 0:
            return r
    n.links[side][n.n - n.base], n.links[1 - side][n.n - n.base] = i, j
    if f.keeps_ts:
        n.start_ts[n.n - n.base], n.end_ts[n.n - n.base] = start_ts, end_ts
    if f.keeps_pos:
        n.start_pos[n.n - n.base], n.end_pos[n.n - n.base] = start_pos, end_pos
    n.n += 1
    n.most = max(n.most, (n.n - n.live) * width(f))
    return 0


cdef int take_all(Machine* m, Flat* f, int k, Py_ssize_t i, Py_ssize_t low, Py_ssize_t passed) noexcept nogil:
    """Composite i of the right child with all of the left's that the windows allow: nothing else is to be tested."""
    cdef Join* n = &f.joins[k]
    cdef Join* left = &f.joins[n.child[0]]
    cdef Join* right = &f.joins[n.child[1]]
    cdef int64_t end_ts = 0, end_pos = 0, from_ts = INT64_MIN, from_pos = INT64_MIN
    cdef const int64_t* ts = left.start_ts - left.base if f.keeps_ts else NULL
    cdef const int64_t* pos = left.start_pos - left.base if f.keeps_pos else NULL
    cdef Py_ssize_t j, q = n.n - n.base
    cdef int r, c
    composite(left, low)
    composite(left, passed - 1)
    n.compared += passed - low
    m.compared += passed - low
    r = pause(m) if passed - low > 65535 else tick(m)
    if r < 0:
        return r
    if f.keeps_ts:
        end_ts = right.end_ts[composite(right, i)]
        from_ts = sat_sub(end_ts, n.within_ts) if n.within_ts != INT64_MAX else INT64_MIN
    if f.keeps_pos:
        end_pos = right.end_pos[composite(right, i)]
        from_pos = sat_sub(end_pos, n.within_pos) if n.within_pos != INT64_MAX else INT64_MIN
    if not n.keeps:
        bind(m, f, n.child[1], i)
        for j in range(low, passed):
            if (f.keeps_ts and ts[j] < from_ts) or (f.keeps_pos and pos[j] < from_pos):
                continue
            bind(m, f, n.child[0], j)
            n.built += 1
            m.bound += 1
            r = emit(m, f)
            if r != 0:
                return r
        return 0
    if q + passed - low > n.cap:
        r = make_room(m, f, k, q + passed - low)
        if r != 0:
            return r
    for j in range(low, passed):
        if (f.keeps_ts and ts[j] < from_ts) or (f.keeps_pos and pos[j] < from_pos):
            continue
        n.links[0][q], n.links[1][q] = j, i
        if f.keeps_ts:
            n.start_ts[q], n.end_ts[q] = ts[j], end_ts
        if f.keeps_pos:
            n.start_pos[q], n.end_pos[q] = pos[j], end_pos
        q += 1
    q += n.base
    n.built += q - n.n
    m.bound += q - n.n
    n.n = q
    n.most = max(n.most, (n.n - n.live) * width(f))
    return 0


# references


cdef inline Py_ssize_t linked(Join* n, int side, Py_ssize_t i) noexcept nogil:
    return n.links[side][composite(n, i)]


cdef inline void fetch(Machine* m, Flat* f, Join* n, int side, Py_ssize_t i) noexcept nogil:
    """The events of a child's composite that the tests of this join read."""
    cdef int q, s
    cdef Py_ssize_t e
    cdef Fetch* way
    cdef Join* below
    for q in range(n.n_fetch[side]):
        way, below, e = &n.fetch[side][q], &f.joins[n.child[side]], i
        for s in range(way.path.n):
            e = linked(below, way.path.v[s], e)
            below = &f.joins[below.child[way.path.v[s]]]
        m.cur[way.slot] = e


cdef void bind(Machine* m, Flat* f, int k, Py_ssize_t i) noexcept nogil:
    """All events of a composite."""
    cdef Join* n = &f.joins[k]
    if n.child[0] < 0:
        m.cur[n.slot] = inside(&m.bufs[m.slot_buf[n.slot]], i)
        return
    bind(m, f, n.child[0], linked(n, 0, i))
    bind(m, f, n.child[1], linked(n, 1, i))


# memory


cdef inline int64_t width(Flat* f) noexcept nogil:
    """Bytes of a composite."""
    return <int64_t> sizeof(int64_t) * (2 + 2 * f.keeps_ts + 2 * f.keeps_pos)


cdef Py_ssize_t larger(Machine* m, int k, Py_ssize_t cap, Py_ssize_t least, int64_t each) noexcept nogil:
    """A capacity for `least` items and more, as far as the limit goes; 0 when it does not go so far."""
    cdef Py_ssize_t wanted = max(2 * cap, max(least, 256))
    if wanted - cap > c_quotient(m.max_state - m.state, each):
        wanted = cap + c_quotient(m.max_state - m.state, each)
    if wanted < least:
        m.grew = k
        return 0
    m.state += (wanted - cap) * each
    return wanted


cdef int enlarge_array(int64_t** v, Py_ssize_t cap) noexcept nogil:
    cdef void* p = realloc(v[0], cap * sizeof(int64_t))
    if p == NULL:
        return 1
    v[0] = <int64_t*> p
    return 0


cdef int make_room(Machine* m, Flat* f, int k, Py_ssize_t least) noexcept nogil:
    cdef Join* n = &f.joins[k]
    cdef Py_ssize_t cap = larger(m, k, n.cap, least, width(f))
    if cap == 0:
        return -6
    if enlarge_array(&n.links[0], cap) or enlarge_array(&n.links[1], cap):
        return -5
    if f.keeps_ts and (enlarge_array(&n.start_ts, cap) or enlarge_array(&n.end_ts, cap)):
        return -5
    if f.keeps_pos and (enlarge_array(&n.start_pos, cap) or enlarge_array(&n.end_pos, cap)):
        return -5
    n.cap = cap
    return 0


cdef void free_joins(Machine* m, Flat* f) noexcept nogil:
    cdef int k, side
    cdef Join* n
    for k in range(f.n_joins):
        n = &f.joins[k]
        if n.child[0] < 0:
            continue
        for side in range(2):
            free(n.links[side])
            free(n.chains[side].hashes)
            free(n.chains[side].earlier)
            free(n.chains[side].heads)
            n.links[side] = n.chains[side].hashes = n.chains[side].earlier = n.chains[side].heads = NULL
            n.chains[side].cap = n.chains[side].n_buckets = n.chains[side].head_cap = 0
        free(n.start_ts)
        free(n.end_ts)
        free(n.start_pos)
        free(n.end_pos)
        n.start_ts = n.end_ts = n.start_pos = n.end_pos = NULL
        n.cap = 0
    m.state = 0

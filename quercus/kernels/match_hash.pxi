# Hash joins: the composites of a join's child by the columns that must be equal, in chains from the newest back.


cdef inline Py_ssize_t chained(Chains* c, Py_ssize_t i) noexcept nogil:
    """Where the hash of composite i is kept."""
    if QUERCUS_IS_CHECKED and (i < c.base or i - c.base >= c.cap):
        abort()
    return i - c.base


cdef bint hash_of(Machine* m, Join* n, int side, int64_t* out) noexcept nogil:
    """The hash of the keys of the composite whose events are fetched; False where one is null or NaN, which equals nothing."""
    cdef int q
    cdef Py_ssize_t e
    cdef Col* c
    cdef uint64_t h = 0x9E3779B97F4A7C15, bits
    cdef double x
    for q in range(n.n_keys):
        c = &m.cols[n.keys[q].col[side]]
        e = bound_at(m, n.keys[q].slot[side])
        if c.valid != NULL and not c.valid[e]:
            return False
        if n.keys[q].real:
            x = c.f[e]
            if x != x:
                return False
            x = 0.0 if x == 0 else x    # -0.0 too
            memcpy(&bits, &x, sizeof(bits))
        else:
            bits = <uint64_t> c.i[e]
        h = mix(h, bits)
    out[0] = <int64_t> h
    return True


cdef int hash_new(Machine* m, Flat* f, int k, int side) noexcept nogil:
    """Hashes of what is new in a child, and buckets enough for all. Later its links may be gone."""
    cdef Join* n = &f.joins[k]
    cdef Join* child = &f.joins[n.child[side]]
    cdef Chains* c = &n.chains[side]
    cdef Py_ssize_t i, cap, buckets
    cdef int64_t h = 0
    if child.n - c.base > c.cap:
        cap = larger(m, k, c.cap, child.n - c.base, 2 * sizeof(int64_t))
        if cap == 0:
            return -6
        if enlarge_array(&c.hashes, cap) or enlarge_array(&c.earlier, cap):
            return -5
        c.cap = cap
    for i in range(child.fresh, child.n):
        fetch(m, f, n, side, i)
        if hash_of(m, n, side, &h):
            c.hashes[chained(c, i)], c.earlier[chained(c, i)] = h, -1
        else:
            c.hashes[chained(c, i)], c.earlier[chained(c, i)] = 0, -2
    if c.n_buckets and child.n - c.base <= c.n_buckets:
        return 0
    buckets = 64
    while buckets < child.n - c.base:
        buckets *= 2
    if buckets > c.head_cap:
        cap = buckets - c.head_cap
        if cap > c_quotient(m.max_state - m.state, sizeof(int64_t)):
            m.grew = k
            return -6
        m.state += cap * <int64_t> sizeof(int64_t)
        if enlarge_array(&c.heads, buckets):
            return -5
        c.head_cap = buckets
    c.n_buckets = buckets
    for i in range(buckets):
        c.heads[i] = -1
    cap, c.upto = c.upto, c.base
    while c.upto < cap:
        link_next(c)
    return 0


cdef inline void link_next(Chains* c) noexcept nogil:
    cdef Py_ssize_t i = c.upto, bucket
    if c.earlier[chained(c, i)] != -2:
        bucket = c.hashes[i - c.base] & (c.n_buckets - 1)
        c.earlier[i - c.base] = c.heads[bucket]
        c.heads[bucket] = i
    c.upto += 1


cdef void clear_chains(Chains* c) noexcept nogil:
    c.n_buckets = 0     # few or many: what the next segment needs


cdef void forget_chains(Chains* c, Join* child) noexcept nogil:
    """Room for what is to come in place of what is gone. Chains end where they reach it: `low` is not before it."""
    cdef Py_ssize_t gone = child.live - c.base
    if c.n_buckets == 0 or gone <= (child.n - c.base) >> 1:
        return
    c.upto = max(c.upto, child.live)
    shift(c.hashes, gone, child.n - child.live)
    shift(c.earlier, gone, child.n - child.live)
    c.base = child.live

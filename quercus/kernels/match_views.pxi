# Views of sub-queries: results that were found once, kept by interval, apart for each choice of values that ties them to the match.
#
# An interval is two positions: of the first and of the last event in a scope that a result could begin and end with. A result is a
# record: the positions of its end and its start, and its events. Records are sorted by end, so that a search finds those of an interval.


cdef bint asks_for(Machine* m, Sub* sub, Bounds* scope, int64_t* lo, int64_t* hi, int64_t* at_) noexcept nogil:
    """The interval of a scope; False when no result fits in. `at_`: what the window measures, at its end.

    Each end depends on its own side of the scope alone: scopes that follow each other often have one in common.
    """
    if not sub.has_low or sub.scope.lo_order != scope.lo_order or sub.scope.lo_ts != scope.lo_ts or sub.scope.lo_pos != scope.lo_pos:
        find_low(m, sub, scope)
    if not sub.has_high or sub.scope.hi_order != scope.hi_order or sub.scope.hi_ts != scope.hi_ts or sub.scope.hi_pos != scope.hi_pos:
        find_high(m, sub, scope)
    lo[0], hi[0], at_[0] = sub.low, sub.high, sub.high_at
    return lo[0] <= hi[0]


cdef void find_low(Machine* m, Sub* sub, Bounds* scope) noexcept nogil:
    """The first event from the left end of a scope on that can begin a result."""
    cdef int i
    cdef Buf* buf
    cdef Py_ssize_t first, hint
    sub.scope.lo_order, sub.scope.lo_ts, sub.scope.lo_pos = scope.lo_order, scope.lo_ts, scope.lo_pos
    sub.has_low, sub.low = True, INT64_MAX
    for i in range(sub.firsts.n):
        buf, hint = &m.bufs[sub.firsts.v[i]], sub.hints[2 * i]
        first = buf.lo
        if scope.lo_order != INT64_MIN:
            first = first_above(buf.order_, first, buf.hi, scope.lo_order, False, hint)
        if scope.lo_ts != INT64_MIN:
            first = first_above(buf.ts, first, buf.hi, scope.lo_ts, True, hint)
        if scope.lo_pos != INT64_MIN:
            first = first_above(buf.pos, first, buf.hi, scope.lo_pos, True, hint)
        sub.hints[2 * i] = first
        if first < buf.hi:
            sub.low = min(sub.low, buf.pos[inside(buf, first)])


cdef void find_high(Machine* m, Sub* sub, Bounds* scope) noexcept nogil:
    """The last event up to the right end of a scope that can end a result."""
    cdef int i
    cdef Buf* buf
    cdef Py_ssize_t last, hint
    sub.scope.hi_order, sub.scope.hi_ts, sub.scope.hi_pos = scope.hi_order, scope.hi_ts, scope.hi_pos
    sub.has_high, sub.high, sub.high_at = True, INT64_MIN, 0
    for i in range(sub.lasts.n):
        buf, hint = &m.bufs[sub.lasts.v[i]], sub.hints[2 * (sub.firsts.n + i) + 1]
        last = buf.hi
        if scope.hi_order != INT64_MAX:
            last = first_above(buf.order_, buf.lo, last, scope.hi_order, True, hint)
        if scope.hi_ts != INT64_MAX:
            last = first_above(buf.ts, buf.lo, last, scope.hi_ts, False, hint)
        if scope.hi_pos != INT64_MAX:
            last = first_above(buf.pos, buf.lo, last, scope.hi_pos, False, hint)
        sub.hints[2 * (sub.firsts.n + i) + 1] = last
        if last > buf.lo and buf.pos[inside(buf, last - 1)] > sub.high:
            sub.high, sub.high_at = buf.pos[last - 1], (buf.pos if m.count_window else buf.ts)[last - 1]


cdef void forget_scopes(Machine* m) noexcept nogil:
    """The buffers have changed, or are those of another segment."""
    cdef int i
    for i in range(m.n_subs):
        m.subs[i].has_low = m.subs[i].has_high = False


cdef int64_t floor_of(Machine* m, Sub* sub, int64_t hi, int64_t at_) noexcept nogil:
    """A position before which no later interval begins: a window before what is bound first. `at_` is the time or position of `hi`."""
    cdef int i
    cdef Buf* buf
    cdef Py_ssize_t j
    cdef int64_t least = INT64_MAX, who = hi
    if m.trigger >= 0:
        who, at_ = pos_of(m, m.trigger), place_of(m, m.trigger, m.count_window)
    if sub.floor_of != who:
        at_ = sat_sub(at_, m.window_size)
        sub.floor_of, sub.floor = who, at_
        if not m.count_window:
            for i in range(sub.firsts.n):
                buf = &m.bufs[sub.firsts.v[i]]
                j = first_above(buf.ts, buf.lo, buf.hi, at_, True, sub.hints[2 * i])
                if j < buf.hi:
                    least = min(least, buf.pos[j])
            sub.floor = least
    return sub.floor

# parts


cdef int part_of(Machine* m, Sub* sub, Part** out) noexcept nogil:
    """The part of a view for the match at hand. 0: a value is null, which equals nothing."""
    cdef int64_t key[9]
    cdef int i
    if sub.tie_slots.n == 0 and sub.n_parts and sub.parts[0].key[0] == m.segment:
        out[0] = &sub.parts[0]
        return 1
    key[0] = m.segment
    for i in range(sub.tie_slots.n):
        if not value(&m.cols[sub.tie_cols.v[i]], bound_at(m, sub.tie_slots.v[i]), &key[1 + i]):
            return 0
    return part_with(m, sub, key, out)


cdef int part_with(Machine* m, Sub* sub, const int64_t* key, Part** out) noexcept nogil:
    """The part of a segment and some values; made if it is not there."""
    cdef int n = 1 + sub.tie_slots.n, i
    cdef uint64_t h = 0
    cdef Part* part
    for i in range(n):
        h = mixed(h, key[i])
    if 2 * (sub.n_parts + 1) > sub.mask and rehash(sub, n):
        return -5
    h = h & <uint64_t> sub.mask
    while sub.table[h]:
        part = &sub.parts[sub.table[h] - 1]
        for i in range(n):
            if part.key[i] != key[i]:
                break
        else:
            out[0] = part
            return 1
        h = (h + 1) & <uint64_t> sub.mask
    part = &sub.parts[sub.n_parts]
    memset(part, 0, sizeof(Part))
    part.key = <int64_t*> malloc(n * sizeof(int64_t))
    if part.key == NULL:
        return -5
    memcpy(part.key, key, n * sizeof(int64_t))
    sub.n_parts += 1
    sub.table[h] = sub.n_parts
    account(m, sub, sizeof(Part) + n * sizeof(int64_t))
    out[0] = part
    return 1


cdef int rehash(Sub* sub, int n) noexcept nogil:
    """Room for more parts: at least half of the table stays empty."""
    cdef int64_t size = 16
    cdef Py_ssize_t i
    cdef int k
    cdef uint64_t h
    cdef void* p
    while size < 4 * (sub.n_parts + 1):
        size *= 2
    p = realloc(sub.parts, c_quotient(size, 2) * sizeof(Part))
    if p == NULL:
        return 1
    sub.parts = <Part*> p
    p = calloc(size, sizeof(int64_t))
    if p == NULL:
        return 1
    free(sub.table)
    sub.table, sub.mask = <int64_t*> p, size - 1
    for i in range(sub.n_parts):
        h = 0
        for k in range(n):
            h = mixed(h, sub.parts[i].key[k])
        h = h & <uint64_t> sub.mask
        while sub.table[h]:
            h = (h + 1) & <uint64_t> sub.mask
        sub.table[h] = i + 1
    return 0


cdef inline void account(Machine* m, Sub* sub, int64_t more) noexcept nogil:
    sub.bytes += more
    m.view_bytes += more
    sub.most = max(sub.most, sub.bytes)


cdef void drop_stretches(Machine* m, Sub* sub, Stretches* s, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Forget stretches [first, last)."""
    cdef Py_ssize_t i
    for i in range(first, last):
        account(m, sub, -<int64_t> (s.v[i].records.cap * sizeof(int64_t)))
        free(s.v[i].records.v)
    if first < last:
        memmove(&s.v[first], &s.v[last], (s.n - last) * sizeof(Stretch))
        s.n -= last - first


cdef void drop_part(Machine* m, Sub* sub, Part* part) noexcept nogil:
    drop_stretches(m, sub, &part.known, 0, part.known.n)
    drop_stretches(m, sub, &part.full, 0, part.full.n)
    account(m, sub, -<int64_t> ((part.known.cap + part.full.cap) * sizeof(Stretch) + sizeof(Part) + (1 + sub.tie_slots.n) * sizeof(int64_t)))
    free(part.known.v)
    free(part.full.v)
    free(part.key)


cdef void forget_views(Machine* m) noexcept nogil:
    """The events have changed: what was found among them goes."""
    cdef int i
    for i in range(m.n_subs):
        forget_view(m, &m.subs[i])


cdef void forget_view(Machine* m, Sub* sub) noexcept nogil:
    cdef Py_ssize_t j
    sub.floor_of, sub.left, sub.has_low, sub.has_high = INT64_MIN, INT64_MIN, False, False
    if sub.n_parts:
        for j in range(sub.n_parts):
            drop_part(m, sub, &sub.parts[j])
        sub.n_parts = 0
        memset(sub.table, 0, (sub.mask + 1) * sizeof(int64_t))
        sub.sweep = 0


cdef int sweep(Machine* m, Sub* sub, int64_t floor_) noexcept nogil:
    """Parts that hold nothing but what is over go: in a stream, of this segment."""
    cdef Py_ssize_t i = 0
    cdef Part* part
    while i < sub.n_parts:
        part = &sub.parts[i]
        if part.key[0] == m.segment:
            purge(m, sub, &part.known, floor_)
            purge(m, sub, &part.full, floor_)
        if part.known.n == 0 and part.full.n == 0:
            drop_part(m, sub, part)
            sub.n_parts -= 1
            memcpy(part, &sub.parts[sub.n_parts], sizeof(Part))
        else:
            i += 1
    sub.sweep = 2 * sub.bytes + 65536
    return rehash(sub, 1 + sub.tie_slots.n)


cdef void purge(Machine* m, Sub* sub, Stretches* s, int64_t floor_) noexcept nogil:
    """Stretches that end before a position go."""
    cdef Py_ssize_t n = 0
    while n < s.n and s.v[n].hi < floor_:
        n += 1
    drop_stretches(m, sub, s, 0, n)

# stretches


cdef Py_ssize_t last_from(Stretches* s, int64_t lo) noexcept nogil:
    """The last stretch that begins no later, or -1: it also ends last of those."""
    cdef Py_ssize_t a = 0, b = s.n, mid
    while a < b:
        mid = (a + b) >> 1
        if s.v[mid].lo <= lo:
            a = mid + 1
        else:
            b = mid
    return a - 1


cdef Stretch* put_stretch(Machine* m, Sub* sub, Stretches* s, Py_ssize_t at_, int64_t lo, int64_t hi) noexcept nogil:
    """A new stretch at that place, or NULL."""
    cdef Py_ssize_t cap
    cdef void* p
    if s.n == s.cap:
        cap = 2 * s.cap if s.cap else 2
        p = realloc(s.v, cap * sizeof(Stretch))
        if p == NULL:
            return NULL
        account(m, sub, (cap - s.cap) * sizeof(Stretch))
        s.v, s.cap = <Stretch*> p, cap
    memmove(&s.v[at_ + 1], &s.v[at_], (s.n - at_) * sizeof(Stretch))
    s.n += 1
    memset(&s.v[at_], 0, sizeof(Stretch))
    s.v[at_].lo, s.v[at_].hi = lo, hi
    return &s.v[at_]


cdef void drop_inside(Machine* m, Sub* sub, Stretches* s, Py_ssize_t at_) noexcept nogil:
    """Stretches after this one that lie in it go."""
    cdef Py_ssize_t n = at_ + 1
    while n < s.n and s.v[n].hi <= s.v[at_].hi:
        n += 1
    drop_stretches(m, sub, s, at_ + 1, n)


cdef int store(Machine* m, Flat* f) noexcept nogil:
    """A result of a sub-query is bound: keep it."""
    cdef Ints* slots = &m.subs[f.sub].end_slots[f.sub_end]
    cdef int64_t start = INT64_MAX, end = INT64_MIN, pos
    cdef int i
    for i in range(slots.n):
        pos = pos_of(m, slots.v[i])
        start, end = min(start, pos), max(end, pos)
    return keep(m, f, end, start)


cdef int keep(Machine* m, Flat* f, int64_t end, int64_t start) noexcept nogil:
    cdef Sub* sub = &m.subs[f.sub]
    cdef Ints* slots = &sub.end_slots[f.sub_end]
    cdef Records* r = f.into
    cdef Py_ssize_t cap, width = 2 + sub.slots.n
    cdef void* p
    cdef int i
    if r.n + width > r.cap:
        cap = max(2 * r.cap, 8 * width)
        p = realloc(r.v, cap * sizeof(int64_t))
        if p == NULL:
            return -5
        account(m, sub, (cap - r.cap) * sizeof(int64_t))
        r.v, r.cap = <int64_t*> p, cap
        if m.view_bytes + m.state > m.max_state:
            m.grew = f.sub
            return -7
    for i in range(sub.slots.n):
        r.v[r.n + 2 + i] = m.bufs[m.slot_buf[slots.v[i]]].base + m.cur[slots.v[i]]
    r.v[r.n], r.v[r.n + 1] = end, start
    r.n += width
    sub.results += 1
    return 0


cdef int results_of_end(Machine* m, Sub* sub, int end, Py_ssize_t e, int64_t lo, Records* into) noexcept nogil:
    """Results that end with an event and start at `lo` or later: kept, or 1 for the first one."""
    cdef Flat* f = &m.flats[sub.ends.v[end]]
    cdef Level* level = &f.levels[0]
    cdef Buf* buf = &m.bufs[m.slot_buf[level.slot]]
    cdef Bounds b = Bounds(INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, -1)
    cdef int i, r = tick(m)
    if r < 0:
        return r
    if buf.pos[e] < lo:  # an end of one event starts with it
        return 0
    m.cur[level.slot] = inside(buf, e)
    m.compared += 1
    level.compared += 1
    for i in range(level.preds.n):
        if not holds(m, level.preds.v[i]):
            return 0
    b.lo_pos, b.hi_pos = lo, buf.pos[e]
    if m.count_window:
        b.lo_pos = max(b.lo_pos, sat_sub(buf.pos[e], m.window_size))
    else:
        b.lo_ts = sat_sub(buf.ts[e], m.window_size)
    f.into = into
    level.bound += 1
    return search(m, f, 1, &b)


cdef int latest_of_end(Machine* m, Sub* sub, int end, Py_ssize_t e, int64_t lo, Records* into) noexcept nogil:
    """Of results that end with an event, the one that starts last: kept if none that ended before starts as late."""
    cdef int64_t start = INT64_MIN, least = into.v[into.n - 1] + 1 if into.n else lo
    cdef int i, r
    cdef Flat* f = &m.flats[sub.ends.v[end]]
    lo = max(lo, least)
    while True:
        r = results_of_end(m, sub, end, e, lo, NULL)
        if r < 0:
            return r
        if r == 0:
            break
        start = INT64_MAX
        for i in range(sub.end_slots[end].n):
            start = min(start, pos_of(m, sub.end_slots[end].v[i]))
        lo = start + 1
    if start == INT64_MIN:
        return 0
    f.into = into
    return keep(m, f, m.bufs[sub.lasts.v[end]].pos[e], start)


cdef int extend(Machine* m, Sub* sub, int64_t lo, int64_t beyond, int64_t hi, Records* into) noexcept nogil:
    """Results that start at `lo` or later and end after `beyond`, at `hi` at the latest, by end. Without `into`: 1 for the first one."""
    cdef Py_ssize_t next_[16]
    cdef Buf* buf
    cdef int i, best, r
    cdef int64_t pos, least
    for i in range(sub.ends.n):
        buf = &m.bufs[sub.lasts.v[i]]
        next_[i] = first_above(buf.pos, buf.lo, buf.hi, beyond, False, sub.hints[2 * (sub.firsts.n + i) + 1])
    while True:
        best, least = -1, INT64_MAX
        for i in range(sub.ends.n):
            buf = &m.bufs[sub.lasts.v[i]]
            if next_[i] < buf.hi:
                pos = buf.pos[next_[i]]
                if pos <= hi and (best < 0 or pos < least):
                    best, least = i, pos
        if best < 0:
            return 0
        r = results_of_end(m, sub, best, next_[best], lo, into) if into == NULL or not sub.sparse else latest_of_end(m, sub, best, next_[best], lo, into)
        if r != 0:
            sub.found_end = best
            return r
        next_[best] += 1


cdef int slide(Machine* m, Sub* sub, Part* part, int64_t lo, int64_t hi, int64_t floor_, Stretch** out) noexcept nogil:
    """`aggressive`, `balanced`: one stretch that moves to the right."""
    cdef Stretch* st
    cdef int64_t left = max(floor_, sub.left)
    cdef int r
    left = min(left, lo)
    if part.known.n == 0:
        st = put_stretch(m, sub, &part.known, 0, left, left - 1)
        if st == NULL:
            return -5
    st = &part.known.v[0]
    if lo < st.lo or st.hi < left:
        st.lo, st.hi, st.head, st.records.n = left, left - 1, 0, 0
    out[0] = st
    if hi <= st.hi:
        sub.hits += 1
        return 0
    trim(st, 2 + sub.slots.n, left)
    r = extend(m, sub, st.lo, st.hi, hi, &st.records)
    if r < 0:  # what is there is not all
        st.records.n = st.head = 0
        st.hi = st.lo - 1
        return r
    st.hi = hi
    return 0


cdef void trim(Stretch* st, int width, int64_t left) noexcept nogil:
    """Results that start before a position are asked for no more: those that end before it are let go."""
    st.lo = max(st.lo, left)
    while st.head < st.records.n and st.records.v[st.head] < left:
        st.head += width
    if 2 * st.head > st.records.n:
        memmove(st.records.v, st.records.v + st.head, (st.records.n - st.head) * sizeof(int64_t))
        st.records.n -= st.head
        st.head = 0


cdef int gather_stretch(Machine* m, Sub* sub, Part* part, int64_t lo, int64_t hi, int64_t floor_, Stretch** out) noexcept nogil:
    """`passive`: what was asked for is there, and nothing else.

    The interval lies in a stretch: it is there. A stretch reaches into it from the left: the stretch is enlarged to the right. It reaches
    into one on its right, contains some, or meets none: all is computed; what it contains is let go.
    """
    cdef Stretches* s = &part.known
    cdef Stretch* st
    cdef Py_ssize_t i
    cdef int64_t beyond = lo - 1
    cdef int r
    purge(m, sub, s, floor_)
    i = last_from(s, lo)
    if i >= 0 and s.v[i].hi >= hi:
        sub.hits += 1
        out[0] = &s.v[i]
        return 0
    if i >= 0 and s.v[i].hi >= lo:
        st = &s.v[i]
        beyond = st.hi
        trim(st, 2 + sub.slots.n, min(floor_, lo))
    else:
        i += 1
        st = put_stretch(m, sub, s, i, lo, hi)
        if st == NULL:
            return -5
    r = extend(m, sub, st.lo, beyond, hi, &st.records)
    if r < 0:
        drop_stretches(m, sub, s, i, i + 1)
        return r
    st.hi = hi
    drop_inside(m, sub, s, i)
    out[0] = &s.v[i]
    return 0


cdef int flag(Machine* m, Sub* sub, Part* part, int64_t lo, int64_t hi, int64_t floor_) noexcept nogil:
    """`passive`, negated: whether an interval is empty. What lies in an empty one is; what contains one that is not, is not."""
    cdef Py_ssize_t i
    cdef int k, r
    cdef int64_t beyond = lo - 1, start = INT64_MAX, end = INT64_MIN, pos
    cdef Stretches* s
    purge(m, sub, &part.known, floor_)
    purge(m, sub, &part.full, floor_)
    s = &part.full
    i = last_from(s, lo - 1) + 1
    if i < s.n and s.v[i].hi <= hi:
        sub.hits += 1
        return 1
    s = &part.known
    i = last_from(s, lo)
    if i >= 0 and s.v[i].hi >= hi:
        sub.hits += 1
        return 0
    if i >= 0 and s.v[i].hi >= lo:
        beyond = s.v[i].hi
    r = extend(m, sub, lo, beyond, hi, NULL)
    if r < 0:
        return r
    if r == 0:
        if i >= 0 and s.v[i].lo == lo:
            s.v[i].hi = hi
        else:
            i += 1
            if put_stretch(m, sub, s, i, lo, hi) == NULL:
                return -5
        drop_inside(m, sub, s, i)
        return 0
    for k in range(sub.end_slots[sub.found_end].n):
        pos = pos_of(m, sub.end_slots[sub.found_end].v[k])
        start, end = min(start, pos), max(end, pos)
    s = &part.full
    i = last_from(s, start)
    while i >= 0 and s.v[i].hi >= end:  # the smaller one says more
        drop_stretches(m, sub, s, i, i + 1)
        i -= 1
    return 1 if put_stretch(m, sub, s, i + 1, start, end) != NULL else -5

# asking


cdef Py_ssize_t record_from(Stretch* st, int width, int64_t end) noexcept nogil:
    """Where the first record begins that ends no earlier."""
    cdef Py_ssize_t a = 0, b = c_quotient(st.records.n - st.head, width), mid
    while a < b:
        mid = (a + b) >> 1
        if st.records.v[st.head + mid * width] < end:
            a = mid + 1
        else:
            b = mid
    return st.head + a * width


cdef int look_up(Machine* m, Sub* sub, Bounds* scope, int64_t** first, int64_t** last, int64_t* start) noexcept nogil:
    """The records that end in a scope; those that start at `start` or later lie in it."""
    cdef int64_t hi = 0, at_ = 0, floor_
    cdef Part* part = NULL
    cdef Stretch* st = NULL
    cdef int r, width = 2 + sub.slots.n
    first[0] = last[0] = NULL
    if not asks_for(m, sub, scope, start, &hi, &at_):
        return 0
    sub.asked += 1
    floor_ = floor_of(m, sub, hi, at_)
    if sub.bytes > sub.sweep and sub.n_parts and sweep(m, sub, min(floor_, start[0])):
        return -5
    r = part_of(m, sub, &part)
    if r <= 0:
        return r
    if sub.strategy == PASSIVE:
        r = gather_stretch(m, sub, part, start[0], hi, min(floor_, start[0]), &st)
    else:
        r = slide(m, sub, part, start[0], hi, floor_, &st)
    if r < 0 or st.records.n == st.head or st.records.v[st.records.n - width] < start[0]:
        return r
    first[0] = st.records.v + record_from(st, width, start[0])
    last[0] = st.records.v + record_from(st, width, hi + 1)
    return 0


cdef void bind_record(Machine* m, Sub* sub, const int64_t* record) noexcept nogil:
    cdef int i
    for i in range(sub.slots.n):
        m.cur[sub.slots.v[i]] = record[2 + i] - m.bufs[m.slot_buf[sub.slots.v[i]]].base


cdef bint differs(Machine* m, Sub* sub, int neg) noexcept nogil:
    """Whether the events of a result are none of the match's own, nor any that a negation may not use."""
    cdef int i
    for i in range(0, sub.distinct.n, 2):
        if row_of(m, sub.distinct.v[i]) == row_of(m, sub.distinct.v[i + 1]):
            return False
    if neg >= 0:
        for i in range(sub.slots.n):
            if excluded(m, neg, row_of(m, sub.slots.v[i])):
                return False
    return True


cdef bint spans(Machine* m, Level* level, Sub* sub) noexcept nogil:
    """Whether a result that reaches out on both sides of what is bound fits into each window with it."""
    cdef int i, j
    cdef int64_t v, low, high
    cdef Win* w
    for i in range(level.n_reach):
        w = &m.wins[level.reach[i].win]
        low, high = INT64_MAX, INT64_MIN
        for j in range(sub.slots.n):
            v = place_of(m, sub.slots.v[j], w.count)
            low, high = min(low, v), max(high, v)
        if sat_sub(high, low) > w.size:
            return False
    return True


cdef int has_result(Machine* m, Way* way, Bounds* scope) noexcept nogil:
    """Whether a negated sub-query has a result in its scope."""
    cdef Sub* sub = &m.subs[way.sub]
    cdef int64_t lo = 0, hi = 0, at_ = 0, floor_
    cdef int64_t* record = NULL
    cdef int64_t* first = NULL
    cdef Part* part = NULL
    cdef int i, r
    cdef bint good
    if sub.flags:
        if not asks_for(m, sub, scope, &lo, &hi, &at_):
            return 0
        sub.asked += 1
        floor_ = min(floor_of(m, sub, hi, at_), lo)
        if sub.bytes > sub.sweep and sub.n_parts and sweep(m, sub, floor_):
            return -5
        r = part_of(m, sub, &part)
        return r if r <= 0 else flag(m, sub, part, lo, hi, floor_)
    r = look_up(m, sub, scope, &first, &record, &lo)
    if r < 0:
        return r
    while record > first:
        record -= 2 + sub.slots.n
        m.compared += 1
        if record[1] < lo:
            if sub.sparse:  # who ended before starts before
                return 0
            continue
        if sub.preds.n == 0 and sub.negs.n == 0 and scope.neg < 0:
            return 1
        bind_record(m, sub, record)
        good = differs(m, sub, scope.neg)
        for i in range(sub.preds.n):
            good = good and holds(m, sub.preds.v[i])
        if not good:
            continue
        for i in range(sub.negs.n):
            r = exists(m, sub.negs.v[i])
            if r < 0:
                return r
            if r:
                good = False
                break
        if good:
            return 1
    return 0


cdef int bind_results(Machine* m, Flat* f, int k, Bounds* scope) noexcept nogil:
    """Bind a sub-query of level k, and all after it: each of its results in the interval that is left for it."""
    cdef Level* level = &f.levels[k]
    cdef Sub* sub = &m.subs[level.sub]
    cdef Bounds b = scope[0]
    cdef int64_t* record = NULL
    cdef int64_t* last = NULL
    cdef int64_t start = INT64_MIN
    cdef int r
    narrow(m, level, &b)
    if sub.strategy == ITERATIVE:
        sub.asked += 1
        sub.found.n = 0
        m.flats[sub.flat].into = &sub.found
        r = search(m, &m.flats[sub.flat], 0, &b)
        record, last = sub.found.v, sub.found.v + sub.found.n
    else:
        r = look_up(m, sub, &b, &record, &last, &start)
    if r < 0 or record == last:
        return min(r, tick(m))
    if k == f.n_levels - 1 and f.plain_last and not sub.loose and sub.distinct.n == 0:
        return emit_records(m, f, sub, level, record, last, start)
    while record < last:
        m.compared += 1
        level.compared += 1
        if record[1] >= start:
            bind_record(m, sub, record)
            r = tick(m)
            if r == 0 and differs(m, sub, scope.neg) and (not sub.loose or spans(m, level, sub)):
                r = passes(m, level, 0)
                if r > 0:
                    m.bound += 1
                    level.bound += 1
                    r = search(m, f, k + 1, scope)
                    if r > 0:
                        return r
            if r < 0:
                return r
        record += 2 + sub.slots.n
    return 0


cdef int emit_records(
    Machine* m, Flat* f, Sub* sub, Level* level, const int64_t* first, const int64_t* last, int64_t start
) noexcept nogil:
    """The results of the last level all at once: nothing is asked of any but that it lies in the interval."""
    cdef Py_ssize_t width = 2 + sub.slots.n, n = 0, all_ = 0, base
    cdef const int64_t* record = first
    cdef const int64_t* rows
    cdef int64_t* out
    cdef int64_t row
    cdef int i, j, r = tick(m)
    cdef Out* o
    if r < 0:
        return r
    while record < last:
        n += record[1] >= start
        all_ += 1
        record += width
    m.compared += all_
    level.compared += all_
    m.bound += n
    level.bound += n
    f.completed += n
    f.whole += n
    if n > m.max_matches - m.n_matches:
        return -2
    for i in range(f.outs.n):
        o = &m.outs[i]
        if o.n + n > o.cap and enlarge(o, o.n + n):
            return -5
        out = o.v + o.n
        o.n += n
        for j in range(sub.slots.n):
            if sub.slots.v[j] == f.outs.v[i]:
                break
        else:
            row = row_of(m, f.outs.v[i])
            for j in range(n):
                out[j] = row
            continue
        rows, base = m.bufs[m.slot_buf[sub.slots.v[j]]].row, m.bufs[m.slot_buf[sub.slots.v[j]]].base
        record = first
        while record < last:
            if record[1] >= start:
                out[0] = rows[record[2 + j] - base]
                out += 1
            record += width
    m.n_matches += n
    return 0

# the matches of what is bound first, before their sub-queries are: for the greatest interval that `balanced` will be asked for


cdef int hold_match(Machine* m, Flat* f) noexcept nogil:
    """Everything but the sub-queries is bound: keep it until all that the first event leads to is there."""
    cdef Records* h = &m.held
    cdef Py_ssize_t cap
    cdef void* p
    cdef int i
    if h.n + f.hold > h.cap:
        cap = max(2 * h.cap, <Py_ssize_t> 1024)
        p = realloc(h.v, cap * sizeof(int64_t))
        if p == NULL:
            return -5
        h.v, h.cap = <int64_t*> p, cap
    for i in range(f.hold):
        h.v[h.n + i] = m.cur[f.levels[i].slot]
    h.n += f.hold
    return 0


cdef int release(Machine* m, Flat* f, Bounds* scope) noexcept nogil:
    """Bind the sub-queries of the matches that were kept, each in an interval that begins where the first of them does."""
    cdef Records* h = &m.held
    cdef Py_ssize_t i
    cdef int j, r = 0
    cdef Bounds b
    if h.n == 0:
        return 0
    restore(m, f, 0)
    for i in range(1, c_quotient(h.n, f.hold)):
        for j in range(f.hold):
            m.cur[f.levels[j].slot] = min(m.cur[f.levels[j].slot], <Py_ssize_t> h.v[i * f.hold + j])
    for j in range(f.hold, f.n_levels):
        if f.levels[j].early:  # no match has an earlier event anywhere: none asks for more on the left
            b = scope[0]
            narrow(m, &f.levels[j], &b)
            find_low(m, &m.subs[f.levels[j].sub], &b)
            if m.subs[f.levels[j].sub].low < INT64_MAX:
                m.subs[f.levels[j].sub].left = m.subs[f.levels[j].sub].low
    m.released = True
    for i in range(c_quotient(h.n, f.hold)):
        restore(m, f, i * f.hold)
        r = bind_results(m, f, f.hold, scope)
        if r != 0:
            break
    m.released = False
    h.n = 0
    return r


cdef inline void restore(Machine* m, Flat* f, Py_ssize_t i) noexcept nogil:
    cdef int j
    for j in range(f.hold):
        m.cur[f.levels[j].slot] = m.held.v[i + j]

# Streams: buffers that grow at one end and are purged at the other, key by key; searches that start from the pivots at hand.

# The modes of quercus/backends/local/release.py.
cdef enum:
    LAST = 0
    DELAYED = 1
    FIRST = 2

MODES = ("last", "delayed", "first")


cdef struct Run:            # a buffer's events of one key, from lo to hi
    Py_ssize_t lo
    Py_ssize_t hi
    Py_ssize_t cap
    Py_ssize_t mark         # hi before this batch
    Py_ssize_t base         # how many events were before the first one that is here
    int64_t* ts
    int64_t* pos
    int64_t* row

cdef struct Segment:        # a key's events
    Run* runs
    int64_t** cols
    uint8_t** valid
    int64_t next_pos        # of the key's own stream
    int64_t next_before     # ... before this batch
    bint live
    bint touched

cdef struct Queue:          # pivots in the order of time, that wait for their moment: (time or position, segment)
    int64_t* at
    int64_t* segment
    Py_ssize_t head
    Py_ssize_t tail
    Py_ssize_t cap
    Py_ssize_t head_before
    Py_ssize_t tail_before

cdef struct Search:         # a variant of an alternative
    int flat
    int chain               # the same along pointers, or -1
    int mode
    int buffer              # the pivot's
    Queue queue


cdef class StreamMatcher(Matcher):
    """Runs the variants of a query's alternatives over a stream that comes in batches.

    append() and number() take in a batch, run() looks for the matches whose moment has come, then commit() purges, or undo()
    takes the batch back.
    """

    cdef Segment* segs
    cdef Py_ssize_t n_segs
    cdef Py_ssize_t cap_segs
    cdef Search* searches
    cdef int n_searches
    cdef bint keyed
    cdef bint own_positions
    cdef int* col_buf
    cdef int* col_float
    cdef Out touched
    cdef Out chosen
    cdef readonly int64_t events    # kept, purged ones in between included

    def __init__(self, program, searches, bint keyed, bint own_positions):
        """`searches`: (flat, the same as a chain or -1, mode, buffer of the pivot) each."""
        cdef int i
        self.keyed, self.own_positions = keyed, own_positions
        self.n_searches = len(searches)
        self.searches = <Search*> self._alloc(self.n_searches * sizeof(Search))
        for i, (flat, chain_, mode, buffer) in enumerate(searches):
            self.searches[i].flat, self.searches[i].chain = flat, chain_
            self.searches[i].mode, self.searches[i].buffer = MODES.index(mode), buffer
        self.col_buf = self._ints([c.buffer for c in program.columns]).v
        self.m.const_i, self.m.const_f = self._int64(np.array(program.const_i, np.int64)), self._float64(self._const_f)
        self.col_float = self._ints([c.expr.type == "float64" for c in program.columns]).v
        if not keyed:
            self._segment(0)

    def __dealloc__(self):
        cdef Py_ssize_t k
        cdef int i
        for k in range(self.n_segs):
            self._free(&self.segs[k])
        free(self.segs)
        give(self.touched.v, self.touched.cap * sizeof(int64_t))
        give(self.chosen.v, self.chosen.cap * sizeof(int64_t))
        for i in range(self.n_searches):
            free(self.searches[i].queue.at)
            free(self.searches[i].queue.segment)

    # segments

    cdef void _free(self, Segment* s) noexcept:
        cdef int i
        if not s.live:
            return
        for i in range(self.m.n_bufs):
            free(s.runs[i].ts)
            free(s.runs[i].pos)
            free(s.runs[i].row)
        for i in range(self.m.n_cols):
            free(s.cols[i])
            free(s.valid[i])
        free(s.runs)
        free(s.cols)
        free(s.valid)
        s.live = False

    cdef Segment* _segment(self, Py_ssize_t k) except NULL:
        """The segment of that number, made if it is not there."""
        cdef Py_ssize_t cap
        cdef Segment* s
        cdef void* p
        if k >= self.cap_segs:
            cap = max(2 * self.cap_segs, k + 16)
            p = realloc(self.segs, cap * sizeof(Segment))
            if p == NULL:
                raise MemoryError()
            self.segs, self.cap_segs = <Segment*> p, cap
        while self.n_segs <= k:
            memset(&self.segs[self.n_segs], 0, sizeof(Segment))
            self.n_segs += 1
        s = &self.segs[k]
        if not s.live:
            s.runs = <Run*> calloc(self.m.n_bufs + 1, sizeof(Run))
            s.cols = <int64_t**> calloc(self.m.n_cols + 1, sizeof(int64_t*))
            s.valid = <uint8_t**> calloc(self.m.n_cols + 1, sizeof(uint8_t*))
            if s.runs == NULL or s.cols == NULL or s.valid == NULL:
                free(s.runs)
                free(s.cols)
                free(s.valid)
                raise MemoryError()
            s.live, s.next_pos, s.next_before, s.touched = True, 0, 0, False
        return s

    cdef int _touch(self, Segment* s, Py_ssize_t k) except -1:
        """Remember what the segment was before this batch."""
        cdef int i
        if not s.touched:
            s.touched = True
            s.next_before = s.next_pos
            for i in range(self.m.n_bufs):
                s.runs[i].mark = s.runs[i].hi
            if push(&self.touched, k):
                raise MemoryError()
        return 0

    cdef int _reserve(self, Segment* s, int b, Py_ssize_t n) except -1:
        """Room for n more events in a run; what is purged makes room first."""
        cdef Run* r = &s.runs[b]
        cdef Py_ssize_t kept = r.hi - r.lo, cap = r.cap, lo = r.lo
        cdef int c
        if r.hi + n <= r.cap:
            return 0
        if kept + n > cap // 2:
            cap = max(2 * (kept + n), <Py_ssize_t> 4)
        r.ts = self._moved(r.ts, lo, kept, r.cap, cap)
        r.pos = self._moved(r.pos, lo, kept, r.cap, cap)
        r.row = self._moved(r.row, lo, kept, r.cap, cap)
        for c in range(self.m.n_cols):
            if self.col_buf[c] == b:
                s.cols[c] = self._moved(s.cols[c], lo, kept, r.cap, cap)
                s.valid[c] = <uint8_t*> self._moved_bytes(s.valid[c], lo, kept, r.cap, cap)
        r.cap, r.lo, r.hi, r.mark, r.base = cap, 0, kept, r.mark - lo, r.base + lo
        return 0

    cdef int64_t* _moved(self, int64_t* v, Py_ssize_t lo, Py_ssize_t kept, Py_ssize_t cap, Py_ssize_t new_cap) except NULL:
        return <int64_t*> self._moved_bytes(v, lo * 8, kept * 8, cap * 8, new_cap * 8)

    cdef void* _moved_bytes(self, void* v, Py_ssize_t lo, Py_ssize_t kept, Py_ssize_t cap, Py_ssize_t new_cap) except NULL:
        """What is kept of a run, at the front; in the same memory, if that is large enough."""
        cdef void* p = v
        if new_cap != cap:
            p = malloc(new_cap)
            if p == NULL:
                raise MemoryError()
        if kept:
            memmove(p, <char*> v + lo, kept)
        if p != v:
            free(v)
        return p

    # a batch comes in

    def number(self, const int64_t[::1] segments):
        """The positions of the next events in their keys' own streams; -1 where the key is null (a negative segment)."""
        cdef Py_ssize_t i, n = segments.shape[0]
        cdef Segment* s
        positions = np.full(n, -1, dtype=np.int64)
        cdef int64_t[::1] out = positions
        for i in range(n):
            if segments[i] >= 0:
                s = self._segment(segments[i])
                self._touch(s, segments[i])
                out[i] = s.next_pos
                s.next_pos += 1
        return positions

    def append(
        self, int b, const int64_t[::1] ts, const int64_t[::1] pos, const int64_t[::1] row, const int64_t[::1] segments, list columns,
    ):
        """Events for a buffer, in order. `columns`: a pair (8-byte numbers, bytes of validity or None) for each of its columns."""
        cdef Py_ssize_t i, n = ts.shape[0], k
        cdef int c, j
        cdef Segment* s
        cdef Run* r
        cdef const int64_t[::1] values
        cdef const uint8_t[::1] flags
        cdef const int64_t** from_
        cdef const uint8_t** from_valid
        if b < 0 or b >= self.m.n_bufs or pos.shape[0] != n or row.shape[0] != n or (self.keyed and segments.shape[0] != n):
            raise ValueError("the columns of a buffer differ in length")
        if n == 0:
            return
        from_ = <const int64_t**> calloc(self.m.n_cols + 1, sizeof(int64_t*))
        from_valid = <const uint8_t**> calloc(self.m.n_cols + 1, sizeof(uint8_t*))
        try:
            if from_ == NULL or from_valid == NULL:
                raise MemoryError()
            j = 0
            for c in range(self.m.n_cols):
                if self.col_buf[c] == b:
                    data, valid = columns[j]
                    values = data.view(np.int64)
                    if values.shape[0] != n:
                        raise ValueError("the columns of a buffer differ in length")
                    from_[c] = &values[0]
                    if valid is not None:
                        flags = valid
                        if flags.shape[0] != n:
                            raise ValueError("the columns of a buffer differ in length")
                        from_valid[c] = &flags[0]
                    j += 1
            for i in range(n):
                k = segments[i] if self.keyed else 0
                s = self._segment(k)
                if not s.touched:
                    self._touch(s, k)
                r = &s.runs[b]
                if r.hi == r.cap:
                    self._reserve(s, b, n - i if not self.keyed else 1)
                    r = &s.runs[b]
                if QUERCUS_IS_CHECKED and not 0 <= r.lo <= r.mark <= r.hi < r.cap:
                    abort()
                r.ts[r.hi], r.pos[r.hi], r.row[r.hi] = ts[i], pos[i], row[i]
                for c in range(self.m.n_cols):
                    if self.col_buf[c] == b:
                        s.cols[c][r.hi] = from_[c][i]
                        s.valid[c][r.hi] = from_valid[c][i] if from_valid[c] != NULL else 1
                r.hi += 1
            if self.keyed:
                self._enqueue(b, ts, pos, segments)
            self.events += n
        finally:
            free(from_)
            free(from_valid)

    cdef int _enqueue(self, int b, const int64_t[::1] ts, const int64_t[::1] pos, const int64_t[::1] segments) except -1:
        cdef int j
        cdef Py_ssize_t i, kept
        cdef Queue* q
        for j in range(self.n_searches):
            if self.searches[j].buffer != b or self.searches[j].mode not in (DELAYED, FIRST) or self._by_key(j):
                continue
            q = &self.searches[j].queue
            for i in range(ts.shape[0]):
                if q.tail == q.cap:
                    self._widen(q)
                if QUERCUS_IS_CHECKED and not 0 <= q.head_before <= q.head <= q.tail < q.cap:
                    abort()
                q.at[q.tail] = pos[i] if self._by_position(j) else ts[i]
                q.segment[q.tail] = segments[i]
                q.tail += 1
        return 0

    cdef int _widen(self, Queue* q) except -1:
        cdef Py_ssize_t lo = q.head_before, kept = q.tail - lo, cap = q.cap
        if kept * 2 >= cap:
            cap = max(2 * kept, <Py_ssize_t> 64)
        q.at = self._moved(q.at, lo, kept, q.cap, cap)
        q.segment = self._moved(q.segment, lo, kept, q.cap, cap)
        q.cap, q.head, q.tail, q.head_before, q.tail_before = cap, q.head - lo, kept, 0, q.tail_before - lo
        return 0

    cdef bint _by_position(self, int j) noexcept:
        """Whether the moment of a search's pivots is told by positions."""
        return self.searches[j].mode == FIRST and self._due(&self.searches[j]).count

    cdef Win* _due(self, Search* x) noexcept nogil:
        """The window whose end the search waits for."""
        return &self.m.wins[self.m.flats[x.flat].due]

    cdef bint _by_key(self, int j) noexcept:
        """... by those of the key's own stream: then no other key's events matter."""
        return self._by_position(j) and self.own_positions

    # matches

    def run(self, int number, before, now, int64_t max_matches, int64_t max_nanoseconds):
        """The matches of a search whose moment lies after `before` and not after `now`, two (clock, next position, events seen).

        Returns (status, columns, sets) as Matcher.run does.
        """
        cdef Search* search_ = &self.searches[number]
        cdef Flat* f = &self.m.flats[search_.flat]
        cdef int i, status = 0
        cdef Py_ssize_t k
        self.m.before, self.m.now = Moment(before[0], before[1], before[2]), Moment(now[0], now[1], now[2])
        self._choose(number)
        self._begin(f, max_matches, max_nanoseconds)
        try:
            self._make_room(search_)
            with nogil:
                for k in range(self.chosen.n):
                    self.m.segment = self.chosen.v[k]
                    status = self._run_segment(search_, f, &self.segs[self.chosen.v[k]])
                    if status < 0:
                        break
            return self._end(f, status)
        finally:
            self._discard(f)

    cdef int _choose(self, int number) except -1:
        """The segments where a search may find something."""
        cdef Search* x = &self.searches[number]
        cdef Queue* q = &x.queue
        cdef Py_ssize_t k
        cdef int64_t limit
        self.chosen.n = 0
        if not self.keyed:
            if push(&self.chosen, 0):
                raise MemoryError()
        elif x.mode == LAST or (self._by_key(number) and self.m.now.pos != INT64_MAX):
            for k in range(self.touched.n):
                if push(&self.chosen, self.touched.v[k]):
                    raise MemoryError()
        elif self._by_key(number):
            for k in range(self.n_segs):
                if self.segs[k].live and push(&self.chosen, k):
                    raise MemoryError()
        else:
            limit = self.m.now.pos if self._by_position(number) else self.m.now.ts
            if x.mode == FIRST and limit != INT64_MAX:
                limit = sat_sub(limit, self._due(x).size)
            for k in range(self.touched.n if x.mode == DELAYED else 0):
                if push(&self.chosen, self.touched.v[k]):
                    raise MemoryError()
            while q.head < q.tail and (q.at[q.head] < limit or limit == INT64_MAX):
                k = q.segment[q.head]
                if QUERCUS_IS_CHECKED and not 0 <= k < self.n_segs:
                    abort()
                if self.segs[k].live:
                    if push(&self.chosen, k):
                        raise MemoryError()
                q.head += 1
            self._unique()
        return 0

    cdef void _unique(self) noexcept:
        """Each chosen segment once, in order."""
        cdef Py_ssize_t i, n = 0
        if self.chosen.n > 1:
            qsort(self.chosen.v, self.chosen.n, sizeof(int64_t), &by_value)
            for i in range(self.chosen.n):
                if n == 0 or self.chosen.v[i] != self.chosen.v[n - 1]:
                    self.chosen.v[n] = self.chosen.v[i]
                    n += 1
            self.chosen.n = n

    cdef int _run_segment(self, Search* x, Flat* f, Segment* s) noexcept nogil:
        """The matches in a segment. Its buffers will move, so that sets get rows of their own."""
        cdef int i, status
        cdef Py_ssize_t since = self.m.n_matches
        status = self._look_in(x, f, s)
        for i in range(f.out_sets.n):
            if status == 0 and self.m.n_matches > since:
                status = settle(&self.m, f, i, since)
        return status

    cdef int _look_in(self, Search* x, Flat* f, Segment* s) noexcept nogil:
        cdef int i
        cdef Py_ssize_t total = 0
        cdef Bounds free_scope = Bounds(INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, -1)
        for i in range(f.n_levels):
            if s.runs[self.m.slot_buf[f.levels[i].slot]].lo == s.runs[self.m.slot_buf[f.levels[i].slot]].hi:
                return 0
        self._point(s)
        forget_scopes(&self.m)
        if self.own_positions:
            self.m.before.pos = s.next_before
            if self.m.now.pos != INT64_MAX:
                self.m.now.pos = s.next_pos
        self._pivots(x, s)
        if self.m.first >= self.m.last:
            return 0
        if x.chain >= 0:
            f = &self.m.flats[x.chain]
            for i in range(f.n_levels):
                total += component(&self.m, f, i).hi - component(&self.m, f, i).lo
            if (self.m.last - self.m.first) * 16 >= total:
                self.m.trigger = f.levels[0].slot
                self._share_out(f)
                return chain(&self.m, f)
            f = &self.m.flats[x.flat]
            self.m.trigger = f.levels[0].slot
        return search(&self.m, f, 0, &free_scope)

    cdef void _point(self, Segment* s) noexcept nogil:
        """Let the machine see this segment."""
        cdef int i
        cdef Run* r
        for i in range(self.m.n_bufs):
            r = &s.runs[i]
            if QUERCUS_IS_CHECKED and not 0 <= r.lo <= r.hi <= r.cap:
                abort()
            self.m.bufs[i].ts, self.m.bufs[i].pos, self.m.bufs[i].row = r.ts, r.pos, r.row
            self.m.bufs[i].order_ = r.pos if self.m.by_arrival else r.ts
            self.m.bufs[i].n, self.m.bufs[i].lo, self.m.bufs[i].hi, self.m.bufs[i].base = r.hi, r.lo, r.hi, r.base
        for i in range(self.m.n_cols):
            self.m.cols[i].f = <const double*> s.cols[i] if self.col_float[i] else NULL
            self.m.cols[i].i = NULL if self.col_float[i] else s.cols[i]
            self.m.cols[i].valid = s.valid[i]

    cdef void _pivots(self, Search* x, Segment* s) noexcept nogil:
        """The pivots whose moment has come: a range of their run."""
        cdef Run* r
        cdef const int64_t* v
        cdef int64_t low, high = INT64_MAX
        cdef Win* w
        r = &s.runs[x.buffer]
        if x.mode == FIRST:
            w = self._due(x)
            v = r.pos if w.count else r.ts
            low, high = self.m.before.pos if w.count else self.m.before.ts, self.m.now.pos if w.count else self.m.now.ts
            low = sat_sub(low, w.size)
            if high != INT64_MAX:
                high = sat_sub(high, w.size)
        elif x.mode == DELAYED and self.m.before.ts < self.m.now.ts:
            v, low = r.ts, self.m.before.ts
        else:
            v, low = r.row, self.m.before.row
        self.m.first = first_above(v, r.lo, r.hi, low, True, r.hi - 1)
        self.m.last = r.hi if high == INT64_MAX else first_above(v, self.m.first, r.hi, high, True, r.hi - 1)

    cdef int _make_room(self, Search* x) except -1:
        """Scratch memory for a chain over the largest runs."""
        cdef Py_ssize_t k
        cdef int i
        if x.chain < 0:
            return 0
        for i in range(self.m.n_bufs):
            self.m.bufs[i].n = 0
            for k in range(self.chosen.n):
                self.m.bufs[i].n = max(self.m.bufs[i].n, self.segs[self.chosen.v[k]].runs[i].hi)
        self._chain_memory()
        return 0

    # after a batch

    def commit(self, int64_t least_ts, int64_t least_pos, bint all_):
        """The batch is taken. Purge events before a time and a position (of the key's own stream: that much before its next).

        Only segments that the batch touched, or all. Returns the numbers of segments with nothing left.
        """
        cdef Py_ssize_t k
        cdef int j
        freed = []
        for j in range(self.n_searches):
            self.searches[j].queue.head_before, self.searches[j].queue.tail_before = self.searches[j].queue.head, self.searches[j].queue.tail
        if all_:
            self.events = 0
            for k in range(self.n_segs):
                if self.segs[k].live and not self._purge(&self.segs[k], least_ts, least_pos) and self.keyed:
                    freed.append(k)
        else:
            for k in range(self.touched.n):
                self._purge(&self.segs[self.touched.v[k]], least_ts, least_pos)
        for k in range(self.touched.n):
            self.segs[self.touched.v[k]].touched = False
            self.segs[self.touched.v[k]].next_before = self.segs[self.touched.v[k]].next_pos
        self.touched.n = 0
        if not self.own_positions:
            for k in freed:
                self._free(&self.segs[k])
        if all_:
            self._purge_views()
            for k in range(self.n_segs):
                if self.segs[k].live:
                    for j in range(self.m.n_bufs):
                        self.events += self.segs[k].runs[j].hi - self.segs[k].runs[j].lo
        return [] if self.own_positions else freed

    cdef Py_ssize_t _purge(self, Segment* s, int64_t least_ts, int64_t least_pos) noexcept:
        """Let go of what no later match can see; how much is left."""
        cdef int i
        cdef Py_ssize_t left = 0
        cdef Run* r
        cdef int64_t pos = sat_sub(s.next_pos, least_pos) if self.own_positions else least_pos
        for i in range(self.m.n_bufs):
            r = &s.runs[i]
            if r.lo < r.hi:
                if self.m.count_window:
                    r.lo = first_above(r.pos, r.lo, r.hi, pos, True, r.lo)
                else:
                    r.lo = first_above(r.ts, r.lo, r.hi, least_ts, True, r.lo)
            if r.lo == r.hi:
                r.base += r.hi
                r.lo = r.hi = 0
            left += r.hi - r.lo
        return left

    cdef int _purge_views(self) except -1:
        """Let go of what views hold of events that are gone."""
        cdef int i, j
        cdef Py_ssize_t k
        cdef Sub* sub
        cdef Run* r
        cdef int64_t least
        for i in range(self.m.n_subs):
            sub = &self.m.subs[i]
            for k in range(sub.n_parts):
                self.m.segment, least = sub.parts[k].key[0], INT64_MAX
                if self.segs[self.m.segment].live:
                    for j in range(self.m.n_bufs):
                        r = &self.segs[self.m.segment].runs[j]
                        if r.lo < r.hi:
                            least = min(least, r.pos[r.lo])
                purge(&self.m, sub, &sub.parts[k].known, least)
                purge(&self.m, sub, &sub.parts[k].full, least)
            self.m.segment = 0
            if sub.n_parts and sweep(&self.m, sub, INT64_MIN):
                raise MemoryError()
        return 0

    # views in snapshots: events by position, segments by the row of their first event

    cdef int64_t _first_row(self, Py_ssize_t k, int64_t* least) noexcept:
        """The row of the first event of a segment, and its position; INT64_MAX where there is none."""
        cdef int64_t row = INT64_MAX
        cdef int j
        cdef Run* r
        least[0] = INT64_MAX
        if 0 <= k < self.n_segs and self.segs[k].live:
            for j in range(self.m.n_bufs):
                r = &self.segs[k].runs[j]
                if r.lo < r.hi:
                    row, least[0] = min(row, r.row[r.lo]), min(least[0], r.pos[r.lo])
        return row

    def marks(self, int number):
        """Where the view of a sub-query has moved to: (the greatest interval's start, the floor, and whose floor it is)."""
        cdef Sub* s = &self.m.subs[number]
        return s.left, s.floor, s.floor_of

    def view(self, int number):
        """What the view of a sub-query holds, after a purge of all: a stretch each as (row of its segment, values, whether it is a flag
        of a result, from, to, records). A record is the positions of its end and its start, and of its events.
        """
        cdef Sub* sub = &self.m.subs[number]
        cdef Part* part
        cdef Stretches* s
        cdef Py_ssize_t i, j
        cdef int64_t row, least = 0
        cdef int full
        found = []
        for i in range(sub.n_parts):
            part = &sub.parts[i]
            row = self._first_row(part.key[0], &least)
            if row == INT64_MAX:
                continue
            values = [part.key[1 + j] for j in range(sub.tie_slots.n)]
            for full in range(2):
                s = &part.full if full else &part.known
                for j in range(s.n):
                    if s.v[j].hi >= least and not (full and s.v[j].lo < least):
                        found.append((row, values, bool(full), s.v[j].lo, s.v[j].hi, self._records(sub, &s.v[j], part.key[0], least)))
        return found

    cdef _records(self, Sub* sub, Stretch* st, Py_ssize_t segment, int64_t least):
        """The records that can still be asked for: those of events that are there."""
        cdef Py_ssize_t width = 2 + sub.slots.n, i = st.head, n = 0
        cdef int k
        cdef Run* r
        least = max(least, st.lo)
        found = np.empty(st.records.n - st.head, np.int64)
        cdef int64_t[::1] out = found
        while i < st.records.n:
            if st.records.v[i + 1] >= least:
                out[n], out[n + 1] = st.records.v[i], st.records.v[i + 1]
                for k in range(sub.slots.n):
                    r = &self.segs[segment].runs[self.m.slot_buf[sub.slots.v[k]]]
                    if QUERCUS_IS_CHECKED and not r.lo <= st.records.v[i + 2 + k] - r.base < r.hi:
                        abort()
                    out[n + 2 + k] = r.pos[st.records.v[i + 2 + k] - r.base]
                n += width
            i += width
        return found[:n]

    def set_view(self, int number, marks, stretches, int64_t next_):
        """What view() and marks() told, for the same events. `next_`: the position of the next event. ValueError for what cannot be."""
        cdef Sub* sub = &self.m.subs[number]
        cdef int64_t least = 0, row
        cdef Py_ssize_t k
        cdef Part* part = NULL
        forget_view(&self.m, sub)
        segments = {self._first_row(k, &least): k for k in range(self.n_segs)}
        segments.pop(INT64_MAX, None)
        try:
            for row, values, full, lo, hi, records in stretches:
                if row not in segments or len(values) != sub.tie_slots.n or (full and not sub.flags):
                    raise ValueError("a view has a part that none of the events has")
                k = segments[row]
                self._first_row(k, &least)
                part = self._part(sub, k, values)
                self._put(sub, part, k, &part.full if full else &part.known, lo, hi, records, self.segs[k].next_pos if self.own_positions else next_)
        except BaseException:
            forget_view(&self.m, sub)
            raise
        sub.left, sub.floor, sub.floor_of = marks
        sub.sweep = 2 * sub.bytes + 65536

    cdef Part* _part(self, Sub* sub, Py_ssize_t segment, values) except NULL:
        cdef int64_t key[9]
        cdef Part* part = NULL
        cdef int i
        key[0] = segment
        for i in range(sub.tie_slots.n):
            key[1 + i] = values[i]
        if part_with(&self.m, sub, key, &part) < 0:
            raise MemoryError()
        return part

    cdef int _put(
        self, Sub* sub, Part* part, Py_ssize_t segment, Stretches* s, int64_t lo, int64_t hi, const int64_t[::1] records, int64_t next_,
    ) except -1:
        """One more stretch, on the right of those that are there."""
        cdef Py_ssize_t n = records.shape[0], width = 2 + sub.slots.n, i
        cdef int64_t end = INT64_MIN, start = INT64_MIN
        cdef Stretch* st
        cdef bint right = hi < next_ and lo <= hi + 1 and (s.n == 0 or (sub.strategy == PASSIVE and s.v[s.n - 1].lo < lo and s.v[s.n - 1].hi < hi))
        if not right or n % width or (sub.flags and n):
            raise ValueError("the intervals of a view do not fit together")
        st = put_stretch(&self.m, sub, s, s.n, lo, hi)
        if st == NULL:
            raise MemoryError()
        if n == 0:
            return 0
        st.records.v = <int64_t*> malloc(n * sizeof(int64_t))
        if st.records.v == NULL:
            raise MemoryError()
        st.records.n = st.records.cap = n
        account(&self.m, sub, n * sizeof(int64_t))
        i = 0
        while i < n:
            right = end <= records[i] <= hi and lo <= records[i + 1] <= records[i] and self._found(sub, segment, &records[i], &st.records.v[i])
            if sub.sparse:
                right = right and end < records[i] and start < records[i + 1]
            if not right:
                raise ValueError("a view holds a result that its events do not have")
            end, start = records[i], records[i + 1]
            i += width
        return 0

    cdef bint _found(self, Sub* sub, Py_ssize_t segment, const int64_t* told, int64_t* record) noexcept:
        """A record with the places of its events; False where one is not there, or they do not end and start where it says."""
        cdef int64_t end = INT64_MIN, start = INT64_MAX
        cdef Py_ssize_t i
        cdef int k
        record[0], record[1] = told[0], told[1]
        for k in range(sub.slots.n):
            i = self._event(segment, self.m.slot_buf[sub.slots.v[k]], told[2 + k])
            if i < 0:
                return False
            record[2 + k] = i
            end, start = max(end, told[2 + k]), min(start, told[2 + k])
        if sub.slots.n:
            return end == told[0] and start == told[1]
        for k in range(sub.lasts.n):
            if self._event(segment, sub.lasts.v[k], told[0]) >= 0:
                break
        else:
            return False
        for k in range(sub.firsts.n):
            if self._event(segment, sub.firsts.v[k], told[1]) >= 0:
                return True
        return False

    cdef int64_t _event(self, Py_ssize_t segment, int b, int64_t pos) noexcept:
        """The event of a buffer at a position, counted from the beginning of its run; -1 where there is none."""
        cdef Run* r = &self.segs[segment].runs[b]
        cdef Py_ssize_t i = first_above(r.pos, r.lo, r.hi, pos, True, r.lo)
        return r.base + i if i < r.hi and r.pos[i] == pos else -1

    def undo(self):
        """Take the batch back, and what was found with its events."""
        cdef Py_ssize_t k
        cdef int i, j
        cdef Segment* s
        for k in range(self.touched.n):
            s = &self.segs[self.touched.v[k]]
            for i in range(self.m.n_bufs):
                self.events -= s.runs[i].hi - s.runs[i].mark
                s.runs[i].hi = s.runs[i].mark
            s.next_pos, s.touched = s.next_before, False
        self.touched.n = 0
        forget_views(&self.m)
        for j in range(self.n_searches):
            self.searches[j].queue.head, self.searches[j].queue.tail = self.searches[j].queue.head_before, self.searches[j].queue.tail_before

    # what snapshots, limits and labels need

    def live(self, int64_t least_ts, int64_t least_pos):
        """How many events of each buffer a purge would leave."""
        cdef Py_ssize_t k
        cdef int i
        cdef Run* r
        cdef int64_t pos
        counts = [0] * self.m.n_bufs
        for k in range(self.n_segs):
            if not self.segs[k].live:
                continue
            pos = sat_sub(self.segs[k].next_pos, least_pos) if self.own_positions else least_pos
            for i in range(self.m.n_bufs):
                r = &self.segs[k].runs[i]
                if r.lo < r.hi and self.m.count_window:
                    counts[i] += r.hi - first_above(r.pos, r.lo, r.hi, pos, True, r.lo)
                elif r.lo < r.hi:
                    counts[i] += r.hi - first_above(r.ts, r.lo, r.hi, least_ts, True, r.lo)
        return counts

    def positions(self):
        """The next position of every key's own stream."""
        cdef Py_ssize_t k
        return [self.segs[k].next_pos for k in range(self.n_segs)]

    def set_positions(self, const int64_t[::1] next_):
        cdef Py_ssize_t k
        for k in range(next_.shape[0]):
            self._segment(k).next_pos = next_[k]
            self.segs[k].next_before = next_[k]

    def kept(self, int b):
        """The rows that a buffer holds, of all segments."""
        return self._kept(b, False)

    def kept_positions(self, int b):
        """Their positions."""
        return self._kept(b, True)

    cdef _kept(self, int b, bint positions):
        cdef Py_ssize_t k, n = 0, i
        cdef Run* r
        for k in range(self.n_segs):
            if self.segs[k].live:
                n += self.segs[k].runs[b].hi - self.segs[k].runs[b].lo
        found = np.empty(n, np.int64)
        cdef int64_t[::1] out = found
        n = 0
        for k in range(self.n_segs):
            if self.segs[k].live:
                r = &self.segs[k].runs[b]
                for i in range(r.lo, r.hi):
                    out[n] = r.pos[i] if positions else r.row[i]
                    n += 1
        return found

    def column(self, int c):
        """The values of an integer column at all kept events."""
        cdef Py_ssize_t k, n = 0, i
        cdef Run* r
        for k in range(self.n_segs):
            if self.segs[k].live:
                n += self.segs[k].runs[self.col_buf[c]].hi - self.segs[k].runs[self.col_buf[c]].lo
        found = np.empty(n, np.int64)
        cdef int64_t[::1] out = found
        n = 0
        for k in range(self.n_segs):
            if self.segs[k].live:
                r = &self.segs[k].runs[self.col_buf[c]]
                for i in range(r.lo, r.hi):
                    out[n] = self.segs[k].cols[c][i]
                    n += 1
        return found

    def relabel(self, columns, const int64_t[::1] labels, const int64_t[::1] constants):
        """New labels for strings: old label i of these columns becomes labels[i]; and all constants anew."""
        cdef Py_ssize_t k, i
        cdef int c
        cdef Segment* s
        for c in columns:
            for k in range(self.n_segs):
                s = &self.segs[k]
                if s.live:
                    for i in range(s.runs[self.col_buf[c]].lo, s.runs[self.col_buf[c]].hi):
                        if 0 <= s.cols[c][i] < labels.shape[0]:
                            s.cols[c][i] = labels[s.cols[c][i]]
        self.set_constants(np.asarray(constants), None)
        forget_views(&self.m)  # values of strings choose their parts

    def set_constants(self, constants, maps):
        cdef int i
        self._keep = []
        self.m.const_i, self.m.const_f = self._int64(constants), self._float64(self._const_f)
        if maps is not None:
            self._tables = [np.ascontiguousarray(t) for t in maps]
        for i, table in enumerate(self._tables or []):
            self.m.maps[i] = Table(self._int64(table), len(table))


cdef int by_value(const void* a, const void* b) noexcept nogil:
    cdef int64_t x = (<const int64_t*> a)[0], y = (<const int64_t*> b)[0]
    return (x > y) - (x < y)

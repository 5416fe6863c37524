# Running totals of a stream: what each segment's window has done stays from push to push.

cdef enum:
    COUNT = 0
    SUM = 2
    REAL = 4
    LEAST = 5

KINDS = {"count": COUNT, "sum": SUM, "real": REAL, "least": LEAST}


cdef class Running:
    """Totals of the matches that each push ends. take_in() adds events, then commit() keeps them, or undo()
    takes them back.

    What undo() leaves is made again from the events of the window, when they are next needed.
    """

    cdef run_segment** segs
    cdef Py_ssize_t n_segs
    cdef run_segment** touched
    cdef Py_ssize_t n_touched, room_touched
    cdef int passes
    cdef int kinds[64]
    cdef int roles[64]
    cdef int states
    cdef bint ties
    cdef uint64_t window
    cdef uint64_t taken
    cdef Py_ssize_t n_new
    cdef int most
    cdef public Watch watch
    # matches that wait for the end of their window: starts that are not over yet, in order
    cdef bint delayed
    cdef int64_t* due_at
    cdef int64_t* due_segment
    cdef int64_t* due_tag
    cdef Py_ssize_t head, tail, head_before, tail_before, room_due
    cdef int32_t* slot          # of a tag: its place among those of this push, or -1
    cdef Py_ssize_t n_tags
    cdef int64_t last_until

    def __init__(self, int states, passes, uint64_t window, bint ties, bint delayed=False):
        """`passes`: (count, sum, real or least; role) each, the first a count. `delayed`: matches are whole when the window
        after their start is over.
        """
        cdef int i
        if not 0 < len(passes) <= 64 or passes[0][0] != "count":
            raise ValueError("no passes, or too many")
        self.states, self.passes, self.window, self.ties, self.delayed = states, len(passes), window, ties, delayed
        for i in range(self.passes):
            self.kinds[i], self.roles[i] = KINDS[passes[i][0]], passes[i][1]

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.n_segs):
            self._free(i)
        free(self.segs)
        free(self.touched)
        free(self.due_at)
        free(self.due_segment)
        free(self.due_tag)
        free(self.slot)

    @property
    def steps(self):
        """Events looked at in all passes, new ones and those that became the older part of a window."""
        return self.taken

    @property
    def bytes(self):
        """What is kept: events with their values, and rows of the older parts."""
        cdef Py_ssize_t i
        cdef int p, valued = 0
        cdef int64_t found = 0
        cdef run_segment* s
        for p in range(self.passes):
            valued += self.kinds[p] > 1
        for i in range(self.n_segs):
            s = self.segs[i]
            if s != NULL:
                found += (s.hi - s.lo) * (10 + 8 * valued)
                for p in range(self.passes):
                    if s.kept[p].block != NULL:
                        found += self._size(p) * self.states * (2 * self.states + s.kept[p].room)
        return found

    def totals(self, Automaton automaton, const int64_t[::1] row, const int32_t[::1] group, int groups):
        """Of the matches that the events taken in end: the totals of each pass, a list over the groups; and of each group,
        the event of the least row that ends one (-1: none). OverflowError beyond 128 bits.
        """
        cdef int p
        if automaton.made.states != self.states or row.shape[0] != self.n_new or group.shape[0] != self.n_new:
            raise ValueError("another automaton, or columns of different lengths")
        if self.n_new and (self.most >= automaton.made.symbols or np.min(group) < 0 or np.max(group) >= groups):
            raise ValueError("a symbol that is not known, or a group that is not there")
        found = []
        for p in range(self.passes):
            totals, first = self._pass(automaton, p, &row[0] if self.n_new else NULL, &group[0] if self.n_new else NULL, groups)
            found.append(totals)
            if p == 0:
                ended = first
        return found, ended

    def settled(self, Automaton automaton, int64_t until):
        """Of the matches whose window is over before `until`: the totals of each pass, a list over the tags of their starts;
        the tags; and of each the first of its starts is 0 where there is any match, else -1.
        """
        cdef int p
        cdef int32_t slots = 0
        cdef int64_t tag, segment
        cdef Py_ssize_t at_
        if automaton.made.states != self.states or not self.delayed or (self.n_new and self.most >= automaton.made.symbols):
            raise ValueError("another automaton, or matches that do not wait")
        tags = []
        try:
            while self.head < self.tail:
                if until != NONE and <uint64_t> until - <uint64_t> self.due_at[self.head] <= self.window:
                    break
                segment, tag = self.due_segment[self.head], self.due_tag[self.head]
                self.head += 1
                if self.segs[segment] == NULL:
                    continue
                if not self.segs[segment].touched:
                    self._touch(self.segs[segment])
                if self.slot[tag] < 0:
                    self.slot[tag] = slots
                    slots += 1
                    tags.append(tag)
            at_ = self.head
            while at_ < self.tail and <uint64_t> until - <uint64_t> self.due_at[at_] <= self.window:
                if <uint64_t> until - <uint64_t> self.due_at[at_] < self.window:
                    break
                tag = self.due_tag[at_]  # what ends just now is whole, where ties are
                if self.slot[tag] < 0:
                    self.slot[tag] = slots
                    slots += 1
                    tags.append(tag)
                at_ += 1
            self.last_until = until
            found = []
            for p in range(self.passes):
                totals, first = self._pass(automaton, p, NULL, NULL, len(tags))
                found.append(totals)
                if p == 0:
                    ended = first
        finally:
            for tag in tags:
                self.slot[tag] = -1
        return found, tags, ended

    def take_in(self, const int64_t[::1] segments, const uint8_t[::1] symbol, const int64_t[::1] at, const int64_t[::1] ts, values,
                const int64_t[::1] tags=None, Automaton automaton=None):
        """Events, segment by segment and in order in each; `values` of each pass, None of a count. Where matches wait: the tag of
        each event, from 0 up, and the automaton that knows which can begin a match.
        """
        cdef Py_ssize_t i, n = symbol.shape[0]
        cdef int p
        cdef run_segment* s
        cdef const int64_t[::1] given
        cdef const int64_t* columns[64]
        if segments.shape[0] != n or at.shape[0] != n or ts.shape[0] != n or len(values) != self.passes or self.n_touched:
            raise ValueError("columns of different lengths")
        for p in range(self.passes):
            columns[p] = NULL
            if (values[p] is None) != (self.kinds[p] < 2):
                raise ValueError("values of a count, or none of another pass")
            if values[p] is not None and n:
                given = values[p].view(np.int64)
                if given.shape[0] != n:
                    raise ValueError("not a value for each event")
                columns[p] = &given[0]
        self.n_new = n
        self.most = np.max(symbol) if n else 0
        if self.delayed and n:
            if automaton is None or tags is None or tags.shape[0] != n or self.most >= automaton.made.symbols or np.min(tags) < 0:
                raise ValueError("not a tag for each event, or a symbol that is not known")
            self._wait(segments, symbol, at, tags, automaton)
        for i in range(n):
            s = self._segment(segments[i])
            if not s.touched:
                self._touch(s)
                s.first = i
            elif i == 0 or segments[i] != segments[i - 1]:
                raise ValueError("a segment in two parts")
            if s.hi == s.room:
                self._widen(s)
            if s.lo == s.hi:
                s.mark[s.hi] = 3
            else:
                s.mark[s.hi] = not self.ties or ts[i] != s.ts
            s.ts = ts[i]
            s.symbol[s.hi], s.at[s.hi] = symbol[i], at[i]
            if self.delayed:
                s.tag[s.hi] = tags[i]
            for p in range(self.passes):
                if columns[p] != NULL:
                    s.value[p][s.hi] = columns[p][i]
            s.hi += 1

    cdef int _wait(self, const int64_t[::1] segments, const uint8_t[::1] symbol, const int64_t[::1] at, const int64_t[::1] tags, Automaton automaton) except -1:
        """Remember the events that can begin a match, in the order of the stream."""
        cdef Py_ssize_t i, room, n = symbol.shape[0], first = self.tail
        cdef int64_t most = 0
        starts = np.array(automaton.starts + [False], np.uint8)
        cdef const uint8_t[::1] begins = starts
        if self.tail + n > self.room_due:
            if self.head_before > self.room_due // 2:
                i = self.head_before
                memmove(self.due_at, self.due_at + i, 8 * (self.tail - i))
                memmove(self.due_segment, self.due_segment + i, 8 * (self.tail - i))
                memmove(self.due_tag, self.due_tag + i, 8 * (self.tail - i))
                self.head, self.tail, self.tail_before, self.head_before = self.head - i, self.tail - i, self.tail_before - i, 0
                first = self.tail
            if self.tail + n > self.room_due:
                room = 2 * (self.tail + n) + 16
                self.due_at = <int64_t*> _larger(self.due_at, 8 * room)
                self.due_segment = <int64_t*> _larger(self.due_segment, 8 * room)
                self.due_tag = <int64_t*> _larger(self.due_tag, 8 * room)
                self.room_due = room
        order = np.argsort(at, kind="stable")
        cdef const int64_t[::1] by_time = order
        for i in range(n):
            if begins[symbol[by_time[i]]]:
                self.due_at[self.tail], self.due_segment[self.tail] = at[by_time[i]], segments[by_time[i]]
                self.due_tag[self.tail] = tags[by_time[i]]
                self.tail += 1
            most = max(most, tags[i])
        if most >= self.n_tags:
            room = 2 * most + 16
            self.slot = <int32_t*> _larger(self.slot, 4 * room)
            memset(self.slot + self.n_tags, 255, 4 * (room - self.n_tags))
            self.n_tags = room
        return 0

    cdef object _pass(self, Automaton automaton, int p, const int64_t* row, const int32_t* group, int groups):
        cdef run_push given
        cdef int status = RUN_OK
        cdef Py_ssize_t i
        cdef uint64_t steps = 0
        cdef uint8_t[::1] out
        cdef int64_t[::1] firsts
        cdef run_automaton* a = &automaton.made
        given.touched, given.count, given.number, given.role = self.touched, self.n_touched, p, self.roles[p]
        given.ties, given.window, given.row, given.group = self.ties, self.window, row, group
        given.delayed, given.until, given.slot = self.delayed, self.last_until, self.slot if self.delayed else NULL
        given.look, given.context = NULL, NULL
        if self.watch is not None:
            given.look, given.context = looked, <void*> self.watch
        cdef char small[16]
        cdef int64_t small_first[1]
        cdef char* to_totals = small
        cdef int64_t* to_first = small_first
        while True:
            small_first[0] = -1
            memset(small, 0, 16)
            (<int64_t*> small)[0] = NONE if self.kinds[p] == LEAST else 0
            if groups > 1:
                first, data = np.full(groups, -1, np.int64), np.zeros(16 * groups, np.uint8)
                if self.kinds[p] == LEAST:
                    data.view(np.int64)[:] = NONE
                out, firsts = data, first
                to_totals, to_first = <char*> &out[0], &firsts[0]
            if self.n_touched == 0:
                break
            with nogil:
                if self.kinds[p] == 0:
                    status = push_u64(a, &given, <void*> to_totals, to_first, &steps)
                elif self.kinds[p] == 1:
                    status = push_u128(a, &given, <void*> to_totals, to_first, &steps)
                elif self.kinds[p] == 2:
                    status = push_i64(a, &given, <void*> to_totals, to_first, &steps)
                elif self.kinds[p] == 3:
                    status = push_i128(a, &given, <void*> to_totals, to_first, &steps)
                elif self.kinds[p] == REAL:
                    status = push_f64(a, &given, <void*> to_totals, to_first, &steps)
                else:
                    status = push_min(a, &given, <void*> to_totals, to_first, &steps)
            self.taken += steps
            steps = 0
            if status == RUN_OK:
                break
            if status == RUN_STOPPED:
                self.watch.refuse()
            if status != RUN_TOO_LARGE:
                raise MemoryError
            if self.kinds[p] not in (0, 2):
                raise OverflowError("a number of matches, or a sum over them, beyond 128 bits")
            self.kinds[p] += 1
            for i in range(self.n_segs):
                if self.segs[i] != NULL:
                    self._forget(self.segs[i], p)
        if groups <= 1:
            return ([self._one(p, small)] if groups else []), [small_first[0]][:groups]
        if self.kinds[p] >= REAL:
            return data.view(np.float64 if self.kinds[p] == REAL else np.int64)[:groups].tolist(), first[:groups]
        low = data.view(np.uint64)[0::2].tolist()
        high = data.view(np.int64 if self.kinds[p] > 1 else np.uint64)[1::2].tolist()
        return [lo + (hi << 64) for lo, hi in zip(low[:groups], high[:groups])], first[:groups]

    cdef object _one(self, int p, const char* total):
        """One total as a number."""
        cdef const uint64_t* low = <const uint64_t*> total
        cdef const int64_t* whole = <const int64_t*> total
        if self.kinds[p] == REAL:
            return (<const double*> total)[0]
        if self.kinds[p] == LEAST or (self.kinds[p] > 1 and whole[1] == (-1 if whole[0] < 0 else 0)):
            return whole[0]
        if self.kinds[p] > 1:
            return low[0] + ((<object> whole[1]) << 64)
        return low[0] if low[1] == 0 else low[0] + ((<object> low[1]) << 64)

    cpdef commit(self):
        """The events are kept."""
        cdef Py_ssize_t i
        self.head_before, self.tail_before = self.head, self.tail
        cdef run_segment* s
        cdef run_kept* k
        for i in range(self.n_touched):
            s = self.touched[i]
            k = &s.kept[0]
            if k.valid:
                s.lo = min(k.from_, k.group) if k.open_ else k.from_
            s.before, s.touched = s.hi, 0
        self.n_touched = 0

    cpdef undo(self):
        """They are taken back."""
        cdef Py_ssize_t i
        self.head, self.tail = self.head_before, self.tail_before
        cdef int p
        cdef run_segment* s
        for i in range(self.n_touched):
            s = self.touched[i]
            s.hi, s.touched = s.before, 0
            s.ts = s.ts_before
            for p in range(self.passes):
                s.kept[p].valid = 0
        self.n_touched = 0

    def clone(self, Py_ssize_t source, Py_ssize_t target):
        """A segment with the events of another one, which the batch at hand has not touched."""
        cdef run_segment* s
        cdef run_segment* other
        cdef int64_t n
        cdef int p
        if source >= self.n_segs or self.segs[source] == NULL:
            return
        s = self._segment(target)
        other = self.segs[source]
        if s.hi or other.touched or self.delayed:
            raise ValueError("a segment that is there already")
        n = other.hi - other.lo
        s.room = 2 * n + 8
        s.symbol = <uint8_t*> _larger(s.symbol, s.room)
        s.mark = <uint8_t*> _larger(s.mark, s.room)
        s.at = <int64_t*> _larger(s.at, 8 * s.room)
        memcpy(s.symbol, other.symbol + other.lo, n)
        memcpy(s.mark, other.mark + other.lo, n)
        memcpy(s.at, other.at + other.lo, 8 * n)
        for p in range(self.passes):
            if self.kinds[p] > 1:
                s.value[p] = <int64_t*> _larger(s.value[p], 8 * s.room)
                memcpy(s.value[p], other.value[p] + other.lo, 8 * n)
        s.hi = s.before = n
        s.ts = s.ts_before = other.ts
        if n:
            s.mark[0] = 3

    def let_go(self, segments):
        """Forget some segments."""
        for i in segments:
            if i < self.n_segs:
                self._free(i)

    def sweep(self, int64_t least):
        """Let go of events before a time or position, in all segments."""
        cdef Py_ssize_t i
        cdef int p
        cdef int64_t low
        cdef run_segment* s
        for i in range(self.n_segs):
            s = self.segs[i]
            if s == NULL or s.touched:
                continue
            low = s.lo
            while low < s.hi and s.at[low] < least:
                low += 1
            if low == s.hi:
                self._free(i)
                continue
            if s.kept[0].valid and s.kept[0].open_:
                low = max(s.lo, min(low, s.kept[0].group))
            s.lo = low
            for p in range(self.passes):
                s.kept[p].from_ = max(s.kept[p].from_, low)

    # segments

    cdef run_segment* _segment(self, int64_t number) except NULL:
        cdef Py_ssize_t room
        cdef run_segment* s
        cdef void* made
        if number < 0:
            raise ValueError("a segment below 0")
        if number >= self.n_segs:
            room = max(2 * self.n_segs, <Py_ssize_t> number + 1)
            made = realloc(self.segs, room * sizeof(run_segment*))
            if made == NULL:
                raise MemoryError
            self.segs = <run_segment**> made
            memset(self.segs + self.n_segs, 0, (room - self.n_segs) * sizeof(run_segment*))
            self.n_segs = room
        if self.segs[number] == NULL:
            s = <run_segment*> calloc(1, sizeof(run_segment))
            if s == NULL:
                raise MemoryError
            s.value = <int64_t**> calloc(self.passes, sizeof(int64_t*))
            s.kept = <run_kept*> calloc(self.passes, sizeof(run_kept))
            if s.value == NULL or s.kept == NULL:
                free(s.value)
                free(s.kept)
                free(s)
                raise MemoryError
            self.segs[number] = s
        return self.segs[number]

    cdef int _touch(self, run_segment* s) except -1:
        cdef void* made
        if self.n_touched == self.room_touched:
            made = realloc(self.touched, (2 * self.room_touched + 16) * sizeof(run_segment*))
            if made == NULL:
                raise MemoryError
            self.touched, self.room_touched = <run_segment**> made, 2 * self.room_touched + 16
        self.touched[self.n_touched] = s
        self.n_touched += 1
        s.touched, s.before, s.ts_before = 1, s.hi, s.ts
        return 0

    cdef int _widen(self, run_segment* s) except -1:
        return self._make_room(s, 1)

    cdef int _make_room(self, run_segment* s, int64_t more) except -1:
        """Room for more events: where half of it is no more needed, that of those."""
        cdef int64_t gone = s.lo, kept = s.hi - s.lo, room = s.room
        cdef int p
        if kept + more - 1 >= room // 2:
            room = 2 * (kept + more) + 8
            s.symbol = <uint8_t*> _larger(s.symbol, room)
            s.mark = <uint8_t*> _larger(s.mark, room)
            s.at = <int64_t*> _larger(s.at, 8 * room)
            if self.delayed:
                s.tag = <int64_t*> _larger(s.tag, 8 * room)
            for p in range(self.passes):
                if self.kinds[p] > 1:
                    s.value[p] = <int64_t*> _larger(s.value[p], 8 * room)
        if kept and gone:
            memmove(s.symbol, s.symbol + gone, kept)
            memmove(s.mark, s.mark + gone, kept)
            memmove(s.at, s.at + gone, 8 * kept)
            if self.delayed:
                memmove(s.tag, s.tag + gone, 8 * kept)
        for p in range(self.passes):
            if self.kinds[p] > 1 and kept and gone:
                memmove(s.value[p], s.value[p] + gone, 8 * kept)
            s.kept[p].low -= gone
            s.kept[p].middle -= gone
            s.kept[p].from_ -= gone
            s.kept[p].group -= gone
        s.lo, s.hi, s.before, s.room = 0, kept, s.before - gone, room
        return 0

    cdef int64_t _size(self, int p) noexcept:
        """The bytes of one value."""
        return 8 if self.kinds[p] in (0, LEAST) else 32 if self.kinds[p] == 3 else 16

    cdef void _forget(self, run_segment* s, int p) noexcept:
        free(s.kept[p].block)
        free(s.kept[p].row)
        memset(&s.kept[p], 0, sizeof(run_kept))

    cdef void _free(self, Py_ssize_t number) noexcept:
        cdef run_segment* s = self.segs[number]
        cdef int p
        if s == NULL:
            return
        for p in range(self.passes):
            self._forget(s, p)
            free(s.value[p])
        free(s.symbol)
        free(s.mark)
        free(s.at)
        free(s.tag)
        free(s.value)
        free(s.kept)
        free(s)
        self.segs[number] = NULL


cdef void* _larger(void* column, int64_t size) except NULL:
    cdef void* made = realloc(column, size)
    if made == NULL:
        raise MemoryError
    return made

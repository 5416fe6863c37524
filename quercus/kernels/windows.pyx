"""Pattern windows: all open windows, of one pattern window or several, in one pass over a stream (Shen et al., Algorithm 1).

Windows stand in groups, those of one key together, in the order of their opening. A tuple touches the windows of its own
group; of the others only where its flags say so. What a condition says of the tuple alone is in the flags; what it says of
the tuple and the window is a program of the matcher's machine, over the slots here, first, prev, window.

Nothing is done for a tuple that only lets windows go on. A window is shown every tuple from `ready` on, the first position
after those of its last tuple's time; so how often it went on is known from positions alone.

Where all windows of a group are alike (no condition asks more than the tuple and the key), a tuple closes, drops or
enlarges all of them at once: what they took in and how often they went on is kept once for the group.
"""

from libc.math cimport ceil, fabs, floor, fmod
from libc.math cimport round as round_away
from libc.stdint cimport INT64_MAX
from libc.stdlib cimport abort, calloc, free
from libc.string cimport memcpy, memset

import numpy as np

from quercus.kernels._machine cimport *
from quercus.kernels._typedefs cimport QUERCUS_IS_CHECKED, int32_t, int64_t, uint8_t, uint16_t
from quercus.kernels.memory cimport adopt, give, take

cdef extern from "Python.h":
    int check_signals "PyErr_CheckSignals"() noexcept


cdef extern from "prefetch.h":
    void prefetch(const void* at) noexcept nogil


DEF STACK = 48
DEF AHEAD = 12      # steps for which memory is fetched beforehand
DEF RANGE = 4096    # tuples that one looks at before the next one does
DEF MOST = 2147483646   # windows that are open, or tuples that they hold

# What a run answers when it cannot go on.
OK, STOPPED, TOO_MANY, TOO_LONG, NO_MEMORY, TOO_MUCH_STATE = 0, -1, -2, -3, -5, -6

cdef enum:                  # of a tuple: what its own columns say of the conditions, for windows of its own key
    STARTS_ = 1
    MAY_END_ = 2
    ENDS_ = 4
    MAY_STAY_ = 8
    STAYS_ = 16
    MAY_TAKE_ = 32
    TAKES_ = 64
    TO_ALL_ = 128           # it touches windows of other keys too
    TO_LOOSE_ = 256         # ... those that have no key
    ASKED_ = 42             # what may be; a bit further left stands whether it must

STARTS, MAY_END, ENDS, MAY_STAY, STAYS, MAY_TAKE, TAKES, TO_ALL, TO_LOOSE = 1, 2, 4, 8, 16, 32, 64, 128, 256

cdef enum:                  # programs
    TERMINATION_, ITERATION_, FILTER_, BOUND_

cdef enum:                  # where the tuples of a window are kept: nowhere, once for its group, by itself
    NOWHERE_, BY_GROUP_, BY_WINDOW_

NOWHERE, BY_GROUP, BY_WINDOW = 0, 1, 2

cdef enum:                  # what becomes of a window
    STAYED, TOOK, CLOSED, DROPPED

cdef int64_t NOTHING = 0    # where an array of no numbers points to


include "match_predicates.pxi"


cdef struct Window:
    int64_t first           # its first tuple, by place in the columns
    int64_t prev            # the last one that it took in
    int64_t ready           # the first position that is later than that: it is shown the tuples from here on
    int64_t iter_           # ITER() at `ready`; where all are alike: less the group's
    int64_t num             # NUM(); where all are alike: less the group's
    int32_t chain           # the newest of its own tuples, or -1
    int32_t next_           # the one that was opened after it in its group; or the next free one

cdef struct Cluster:        # the windows of one key: a line of the cache
    int32_t head
    int32_t tail
    int32_t chain           # the newest tuple that its windows took in, or -1
    int32_t fresh           # where all are alike: the first that is not yet like the others, or -1
    int64_t fresh_ready     # ... from when it is
    int64_t ready           # of the others
    int64_t iter_
    int64_t num
    int64_t place           # among those that are not empty, or -1
    int64_t unused

cdef struct Node:           # a tuple that was taken in
    int64_t tuple_          # by place in the columns
    int32_t back            # the one before it; or the next free one
    int32_t unused


cdef struct Read:           # what programs read of tuples that windows hold
    int slot                # 1: of the first, 2: of the one before
    int column


cdef void* wider(void* old, size_t* room, size_t size) noexcept nogil:
    """Memory that begins as the old one does, twice as much or more, at least of this size; NULL: there is none."""
    cdef size_t wanted = max(size, 2 * room[0])
    cdef void* new = take(&wanted)
    if new != NULL:
        if room[0]:
            memcpy(new, old, room[0])
        give(old, room[0])
        room[0] = wanted
    return new


include "windows_pass.pxi"


cdef class Windows(Pass):
    """The open windows of one pattern window, and what closes them.

    Columns 0 and 1 of the programs are the window's two counts, iter and num; those that are loaded follow. `code` and `preds` are the programs of termination, iteration, filter and bound, as (start, end) each or None where the
    flags say all. `alike`: see above. `keeping`: NOWHERE, BY_GROUP, BY_WINDOW.
    """

    cdef Machine m
    cdef Pred programs[4]
    cdef bint has[4]
    cdef Buf bufs[2]
    cdef int slot_buf[4]
    cdef Py_ssize_t cur[4]
    cdef int64_t counts[2]
    cdef list _keep
    cdef object _code
    cdef object _const_f
    cdef int n_columns
    cdef bint alike
    cdef int keeping
    cdef Read reads[4]      # some of them, to be sent for
    cdef int n_reads
    cdef Window* w
    cdef int64_t n_w, free_w
    cdef Cluster* g
    cdef int64_t n_g
    cdef int64_t loose
    cdef Node* nodes
    cdef int64_t n_nodes, free_node
    cdef int64_t* busy      # the groups that are not empty
    cdef int64_t n_busy
    cdef size_t room_w, room_g, room_nodes, room_busy   # bytes
    cdef int64_t n_open, swept, live_nodes
    cdef int64_t horizon    # the position after the tuples of this run; -1: nothing comes after them
    cdef Out pending        # windows, and groups as -1 - g, that are ready there, unless more tuples of that time come
    cdef Out outs[5]        # close, first, iter, num, tuples
    cdef const int64_t[::1] steps, codes, homes, ends
    cdef const uint16_t[::1] flags
    cdef Py_ssize_t at      # the next step
    cdef int64_t position, place
    cdef int part, parts
    cdef readonly bint mixed    # the last run closed windows of several groups at once
    cdef readonly int64_t touched   # windows that were looked at in all runs, one by one or all of a group at once
    cdef readonly int64_t most_open

    def __cinit__(self, code, preds, const_f, int n_columns, bint alike, int keeping):
        cdef int i
        self._keep = []
        self._code = np.ascontiguousarray(code, dtype=np.intc)
        self._const_f = np.ascontiguousarray(const_f, dtype=np.float64)
        self.n_columns, self.alike, self.keeping = n_columns, alike, keeping
        cdef int[::1] view = self._code
        self.m.code = &view[0] if view.shape[0] else <int*> &NOTHING
        for i, p in enumerate(preds):
            self.has[i] = p is not None
            if p is None:
                continue
            start, end = p
            if not 0 <= start < end <= len(code) or (end - start) % 3:
                raise ValueError("a program that is none")
            own = code[start:end]
            self.programs[i] = Pred(start, end, -1, -1, 0, 0, 0, 0)
            for k in range(start, end, 3):
                if code[k] in (LOAD_I, LOAD_F) and code[k + 1] in (1, 2) and self.n_reads < 4:
                    self.reads[self.n_reads] = Read(code[k + 1], code[k + 2])
                    self.n_reads += 1
            if len(own) == 9 and own[0] in (LOAD_I, LOAD_F) and own[0] == own[3] and EQ_I <= own[6] <= GE_F:
                self.programs[i] = Pred(start, end, -1, own[6], own[1], own[4], own[2], own[5])
        self.m.n_cols = n_columns + 2   # the two counts of a window come first
        self.m.cols = <Col*> calloc(self.m.n_cols, sizeof(Col))
        if self.m.cols == NULL:
            raise MemoryError()
        self.m.cols[0].i, self.m.cols[1].i = &self.counts[0], &self.counts[1]
        self.m.bufs, self.m.n_bufs = self.bufs, 2
        self.bufs[1].n = self.bufs[1].hi = 1
        self.slot_buf[0] = self.slot_buf[1] = self.slot_buf[2] = 0
        self.slot_buf[3] = 1
        self.m.slot_buf, self.m.cur, self.m.n_slots = self.slot_buf, self.cur, 4
        self.m.max_state = INT64_MAX
        self.free_w = self.free_node = self.loose = -1
        self.swept = 1024

    def __dealloc__(self):
        free(self.m.cols)
        give(self.w, self.room_w)
        give(self.g, self.room_g)
        give(self.nodes, self.room_nodes)
        give(self.busy, self.room_busy)
        give(self.pending.v, self.pending.cap * sizeof(int64_t))
        self._drop()

    def load(self, Py_ssize_t n, columns, const_i):
        """The columns that programs read, with `n` tuples each, and the integer constants."""
        cdef int i
        if len(columns) != self.n_columns:
            raise ValueError("not the columns of this program")
        self._keep = []
        self.bufs[0].n = self.bufs[0].hi = n
        self.m.const_i, self.m.const_f = self._int64(const_i), self._float64(self._const_f)
        for i, (values, valid) in enumerate(columns):
            if len(values) < n or (valid is not None and len(valid) < n):
                raise ValueError("a column that is too short")
            self.m.cols[i + 2].i = self._int64(values) if values.dtype == np.int64 else NULL
            self.m.cols[i + 2].f = self._float64(values) if values.dtype != np.int64 else NULL
            self.m.cols[i + 2].valid = self._uint8(valid) if valid is not None else NULL

    cdef const int64_t* _int64(self, a) except? NULL:
        cdef const int64_t[::1] v = a
        self._keep.append(a)
        return &v[0] if v.shape[0] else &NOTHING

    cdef const double* _float64(self, a) except? NULL:
        cdef const double[::1] v = a
        self._keep.append(a)
        return &v[0] if v.shape[0] else <const double*> &NOTHING

    cdef const uint8_t* _uint8(self, a) except? NULL:
        cdef const uint8_t[::1] v = a
        self._keep.append(a)
        return &v[0] if v.shape[0] else <const uint8_t*> &NOTHING

    # running

    def begin(
        self, const int64_t[::1] steps, const int64_t[::1] codes, const int64_t[::1] homes, const uint16_t[::1] flags,
        const int64_t[::1] ends, int64_t position, int64_t place, int64_t n_groups, int64_t max_closed, int64_t max_nanoseconds,
        int64_t max_state, int part=0, int parts=1, int64_t size=-1,
    ):
        """The tuples that a pass will show to the windows.

        `steps` are the tuples that matter, by number in this call, ascending; the others must let every window go on and be
        taken in by none. The arrays beside it are of the same length: `codes`, the group that a tuple touches, or -1 for none;
        `homes`, the group that a window opened by it stands in; flags. `ends` has for every tuple of the call the number of the
        first later one, or nothing where no two times are equal. Tuple 0 has this `position` in the stream and this `place` in
        the columns. Of `parts` that share the groups, this is one. `size` is how many tuples this call is about, where another
        may follow.
        """
        if not steps.shape[0] == codes.shape[0] == homes.shape[0] == flags.shape[0]:
            raise ValueError("steps that differ in length")
        self._groups(n_groups)
        self._drop()
        self.mixed, self.status, self.at = False, 0, 0
        self.steps, self.codes, self.homes, self.flags, self.ends = steps, codes, homes, flags, ends
        self.position, self.place, self.part, self.parts = position, place, part, parts
        self._expect(position + size if size >= 0 else -1)
        self.m.n_matches, self.m.max_matches, self.m.ticks, self.cancelled = 0, max_closed, 0, 0
        self.m.deadline = sat_add(monotonic(), max_nanoseconds) if max_nanoseconds >= 0 else 0
        self.m.max_state = max_state

    def finish(self):
        """(status, close, first, iter, num, tuples) of the windows that the pass closed; the last three and `close` and
        `first` are places in the columns.
        """
        cdef int i
        self.steps = self.codes = self.homes = self.ends = None
        self.flags = None
        return self.status, *[self._take(&self.outs[i]) for i in range(5)]

    cdef void _drop(self) noexcept:
        cdef int i
        for i in range(5):
            give(self.outs[i].v, self.outs[i].cap * sizeof(int64_t))
            self.outs[i] = Out(NULL, 0, 0)

    cdef _take(self, Out* o):
        cdef int64_t* v = o.v
        cdef Py_ssize_t n = o.n, cap = o.cap
        o.v, o.n, o.cap = NULL, 0, 0
        return adopt(v, n, cap * sizeof(int64_t))

    cdef int _groups(self, int64_t n) except -1:
        """Room for so many groups."""
        cdef int64_t i
        cdef Cluster* g
        if n * sizeof(Cluster) > self.room_g:
            g = <Cluster*> wider(self.g, &self.room_g, max(n, 16) * sizeof(Cluster))
            if g == NULL:
                raise MemoryError()
            self.g = g
        for i in range(self.n_g, n):
            self.g[i] = Cluster(-1, -1, -1, -1, 0, 0, 0, 0, -1, 0)
        self.n_g = max(self.n_g, n)
        return 0

    cdef int64_t _holds_bytes(self) noexcept nogil:
        return self._held()

    cdef int _advance(self, int64_t until) noexcept nogil:
        cdef Py_ssize_t s = self.at, n = self.steps.shape[0]
        cdef const int64_t* steps = &self.steps[0] if n else NULL
        cdef const int64_t* codes = &self.codes[0] if n else NULL
        cdef const int64_t* homes = &self.homes[0] if n else NULL
        cdef const uint16_t* flags = &self.flags[0] if n else NULL
        cdef int64_t position = self.position, place = self.place
        cdef int part = self.part, parts = self.parts
        cdef int64_t i, code, home, end, k, other
        cdef int f, r
        cdef bint tied = self.ends.shape[0] > 0
        while s < n and steps[s] < until:
            i, code, home, f = steps[s], codes[s], homes[s], flags[s]
            if s + 3 * AHEAD < n:
                if codes[s + 3 * AHEAD] >= 0:
                    prefetch(&self.g[codes[s + 3 * AHEAD]])
                self._send_for(codes[s + 2 * AHEAD], flags[s + 2 * AHEAD])
                if self.n_reads and not self.alike:
                    self._send_for_tuples(codes[s + AHEAD], flags[s + AHEAD])
            if parts > 1:
                if code >= 0 and code % parts != part:
                    code = -2
                if (home if home >= 0 else 0) % parts != part:
                    home = -2
            end = position + (self.ends[i] if tied else i + 1)
            s += 1
            if f & STARTS_ and home != -2:
                r = self._open(home, place + i, end)
                if r:
                    return r
            if QUERCUS_IS_CHECKED and (code >= self.n_g or home >= self.n_g):
                abort()
            if code >= 0 and f & (MAY_END_ | MAY_TAKE_ | STAYS_) != STAYS_ and self.g[code].head >= 0:
                r = self._touch_alike(code, position + i, place + i, f, end) if self.alike else self._touch(code, position + i, place + i, f, end)
                if r:
                    return r
            if f & TO_ALL_ and self.n_busy:
                k = self.n_busy - 1     # a group that gets empty gives its place to the last
                while k >= 0:
                    other = self.busy[k]
                    if other != code:
                        r = self._touch_alike(other, position + i, place + i, -1, end) if self.alike else self._touch(other, position + i, place + i, -1, end)
                        if r:
                            return r
                    k -= 1
                self.mixed = True
            if f & TO_LOOSE_ and self.loose >= 0:
                r = self._touch(-1, position + i, place + i, -1, end)
                if r:
                    return r
                self.mixed = True
            if self.n_open > self.swept and self.has[BOUND_]:
                self._sweep(position + i, place + i)
            self.m.ticks += 1
            if self.m.ticks & 65535 == 0:
                r = self._pause()
                if r:
                    return r
        self.at = s
        return 0

    cdef inline void _send_for(self, int64_t code, int f) noexcept nogil:
        """What a tuple will need soon of the windows of its group, which is here by now."""
        cdef Cluster* g
        if code < 0 or self.g[code].head < 0:
            return
        g = &self.g[code]
        if f & STARTS_:
            prefetch(&self.w[g.tail].next_)
        if not self.alike or f & MAY_END_ or not f & STAYS_:
            prefetch(&self.w[g.head])
            prefetch(&self.w[g.head].next_)
            if f & MAY_END_ and g.chain >= 0:
                prefetch(&self.nodes[g.chain])

    cdef inline void _send_for_tuples(self, int64_t code, int f) noexcept nogil:
        """What conditions will read of tuples that a window of its group holds, if they are asked: flags do not say all."""
        cdef Window* w
        cdef int64_t at
        cdef int i
        cdef Col* c
        if code < 0 or self.g[code].head < 0 or not ((f & ASKED_) & ~(f >> 1) or self.has[BOUND_]):
            return
        w = &self.w[self.g[code].head]
        for i in range(self.n_reads):
            c = &self.m.cols[self.reads[i].column]
            at = w.first if self.reads[i].slot == 1 else w.prev
            if c.f != NULL:
                prefetch(&c.f[at])
            else:
                prefetch(&c.i[at])

    cdef int _pause(self) noexcept nogil:
        if self.cancelled:
            return -1
        if self.m.deadline and monotonic() >= self.m.deadline:
            return -3
        with gil:
            return -1 if check_signals() < 0 else 0     # the exception stays set: `run` lets it out

    # windows

    cdef int _open(self, int64_t group, int64_t tuple_, int64_t end) noexcept nogil:
        """A window of one tuple."""
        cdef Window* w
        cdef Cluster* g
        cdef int64_t i = self.free_w
        if i >= 0:
            self.free_w = self.w[i].next_
        else:
            if (self.n_w + 1) * sizeof(Window) > self.room_w:
                w = <Window*> wider(self.w, &self.room_w, 256 * sizeof(Window)) if self.n_w < MOST else NULL
                if w == NULL:
                    return -5
                self.w = w
            i = self.n_w
            self.n_w += 1
        self.n_open += 1
        if self.n_open > self.most_open:
            self.most_open = self.n_open
        self.w[i] = Window(tuple_, tuple_, end, 1, 1, -1, -1)
        if self._held() > self.m.max_state:
            self._release(i)
            return -6
        if end == self.horizon and push(&self.pending, -1 - group if self.alike and group >= 0 else i):
            return -5
        if group < 0:
            self._append_loose(i)
            return 0
        g = &self.g[group]
        if g.head < 0:
            g.head = <int32_t> i
            g.chain = g.fresh = -1
            if self._be_busy(group):
                return -5
        else:
            self.w[g.tail].next_ = <int32_t> i
        g.tail = <int32_t> i
        if self.alike:
            if g.fresh >= 0 and g.fresh_ready != end:
                self._mature(g)
            if g.fresh < 0:
                g.fresh, g.fresh_ready = <int32_t> i, end
        return 0

    cdef void _append_loose(self, int64_t i) noexcept nogil:
        """Those without a key are in no group: newest first, and put in order when they close."""
        self.w[i].next_ = <int32_t> self.loose
        self.loose = i

    cdef int _be_busy(self, int64_t group) noexcept nogil:
        cdef int64_t* v
        if (self.n_busy + 1) * sizeof(int64_t) > self.room_busy:
            v = <int64_t*> wider(self.busy, &self.room_busy, 256 * sizeof(int64_t))
            if v == NULL:
                return 1
            self.busy = v
        self.busy[self.n_busy] = group
        self.g[group].place = self.n_busy
        self.n_busy += 1
        return 0

    cdef void _be_idle(self, int64_t group) noexcept nogil:
        """A group without windows keeps no tuples."""
        cdef Cluster* g = &self.g[group]
        cdef int64_t last = self.busy[self.n_busy - 1]
        self.busy[g.place] = last
        self.g[last].place = g.place
        self.n_busy -= 1
        g.place = -1
        self._forget(g.chain)
        g.chain = g.head = g.tail = g.fresh = -1

    cdef void _release(self, int64_t i) noexcept nogil:
        """A window that is closed or dropped: its room is used again."""
        self._forget(self.w[i].chain)
        self.w[i].first = -1
        self.w[i].next_ = <int32_t> self.free_w
        self.free_w = i
        self.n_open -= 1

    cdef void _forget(self, int32_t chain) noexcept nogil:
        cdef int32_t back
        while chain >= 0:
            back = self.nodes[chain].back
            self.nodes[chain].tuple_ = -1
            self.nodes[chain].back = <int32_t> self.free_node
            self.free_node = chain
            self.live_nodes -= 1
            chain = back

    cdef int _keep_tuple(self, int32_t* chain, int64_t tuple_) noexcept nogil:
        cdef int64_t i = self.free_node
        cdef Node* v
        if i >= 0:
            self.free_node = self.nodes[i].back
        else:
            if (self.n_nodes + 1) * sizeof(Node) > self.room_nodes:
                v = <Node*> wider(self.nodes, &self.room_nodes, 256 * sizeof(Node)) if self.n_nodes < MOST else NULL
                if v == NULL:
                    return -5
                self.nodes = v
            i = self.n_nodes
            self.n_nodes += 1
        self.nodes[i] = Node(tuple_, chain[0], 0)
        chain[0] = <int32_t> i
        self.live_nodes += 1
        return -6 if self._held() > self.m.max_state else 0

    cdef inline bint _holds(self, int program, int64_t here, Window* w, int64_t iter_, int64_t num) noexcept nogil:
        if QUERCUS_IS_CHECKED and not self.has[program]:
            abort()
        self.cur[0], self.cur[1], self.cur[2] = here, w.first, w.prev
        self.counts[0], self.counts[1] = iter_, num
        return evaluate(&self.m, &self.programs[program])

    cdef inline bint _true(self, int program, int f, int may, int must, int64_t here, Window* w, int64_t iter_, int64_t num) noexcept nogil:
        """Whether a condition is true: as the flags of the tuple say, if they do."""
        if f >= 0:
            if not f & may:
                return False
            if f & must:
                return True
        return self._holds(program, here, w, iter_, num)

    cdef int _look(self, Window* w, int64_t position, int64_t here, int f, int64_t end) noexcept nogil:
        """What a tuple does to a window that is shown it. `f`: -1 where flags say nothing of this window."""
        cdef int64_t iter_ = w.iter_ + (position - w.ready)
        if self.has[BOUND_] and position > w.ready and not self._holds(BOUND_, here - 1, w, iter_ - 1, w.num):
            return DROPPED      # by a tuple before this one
        if self._true(TERMINATION_, f, MAY_END_, ENDS_, here, w, iter_, w.num):
            w.iter_ = iter_
            w.num += 1
            return CLOSED
        if not self._true(ITERATION_, f, MAY_STAY_, STAYS_, here, w, iter_, w.num):
            return DROPPED
        if self.has[BOUND_] and not self._holds(BOUND_, here, w, iter_, w.num):
            return DROPPED
        if not self._true(FILTER_, f, MAY_TAKE_, TAKES_, here, w, iter_, w.num):
            return STAYED
        w.iter_, w.ready, w.prev = iter_ + 1, end, here
        w.num += 1
        return TOOK

    cdef int _touch(self, int64_t group, int64_t position, int64_t here, int f, int64_t end) noexcept nogil:
        """Show a tuple to the windows of a group one by one, or to those without one."""
        cdef Cluster* g = &self.g[group] if group >= 0 else NULL
        cdef int64_t i = g.head if g != NULL else self.loose, before = -1, next_, chain
        cdef int r, keeping = self.keeping
        cdef Window* w
        if g == NULL and keeping == BY_GROUP_:
            keeping = BY_WINDOW_
        while i >= 0:
            w = &self.w[i]
            next_ = w.next_
            if position < w.ready:
                before, i = i, next_
                continue
            self.touched += 1
            self.m.ticks += 1
            if self.m.ticks & 65535 == 0:
                r = self._pause()
                if r:
                    return r
            r = self._look(w, position, here, f, end)
            if r <= TOOK:
                if r == TOOK:
                    if end == self.horizon and push(&self.pending, i):
                        return -5
                    if keeping == BY_WINDOW_:
                        r = self._keep_tuple(&w.chain, here)
                    elif keeping == BY_GROUP_ and (g.chain < 0 or self.nodes[g.chain].tuple_ != here):
                        r = self._keep_tuple(&g.chain, here)
                    else:
                        r = 0
                    if r:
                        return r
                before, i = i, next_
                continue
            if r == CLOSED:
                chain = w.chain if keeping == BY_WINDOW_ else g.chain if keeping == BY_GROUP_ else -1
                if chain >= 0 and self.nodes[chain].tuple_ == here:     # another window of the group has taken it in
                    chain = self.nodes[chain].back
                r = self._close(w, here, w.iter_, w.num, chain)
                if r:
                    return r
            if before >= 0:
                self.w[before].next_ = next_
            elif g != NULL:
                g.head = next_
            else:
                self.loose = next_
            if g != NULL and next_ < 0:
                g.tail = before
            self._release(i)
            i = next_
        if g != NULL and g.head < 0:
            self._be_idle(group)
        return 0

    cdef void _mature(self, Cluster* g) noexcept nogil:
        """The fresh windows of a group become like the others. Both are counted from where the fresh ones are ready."""
        cdef int64_t i = g.fresh
        if g.head == g.fresh:
            g.ready, g.iter_, g.num = g.fresh_ready, 1, 1
        while i >= 0:
            self.w[i].iter_ = 1 - (g.iter_ + g.fresh_ready - g.ready)
            self.w[i].num = 1 - g.num
            i = self.w[i].next_
        g.fresh = -1

    cdef int _touch_alike(self, int64_t group, int64_t position, int64_t here, int f, int64_t end) noexcept nogil:
        """Show a tuple to all windows of a group at once; one speaks for the others."""
        cdef Cluster* g = &self.g[group]
        cdef Window* w
        cdef int64_t i, next_
        cdef int r
        cdef bint closes
        if g.fresh >= 0 and position >= g.fresh_ready:
            self._mature(g)
        if g.head == g.fresh or position < g.ready:
            return 0
        self.touched += 1
        w = &self.w[g.head]
        closes = self._true(TERMINATION_, f, MAY_END_, ENDS_, here, w, 0, 0)
        if not closes and self._true(ITERATION_, f, MAY_STAY_, STAYS_, here, w, 0, 0):
            if self._true(FILTER_, f, MAY_TAKE_, TAKES_, here, w, 0, 0):
                g.iter_ += position - g.ready + 1
                g.num += 1
                g.ready = end
                if end == self.horizon and push(&self.pending, -1 - group):
                    return -5
                if self.keeping == BY_GROUP_:
                    return self._keep_tuple(&g.chain, here)
            return 0
        i = g.head
        while i != g.fresh:
            w = &self.w[i]
            next_ = w.next_
            if closes:
                self.m.ticks += 1
                r = self._close(w, here, w.iter_ + g.iter_ + position - g.ready, w.num + g.num + 1, g.chain)
                if r:
                    return r
                if self.m.ticks & 65535 == 0:
                    r = self._pause()
                    if r:
                        return r
            self._release(i)
            i = next_
        g.head = g.fresh
        if g.head < 0:
            self._be_idle(group)
        return 0

    cdef int _close(self, Window* w, int64_t here, int64_t iter_, int64_t num, int64_t chain) noexcept nogil:
        cdef Out* o = &self.outs[4]
        cdef int64_t k
        if self.m.n_matches == self.m.max_matches:
            return -2
        self.m.n_matches += 1
        if push(&self.outs[0], here) or push(&self.outs[1], w.first) or push(&self.outs[2], iter_) or push(&self.outs[3], num):
            return -5
        if self.keeping == NOWHERE_:
            return 0
        if o.n + num > o.cap and enlarge(o, o.n + num):
            return -5
        o.v[o.n], o.v[o.n + num - 1] = w.first, here
        k = num - 2
        while k > 0:
            if QUERCUS_IS_CHECKED and chain < 0:
                abort()
            o.v[o.n + k] = self.nodes[chain].tuple_
            chain = self.nodes[chain].back
            k -= 1
        o.n += num
        return 0

    cdef void _sweep(self, int64_t position, int64_t here) noexcept nogil:
        """Let the windows go that a bound has dropped since they were last looked at."""
        cdef int64_t k = self.n_busy - 1
        while k >= 0:
            self._sweep_group(self.busy[k], position, here)
            k -= 1
        self._sweep_group(-1, position, here)
        self.swept = 2 * self.n_open + 1024

    cdef void _sweep_group(self, int64_t group, int64_t position, int64_t here) noexcept nogil:
        cdef Cluster* g = &self.g[group] if group >= 0 else NULL
        cdef int64_t i = g.head if g != NULL else self.loose, before = -1, next_
        cdef Window* w
        while i >= 0:
            w = &self.w[i]
            next_ = w.next_
            if position >= w.ready and not self._holds(BOUND_, here, w, w.iter_ + (position - w.ready), w.num):
                if before >= 0:
                    self.w[before].next_ = next_
                elif g != NULL:
                    g.head = next_
                else:
                    self.loose = next_
                if g != NULL and next_ < 0:
                    g.tail = before
                self._release(i)
            else:
                before = i
            i = next_
        if g != NULL and g.head < 0:
            self._be_idle(group)

    # a stream that goes on

    def delay(self, int64_t position, int64_t lead):
        """The next tuples, from this position on, begin with so many of the time of the last one before them."""
        cdef Py_ssize_t k
        cdef int64_t i
        for k in range(self.pending.n):
            i = self.pending.v[k]
            if i < 0:
                if self.g[-1 - i].fresh >= 0 and self.g[-1 - i].fresh_ready == position:
                    self.g[-1 - i].fresh_ready += lead
                if self.g[-1 - i].head >= 0 and self.g[-1 - i].ready == position:
                    self.g[-1 - i].ready += lead
            elif self.w[i].first >= 0 and self.w[i].ready == position:
                self.w[i].ready += lead

    cdef void _expect(self, int64_t horizon) noexcept:
        """Of what was pending, keep what still is."""
        cdef Py_ssize_t k, n = 0
        cdef int64_t i
        for k in range(self.pending.n):
            i = self.pending.v[k]
            if i < 0:
                if self.g[-1 - i].head < 0 or (self.g[-1 - i].ready != horizon and self.g[-1 - i].fresh_ready != horizon):
                    continue
            elif self.w[i].first < 0 or self.w[i].ready != horizon:
                continue
            self.pending.v[n] = i
            n += 1
        self.pending.n, self.horizon = n, horizon

    def trim(self):
        """Forget tuples of groups that were taken in before the oldest window was opened."""
        cdef int64_t k, i, most, node
        cdef Cluster* g
        for k in range(self.n_busy):
            g = &self.g[self.busy[k]]
            most, i = 0, g.head
            while i >= 0:
                most = max(most, self.w[i].num + (g.num if self.alike and self._is_mature(g, i) else 0))
                i = self.w[i].next_ if not self.alike else -1   # the first has the most
            node = g.chain
            if most <= 1:
                self._forget(node)
                g.chain = -1
                continue
            while most > 2 and node >= 0:
                node = self.nodes[node].back
                most -= 1
            if node >= 0:
                self._forget(self.nodes[node].back)
                self.nodes[node].back = -1

    cdef bint _is_mature(self, Cluster* g, int64_t window) noexcept nogil:
        """Whether the window's counts are less the group's: it comes before the fresh ones."""
        return g.fresh < 0 or self.w[window].first < self.w[g.fresh].first

    def groups(self):
        """The groups that have windows."""
        found = np.empty(self.n_busy, np.int64)
        cdef int64_t[::1] out = found
        cdef int64_t k
        for k in range(self.n_busy):
            out[k] = self.busy[k]
        return found

    def mark(self, uint8_t[::1] used):
        """Set to 1 what stands for a tuple, by place, that open windows need."""
        cdef int64_t i
        for i in range(self.n_w):
            if self.w[i].first >= 0:
                used[self.w[i].first] = used[self.w[i].prev] = 1
        for i in range(self.n_nodes):
            if self.nodes[i].tuple_ >= 0:
                used[self.nodes[i].tuple_] = 1

    def move(self, const int64_t[::1] places):
        """Tuples have new places in the columns, in the same order."""
        cdef int64_t i
        for i in range(self.n_w):
            if self.w[i].first >= 0:
                self.w[i].first, self.w[i].prev = places[self.w[i].first], places[self.w[i].prev]
        for i in range(self.n_nodes):
            if self.nodes[i].tuple_ >= 0:
                self.nodes[i].tuple_ = places[self.nodes[i].tuple_]

    def state(self):
        """(windows, tuples): group, first, prev, ready, iter and num of each open window, in the order of opening; and
        (owner, tuple) of what they took in, oldest first, where the owner is a group, or -1 - the number of a window.
        """
        cdef int64_t k, i, n = 0, m = 0
        cdef Cluster* g
        cdef Window* w
        windows_ = np.empty((self.n_open, 6), np.int64)
        numbers_ = np.empty(self.n_open, np.int64)
        cdef int64_t[:, ::1] windows = windows_, tuples
        cdef int64_t[::1] numbers = numbers_, ordered
        for k in range(self.n_busy):
            g = &self.g[self.busy[k]]
            i = g.head
            while i >= 0:
                w = &self.w[i]
                windows[n, 0], windows[n, 1], windows[n, 2] = self.busy[k], w.first, w.prev
                if self.alike and self._is_mature(g, i):
                    windows[n, 3], windows[n, 4], windows[n, 5] = g.ready, w.iter_ + g.iter_, w.num + g.num
                elif self.alike:
                    windows[n, 3], windows[n, 4], windows[n, 5] = g.fresh_ready, 1, 1
                else:
                    windows[n, 3], windows[n, 4], windows[n, 5] = w.ready, w.iter_, w.num
                numbers[n] = i
                n += 1
                i = w.next_
        i = self.loose
        while i >= 0:
            w = &self.w[i]
            windows[n, 0], windows[n, 1], windows[n, 2] = -1, w.first, w.prev
            windows[n, 3], windows[n, 4], windows[n, 5] = w.ready, w.iter_, w.num
            numbers[n] = i
            n += 1
            i = w.next_
        order = np.argsort(windows_[:, 1], kind="stable")
        windows_, ordered = windows_[order], numbers_[order]
        tuples_ = np.empty((self.live_nodes, 2), np.int64)
        tuples = tuples_
        for k in range(self.n_busy):
            m = self._listed(self.g[self.busy[k]].chain, self.busy[k], tuples, m)
        for k in range(n):
            m = self._listed(self.w[ordered[k]].chain, -1 - k, tuples, m)
        return windows_, tuples_[:m]

    cdef int64_t _listed(self, int64_t chain, int64_t owner, int64_t[:, ::1] tuples, int64_t m) noexcept:
        """The tuples of a chain, oldest first, with their owner; where the next ones go."""
        cdef int64_t i = chain, end = m
        while i >= 0:
            end += 1
            i = self.nodes[i].back
        i = end - 1
        while chain >= 0:
            tuples[i, 0], tuples[i, 1] = owner, self.nodes[chain].tuple_
            chain = self.nodes[chain].back
            i -= 1
        return end

    def restore(self, const int64_t[:, ::1] windows, const int64_t[:, ::1] tuples, int64_t n_groups, int64_t position):
        """What `state` gave, before the first run of a new one. `position` is that of the next tuple."""
        cdef Py_ssize_t k
        cdef int64_t group, owner, i, status
        cdef Cluster* g
        if self.n_w:
            raise ValueError("windows are open already")
        self._groups(n_groups)
        self.horizon, self.m.max_state = position, INT64_MAX
        for k in range(windows.shape[0]):
            group = windows[k, 0]
            if not -1 <= group < n_groups or windows[k, 5] < 1 or windows[k, 3] > position:
                raise ValueError("a window that cannot be")
            status = self._open(group, windows[k, 1], windows[k, 3])
            if status:
                raise MemoryError()
            i = self.n_w - 1
            self.w[i].prev, self.w[i].iter_, self.w[i].num = windows[k, 2], windows[k, 4], windows[k, 5]
            if not self.alike or group < 0:
                continue
            g = &self.g[group]      # those that are ready before others of their group are first in it
            if g.head == i or g.ready == windows[k, 3]:
                g.ready, g.iter_, g.num, g.fresh = windows[k, 3], 0, 0, -1
            elif g.fresh < 0 or g.fresh_ready != windows[k, 3]:
                raise ValueError("windows of one key that are not alike")
        for k in range(tuples.shape[0]):
            owner = tuples[k, 0]
            if not -1 - windows.shape[0] <= owner < n_groups:
                raise ValueError("a tuple of no window")
            if self._keep_tuple(&self.g[owner].chain if owner >= 0 else &self.w[-1 - owner].chain, tuples[k, 1]):
                raise MemoryError()

    # what is open

    @property
    def open(self):
        """How many windows are open, those that a bound has dropped unseen included."""
        return self.n_open

    @property
    def has_loose(self):
        """Whether windows are open that have no key."""
        return self.loose >= 0

    @property
    def state_bytes(self):
        """What open windows and the tuples that they took in hold."""
        return self._held()

    cdef inline int64_t _held(self) noexcept nogil:
        return self.n_open * <int64_t> sizeof(Window) + self.live_nodes * <int64_t> sizeof(Node)


cdef void let_out() except *:
    """Raise what a signal handler raised while the kernel ran."""


include "windows_pairs.pxi"

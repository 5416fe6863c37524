# distutils: language = c
"""The depth-first matcher: binds the components of one alternative, one by one, each from a range of its sorted buffer.

It keeps no partial results: memory is the input and the output. A component's range comes from order, windows and scope by search in
the buffer; predicates run as small typed programs. Kleene sets are completed when everything else is bound: maximal sets are runs of
the candidates (one set), or maximal cliques of pairwise compatible elements (several). Negated sub-patterns are searched the same way,
inside their scope, until the first match.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport ceil, fabs, floor, fmod
from libc.math cimport round as round_away
from libc.stdint cimport INT64_MAX, INT64_MIN
from libc.stdlib cimport abort, calloc, free, malloc, realloc
from libc.string cimport memcpy, memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

import numpy as np

from quercus.kernels._typedefs cimport QUERCUS_IS_CHECKED, int64_t, uint8_t, uint64_t

cdef extern from *:
    """
    #define add_overflows(a, b, r) __builtin_add_overflow(a, b, r)
    #define sub_overflows(a, b, r) __builtin_sub_overflow(a, b, r)
    #define mul_overflows(a, b, r) __builtin_mul_overflow(a, b, r)
    #define c_mod(a, b) ((a) % (b))
    #define c_div(a, b) ((a) / (b))
    #define lowest_bit(w) __builtin_ctzll(w)
    #define count_bits(w) __builtin_popcountll(w)
    """
    bint add_overflows(int64_t a, int64_t b, int64_t* r) noexcept nogil
    bint sub_overflows(int64_t a, int64_t b, int64_t* r) noexcept nogil
    bint mul_overflows(int64_t a, int64_t b, int64_t* r) noexcept nogil
    int64_t c_mod(int64_t a, int64_t b) noexcept nogil
    double c_div(double a, double b) noexcept nogil
    int lowest_bit(uint64_t w) noexcept nogil
    int count_bits(uint64_t w) noexcept nogil

DEF STACK = 48

# What the matcher answers when it cannot go on.
OK, STOPPED, TOO_MANY, TOO_LONG, TOO_LARGE, NO_MEMORY = 0, -1, -2, -3, -4, -5
MAX_CLIQUE = 8192
STACK_DEPTH = STACK

# Opcodes of predicate programs: (op, a, b) triples on a stack of nullable int64 or float64 values.
OPS = (
    "null const_i const_f load_i load_f to_f add_i sub_i mul_i mod_i neg_i abs_i add_f sub_f mul_f div_f mod_f neg_f abs_f "
    "round_f floor_f ceil_f eq_i ne_i lt_i le_i gt_i ge_i eq_f ne_f lt_f le_f gt_f ge_f and or not is_null is_not_null "
    "in_i in_f count group_i group_f"
).split()
GROUP_FUNCTIONS = ("count", "first", "last", "sum", "avg", "min", "max")

cdef enum:
    NULL_, CONST_I, CONST_F, LOAD_I, LOAD_F, TO_F, ADD_I, SUB_I, MUL_I, MOD_I, NEG_I, ABS_I, ADD_F, SUB_F, MUL_F, DIV_F, MOD_F, NEG_F
    ABS_F, ROUND_F, FLOOR_F, CEIL_F, EQ_I, NE_I, LT_I, LE_I, GT_I, GE_I, EQ_F, NE_F, LT_F, LE_F, GT_F, GE_F, AND_, OR_, NOT_, IS_NULL
    IS_NOT_NULL, IN_I, IN_F, COUNT_, GROUP_I, GROUP_F

cdef enum:
    FIRST_ = 1
    LAST_ = 2
    SUM_ = 3
    AVG_ = 4
    MIN_ = 5
    MAX_ = 6


cdef struct Ints:
    int n
    int* v

cdef struct Buf:
    const int64_t* ts
    const int64_t* pos
    const int64_t* order_
    const int64_t* row
    Py_ssize_t n
    Py_ssize_t lo
    Py_ssize_t hi

cdef struct Col:
    const int64_t* i
    const double* f
    const uint8_t* valid

cdef struct Win:
    bint count
    int64_t size
    Ints slots
    Ints sets

cdef struct Reach:          # a window at the moment a slot is bound: what of it is bound before
    int win
    Ints slots

cdef struct Pred:
    int start
    int end
    int over                # a set whose every element must pass, or -1
    int compare             # the comparison, when it only compares two columns; else -1
    int slot_a
    int slot_b
    int col_a
    int col_b

cdef struct Level:
    int slot
    int previous            # the slot before it in an [n] set, or -1
    Ints after
    Ints before
    Ints distinct
    Ints preds
    Ints negs
    int n_reach
    Reach* reach
    Py_ssize_t hint_lo
    Py_ssize_t hint_hi

cdef struct Set:
    int slot                # holds an element while a predicate looks at it
    int least
    Ints slots              # of an [n] set; empty for + and *
    Ints after
    Ints before
    Ints distinct
    Ints preds
    Ints wins
    Py_ssize_t* elems
    Py_ssize_t n
    Py_ssize_t cap
    Py_ssize_t* cands
    Py_ssize_t n_cands
    Py_ssize_t cand_cap
    Py_ssize_t hint_lo
    Py_ssize_t hint_hi

cdef struct Pair:           # two sets whose elements must be in order, be different events, or agree on a column
    int kind                # 0 before, 1 distinct, 2 same (int64), 3 same (float64)
    int a
    int b
    int col_a
    int col_b

cdef struct Limit:          # a negated leaf between a component and the next
    int component
    int buf

cdef struct Flat:
    int n_levels
    Level* levels
    Ints sets               # + and *
    Ints counted            # [n]
    Ints negs
    Ints tests
    Ints outs
    Ints out_sets
    Ints slots
    int n_pairs
    Pair* pairs
    bint root
    bint plain_last         # the last level needs no look at single events
    bint chain              # a SEQ of plain components in one window: bound along pointers, without a search
    int chain_win
    int n_limits
    Limit* limits
    int64_t** next_         # for each component but the last: the first later event of the next component
    int64_t** limit         # ... and the first of the next component that a negated event lies before, or NULL
    int64_t* upto           # for each component: the first event not before the last component's

cdef struct Group:
    Ints slots
    Ints sets

cdef struct Neg:
    int n_after
    Group* after
    int n_before
    Group* before
    int left                # 0: a neighbour is always there, 1: end - window
    int right               # 0, 1: start + window, 2: end
    Ints bodies
    Ints ex_slots
    Ints ex_sets

cdef struct Bounds:         # a scope: order exclusive, time and position inclusive
    int64_t lo_order
    int64_t hi_order
    int64_t lo_ts
    int64_t hi_ts
    int64_t lo_pos
    int64_t hi_pos
    int neg                 # whose excluded events apply, or -1

cdef struct Out:
    int64_t* v
    Py_ssize_t n
    Py_ssize_t cap


cdef class Block:
    """Memory that the matcher filled, given to numpy without a copy."""

    cdef void* data
    cdef Py_ssize_t size

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, 0, flags)


cdef inline int64_t sat_add(int64_t a, int64_t b) noexcept nogil:
    cdef int64_t r
    return (INT64_MAX if b > 0 else INT64_MIN) if add_overflows(a, b, &r) else r


cdef inline int64_t sat_sub(int64_t a, int64_t b) noexcept nogil:
    cdef int64_t r
    return (INT64_MIN if b > 0 else INT64_MAX) if sub_overflows(a, b, &r) else r


cdef inline int64_t monotonic() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec * <int64_t> 1000000000 + now.tv_nsec


cdef inline int64_t at(const int64_t* v, Py_ssize_t i, Py_ssize_t n) noexcept nogil:
    if QUERCUS_IS_CHECKED and (i < 0 or i >= n):
        abort()
    return v[i]


cdef Py_ssize_t first_above(const int64_t* v, Py_ssize_t lo, Py_ssize_t hi, int64_t x, bint or_equal, Py_ssize_t hint) noexcept nogil:
    """The first index in [lo, hi) whose value is > x (>= x with or_equal), galloping from a hint; hi when there is none."""
    cdef Py_ssize_t step = 1, a = lo, b = hi, mid
    if lo >= hi:
        return lo
    if hint < lo:
        hint = lo
    if hint >= hi:
        hint = hi - 1
    if v[hint] > x or (or_equal and v[hint] == x):   # the answer is at the hint or before it
        b = hint
        while b - step >= lo and (v[b - step] > x or (or_equal and v[b - step] == x)):
            b -= step
            step <<= 1
        a = b - step + 1 if b - step + 1 > lo else lo
    else:
        a = hint + 1
        while a + step < hi and not (v[a + step] > x or (or_equal and v[a + step] == x)):
            a += step
            step <<= 1
        b = a + step if a + step < hi else hi
    while a < b:
        mid = (a + b) >> 1
        if v[mid] > x or (or_equal and v[mid] == x):
            b = mid
        else:
            a = mid + 1
    return a


cdef class Matcher:
    """Runs the alternatives of one query over its buffers. Built from plain lists and arrays by the local backend."""

    cdef list _keep
    cdef list _pool
    cdef Buf* bufs
    cdef int n_bufs
    cdef Col* cols
    cdef int* slot_buf
    cdef Py_ssize_t* cur
    cdef int n_slots
    cdef Win* wins
    cdef Pred* preds
    cdef int* code
    cdef int64_t* const_i
    cdef double* const_f
    cdef Set* sets
    cdef int n_sets
    cdef Neg* negs
    cdef Flat* flats
    cdef bint count_window
    cdef int64_t window_size
    cdef Out* outs
    cdef Out* elems
    cdef int n_outs
    cdef int n_out_sets
    cdef int64_t start_ts, end_ts, start_pos, end_pos
    cdef int64_t n_matches, max_matches, deadline
    cdef int64_t compared, bound, ticks
    cdef object error

    def __cinit__(self, program):
        self._keep, self._pool = [], []
        self.count_window, self.window_size = program.count_window, program.window_size
        cdef int i, j
        n = self.n_bufs = len(program.buffers)
        self.bufs = <Buf*> self._alloc(n * sizeof(Buf))
        for i, b in enumerate(program.buffers):
            self.bufs[i].ts = self._int64(b.ts)
            self.bufs[i].pos = self._int64(b.pos)
            self.bufs[i].order_ = self.bufs[i].pos if program.by_arrival else self.bufs[i].ts
            self.bufs[i].row = self._int64(b.row)
            self.bufs[i].n = len(b.ts)
        self.cols = <Col*> self._alloc(len(program.columns) * sizeof(Col))
        for i, (data, valid) in enumerate(program.columns):
            if data.dtype == np.int64:
                self.cols[i].i = self._int64(data)
            else:
                self.cols[i].f = self._float64(data)
            if valid is not None:
                self.cols[i].valid = self._uint8(valid)
        self.n_slots = len(program.slots)
        self.slot_buf = self._ints(program.slots).v
        self.cur = <Py_ssize_t*> self._alloc(self.n_slots * sizeof(Py_ssize_t))
        self.const_i = <int64_t*> self._int64(np.ascontiguousarray(program.const_i, dtype=np.int64))
        self.const_f = <double*> self._float64(np.ascontiguousarray(program.const_f, dtype=np.float64))
        self.code = self._ints(program.code).v
        self.preds = <Pred*> self._alloc(len(program.preds) * sizeof(Pred))
        for i, (start, end, over) in enumerate(program.preds):
            self.preds[i] = Pred(start, end, over, -1, 0, 0, 0, 0)
            code = program.code[start:end]
            if len(code) == 9 and code[0] in (LOAD_I, LOAD_F) and code[0] == code[3] and EQ_I <= code[6] <= GE_F:
                self.preds[i] = Pred(start, end, over, code[6], code[1], code[4], code[2], code[5])
        self.wins = <Win*> self._alloc(len(program.windows) * sizeof(Win))
        for i, w in enumerate(program.windows):
            self.wins[i].count, self.wins[i].size = w.count, w.size
            self.wins[i].slots, self.wins[i].sets = self._ints(w.slots), self._ints(w.sets)
        self.n_sets = len(program.sets)
        self.sets = <Set*> self._alloc(self.n_sets * sizeof(Set))
        for i, s in enumerate(program.sets):
            self.sets[i].slot, self.sets[i].least = s.slot, s.least
            self.sets[i].slots, self.sets[i].after, self.sets[i].before = self._ints(s.slots), self._ints(s.after), self._ints(s.before)
            self.sets[i].distinct, self.sets[i].preds, self.sets[i].wins = self._ints(s.distinct), self._ints(s.preds), self._ints(s.windows)
        self.negs = <Neg*> self._alloc(len(program.negations) * sizeof(Neg))
        for i, g in enumerate(program.negations):
            self.negs[i].left, self.negs[i].right = g.left, g.right
            self.negs[i].n_after, self.negs[i].after = len(g.after), self._groups(g.after)
            self.negs[i].n_before, self.negs[i].before = len(g.before), self._groups(g.before)
            self.negs[i].bodies = self._ints(g.bodies)
            self.negs[i].ex_slots, self.negs[i].ex_sets = self._ints(g.exclude_slots), self._ints(g.exclude_sets)
        self.flats = <Flat*> self._alloc(len(program.flats) * sizeof(Flat))
        for i, f in enumerate(program.flats):
            self._flat(&self.flats[i], f)

    cdef _flat(self, Flat* f, source):
        cdef int j, k
        f.n_levels = len(source.levels)
        f.levels = <Level*> self._alloc(f.n_levels * sizeof(Level))
        for j, level in enumerate(source.levels):
            f.levels[j].slot, f.levels[j].previous = level.slot, level.previous
            f.levels[j].after, f.levels[j].before = self._ints(level.after), self._ints(level.before)
            f.levels[j].distinct, f.levels[j].preds = self._ints(level.distinct), self._ints(level.preds)
            f.levels[j].negs = self._ints(level.negations)
            f.levels[j].n_reach = len(level.reach)
            f.levels[j].reach = <Reach*> self._alloc(len(level.reach) * sizeof(Reach))
            for k, (win, slots) in enumerate(level.reach):
                f.levels[j].reach[k].win, f.levels[j].reach[k].slots = win, self._ints(slots)
        f.sets, f.counted = self._ints(source.sets), self._ints(source.counted)
        f.negs, f.tests = self._ints(source.negations), self._ints(source.tests)
        f.outs, f.out_sets, f.slots = self._ints(source.outs), self._ints(source.out_sets), self._ints(source.slots)
        f.n_pairs = len(source.pairs)
        f.pairs = <Pair*> self._alloc(f.n_pairs * sizeof(Pair))
        for j, (kind, a, b, col_a, col_b) in enumerate(source.pairs):
            f.pairs[j] = Pair(kind, a, b, col_a, col_b)
        f.chain, f.chain_win = source.chain is not None, source.chain if source.chain is not None else 0
        f.n_limits = len(source.limits)
        f.limits = <Limit*> self._alloc(f.n_limits * sizeof(Limit))
        for j, (component, buf) in enumerate(source.limits):
            f.limits[j] = Limit(component, buf)
        if f.chain:
            self._chain_memory(f)
        f.root = source.root
        last = source.levels[len(source.levels) - 1] if source.levels else None
        f.plain_last = bool(
            source.root and last is not None and not source.sets and not source.counted and not source.negations and not source.tests
            and not last.distinct and not last.preds and not last.negations and last.previous < 0
        )

    cdef _chain_memory(self, Flat* f):
        cdef int i, j
        f.next_ = <int64_t**> self._alloc(f.n_levels * sizeof(int64_t*))
        f.limit = <int64_t**> self._alloc(f.n_levels * sizeof(int64_t*))
        f.upto = <int64_t*> self._alloc(f.n_levels * sizeof(int64_t))
        for i in range(f.n_levels - 1):
            f.next_[i] = <int64_t*> self._alloc(self.component(f, i).n * sizeof(int64_t))
        for j in range(f.n_limits):
            i = f.limits[j].component
            if f.limit[i] == NULL:
                f.limit[i] = <int64_t*> self._alloc(self.component(f, i).n * sizeof(int64_t))

    # memory and conversions

    cdef void* _alloc(self, size_t size) except NULL:
        cdef void* p = calloc(1, size if size else 1)
        if p == NULL:
            raise MemoryError()
        self._pool.append(<size_t> p)
        return p

    cdef Ints _ints(self, items) except *:
        cdef Ints r
        cdef int i
        r.n = len(items)
        r.v = <int*> self._alloc(r.n * sizeof(int))
        for i in range(r.n):
            r.v[i] = items[i]
        return r

    cdef Group* _groups(self, groups) except NULL:
        cdef Group* r = <Group*> self._alloc(len(groups) * sizeof(Group))
        for i, (slots, sets) in enumerate(groups):
            r[i].slots, r[i].sets = self._ints(slots), self._ints(sets)
        return r

    cdef const int64_t* _int64(self, a) except? NULL:
        cdef const int64_t[::1] v = a
        self._keep.append(a)
        return &v[0] if v.shape[0] else <const int64_t*> self._alloc(8)

    cdef const double* _float64(self, a) except? NULL:
        cdef const double[::1] v = a
        self._keep.append(a)
        return &v[0] if v.shape[0] else <const double*> self._alloc(8)

    cdef const uint8_t* _uint8(self, a) except? NULL:
        cdef const uint8_t[::1] v = a
        self._keep.append(a)
        return &v[0] if v.shape[0] else <const uint8_t*> self._alloc(8)

    def __dealloc__(self):
        cdef int i
        cdef size_t address
        if self.sets != NULL:
            for i in range(self.n_sets):
                free(self.sets[i].elems)
                free(self.sets[i].cands)
        if self._pool is not None:
            for address in self._pool:
                free(<void*> address)

    # running

    def run(self, int flat, const int64_t[:, ::1] segments, int64_t max_matches, int64_t max_nanoseconds):
        """Match one alternative over each segment (a key's part of every buffer).

        `segments[b, k]` is where segment k of buffer b begins, `segments[b, k + 1]` where it ends. Returns (status, columns, sets):
        a column of event rows per plain variable, and (offsets, rows) per set. A negative `max_nanoseconds` is no limit.
        """
        cdef Flat* f = &self.flats[flat]
        cdef Py_ssize_t k, n_segments = segments.shape[1] - 1
        cdef int i, status = 0
        cdef bint some
        cdef Bounds free_scope = Bounds(INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, -1)
        if segments.shape[0] != self.n_bufs:
            raise ValueError("one row of segments for each buffer")
        self.n_matches, self.max_matches = 0, max_matches
        self.deadline = sat_add(monotonic(), max_nanoseconds) if max_nanoseconds >= 0 else 0
        self.compared = self.bound = self.ticks = 0
        self.error = None
        self.n_outs, self.n_out_sets = f.outs.n, f.out_sets.n
        self.outs = <Out*> calloc(f.outs.n + 2 * f.out_sets.n + 1, sizeof(Out))
        if self.outs == NULL:
            raise MemoryError()
        self.elems = self.outs + f.outs.n
        try:
            with nogil:
                for i in range(f.out_sets.n):
                    if push(&self.elems[2 * i], 0):
                        status = -5
                for k in range(n_segments):
                    some = True
                    for i in range(f.n_levels):
                        if segments[self.slot_buf[f.levels[i].slot], k] == segments[self.slot_buf[f.levels[i].slot], k + 1]:
                            some = False
                            break
                    if not some:
                        continue
                    for i in range(self.n_bufs):
                        self.bufs[i].lo = segments[i, k]
                        self.bufs[i].hi = segments[i, k + 1]
                    if status == 0:
                        status = self.chain(f) if f.chain else self.search(f, 0, &free_scope)
                    if status < 0:
                        break
            if self.error is not None:
                error, self.error = self.error, None
                raise error
            columns = [self._take(&self.outs[i]) for i in range(f.outs.n)]
            sets = [(self._take(&self.elems[2 * i]), self._take(&self.elems[2 * i + 1])) for i in range(f.out_sets.n)]
        finally:
            for i in range(f.outs.n + 2 * f.out_sets.n):
                free(self.outs[i].v)
            free(self.outs)
            self.outs = NULL
        return status, columns, sets

    @property
    def counters(self):
        """Exact counts of the last run: candidates looked at, components bound."""
        return {"compared": self.compared, "bound": self.bound, "matches": self.n_matches}

    cdef _take(self, Out* o):
        cdef Block b = Block()
        b.data, b.size = o.v, o.n * sizeof(int64_t)
        o.v = NULL
        return np.frombuffer(b, dtype=np.int64) if b.size else np.empty(0, dtype=np.int64)

    cdef inline int64_t order_of(self, int slot) noexcept nogil:
        return at(self.bufs[self.slot_buf[slot]].order_, self.cur[slot], self.bufs[self.slot_buf[slot]].n)

    cdef inline int64_t row_of(self, int slot) noexcept nogil:
        return at(self.bufs[self.slot_buf[slot]].row, self.cur[slot], self.bufs[self.slot_buf[slot]].n)

    cdef void narrow(self, Level* level, Bounds* b) noexcept nogil:
        """Bounds of a slot from what is bound: order from its neighbours, windows from the extent so far."""
        cdef int i, j, slot
        cdef int64_t v, low, high
        cdef Win* w
        for i in range(level.after.n):
            v = self.order_of(level.after.v[i])
            if v > b.lo_order:
                b.lo_order = v
        for i in range(level.before.n):
            v = self.order_of(level.before.v[i])
            if v < b.hi_order:
                b.hi_order = v
        for i in range(level.n_reach):
            w = &self.wins[level.reach[i].win]
            low, high = INT64_MAX, INT64_MIN
            for j in range(level.reach[i].slots.n):
                slot = level.reach[i].slots.v[j]
                v = (self.bufs[self.slot_buf[slot]].pos if w.count else self.bufs[self.slot_buf[slot]].ts)[self.cur[slot]]
                low = min(low, v)
                high = max(high, v)
            if low == INT64_MAX and high == INT64_MIN:
                continue
            if w.count:
                b.lo_pos, b.hi_pos = max(b.lo_pos, sat_sub(high, w.size)), min(b.hi_pos, sat_add(low, w.size))
            else:
                b.lo_ts, b.hi_ts = max(b.lo_ts, sat_sub(high, w.size)), min(b.hi_ts, sat_add(low, w.size))

    cdef void interval(self, Buf* buf, Bounds* b, Py_ssize_t* lo, Py_ssize_t* hi) noexcept nogil:
        """The part of a buffer inside the bounds. `lo` and `hi` come in as hints."""
        cdef Py_ssize_t first = buf.lo, last = buf.hi, hint_lo = lo[0], hint_hi = hi[0]
        if b.lo_order != INT64_MIN:
            first = first_above(buf.order_, first, last, b.lo_order, False, hint_lo)
        if b.lo_ts != INT64_MIN:
            first = first_above(buf.ts, first, last, b.lo_ts, True, hint_lo)
        if b.lo_pos != INT64_MIN:
            first = first_above(buf.pos, first, last, b.lo_pos, True, hint_lo)
        if b.hi_order != INT64_MAX:
            last = first_above(buf.order_, first, last, b.hi_order, True, hint_hi)
        if b.hi_ts != INT64_MAX:
            last = first_above(buf.ts, first, last, b.hi_ts, False, hint_hi)
        if b.hi_pos != INT64_MAX:
            last = first_above(buf.pos, first, last, b.hi_pos, False, hint_hi)
        lo[0], hi[0] = first, last

    cdef bint excluded(self, int neg, int64_t row) noexcept nogil:
        cdef Neg* g = &self.negs[neg]
        cdef int i
        cdef Py_ssize_t j
        cdef Set* s
        for i in range(g.ex_slots.n):
            if self.row_of(g.ex_slots.v[i]) == row:
                return True
        for i in range(g.ex_sets.n):
            s = &self.sets[g.ex_sets.v[i]]
            for j in range(s.n):
                if self.bufs[self.slot_buf[s.slot]].row[s.elems[j]] == row:
                    return True
        return False

    cdef int search(self, Flat* f, int k, Bounds* scope) noexcept nogil:
        """Bind level k and all after it. 1: found (a negated body), 0: went through, below 0: stop."""
        cdef Level* level
        cdef Buf* buf
        cdef Bounds b
        cdef Py_ssize_t lo, hi, i
        cdef int j, r
        cdef int64_t row
        cdef bint good
        if k == f.n_levels:
            return self.complete(f, scope)
        level = &f.levels[k]
        buf = &self.bufs[self.slot_buf[level.slot]]
        b = scope[0]
        self.narrow(level, &b)
        lo, hi = level.hint_lo, level.hint_hi
        self.interval(buf, &b, &lo, &hi)
        level.hint_lo, level.hint_hi = lo, hi
        if level.previous >= 0 and lo <= self.cur[level.previous]:
            lo = self.cur[level.previous] + 1
        if lo >= hi:
            return 0
        if k == f.n_levels - 1 and f.plain_last:
            return self.emit_range(f, level.slot, buf, lo, hi)
        for i in range(lo, hi):
            self.cur[level.slot] = i
            self.compared += 1
            r = self.tick()
            if r < 0:
                return r
            row = at(buf.row, i, buf.n)
            good = True
            for j in range(level.distinct.n):
                if self.row_of(level.distinct.v[j]) == row:
                    good = False
                    break
            if good and b.neg >= 0 and self.excluded(b.neg, row):
                good = False
            if not good:
                continue
            for j in range(level.preds.n):
                if not self.holds(level.preds.v[j]):
                    good = False
                    break
            if not good:
                continue
            for j in range(level.negs.n):
                r = self.exists(level.negs.v[j])
                if r < 0:
                    return r
                if r:
                    good = False
                    break
            if not good:
                continue
            self.bound += 1
            r = self.search(f, k + 1, scope)
            if r != 0:
                return r
        return 0

    # a SEQ of plain components: FAEM's and NEEL's stacks with pointers, from the last component backwards

    cdef inline int level_of(self, Flat* f, int component) noexcept nogil:
        """Levels are bound last, first, then the rest."""
        return 0 if component == f.n_levels - 1 else component + 1

    cdef inline Buf* component(self, Flat* f, int i) noexcept nogil:
        return &self.bufs[self.slot_buf[f.levels[self.level_of(f, i)].slot]]

    cdef void point(self, Flat* f) noexcept nogil:
        """Pointers of this segment: from each event to the first later one of the next component."""
        cdef int i, k
        cdef Buf* a
        cdef Buf* b
        cdef Buf* x
        cdef Py_ssize_t j, p, q
        cdef int64_t bound
        for i in range(f.n_levels - 1):
            a, b = self.component(f, i), self.component(f, i + 1)
            p = b.lo
            for j in range(a.lo, a.hi):
                while p < b.hi and b.order_[p] <= a.order_[j]:
                    p += 1
                f.next_[i][j] = p
            if f.limit[i] != NULL:
                for j in range(a.lo, a.hi):
                    f.limit[i][j] = b.hi
        for k in range(f.n_limits):
            i = f.limits[k].component
            a, b, x = self.component(f, i), self.component(f, i + 1), &self.bufs[f.limits[k].buf]
            p, q = x.lo, b.lo
            for j in range(a.lo, a.hi):
                while p < x.hi and x.order_[p] <= a.order_[j]:
                    p += 1
                if p == x.hi:
                    break
                bound = x.order_[p]
                while q < b.hi and b.order_[q] <= bound:
                    q += 1
                if q < f.limit[i][j]:
                    f.limit[i][j] = q

    cdef int chain(self, Flat* f) noexcept nogil:
        cdef int k = f.n_levels, i, r
        cdef Level* last = &f.levels[0]
        cdef Buf* end = self.component(f, k - 1)
        cdef Buf* first = self.component(f, 0)
        cdef Buf* mid
        cdef Win* w = &self.wins[f.chain_win]
        cdef const int64_t* end_at = end.pos if w.count else end.ts
        cdef const int64_t* first_at = first.pos if w.count else first.ts
        cdef Py_ssize_t e, a, lo = first.lo, hi = first.lo, sample
        cdef int64_t least, now
        cdef bint pair = k == 3 and self.open_pair(f, 0), tested = last.preds.n > 0 or last.negs.n > 0
        sample = end.lo + ((end.hi - end.lo) >> 5) if end.hi - end.lo > 4096 else -1
        self.point(f)
        for i in range(k):
            f.upto[i] = self.component(f, i).lo
        for e in range(end.lo, end.hi):
            self.cur[last.slot] = e
            self.compared += 1
            least = sat_sub(end_at[e], w.size)
            while hi < first.hi and first.order_[hi] < end.order_[e]:
                hi += 1
            while lo < hi and first_at[lo] < least:
                lo += 1
            for i in range(1, k - 1):
                mid = &self.bufs[self.slot_buf[f.levels[i + 1].slot]]
                now = f.upto[i]
                while now < mid.hi and mid.order_[now] < end.order_[e]:
                    now += 1
                f.upto[i] = now
            if lo >= hi or (k > 2 and f.next_[0][lo] >= f.upto[1]):
                continue
            if tested:
                r = self.passes(last)
                if r < 0:
                    return r
                if not r:
                    continue
            if k == 2 and f.plain_last and f.limit[0] == NULL:
                r = self.emit_range(f, f.levels[1].slot, first, lo, hi)
                if r != 0:
                    return r
                continue
            if pair:
                r = self.emit_pairs(f, 0, lo, hi)
                if r != 0:
                    return r
                if e == sample:
                    r = self.reserve(f)
                    if r != 0:
                        return r
                continue
            for a in range(lo, hi):
                if k > 2 and f.next_[0][a] >= f.upto[1]:
                    break   # pointers only move forward: no later event has a partner either
                r = self.link(f, 0, a, e)
                if r < 0:
                    return r
        return 0

    cdef int link(self, Flat* f, int i, Py_ssize_t at_, Py_ssize_t e) noexcept nogil:
        """Bind component i to an event, then the next ones along the pointers."""
        cdef int k = f.n_levels, r
        cdef Level* level = &f.levels[i + 1]
        cdef Py_ssize_t lo, hi, j
        cdef Buf* b
        self.cur[level.slot] = at_
        self.compared += 1
        r = self.tick()
        if r < 0:
            return r
        if i == k - 2 and f.limit[i] != NULL and f.limit[i][at_] <= e:
            return 0
        r = self.passes(level)
        if r <= 0:
            return r
        self.bound += 1
        if i == k - 2:
            return self.complete(f, NULL)
        lo, hi = f.next_[i][at_], f.upto[i + 1]
        if f.limit[i] != NULL and f.limit[i][at_] < hi:
            hi = f.limit[i][at_]
        if lo >= hi:
            return 0
        b = self.component(f, i + 1)
        if i + 1 == k - 2 and f.plain_last and f.limit[i + 1] == NULL:
            return self.emit_range(f, f.levels[i + 2].slot, b, lo, hi)
        if i + 1 == k - 3 and self.open_pair(f, i + 1):
            return self.emit_pairs(f, i + 1, lo, hi)
        for j in range(lo, hi):
            if i + 1 < k - 2 and f.next_[i + 1][j] >= f.upto[i + 2]:
                break
            r = self.link(f, i + 1, j, e)
            if r < 0:
                return r
        return 0

    cdef inline bint open_pair(self, Flat* f, int i) noexcept nogil:
        """Whether components i and i + 1 are the last to be bound, and nothing tests them."""
        return f.plain_last and f.levels[i + 1].preds.n == 0 and f.levels[i + 1].negs.n == 0 and f.limit[i + 1] == NULL

    cdef int emit_pairs(self, Flat* f, int i, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
        """The last two components: each event of one with all its partners of the other, along the pointers."""
        cdef Buf* x = self.component(f, i)
        cdef Buf* y = self.component(f, i + 1)
        cdef const int64_t* next_ = f.next_[i]
        cdef const int64_t* limit = f.limit[i]
        cdef const int64_t* rows = y.row
        cdef int64_t upto = f.upto[i + 1], to, q, row
        cdef int64_t* out_x = NULL
        cdef int64_t* out_y = NULL
        cdef int slot_x = f.levels[i + 1].slot, slot_y = f.levels[i + 2].slot, c
        cdef Py_ssize_t j, n = 0, room = (hi - lo) * (upto - next_[lo])
        for c in range(f.outs.n):
            if self.outs[c].n + room > self.outs[c].cap and enlarge(&self.outs[c], self.outs[c].n + room):
                return -5
            if f.outs.v[c] == slot_x:
                out_x = self.outs[c].v + self.outs[c].n
            elif f.outs.v[c] == slot_y:
                out_y = self.outs[c].v + self.outs[c].n
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
        self.compared += hi - lo + n
        self.bound += hi - lo + n
        if n > self.max_matches - self.n_matches:
            return -2
        for c in range(f.outs.n):
            if f.outs.v[c] != slot_x and f.outs.v[c] != slot_y:
                row = self.row_of(f.outs.v[c])
                out_x = self.outs[c].v + self.outs[c].n
                for j in range(n):
                    out_x[j] = row
            self.outs[c].n += n
        self.n_matches += n
        self.ticks += 1
        return self.pause() if self.ticks & 4095 == 0 else 0

    cdef int reserve(self, Flat* f) noexcept nogil:
        """Room for the whole answer, judged by its first part: memory that is not written costs nothing."""
        cdef int c
        cdef Py_ssize_t room = min(self.n_matches * 40, self.max_matches)
        for c in range(f.outs.n):
            if room > self.outs[c].cap and enlarge_to(&self.outs[c], room):
                return -5
        return 0

    cdef int passes(self, Level* level) noexcept nogil:
        """Predicates and early negations of a level: 1 when all hold."""
        cdef int j, r
        for j in range(level.preds.n):
            if not self.holds(level.preds.v[j]):
                return 0
        for j in range(level.negs.n):
            r = self.exists(level.negs.v[j])
            if r != 0:
                return r if r < 0 else 0
        return 1

    cdef inline int tick(self) noexcept nogil:
        """Now and then, look at the clock and at signals: 0 to go on."""
        self.ticks += 1
        return self.pause() if self.ticks & 65535 == 0 else 0

    cdef int pause(self) noexcept nogil:
        if self.deadline and monotonic() >= self.deadline:
            return -3
        with gil:
            try:
                PyErr_CheckSignals()
            except BaseException as e:  # kept for the caller: nothing can be raised from here
                self.error = e
                return -1
        return 0

    # completing a match

    cdef int complete(self, Flat* f, Bounds* scope) noexcept nogil:
        cdef int i, j
        cdef Set* s
        cdef Py_ssize_t lo = 0, hi = 0, e
        for i in range(f.counted.n):
            s = &self.sets[f.counted.v[i]]
            s.n = 0
            for j in range(s.slots.n):
                if grow(s, s.n + 1):
                    return -5
                s.elems[s.n] = self.cur[s.slots.v[j]]
                s.n += 1
        if f.sets.n == 0:
            return self.finish(f)
        if f.sets.n == 1 and f.n_pairs == 0:
            s = &self.sets[f.sets.v[0]]
            if s.preds.n == 0 and s.distinct.n == 0:
                self.set_interval(s, &lo, &hi)
                if lo < hi and self.fits(s, lo, hi - 1):
                    if grow(s, hi - lo):
                        return -5
                    for e in range(hi - lo):
                        s.elems[e] = lo + e
                    s.n = hi - lo
                    return self.finish(f)
        for i in range(f.sets.n):
            if self.candidates(&self.sets[f.sets.v[i]]):
                return -5
        if f.sets.n == 1 and f.n_pairs == 0:
            return self.runs(f, &self.sets[f.sets.v[0]])
        return self.cliques(f)

    cdef bint fits(self, Set* s, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """Whether two elements fit into every window of their set."""
        cdef Buf* buf = &self.bufs[self.slot_buf[s.slot]]
        cdef const int64_t* v
        cdef int k
        for k in range(s.wins.n):
            v = buf.pos if self.wins[s.wins.v[k]].count else buf.ts
            if sat_sub(v[j], v[i]) > self.wins[s.wins.v[k]].size:
                return False
        return True

    cdef void set_interval(self, Set* s, Py_ssize_t* lo, Py_ssize_t* hi) noexcept nogil:
        """The part of a set's buffer between its neighbours and inside what is left of its windows."""
        cdef Buf* buf = &self.bufs[self.slot_buf[s.slot]]
        cdef Bounds b = Bounds(INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, -1)
        cdef int j, k, slot
        cdef int64_t v, low, high
        cdef Win* w
        for j in range(s.after.n):
            b.lo_order = max(b.lo_order, self.order_of(s.after.v[j]))
        for j in range(s.before.n):
            b.hi_order = min(b.hi_order, self.order_of(s.before.v[j]))
        for j in range(s.wins.n):
            w = &self.wins[s.wins.v[j]]
            if w.slots.n == 0:
                continue
            low, high = INT64_MAX, INT64_MIN
            for k in range(w.slots.n):
                slot = w.slots.v[k]
                v = (self.bufs[self.slot_buf[slot]].pos if w.count else self.bufs[self.slot_buf[slot]].ts)[self.cur[slot]]
                low, high = min(low, v), max(high, v)
            if w.count:
                b.lo_pos, b.hi_pos = max(b.lo_pos, sat_sub(high, w.size)), min(b.hi_pos, sat_add(low, w.size))
            else:
                b.lo_ts, b.hi_ts = max(b.lo_ts, sat_sub(high, w.size)), min(b.hi_ts, sat_add(low, w.size))
        lo[0], hi[0] = s.hint_lo, s.hint_hi
        self.interval(buf, &b, lo, hi)
        s.hint_lo, s.hint_hi = lo[0], hi[0]

    cdef int candidates(self, Set* s) noexcept nogil:
        """The events that could be elements, each by itself."""
        cdef Buf* buf = &self.bufs[self.slot_buf[s.slot]]
        cdef Py_ssize_t lo = 0, hi = 0, i
        cdef int j
        cdef bint good
        self.set_interval(s, &lo, &hi)
        s.n_cands = 0
        if hi <= lo:
            return 0
        if s.cand_cap < hi - lo:
            free(s.cands)
            s.cands = <Py_ssize_t*> malloc((hi - lo) * sizeof(Py_ssize_t))
            s.cand_cap = hi - lo if s.cands != NULL else 0
            if s.cands == NULL:
                return 1
        for i in range(lo, hi):
            self.cur[s.slot] = i
            self.compared += 1
            good = True
            for j in range(s.distinct.n):
                if self.row_of(s.distinct.v[j]) == buf.row[i]:
                    good = False
                    break
            if not good:
                continue
            for j in range(s.preds.n):
                if not self.holds(s.preds.v[j]):
                    good = False
                    break
            if good:
                s.cands[s.n_cands] = i
                s.n_cands += 1
        return 0

    cdef int runs(self, Flat* f, Set* s) noexcept nogil:
        """One set: its maximal sets are the maximal runs of candidates that fit every window."""
        cdef Py_ssize_t i, j = 0, last = -1
        cdef int r
        if s.n_cands == 0:
            s.n = 0
            return self.finish(f) if s.least == 0 else 0
        for i in range(s.n_cands):
            if j < i:
                j = i
            while j + 1 < s.n_cands:
                if not self.fits(s, s.cands[i], s.cands[j + 1]):
                    break
                j += 1
            if j > last:
                last = j
                if grow(s, j - i + 1):
                    return -5
                memcpy(s.elems, s.cands + i, (j - i + 1) * sizeof(Py_ssize_t))
                s.n = j - i + 1
                r = self.finish(f)
                if r != 0:
                    return r
        return 0

    cdef bint compatible(self, Flat* f, int a, Py_ssize_t x, int b, Py_ssize_t y) noexcept nogil:
        """Whether element x of set a and element y of set b can stand in one match."""
        cdef Set* p = &self.sets[a]
        cdef Set* q = &self.sets[b]
        cdef Buf* pb = &self.bufs[self.slot_buf[p.slot]]
        cdef Buf* qb = &self.bufs[self.slot_buf[q.slot]]
        cdef int k, j
        cdef Win* w
        cdef int64_t u, v
        cdef Pair* pair
        for k in range(p.wins.n):
            w = &self.wins[p.wins.v[k]]
            for j in range(w.sets.n):
                if w.sets.v[j] == b:
                    u = pb.pos[x] if w.count else pb.ts[x]
                    v = qb.pos[y] if w.count else qb.ts[y]
                    if sat_sub(max(u, v), min(u, v)) > w.size:
                        return False
        for k in range(f.n_pairs):
            pair = &f.pairs[k]
            if pair.a == a and pair.b == b:
                if not self.agree(pair, x, y, pb, qb):
                    return False
            elif pair.a == b and pair.b == a:
                if not self.agree(pair, y, x, qb, pb):
                    return False
        return True

    cdef bint agree(self, Pair* pair, Py_ssize_t x, Py_ssize_t y, Buf* xb, Buf* yb) noexcept nogil:
        cdef Col* c
        cdef Col* d
        if pair.kind == 0:
            return xb.order_[x] < yb.order_[y]
        if pair.kind == 1:
            return xb.row[x] != yb.row[y]
        c, d = &self.cols[pair.col_a], &self.cols[pair.col_b]
        if (c.valid != NULL and not c.valid[x]) or (d.valid != NULL and not d.valid[y]):
            return False
        return c.i[x] == d.i[y] if pair.kind == 2 else c.f[x] == d.f[y]

    cdef int cliques(self, Flat* f) noexcept nogil:
        """Several sets: maximal matches are the maximal cliques of compatible elements (Bron-Kerbosch with a pivot)."""
        cdef Py_ssize_t total = 0, words, i, j, n
        cdef int a, b, r = 0
        cdef Set* s
        cdef int* owner = NULL
        cdef Py_ssize_t* item = NULL
        cdef uint64_t* graph = NULL
        cdef uint64_t* start = NULL
        for a in range(f.sets.n):
            s = &self.sets[f.sets.v[a]]
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
                s = &self.sets[f.sets.v[a]]
                for i in range(s.n_cands):
                    owner[n], item[n] = f.sets.v[a], s.cands[i]
                    n += 1
            for i in range(total):
                start[words + (i >> 6)] |= (<uint64_t> 1) << (i & 63)
                for j in range(i):
                    if self.compatible(f, owner[i], item[i], owner[j], item[j]):
                        graph[i * words + (j >> 6)] |= (<uint64_t> 1) << (j & 63)
                        graph[j * words + (i >> 6)] |= (<uint64_t> 1) << (i & 63)
            r = self.expand(f, owner, item, graph, total, words, start, start + words, start + 2 * words)
        free(owner)
        free(item)
        free(graph)
        free(start)
        return r

    cdef int expand(
        self, Flat* f, int* owner, Py_ssize_t* item, uint64_t* graph, Py_ssize_t total, Py_ssize_t words,
        uint64_t* chosen, uint64_t* open_, uint64_t* closed,
    ) noexcept nogil:
        cdef Py_ssize_t i, w, u, pivot = -1
        cdef int count, best = -1, r
        cdef uint64_t any_open = 0, any_closed = 0, bits
        cdef uint64_t* next_
        r = self.tick()
        if r < 0:
            return r
        for w in range(words):
            any_open |= open_[w]
            any_closed |= closed[w]
        if any_open == 0:
            return self.report(f, owner, item, total, chosen) if any_closed == 0 else 0
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
                r = self.expand(f, owner, item, graph, total, words, next_, next_ + words, next_ + 2 * words)
                open_[(i >> 6)] &= ~((<uint64_t> 1) << (i & 63))
                closed[(i >> 6)] |= (<uint64_t> 1) << (i & 63)
            if r != 0:
                break
        free(next_)
        return r

    cdef int report(self, Flat* f, int* owner, Py_ssize_t* item, Py_ssize_t total, uint64_t* chosen) noexcept nogil:
        cdef int a
        cdef Py_ssize_t i
        cdef Set* s
        for a in range(f.sets.n):
            self.sets[f.sets.v[a]].n = 0
        for i in range(total):
            if (chosen[(i >> 6)] >> (i & 63)) & 1:
                s = &self.sets[owner[i]]
                if grow(s, s.n + 1):
                    return -5
                s.elems[s.n] = item[i]
                s.n += 1
        for a in range(f.sets.n):
            if self.sets[f.sets.v[a]].n < self.sets[f.sets.v[a]].least:
                return 0
        return self.finish(f)

    cdef int finish(self, Flat* f) noexcept nogil:
        """Everything is bound: negations, tests on whole sets, then out."""
        cdef int i, r
        if f.root:
            self.extent(f)
        for i in range(f.negs.n):
            r = self.exists(f.negs.v[i])
            if r != 0:
                return r if r < 0 else 0
        for i in range(f.tests.n):
            if not self.holds(f.tests.v[i]):
                return 0
        return self.emit(f) if f.root else 1

    cdef void extent(self, Flat* f) noexcept nogil:
        cdef int i
        cdef Py_ssize_t j
        cdef Buf* b
        cdef Set* s
        self.start_ts, self.end_ts, self.start_pos, self.end_pos = INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN
        for i in range(f.slots.n):
            self.stretch(&self.bufs[self.slot_buf[f.slots.v[i]]], self.cur[f.slots.v[i]])
        for i in range(f.sets.n):
            s = &self.sets[f.sets.v[i]]
            for j in range(s.n):
                self.stretch(&self.bufs[self.slot_buf[s.slot]], s.elems[j])

    cdef inline void stretch(self, Buf* b, Py_ssize_t i) noexcept nogil:
        self.start_ts, self.end_ts = min(self.start_ts, b.ts[i]), max(self.end_ts, b.ts[i])
        self.start_pos, self.end_pos = min(self.start_pos, b.pos[i]), max(self.end_pos, b.pos[i])

    # negations

    cdef int exists(self, int neg) noexcept nogil:
        """Whether the negated pattern has a match in its scope."""
        cdef Neg* g = &self.negs[neg]
        cdef Bounds b = Bounds(INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, -1)
        cdef int i, r
        if g.ex_slots.n or g.ex_sets.n:
            b.neg = neg
        if not self.edge(g.after, g.n_after, True, &b.lo_order) and g.left:
            if self.count_window:
                b.lo_pos = sat_sub(self.end_pos, self.window_size)
            else:
                b.lo_ts = sat_sub(self.end_ts, self.window_size)
        if not self.edge(g.before, g.n_before, False, &b.hi_order) and g.right:
            if self.count_window:
                b.hi_pos = sat_add(self.start_pos, self.window_size) if g.right == 1 else self.end_pos
            else:
                b.hi_ts = sat_add(self.start_ts, self.window_size) if g.right == 1 else self.end_ts
        for i in range(g.bodies.n):
            r = self.search(&self.flats[g.bodies.v[i]], 0, &b)
            if r != 0:
                return r
        return 0

    cdef bint edge(self, Group* groups, int n, bint latest, int64_t* out) noexcept nogil:
        """The end of the nearest neighbour that has bound anything."""
        cdef int i, j
        cdef Py_ssize_t k
        cdef Set* s
        cdef bint found = False
        cdef int64_t v, best = 0
        for i in range(n):
            for j in range(groups[i].slots.n):
                v = self.order_of(groups[i].slots.v[j])
                best = v if not found else max(best, v) if latest else min(best, v)
                found = True
            for j in range(groups[i].sets.n):
                s = &self.sets[groups[i].sets.v[j]]
                for k in range(s.n):
                    v = self.bufs[self.slot_buf[s.slot]].order_[s.elems[k]]
                    best = v if not found else max(best, v) if latest else min(best, v)
                    found = True
            if found:
                out[0] = best
                return True
        return False

    # output

    cdef int emit(self, Flat* f) noexcept nogil:
        cdef int i
        cdef Py_ssize_t j
        cdef Set* s
        if self.n_matches >= self.max_matches:
            return -2
        for i in range(f.outs.n):
            if push(&self.outs[i], self.row_of(f.outs.v[i])):
                return -5
        for i in range(f.out_sets.n):
            s = &self.sets[f.out_sets.v[i]]
            for j in range(s.n):
                if push(&self.elems[2 * i + 1], self.bufs[self.slot_buf[s.slot]].row[s.elems[j]]):
                    return -5
            if push(&self.elems[2 * i], self.elems[2 * i + 1].n):
                return -5
        self.n_matches += 1
        return 0

    cdef int emit_range(self, Flat* f, int last, Buf* buf, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
        """The last component's whole range at once: no single event needs a look."""
        cdef Py_ssize_t n = hi - lo, j
        cdef int i
        cdef int64_t row
        cdef Out* o
        self.compared += n
        self.bound += n
        if n > self.max_matches - self.n_matches:
            return -2
        for i in range(f.outs.n):
            o = &self.outs[i]
            if o.n + n > o.cap and enlarge(o, o.n + n):
                return -5
            if f.outs.v[i] == last:
                memcpy(o.v + o.n, buf.row + lo, n * sizeof(int64_t))
            else:
                row = self.row_of(f.outs.v[i])
                for j in range(n):
                    o.v[o.n + j] = row
            o.n += n
        self.n_matches += n
        return 0

    # predicates

    cdef bint holds(self, int pred) noexcept nogil:
        cdef Pred* p = &self.preds[pred]
        cdef Set* s
        cdef Py_ssize_t i, kept
        if p.over < 0:
            return self.evaluate(p)
        s = &self.sets[p.over]
        kept = self.cur[s.slot]
        for i in range(s.n):
            self.cur[s.slot] = s.elems[i]
            if not self.evaluate(p):
                self.cur[s.slot] = kept
                return False
        self.cur[s.slot] = kept
        return True

    cdef bint compares(self, Pred* p) noexcept nogil:
        """Two columns compared: no stack needed."""
        cdef Col* c = &self.cols[p.col_a]
        cdef Col* d = &self.cols[p.col_b]
        cdef Py_ssize_t i = self.cur[p.slot_a], j = self.cur[p.slot_b]
        cdef int64_t x, y
        cdef double u, v
        if (c.valid != NULL and not c.valid[i]) or (d.valid != NULL and not d.valid[j]):
            return False
        if p.compare >= EQ_F:
            u, v = c.f[i], d.f[j]
            if p.compare == LT_F:
                return u < v
            if p.compare == GT_F:
                return u > v
            if p.compare == LE_F:
                return u <= v
            if p.compare == GE_F:
                return u >= v
            return u == v if p.compare == EQ_F else u != v
        x, y = c.i[i], d.i[j]
        if p.compare == EQ_I:
            return x == y
        if p.compare == LT_I:
            return x < y
        if p.compare == GT_I:
            return x > y
        if p.compare == LE_I:
            return x <= y
        return x >= y if p.compare == GE_I else x != y

    cdef bint evaluate(self, Pred* p) noexcept nogil:
        """Run a program; true only when its value is true."""
        cdef int64_t vi[STACK]
        cdef double vf[STACK]
        cdef uint8_t known[STACK]
        cdef int top = -1, pc, op, a, b, k
        cdef Py_ssize_t at_
        cdef Col* c
        cdef bint hit
        if p.compare >= 0:
            return self.compares(p)
        for pc in range(p.start, p.end, 3):
            op, a, b = self.code[pc], self.code[pc + 1], self.code[pc + 2]
            if op <= LOAD_F or op == COUNT_ or op >= GROUP_I:
                top += 1
                known[top] = 1
                if op == LOAD_I:
                    c = &self.cols[b]
                    at_ = self.cur[a]
                    vi[top] = c.i[at_]
                    if c.valid != NULL:
                        known[top] = c.valid[at_]
                elif op == LOAD_F:
                    c = &self.cols[b]
                    at_ = self.cur[a]
                    vf[top] = c.f[at_]
                    if c.valid != NULL:
                        known[top] = c.valid[at_]
                elif op == CONST_I:
                    vi[top] = self.const_i[a]
                elif op == CONST_F:
                    vf[top] = self.const_f[a]
                elif op == COUNT_:
                    vi[top] = self.sets[a].n
                elif op == GROUP_I or op == GROUP_F:
                    known[top] = self.group(op, a, b, self.code[pc + 2] >> 3, self.code[pc + 2] & 7, &vi[top], &vf[top])
                else:
                    known[top] = 0
            elif op == TO_F:
                vf[top] = <double> vi[top]
            elif op == NEG_I:
                known[top] = known[top] and not sub_overflows(0, vi[top], &vi[top])
            elif op == ABS_I:
                if known[top] and vi[top] < 0:
                    known[top] = not sub_overflows(0, vi[top], &vi[top])
            elif op == NEG_F:
                vf[top] = -vf[top]
            elif op == ABS_F:
                vf[top] = fabs(vf[top])
            elif op == ROUND_F:
                vf[top] = round_away(vf[top])
            elif op == FLOOR_F:
                vf[top] = floor(vf[top])
            elif op == CEIL_F:
                vf[top] = ceil(vf[top])
            elif op == NOT_:
                vi[top] = not vi[top]
            elif op == IS_NULL:
                vi[top] = not known[top]
                known[top] = 1
            elif op == IS_NOT_NULL:
                vi[top] = known[top]
                known[top] = 1
            elif op == IN_I or op == IN_F:
                if known[top]:
                    hit = False
                    for k in range(a, b):
                        if (vi[top] == self.const_i[k]) if op == IN_I else (vf[top] == self.const_f[k]):
                            hit = True
                            break
                    vi[top] = hit
            else:
                top -= 1
                self.binary(op, &vi[top], &vf[top], &known[top], vi[top + 1], vf[top + 1], known[top + 1])
        return known[0] and vi[0] != 0

    cdef inline void binary(
        self, int op, int64_t* vi, double* vf, uint8_t* known, int64_t wi, double wf, uint8_t other
    ) noexcept nogil:
        if op == AND_:
            if (known[0] and not vi[0]) or (other and not wi):
                vi[0], known[0] = 0, 1
            else:
                known[0] = known[0] and other
                vi[0] = 1
            return
        if op == OR_:
            if (known[0] and vi[0]) or (other and wi):
                vi[0], known[0] = 1, 1
            else:
                known[0] = known[0] and other
                vi[0] = 0
            return
        if not (known[0] and other):
            known[0] = 0
            return
        if op == EQ_I:
            vi[0] = vi[0] == wi
        elif op == NE_I:
            vi[0] = vi[0] != wi
        elif op == LT_I:
            vi[0] = vi[0] < wi
        elif op == LE_I:
            vi[0] = vi[0] <= wi
        elif op == GT_I:
            vi[0] = vi[0] > wi
        elif op == GE_I:
            vi[0] = vi[0] >= wi
        elif op == EQ_F:
            vi[0] = vf[0] == wf
        elif op == NE_F:
            vi[0] = vf[0] != wf
        elif op == LT_F:
            vi[0] = vf[0] < wf
        elif op == LE_F:
            vi[0] = vf[0] <= wf
        elif op == GT_F:
            vi[0] = vf[0] > wf
        elif op == GE_F:
            vi[0] = vf[0] >= wf
        elif op == ADD_I:
            known[0] = not add_overflows(vi[0], wi, vi)
        elif op == SUB_I:
            known[0] = not sub_overflows(vi[0], wi, vi)
        elif op == MUL_I:
            known[0] = not mul_overflows(vi[0], wi, vi)
        elif op == MOD_I:
            if wi == 0:
                known[0] = 0
            else:
                vi[0] = 0 if wi == -1 else c_mod(vi[0], wi)
        elif op == ADD_F:
            vf[0] = vf[0] + wf
        elif op == SUB_F:
            vf[0] = vf[0] - wf
        elif op == MUL_F:
            vf[0] = vf[0] * wf
        elif op == DIV_F:
            if wf == 0:
                known[0] = 0
            else:
                vf[0] = c_div(vf[0], wf)
        elif op == MOD_F:
            if wf == 0:
                known[0] = 0
            else:
                vf[0] = fmod(vf[0], wf)

    cdef uint8_t group(self, int op, int set_, int packed, int col, int function, int64_t* vi, double* vf) noexcept nogil:
        """first, last, sum, avg, min or max of a column over a set, nulls aside; 0 when there is no value."""
        cdef Set* s = &self.sets[set_]
        cdef Col* c = &self.cols[col]
        cdef Py_ssize_t i, e, n = 0
        cdef bint ints = c.i != NULL, sound = True
        cdef int64_t total_i = 0, x
        cdef double total_f = 0, y
        if s.n == 0:
            return 0
        if function == FIRST_ or function == LAST_:
            e = s.elems[0 if function == FIRST_ else s.n - 1]
            if c.valid != NULL and not c.valid[e]:
                return 0
            if ints:
                vi[0] = c.i[e]
            else:
                vf[0] = c.f[e]
            return 1
        for i in range(s.n):
            e = s.elems[i]
            if c.valid != NULL and not c.valid[e]:
                continue
            if ints:
                x = c.i[e]
                if n == 0:
                    total_i = x
                elif function == MIN_:
                    total_i = min(total_i, x)
                elif function == MAX_:
                    total_i = max(total_i, x)
                elif function == AVG_:
                    pass
                elif add_overflows(total_i, x, &total_i):
                    sound = False
                total_f += <double> x
            else:
                y = c.f[e]
                if n == 0:
                    total_f = y
                elif function == MIN_ or function == MAX_:
                    if total_f != total_f or y != y:
                        total_f = total_f + y
                    else:
                        total_f = min(total_f, y) if function == MIN_ else max(total_f, y)
                else:
                    total_f += y
            n += 1
        if n == 0 or not sound:
            return 0
        if function == AVG_:
            vf[0] = c_div(total_f, <double> n)
        elif ints:
            vi[0] = total_i
        else:
            vf[0] = total_f
        return 1


cdef int push(Out* o, int64_t v) noexcept nogil:
    if o.n == o.cap and enlarge(o, o.n + 1):
        return 1
    o.v[o.n] = v
    o.n += 1
    return 0


cdef int enlarge(Out* o, Py_ssize_t least) noexcept nogil:
    cdef Py_ssize_t cap = o.cap * 2 if o.cap else 1024
    while cap < least:
        cap *= 2
    return enlarge_to(o, cap)


cdef int enlarge_to(Out* o, Py_ssize_t cap) noexcept nogil:
    cdef int64_t* v = <int64_t*> realloc(o.v, cap * sizeof(int64_t))
    if v == NULL:
        return 1
    o.v, o.cap = v, cap
    return 0


cdef int grow(Set* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t cap = s.cap * 2 if s.cap else 16
    cdef Py_ssize_t* v
    if n <= s.cap:
        return 0
    while cap < n:
        cap *= 2
    v = <Py_ssize_t*> realloc(s.elems, cap * sizeof(Py_ssize_t))
    if v == NULL:
        return 1
    s.elems, s.cap = v, cap
    return 0

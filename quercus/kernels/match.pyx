"""The depth-first matcher: binds the components of one alternative, one by one, each from a range of its sorted buffer.

It keeps no partial results: memory is the input and the output. A component's range comes from order, windows and scope by search in
the buffer; predicates run as small typed programs. Kleene sets are completed when everything else is bound: maximal sets are runs of
the candidates (one set: ranges of its buffer, where no predicate leaves holes), or maximal cliques of pairwise compatible elements (several). Negated sub-patterns are answered by
existence indexes, or searched the same way, inside their scope, until the first match.

A tree of joins is run from its leaves up instead, with internal buffers; the search then goes on from each composite of its root.
"""


cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport INFINITY, ceil, fabs, floor, fmod, nextafter
from libc.math cimport round as round_away
from libc.stdint cimport INT64_MAX, INT64_MIN
from libc.stdlib cimport abort, calloc, free, malloc, qsort, realloc
from libc.string cimport memcpy, memmove, memset

import sys

import numpy as np

from quercus.kernels._machine cimport *
from quercus.kernels._typedefs cimport QUERCUS_IS_CHECKED, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from quercus.kernels.memory cimport adopt, give, take
from quercus.kernels.route cimport Router

cdef extern from "Python.h":
    int check_signals "PyErr_CheckSignals"() noexcept


DEF STACK = 48
DEF WIDE = 8        # rows written at once, whether there are as many or not: what is too much is written over

# What the matcher answers when it cannot go on.
OK, STOPPED, TOO_MANY, TOO_LONG, TOO_LARGE, NO_MEMORY, TOO_MUCH_STATE, TOO_MUCH_VIEW = 0, -1, -2, -3, -4, -5, -6, -7
MAX_CLIQUE = 8192
STACK_DEPTH = STACK

# Opcodes of predicate programs: (op, a, b) triples on a stack of nullable int64 or float64 values.
OPS = (
    "null const_i const_f load_i load_f to_f add_i sub_i mul_i mod_i neg_i abs_i add_f sub_f mul_f div_f mod_f neg_f abs_f "
    "round_f floor_f ceil_f eq_i ne_i lt_i le_i gt_i ge_i eq_f ne_f lt_f le_f gt_f ge_f and or not is_null is_not_null "
    "map_i count group_i group_f"
).split()
GROUP_FUNCTIONS = ("count", "first", "last", "sum", "avg", "min", "max")


include "match_predicates.pxi"
include "match_sieve.pxi"
include "match_sets.pxi"
include "match_search.pxi"
include "match_release.pxi"
include "match_follow.pxi"
include "match_pairs.pxi"
include "match_walk.pxi"
include "match_steps.pxi"
include "match_exists.pxi"
include "match_views.pxi"
include "match_chain.pxi"
include "match_trail.pxi"
include "match_order.pxi"
include "match_hash.pxi"
include "match_join.pxi"


cdef int64_t NOTHING = 0    # where an array of no numbers points to


cdef void let_out() except *:
    """Raise what a signal handler raised while the kernel ran."""


cdef class Matcher:
    """Runs the alternatives of one query over its buffers. Built from plain lists and arrays by the local backend."""

    cdef list _keep             # arrays that the machine points into
    cdef list _rows             # of each buffer, where they stay as they are: sets that go out are ranges of these
    cdef list _pool             # memory of the program
    cdef int64_t* _scratch      # pointers of the chain that runs
    cdef size_t _scratch_size
    cdef object _const_f
    cdef list _tables
    cdef Machine m

    def __cinit__(self, program, *more):
        self._keep, self._pool = [], []
        self.m.count_window, self.m.window_size = program.count_window, program.window_size
        self.m.max_state, self.m.round_, self.m.grew = INT64_MAX, 4096, -1
        cdef int i, j
        n = self.m.n_bufs = len(program.buffers)
        self.m.bufs = <Buf*> self._alloc(n * sizeof(Buf))
        self.m.n_cols = len(program.columns)
        self.m.cols = <Col*> self._alloc(self.m.n_cols * sizeof(Col))
        self.m.zones = <Zones*> self._alloc(self.m.n_cols * sizeof(Zones))
        self.m.sift_from = program.sift_from
        self.m.n_maps = len(program.maps)
        self.m.maps = <Table*> self._alloc(self.m.n_maps * sizeof(Table))
        self.m.by_arrival, self.m.n_flats = program.by_arrival, len(program.flats)
        self.m.n_slots = len(program.slots)
        self.m.slot_buf = self._ints(program.slots).v
        self.m.cur = <Py_ssize_t*> self._alloc(self.m.n_slots * sizeof(Py_ssize_t))
        self._const_f = np.ascontiguousarray(program.const_f, dtype=np.float64)
        self.m.code = self._ints(program.code).v
        self.m.preds = <Pred*> self._alloc(len(program.preds) * sizeof(Pred))
        for i, (start, end, over) in enumerate(program.preds):
            self.m.preds[i] = Pred(start, end, over, -1, 0, 0, 0, 0)
            code = program.code[start:end]
            if len(code) == 9 and code[0] in (LOAD_I, LOAD_F) and code[0] == code[3] and EQ_I <= code[6] <= GE_F:
                self.m.preds[i] = Pred(start, end, over, code[6], code[1], code[4], code[2], code[5])
        self.m.wins = <Win*> self._alloc(len(program.windows) * sizeof(Win))
        for i, w in enumerate(program.windows):
            self.m.wins[i].count, self.m.wins[i].size = w.count, w.size
            self.m.wins[i].slots, self.m.wins[i].sets = self._ints(w.slots), self._ints(w.sets)
        self.m.n_sets = len(program.sets)
        self.m.sets = <Set*> self._alloc(self.m.n_sets * sizeof(Set))
        for i, s in enumerate(program.sets):
            self.m.sets[i].slot, self.m.sets[i].least = s.slot, s.least
            self.m.sets[i].slots, self.m.sets[i].after, self.m.sets[i].before = self._ints(s.slots), self._ints(s.after), self._ints(s.before)
            self.m.sets[i].distinct, self.m.sets[i].preds, self.m.sets[i].wins = self._ints(s.distinct), self._ints(s.preds), self._ints(s.windows)
        self.m.build_indexes = program.build_indexes
        self.m.n_keys = len(program.keys)
        self.m.keys = <Keys*> self._alloc(self.m.n_keys * sizeof(Keys))
        for i, (buf, cols) in enumerate(program.keys):
            self.m.keys[i].buf, self.m.keys[i].cols = buf, self._ints(cols)
        self.m.n_negs = len(program.negations)
        self.m.negs = <Neg*> self._alloc(self.m.n_negs * sizeof(Neg))
        for i, g in enumerate(program.negations):
            self.m.negs[i].left, self.m.negs[i].right = g.left, g.right
            self.m.negs[i].n_after, self.m.negs[i].after = len(g.after), self._groups(g.after)
            self.m.negs[i].n_before, self.m.negs[i].before = len(g.before), self._groups(g.before)
            self.m.negs[i].n_ways, self.m.negs[i].ways = len(g.ways), self._ways(g.ways)
            self.m.negs[i].ex_slots, self.m.negs[i].ex_sets = self._ints(g.exclude_slots), self._ints(g.exclude_sets)
        self.m.flats = <Flat*> self._alloc(len(program.flats) * sizeof(Flat))
        for i, f in enumerate(program.flats):
            self._flat(&self.m.flats[i], f)
        self._subs(program.subs)

    cdef _flat(self, Flat* f, source):
        cdef int j, k
        f.n_levels = len(source.levels)
        f.levels = <Level*> self._alloc(f.n_levels * sizeof(Level))
        for j, level in enumerate(source.levels):
            f.levels[j].slot, f.levels[j].previous, f.levels[j].following = level.slot, level.previous, level.following
            f.levels[j].below, f.levels[j].above = self._ints(level.below), self._ints(level.above)
            f.levels[j].after, f.levels[j].before = self._ints(level.after), self._ints(level.before)
            f.levels[j].distinct, f.levels[j].preds = self._ints(level.distinct), self._ints(level.preds)
            f.levels[j].negs, f.levels[j].sub = self._ints(level.negations), level.sub
            f.levels[j].n_limiting = sum(neg in level.negations for _, neg in source.index_limits)
            f.levels[j].early = level.early
            f.levels[j].sieves, f.levels[j].sifted = self._sieves(level.sieves), level.sifted
            f.levels[j].n_reach = len(level.reach)
            f.levels[j].reach = <Reach*> self._alloc(len(level.reach) * sizeof(Reach))
            for k, (win, slots) in enumerate(level.reach):
                f.levels[j].reach[k].win, f.levels[j].reach[k].slots = win, self._ints(slots)
        f.hold = next((j for j, level in enumerate(source.levels) if level.sub >= 0), 0) if any(k.early for k in source.levels) else 0
        f.sets, f.counted = self._ints(source.sets), self._ints(source.counted)
        f.negs, f.tests = self._ints(source.negations), self._ints(source.tests)
        f.outs, f.out_sets, f.slots = self._ints(source.outs), self._ints(source.out_sets), self._ints(source.slots)
        f.n_pairs = len(source.pairs)
        f.pairs = <Pair*> self._alloc(f.n_pairs * sizeof(Pair))
        for j, (kind, a, b, col_a, col_b) in enumerate(source.pairs):
            f.pairs[j] = Pair(kind, a, b, col_a, col_b)
        f.chain, f.chain_win = source.chain is not None, source.chain if source.chain is not None else 0
        f.trail, f.trail_set = source.trail is not None, source.trail if source.trail is not None else 0
        if f.trail:
            f.chain_win = self.m.sets[f.trail_set].wins.v[0]
        f.n_limits = len(source.limits)
        f.limits = <Limit*> self._alloc(f.n_limits * sizeof(Limit))
        for j, (where, bufs) in enumerate(source.limits):
            f.limits[j].component, f.limits[j].bufs = where, self._ints(bufs)
            f.limits[j].beyond = <int64_t**> self._alloc(len(bufs) * sizeof(int64_t*))
        f.n_jump_limits = len(source.jump_limits) + len(source.index_limits)
        f.jump_limits = <JumpLimit*> self._alloc(f.n_jump_limits * sizeof(JumpLimit))
        for j, (where, neg) in enumerate([*source.jump_limits, *source.index_limits]):
            f.jump_limits[j] = JumpLimit(where, neg, j >= len(source.jump_limits))
        f.next_ = <int64_t**> self._alloc(f.n_levels * sizeof(int64_t*))
        f.limit = <int64_t**> self._alloc(f.n_levels * sizeof(int64_t*))
        f.lows = <Py_ssize_t*> self._alloc(f.n_levels * sizeof(Py_ssize_t))
        f.highs = <Py_ssize_t*> self._alloc(f.n_levels * sizeof(Py_ssize_t))
        f.chase = <int64_t**> self._alloc(f.n_levels * sizeof(int64_t*))
        f.upto = <int64_t*> self._alloc(f.n_levels * sizeof(int64_t))
        f.down = <int64_t*> self._alloc(f.n_levels * sizeof(int64_t))
        f.upto_at = <int64_t**> self._alloc(f.n_levels * sizeof(int64_t*))
        f.down_at = <int64_t**> self._alloc(f.n_levels * sizeof(int64_t*))
        f.rising = <bint*> self._alloc(f.n_levels * sizeof(bint))
        for j in range(f.n_levels):
            f.rising[j] = True
        for j in range(f.n_jump_limits):
            if is_tied(&self.m.negs[f.jump_limits[j].neg]):
                f.rising[f.jump_limits[j].component] = False
        f.owner = source.levels[0].slot if source.levels else -1
        if f.trail:
            f.owner = f.levels[level_of(&self.m, f, 0)].slot
        f.natural = source.natural
        f.plain_root = not (source.levels or source.sets or source.counted or source.negations or source.tests)
        self._joins(f, source.joins)
        f.root, f.held, f.due, f.pivot_set = source.root, source.held is not None, source.due, -1
        f.beyond_level = -1
        if f.held:
            f.beyond_level = source.held.beyond
            f.holds_sets, f.ending, f.pivot_set = self._ints(source.held.sets), source.held.ending, source.held.pivot
            f.earlier, f.exact = self._ints(source.held.earlier), self._ints(source.held.exact)
            f.all_negs = self._ints([*source.negations, *(g for level in source.levels for g in level.negations)])
        last = source.levels[len(source.levels) - 1] if source.levels else None
        f.sifted_limited = bool(
            source.root and last is not None and not f.held and not source.sets and not source.counted and not source.negations and not source.tests
            and not last.distinct and len(last.negations) == f.levels[f.n_levels - 1].n_limiting
            and last.previous < 0 and last.following < 0 and last.sifted == len(last.preds)
        )
        f.plain_limited = f.sifted_limited and not last.preds
        f.sifted_last = f.sifted_tested = f.sifted_limited and not last.negations
        f.plain_last = f.plain_tested = f.plain_limited and not last.negations

    cdef _subs(self, specs):
        cdef int i, j
        cdef Sub* s
        self.m.n_subs, self.m.trigger = len(specs), -1
        self.m.subs = <Sub*> self._alloc(self.m.n_subs * sizeof(Sub))
        for i, spec in enumerate(specs):
            s = &self.m.subs[i]
            s.strategy, s.flags, s.flat = ("iterative", "aggressive", "passive", "balanced").index(spec.strategy), spec.flags, spec.flat
            s.ends, s.firsts, s.lasts = self._ints(spec.ends), self._ints(spec.firsts), self._ints(spec.lasts)
            s.hints = <Py_ssize_t*> self._alloc(2 * (s.firsts.n + s.lasts.n) * sizeof(Py_ssize_t))
            s.slots, s.distinct, s.loose = self._ints(spec.slots), self._ints(spec.distinct), spec.loose
            s.sparse = spec.sparse
            s.preds, s.negs = self._ints(spec.preds), self._ints(spec.negations)
            s.tie_slots, s.tie_cols = self._ints([k for k, _ in spec.ties]), self._ints([c for _, c in spec.ties])
            s.floor_of = s.left = INT64_MIN
            collecting = [*spec.ends, *([spec.flat] if spec.collects else [])]
            s.end_slots = <Ints*> self._alloc(len(collecting) * sizeof(Ints))
            for j, number in enumerate(collecting):
                s.end_slots[j] = self._ints(spec.end_slots[j])
                self.m.flats[number].sub, self.m.flats[number].sub_end = i, j

    cdef _joins(self, Flat* f, nodes):
        cdef int j, k, side
        cdef Join* n
        f.n_joins = len(nodes)
        f.joins = <Join*> self._alloc(f.n_joins * sizeof(Join))
        f.keeps_ts = not self.m.by_arrival or any(node.within_time is not None for node in nodes)
        f.keeps_pos = self.m.by_arrival or any(node.within_count is not None for node in nodes)
        for j, node in enumerate(nodes):
            n = &f.joins[j]
            n.child[0], n.child[1] = node.children or (-1, -1)
            if node.children is None:
                n.slot = f.owner = node.slots[0]    # the last leaf's events are shared out
                continue
            n.ordered, n.keeps = node.ordered, j < f.n_joins - 1
            n.within_ts = node.within_time if node.within_time is not None else INT64_MAX
            n.within_pos = node.within_count if node.within_count is not None else INT64_MAX
            n.n_distinct = len(node.distinct)
            n.distinct[0], n.distinct[1] = self._ints([a for a, _ in node.distinct]), self._ints([b for _, b in node.distinct])
            n.preds, n.negs = self._ints(node.preds), self._ints(node.negations)
            n.sieves[0], n.sieves[1] = self._sieves(node.sieves[0]), self._sieves(node.sieves[1])
            n.n_keys = len(node.keys)
            n.keys = <Key*> self._alloc(n.n_keys * sizeof(Key))
            for k, (slot_a, col_a, slot_b, col_b, real) in enumerate(node.keys):
                n.keys[k].slot[0], n.keys[k].col[0], n.keys[k].slot[1], n.keys[k].col[1] = slot_a, col_a, slot_b, col_b
                n.keys[k].real = real
            for side in range(2):
                n.n_fetch[side] = len(node.fetch[side])
                n.fetch[side] = <Fetch*> self._alloc(n.n_fetch[side] * sizeof(Fetch))
                for k, (slot, path) in enumerate(node.fetch[side]):
                    n.fetch[side][k].slot, n.fetch[side][k].path = slot, self._ints(path)
            n.bare = n.ordered and not node.preds and not node.negations and (n.keeps or f.plain_root)

    def load(self, data):
        """The data of the program: whatever was loaded before is let go."""
        cdef int i
        self._keep = []
        self._rows = [b.row for b in data.buffers]
        forget_indexes(&self.m)
        if len(data.buffers) != self.m.n_bufs or len(data.columns) != self.m.n_cols or len(data.maps) != self.m.n_maps:
            raise ValueError("not the data of this program")
        self.m.const_i, self.m.const_f = self._int64(data.const_i), self._float64(self._const_f)
        for i, b in enumerate(data.buffers):
            if not len(b.ts) == len(b.pos) == len(b.row):
                raise ValueError("the columns of a buffer differ in length")
            self.m.bufs[i].ts, self.m.bufs[i].pos, self.m.bufs[i].row = self._int64(b.ts), self._int64(b.pos), self._int64(b.row)
            self.m.bufs[i].order_ = self.m.bufs[i].pos if self.m.by_arrival else self.m.bufs[i].ts
            self.m.bufs[i].n = len(b.ts)
        for i, (values, valid) in enumerate(data.columns):
            self.m.cols[i].i = self._int64(values) if values.dtype == np.int64 else NULL
            self.m.cols[i].f = self._float64(values) if values.dtype != np.int64 else NULL
            self.m.cols[i].valid = self._uint8(valid) if valid is not None else NULL
        for i, table in enumerate(data.maps):
            self.m.maps[i] = Table(self._int64(table), len(table))
        self._chain_memory()

    cdef _chain_memory(self):
        """One piece of memory for the pointers of any chain: one runs at a time."""
        cdef int i, j, k
        cdef size_t size = 0
        cdef Flat* f
        for i in range(self.m.n_flats):
            f = &self.m.flats[i]
            if not (f.chain or f.trail):
                continue
            f.scratch = 1 + component(&self.m, f, 0).n + f.n_levels * component(&self.m, f, f.n_levels - 1).n
            for j in range(f.n_levels):
                f.scratch += 3 * component(&self.m, f, j).n
            for j in range(f.n_limits):
                f.scratch += component(&self.m, f, f.limits[j].component).n
                for k in range(f.limits[j].bufs.n):
                    f.scratch += self.m.bufs[f.limits[j].bufs.v[k]].n
            if f.n_limits + f.n_jump_limits:
                f.scratch += f.n_levels * component(&self.m, f, f.n_levels - 1).n
            size = max(size, f.scratch * sizeof(int64_t))
        if size > self._scratch_size:
            give(self._scratch, self._scratch_size)
            self._scratch_size = 0
            self._scratch = <int64_t*> take(&size)
            if self._scratch == NULL:
                raise MemoryError()
            self._scratch_size = size

    cdef void _share_out(self, Flat* f) noexcept nogil:
        """The memory for the pointers of one chain."""
        cdef int i, j, k
        cdef Py_ssize_t n_last = component(&self.m, f, f.n_levels - 1).n
        cdef int64_t* at_ = self._scratch
        f.from_at = at_
        at_ += n_last
        f.beyond = at_
        at_ += component(&self.m, f, 0).n
        for i in range(f.n_levels):
            f.next_[i] = at_
            at_ += component(&self.m, f, i).n
            f.limit[i] = NULL
            if f.trail:
                f.chase[i] = at_
                at_ += component(&self.m, f, i).n
            elif i < f.n_levels - 1:
                f.upto_at[i] = at_
                at_ += n_last
        for j in range(f.n_limits):
            i = f.limits[j].component
            f.limits[j].after = at_
            at_ += component(&self.m, f, i).n
            for k in range(f.limits[j].bufs.n):
                f.limits[j].beyond[k] = at_
                at_ += self.m.bufs[f.limits[j].bufs.v[k]].n
            if f.limit[i] == NULL:
                f.limit[i] = at_
                at_ += component(&self.m, f, i).n
        for j in range(f.n_jump_limits):
            i = f.jump_limits[j].component
            if f.limit[i] == NULL:
                f.limit[i] = at_
                at_ += component(&self.m, f, i).n
        for i in range(f.n_levels):
            f.down_at[i], f.down[i] = NULL, INT64_MIN
        for i in range(f.n_levels - 2, -1, -1):
            if f.trail or f.limit[i] == NULL or not f.rising[i]:
                break
            f.down_at[i] = at_
            at_ += n_last
        if QUERCUS_IS_CHECKED and at_ > self._scratch + f.scratch:
            abort()

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

    cdef Sieves _sieves(self, sieves) except *:
        cdef Sieves r
        cdef int i
        r.n = len(sieves)
        r.v = <Sieve*> self._alloc(r.n * sizeof(Sieve))
        for i, s in enumerate(sieves):
            r.v[i] = Sieve(s.column, OPS.index(f"{s.compare}_i"), s.real, s.start, s.end)
        return r

    cdef Group* _groups(self, groups) except NULL:
        cdef Group* r = <Group*> self._alloc(len(groups) * sizeof(Group))
        for i, (slots, sets) in enumerate(groups):
            r[i].slots, r[i].sets = self._ints(slots), self._ints(sets)
        return r

    cdef Way* _ways(self, ways) except NULL:
        cdef Way* r = <Way*> self._alloc(len(ways) * sizeof(Way))
        cdef int i, j
        for i, w in enumerate(ways):
            r[i].method = {"latest": BY_LATEST, "search": BY_SEARCH, "view": BY_VIEW}.get(w.method, BY_JUMPS)
            r[i].flat, r[i].sub = w.flat, w.sub
            r[i].n_jumps = len(w.jumps)
            r[i].jumps = <Jump*> self._alloc(len(w.jumps) * sizeof(Jump))
            for j, jump in enumerate(w.jumps):
                r[i].jumps[j] = self._jump(jump)
            r[i].n_ends = len(w.ends)
            r[i].ends = <End*> self._alloc(len(w.ends) * sizeof(End))
            for j, end in enumerate(w.ends):
                r[i].ends[j].flat, r[i].ends[j].key = end.flat, self._jump(end.jump)
                r[i].ends[j].n_steps = max(len(end.steps) - 1, 0)
                r[i].ends[j].steps = <Step*> self._alloc(len(end.steps) * sizeof(Step))
                for k, (slot, preds) in enumerate(end.steps):
                    r[i].ends[j].steps[k].slot, r[i].ends[j].steps[k].preds = slot, self._ints(preds)
        return r

    cdef Jump _jump(self, jump) except *:
        cdef Jump r
        cdef int i
        r.keys, r.n_ties = jump.keys, len(jump.ties)
        r.ties = <Tie*> self._alloc(r.n_ties * sizeof(Tie))
        for i, (col, slot, outer, floats) in enumerate(jump.ties):
            r.ties[i] = Tie(col, slot, outer, floats)
        return r

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

    def __dealloc__(self):
        cdef int i
        cdef size_t address
        if self.m.sets != NULL:
            for i in range(self.m.n_sets):
                free(self.m.sets[i].elems)
                free(self.m.sets[i].cands)
        give(self._scratch, self._scratch_size)
        if self.m.negs != NULL:
            forget_indexes(&self.m)
        if self.m.subs != NULL:
            for i in range(self.m.n_subs):
                free(self.m.subs[i].parts)
                free(self.m.subs[i].table)
                free(self.m.subs[i].found.v)
        free(self.m.held.v)
        if self._pool is not None:
            for address in self._pool:
                free(<void*> address)

    # running

    def outermost(self, int flat):
        """The buffer of what is bound first, or of a tree's last leaf, and its size: what can be shared out among threads."""
        cdef Flat* f = &self.m.flats[flat]
        if f.owner < 0:
            return -1, 0
        buffer = self.m.slot_buf[f.owner]
        return buffer, self.m.bufs[buffer].n

    def cancel(self):
        """Stop a run that goes on in another thread."""
        self.m.cancelled = 1

    def run(
        self, int flat, const int64_t[:, ::1] segments, int64_t max_matches, int64_t max_nanoseconds,
        Py_ssize_t first=0, Py_ssize_t last=-1, Py_ssize_t room=0,
    ):
        """Match one alternative over each segment (a key's part of every buffer).

        `segments[b, k]` is where segment k of buffer b begins, `segments[b, k + 1]` where it ends. Only events `first` to `last`
        of the outermost component are bound. Returns (status, columns, sets): a column of event rows per plain variable, and
        (starts, ends, rows) per set: match i has rows[starts[i]:ends[i]]. A negative `max_nanoseconds` is no limit. There is room for
        `room` matches from the start.
        """
        cdef Flat* f = &self.m.flats[flat]
        cdef Py_ssize_t k, n_segments = segments.shape[1] - 1
        cdef int i, status = 0
        cdef bint some
        cdef Bounds free_scope = Bounds(INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, -1)
        if segments.shape[0] != self.m.n_bufs:
            raise ValueError("one row of segments for each buffer")
        self.m.first, self.m.last = first, last if last >= 0 else INT64_MAX
        self._begin(f, max_matches, max_nanoseconds)
        try:
            with nogil:
                for i in range(f.outs.n if room > 0 else 0):
                    enlarge_to(&self.m.outs[i], room)  # if there is none, it grows as it goes
                for i in range(f.out_sets.n if room > 0 else 0):
                    enlarge_to(&self.m.elems[3 * i], room)
                    enlarge_to(&self.m.elems[3 * i + 1], room)
                if f.chain or f.trail:
                    self._share_out(f)
                for k in range(n_segments):
                    some = True
                    for i in range(f.slots.n):
                        if segments[self.m.slot_buf[f.slots.v[i]], k] == segments[self.m.slot_buf[f.slots.v[i]], k + 1]:
                            some = False
                            break
                    if some and f.owner >= 0:
                        i = self.m.slot_buf[f.owner]
                        some = segments[i, k] < self.m.last and segments[i, k + 1] > self.m.first
                    if not some:
                        continue
                    for i in range(self.m.n_bufs):
                        self.m.bufs[i].lo = segments[i, k]
                        self.m.bufs[i].hi = segments[i, k + 1]
                    forget_views(&self.m)
                    status = (
                        join_tree(&self.m, f) if f.n_joins else trail(&self.m, f) if f.trail else
                        chain(&self.m, f) if f.chain else search(&self.m, f, 0, &free_scope)
                    )
                    if status < 0:
                        break
            return self._end(f, status)
        finally:
            self._discard(f)

    cdef int _begin(self, Flat* f, int64_t max_matches, int64_t max_nanoseconds) except -1:
        """Counters to zero, room for the output."""
        cdef int i
        self.m.n_matches, self.m.max_matches = 0, max_matches
        self.m.deadline = sat_add(monotonic(), max_nanoseconds) if max_nanoseconds >= 0 else 0
        self.m.compared = self.m.bound = self.m.negation_tests = self.m.ticks = 0
        self.m.grew, self.m.held.n, self.m.released = -1, 0, False
        self.m.trigger = f.levels[0].slot if f.n_levels and not f.n_joins and not f.trail else -1
        for i in range(f.n_joins):
            f.joins[i].compared = f.joins[i].built = f.joins[i].most = f.joins[i].nanoseconds = 0
        self.m.outs = <Out*> calloc(f.outs.n + 3 * f.out_sets.n + 1, sizeof(Out))
        if self.m.outs == NULL:
            raise MemoryError()
        self.m.elems = self.m.outs + f.outs.n
        return 0

    cdef tuple _end(self, Flat* f, int status):
        """What was found: (status, columns, sets)."""
        cdef int i
        let_out()
        columns = [self._take(&self.m.outs[i]) for i in range(f.outs.n)]
        return status, columns, [self._set(f, i) for i in range(f.out_sets.n)]

    cdef tuple _set(self, Flat* f, int i):
        """What a set's variable is bound to: (starts, ends, rows)."""
        cdef Out* own = &self.m.elems[3 * i + 2]
        cdef bint shared = self._rows is not None and own.n == 0 and self.m.elems[3 * i].n > 0
        if not shared and self._rows is not None and settle(&self.m, f, i, 0):
            raise MemoryError()
        starts, ends = self._take(&self.m.elems[3 * i]), self._take(&self.m.elems[3 * i + 1])
        return starts, ends, self._rows[self.m.slot_buf[self.m.sets[f.out_sets.v[i]].slot]] if shared else self._take(own)

    cdef void _discard(self, Flat* f) noexcept:
        cdef int i
        free_joins(&self.m, f)
        for i in range(f.outs.n + 3 * f.out_sets.n):
            give(self.m.outs[i].v, self.m.outs[i].cap * sizeof(int64_t))
        free(self.m.outs)
        self.m.outs = NULL

    @property
    def counters(self):
        """Exact counts of the last run: candidates looked at, components bound, negations tested on a match."""
        return {
            "compared": self.m.compared, "bound": self.m.bound, "negation tests": self.m.negation_tests,
            "matches": self.m.n_matches,
        }

    def limit_state(self, int64_t max_bytes, Py_ssize_t round_size):
        """What internal buffers may take, and how many events of a leaf go into one round."""
        self.m.max_state, self.m.round_ = max_bytes, round_size

    def joins(self, int flat):
        """(candidates, composites, most bytes held, nanoseconds) of each node of a tree of joins in the last run."""
        cdef Flat* f = &self.m.flats[flat]
        return [
            (f.joins[i].compared, f.joins[i].built, f.joins[i].most, f.joins[i].nanoseconds) for i in range(f.n_joins)
        ]

    def tally(self, int flat):
        """What an alternative did in all runs so far: (slot, candidates, bound) of each level, how often all levels were bound, how
        often the sets were there too, and how often no late negation had a match.
        """
        cdef Flat* f = &self.m.flats[flat]
        cdef int i
        levels = [(f.levels[i].slot, f.levels[i].compared, f.levels[i].bound) for i in range(f.n_levels)]
        return levels, f.completed, f.whole, f.tested

    def candidates(self, list levels):
        """How many candidates some levels, (flat, first, end) each, have looked at in all runs so far."""
        cdef int flat, first, end, i
        cdef int64_t n = 0
        for flat, first, end in levels:
            for i in range(first, min(end, self.m.flats[flat].n_levels)):
                n += self.m.flats[flat].levels[i].compared
        return n

    def tally_set(self, int number):
        """The events that were tested one by one for a set, in all runs so far."""
        return self.m.sets[number].compared

    def tally_negation(self, int number):
        """(tests, matches, candidates, searches of each body) of a negation in all runs so far."""
        cdef Neg* g = &self.m.negs[number]
        cdef int i
        return g.tests, g.found, g.compared, [g.ways[i].searched for i in range(g.n_ways)]

    def tally_sub(self, int number):
        """(intervals asked for, those that were there, results found, bytes held now, most bytes held) of a sub-query's view."""
        cdef Sub* s = &self.m.subs[number]
        return s.asked, s.hits, s.results, s.bytes, s.most

    @property
    def view_bytes(self):
        """What views hold now."""
        return self.m.view_bytes

    @property
    def grew(self):
        """The node that had no room, after TOO_MUCH_STATE."""
        return self.m.grew

    cdef _take(self, Out* o):
        cdef int64_t* v = o.v
        o.v = NULL
        return adopt(v, o.n, o.cap * sizeof(int64_t))


include "match_stream.pxi"
include "match_feed.pxi"
include "match_inlet.pxi"

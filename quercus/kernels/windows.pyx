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
include "windows_pass.pxi"
include "windows_open.pxi"
include "windows_kept.pxi"
include "windows_asked.pxi"


cdef class Windows(Asked):
    """The open windows of one pattern window, and what closes them."""

    cdef int64_t swept
    cdef Out outs[5]        # close, first, iter, num, tuples
    cdef const int64_t[::1] steps, codes, homes, ends
    cdef const uint16_t[::1] flags
    cdef Py_ssize_t at      # the next step
    cdef int64_t position, place
    cdef int part, parts
    cdef readonly bint mixed    # the last run closed windows of several groups at once
    cdef readonly int64_t touched   # windows that were looked at in all runs, one by one or all of a group at once

    def __cinit__(self):
        self.swept = 1024

    def __dealloc__(self):
        self._drop()

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
        self.max_state = max_state

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

    # what a tuple does to windows

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
                        r = self._keep_for(g, here)
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
            self._take_out(g, before, i)
            i = next_
        if g != NULL and g.head < 0:
            self._be_idle(group)
        return 0

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
                    return self._keep_for(g, here)
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
                self._take_out(g, before, i)
            else:
                before = i
            i = next_
        if g != NULL and g.head < 0:
            self._be_idle(group)


cdef void let_out() except *:
    """Raise what a signal handler raised while the kernel ran."""


include "windows_pairs.pxi"

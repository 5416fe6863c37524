# What open windows are from push to push of a stream. Part of windows.pyx.

cdef class Kept(Open):
    """Windows that stay open when a run ends: what they need of the stream, and what they are in a snapshot."""

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
        if not self.live_nodes:
            return
        for k in range(self.n_busy):
            self._send_for_group(k)
            g = &self.g[self.busy[k]]
            most, i = 0, g.head
            while i >= 0:
                most = max(most, self.w[i].num + (g.num if self.alike and self._is_mature(g, i) else 0))
                i = self.w[i].next_ if not self.alike else -1   # the first has the most
            if g.held < most:       # its first tuple is in no chain
                continue
            g.held = most - 1
            node = g.chain
            if most <= 1:
                self._forget(node)
                g.chain = -1
                continue
            while most > 2:
                node = self.nodes[node].back
                most -= 1
            self._forget(self.nodes[node].back)
            self.nodes[node].back = -1

    cdef inline void _send_for_group(self, int64_t k) noexcept nogil:
        """Memory of groups that come after the k-th of the busy ones."""
        cdef int64_t head
        if k + 2 * AHEAD < self.n_busy:
            prefetch(&self.g[self.busy[k + 2 * AHEAD]])
            head = self.g[self.busy[k + AHEAD]].head
            prefetch(&self.w[head])
            prefetch(&self.w[head].next_)

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
            self._send_for_group(k)
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
        self.horizon, self.max_state = position, INT64_MAX
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
            if self._keep_for(&self.g[owner], tuples[k, 1]) if owner >= 0 else self._keep_tuple(&self.w[-1 - owner].chain, tuples[k, 1]):
                raise MemoryError()

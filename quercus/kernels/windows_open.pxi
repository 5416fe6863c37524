# The windows that are open, by key, and the tuples that they took in. Part of windows.pyx.

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
    int64_t held            # tuples in the chain

cdef struct Node:           # a tuple that was taken in
    int64_t tuple_          # by place in the columns
    int32_t back            # the one before it; or the next free one
    int32_t unused


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


cdef class Open(Pass):
    """Windows in groups, those that have no key in a list of their own, and room for them."""

    cdef bint alike
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
    cdef int64_t n_open, live_nodes, max_state
    cdef int64_t horizon    # the position after the tuples of this run; -1: nothing comes after them
    cdef Out pending        # windows, and groups as -1 - g, that are ready there, unless more tuples of that time come
    cdef readonly int64_t most_open

    def __cinit__(self):
        self.free_w = self.free_node = self.loose = -1
        self.max_state = INT64_MAX

    def __dealloc__(self):
        give(self.w, self.room_w)
        give(self.g, self.room_g)
        give(self.nodes, self.room_nodes)
        give(self.busy, self.room_busy)
        give(self.pending.v, self.pending.cap * sizeof(int64_t))

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

    cdef inline int64_t _held(self) noexcept nogil:
        return self.n_open * <int64_t> sizeof(Window) + self.live_nodes * <int64_t> sizeof(Node)

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
        if self._held() > self.max_state:
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
            g.held = 0
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
        g.held = 0

    cdef inline void _take_out(self, Cluster* g, int64_t before, int64_t i) noexcept nogil:
        """Release a window of a group, or of none, that stands behind another one there, or as the first behind -1."""
        cdef int32_t next_ = self.w[i].next_
        if before >= 0:
            self.w[before].next_ = next_
        elif g != NULL:
            g.head = next_
        else:
            self.loose = next_
        if g != NULL and next_ < 0:
            g.tail = <int32_t> before
        self._release(i)

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
        return -6 if self._held() > self.max_state else 0

    cdef inline int _keep_for(self, Cluster* g, int64_t tuple_) noexcept nogil:
        """The same for the windows of a group."""
        g.held += 1
        return self._keep_tuple(&g.chain, tuple_)

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

    cdef bint _is_mature(self, Cluster* g, int64_t window) noexcept nogil:
        """Whether the window's counts are less the group's: it comes before the fresh ones."""
        return g.fresh < 0 or self.w[window].first < self.w[g.fresh].first

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

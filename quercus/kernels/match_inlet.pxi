# A push of one record batch, from the caller's object to the matches: all that is done for each, in one call.

DEF MERGED = 32     # pieces of about one size become one
DEF SPARE = 4096    # events that may be out of the window before all are looked at again
PIECES, SLACK = MERGED, SPARE

cdef dict MODULES = sys.modules
cdef str CUDA = "pyarrow._cuda"     # without it, no batch lies in memory other than the processor's

cdef extern from "Python.h":
    object PyType_GenericAlloc(type kind, Py_ssize_t items)

cdef extern from "slots.h":
    Py_ssize_t slot_offset(object slot)
    void fill_slot(object at_, Py_ssize_t offset, object value)


cdef class Course:
    """How far a stream is: its clock, the events taken in, the events pushed, and the greatest time pushed."""

    cdef public int64_t clock
    cdef public int64_t place
    cdef public int64_t rows
    cdef public int64_t seen
    cdef public int64_t live    # events in buffers when all of them were last looked at

    def __init__(self):
        self.clock = self.seen = INT64_MIN


@cython.no_gc  # nothing that it holds leads back to it
@cython.freelist(64)
cdef class Piece:
    """Some events of the stream in order: their places in it, and the rows that they were pushed as. Never changed."""

    cdef readonly object events     # a table or a record batch
    cdef readonly int64_t first     # the place of the first
    cdef readonly object places     # None: one after the other, none left out
    cdef readonly object rows       # the row of the first, when they came one after the other too
    cdef readonly int64_t last_ts
    cdef readonly int level
    cdef readonly bint straight     # whether places are rows

    def __init__(self, events, int64_t first, places, rows, int64_t last_ts, int level=0):
        self.events, self.first, self.places, self.rows = events, first, places, rows
        self.last_ts, self.level = last_ts, level
        self.straight = places is None and isinstance(rows, int) and rows == first

    def __len__(self):
        return self.events.num_rows

    @property
    def last(self):
        return self.first + len(self) - 1 if self.places is None else int(self.places[len(self.places) - 1])

    def all_places(self):
        return np.arange(self.first, self.first + len(self)) if self.places is None else self.places

    def index(self, places):
        return places - self.first if self.places is None else np.searchsorted(self.places, places)

    def row_numbers(self, index):
        return index + self.rows if isinstance(self.rows, int) else self.rows[index]


cdef class Like:
    """Makes objects of a class with slots that are like one of them but for what one slot holds, also where they are frozen."""

    cdef type kind
    cdef list values
    cdef Py_ssize_t[:] offsets  # of the slots that hold these values
    cdef Py_ssize_t offset      # of the slot that differs

    def __init__(self, pattern, held):
        """`held`: what the slot holds in the pattern, and no other."""
        self.kind = type(pattern)
        if self.kind.__dictoffset__:
            raise ValueError("a class without slots")
        self.values, self.offset = [], -1
        offsets = []
        for owner in self.kind.__mro__:
            for name in owner.__dict__.get("__slots__", ()):
                if name == "__weakref__":
                    continue
                slot = owner.__dict__[name]
                at_ = slot_offset(slot)
                if at_ < 0:
                    raise ValueError("a slot of another kind")
                try:
                    value = slot.__get__(pattern)
                except AttributeError:  # nothing yet
                    continue
                if value is not held:
                    offsets.append(at_)
                    self.values.append(value)
                elif self.offset < 0:
                    self.offset = at_
                else:
                    raise ValueError("two slots hold it")
        if self.offset < 0:
            raise ValueError("no slot holds it")
        self.offsets = np.array(offsets, np.intp)

    cdef make(self, value):
        cdef Py_ssize_t i
        made = PyType_GenericAlloc(self.kind, 0)
        for i in range(len(self.values)):
            fill_slot(made, self.offsets[i], self.values[i])
        fill_slot(made, self.offset, value)
        return made

    def __call__(self, value):
        return self.make(value)


cdef class Inlet:
    """Takes record batches of one schema in, and gives their matches."""

    cdef Feed feed
    cdef Course course
    cdef object kind            # of batches
    cdef object schema
    cdef object history
    cdef list pieces            # the history's
    cdef int64_t reach
    cdef Like matches
    cdef list bound             # one of each variable, where matches are written as they are given
    cdef object limits
    cdef int64_t max_matches
    cdef int64_t max_nanoseconds
    cdef bint limits_state

    def __init__(self, Feed feed, Course course, kind, schema, history, int64_t reach, Like matches, list bound):
        self.feed, self.course, self.kind, self.schema, self.history = feed, course, kind, schema, history
        self.pieces, self.reach, self.matches, self.bound = history.pieces, reach, matches, bound

    cdef int _limit(self, limits) except -1:
        self.max_matches, self.limits_state = limits.max_matches, limits.max_state_bytes is not None
        self.max_nanoseconds = -1 if limits.max_seconds is None else int(limits.max_seconds * 1e9)
        self.limits = limits
        return 0

    def push(self, batch, engine, limits):
        """The matches that a record batch decides; None, with nothing taken, if it must be looked at more closely."""
        cdef ArrowDeviceArray exported
        cdef Course at_ = self.course
        cdef Raw raw = None
        cdef Py_ssize_t n
        cdef int64_t spanned
        if type(batch) is not self.kind:
            return None
        schema = batch.schema
        if schema is not self.schema and not schema.equals(self.schema):
            return None
        if limits is not self.limits:
            self._limit(limits)
        if self.limits_state:
            return None
        exported.array.release, exported.device_type = NULL, ON_CPU
        try:
            if CUDA in MODULES:
                batch._export_to_c_device(<size_t> &exported)
            else:
                batch._export_to_c(<size_t> &exported)
            if exported.device_type == ON_CPU:
                raw = self.feed._step(&exported.array, at_.place, at_.seen, self.reach, self.max_matches, self.max_nanoseconds)
            n = exported.array.length
        finally:
            if exported.array.release != NULL:
                exported.array.release(&exported.array)
        if raw is None:
            return None
        if raw.status:
            self.feed.matcher.undo()
            engine.refuse(raw.status, limits)
        self._keep(batch, n, raw)
        raw.inlet, raw.engine = self, engine
        if self.feed.matcher.events > 2 * at_.live + SPARE:
            spanned = self._recount()
            if spanned > 4 * at_.live + 16 * SPARE:
                engine.sweep()
        return self.matches.make(raw)

    cdef int64_t _recount(self):
        """Count the events that are in the buffers, where all were purged; how many places the history spans."""
        cdef StreamMatcher matcher = self.feed.matcher
        cdef list pieces = self.pieces
        cdef int b
        matcher.events = 0
        for b in range(matcher.m.n_bufs):
            matcher.events += matcher.segs.runs[b].hi - matcher.segs.runs[b].lo
        self.course.live = matcher.events
        return self.course.place - (<Piece> pieces[0]).first if pieces else 0

    cdef int _keep(self, batch, Py_ssize_t n, Raw raw) except -1:
        """Remember the batch, and move on."""
        cdef Course at_ = self.course
        cdef Piece p = Piece.__new__(Piece)
        cdef list pieces = self.pieces
        cdef Py_ssize_t gone = 0
        cdef int64_t least
        p.events, p.first, p.rows, p.last_ts, p.straight = batch, at_.place, at_.rows, raw.clock, at_.place == at_.rows
        pieces.append(p)
        at_.clock = at_.seen = raw.clock
        at_.place += n
        at_.rows += n
        if len(pieces) >= MERGED and (<Piece> pieces[len(pieces) - MERGED]).level == 0:
            self.history.merge()
        raw.pieces = tuple(pieces)
        if self.feed.matcher.m.count_window:
            least = at_.place - self.reach
            while gone < len(pieces) and pieces[gone].last < least:
                gone += 1
        else:
            least = sat_sub(raw.clock, self.reach)
            while gone < len(pieces) and (<Piece> pieces[gone]).last_ts < least:
                gone += 1
        if gone:
            del pieces[:gone]
        return 0


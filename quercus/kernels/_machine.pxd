"""What the matcher's parts share: the query as C structures, and small helpers over sorted arrays and growing output."""

from libc.stdint cimport INT64_MAX, INT64_MIN
from libc.stdlib cimport abort, realloc
from libc.string cimport memcpy
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from quercus.kernels._typedefs cimport QUERCUS_IS_CHECKED, int64_t, uint8_t, uint64_t
from quercus.kernels.memory cimport give, take

cdef extern from *:
    """
    #include <stdint.h>
    #define add_overflows(a, b, r) __builtin_add_overflow(a, b, r)
    #define sub_overflows(a, b, r) __builtin_sub_overflow(a, b, r)
    #define mul_overflows(a, b, r) __builtin_mul_overflow(a, b, r)
    typedef __int128 wide_total;
    static inline wide_total wide_sum(wide_total a, int64_t b) { return a + b; }
    #define c_mod(a, b) ((a) % (b))
    #define c_div(a, b) ((a) / (b))
    static inline int64_t c_quotient(int64_t a, int64_t b) { return a / b; }
    static inline uint64_t mix(uint64_t h, uint64_t v) {
        h = (h ^ v) * 0xD6E8FEB86659FD93u;
        h = (h ^ (h >> 32)) * 0xD6E8FEB86659FD93u;
        return h ^ (h >> 32);
    }
    #define lowest_bit(w) __builtin_ctzll(w)
    #define count_bits(w) __builtin_popcountll(w)
    static inline uint64_t mixed(uint64_t h, int64_t v) {
        h = (h ^ (uint64_t) v) * 0x9E3779B97F4A7C15u;  /* wraps around */
        return h ^ (h >> 29);
    }
    """
    bint add_overflows(int64_t a, int64_t b, int64_t* r) noexcept nogil
    bint sub_overflows(int64_t a, int64_t b, int64_t* r) noexcept nogil
    bint mul_overflows(int64_t a, int64_t b, int64_t* r) noexcept nogil
    ctypedef long long wide_total  # of 128 bits, of which Cython knows nothing: its checks of overflow take 64 at most
    wide_total wide_sum(wide_total a, int64_t b) noexcept nogil
    int64_t c_mod(int64_t a, int64_t b) noexcept nogil
    double c_div(double a, double b) noexcept nogil
    int64_t c_quotient(int64_t a, int64_t b) noexcept nogil
    uint64_t mix(uint64_t h, uint64_t v) noexcept nogil
    int lowest_bit(uint64_t w) noexcept nogil
    int count_bits(uint64_t w) noexcept nogil
    uint64_t mixed(uint64_t h, int64_t v) noexcept nogil

cdef enum:
    NULL_, CONST_I, CONST_F, LOAD_I, LOAD_F, TO_F, ADD_I, SUB_I, MUL_I, MOD_I, NEG_I, ABS_I, ADD_F, SUB_F, MUL_F, DIV_F, MOD_F, NEG_F
    ABS_F, ROUND_F, FLOOR_F, CEIL_F, EQ_I, NE_I, LT_I, LE_I, GT_I, GE_I, EQ_F, NE_F, LT_F, LE_F, GT_F, GE_F, AND_, OR_, NOT_, IS_NULL
    IS_NOT_NULL, MAP_I, COUNT_, GROUP_I, GROUP_F

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
    Py_ssize_t base         # of a stream: events that were before the first one here

cdef struct Col:
    const int64_t* i
    const double* f
    const uint8_t* valid

cdef struct Zones:          # of a column: the least and the greatest value of each block of events
    void* least
    void* most
    int64_t looked          # blocks that were compared since the data was loaded, and those in which nothing passed
    int64_t empty

cdef struct Table:          # what a text function makes of each label
    const int64_t* v
    Py_ssize_t n

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

cdef struct Sieve:          # a column of a candidate, compared with what is bound before
    int col
    int compare             # as integers, with the column on the left
    bint real
    int start               # the code of the other side
    int end

cdef struct Sieves:
    int n
    Sieve* v

cdef struct Level:
    int slot
    int previous            # the slot before it in an [n] set, if bound earlier, or -1
    int following           # the slot after it in an [n] set, if bound earlier, or -1
    Ints after
    Ints before
    Ints below              # slots that came later in the stream, in no other order
    Ints above              # ... earlier
    Ints distinct
    Ints preds
    Ints negs
    int n_limiting          # how many at the end of them an index can make limits of
    bint limited            # ... it has: they are left out of `negs`
    int n_reach
    Reach* reach
    Py_ssize_t hint_lo
    Py_ssize_t hint_hi
    int sub                 # a sub-query whose results are bound here, each as a whole, or -1
    bint early              # ... by a view whose greatest interval is known before: nothing else of it is still to be bound
    int64_t compared        # of all runs: candidates, and those that passed
    int64_t bound
    Sieves sieves
    int sifted              # the first predicates, which sieves stand for

cdef struct Set:
    int slot                # holds an element while a predicate looks at it
    int least
    Ints slots              # of an [n] set; empty for + and *
    Ints after
    Ints before
    Ints distinct
    Ints preds
    Ints wins
    bint dense              # its elements are n neighbours of the buffer from `first` on; else they are listed
    Py_ssize_t first
    Py_ssize_t* elems
    Py_ssize_t n
    Py_ssize_t cap
    Py_ssize_t* cands
    Py_ssize_t n_cands
    Py_ssize_t cand_cap
    Py_ssize_t hint_lo
    Py_ssize_t hint_hi
    int64_t compared        # of all runs: events that were tested one by one

cdef struct Pair:           # two sets whose elements must be in order, be different events, or agree on a column
    int kind                # 0 before, 1 distinct, 2 same (int64), 3 same (float64)
    int a
    int b
    int col_a
    int col_b

cdef struct Limit:          # a negated SEQ of leaves between a component and the next
    int component
    Ints bufs
    int64_t* after          # for each event of the component: the first later event of the first leaf
    int64_t** beyond        # for each event of a leaf: the first later one of the next leaf, at last of the next component

cdef struct JumpLimit:      # a negation between a component and the next that the component's event decides
    int component
    int neg
    bint by_index           # by latest starts, if it is worth to know them all; else it is tested

cdef struct Fetch:          # an event that a join's tests read: the way to its leaf from the join's child, 0 left, 1 right
    int slot
    Ints path

cdef struct Key:            # a column of each side: equal, or no match
    int slot[2]
    int col[2]
    bint real

cdef struct Chains:         # a child's composites by the hash of their keys; each bucket from the newest back
    int64_t* hashes         # of composite i: at i - base
    int64_t* earlier        # the one before it in its bucket, or -1; without a key, -2
    int64_t* heads
    Py_ssize_t base
    Py_ssize_t cap
    Py_ssize_t upto         # the first composite that is not linked yet
    Py_ssize_t n_buckets
    Py_ssize_t head_cap

cdef struct Join:           # a node of a tree of joins: composites by reference, sorted by end. A leaf is its buffer
    int child[2]            # -1: a leaf
    int slot
    bint ordered            # SEQ
    bint keeps              # False at the root, whose composites go on at once
    bint bare               # SEQ with nothing to test but order and windows
    int64_t within_ts       # the narrowest windows around it
    int64_t within_pos
    int n_distinct
    Ints distinct[2]
    Ints preds
    Sieves sieves[2]        # of each child
    Ints negs
    int n_keys
    Key* keys
    int n_fetch[2]
    Fetch* fetch[2]
    int64_t* links[2]       # of composite i: its children's composites, at i - base
    int64_t* start_ts
    int64_t* end_ts
    int64_t* start_pos
    int64_t* end_pos
    Py_ssize_t base
    Py_ssize_t live         # the first that a later composite may still use
    Py_ssize_t fresh        # the first of this round
    Py_ssize_t n
    Py_ssize_t cap
    Py_ssize_t stop         # of a leaf: the end of its part of the buffer
    Py_ssize_t low[2]       # the first of each child inside the windows
    Chains chains[2]
    int64_t compared
    int64_t built
    int64_t most            # bytes of the composites held at once
    int64_t nanoseconds

cdef struct Records:        # numbers, some to a record
    int64_t* v
    Py_ssize_t n
    Py_ssize_t cap

cdef struct Flat:
    Records* into           # where the results of a sub-query go, or NULL
    int sub                 # ... of which one, or -1
    int sub_end             # ... and by which of its ends
    int hold                # the first level that binds a sub-query, where a match waits for the others of its first event; or 0
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
    int due                 # of a stream: the window whose end is waited for, or -1
    bint held               # of a stream: a match is given only when no later event can change it
    Ints holds_sets         # ... nor enlarge these sets of it
    Ints all_negs           # ... nor violate any of these
    int ending              # the search from the last event that comes before this one: one of NO_ENDING, ...
    Ints earlier            # the windows whose searches come before this one
    Ints exact              # buffers: in one of them a match begins that fills the window to the last moment
    int pivot_set           # the set whose first element is bound first, or -1
    int beyond_level        # the level that must be out of the window of an element before that one, or -1
    bint plain_last         # the last level needs no look at single events
    bint sifted_last        # ... but for sieves
    bint chain              # a SEQ of plain components in one window: bound along pointers, without a search
    int chain_win
    bint trail              # ... with a set at the end, bound from the first component on
    int trail_set
    int n_limits
    Limit* limits
    int n_jump_limits
    JumpLimit* jump_limits
    bint limits_known       # those by an index are known: the levels need not test them
    bint plain_tested       # `plain_last` and `sifted_last` where levels test them
    bint sifted_tested
    bint plain_limited      # ... and where they do not
    bint sifted_limited
    Py_ssize_t scratch      # of the pointers below: how many there are in all, for the data at hand
    int64_t** next_         # for each component but the last: the first later event of the next component
    int64_t** limit         # ... and the first of the next component that a negated event lies before, or NULL
    bint* rising            # whether it never falls, from event to event
    int64_t** upto_at       # for each component but the last, by event of the last: the first event from which no way leads to it
    int64_t** down_at       # ... and the first event from which limits leave a way to it, or NULL: any
    int64_t* from_at        # by event of the last component: the first event of the first that the window reaches
    Py_ssize_t* lows        # for each component: the part of its buffer that counts
    Py_ssize_t* highs
    int64_t** chase         # of a trail, for each component: the first event of the set that can be reached
    int64_t* beyond         # of a trail, by event of the first component: the first event of the set beyond the window
    int64_t* upto           # upto_at of the last component's event at hand
    int64_t* down           # ... and down_at
    int n_joins
    Join* joins             # children first; none: a search
    bint keeps_ts           # what the composites' extents are needed in
    bint keeps_pos
    bint plain_root         # a composite of the root is a match
    bint natural            # a SEQ of plain components: matches go out in the order of the answer
    int owner               # the slot whose events are shared out among threads, or -1
    int64_t completed       # of all runs: how often all levels were bound
    int64_t whole           # ... the sets were there as well, one choice of them at a time
    int64_t tested          # ... and no late negation had a match, so that whole sets were tested

cdef enum:                  # what a stream's search from the last event finds
    NO_ENDING, BY_LAST, BY_DELAYED, BY_EXACT, BY_ANY

cdef struct Group:
    Ints slots
    Ints sets

cdef enum:                  # how a body of a negation is answered
    BY_SEARCH, BY_JUMPS, BY_LATEST, BY_VIEW

cdef enum:                  # how the results of a sub-query are come by
    ITERATIVE, AGGRESSIVE, PASSIVE, BALANCED

cdef struct Bounds:         # a scope: order exclusive, time and position inclusive
    int64_t lo_order
    int64_t hi_order
    int64_t lo_ts
    int64_t hi_ts
    int64_t lo_pos
    int64_t hi_pos
    int neg                 # whose excluded events apply, or -1

cdef struct Stretch:        # a view interval: what starts and ends in it is there
    int64_t lo              # positions, inclusive
    int64_t hi
    Records records         # (end, start, events) each, by end
    Py_ssize_t head         # where the first one that counts begins

cdef struct Stretches:      # none inside another: sorted by both ends
    Stretch* v
    Py_ssize_t n
    Py_ssize_t cap

cdef struct Part:           # a view's part for one choice of values of the match around
    int64_t* key
    Stretches known
    Stretches full          # of flags: intervals with a result

cdef struct Sub:            # a sub-query and its view
    int strategy
    bint sparse             # only what decides whether there is a result is kept: ends and starts
    bint loose              # in no order with all that is bound before
    bint flags              # whether an interval is empty is all that is asked
    int flat                # bound inside an interval from scratch
    Ints ends               # the same, once for each event that can be its last: that is bound first
    Ints firsts             # buffers of events that can be first
    Ints lasts
    Py_ssize_t* hints
    Ints slots              # what a result binds
    Ints* end_slots         # ... in each of `ends`, then in `flat`
    Ints distinct           # pairs of slots with different events
    Ints preds              # of a negated one: what a result must meet beside
    Ints negs
    Ints tie_slots          # whose values choose the part
    Ints tie_cols
    Part* parts
    Py_ssize_t n_parts
    Py_ssize_t cap_parts
    int64_t* table          # hash -> part + 1
    int64_t mask
    Records found           # of one interval, for `iterative`
    int found_end           # the end by which the last search found a result
    Bounds scope            # the last one that was asked for, its sides each by itself; where they have a value:
    bint has_low
    bint has_high
    int64_t low             # the position of the first event that can begin a result
    int64_t high            # ... of the last one that can end one
    int64_t high_at         # ... and what the window measures there
    int64_t floor           # no later interval begins before this position
    int64_t floor_of        # ... as long as this is the event that is bound first
    int64_t left            # where the greatest interval of the matches at hand begins, or INT64_MIN
    int64_t sweep           # bytes at which old parts are looked for
    int64_t asked           # of all runs: intervals asked for, those that were there, results found, most bytes
    int64_t hits
    int64_t results
    int64_t bytes
    int64_t most

cdef enum:                  # when an index that must be built is: never, when searches have cost as much, at the first test
    BUILD_NEVER, BUILD_PAID, BUILD_AT_ONCE

cdef struct Tie:            # a leaf's column equals one of the match
    int col
    int slot
    int outer
    bint floats

cdef struct Jump:           # among which events a leaf's first is looked for: all, or those of a key
    int keys
    int n_ties
    Tie* ties

cdef struct Keys:           # a buffer's events by the values of some columns
    int buf
    Ints cols
    bint built
    int64_t debt            # events that were passed over since the data was loaded, for want of this index
    int64_t mask
    int64_t* table          # hash -> group + 1
    int64_t* group_of       # by event; -1 where a column is null
    int64_t* start          # by group: where its events begin
    int64_t* members        # events by group, in order

cdef struct Step:           # a leaf of a SEQ whose conditions tie neighbours only
    int slot
    Ints preds              # between it and the next leaf
    int64_t* start_pos      # by event, where it is known: the latest start of what ends there
    int64_t* start_ts
    Py_ssize_t hint

cdef struct End:            # for each event that can be a body's last: the latest start of a match that ends there or before
    int flat                # binds that event first
    Jump key
    int n_steps             # how many leaves come before, where they are bound one step after the other, or 0
    Step* steps             # these, and the last one
    int64_t* start_pos      # INT64_MIN: no match
    int64_t* start_ts
    Py_ssize_t begin        # what is there: events [begin, upto) of the buffer
    Py_ssize_t upto
    int64_t debt            # comparisons of searches since the last part was built
    int64_t work            # comparisons that building has cost, of how many events
    int64_t done

cdef struct Way:            # how one body of a negation is answered
    int method
    int flat
    int n_jumps
    Jump* jumps             # of each level
    int n_ends
    End* ends
    int sub
    int64_t searched        # of all runs: how often there was a search

cdef struct Neg:
    int n_after
    Group* after
    int n_before
    Group* before
    int left                # 0: a neighbour is always there, 1: end - window
    int right               # 0, 1: start + window, 2: end
    int n_ways
    Way* ways
    Ints ex_slots
    Ints ex_sets
    int64_t tests           # of all runs: how often it was asked, how often there was a match, candidates looked at for it
    int64_t found
    int64_t compared

cdef struct Moment:         # a stream's clock, the position of its next event, and how many events it has seen
    int64_t ts
    int64_t pos
    int64_t row

cdef struct Out:
    int64_t* v
    Py_ssize_t n
    Py_ssize_t cap

cdef struct Machine:         # one query over its buffers: what every function of the matcher works on
    Buf* bufs
    int n_bufs
    Col* cols
    int n_cols
    Table* maps
    int n_maps
    bint by_arrival
    int* slot_buf
    Py_ssize_t* cur         # what each slot holds
    int n_slots
    Win* wins
    Pred* preds
    int* code
    const int64_t* const_i
    const double* const_f
    Set* sets
    int n_sets
    Neg* negs
    int n_negs
    Keys* keys
    int n_keys
    Sub* subs
    int n_subs
    int trigger             # the slot that is bound first, or -1
    int64_t segment         # of a stream
    int64_t view_bytes
    Records held            # matches that wait for their sub-queries
    bint released
    int build_indexes
    Flat* flats
    int n_flats
    bint count_window
    int64_t window_size
    Out* outs
    Out* elems              # of each set that goes out: starts, ends, and rows of its own (match_sets.pxi)
    int64_t start_ts        # the extent of the whole match
    int64_t end_ts
    int64_t start_pos
    int64_t end_pos
    int64_t end_row
    int64_t n_matches
    int64_t max_matches
    int64_t deadline
    int64_t compared
    int64_t bound
    int64_t negation_tests
    int64_t ticks
    Py_ssize_t first        # the part of the outermost component's buffer that this run looks at
    Py_ssize_t last
    int cancelled           # set from another thread
    Moment before           # the moment of the last release
    Moment now
    int64_t state           # bytes of internal buffers
    int64_t max_state
    int grew                # the node that had no room
    Py_ssize_t round_       # events of a leaf in one round
    Py_ssize_t sift_from    # candidates from which a range is sifted
    Zones* zones            # of each column


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


cdef inline Py_ssize_t first_above(const int64_t* v, Py_ssize_t lo, Py_ssize_t hi, int64_t x, bint or_equal, Py_ssize_t hint) noexcept nogil:
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


cdef inline Py_ssize_t inside(Buf* b, Py_ssize_t i) noexcept nogil:
    """An event of the part of the buffer that counts: a key's segment, or what is left of a run."""
    if QUERCUS_IS_CHECKED and (i < b.lo or i >= b.hi or b.hi > b.n):
        abort()
    return i


cdef inline Py_ssize_t bound_at(Machine* m, int slot) noexcept nogil:
    """The event that a slot holds."""
    return inside(&m.bufs[m.slot_buf[slot]], m.cur[slot])


cdef inline int64_t order_of(Machine* m, int slot) noexcept nogil:
    return m.bufs[m.slot_buf[slot]].order_[bound_at(m, slot)]


cdef inline int64_t pos_of(Machine* m, int slot) noexcept nogil:
    return m.bufs[m.slot_buf[slot]].pos[bound_at(m, slot)]


cdef inline int64_t row_of(Machine* m, int slot) noexcept nogil:
    return m.bufs[m.slot_buf[slot]].row[bound_at(m, slot)]


cdef inline int64_t place_of(Machine* m, int slot, bint count) noexcept nogil:
    """What a window measures: a position or a time."""
    return (m.bufs[m.slot_buf[slot]].pos if count else m.bufs[m.slot_buf[slot]].ts)[bound_at(m, slot)]


cdef inline Py_ssize_t element(Set* s, Py_ssize_t i) noexcept nogil:
    """The i-th element of a set."""
    if QUERCUS_IS_CHECKED and (i < 0 or i >= s.n):
        abort()
    return s.first + i if s.dense else s.elems[i]


cdef inline int enlarge_to(Out* o, Py_ssize_t cap) noexcept nogil:
    cdef size_t size = cap * sizeof(int64_t)
    cdef void* v = take(&size)
    if v == NULL:
        return 1
    if o.n:
        memcpy(v, o.v, o.n * sizeof(int64_t))
    give(o.v, o.cap * sizeof(int64_t))
    o.v, o.cap = <int64_t*> v, size // sizeof(int64_t)
    return 0


cdef inline int enlarge(Out* o, Py_ssize_t least) noexcept nogil:
    cdef Py_ssize_t cap = o.cap * 2 if o.cap else 1024
    while cap < least:
        cap *= 2
    return enlarge_to(o, cap)


cdef inline int push(Out* o, int64_t v) noexcept nogil:
    if o.n == o.cap and enlarge(o, o.n + 1):
        return 1
    o.v[o.n] = v
    o.n += 1
    return 0


cdef inline int grow(Set* s, Py_ssize_t n) noexcept nogil:
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

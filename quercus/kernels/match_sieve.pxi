# Sieves: comparisons of a candidate's columns with what is bound, over 64 candidates at once; blocks of them that hold nothing are
# passed over by their least and greatest values, once these are worth finding out.

cdef extern from "sieve.h":
    int sieve_width
    void choose_sieve(int most) noexcept
    uint64_t overlap_i(const int64_t* least, const int64_t* most, int n, int64_t low, int64_t high) noexcept nogil
    uint64_t overlap_f(const double* least, const double* most, int n, double low, double high) noexcept nogil
    uint64_t sieve_known(const uint8_t* valid, int n) noexcept nogil
    void ends_i(const int64_t* v, const uint8_t* valid, int n, int64_t* least, int64_t* most) noexcept nogil
    void ends_f(const double* v, const uint8_t* valid, int n, double* least, double* most) noexcept nogil

DEF BLOCK = 64
DEF MOST_SPANS = 4      # `MOST` of quercus/backends/local/sieves.py
DEF PAID_PASSES = 4     # passes over a column, as many blocks, after which its zones are worth a pass

choose_sieve(8)


def limit_width(int most):
    """How many values sieves compare at once: 8, 4 or 1, as far as the processor can; returns what it is now."""
    choose_sieve(most)
    return sieve_width


cdef struct Span:           # what a column of a candidate must lie in, ends included
    int col
    bint real
    int64_t low
    int64_t high
    double low_f
    double high_f

cdef struct Sift:           # a range of candidates on its way through sieves
    int n
    Span[MOST_SPANS] spans
    bint zoned
    Py_ssize_t at           # the first candidate that was not compared yet
    Py_ssize_t hi
    Py_ssize_t base         # of the block at hand: its first candidate, and those that passed and are still to come
    uint64_t left
    Py_ssize_t first        # blocks that may hold something, from this one on
    uint64_t live
    Py_ssize_t upto         # the first block whose zone was not looked at yet
    int64_t* compared
    int stop


cdef bint narrow_int(Span* s, int compare, int64_t x) noexcept nogil:
    """False where nothing is left."""
    if compare == LT_I or compare == GT_I:
        if x == (INT64_MIN if compare == LT_I else INT64_MAX):
            return False
        x = x - 1 if compare == LT_I else x + 1
    if compare == EQ_I or compare == GT_I or compare == GE_I:
        s.low = max(s.low, x)
    if compare == EQ_I or compare == LT_I or compare == LE_I:
        s.high = min(s.high, x)
    return s.low <= s.high


cdef bint narrow_real(Span* s, int compare, double x) noexcept nogil:
    if x != x:
        return False
    if compare == LT_I or compare == GT_I:
        if x == (-INFINITY if compare == LT_I else INFINITY):
            return False
        x = nextafter(x, -INFINITY if compare == LT_I else INFINITY)
    if compare == EQ_I or compare == GT_I or compare == GE_I:
        s.low_f = max(s.low_f, x)
    if compare == EQ_I or compare == LT_I or compare == LE_I:
        s.high_f = min(s.high_f, x)
    return s.low_f <= s.high_f


cdef bint begin_sift(Machine* m, Sieves* sieves, Buf* buf, Py_ssize_t lo, Py_ssize_t hi, int64_t* compared, Sift* s) noexcept nogil:
    """Sieves with what is bound now, over candidates lo to hi; False where none can pass."""
    cdef int k, j
    cdef int64_t x = 0
    cdef double y = 0
    cdef Sieve* v
    s.n, s.left, s.live, s.stop = 0, 0, 0, 0
    for k in range(sieves.n):
        v = &sieves.v[k]
        if not compute(m, v.start, v.end, &x, &y):
            return False
        j = 0
        while j < s.n and s.spans[j].col != v.col:
            j += 1
        if j == s.n:
            if QUERCUS_IS_CHECKED and j == MOST_SPANS:
                abort()
            s.spans[j] = Span(v.col, v.real, INT64_MIN, INT64_MAX, -INFINITY, INFINITY)
            s.n += 1
        if not (narrow_real(&s.spans[j], v.compare, y) if v.real else narrow_int(&s.spans[j], v.compare, x)):
            return False
    s.at, s.hi, s.upto, s.compared = lo, hi, lo >> 6, compared
    s.zoned = hi - lo >= 2 * BLOCK or m.build_indexes == BUILD_AT_ONCE
    k = 0
    while s.zoned and k < s.n:
        s.zoned = has_zones(m, &s.spans[k], buf)
        k += 1
    return True


cdef inline Py_ssize_t next_sifted(Machine* m, Sift* s) noexcept nogil:
    """The next candidate that passes, or the end of the range; `stop` says whether there is more to it."""
    cdef Py_ssize_t i
    while s.left == 0:
        if not next_block(m, s):
            return s.hi
    i = s.base + lowest_bit(s.left)
    s.left &= s.left - 1
    return i


cdef bint next_block(Machine* m, Sift* s) noexcept nogil:
    """Compare the candidates of the next block that may hold some."""
    cdef Py_ssize_t end
    cdef uint64_t left = <uint64_t> -1, passed
    cdef int k, n
    cdef Span* x
    cdef Col* c
    if (s.zoned and not to_live(m, s)) or s.at >= s.hi:
        return False
    end = min((s.at | (BLOCK - 1)) + 1, s.hi)
    n = <int> (end - s.at)
    for k in range(s.n):
        x = &s.spans[k]
        c = &m.cols[x.col]
        if x.real:
            passed = overlap_f(c.f + s.at, c.f + s.at, n, x.low_f, x.high_f)
        else:
            passed = overlap_i(c.i + s.at, c.i + s.at, n, x.low, x.high)
        if passed and c.valid != NULL:
            passed &= sieve_known(c.valid + s.at, n)
        m.zones[x.col].looked += 1
        m.zones[x.col].empty += passed == 0
        left &= passed
        if left == 0:
            break
    s.base, s.left, s.at = s.at, left, end
    m.compared += n
    s.compared[0] += n
    s.stop = tick(m)
    return s.stop >= 0


# zones


cdef bint to_live(Machine* m, Sift* s) noexcept nogil:
    """Go on to the next block whose zones the spans meet."""
    cdef Py_ssize_t end = ((s.hi - 1) >> 6) + 1, q
    cdef int k, n
    cdef Span* x
    cdef Zones* z
    while s.live == 0:
        if s.upto >= end:
            return False
        n = <int> min(end - s.upto, BLOCK)
        s.live = <uint64_t> -1
        for k in range(s.n):
            x = &s.spans[k]
            z = &m.zones[x.col]
            if x.real:
                s.live &= overlap_f(<double*> z.least + s.upto, <double*> z.most + s.upto, n, x.low_f, x.high_f)
            else:
                s.live &= overlap_i(<int64_t*> z.least + s.upto, <int64_t*> z.most + s.upto, n, x.low, x.high)
        s.first = s.upto
        s.upto += n
        s.stop = tick(m)
        if s.stop < 0:
            return False
    q = s.first + lowest_bit(s.live)
    s.live &= s.live - 1
    s.at = max(s.at, q << 6)
    return True


cdef bint has_zones(Machine* m, Span* x, Buf* buf) noexcept nogil:
    """Whether the zones of a column are there, or worth a pass over it: many blocks were compared, and most of them for nothing."""
    cdef Zones* z = &m.zones[x.col]
    cdef Col* c = &m.cols[x.col]
    cdef Py_ssize_t n = (buf.n + BLOCK - 1) >> 6, q
    cdef int size
    if z.most != NULL:
        return True
    if m.build_indexes == BUILD_NEVER:
        return False
    if m.build_indexes == BUILD_PAID and (z.looked < PAID_PASSES * n or 2 * z.empty < z.looked):
        return False
    z.least, z.most = malloc((n + 1) * sizeof(int64_t)), malloc((n + 1) * sizeof(int64_t))
    if z.least == NULL or z.most == NULL:  # then without
        drop_zones(z)
        return False
    for q in range(n):
        size = <int> min(buf.n - (q << 6), BLOCK)
        if x.real:
            ends_f(c.f + (q << 6), c.valid + (q << 6) if c.valid != NULL else NULL, size, <double*> z.least + q, <double*> z.most + q)
        else:
            ends_i(c.i + (q << 6), c.valid + (q << 6) if c.valid != NULL else NULL, size, <int64_t*> z.least + q, <int64_t*> z.most + q)
    return True


cdef void drop_zones(Zones* z) noexcept nogil:
    free(z.least)
    free(z.most)
    z.least = z.most = NULL
    z.looked = z.empty = 0


# matches


cdef int emit_sifted(Machine* m, Flat* f, Level* level, Buf* buf, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    """The last component's events that pass its sieves: nothing else is to be tested."""
    cdef Sift s
    cdef Py_ssize_t n, j
    cdef uint64_t left
    cdef int i
    cdef Out* o
    if not begin_sift(m, &level.sieves, buf, lo, hi, &level.compared, &s):
        return 0
    inside(buf, lo)
    inside(buf, hi - 1)
    while next_block(m, &s):
        n = count_bits(s.left)
        if n == 0:
            continue
        m.bound += n
        level.bound += n
        if n > m.max_matches - m.n_matches:
            return -2
        for i in range(f.outs.n):
            o = &m.outs[i]
            if o.n + n + WIDE > o.cap and enlarge(o, o.n + n + WIDE):
                return -5
            if f.outs.v[i] == level.slot:
                left, j = s.left, o.n
                while left:
                    o.v[j] = buf.row[s.base + lowest_bit(left)]
                    left &= left - 1
                    j += 1
            else:
                repeat(o.v + o.n, row_of(m, f.outs.v[i]), n)
            o.n += n
        m.n_matches += n
        s.left = 0
    return s.stop

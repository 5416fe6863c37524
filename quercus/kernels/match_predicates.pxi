# Predicates: small programs over nullable int64 and float64 values; only true passes.


cdef bint compares(Machine* m, Pred* p) noexcept nogil:
    """Two columns compared: no stack needed."""
    cdef Col* c = &m.cols[p.col_a]
    cdef Col* d = &m.cols[p.col_b]
    cdef Py_ssize_t i = bound_at(m, p.slot_a), j = bound_at(m, p.slot_b)
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


cdef bint evaluate(Machine* m, Pred* p) noexcept nogil:
    """Run a program; true only when its value is true."""
    cdef int64_t i = 0
    cdef double f = 0
    if p.compare >= 0:
        return compares(m, p)
    return compute(m, p.start, p.end, &i, &f) and i != 0


cdef bint compute(Machine* m, int start, int end, int64_t* i, double* f) noexcept nogil:
    """The value of a program, in `i` or `f` as its last operation says; False for null."""
    cdef int64_t vi[STACK]
    cdef double vf[STACK]
    cdef uint8_t known[STACK]
    cdef int top = -1, pc, op, a, b
    cdef Py_ssize_t at_
    cdef Col* c
    for pc in range(start, end, 3):
        op, a, b = m.code[pc], m.code[pc + 1], m.code[pc + 2]
        if op <= LOAD_F or op == COUNT_ or op >= GROUP_I:
            top += 1
            if QUERCUS_IS_CHECKED and top >= STACK:
                abort()
            known[top] = 1
            if op == LOAD_I:
                c = &m.cols[b]
                at_ = bound_at(m, a)
                vi[top] = c.i[at_]
                if c.valid != NULL:
                    known[top] = c.valid[at_]
            elif op == LOAD_F:
                c = &m.cols[b]
                at_ = bound_at(m, a)
                vf[top] = c.f[at_]
                if c.valid != NULL:
                    known[top] = c.valid[at_]
            elif op == CONST_I:
                vi[top] = m.const_i[a]
            elif op == CONST_F:
                vf[top] = m.const_f[a]
            elif op == COUNT_:
                vi[top] = m.sets[a].n
            elif op == GROUP_I or op == GROUP_F:
                known[top] = group(m, a, b >> 3, b & 7, &vi[top], &vf[top])
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
        elif op == MAP_I:
            if known[top]:
                known[top] = 0 <= vi[top] < m.maps[a].n
                if known[top]:
                    vi[top] = m.maps[a].v[vi[top]]
        else:
            top -= 1
            if QUERCUS_IS_CHECKED and top < 0:
                abort()
            binary(m, op, &vi[top], &vf[top], &known[top], vi[top + 1], vf[top + 1], known[top + 1])
    i[0], f[0] = vi[0], vf[0]
    return known[0]


cdef inline void binary(
    Machine* m, int op, int64_t* vi, double* vf, uint8_t* known, int64_t wi, double wf, uint8_t other
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


cdef uint8_t group(Machine* m, int set_, int col, int function, int64_t* vi, double* vf) noexcept nogil:
    """first, last, sum, avg, min or max of a column over a set, nulls aside; 0 when there is no value."""
    cdef Set* s = &m.sets[set_]
    cdef Buf* buf = &m.bufs[m.slot_buf[s.slot]]
    cdef Col* c = &m.cols[col]
    cdef Py_ssize_t i, e, n = 0
    cdef bint ints = c.i != NULL
    cdef wide_total total_i = 0  # only the total must fit, not the way there
    cdef int64_t x
    cdef double total_f = 0, y
    if s.n == 0:
        return 0
    if function == FIRST_ or function == LAST_:
        e = inside(buf, element(s, 0 if function == FIRST_ else s.n - 1))
        if c.valid != NULL and not c.valid[e]:
            return 0
        if ints:
            vi[0] = c.i[e]
        else:
            vf[0] = c.f[e]
        return 1
    for i in range(s.n):
        e = inside(buf, element(s, i))
        if c.valid != NULL and not c.valid[e]:
            continue
        if ints:
            x = c.i[e]
            if n == 0:
                total_i = x
            elif function == MIN_:
                if x < total_i:
                    total_i = x
            elif function == MAX_:
                if x > total_i:
                    total_i = x
            else:
                total_i = wide_sum(total_i, x)
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
    if n == 0:
        return 0
    if function == AVG_:
        vf[0] = c_div(<double> total_i if ints else total_f, <double> n)
    elif ints:
        if total_i < INT64_MIN or total_i > INT64_MAX:
            return 0
        vi[0] = <int64_t> total_i
    else:
        vf[0] = total_f
    return 1

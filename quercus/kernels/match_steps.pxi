# Latest starts of a SEQ whose conditions tie neighbours only: the latest start of what ends with an event is the latest of those that end with
# an event of the leaf before it that fits. So each pair of neighbours is looked at once, and no combination of more.


cdef int make_steps(Machine* m, End* end) noexcept nogil:
    """Room for what is found, of each leaf between the first and the last."""
    cdef int j
    cdef Py_ssize_t n, i
    for j in range(1, end.n_steps):
        n = m.bufs[m.slot_buf[end.steps[j].slot]].n
        end.steps[j].start_pos = <int64_t*> malloc((n + 1) * sizeof(int64_t))
        end.steps[j].start_ts = <int64_t*> malloc((n + 1) * sizeof(int64_t))
        if end.steps[j].start_pos == NULL or end.steps[j].start_ts == NULL:
            return -5
        for i in range(n):
            end.steps[j].start_pos[i] = INT64_MAX
    return 0


cdef void drop_steps(End* end) noexcept nogil:
    cdef int j
    for j in range(end.n_steps):
        free(end.steps[j].start_pos)
        free(end.steps[j].start_ts)
        end.steps[j].start_pos = end.steps[j].start_ts = NULL


cdef int step_back(Machine* m, End* end, int j, Py_ssize_t e, int64_t* pos, int64_t* ts) noexcept nogil:
    """The latest start, if it comes after `pos`, of what ends with event e of leaf j, none of whose events is a window before e."""
    cdef Buf* own = &m.bufs[m.slot_buf[end.steps[j].slot]]
    cdef Buf* buf = &m.bufs[m.slot_buf[end.steps[j - 1].slot]]
    cdef Step* before = &end.steps[j - 1]
    cdef const int64_t* clock = buf.pos if m.count_window else buf.ts
    cdef int64_t least = sat_sub((own.pos if m.count_window else own.ts)[inside(own, e)], m.window_size), start, at_
    cdef Py_ssize_t i
    cdef int k, r = tick(m)
    if r < 0:
        return r
    m.cur[end.steps[j].slot] = e
    i = first_above(buf.order_, buf.lo, buf.hi, own.order_[e], True, before.hint)
    before.hint = i
    while i > buf.lo:
        i -= 1
        if buf.pos[i] <= pos[0] or clock[i] < least:
            break
        m.cur[before.slot] = inside(buf, i)
        m.compared += 1
        for k in range(before.preds.n):
            if not holds(m, before.preds.v[k]):
                break
        else:
            if j == 1:
                pos[0], ts[0] = buf.pos[i], buf.ts[i]
                break
            if before.start_pos[i] == INT64_MAX:
                start = at_ = INT64_MIN
                r = step_back(m, end, j - 1, i, &start, &at_)
                if r < 0:
                    return r
                before.start_pos[i], before.start_ts[i] = start, at_
            if before.start_pos[i] > pos[0]:
                pos[0], ts[0] = before.start_pos[i], before.start_ts[i]
    return 0

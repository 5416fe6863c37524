# Passes over the tuples of a stream, of several windows together. Part of windows.pyx.

cdef class Pass:
    """Something that looks at the tuples of a stream, a range of them at a time."""

    cdef readonly int status
    cdef int cancelled

    def cancel(self):
        """Stop a pass that goes on in another thread."""
        self.cancelled = 1

    cdef int _advance(self, int64_t until) noexcept nogil:
        """Look at the tuples before this one that were not looked at yet."""
        return 0

    cdef int64_t _holds_bytes(self) noexcept nogil:
        return 0


def together(list passes, int64_t n, int64_t max_state=INT64_MAX):
    """One pass over `n` tuples for all: each looks at a range of them before any goes on to the next, while what it reads is
    in the cache. All stop where one cannot go on, or where they hold more than `max_state` bytes in all.
    """
    cdef int64_t until = 0, held
    cdef Py_ssize_t i, k = len(passes)
    cdef int status = 0
    cdef Pass p
    pointers_ = np.empty(max(k, 1), np.intp)
    cdef Py_ssize_t[::1] pointers = pointers_
    for i in range(k):
        p = passes[i]
        pointers[i] = <Py_ssize_t> <void*> p
    with nogil:
        while until < n and not status:
            until = min(until + RANGE, n) if k > 1 else n
            held = 0
            for i in range(k):
                status = (<Pass> <void*> pointers[i])._advance(until)
                (<Pass> <void*> pointers[i]).status = status
                held += (<Pass> <void*> pointers[i])._holds_bytes()
                if status:
                    break
            if k > 1 and held > max_state and not status:
                status = -6
                (<Pass> <void*> pointers[0]).status = status
    let_out()
    return status

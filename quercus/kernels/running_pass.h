/* One pass of running.h over one kind of value (RUN_VALUE, its totals RUN_TOTAL, functions ending in RUN_NAME). */

typedef struct {
    const run_automaton *a;
    const run_events *e;
    RUN_VALUE *column, *entered, *rows, *fresh, *enters, *spare; /* states * states */
    RUN_VALUE weight[64];                                        /* of a gap: of the elements in this tie group */
    int flag[64];
    int bad;
    RUN_VALUE *row;
    int64_t low, middle, room;
    int64_t from, group;                                         /* where the window and the last tie group begin */
    int open;                                                    /* whether events of that group may still come */
    int exact;                                                   /* rows are of matches that begin with their event */
    uint64_t steps;
} RUN(state);

static inline void RUN(add_times)(RUN(state) *w, RUN_VALUE *to, RUN_VALUE a, RUN_VALUE b) {
    RUN_VALUE x;
    w->bad |= RUN(mul)(&x, a, b);
    w->bad |= RUN(add)(to, x);
}

static void RUN(identity)(RUN_VALUE *to, int m) {
    for (int i = 0; i < m * m; i++) to[i] = i % (m + 1) ? RUN(zero)() : RUN(one)();
}

static void RUN(nothing)(RUN_VALUE *to, int m) {
    for (int i = 0; i < m * m; i++) to[i] = RUN(zero)();
}

static void RUN(note_stays)(RUN(state) *w, int symbol, int64_t i) {
    const run_automaton *a = w->a;
    for (int s = a->stay_at[symbol]; s < a->stay_at[symbol + 1]; s++) {
        const int32_t *stay = a->stays + 3 * s;
        RUN_CHECK(stay[0] < a->gaps);
        w->flag[stay[0]] |= stay[1];
        if (stay[2] == w->e->role) w->bad |= RUN(mul)(&w->weight[stay[0]], w->weight[stay[0]], RUN(value)(w->e, i));
    }
}

static void RUN(forget_stays)(RUN(state) *w) {
    for (int g = 0; g < w->a->gaps; g++) { w->flag[g] = 0; w->weight[g] = RUN(one)(); }
}

/* Forward: columns. */

static void RUN(enter)(RUN(state) *w, int symbol, int64_t i) {
    const run_automaton *a = w->a;
    int m = a->states;
    for (int s = a->edge_at[symbol]; s < a->edge_at[symbol + 1]; s++) {
        const int32_t *edge = a->edges + 4 * s;
        if (edge[1] < 0) continue;
        const RUN_VALUE *from = w->column + edge[0] * m, *inner = w->entered + edge[0] * m;
        RUN_VALUE *to = w->entered + edge[1] * m;
        RUN_VALUE times = edge[2] == w->e->role ? RUN(value)(w->e, i) : RUN(one)();
        for (int r = 0; r <= a->top[edge[0]]; r++) {
            RUN(add_times)(w, to + r, from[r], times);
            if (edge[3]) RUN(add_times)(w, to + r, inner[r], times);
        }
    }
    RUN(note_stays)(w, symbol, i);
}

static void RUN(stay_columns)(RUN(state) *w) {
    const run_automaton *a = w->a;
    int m = a->states;
    for (int g = 0; g < a->gaps; g++) {
        if (!w->flag[g]) continue;
        const int32_t *moves = a->moves + (g * 8 + w->flag[g]) * 4;
        RUN_VALUE *own = w->column + a->first[g] * m;
        int size = a->size[g], rows = a->top[a->first[g]] + 1;
        for (int k = 0; k < size * m; k++) w->spare[k] = RUN(zero)();
        for (int k = 0; k < size; k++) {
            if (moves[k] < 0) continue;
            for (int r = 0; r < rows; r++) {
                if (w->flag[g] & 1) RUN(add_times)(w, w->spare + moves[k] * m + r, own[k * m + r], w->weight[g]);
                else w->bad |= RUN(add)(w->spare + moves[k] * m + r, own[k * m + r]);
            }
        }
        for (int k = 0; k < size * m; k++) own[k] = w->spare[k];
    }
    RUN(forget_stays)(w);
}

static void RUN(close_group)(RUN(state) *w) {
    int m = w->a->states;
    RUN(stay_columns)(w);
    for (int k = 0; k < m * m; k++) {
        w->bad |= RUN(add)(w->column + k, w->entered[k]);
        w->entered[k] = RUN(zero)();
    }
}

static inline void RUN(step)(RUN(state) *w, int symbol, int64_t i) {
    const run_automaton *a = w->a;
    int m = a->states;
    if (a->kind[symbol] == RUN_STAYS) {
        RUN(note_stays)(w, symbol, i);
        RUN(stay_columns)(w);
        return;
    }
    for (int s = a->edge_at[symbol]; s < a->edge_at[symbol + 1]; s++) {
        const int32_t *edge = a->edges + 4 * s;
        if (edge[1] < 0) continue;
        const RUN_VALUE *from = w->column + edge[0] * m;
        RUN_VALUE *to = w->column + edge[1] * m;
        if (edge[2] == w->e->role) {
            RUN_VALUE times = RUN(value)(w->e, i);
            for (int r = 0; r <= a->top[edge[0]]; r++) RUN(add_times)(w, to + r, from[r], times);
        } else
            for (int r = 0; r <= a->top[edge[0]]; r++) w->bad |= RUN(add)(to + r, from[r]);
    }
}

/* Backward: rows, from `middle` to `low`. */

static RUN_VALUE RUN(stayed)(RUN(state) *w, int state, int c) {
    const run_automaton *a = w->a;
    int m = a->states, g = a->gap_of[state];
    if (g < 0 || !w->flag[g]) return w->rows[state * m + c];
    int to = a->moves[(g * 8 + w->flag[g]) * 4 + state - a->first[g]];
    if (to < 0) return RUN(zero)();
    RUN_VALUE v = w->rows[(a->first[g] + to) * m + c];
    if (w->flag[g] & 1) w->bad |= RUN(mul)(&v, v, w->weight[g]);
    return v;
}

static void RUN(stay_rows)(RUN(state) *w, int add) {
    int m = w->a->states;
    for (int s = 0; s < m; s++)
        for (int c = 0; c < m; c++) {
            w->spare[s * m + c] = RUN(stayed)(w, s, c);
            if (add) w->bad |= RUN(add)(w->spare + s * m + c, w->enters[s * m + c]);
        }
    memcpy(w->rows, w->spare, sizeof(RUN_VALUE) * m * m);
    RUN(forget_stays)(w);
}

/* The row of event j alone: of the matches that it begins. */

static void RUN(begin_row)(RUN(state) *w, int64_t j, const RUN_VALUE *after) {
    const run_automaton *a = w->a;
    int m = a->states, symbol = w->e->symbol[j];
    RUN_VALUE *to = w->row + (j - w->low) * m;
    for (int c = 0; c < m; c++) to[c] = RUN(zero)();
    for (int s = a->edge_at[symbol]; s < a->edge_at[symbol + 1]; s++) {
        const int32_t *edge = a->edges + 4 * s;
        if (edge[0] != 0 || edge[1] < 0) continue;
        RUN_VALUE times = edge[2] == w->e->role ? RUN(value)(w->e, j) : RUN(one)();
        for (int c = a->base[edge[1]]; c < m; c++) RUN(add_times)(w, to + c, after[edge[1] * m + c], times);
    }
}

static int RUN(build_rows)(RUN(state) *w, int64_t low, int64_t middle) {
    const run_automaton *a = w->a;
    const run_events *e = w->e;
    int m = a->states;
    w->low = low;
    w->middle = middle;
    w->steps += middle > low ? middle - low : 0;
    if (middle > low && middle - low > w->room) {
        int64_t room = middle - low + (middle - low) / 2 + 64;
        RUN_VALUE *row = realloc(w->row, sizeof(RUN_VALUE) * m * room);
        if (row == NULL) return RUN_NO_MEMORY;
        w->row = row;
        w->room = room;
    }
    RUN(identity)(w->rows, m);
    RUN(forget_stays)(w); /* of a tie group that is open */
    for (int64_t j = middle - 1; j >= low;) {
        int64_t begin = j;
        while (begin > low && !(e->mark[begin] & RUN_GROUP)) begin--;
        int symbol = e->symbol[j];
        if (begin == j && a->kind[symbol] == RUN_EDGES) {
            if (w->exact) RUN(begin_row)(w, j, w->rows);
            for (int s = a->edge_at[symbol + 1] - 1; s >= a->edge_at[symbol]; s--) {
                const int32_t *edge = a->edges + 4 * s;
                if (edge[1] < 0) break;
                RUN_VALUE *from = w->rows + edge[0] * m;
                const RUN_VALUE *to = w->rows + edge[1] * m;
                if (edge[2] == e->role) {
                    RUN_VALUE times = RUN(value)(e, j);
                    for (int c = a->base[edge[1]]; c < m; c++) RUN(add_times)(w, from + c, to[c], times);
                } else
                    for (int c = a->base[edge[1]]; c < m; c++) w->bad |= RUN(add)(from + c, to[c]);
            }
            if (!w->exact) memcpy(w->row + (j - low) * m, w->rows, sizeof(RUN_VALUE) * m);
            j--;
            continue;
        }
        if (begin == j && a->kind[symbol] == RUN_STAYS) {
            if (w->exact) RUN(begin_row)(w, j, w->rows);
            RUN(note_stays)(w, symbol, j);
            RUN(stay_rows)(w, 0);
            if (!w->exact) memcpy(w->row + (j - low) * m, w->rows, sizeof(RUN_VALUE) * m);
            j--;
            continue;
        }
        memcpy(w->fresh, w->rows, sizeof(RUN_VALUE) * m * m);
        RUN(nothing)(w->enters, m);
        RUN(forget_stays)(w);
        for (; j >= begin; j--) {
            symbol = e->symbol[j];
            if (w->exact) RUN(begin_row)(w, j, w->fresh);
            for (int s = a->edge_at[symbol + 1] - 1; s >= a->edge_at[symbol]; s--) {
                const int32_t *edge = a->edges + 4 * s;
                if (edge[1] < 0) break;
                RUN_VALUE times = edge[2] == e->role ? RUN(value)(e, j) : RUN(one)();
                for (int c = a->base[edge[1]]; c < m; c++) {
                    RUN_VALUE v;
                    w->bad |= RUN(mul)(&v, w->fresh[edge[1] * m + c], times);
                    w->bad |= RUN(add)(w->enters + edge[0] * m + c, v);
                    if (edge[3]) w->bad |= RUN(add)(w->fresh + edge[0] * m + c, v);
                }
            }
            RUN(note_stays)(w, symbol, j);
            for (int c = 0; c < m && !w->exact; c++) {
                RUN_VALUE *to = w->row + (j - low) * m + c;
                *to = RUN(stayed)(w, 0, c);
                w->bad |= RUN(add)(to, w->enters[c]);
            }
        }
        RUN(stay_rows)(w, 1);
    }
    return RUN_OK;
}

/* The events from `begin` on; `open`: others of the last one's time may follow later. */

static int RUN(pass)(RUN(state) *w, int64_t begin, int open, RUN_TOTAL *totals, int64_t *found, int64_t *each) {
    const run_automaton *a = w->a;
    const run_events *e = w->e;
    int m = a->states;
    int64_t low = w->from, group = w->group;
    w->steps += e->count - begin;
    for (int64_t i = begin; i < e->count; i++) {
        int symbol = e->symbol[i], alone;
        int ends = a->edge_at[symbol] < a->edge_at[symbol + 1] && a->edges[4 * a->edge_at[symbol] + 1] < 0;
        RUN_CHECK(symbol < a->symbols);
        if ((i & RUN_LOOK) == RUN_LOOK && e->look != NULL && e->look(e->context)) return RUN_STOPPED;
        if (e->mark[i] & RUN_GROUP && w->open) {
            RUN(close_group)(w);
            w->open = 0;
        }
        if (e->mark[i] & RUN_SEGMENT) {
            low = w->low = w->middle = i;
            RUN(identity)(w->column, m);
        }
        if (e->mark[i] & RUN_GROUP) group = i;
        int last = i + 1 == e->count ? !open : e->mark[i + 1] & RUN_GROUP;
        alone = last && group == i && a->kind[symbol] != RUN_MIXED;
        if (e->reach != NULL) low = e->reach[i] > low ? e->reach[i] : low;
        else
            while ((uint64_t)e->at[i] - (uint64_t)e->at[low] > e->window) low++;
        RUN_CHECK(low <= i);
        if (low > w->middle && w->middle != group) {
            int status = RUN(build_rows)(w, low, group);
            if (status != RUN_OK) return status;
            RUN(identity)(w->column, m);
            RUN(nothing)(w->entered, m);
            RUN(forget_stays)(w);
            for (int64_t j = group; j < i; j++) RUN(enter)(w, e->symbol[j], j);
        }
        if (ends) {
            const RUN_VALUE *row = low < w->middle ? w->row + (low - w->low) * m : NULL;
            RUN_VALUE sum = RUN(zero)();
            for (int s = a->edge_at[symbol]; s < a->edge_at[symbol + 1]; s++) {
                const int32_t *edge = a->edges + 4 * s;
                if (edge[1] >= 0) break;
                const RUN_VALUE *from = w->column + edge[0] * m, *inner = w->entered + edge[0] * m;
                RUN_VALUE part = RUN(zero)();
                if (row == NULL) {
                    part = from[0];
                    if (edge[3]) w->bad |= RUN(add)(&part, inner[0]);
                } else
                    for (int r = 0; r <= a->top[edge[0]]; r++) {
                        RUN(add_times)(w, &part, row[r], from[r]);
                        if (edge[3]) RUN(add_times)(w, &part, row[r], inner[r]);
                    }
                if (edge[2] == e->role) RUN(add_times)(w, &sum, part, RUN(value)(e, i));
                else w->bad |= RUN(add)(&sum, part);
            }
            if (RUN(some)(sum)) {
                int64_t to = e->group == NULL ? 0 : e->group[i - e->skipped];
                w->bad |= RUN(total)(totals + to, sum);
                if (found[to] < 0 || (e->row != NULL && e->row[i - e->skipped] < e->row[found[to]]))
                    found[to] = i - e->skipped;
            }
#ifdef RUN_EACH
            if (each != NULL) each[i] = sum;
#endif
        }
        if (alone) RUN(step)(w, symbol, i);
        else {
            RUN(enter)(w, symbol, i);
            if (last) RUN(close_group)(w);
            else w->open = 1;
        }
        if (w->bad) return RUN_TOO_LARGE;
        if (last) w->open = 0;
    }
    (void)each;
    w->from = low;
    w->group = group;
    return RUN_OK;
}

/* Matches that wait for the window after their start. */

static int RUN(turn)(RUN(state) *w, int64_t low, int64_t end) { /* the older part again, of what has come until `end` */
    int64_t group = w->open ? w->group : end;
    RUN_CHECK(low < group);
    int status = RUN(build_rows)(w, low, group);
    RUN(identity)(w->column, w->a->states);
    RUN(nothing)(w->entered, w->a->states);
    RUN(forget_stays)(w);
    for (int64_t k = group; k < end; k++) RUN(enter)(w, w->e->symbol[k], k);
    return status;
}

static void RUN(add_total)(RUN(state) *w, int64_t j, RUN_VALUE sum, RUN_TOTAL *totals, int64_t *found) {
    if (!RUN(some)(sum)) return;
    int64_t to = w->e->slot == NULL ? 0 : w->e->slot[w->e->tag[j]];
    w->bad |= RUN(total)(totals + to, sum);
    found[to] = 0;
}

static RUN_VALUE RUN(whole)(RUN(state) *w, int64_t j) { /* of the matches that event j begins */
    const run_automaton *a = w->a;
    int m = a->states;
    const RUN_VALUE *row = w->row + (j - w->low) * m;
    RUN_VALUE sum = RUN(zero)();
    RUN_CHECK(w->low <= j && j < w->middle);
    for (int c = 0; c < m; c++)
        for (int r = 0; a->accepts[c] && r <= a->top[c]; r++) RUN(add_times)(w, &sum, row[r], w->column[c * m + r]);
    return sum;
}

/* Those that begin before `until` less the window are over. */

static int RUN(settle)(RUN(state) *w, int64_t end, int64_t until, RUN_TOTAL *totals, int64_t *found) {
    const run_events *e = w->e;
    for (; w->from < end; w->from++) {
        if (until != INT64_MAX && (uint64_t)until - (uint64_t)e->at[w->from] <= e->window) break;
        if (w->from >= w->middle) {
            int status = RUN(turn)(w, w->from, end);
            if (status != RUN_OK) return status;
        }
        RUN(add_total)(w, w->from, RUN(whole)(w, w->from), totals, found);
        if (w->bad) return RUN_TOO_LARGE;
    }
    return RUN_OK;
}

/* Whether event j begins windows that end with the tie group of event i. What ends there is whole at once: nothing can come
   after it. What ended before waits for the end of the group. */

static int RUN(exact)(RUN(state) *w, int64_t j, int64_t i) {
    return j < w->group && (uint64_t)w->e->at[i] - (uint64_t)w->e->at[j] == w->e->window;
}

static void RUN(end_exactly)(RUN(state) *w, int64_t i, RUN_TOTAL *totals, int64_t *found) {
    const run_automaton *a = w->a;
    const run_events *e = w->e;
    int m = a->states, symbol = e->symbol[i];
    for (int s = a->edge_at[symbol]; s < a->edge_at[symbol + 1]; s++) {
        const int32_t *edge = a->edges + 4 * s;
        if (edge[1] < 0 || !a->accepts[edge[1]]) continue;
        const RUN_VALUE *from = w->column + edge[0] * m, *inner = w->entered + edge[0] * m;
        for (int64_t j = w->from; RUN(exact)(w, j, i); j++) {
            const RUN_VALUE *row = w->row + (j - w->low) * m;
            RUN_VALUE part = RUN(zero)();
            RUN_CHECK(w->low <= j && j < w->middle);
            for (int r = 0; r <= a->top[edge[0]]; r++) {
                RUN(add_times)(w, &part, row[r], from[r]);
                if (edge[3]) RUN(add_times)(w, &part, row[r], inner[r]);
            }
            if (edge[2] == e->role) w->bad |= RUN(mul)(&part, part, RUN(value)(e, i));
            RUN(add_total)(w, j, part, totals, found);
        }
    }
}

static void RUN(close_delayed)(RUN(state) *w, int exact, RUN_TOTAL *totals, int64_t *found) {
    int m = w->a->states;
    RUN(stay_columns)(w);
    for (; exact && RUN(exact)(w, w->from, w->group); w->from++)
        RUN(add_total)(w, w->from, RUN(whole)(w, w->from), totals, found);
    for (int k = 0; k < m * m; k++) {
        w->bad |= RUN(add)(w->column + k, w->entered[k]);
        w->entered[k] = RUN(zero)();
    }
    w->open = 0;
}

static int RUN(delayed)(RUN(state) *w, int64_t begin, int ties, int64_t until, RUN_TOTAL *totals, int64_t *found) {
    const run_automaton *a = w->a;
    const run_events *e = w->e;
    int status;
    w->steps += e->count - begin;
    for (int64_t i = begin; i < e->count; i++) {
        int symbol = e->symbol[i];
        RUN_CHECK(symbol < a->symbols);
        if ((i & RUN_LOOK) == RUN_LOOK && e->look != NULL && e->look(e->context)) return RUN_STOPPED;
        if (e->mark[i] & RUN_GROUP) {
            if (w->open) RUN(close_delayed)(w, ties, totals, found);
            w->group = i;
        }
        if (e->mark[i] & RUN_SEGMENT) {
            w->from = w->low = w->middle = i;
            RUN(identity)(w->column, a->states);
        }
        if (e->mark[i] & RUN_GROUP) {
            status = RUN(settle)(w, i, e->at[i], totals, found);
            if (status != RUN_OK) return status;
        }
        int exact = ties && RUN(exact)(w, w->from, i);
        if (exact && w->from >= w->middle) {
            status = RUN(turn)(w, w->from, i);
            if (status != RUN_OK) return status;
        }
        int last = i + 1 == e->count ? !ties : e->mark[i + 1] & RUN_GROUP;
        if (exact) RUN(end_exactly)(w, i, totals, found);
        if (last && w->group == i && a->kind[symbol] != RUN_MIXED && !exact) RUN(step)(w, symbol, i);
        else {
            RUN(enter)(w, symbol, i);
            if (last) RUN(close_delayed)(w, ties, totals, found);
            else w->open = 1;
        }
        if (w->bad) return RUN_TOO_LARGE;
    }
    if (w->open && e->count > 0 && e->at[e->count - 1] < until) RUN(close_delayed)(w, ties, totals, found);
    if (w->bad) return RUN_TOO_LARGE;
    return RUN(settle)(w, e->count, until, totals, found);
}

static int RUN(begin)(RUN(state) *w, const run_automaton *a, const run_events *e) {
    int m = a->states;
    memset(w, 0, sizeof *w);
    w->a = a;
    w->e = e;
    w->column = malloc(sizeof(RUN_VALUE) * m * m * 6);
    if (w->column == NULL) return RUN_NO_MEMORY;
    w->entered = w->column + m * m;
    w->rows = w->entered + m * m;
    w->fresh = w->rows + m * m;
    w->enters = w->fresh + m * m;
    w->spare = w->enters + m * m;
    RUN(nothing)(w->entered, m);
    RUN(forget_stays)(w);
    return RUN_OK;
}

static int RUN(run)(const run_automaton *a, const run_events *e, RUN_TOTAL *totals, int64_t *found, int64_t *each) {
    RUN(state) w;
    int status = RUN(begin)(&w, a, e);
    if (status != RUN_OK) return status;
    status = RUN(pass)(&w, 0, 0, totals, found, each);
    if (e->steps != NULL) *e->steps += w.steps;
    free(w.row);
    free(w.column);
    return status;
}

/* Streams: what is kept of a segment from push to push. */

static int RUN(load)(RUN(state) *w, run_kept *k) {
    int m = w->a->states, gaps = w->a->gaps;
    if (k->block == NULL) {
        k->block = malloc(sizeof(RUN_VALUE) * (2 * m * m + gaps) + sizeof(int) * gaps);
        if (k->block == NULL) return RUN_NO_MEMORY;
        k->valid = 0;
    }
    w->column = k->block;
    w->entered = w->column + m * m;
    w->row = k->row;
    w->low = k->low;
    w->middle = k->middle;
    w->room = k->room;
    w->from = k->from;
    w->group = k->group;
    w->open = k->open;
    w->bad = 0;
    if (k->valid) {
        memcpy(w->weight, w->entered + m * m, sizeof(RUN_VALUE) * gaps);
        memcpy(w->flag, w->entered + m * m + gaps, sizeof(int) * gaps);
    } else
        RUN(forget_stays)(w); /* of the segment before */
    return RUN_OK;
}

static void RUN(store)(RUN(state) *w, run_kept *k, int valid) {
    int m = w->a->states, gaps = w->a->gaps;
    memcpy(w->entered + m * m, w->weight, sizeof(RUN_VALUE) * gaps);
    memcpy(w->entered + m * m + gaps, w->flag, sizeof(int) * gaps);
    k->row = w->row;
    k->low = w->low;
    k->middle = w->middle;
    k->room = w->room;
    k->from = w->from;
    k->group = w->group;
    k->open = w->open;
    k->valid = valid;
}

/* From the events alone: all but the last tie group, to which more may come, is the older part. */

static int RUN(rebuild)(RUN(state) *w, int64_t begin, int64_t end, int ties) {
    int64_t group = end;
    if (ties && end > begin)
        for (group = end - 1; group > begin && !(w->e->mark[group] & RUN_GROUP);) group--;
    int status = RUN(build_rows)(w, begin, group);
    if (status != RUN_OK) return status;
    RUN(identity)(w->column, w->a->states);
    RUN(nothing)(w->entered, w->a->states);
    RUN(forget_stays)(w);
    for (int64_t j = group; j < end; j++) RUN(enter)(w, w->e->symbol[j], j);
    w->from = begin;
    w->group = group;
    w->open = group < end;
    return w->bad ? RUN_TOO_LARGE : RUN_OK;
}

static int RUN(push)(const run_automaton *a, const run_push *p, RUN_TOTAL *totals, int64_t *found, uint64_t *steps) {
    RUN(state) w;
    run_events e = {0};
    int status = RUN(begin)(&w, a, &e);
    if (status != RUN_OK) return status;
    RUN_VALUE *scratch = w.column;
    w.exact = p->delayed;
    for (int64_t n = 0; n < p->count && status == RUN_OK; n++) {
        run_segment *s = p->touched[n];
        run_kept *k = s->kept + p->number;
        run_events_of(&e, p, s);
        status = RUN(load)(&w, k);
        if (status != RUN_OK) break;
        if (!k->valid) status = RUN(rebuild)(&w, s->lo, s->before, p->ties);
        if (status == RUN_OK)
            status = p->delayed ? RUN(delayed)(&w, s->before, p->ties, p->until, totals, found)
                                : RUN(pass)(&w, s->before, p->ties, totals, found, NULL);
        RUN(store)(&w, k, status == RUN_OK);
    }
    *steps += w.steps;
    free(scratch);
    return status;
}

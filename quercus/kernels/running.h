/* Totals over all matches of an automaton in a sliding window, without listing them: see running.pyx.

   An event is a symbol: edges (from, to, role, inner), those into the end (to -1) first, then by falling source; and
   stays (gap, flag, role), which act on what waits in a gap. Events of one tie group see what was there before the
   group; inner edges also see what entered in it. Two stacks: `row` holds, for each event from `low` on, what leads
   from the beginning of a window there to `middle`; `column` holds what happened from `middle` on. */

#ifndef QUERCUS_RUNNING_H
#define QUERCUS_RUNNING_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 wide_count;
typedef __int128 wide_sum;

enum { RUN_OK = 0, RUN_TOO_LARGE = 1, RUN_NO_MEMORY = 2, RUN_STOPPED = 3 };
#define RUN_LOOK 32767                                  /* events between two looks at the clock, and one less */
enum { RUN_GROUP = 1, RUN_SEGMENT = 2 };              /* marks: the first event of a tie group, of a segment */
enum { RUN_MIXED = 0, RUN_EDGES = 1, RUN_STAYS = 2 }; /* what a symbol has: both, edges alone, stays alone */

typedef struct {
    int states, gaps, symbols;
    const int32_t *top;      /* of a state: the last state that can come before it or beside it */
    const int32_t *base;     /* of a state: the first state that can come after it or beside it */
    const int32_t *gap_of;   /* of a state: its gap, or -1 */
    const int32_t *first;    /* of a gap: its first state */
    const int32_t *size;     /* of a gap: its number of states, 1 to 4 */
    const int32_t *moves;    /* of a gap, a mask of flags and a place in the gap: the place it moves to, or -1 */
    const int32_t *edge_at;  /* of a symbol: where its edges begin; and the end */
    const int32_t *edges;
    const int32_t *stay_at;
    const int32_t *stays;
    const uint8_t *kind;     /* of a symbol */
    const uint8_t *accepts;  /* of a state: whether a match that waits in it is whole */
} run_automaton;

typedef struct {
    int64_t count;
    const uint8_t *symbol;
    const uint8_t *mark;
    const int64_t *at;       /* time or position, ascending in a segment */
    const int64_t *reach;    /* of an event: the first in a window with it, in place of `at`; NULL: as `at` says */
    const int64_t *row;      /* of the stream: which of two ends of different segments is earlier */
    const int32_t *group;    /* of an event that ends matches: whose total it adds to; NULL: 0 */
    const int64_t *integer;  /* values of the role `role` */
    const double *real;
    uint64_t window;
    int role;
    int64_t skipped;         /* events that come before those of `row` and `group` */
    const int32_t *slot;     /* of a tag: whose total a match adds to that begins with it; NULL: 0 */
    const int64_t *tag;      /* of an event that can begin a match */
    int (*look)(void *);     /* whether to stop; NULL: never */
    void *context;
    uint64_t *steps;         /* events looked at; NULL: nobody asks */
} run_events;

/* Of a stream: one segment's state in one pass. What is not valid is made again from the events. */
typedef struct {
    void *block, *row;
    int64_t low, middle, room, from, group;
    int open, valid;
} run_kept;

/* Its events from `lo` to `hi`, new ones from `before` on; those of the push begin at `first`. */
typedef struct {
    uint8_t *symbol, *mark;
    int64_t *at, *tag;       /* no tags: NULL */
    int64_t **value;         /* of a pass; NULL: it has none */
    run_kept *kept;          /* of a pass */
    int64_t lo, hi, before, room, first, ts, ts_before;
    int touched;
} run_segment;

typedef struct {
    run_segment **touched;
    int64_t count;
    int number, role, ties;
    uint64_t window;
    const int64_t *row;
    const int32_t *group, *slot;
    int delayed;             /* whether matches are totalled when the window after their start is over: before `until` */
    int64_t until;
    int (*look)(void *);
    void *context;
} run_push;

static inline void run_events_of(run_events *e, const run_push *p, const run_segment *s) {
    e->count = s->hi;
    e->symbol = s->symbol;
    e->mark = s->mark;
    e->at = s->at;
    e->reach = NULL;
    e->row = p->row;
    e->group = p->group;
    e->integer = s->value[p->number];
    e->real = (const double *)s->value[p->number];
    e->window = p->window;
    e->role = p->role;
    e->skipped = s->before - s->first;
    e->slot = p->slot;
    e->tag = s->tag;
    e->look = p->look;
    e->context = p->context;
    e->steps = NULL;
}

#ifdef QUERCUS_CHECKED
#include <assert.h>
#define RUN_CHECK(x) assert(x)
#else
#define RUN_CHECK(x) ((void)0)
#endif

#define RUN_JOIN_(a, b) a##_##b
#define RUN_JOIN(a, b) RUN_JOIN_(a, b)
#define RUN(name) RUN_JOIN(name, RUN_NAME)

/* Counts */

#define RUN_COUNT(type) \
    static inline type RUN(zero)(void) { return 0; } \
    static inline type RUN(one)(void) { return 1; } \
    static inline type RUN(value)(const run_events *e, int64_t i) { (void)e; (void)i; return 1; } \
    static inline int RUN(add)(type *to, type a) { return __builtin_add_overflow(*to, a, to); } \
    static inline int RUN(mul)(type *to, type a, type b) { return __builtin_mul_overflow(a, b, to); } \
    static inline int RUN(some)(type a) { return a != 0; } \
    static inline int RUN(total)(wide_count *to, type a) { return __builtin_add_overflow(*to, (wide_count)a, to); }

#define RUN_NAME u64
RUN_COUNT(uint64_t)
#define RUN_VALUE uint64_t
#define RUN_TOTAL wide_count
#include "running_pass.h"
#undef RUN_NAME
#undef RUN_VALUE
#undef RUN_TOTAL

#define RUN_NAME u128
RUN_COUNT(wide_count)
#define RUN_VALUE wide_count
#define RUN_TOTAL wide_count
#include "running_pass.h"
#undef RUN_NAME
#undef RUN_VALUE
#undef RUN_TOTAL

/* Sums of integers: how many, and their sum */

#define RUN_SUM(type, pair) \
    typedef struct { type n, s; } pair; \
    static inline pair RUN(zero)(void) { pair p = {0, 0}; return p; } \
    static inline pair RUN(one)(void) { pair p = {1, 0}; return p; } \
    static inline pair RUN(value)(const run_events *e, int64_t i) { pair p = {1, e->integer[i]}; return p; } \
    static inline int RUN(add)(pair *to, pair a) { \
        return __builtin_add_overflow(to->n, a.n, &to->n) | __builtin_add_overflow(to->s, a.s, &to->s); \
    } \
    static inline int RUN(mul)(pair *to, pair a, pair b) { \
        type x, y; \
        int bad = __builtin_mul_overflow(a.n, b.s, &x) | __builtin_mul_overflow(a.s, b.n, &y); \
        bad |= __builtin_mul_overflow(a.n, b.n, &to->n); \
        return bad | __builtin_add_overflow(x, y, &to->s); \
    } \
    static inline int RUN(some)(pair a) { return a.n != 0; } \
    static inline int RUN(total)(wide_sum *to, pair a) { return __builtin_add_overflow(*to, (wide_sum)a.s, to); }

#define RUN_NAME i64
RUN_SUM(int64_t, run_pair64)
#define RUN_VALUE run_pair64
#define RUN_TOTAL wide_sum
#include "running_pass.h"
#undef RUN_NAME
#undef RUN_VALUE
#undef RUN_TOTAL

#define RUN_NAME i128
RUN_SUM(wide_sum, run_pair128)
#define RUN_VALUE run_pair128
#define RUN_TOTAL wide_sum
#include "running_pass.h"
#undef RUN_NAME
#undef RUN_VALUE
#undef RUN_TOTAL

/* Sums of floats: nothing times infinity is nothing */

typedef struct { double n, s; } run_real;
static inline run_real zero_f64(void) { run_real p = {0, 0}; return p; }
static inline run_real one_f64(void) { run_real p = {1, 0}; return p; }
static inline run_real value_f64(const run_events *e, int64_t i) { run_real p = {1, e->real[i]}; return p; }
static inline int add_f64(run_real *to, run_real a) { to->n += a.n; to->s += a.s; return 0; }
static inline int mul_f64(run_real *to, run_real a, run_real b) {
    if (a.n == 0 || b.n == 0) { to->n = to->s = 0; return 0; }
    double s = (b.s == 0 ? 0 : a.n * b.s) + (a.s == 0 ? 0 : a.s * b.n);
    to->n = a.n * b.n; to->s = s;
    return 0;
}
static inline int some_f64(run_real a) { return a.n != 0; }
static inline int total_f64(double *to, run_real a) { *to += a.s; return 0; }

#define RUN_NAME f64
#define RUN_VALUE run_real
#define RUN_TOTAL double
#include "running_pass.h"
#undef RUN_NAME
#undef RUN_VALUE
#undef RUN_TOTAL

/* The least value of any match: none, or one whose value is null, stand above all */

static inline int64_t zero_min(void) { return INT64_MAX; }
static inline int64_t one_min(void) { return INT64_MAX - 1; }
static inline int64_t value_min(const run_events *e, int64_t i) { return e->integer[i]; }
static inline int add_min(int64_t *to, int64_t a) { if (a < *to) *to = a; return 0; }
static inline int mul_min(int64_t *to, int64_t a, int64_t b) {
    *to = (a == INT64_MAX || b == INT64_MAX) ? INT64_MAX : a < b ? a : b;
    return 0;
}
static inline int some_min(int64_t a) { return a != INT64_MAX; }
static inline int total_min(int64_t *to, int64_t a) { if (a < *to) *to = a; return 0; }

#define RUN_NAME min
#define RUN_EACH 1
#define RUN_VALUE int64_t
#define RUN_TOTAL int64_t
#include "running_pass.h"
#undef RUN_NAME
#undef RUN_EACH
#undef RUN_VALUE
#undef RUN_TOTAL

/* Counts of a row of plain leaves without equal times: what comes adds, what leaves subtracts. count[j][i] is the number
   of ways to bind components i to j in the window. */

#define RUN_LEAVES 8

static inline __attribute__((always_inline)) int run_row(const run_events *e, const int32_t *component, int leaves,
                                                         wide_count *total) {
    uint64_t count[RUN_LEAVES + 1][RUN_LEAVES + 1] = {{0}}; /* count[0]: nothing bound yet */
    uint64_t one[RUN_LEAVES + 1][RUN_LEAVES + 1] = {{0}};
    int64_t low = 0;
    int bad = 0;
    for (int j = 0; j < leaves; j++) one[j + 1][j] = 1;
    for (int64_t i = 0; i < e->count; i++) {
        if (e->mark[i] & RUN_SEGMENT) {
            memset(count, 0, sizeof count);
            low = i;
        }
        if ((i & RUN_LOOK) == RUN_LOOK && e->look != NULL && e->look(e->context)) return RUN_STOPPED;
        while ((uint64_t)e->at[i] - (uint64_t)e->at[low] > e->window) {
            int c = component[e->symbol[low++]];
            for (int j = 1; j < leaves; j++) count[j][c] -= count[j][c + 1] + one[j][c];
        }
        int c = component[e->symbol[i]] + 1;
        if (c == leaves) {
            *total += leaves > 1 ? count[leaves - 1][0] : 1;
            continue;
        }
        for (int k = 0; k < leaves - 1; k++) bad |= __builtin_add_overflow(count[c][k], count[c - 1][k] + one[c][k], &count[c][k]);
        if (bad) return RUN_TOO_LARGE;
    }
    if (e->steps != NULL) *e->steps += e->count;
    return RUN_OK;
}

static int run_row_of(const run_events *e, const int32_t *component, int leaves, wide_count *total) {
    switch (leaves) {
        case 2: return run_row(e, component, 2, total);
        case 3: return run_row(e, component, 3, total);
        case 4: return run_row(e, component, 4, total);
        default: return run_row(e, component, leaves, total);
    }
}

/* Merging sorted buffers: each event once, with the buffers that hold it as bits */

typedef struct { const int64_t *row, *at, *ts; const int64_t *starts; } run_buffer;

static int64_t run_merge(const run_buffer *b, int buffers, int64_t segments, int ties, int64_t *mask, uint8_t *mark,
                         int64_t *at, int64_t *row) {
    int64_t n = 0, head[64], end[64], next_row[64];
    for (int64_t s = 0; s < segments; s++) {
        int64_t before = 0;
        uint8_t next = RUN_GROUP | RUN_SEGMENT;
        for (int k = 0; k < buffers; k++) {
            head[k] = b[k].starts[s];
            end[k] = b[k].starts[s + 1];
            next_row[k] = head[k] < end[k] ? b[k].row[head[k]] : INT64_MAX;
        }
        for (;;) {
            int64_t least = next_row[0];
            for (int k = 1; k < buffers; k++) least = next_row[k] < least ? next_row[k] : least;
            if (least == INT64_MAX) break;
            int64_t bits = 0;
            int from = 0;
            for (int k = buffers - 1; k >= 0; k--) {
                int is = next_row[k] == least;
                bits |= (int64_t)is << k;
                from = is ? k : from;
            }
            int64_t ts = b[from].ts[head[from]];
            mask[n] = bits;
            row[n] = least;
            at[n] = b[from].at[head[from]];
            mark[n] = next | (!ties | (ts != before));
            next = 0;
            before = ts;
            n++;
            for (int k = 0; k < buffers; k++) {
                head[k] += bits >> k & 1;
                next_row[k] = head[k] < end[k] ? b[k].row[head[k]] : INT64_MAX;
            }
        }
    }
    return n;
}

/* The same of one segment and up to eight buffers whose rows, from `first` on, are dense: a byte for each row tells who
   holds it. `held` is zeroed, has a byte for each row and seven more. */

static int64_t run_merge_dense(const run_buffer *b, int buffers, const int64_t *counts, int ties, int64_t first,
                               int64_t span, uint8_t *held, int64_t *mask, uint8_t *mark, int64_t *at, int64_t *row) {
    int64_t n = 0, head[8] = {0}, before = 0;
    for (int k = 0; k < buffers; k++)
        for (int64_t i = 0; i < counts[k]; i++) {
            RUN_CHECK(b[k].row[i] >= first && b[k].row[i] - first < span);
            held[b[k].row[i] - first] |= 1 << k;
        }
    for (int64_t from = 0; from < span; from += 8) {
        uint64_t word;
        memcpy(&word, held + from, 8);
        while (word) {
            int place = __builtin_ctzll(word) >> 3, bits = word >> (8 * place) & 255, owner = __builtin_ctz(bits);
            int64_t ts = b[owner].ts[head[owner]];
            word &= ~((uint64_t)255 << (8 * place));
            mask[n] = bits;
            row[n] = first + from + place;
            at[n] = b[owner].at[head[owner]];
            mark[n] = !ties | (ts != before);
            before = ts;
            n++;
            if (bits & (bits - 1)) for (int k = 0; k < buffers; k++) head[k] += bits >> k & 1;
            else head[owner]++;
        }
    }
    if (n) mark[0] = RUN_GROUP | RUN_SEGMENT;
    return n;
}

/* Of each event, the first of its segment that is in a window with it. */

static void run_reach(const uint8_t *mark, const int64_t *at, int64_t count, uint64_t window, int64_t *low) {
    int64_t from = 0;
    for (int64_t i = 0; i < count; i++) {
        if (mark[i] & RUN_SEGMENT) from = i;
        while ((uint64_t)at[i] - (uint64_t)at[from] > window) from++;
        low[i] = from;
    }
}

#endif

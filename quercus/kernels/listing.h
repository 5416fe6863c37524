/* Rows of matches that pass one test, packed: what one more event at the end is listed from.

   Columns of small numbers are read in the order of the matches. Rows gather in a sink, and leave it as large numbers in
   whole lines of a cache, one after the other, so that memory is written in order and once. What is far larger than a cache
   is written past it, since it would else be read before. With AVX2 eight rows are tested and packed at a time, with
   AVX-512 sixteen. */

#ifndef QUERCUS_LISTING_H
#define QUERCUS_LISTING_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SINK_COLUMNS 33
#define SINK_ROWS 64            /* that leave together: eight lines of each column */
#define SINK_MORE 16            /* that may come at once */

typedef struct {
    int32_t rows[SINK_COLUMNS][SINK_ROWS + SINK_MORE];
    int64_t** out;
    int columns;
    int past;                   /* whether lines are written past the caches */
    ptrdiff_t n;                /* rows that wait */
    ptrdiff_t done;             /* rows that were written */
    ptrdiff_t room;
} Sink;

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))

#include <immintrin.h>

#define LISTING_256 __attribute__((target("avx2,popcnt")))
#define LISTING_512 __attribute__((target("avx512f,popcnt")))

/* Rows that one step takes.  `most` lets a test ask for less. */
static int packed_at_once(int most)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("popcnt"))
        return 1;
    return most >= 16 && __builtin_cpu_supports("avx512f") ? 16 : most >= 8 ? 8 : 1;
}

LISTING_256 static void sink_past(int64_t* to, const int32_t* from)
{
    int i;
    for (i = 0; i < SINK_ROWS; i += 4)
        _mm256_stream_si256((__m256i*)(to + i), _mm256_cvtepi32_epi64(_mm_loadu_si128((const __m128i*)(from + i))));
}

static void sink_settle(void) { _mm_sfence(); }

#else

static int packed_at_once(int most) { (void)most; return 1; }
static void sink_past(int64_t* to, const int32_t* from) { (void)to; (void)from; }
static void sink_settle(void) {}

#endif

/* `past`: past the caches, where the columns begin a line, and this processor can. */
static void sink_open(Sink* s, int64_t** out, int columns, ptrdiff_t room, int past)
{
    int c;
    past = past && packed_at_once(8) == 8;
    for (c = 0; c < columns; c++)
        past = past && ((uintptr_t)out[c] & 63) == 0;
    s->out = out;
    s->columns = columns;
    s->past = past;
    s->n = s->done = 0;
    s->room = room;
}

/* The first SINK_ROWS rows leave. */
static inline void sink_drain(Sink* s)
{
    int c, i;
    for (c = 0; c < s->columns; c++) {
        int64_t* to = s->out[c] + s->done;
        int32_t* from = s->rows[c];
        if (s->past)
            sink_past(to, from);
        else
            for (i = 0; i < SINK_ROWS; i++)
                to[i] = from[i];
        memcpy(from, from + SINK_ROWS, SINK_MORE * sizeof(int32_t));
    }
    s->done += SINK_ROWS;
    s->n -= SINK_ROWS;
}

/* All rows leave; returns how many there were. */
static ptrdiff_t sink_close(Sink* s)
{
    int c;
    ptrdiff_t i;
    for (c = 0; c < s->columns; c++)
        for (i = 0; i < s->n; i++)
            s->out[c][s->done + i] = s->rows[c][i];
    s->done += s->n;
    s->n = 0;
    if (s->past)
        sink_settle();
    return s->done;
}

/* The rows from `first` to `stop` whose last number is less than `limit`, each with `event`.  Returns -1 where there is no
   room for them. */
static int pack_plain(
    const int32_t** columns, ptrdiff_t first, ptrdiff_t stop, int32_t limit, int32_t event, Sink* s)
{
    int c, k = s->columns - 1;
    const int32_t* last = columns[k - 1];
    ptrdiff_t i;
    for (i = first; i < stop; i++)
        if (last[i] < limit) {
            if (s->done + s->n == s->room)
                return -1;
            for (c = 0; c < k; c++)
                s->rows[c][s->n] = columns[c][i];
            s->rows[k][s->n++] = event;
            if (s->n == SINK_ROWS)
                sink_drain(s);
        }
    return 0;
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))

static int32_t listing_places[256][8];  /* of the bits that are set, the lowest first */

static void listing_begin(void)
{
    int kept, bit, n;
    for (kept = 0; kept < 256; kept++)
        for (bit = n = 0; bit < 8; bit++)
            if (kept >> bit & 1)
                listing_places[kept][n++] = bit;
}

LISTING_256 static int pack_256(
    const int32_t** columns, ptrdiff_t first, ptrdiff_t stop, int32_t limit, int32_t event, Sink* s)
{
    int c, k = s->columns - 1;
    const int32_t* last = columns[k - 1];
    const __m256i limits = _mm256_set1_epi32(limit), events = _mm256_set1_epi32(event);
    ptrdiff_t i;
    for (i = first; i + 8 <= stop; i += 8) {
        __m256i below = _mm256_cmpgt_epi32(limits, _mm256_loadu_si256((const __m256i*)(last + i)));
        int kept = _mm256_movemask_ps(_mm256_castsi256_ps(below));
        __m256i places = _mm256_loadu_si256((const __m256i*)listing_places[kept]);
        ptrdiff_t n = __builtin_popcount((unsigned)kept);
        if (!kept)
            continue;
        if (s->done + s->n + n > s->room)
            return -1;
        for (c = 0; c < k; c++)
            _mm256_storeu_si256(
                (__m256i*)(s->rows[c] + s->n),
                _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i*)(columns[c] + i)), places));
        _mm256_storeu_si256((__m256i*)(s->rows[k] + s->n), events);
        s->n += n;
        if (s->n >= SINK_ROWS)
            sink_drain(s);
    }
    return pack_plain(columns, i, stop, limit, event, s);
}

LISTING_512 static int pack_512(
    const int32_t** columns, ptrdiff_t first, ptrdiff_t stop, int32_t limit, int32_t event, Sink* s)
{
    int c, k = s->columns - 1;
    const int32_t* last = columns[k - 1];
    const __m512i limits = _mm512_set1_epi32(limit), events = _mm512_set1_epi32(event);
    ptrdiff_t i;
    for (i = first; i < stop; i += 16) {
        __mmask16 some = stop - i < 16 ? (__mmask16)((1u << (stop - i)) - 1) : (__mmask16)0xffff;
        __mmask16 kept = _mm512_mask_cmplt_epi32_mask(some, _mm512_maskz_loadu_epi32(some, last + i), limits);
        ptrdiff_t n = __builtin_popcount(kept);
        if (!kept)
            continue;
        if (s->done + s->n + n > s->room)
            return -1;
        for (c = 0; c < k; c++)
            _mm512_storeu_si512(
                s->rows[c] + s->n, _mm512_maskz_compress_epi32(kept, _mm512_maskz_loadu_epi32(some, columns[c] + i)));
        _mm512_storeu_si512(s->rows[k] + s->n, events);
        s->n += n;
        if (s->n >= SINK_ROWS)
            sink_drain(s);
    }
    return 0;
}

#else

#define pack_256 pack_plain
#define pack_512 pack_plain
static void listing_begin(void) {}

#endif

#endif

/* Rows of matches that pass one test, packed: what one more event at the end is listed from.

   A column of small numbers is read in the order of the matches and written as large ones, one after the other, so that
   memory is written in order and once.  With AVX-512 sixteen rows are tested and packed at a time. */

#ifndef QUERCUS_LISTING_H
#define QUERCUS_LISTING_H

#include <stddef.h>
#include <stdint.h>

/* The rows from `first` to `stop` whose last number is less than `limit`: to `out` from `at` on, each with `event`.
   Returns where they end; -1: there is no room up to `room`. */
static ptrdiff_t pack_plain(
    const int32_t** columns, int k, ptrdiff_t first, ptrdiff_t stop, int32_t limit, int64_t event,
    int64_t** out, ptrdiff_t at, ptrdiff_t room)
{
    const int32_t* last = columns[k - 1];
    ptrdiff_t i;
    int c;
    for (i = first; i < stop; i++)
        if (last[i] < limit) {
            if (at == room)
                return -1;
            for (c = 0; c < k; c++)
                out[c][at] = columns[c][i];
            out[k][at++] = event;
        }
    return at;
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))

#include <immintrin.h>

#define LISTING_512 __attribute__((target("avx512f,popcnt")))

LISTING_512 static ptrdiff_t pack_512(
    const int32_t** columns, int k, ptrdiff_t first, ptrdiff_t stop, int32_t limit, int64_t event,
    int64_t** out, ptrdiff_t at, ptrdiff_t room)
{
    const int32_t* last = columns[k - 1];
    const __m512i limits = _mm512_set1_epi32(limit), events = _mm512_set1_epi64(event);
    ptrdiff_t i;
    int c;
    for (i = first; i < stop; i += 16) {
        __mmask16 some = stop - i < 16 ? (__mmask16)((1u << (stop - i)) - 1) : (__mmask16)0xffff;
        __mmask16 kept = _mm512_mask_cmplt_epi32_mask(some, _mm512_maskz_loadu_epi32(some, last + i), limits);
        unsigned n;
        __mmask16 to;
        if (!kept)
            continue;
        n = (unsigned)__builtin_popcount(kept);
        if (at + (ptrdiff_t)n > room)
            return -1;
        to = (__mmask16)((1u << n) - 1);
        for (c = 0; c < k; c++) {
            __m512i packed = _mm512_maskz_compress_epi32(kept, _mm512_maskz_loadu_epi32(some, columns[c] + i));
            _mm512_mask_storeu_epi64(
                out[c] + at, (__mmask8)to, _mm512_cvtepi32_epi64(_mm512_castsi512_si256(packed)));
            if (n > 8)
                _mm512_mask_storeu_epi64(
                    out[c] + at + 8, (__mmask8)(to >> 8),
                    _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(packed, 1)));
        }
        _mm512_mask_storeu_epi64(out[k] + at, (__mmask8)to, events);
        if (n > 8)
            _mm512_mask_storeu_epi64(out[k] + at + 8, (__mmask8)(to >> 8), events);
        at += n;
    }
    return at;
}

/* Rows that one step takes.  `most` lets a test ask for less. */
static int packed_at_once(int most)
{
    __builtin_cpu_init();
    return most >= 16 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("popcnt") ? 16 : 1;
}

#else

#define pack_512 pack_plain
static int packed_at_once(int most) { (void)most; return 1; }

#endif

#endif

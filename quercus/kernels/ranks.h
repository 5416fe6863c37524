/* For each value of one sorted array, how many of another are below it.  Eight of the one are compared at once with each
   of the other, so that no step waits for the one before it, and nothing has to be foretold but where eight end. */

#ifndef QUERCUS_RANKS_H
#define QUERCUS_RANKS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "sorted.h"

#if defined(__GNUC__)

typedef int64_t Four __attribute__((vector_size(32)));

#define RANKS(NAME, BELOW)                                                                                            \
    FOR_NEWER static void NAME(const int64_t *a, ptrdiff_t j, ptrdiff_t n, const int64_t *b, ptrdiff_t p,             \
                               ptrdiff_t end, int64_t back, int64_t *out)                                             \
    {                                                                                                                 \
        for (; j + 8 <= n; j += 8) {                                                                                  \
            Four low, high, count = {p, p, p, p}, more = {p, p, p, p};                                                \
            int64_t last = a[j + 7] - back;                                                                           \
            memcpy(&low, a + j, sizeof low);                                                                          \
            memcpy(&high, a + j + 4, sizeof high);                                                                    \
            low -= back;                                                                                              \
            high -= back;                                                                                             \
            for (; p < end && b[p] BELOW last; p++) {                                                                 \
                Four value = {b[p], b[p], b[p], b[p]};                                                                \
                count -= value BELOW low; /* true is -1 */                                                            \
                more -= value BELOW high;                                                                             \
            }                                                                                                         \
            memcpy(out + j, &count, sizeof count);                                                                    \
            memcpy(out + j + 4, &more, sizeof more);                                                                  \
        }                                                                                                             \
        for (; j < n; j++) {                                                                                          \
            while (p < end && b[p] BELOW a[j] - back) p++;                                                            \
            out[j] = p;                                                                                               \
        }                                                                                                             \
    }

#else

#define RANKS(NAME, BELOW)                                                                                            \
    static void NAME(const int64_t *a, ptrdiff_t j, ptrdiff_t n, const int64_t *b, ptrdiff_t p, ptrdiff_t end,        \
                     int64_t back, int64_t *out)                                                                      \
    {                                                                                                                 \
        for (; j < n; j++) {                                                                                          \
            while (p < end && b[p] BELOW a[j] - back) p++;                                                            \
            out[j] = p;                                                                                               \
        }                                                                                                             \
    }

#endif

RANKS(ranks_below, <)
RANKS(ranks_up_to, <=)

#endif

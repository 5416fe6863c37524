/* Which of up to 64 values lie between two others, as the bits of a number: eight at a time where the processor has
   AVX-512, four where it has AVX2.  NaN lies nowhere.  No value after the last is read. */

#ifndef QUERCUS_SIEVE_H
#define QUERCUS_SIEVE_H

#include <stdint.h>

#define SIEVE_BITS(T, NAME)                                                                      \
    static uint64_t NAME##_plain(const T* least, const T* most, int n, T low, T high)            \
    {                                                                                            \
        uint64_t bits = 0;                                                                       \
        int i;                                                                                   \
        for (i = 0; i < n; i++)                                                                  \
            bits |= (uint64_t)((most[i] >= low) & (least[i] <= high)) << i;                      \
        return bits;                                                                             \
    }

SIEVE_BITS(int64_t, overlap_i)
SIEVE_BITS(double, overlap_f)

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))

#include <immintrin.h>

#define SIEVE_AVX2 __attribute__((target("avx2")))
#define SIEVE_AVX512 __attribute__((target("avx512f")))

SIEVE_AVX512 static uint64_t overlap_i_512(const int64_t* least, const int64_t* most, int n, int64_t low, int64_t high)
{
    const __m512i a = _mm512_set1_epi64(low), b = _mm512_set1_epi64(high);
    uint64_t bits = 0;
    int i;
    for (i = 0; i + 8 <= n; i += 8) {
        __mmask8 k = _mm512_cmp_epi64_mask(_mm512_loadu_si512(most + i), a, _MM_CMPINT_NLT);
        k = _mm512_mask_cmp_epi64_mask(k, _mm512_loadu_si512(least + i), b, _MM_CMPINT_LE);
        bits |= (uint64_t)k << i;
    }
    if (i < n) {
        __mmask8 k = (__mmask8)((1u << (n - i)) - 1);
        __m512i v = _mm512_maskz_loadu_epi64(k, most + i), w = _mm512_maskz_loadu_epi64(k, least + i);
        k = _mm512_mask_cmp_epi64_mask(k, v, a, _MM_CMPINT_NLT);
        bits |= (uint64_t)_mm512_mask_cmp_epi64_mask(k, w, b, _MM_CMPINT_LE) << i;
    }
    return bits;
}

SIEVE_AVX512 static uint64_t overlap_f_512(const double* least, const double* most, int n, double low, double high)
{
    const __m512d a = _mm512_set1_pd(low), b = _mm512_set1_pd(high);
    uint64_t bits = 0;
    int i;
    for (i = 0; i + 8 <= n; i += 8) {
        __mmask8 k = _mm512_cmp_pd_mask(_mm512_loadu_pd(most + i), a, _CMP_GE_OQ);
        k = _mm512_mask_cmp_pd_mask(k, _mm512_loadu_pd(least + i), b, _CMP_LE_OQ);
        bits |= (uint64_t)k << i;
    }
    if (i < n) {
        __mmask8 k = (__mmask8)((1u << (n - i)) - 1);
        __m512d v = _mm512_maskz_loadu_pd(k, most + i), w = _mm512_maskz_loadu_pd(k, least + i);
        k = _mm512_mask_cmp_pd_mask(k, v, a, _CMP_GE_OQ);
        bits |= (uint64_t)_mm512_mask_cmp_pd_mask(k, w, b, _CMP_LE_OQ) << i;
    }
    return bits;
}

SIEVE_AVX2 static uint64_t overlap_i_256(const int64_t* least, const int64_t* most, int n, int64_t low, int64_t high)
{
    const __m256i a = _mm256_set1_epi64x(low), b = _mm256_set1_epi64x(high);
    uint64_t bits = 0;
    int i;
    for (i = 0; i + 4 <= n; i += 4) {
        __m256i under = _mm256_cmpgt_epi64(a, _mm256_loadu_si256((const __m256i*)(most + i)));
        __m256i over = _mm256_cmpgt_epi64(_mm256_loadu_si256((const __m256i*)(least + i)), b);
        int out = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_or_si256(under, over)));
        bits |= (uint64_t)(out ^ 15) << i;
    }
    return i < n ? bits | overlap_i_plain(least + i, most + i, n - i, low, high) << i : bits;
}

SIEVE_AVX2 static uint64_t overlap_f_256(const double* least, const double* most, int n, double low, double high)
{
    const __m256d a = _mm256_set1_pd(low), b = _mm256_set1_pd(high);
    uint64_t bits = 0;
    int i;
    for (i = 0; i + 4 <= n; i += 4) {
        __m256d above = _mm256_cmp_pd(_mm256_loadu_pd(most + i), a, _CMP_GE_OQ);
        __m256d below = _mm256_cmp_pd(_mm256_loadu_pd(least + i), b, _CMP_LE_OQ);
        bits |= (uint64_t)_mm256_movemask_pd(_mm256_and_pd(above, below)) << i;
    }
    return i < n ? bits | overlap_f_plain(least + i, most + i, n - i, low, high) << i : bits;
}

static int sieve_width = 0;

static void choose_sieve(int most)
{
    __builtin_cpu_init();
    sieve_width = most >= 8 && __builtin_cpu_supports("avx512f") ? 8 : most >= 4 && __builtin_cpu_supports("avx2") ? 4 : 1;
}

#define SIEVE_CHOOSE(T, NAME)                                                                    \
    static inline uint64_t NAME(const T* least, const T* most, int n, T low, T high)             \
    {                                                                                            \
        return sieve_width == 8   ? NAME##_512(least, most, n, low, high)                        \
               : sieve_width == 4 ? NAME##_256(least, most, n, low, high)                        \
                                  : NAME##_plain(least, most, n, low, high);                     \
    }

SIEVE_CHOOSE(int64_t, overlap_i)
SIEVE_CHOOSE(double, overlap_f)

#else

static int sieve_width = 1;
static void choose_sieve(int most) { (void)most; }
#define overlap_i overlap_i_plain
#define overlap_f overlap_f_plain

#endif

/* Which of up to 64 bytes are not zero. */
static inline uint64_t sieve_known(const uint8_t* valid, int n)
{
    uint64_t bits = 0;
    int i;
    for (i = 0; i < n; i++)
        bits |= (uint64_t)(valid[i] != 0) << i;
    return bits;
}

/* The least and the greatest of n values; nulls and NaN aside, of which alone the least is above the greatest. */
#define SIEVE_ENDS(T, NAME, HIGHEST, LOWEST)                                                     \
    static void NAME(const T* v, const uint8_t* valid, int n, T* least, T* most)                 \
    {                                                                                            \
        T low[8], high[8];                                                                       \
        int i = 0, k;                                                                            \
        for (k = 0; k < 8; k++) {                                                                \
            low[k] = HIGHEST;                                                                    \
            high[k] = LOWEST;                                                                    \
        }                                                                                        \
        if (!valid)                                                                              \
            for (; i + 8 <= n; i += 8)                                                           \
                for (k = 0; k < 8; k++) {                                                        \
                    low[k] = v[i + k] < low[k] ? v[i + k] : low[k];                              \
                    high[k] = v[i + k] > high[k] ? v[i + k] : high[k];                           \
                }                                                                                \
        for (; i < n; i++)                                                                       \
            if (!valid || valid[i]) {                                                            \
                low[0] = v[i] < low[0] ? v[i] : low[0];                                          \
                high[0] = v[i] > high[0] ? v[i] : high[0];                                       \
            }                                                                                    \
        for (k = 1; k < 8; k++) {                                                                \
            low[0] = low[k] < low[0] ? low[k] : low[0];                                          \
            high[0] = high[k] > high[0] ? high[k] : high[0];                                     \
        }                                                                                        \
        *least = low[0];                                                                         \
        *most = high[0];                                                                         \
    }

SIEVE_ENDS(int64_t, ends_i, INT64_MAX, INT64_MIN)
SIEVE_ENDS(double, ends_f, __builtin_inf(), -__builtin_inf())

#endif

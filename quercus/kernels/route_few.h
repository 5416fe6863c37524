/* The rows of a few names of up to 16 bytes, four or eight at a time, where the processor has AVX2 or AVX-512.

   A row is its first eight bytes, shifted so that what follows a shorter string falls out.  Of up to seven bytes this
   leaves room for the length, so that one comparison tells whether a row is a name; a row of more than seven gets a
   length that no such name has.  Where some name is longer, length and last eight bytes are compared as well.  The
   numbers of the rows that agree with a name are packed together and written whole: the end moves by as many as there
   were.

   Nothing is read outside the data: where a group begins or ends less than eight bytes before the end of the data,
   or has offsets that no valid column has, the pass stops, and the caller takes that group row by row. */

#ifndef QUERCUS_ROUTE_FEW_H
#define QUERCUS_ROUTE_FEW_H

#include <stdint.h>

#define FEW_NAMES 8      /* most names of one pass */
#define FEW_SPARE 8      /* entries that may be written past the end of each list */

typedef struct {
    const void* offsets;
    const uint8_t* data;
    int64_t limit;                  /* the last place where eight bytes can be read; below 0: none */
    uint64_t heads[FEW_NAMES];      /* first bytes, shifted as those of a row; where none is longer, with the length */
    uint64_t tails[FEW_NAMES];      /* last eight bytes of a name of more than eight, else its head */
    int64_t lengths[FEW_NAMES];
    uint32_t* ends[FEW_NAMES];      /* where each name's next row number goes */
    int names;
    int longer;                     /* whether some name has more than seven bytes */
} Few;

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))

#include <immintrin.h>

/* Keeps a pointer in a register of its own: gcc 12 packs four of them into one vector, and unpacks them to use them. */
#define FEW_ALONE(p) __asm__("" : "+r"(p))
#define FEW_INLINE static inline __attribute__((always_inline))
#define FEW_AVX2 __attribute__((target("avx2,popcnt")))
#define FEW_AVX512 __attribute__((target("avx512f,avx512vl,popcnt")))

static const uint32_t few_packed[16][4] __attribute__((aligned(16))) = {
#define LANE(i) (0x03020100u + 0x04040404u * (i))
    {0, 0, 0, 0},                   {LANE(0), 0, 0, 0},
    {LANE(1), 0, 0, 0},             {LANE(0), LANE(1), 0, 0},
    {LANE(2), 0, 0, 0},             {LANE(0), LANE(2), 0, 0},
    {LANE(1), LANE(2), 0, 0},       {LANE(0), LANE(1), LANE(2), 0},
    {LANE(3), 0, 0, 0},             {LANE(0), LANE(3), 0, 0},
    {LANE(1), LANE(3), 0, 0},       {LANE(0), LANE(1), LANE(3), 0},
    {LANE(2), LANE(3), 0, 0},       {LANE(0), LANE(2), LANE(3), 0},
    {LANE(1), LANE(2), LANE(3), 0}, {LANE(0), LANE(1), LANE(2), LANE(3)},
#undef LANE
};

/* Not a gather: on many processors that is slow since it was made safe against leaks. */
FEW_INLINE FEW_AVX2 __m256i words_avx2(const uint8_t* data, __m256i at)
{
    __m128i low = _mm256_castsi256_si128(at), high = _mm256_extracti128_si256(at, 1);
    __m128i a = _mm_loadl_epi64((const __m128i*)(data + _mm_cvtsi128_si64(low)));
    __m128i b = _mm_loadl_epi64((const __m128i*)(data + _mm_extract_epi64(low, 1)));
    __m128i c = _mm_loadl_epi64((const __m128i*)(data + _mm_cvtsi128_si64(high)));
    __m128i d = _mm_loadl_epi64((const __m128i*)(data + _mm_extract_epi64(high, 1)));
    return _mm256_set_m128i(_mm_unpacklo_epi64(c, d), _mm_unpacklo_epi64(a, b));
}

FEW_INLINE FEW_AVX2 int64_t pass_avx2(Few* f, int64_t first, int64_t stop, int wide, int longer, int rare, int names)
{
    const int32_t* narrow = (const int32_t*)f->offsets;
    const int64_t* large = (const int64_t*)f->offsets;
    const __m256i limit = _mm256_set1_epi64x(f->limit), eight = _mm256_set1_epi64x(8), bits = _mm256_set1_epi64x(64);
    __m128i row = _mm_add_epi32(_mm_set1_epi32((int32_t)first), _mm_setr_epi32(0, 1, 2, 3));
    __m256i heads[FEW_NAMES], tails[FEW_NAMES], lengths[FEW_NAMES];
    uint32_t* ends[FEW_NAMES];
    int64_t i;
    int k;
    for (k = 0; k < names; k++) {
        heads[k] = _mm256_set1_epi64x((int64_t)f->heads[k]);
        tails[k] = _mm256_set1_epi64x((int64_t)f->tails[k]);
        lengths[k] = _mm256_set1_epi64x(f->lengths[k]);
        ends[k] = f->ends[k];
    }
    for (i = first; i + 4 <= stop; i += 4) {
        __m256i start, end, length, rest, least, shift, head, tail, wrong;
        int masks[FEW_NAMES], any = 0;
        if (wide) {
            start = _mm256_loadu_si256((const __m256i*)(large + i));
            end = _mm256_loadu_si256((const __m256i*)(large + i + 1));
        } else {
            start = _mm256_cvtepi32_epi64(_mm_loadu_si128((const __m128i*)(narrow + i)));
            end = _mm256_cvtepi32_epi64(_mm_loadu_si128((const __m128i*)(narrow + i + 1)));
        }
        wrong = _mm256_or_si256(_mm256_cmpgt_epi64(start, limit), start);
        length = _mm256_sub_epi64(end, start);
        rest = start;
        if (longer) {
            rest = _mm256_sub_epi64(end, eight);
            rest = _mm256_blendv_epi8(start, rest, _mm256_cmpgt_epi64(length, eight));
            wrong = _mm256_or_si256(wrong, _mm256_or_si256(_mm256_cmpgt_epi64(rest, limit), rest));
        }
        if (_mm256_movemask_pd(_mm256_castsi256_pd(wrong)))
            break;
        least = _mm256_min_epu32(length, eight);
        if (wide) /* of 4 GiB and more, all are long */
            least = _mm256_blendv_epi8(least, eight, _mm256_cmpgt_epi64(length, eight));
        shift = _mm256_sub_epi64(bits, _mm256_slli_epi64(least, 3));
        head = _mm256_sllv_epi64(words_avx2(f->data, start), shift);
        tail = longer ? _mm256_sllv_epi64(words_avx2(f->data, rest), shift) : head;
        if (!longer)
            head = _mm256_or_si256(head, least);
        for (k = 0; k < names; k++) {
            __m256i same = _mm256_cmpeq_epi64(head, heads[k]);
            if (longer)
                same = _mm256_and_si256(_mm256_and_si256(same, _mm256_cmpeq_epi64(length, lengths[k])),
                                        _mm256_cmpeq_epi64(tail, tails[k]));
            masks[k] = _mm256_movemask_pd(_mm256_castsi256_pd(same));
            any |= masks[k];
        }
        if (!rare || any)
            for (k = 0; k < names; k++) {
                __m128i packed = _mm_shuffle_epi8(row, _mm_load_si128((const __m128i*)few_packed[masks[k]]));
                _mm_storeu_si128((__m128i*)ends[k], packed);
                ends[k] += __builtin_popcount((unsigned)masks[k]);
                FEW_ALONE(ends[k]);
            }
        row = _mm_add_epi32(row, _mm_set1_epi32(4));
    }
    for (k = 0; k < names; k++)
        f->ends[k] = ends[k];
    return i;
}

FEW_INLINE FEW_AVX512 int64_t pass_avx512(Few* f, int64_t first, int64_t stop, int wide, int longer, int rare, int names)
{
    const int32_t* narrow = (const int32_t*)f->offsets;
    const int64_t* large = (const int64_t*)f->offsets;
    const __m512i limit = _mm512_set1_epi64(f->limit), eight = _mm512_set1_epi64(8), bits = _mm512_set1_epi64(64);
    __m256i row = _mm256_add_epi32(_mm256_set1_epi32((int32_t)first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m512i heads[FEW_NAMES], tails[FEW_NAMES], lengths[FEW_NAMES];
    uint32_t* ends[FEW_NAMES];
    int64_t i;
    int k;
    for (k = 0; k < names; k++) {
        heads[k] = _mm512_set1_epi64((int64_t)f->heads[k]);
        tails[k] = _mm512_set1_epi64((int64_t)f->tails[k]);
        lengths[k] = _mm512_set1_epi64(f->lengths[k]);
        ends[k] = f->ends[k];
    }
    for (i = first; i + 8 <= stop; i += 8) {
        __m512i start, end, length, rest, least, shift, head, tail;
        __mmask8 masks[FEW_NAMES], any = 0, wrong;
        if (wide) {
            start = _mm512_loadu_si512(large + i);
            end = _mm512_loadu_si512(large + i + 1);
        } else {
            start = _mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i*)(narrow + i)));
            end = _mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i*)(narrow + i + 1)));
        }
        wrong = _mm512_cmpgt_epu64_mask(start, limit);
        length = _mm512_sub_epi64(end, start);
        rest = start;
        if (longer) {
            rest = _mm512_mask_sub_epi64(start, _mm512_cmpgt_epi64_mask(length, eight), end, eight);
            wrong |= _mm512_cmpgt_epu64_mask(rest, limit);
        }
        if (wrong)
            break;
        least = _mm512_min_epu64(length, eight);
        shift = _mm512_sub_epi64(bits, _mm512_slli_epi64(least, 3));
        head = _mm512_sllv_epi64(_mm512_i64gather_epi64(start, f->data, 1), shift);
        tail = longer ? _mm512_sllv_epi64(_mm512_i64gather_epi64(rest, f->data, 1), shift) : head;
        if (!longer)
            head = _mm512_or_si512(head, least);
        for (k = 0; k < names; k++) {
            masks[k] = _mm512_cmpeq_epi64_mask(head, heads[k]);
            if (longer) {
                masks[k] = _mm512_mask_cmpeq_epi64_mask(masks[k], length, lengths[k]);
                masks[k] = _mm512_mask_cmpeq_epi64_mask(masks[k], tail, tails[k]);
            }
            any |= masks[k];
        }
        if (!rare || any)
            for (k = 0; k < names; k++) {
                _mm256_storeu_si256((__m256i*)ends[k], _mm256_maskz_compress_epi32(masks[k], row));
                ends[k] += __builtin_popcount(masks[k]);
                FEW_ALONE(ends[k]);
            }
        row = _mm256_add_epi32(row, _mm256_set1_epi32(8));
    }
    for (k = 0; k < names; k++)
        f->ends[k] = ends[k];
    return i;
}

/* A loop of its own for up to four names, so that what it compares with stays in registers. */
#define FEW_PASSES(pass, target)                                                                        \
    FEW_INLINE target int64_t pass##_named(Few* f, int64_t first, int64_t stop, int wide, int longer, int rare) \
    {                                                                                                   \
        switch (f->names) {                                                                             \
        case 1: return pass(f, first, stop, wide, longer, rare, 1);                                     \
        case 2: return pass(f, first, stop, wide, longer, rare, 2);                                     \
        case 3: return pass(f, first, stop, wide, longer, rare, 3);                                     \
        case 4: return pass(f, first, stop, wide, longer, rare, 4);                                     \
        default: return pass(f, first, stop, wide, longer, rare, f->names);                             \
        }                                                                                               \
    }                                                                                                   \
    static target int64_t pass##_any(Few* f, int64_t first, int64_t stop, int wide, int longer, int rare) \
    {                                                                                                   \
        if (wide)                                                                                       \
            return longer ? pass(f, first, stop, 1, 1, 1, f->names) : pass(f, first, stop, 1, 0, 1, f->names); \
        if (longer)                                                                                     \
            return rare ? pass##_named(f, first, stop, 0, 1, 1) : pass##_named(f, first, stop, 0, 1, 0); \
        return rare ? pass##_named(f, first, stop, 0, 0, 1) : pass##_named(f, first, stop, 0, 0, 0);    \
    }

FEW_PASSES(pass_avx2, FEW_AVX2)
FEW_PASSES(pass_avx512, FEW_AVX512)

/* Rows that one step takes; 0: this processor has no such instructions.  `most` lets a test ask for less. */
static int few_width(int most)
{
    __builtin_cpu_init();
    if (most >= 8 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        return 8;
    return most >= 4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") ? 4 : 0;
}

/* The row at which the pass stopped: the first of a group that it cannot take. */
static int64_t few_pass(Few* f, int64_t first, int64_t stop, int width, int wide, int rare)
{
    if (f->limit < 0)
        return first;
    return width == 8 ? pass_avx512_any(f, first, stop, wide, f->longer, rare)
                      : pass_avx2_any(f, first, stop, wide, f->longer, rare);
}

#else

static int few_width(int most) { (void)most; return 0; }

static int64_t few_pass(Few* f, int64_t first, int64_t stop, int width, int wide, int rare)
{
    (void)f, (void)stop, (void)width, (void)wide, (void)rare;
    return first;
}

#endif
#endif

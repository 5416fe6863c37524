/* Hashes of keys: whole numbers, and bytes as they lie in Arrow buffers. Seeded, so that nobody can choose keys that meet. */
#ifndef QUERCUS_HASHES_H
#define QUERCUS_HASHES_H

#include <stdint.h>
#include <string.h>

static inline uint64_t hash_mix(uint64_t a, uint64_t b) {
    __uint128_t product = (__uint128_t) a * b;
    return (uint64_t) product ^ (uint64_t) (product >> 64);
}

static inline uint64_t hash_number(int64_t value, uint64_t seed) {
    return hash_mix((uint64_t) value ^ seed, UINT64_C(0x9E3779B97F4A7C15) ^ (seed << 1));
}

static inline uint64_t hash_word(const uint8_t* at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

static inline uint64_t hash_half(const uint8_t* at) {
    uint32_t half;
    memcpy(&half, at, 4);
    return half;
}

static inline uint64_t hash_bytes(const uint8_t* at, int64_t size, uint64_t seed) {
    uint64_t first, last, hash = seed ^ ((uint64_t) size * UINT64_C(0xA0761D6478BD642F));
    int64_t left = size;
    while (left > 16) {
        hash = hash_mix(hash_word(at) ^ UINT64_C(0xE7037ED1A0B428DB), hash_word(at + 8) ^ hash);
        at += 16;
        left -= 16;
    }
    if (left >= 8) {            /* the two words may overlap */
        first = hash_word(at);
        last = hash_word(at + left - 8);
    } else if (left >= 4) {
        first = hash_half(at);
        last = hash_half(at + left - 4);
    } else if (left > 0) {
        first = ((uint64_t) at[0] << 16) | ((uint64_t) at[left >> 1] << 8) | at[left - 1];
        last = 0;
    } else {
        first = last = 0;
    }
    return hash_mix(first ^ UINT64_C(0x8EBC6AF09C88C6E3) ^ seed, last ^ hash);
}

static inline int same_bytes(const uint8_t* one, const uint8_t* other, int64_t size) {
    if (size >= 8 && size <= 16)        /* most keys */
        return ((hash_word(one) ^ hash_word(other)) | (hash_word(one + size - 8) ^ hash_word(other + size - 8))) == 0;
    return memcmp(one, other, (size_t) size) == 0;
}

static inline void copy_bytes(uint8_t* to, const uint8_t* at, int64_t size) {
    if (size >= 8 && size <= 16) {
        uint64_t first = hash_word(at), last = hash_word(at + size - 8);
        memcpy(to, &first, 8);
        memcpy(to + size - 8, &last, 8);
    } else if (size > 0)
        memcpy(to, at, (size_t) size);
}

#endif

/* Whether values ascend.  Before SSE4.2 there is no comparison of several 64-bit integers at once: where compiler and
   system can choose a function when it is first called, it is compiled for newer processors as well. */

#ifndef QUERCUS_SORTED_H
#define QUERCUS_SORTED_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_NEWER __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_NEWER
#endif

FOR_NEWER static int ascends(const int64_t* values, ptrdiff_t n)
{
    ptrdiff_t i = 1;
    while (i < n) {
        ptrdiff_t stop = n - i > 4096 ? i + 4096 : n;
        int64_t back = 0;
        for (; i < stop; i++)
            back |= values[i] < values[i - 1];
        if (back)
            return 0;
    }
    return 1;
}

#endif

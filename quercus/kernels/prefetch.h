/* Memory that is needed soon is sent for. A function that does nothing else has no effect that a compiler knows of: GCC
   leaves calls of it out. An empty statement that it must not touch keeps them. */
#ifndef QUERCUS_PREFETCH_H
#define QUERCUS_PREFETCH_H

#if defined(__GNUC__) || defined(__clang__)
static inline void prefetch(const void* at) {
    __builtin_prefetch(at);
    __asm__ volatile("");
}
#else
#define prefetch(at) ((void) (at))
#endif

#endif

/* Memory for large results.  A fresh page costs several times what writing to it does, so that blocks of results that
   nobody holds any more are kept for the next ones, up to POOL_MOST bytes in all.  Large ones are lent to the system
   meanwhile, up to POOL_LENT: it takes their pages when it needs memory, and until then they are not fresh.

   Any thread may take and give.  Who finds the pool busy goes on without it: nobody waits, also not after a fork. */

#ifndef QUERCUS_POOL_H
#define QUERCUS_POOL_H

#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define POOL_BLOCKS 64
#define POOL_LEAST ((size_t)1 << 18)    /* what is smaller is malloc's */
#define POOL_MOST ((size_t)1 << 26)
#define POOL_LENT ((size_t)1 << 30)
#define POOL_LARGE ((size_t)1 << 22)    /* what is as large has pages of its own, huge ones if there are any */
#define POOL_HUGE ((size_t)1 << 21)     /* a huge page: one page fault for 2 MiB instead of one for 4 KiB */

#define POOL_SMALL ((size_t)1 << 13)    /* where a result begins: what a stream takes and gives with every push */
#define POOL_SMALLS 16

typedef struct {
    void* at;
    size_t size;
    int lent;
} PoolBlock;

static struct {
    PoolBlock blocks[POOL_BLOCKS];      /* the oldest first */
    void* small[POOL_SMALLS];
    int count;
    int smalls;
    size_t size;                        /* of those that are not lent */
    size_t lent;
    char busy;
} pool;

static int pool_enter(void) { return !__atomic_test_and_set(&pool.busy, __ATOMIC_ACQUIRE); }
static void pool_leave(void) { __atomic_clear(&pool.busy, __ATOMIC_RELEASE); }

static PoolBlock pool_remove(int i)
{
    PoolBlock block = pool.blocks[i];
    memmove(pool.blocks + i, pool.blocks + i + 1, (size_t)(pool.count - i - 1) * sizeof(PoolBlock));
    pool.count--;
    *(block.lent ? &pool.lent : &pool.size) -= block.size;
    return block;
}

/* Whether the system may take the pages of a block until it is written to again. */
static int pool_lend(void* at, size_t size)
{
#if defined(__linux__) && defined(MADV_FREE)
    return size >= POOL_LARGE && size <= POOL_LENT && madvise(at, size, MADV_FREE) == 0;
#else
    (void)at;
    (void)size;
    return 0;
#endif
}

/* The oldest block of a kind; if there is none, the oldest. */
static int pool_oldest(int lent)
{
    int i;
    for (i = 0; i < pool.count; i++)
        if (pool.blocks[i].lent == lent)
            return i;
    return 0;
}

/* A block of at least *size bytes, which becomes its size; NULL: no memory. */
static void* pool_take(size_t* size)
{
    void* at = NULL;
    int i, best = -1;
    if (*size < POOL_LEAST) {
        if (*size == POOL_SMALL && pool_enter()) {
            if (pool.smalls)
                at = pool.small[--pool.smalls];
            pool_leave();
        }
        return at != NULL ? at : malloc(*size);
    }
    if (pool_enter()) {
        for (i = 0; i < pool.count; i++)
            if (pool.blocks[i].size >= *size && pool.blocks[i].size / 4 <= *size
                && (best < 0 || pool.blocks[i].size < pool.blocks[best].size))
                best = i;
        if (best >= 0) {
            PoolBlock block = pool_remove(best);
            at = block.at;
            *size = block.size;
        }
        pool_leave();
    }
    if (at != NULL)
        return at;
    if (*size < POOL_LARGE)
        return malloc(*size);
    *size = (*size + POOL_HUGE - 1) & ~(POOL_HUGE - 1);
    if (posix_memalign(&at, POOL_HUGE, *size) != 0)
        return NULL;
#ifdef __linux__
    madvise(at, *size, MADV_HUGEPAGE);
#endif
    return at;
}

/* A block that pool_take gave, or NULL; the oldest make room for it. */
static void pool_give(void* at, size_t size)
{
    PoolBlock old[POOL_BLOCKS];
    int n = 0;
    if (at != NULL && size == POOL_SMALL && pool_enter()) {
        if (pool.smalls < POOL_SMALLS) {
            pool.small[pool.smalls++] = at;
            at = NULL;
        }
        pool_leave();
    }
    if (at != NULL && size >= POOL_LEAST) {
        int lent = pool_lend(at, size);
        size_t* all = lent ? &pool.lent : &pool.size;
        size_t most = lent ? POOL_LENT : POOL_MOST;
        if (size <= most && pool_enter()) {
            while (pool.count == POOL_BLOCKS || *all + size > most)
                old[n++] = pool_remove(pool_oldest(lent));
            pool.blocks[pool.count].at = at;
            pool.blocks[pool.count].lent = lent;
            pool.blocks[pool.count++].size = size;
            *all += size;
            pool_leave();
            at = NULL;
        }
    }
    while (n)
        free(old[--n].at);
    free(at);
}

static size_t pool_kept(void) { return pool.size + pool.lent; }

#endif

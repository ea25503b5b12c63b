/*
 * Who may touch what regions keep: one thread at a time.
 *
 * Python code enters regions with the GIL, so that one thread at a time does, and taking a lock for that
 * would cost as much as the region. C code (include/fathom.h) may have no GIL. So: as long as only
 * those with the GIL came, they say that they are inside by a plain store; the first one without the GIL asks
 * the kernel to bring all processors up to date (membarrier), waits until nobody is inside, and from
 * then on everybody takes a lock.
 *
 * Nobody who holds it runs Python code, or waits for the GIL. Where the kernel cannot do that, those without
 * the GIL get nothing.
 */
#ifndef FM_AGENT_REGION_ALONE_H
#define FM_AGENT_REGION_ALONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fm_regions_alone {
    uint32_t inside; /* somebody with the GIL is, without the lock */
    uint32_t shared; /* everybody takes the lock. Never goes back in this process */
};
extern struct fm_regions_alone fm_regions_alone;

void fm_regions_lock(void);
void fm_regions_unlock(void);

/* With the GIL. */
static inline void fm_regions_hold(void)
{
    __atomic_store_n(&fm_regions_alone.inside, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(__atomic_load_n(&fm_regions_alone.shared, __ATOMIC_ACQUIRE), 0))
        fm_regions_lock();
}

static inline void fm_regions_release(void)
{
    if (__builtin_expect(fm_regions_alone.inside, 1))
        __atomic_store_n(&fm_regions_alone.inside, 0, __ATOMIC_RELEASE);
    else
        fm_regions_unlock();
}

/* Without the GIL; false: it cannot be had. Ended by fm_regions_unlock(). */
bool fm_regions_hold_foreign(void);

/* In a child of fork, where no other thread is: nobody holds it. */
void fm_regions_alone_forked(void);

/* Memory for what regions keep, never given back; NULL if there is none. Held. */
void *fm_regions_alloc(size_t bytes);

#endif

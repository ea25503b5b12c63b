/* One thread at a time; see alone.h. */
#include "target/agent/regions/alone.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLAB_BYTES ((size_t)64 * 1024)

struct fm_regions_alone fm_regions_alone;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t settled; /* nobody can be inside without the lock any more */

/* Who said that it is inside is not: it waits for the lock, as everybody. */
void fm_regions_lock(void)
{
    __atomic_store_n(&fm_regions_alone.inside, 0, __ATOMIC_RELEASE);
    pthread_mutex_lock(&lock);
}

void fm_regions_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* Have all processors seen `shared` before the next look at `inside`? */
static bool settle(void)
{
    __atomic_store_n(&fm_regions_alone.shared, 1, __ATOMIC_SEQ_CST);
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0 ||
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0)
        return false;
    while (__atomic_load_n(&fm_regions_alone.inside, __ATOMIC_ACQUIRE))
        sched_yield();
    __atomic_store_n(&settled, 1, __ATOMIC_RELEASE);
    return true;
}

bool fm_regions_hold_foreign(void)
{
    if (!__atomic_load_n(&settled, __ATOMIC_ACQUIRE) && !settle())
        return false;
    pthread_mutex_lock(&lock);
    return true;
}

void fm_regions_alone_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    fm_regions_alone.inside = 0;
}

void *fm_regions_alloc(size_t bytes)
{
    static char *slab, *slab_end;
    bytes = (bytes + 15) & ~(size_t)15;
    if ((size_t)(slab_end - slab) < bytes) {
        slab = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (slab == MAP_FAILED)
            slab = NULL;
        slab_end = slab ? slab + SLAB_BYTES : NULL;
        if (!slab)
            return NULL;
    }
    void *p = slab;
    slab += bytes;
    return p;
}

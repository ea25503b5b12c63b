/* What the heap library has for itself: memory, a lock, its one piece of state; see heap.h. */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "target/heap/heap.h"

static uint32_t nowhere;
struct fm_heap_state fm_heap = { .here = &nowhere };
FM_HEAP_TLS struct fm_heap_self *fm_heap_self;
FM_HEAP_TLS int fm_heap_busy;

void *fm_heap_mmap(void *address, size_t bytes, int protection, int flags, int fd, long at)
{
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, at); /* NOLINT */
}

void *fm_heap_map(size_t bytes)
{
    int saved_errno = errno;
    void *p = fm_heap_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    errno = saved_errno;
    if (p == MAP_FAILED)
        return NULL;
    __atomic_add_fetch(&fm_heap.header->own_bytes, bytes, __ATOMIC_RELAXED);
    return p;
}

void fm_heap_unmap(void *memory, size_t bytes)
{
    int saved_errno = errno;
    syscall(SYS_munmap, memory, bytes);
    errno = saved_errno;
}

void fm_heap_nap(bool instant)
{
    int saved_errno = errno;
    struct timespec some = { .tv_nsec = 50000 };
    if (instant)
        sched_yield();
    else
        nanosleep(&some, NULL);
    errno = saved_errno;
}

/* Others hold it for microseconds; but on one processor they need it to go on. */
void fm_heap_lock_take_slowly(fm_heap_lock *lock)
{
    for (unsigned spins = 0;; spins++) {
        if (!__atomic_load_n(&lock->held, __ATOMIC_RELAXED) &&
            !__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE))
            return;
        if (spins % 64 == 63)
            fm_heap_nap(spins < 64 * 256);
    }
}

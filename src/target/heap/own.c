/* What the heap library has for itself: memory, a lock, its one piece of state; see heap.h. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "target/heap/heap.h"

#define FIRST_ROOM 256

static uint32_t nowhere[2];
struct fm_heap_state fm_heap = { .here = nowhere };
FM_HEAP_TLS struct fm_heap_self *fm_heap_self;
FM_HEAP_TLS int fm_heap_busy;

void *fm_heap_mmap(void *address, size_t bytes, int protection, int flags, int fd, long at)
{
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, at); /* NOLINT */
}

/* Where our memory is, and how much. Mappings that touch are one, as the kernel has them; what finds no
 * place is not told. It is kept here, since a child of fork has all of it, and another store. */
static struct {
    struct fm_heap_own_range all[FM_HEAP_OWN_RANGES];
    uint64_t bytes;
    fm_heap_lock lock;
} own;

static void count(uint64_t bytes)
{
    uint64_t sum = __atomic_add_fetch(&own.bytes, bytes, __ATOMIC_RELAXED);
    if (fm_heap.header)
        __atomic_store_n(&fm_heap.header->own_bytes, sum, __ATOMIC_RELAXED);
}

static void own_tell(int i)
{
    if (fm_heap.header)
        fm_heap.header->own[i] = own.all[i];
}

static void own_add(uintptr_t start, uintptr_t end)
{
    int found = -1;
    fm_heap_lock_take(&own.lock);
    for (int i = 0; i < FM_HEAP_OWN_RANGES && found < 0; i++)
        if (own.all[i].start && (own.all[i].start == end || own.all[i].end == start))
            found = i;
    for (int i = 0; i < FM_HEAP_OWN_RANGES && found < 0; i++)
        if (!own.all[i].start)
            found = i;
    if (found >= 0) {
        struct fm_heap_own_range *range = &own.all[found];
        if (!range->start)
            *range = (struct fm_heap_own_range){ start, end };
        else if (range->start == end)
            range->start = start;
        else
            range->end = end;
        own_tell(found);
    }
    fm_heap_lock_give(&own.lock);
}

/* What is behind a hole becomes a range of its own, or is not told. */
static void own_remove(uintptr_t start, uintptr_t end)
{
    uintptr_t behind = 0;
    fm_heap_lock_take(&own.lock);
    for (int i = 0; i < FM_HEAP_OWN_RANGES; i++) {
        struct fm_heap_own_range *range = &own.all[i];
        if (start < range->start || end > range->end || !range->start)
            continue;
        if (range->start == start) {
            range->start = end < range->end ? end : 0;
        } else {
            behind = end < range->end ? range->end : 0;
            range->end = start;
        }
        own_tell(i);
        break;
    }
    fm_heap_lock_give(&own.lock);
    if (behind)
        own_add(end, behind);
}

void fm_heap_own_retell(void)
{
    own.lock = (fm_heap_lock){ 0 }; /* a thread that is not here may have had it */
    for (int i = 0; i < FM_HEAP_OWN_RANGES; i++)
        own_tell(i);
    count(0);
}

void *fm_heap_map(size_t bytes)
{
    int saved_errno = errno;
    void *p = fm_heap_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    errno = saved_errno;
    if (p == MAP_FAILED)
        return NULL;
    count(bytes);
    own_add((uintptr_t)p, (uintptr_t)p + ((bytes + 4095) & ~(size_t)4095));
    return p;
}

void fm_heap_unmap(void *memory, size_t bytes)
{
    int saved_errno = errno;
    own_remove((uintptr_t)memory, (uintptr_t)memory + ((bytes + 4095) & ~(size_t)4095));
    count(-(uint64_t)bytes);
    syscall(SYS_munmap, memory, bytes);
    errno = saved_errno;
}

void *fm_heap_enlarged(void *array, size_t used, size_t *room, size_t each_bytes)
{
    size_t larger = *room ? *room * 2 : FIRST_ROOM;
    void *copy = fm_heap_map(larger * each_bytes);
    if (copy && *room) {
        memcpy(copy, array, used * each_bytes);
        fm_heap_unmap(array, *room * each_bytes);
    }
    if (copy)
        *room = larger;
    return copy;
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

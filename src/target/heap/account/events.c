/* Events for the launcher; see events.h. */
#include "target/heap/account/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "target/heap/store.h"

#define PAUSE_NS 200000

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* "…/PID.N.heap" → "…/PID.N.events" */
static bool make_path(char *path, size_t room)
{
    const char *store = fm_heap_store_path();
    size_t len = strlen(store), suffix = strlen(FM_HEAP_SUFFIX);
    if (len < suffix || len - suffix + sizeof FM_EVENTS_SUFFIX > room)
        return false;
    memcpy(path, store, len - suffix);
    memcpy(path + len - suffix, FM_EVENTS_SUFFIX, sizeof FM_EVENTS_SUFFIX);
    return true;
}

void fm_events_open(void)
{
    char path[640];
    int saved_errno = errno;
    fm_heap.events = NULL; /* that of the parent is its own; it stays mapped, untouched */
    if (!fm_heap.every || !make_path(path, sizeof path))
        return;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    void *p = MAP_FAILED;
    if (fd >= 0 && posix_fallocate(fd, 0, FM_EVENTS_BYTES) == 0)
        p = fm_heap_mmap(NULL, FM_EVENTS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (p != MAP_FAILED) {
        struct fm_events_header *ring = p;
        ring->version = FM_EVENTS_VERSION;
        memcpy(ring->magic, FM_EVENTS_MAGIC, sizeof ring->magic);
        fm_heap.events = ring;
    }
    errno = saved_errno;
}

/* Until the launcher has made room. False: it is closed. */
static bool await(struct fm_events_header *ring, uint64_t number)
{
    uint64_t since_ns = 0, seen = 0;
    __atomic_add_fetch(&ring->waits, 1, __ATOMIC_RELAXED);
    for (;;) {
        uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&ring->closed, __ATOMIC_RELAXED))
            return false;
        if (number - tail < FM_EVENTS_SLOTS)
            return true;
        uint64_t now = now_ns();
        if (!since_ns || tail != seen) {
            since_ns = now;
            seen = tail;
        }
        if (now - since_ns > FM_EVENTS_PATIENCE_NS)
            __atomic_store_n(&ring->closed, 1, __ATOMIC_RELAXED);
        /* The function of that name is a place where threads are cancelled. */
        syscall(SYS_nanosleep, &(struct timespec){ 0, PAUSE_NS }, NULL);
    }
}

void fm_events_add(const struct fm_heap_account *account, uint64_t bytes, enum fm_event_kind kind)
{
    struct fm_events_header *ring = fm_heap.events;
    int saved_errno = errno;
    if (FM_UNLIKELY(__atomic_load_n(&ring->closed, __ATOMIC_RELAXED))) {
        __atomic_add_fetch(&ring->lost, 1, __ATOMIC_RELAXED);
        return;
    }
    uint64_t number = __atomic_fetch_add(&ring->head, 1, __ATOMIC_RELAXED);
    uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
    if (FM_UNLIKELY(number - tail >= FM_EVENTS_SLOTS) && !await(ring, number)) {
        __atomic_add_fetch(&ring->lost, 1, __ATOMIC_RELAXED);
        errno = saved_errno;
        return;
    }
    uint64_t us = (now_ns() - fm_heap.header->start_ns) / 1000;
    struct fm_event *slots = (struct fm_event *)((char *)ring + FM_EVENTS_AT);
    struct fm_event *slot = &slots[number % FM_EVENTS_SLOTS];
    struct fm_event e = fm_event_make(number, us, kind, fm_heap_store_number(account), bytes);
    __atomic_store_n(&slot->when, e.when, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->what, e.what, __ATOMIC_RELEASE);
    errno = saved_errno;
}

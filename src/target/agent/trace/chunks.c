/* The chunks of a process's trace; see chunks.h. */
#include "target/agent/trace/chunks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define FIRST_CHUNKS     2u
#define PRIVATE_CHUNKS   4u
#define PATIENCE_NS      10000000000u /* for a launcher that answers nothing */
#define LOOK_NS          100000000    /* between two looks whether it closed the trace */
#define LEAST_RATE_TICKS (1u << 20)   /* fewer say nothing about the length of a tick */

static struct fm_trace_chunk *descriptors(const struct fm_trace_chunks *chunks)
{
    return (struct fm_trace_chunk *)((char *)chunks->header + FM_TRACE_DESCRIPTORS_AT);
}

static uint8_t *bytes_of(const struct fm_trace_chunks *chunks, const struct fm_trace_chunk *chunk)
{
    size_t index = (size_t)(chunk - descriptors(chunks));
    return (uint8_t *)chunks->header + FM_TRACE_CHUNKS_AT + index * FM_TRACE_CHUNK_BYTES;
}

/* ---- the file ---------------------------------------------------------------------------- */

static int allocate(int fd, uint64_t at, uint64_t bytes)
{
    int rc;
    do
        rc = posix_fallocate(fd, (off_t)at, (off_t)bytes);
    while (rc == EINTR);
    errno = rc;
    return rc ? -1 : 0;
}

/* How many chunks a file may have (`ulimit -f`): the kernel would send SIGXFSZ beyond. */
static uint32_t most_chunks(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= FM_TRACE_FILE_BYTES)
        return FM_TRACE_CHUNKS;
    if (limit.rlim_cur < FM_TRACE_CHUNKS_AT)
        return 0;
    return (uint32_t)((limit.rlim_cur - FM_TRACE_CHUNKS_AT) / FM_TRACE_CHUNK_BYTES);
}

static void *map_new_file(struct fm_trace_chunks *chunks)
{
    chunks->most = most_chunks();
    if (chunks->most < FIRST_CHUNKS) {
        errno = EFBIG;
        return MAP_FAILED;
    }
    int fd = open(chunks->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return MAP_FAILED;
    uint64_t bytes = FM_TRACE_CHUNKS_AT + (uint64_t)chunks->most * FM_TRACE_CHUNK_BYTES;
    void *p = MAP_FAILED;
    if (ftruncate(fd, (off_t)bytes) == 0 &&
        allocate(fd, 0, FM_TRACE_CHUNKS_AT + FIRST_CHUNKS * FM_TRACE_CHUNK_BYTES) == 0)
        p = mmap(NULL, FM_TRACE_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int saved_errno = errno;
    close(fd);
    if (p == MAP_FAILED)
        unlink(chunks->path);
    errno = saved_errno;
    return p;
}

static bool name_file(struct fm_trace_chunks *chunks, const char *live)
{
    size_t stem = strlen(live);
    if (stem < strlen(FM_LIVE_SUFFIX))
        return false;
    stem -= strlen(FM_LIVE_SUFFIX);
    int len =
        snprintf(chunks->path, sizeof chunks->path, "%.*s%s", (int)stem, live, FM_TRACE_SUFFIX);
    return len > 0 && (size_t)len < sizeof chunks->path;
}

int fm_trace_chunks_open(struct fm_trace_chunks *chunks, const char *live, bool drops)
{
    *chunks = (struct fm_trace_chunks){ .most = PRIVATE_CHUNKS };
    if (live && !name_file(chunks, live)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    void *p = live ? map_new_file(chunks)
                   : mmap(NULL, FM_TRACE_FILE_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return -1;
    struct fm_trace_header *header = p;
    struct fm_clock_pair start = fm_clock_pair_now();
    chunks->start_ticks = start.ticks;
    chunks->start_ns = start.ns;
    header->version = FM_TRACE_VERSION;
    header->shift = FM_TRACE_SHIFT;
    header->chunks = live ? FIRST_CHUNKS : PRIVATE_CHUNKS;
    header->chunk_bytes = FM_TRACE_CHUNK_BYTES;
    header->drops = drops;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    memcpy(header->magic, FM_TRACE_MAGIC, sizeof header->magic);
    chunks->header = header;
    return 0;
}

void fm_trace_chunks_close(struct fm_trace_chunks *chunks)
{
    if (chunks->header)
        munmap(chunks->header, FM_TRACE_FILE_BYTES);
    *chunks = (struct fm_trace_chunks){ 0 };
}

/* ---- taking and handing over ------------------------------------------------------------- */

static struct fm_trace_chunk *find_free(const struct fm_trace_chunks *chunks)
{
    struct fm_trace_chunk *all = descriptors(chunks);
    for (uint32_t i = 0; i < chunks->header->chunks; i++) {
        uint32_t free = FM_TRACE_CHUNK_FREE;
        if (__atomic_load_n(&all[i].state, __ATOMIC_RELAXED) == free &&
            __atomic_compare_exchange_n(&all[i].state, &free, FM_TRACE_CHUNK_FILLING, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return &all[i];
    }
    return NULL;
}

/* Room in the file for one more. Its pages are made now, not one by one in the middle of events. */
static struct fm_trace_chunk *add_chunk(struct fm_trace_chunks *chunks)
{
    uint32_t count = chunks->header->chunks;
    int fd = count < chunks->most ? open(chunks->path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return NULL;
    int rc = allocate(fd, FM_TRACE_CHUNKS_AT + (uint64_t)count * FM_TRACE_CHUNK_BYTES,
                      FM_TRACE_CHUNK_BYTES);
    close(fd);
    if (rc < 0)
        return NULL;
    struct fm_trace_chunk *chunk = &descriptors(chunks)[count];
#ifdef MADV_POPULATE_WRITE
    madvise(bytes_of(chunks, chunk), FM_TRACE_CHUNK_BYTES, MADV_POPULATE_WRITE);
#endif
    chunk->state = FM_TRACE_CHUNK_FILLING;
    __atomic_store_n(&chunks->header->chunks, count + 1, __ATOMIC_RELEASE);
    return chunk;
}

/* CLOCK_MONOTONIC when the counter stood at `ticks`, not long ago. */
static uint64_t ns_at(const struct fm_trace_chunks *chunks, uint64_t ticks)
{
    struct fm_clock_pair now = fm_clock_pair_now();
    uint64_t elapsed = now.ticks - chunks->start_ticks;
    if (elapsed < LEAST_RATE_TICKS || ticks > now.ticks)
        return now.ns;
    double rate = (double)(now.ns - chunks->start_ns) / (double)elapsed;
    return now.ns - (uint64_t)((double)(now.ticks - ticks) * rate);
}

bool fm_trace_chunks_take(struct fm_trace_chunks *chunks, struct fm_trace_writer *w)
{
    int saved_errno = errno;
    struct fm_trace_chunk *chunk = find_free(chunks);
    if (!chunk && chunks->path[0])
        chunk = add_chunk(chunks);
    errno = saved_errno;
    if (!chunk)
        return false;
    bool first = w->sequence == 0;
    if (first)
        w->last = fm_clock_ticks();
    chunk->thread = w->number;
    chunk->tid = w->tid;
    chunk->last = 0;
    chunk->sequence = w->sequence++;
    chunk->ticks = w->last;
    chunk->ns = ns_at(chunks, w->last);
    w->chunk = chunk;
    w->after_time = NULL;
    w->begin = w->cursor = bytes_of(chunks, chunk);
    w->end = w->room = w->begin + FM_TRACE_CHUNK_BYTES - FM_TRACE_MARGIN;
    chunks->given_up = false;
    if (first)
        fm_trace_put_escape(w, w->last, FM_TRACE_TIME,
                            (uint32_t[]){ (uint32_t)w->last, (uint32_t)(w->last >> 32) }, 2);
    return true;
}

static void wake(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void fm_trace_chunks_hand_over(struct fm_trace_chunks *chunks, struct fm_trace_writer *w, bool last)
{
    struct fm_trace_chunk *chunk = w->chunk;
    struct fm_trace_header *header = chunks->header;
    if (!chunk)
        return;
    if (!chunks->path[0]) {
        memset(w->begin, 0, (size_t)(w->cursor - w->begin));
        chunk->state = FM_TRACE_CHUNK_FREE;
    } else {
        chunk->last = last;
        __atomic_store_n(&chunk->state, FM_TRACE_CHUNK_FULL, __ATOMIC_RELEASE);
        __atomic_fetch_add(&header->handed, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&header->launcher_waits, __ATOMIC_SEQ_CST)) {
            int saved_errno = errno;
            wake(&header->handed);
            errno = saved_errno;
        }
    }
    w->chunk = NULL;
    w->cursor = w->room = w->begin = w->end = NULL;
}

/* ---- waiting ----------------------------------------------------------------------------- */

bool fm_trace_chunks_any_full(const struct fm_trace_chunks *chunks)
{
    const struct fm_trace_chunk *all = descriptors(chunks);
    for (uint32_t i = 0; i < chunks->header->chunks; i++)
        if (__atomic_load_n(&all[i].state, __ATOMIC_RELAXED) == FM_TRACE_CHUNK_FULL)
            return true;
    return false;
}

static bool any_free(const struct fm_trace_chunks *chunks)
{
    const struct fm_trace_chunk *all = descriptors(chunks);
    for (uint32_t i = 0; i < chunks->header->chunks; i++)
        if (__atomic_load_n(&all[i].state, __ATOMIC_SEQ_CST) == FM_TRACE_CHUNK_FREE)
            return true;
    return false;
}

bool fm_trace_chunks_wait(struct fm_trace_chunks *chunks)
{
    struct fm_trace_header *header = chunks->header;
    int saved_errno = errno;
    uint64_t until = fm_clock_ns() + PATIENCE_NS;
    __atomic_fetch_add(&header->threads_wait, 1, __ATOMIC_SEQ_CST);
    bool freed = false, closed = false;
    while (!freed && !closed && fm_clock_ns() < until) {
        uint32_t seen = __atomic_load_n(&header->freed, __ATOMIC_SEQ_CST);
        freed = any_free(chunks);
        closed = __atomic_load_n(&header->closed, __ATOMIC_ACQUIRE);
        struct timespec look = { 0, LOOK_NS };
        if (!freed && !closed)
            syscall(SYS_futex, &header->freed, FUTEX_WAIT, seen, &look, NULL, 0);
    }
    __atomic_fetch_sub(&header->threads_wait, 1, __ATOMIC_SEQ_CST);
    chunks->given_up = !freed;
    errno = saved_errno;
    return freed;
}

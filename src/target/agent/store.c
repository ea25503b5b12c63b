/* The live store of one collector; see store.h and capture/live.h. */
#include "target/agent/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

#define FIRST_CHUNK_BYTES   (64u * 1024)
#define LARGEST_CHUNK_BYTES (8u * 1024 * 1024)
#define LEAST_FILE_BYTES    (FM_LIVE_PAGE + 4 * FIRST_CHUNK_BYTES) /* with less, all would be lost */
#define MAX_STORES_PER_PID  10000
#define REFUSALS            65536 /* requests refused at once after one that failed: asking is not free */

static uint32_t round_to_page(uint64_t bytes)
{
    return (uint32_t)((bytes + FM_LIVE_PAGE - 1) / FM_LIVE_PAGE * FM_LIVE_PAGE);
}

/* May a file be that large? Beyond the limit (`ulimit -f`) the kernel would not only refuse: it would
 * send SIGXFSZ, by which a program that does not expect it ends. */
static bool is_within_limit(uint64_t file_bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           file_bytes <= limit.rlim_cur;
}

/* Append `bytes` to a file and map them. The space is allocated now, so that a full file system
 * is refused here and can never turn into a SIGBUS in the middle of the program. */
static void *map_file_bytes(const char *path, int flags, uint64_t *file_bytes, uint32_t bytes)
{
    if (!is_within_limit(*file_bytes + bytes)) {
        errno = EFBIG;
        return NULL;
    }
    int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        return NULL;
    int rc;
    do
        rc = posix_fallocate(fd, (off_t)*file_bytes, bytes);
    while (rc == EINTR);
    void *p = MAP_FAILED;
    if (rc)
        errno = rc;
    else
        p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)*file_bytes);
    close(fd);
    if (p == MAP_FAILED)
        return NULL;
    *file_bytes += bytes;
    return p;
}

static void *map_bytes(struct fm_store *store, uint32_t bytes)
{
    if (!store->path[0]) {
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return p == MAP_FAILED ? NULL : p;
    }
    void *p = store->full ? NULL : map_file_bytes(store->path, 0, &store->file_bytes, bytes);
    if (p || !store->more_path[0])
        return p;
    store->full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
    return map_file_bytes(store->more_path, store->more_bytes ? 0 : O_CREAT, &store->more_bytes,
                          bytes);
}

static int open_file(struct fm_store *store, const char *folder, const char *more_folder)
{
    char *path = store->path;
    for (int n = 0; n < MAX_STORES_PER_PID; n++) {
        int len = snprintf(path, sizeof store->path, "%s/%d.%d%s", folder, (int)getpid(), n,
                           FM_LIVE_SUFFIX);
        if (len < 0 || (size_t)len >= sizeof store->path)
            return -1;
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0) {
            close(fd);
            if (more_folder)
                snprintf(store->more_path, sizeof store->more_path, "%s/%d.%d%s%s", more_folder,
                         (int)getpid(), n, FM_LIVE_SUFFIX, FM_LIVE_MORE_SUFFIX);
            return 0;
        }
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

int fm_store_open(struct fm_store *store, const char *folder, const char *more_folder)
{
    memset(store, 0, sizeof *store);
    if (folder && !is_within_limit(LEAST_FILE_BYTES)) {
        errno = EFBIG;
        return -1;
    }
    if (folder && open_file(store, folder, more_folder) < 0) {
        memset(store, 0, sizeof *store);
        return -1;
    }
    struct fm_live_header *header = map_bytes(store, FM_LIVE_PAGE);
    if (!header) {
        fm_store_close(store);
        return -1;
    }
    header->version = FM_LIVE_VERSION;
    header->pid = (uint32_t)getpid();
    header->parent_pid = (uint32_t)getppid();
    struct fm_clock_pair start = fm_clock_pair_now();
    header->start_ticks = start.ticks;
    header->start_ns = start.ns;
    header->start_real_ns = fm_clock_read_ns(CLOCK_REALTIME);
    memcpy(header->magic, FM_LIVE_MAGIC, sizeof header->magic);
    store->header = header;
    return 0;
}

void fm_store_close(struct fm_store *store)
{
    for (uint32_t i = 0; i < store->chunk_count; i++)
        munmap(store->chunks[i], store->chunks[i]->bytes);
    if (store->header)
        munmap(store->header, FM_LIVE_PAGE);
    memset(store, 0, sizeof *store);
}

/* A new chunk of `kind` with room for `bytes`; chunks grow with the store, so that a small program
 * stays small and a large one needs few mappings. */
static struct fm_live_chunk *add_chunk(struct fm_store *store, uint32_t kind, uint64_t bytes,
                                       uint32_t first_id)
{
    if (!store->header || kind >= FM_LIVE_KIND_COUNT || store->chunk_count == FM_STORE_CHUNKS)
        return NULL;
    if (store->refused && store->refused--)
        return NULL;
    uint64_t want = FIRST_CHUNK_BYTES;
    if (store->open[kind])
        want = (uint64_t)store->open[kind]->bytes * 2;
    if (want > LARGEST_CHUNK_BYTES)
        want = LARGEST_CHUNK_BYTES;
    if (want < bytes + sizeof(struct fm_live_chunk))
        want = bytes + sizeof(struct fm_live_chunk);
    if (want > UINT32_MAX / 2)
        return NULL;
    struct fm_live_chunk *chunk = map_bytes(store, round_to_page(want));
    if (!chunk) {
        store->refused = REFUSALS;
        return NULL;
    }
    chunk->kind = kind;
    chunk->bytes = round_to_page(want);
    chunk->first_id = first_id;
    chunk->address = (uint64_t)(uintptr_t)chunk;
    __atomic_store_n(&chunk->magic, FM_LIVE_CHUNK_MAGIC, __ATOMIC_RELEASE);
    store->chunks[store->chunk_count++] = chunk;
    store->open[kind] = chunk;
    return chunk;
}

static uint32_t chunk_room(const struct fm_live_chunk *chunk)
{
    return chunk ? chunk->bytes - (uint32_t)sizeof *chunk - chunk->used : 0;
}

static void *chunk_end(struct fm_live_chunk *chunk)
{
    return (char *)(chunk + 1) + chunk->used;
}

/* Makes what was written before visible as one whole record to a reader of the dead process. */
static void chunk_commit(struct fm_live_chunk *chunk, uint32_t bytes)
{
    __atomic_store_n(&chunk->used, chunk->used + bytes, __ATOMIC_RELEASE);
}

/* The chunk of `kind` with room for `bytes` more; records of a kind that has ids start a new chunk
 * with the id of its first record. */
static struct fm_live_chunk *chunk_for(struct fm_store *store, uint32_t kind, uint32_t bytes,
                                       uint32_t next_id)
{
    struct fm_live_chunk *chunk = store->open[kind];
    if (__builtin_expect(chunk_room(chunk) >= bytes, 1))
        return chunk;
    return add_chunk(store, kind, bytes, next_id);
}

static void lock(struct fm_store *store)
{
    pthread_mutex_lock(&store->lock);
}

static void unlock(struct fm_store *store)
{
    pthread_mutex_unlock(&store->lock);
}

static struct fm_live_node *make_node(struct fm_store *store, uint32_t parent, uint32_t func)
{
    struct fm_live_chunk *chunk =
        chunk_for(store, FM_LIVE_NODES, sizeof(struct fm_live_node), store->next_node);
    if (!chunk)
        return NULL;
    struct fm_live_node *node = chunk_end(chunk);
    node->id = store->next_node++;
    node->parent = func ? parent : node->id;
    node->func = func;
    node->min_ticks = UINT64_MAX;
    chunk_commit(chunk, sizeof *node);
    return node;
}

struct fm_live_node *fm_store_node(struct fm_store *store, uint32_t parent, uint32_t func)
{
    lock(store);
    struct fm_live_node *node = make_node(store, parent, func);
    unlock(store);
    return node;
}

static struct fm_live_thread *make_thread(struct fm_store *store, uint32_t *ret_id)
{
    struct fm_live_chunk *chunk =
        chunk_for(store, FM_LIVE_THREADS, sizeof(struct fm_live_thread), store->next_thread);
    if (!chunk)
        return NULL;
    struct fm_live_thread *thread = chunk_end(chunk);
    *ret_id = store->next_thread++;
    chunk_commit(chunk, sizeof *thread);
    return thread;
}

struct fm_live_thread *fm_store_thread(struct fm_store *store, uint32_t *ret_id)
{
    lock(store);
    struct fm_live_thread *thread = make_thread(store, ret_id);
    unlock(store);
    return thread;
}

void *fm_store_record(struct fm_store *store, enum fm_live_kind kind, uint32_t bytes)
{
    lock(store);
    struct fm_live_chunk *chunk = chunk_for(store, kind, bytes, 0);
    void *record = chunk ? chunk_end(chunk) : NULL;
    if (chunk)
        chunk_commit(chunk, bytes);
    unlock(store);
    return record;
}

struct fm_live_resumed *fm_store_resumed(struct fm_store *store, uint32_t node)
{
    lock(store);
    struct fm_live_chunk *chunk =
        chunk_for(store, FM_LIVE_RESUMED, sizeof(struct fm_live_resumed), 0);
    struct fm_live_resumed *resumed = chunk ? chunk_end(chunk) : NULL;
    if (resumed) {
        resumed->node = node;
        chunk_commit(chunk, sizeof *resumed);
    }
    unlock(store);
    return resumed;
}

struct fm_live_line *fm_store_line(struct fm_store *store, uint32_t func, uint32_t number)
{
    lock(store);
    struct fm_live_chunk *chunk = chunk_for(store, FM_LIVE_LINES, sizeof(struct fm_live_line), 0);
    struct fm_live_line *line = chunk ? chunk_end(chunk) : NULL;
    if (line) {
        line->func = func;
        line->line = number;
        line->min_ticks = UINT64_MAX;
        chunk_commit(chunk, sizeof *line);
    }
    unlock(store);
    return line;
}

struct fm_live_frame *fm_store_stack(struct fm_store *store, uint32_t frames, uint32_t *ret_number)
{
    uint32_t bytes = frames * (uint32_t)sizeof(struct fm_live_frame);
    lock(store);
    store->open[FM_LIVE_STACK] = NULL; /* each stack is a chunk of its own, no larger than asked */
    struct fm_live_chunk *chunk = add_chunk(store, FM_LIVE_STACK, bytes, store->next_stack);
    if (chunk) {
        *ret_number = store->next_stack++;
        chunk_commit(chunk, bytes);
    }
    unlock(store);
    return chunk ? (struct fm_live_frame *)(chunk + 1) : NULL;
}

static uint8_t *put_text(uint8_t *out, struct fm_store_text text)
{
    out += fm_varint_put(out, text.len);
    if (text.len)
        memcpy(out, text.bytes, text.len);
    return out + text.len;
}

bool fm_store_define(struct fm_store *store, uint64_t kind, const uint64_t *numbers,
                     size_t number_count, const struct fm_store_text *texts, size_t text_count)
{
    uint8_t scratch[FM_VARINT_MAX];
    uint64_t body = fm_varint_put(scratch, kind);
    for (size_t i = 0; i < number_count; i++)
        body += fm_varint_put(scratch, numbers[i]);
    for (size_t i = 0; i < text_count; i++)
        body += fm_varint_put(scratch, texts[i].len) + texts[i].len;
    uint64_t whole = fm_varint_put(scratch, body) + body;
    if (whole > LARGEST_CHUNK_BYTES * 4)
        return false;
    lock(store);
    struct fm_live_chunk *chunk = chunk_for(store, FM_LIVE_DEFS, (uint32_t)whole, 0);
    if (!chunk) {
        unlock(store);
        return false;
    }
    uint8_t *out = chunk_end(chunk);
    out += fm_varint_put(out, body);
    out += fm_varint_put(out, kind);
    for (size_t i = 0; i < number_count; i++)
        out += fm_varint_put(out, numbers[i]);
    for (size_t i = 0; i < text_count; i++)
        out = put_text(out, texts[i]);
    chunk_commit(chunk, (uint32_t)whole);
    unlock(store);
    return true;
}

bool fm_store_info(struct fm_store *store, const char *key, const char *value)
{
    struct fm_store_text texts[] = { { key, strlen(key) }, { value, strlen(value) } };
    return fm_store_define(store, FM_LIVE_DEF_INFO, NULL, 0, texts, 2);
}

/* The file of accounts; see store.h. */
#include "target/heap/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FIRST_PIECE_BYTES  (64u * 1024)
#define LARGEST_PIECE      (4u * 1024 * 1024)
#define MAX_STORES_PER_PID 10000
#define LEFT_TO_OTHERS     4    /* so much of the first file system, a quarter, is the program's */
#define REFUSALS           4096 /* refused at once after one that failed: asking is not free */

/* The most of each array; numbers of accounts must fit into a record (record.h). At first a small part
 * of it is reserved: a program may limit its own addresses, and ours count. */
static const uint64_t most_bytes[FM_HEAP_ARRAYS] = {
    [FM_HEAP_NODES] = (4u << 20) * sizeof(struct fm_heap_node),
    [FM_HEAP_ACCOUNTS] = (4u << 20) * sizeof(struct fm_heap_account),
    [FM_HEAP_DEFS] = 128u << 20,
    [FM_HEAP_THREADS] = (1u << 20) * sizeof(struct fm_heap_thread),
    [FM_HEAP_SHARES] = (4u << 20) * sizeof(struct fm_heap_share),
    [FM_HEAP_ERRORS] = (4u << 20) * sizeof(struct fm_heap_error),
    [FM_HEAP_RANGES] = (1u << 20) * sizeof(struct fm_heap_range),
};
#define FIRST_PART 16
#define MOST_MOVES 4 /* a range is four times as long as the one before */

/* The files: in the folder of the run, and on disk for what is not to be there. */
enum { FIRST, SECOND, FILES };

static struct {
    struct {
        char path[600]; /* "": there is none */
        bool closed;    /* nothing is to be put in it */
        uint64_t bytes;
    } files[FILES];
    uint32_t refused;
    struct {
        unsigned char *base;
        uint64_t reserved, mapped, piece; /* bytes; `piece`: of the one mapped last */
    } arrays[FM_HEAP_ARRAYS];
    struct {
        uintptr_t base;
        uint64_t bytes;
    } accounts[MOST_MOVES]; /* where they are and were, newest first */
    fm_heap_lock lock;
} store;

static uint64_t now_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- mapping ---- */

/* Nothing of the store counts as memory of our own: it is a file. */
static void unmap(void *memory, uint64_t bytes)
{
    int saved_errno = errno;
    syscall(SYS_munmap, memory, bytes);
    errno = saved_errno;
}

static bool is_within_limit(uint64_t file_bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           file_bytes <= limit.rlim_cur;
}

/* Where a mapping lies: in which file, and where in it. */
struct spot {
    uint32_t file;
    uint64_t at;
};

/* Would the first file leave enough of its file system to others? The program may need it: Docker
 * gives it 64 MB, for shared memory of its own. */
static bool leaves_enough(int fd, uint64_t bytes)
{
    struct statvfs fs;
    if (fstatvfs(fd, &fs) != 0)
        return true;
    uint64_t unit = fs.f_frsize;
    return (uint64_t)fs.f_bavail * unit >= bytes + (uint64_t)fs.f_blocks * unit / LEFT_TO_OTHERS;
}

/* Append `bytes` to a file and map them, at `address` if there is one. MAP_FAILED if it has no room;
 * the first one may also be spared. */
static void *map_in(uint32_t file, void *address, uint64_t bytes, bool spare)
{
    uint64_t at = store.files[file].bytes;
    if (!store.files[file].path[0] || store.files[file].closed || !is_within_limit(at + bytes))
        return MAP_FAILED;
    int fd = open(store.files[file].path,
                  O_RDWR | O_CLOEXEC | O_NOFOLLOW | (file == SECOND ? O_CREAT : 0), 0600);
    if (fd < 0)
        return MAP_FAILED;
    void *p = MAP_FAILED;
    int rc;
    do
        rc = spare && !leaves_enough(fd, bytes) ? ENOSPC
                                                : posix_fallocate(fd, (off_t)at, (off_t)bytes);
    while (rc == EINTR);
    if (rc == 0)
        p = fm_heap_mmap(address, bytes, PROT_READ | PROT_WRITE,
                         MAP_SHARED | (address ? MAP_FIXED : 0), fd, (off_t)at);
    close(fd);
    return p;
}

/* Append `bytes` to the store and map them. Where both files have room, the first one is preferred,
 * unless memory is scarce: its pages are memory, those of the second can be written back. */
static void *map_more(void *address, uint64_t bytes, struct spot *ret_spot)
{
    int saved_errno = errno;
    bool second = store.files[SECOND].path[0];
    void *p = MAP_FAILED;
    ret_spot->file = FIRST;
    if (!fm_heap.scarce || !second)
        p = map_in(FIRST, address, bytes, second);
    if (p == MAP_FAILED && second) {
        ret_spot->file = SECOND;
        p = map_in(SECOND, address, bytes, false);
        if (p == MAP_FAILED) {
            ret_spot->file = FIRST;
            p = map_in(FIRST, address, bytes, false);
        }
    }
    errno = saved_errno;
    if (p == MAP_FAILED)
        return NULL;
    ret_spot->at = store.files[ret_spot->file].bytes;
    store.files[ret_spot->file].bytes += bytes;
    return p;
}

/* A limit on addresses (ulimit -v) is the program's: we take a small part of it. */
static uint64_t most_of(int array)
{
    struct rlimit limit;
    uint64_t bytes = most_bytes[array];
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        while (bytes > limit.rlim_cur / 64 && bytes > FIRST_PIECE_BYTES)
            bytes /= 2;
    return bytes;
}

static void place(int array, unsigned char *base, uint64_t bytes)
{
    store.arrays[array].base = base;
    store.arrays[array].reserved = bytes;
    if (array == FM_HEAP_NODES)
        __atomic_store_n(&fm_heap.nodes, (struct fm_heap_node *)base, __ATOMIC_RELEASE);
    if (array == FM_HEAP_ACCOUNTS) {
        for (int i = MOST_MOVES - 1; i > 0; i--)
            store.accounts[i] = store.accounts[i - 1];
        store.accounts[0].base = (uintptr_t)base;
        store.accounts[0].bytes = bytes;
        __atomic_store_n(&fm_heap.accounts, (struct fm_heap_account *)base, __ATOMIC_RELEASE);
    }
    if (array == FM_HEAP_SHARES)
        __atomic_store_n(&fm_heap.shares, (struct fm_heap_share *)base, __ATOMIC_RELEASE);
    if (array == FM_HEAP_ERRORS)
        __atomic_store_n(&fm_heap.errors, (struct fm_heap_error *)base, __ATOMIC_RELEASE);
}

static unsigned char *reserve(uint64_t bytes)
{
    void *p =
        fm_heap_mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static int reserve_all(void)
{
    for (int i = 0; i < FM_HEAP_ARRAYS; i++) {
        uint64_t first = most_bytes[i] / FIRST_PART, most = most_of(i);
        if (i == FM_HEAP_ERRORS && !fm_heap.sample_bytes)
            continue;
        unsigned char *base = reserve(first < most ? first : most);
        if (!base)
            return -1;
        place(i, base, first < most ? first : most);
    }
    return 0;
}

/* All pieces of the array once more, in another range of addresses: of a shared mapping mremap makes a
 * second one if the first is said to have no bytes. False: they are not all there. */
static bool map_again(int array, unsigned char *base)
{
    const struct fm_heap_header *h = fm_heap.header;
    bool ok = true;
    for (uint32_t i = 0; i < h->piece_count && ok; i++) {
        const struct fm_heap_piece *p = &h->pieces[i];
        if (p->array == (uint32_t)array)
            ok = syscall(SYS_mremap, store.arrays[array].base + p->offset, 0, p->bytes,
                         MREMAP_MAYMOVE | MREMAP_FIXED, base + p->offset) != -1;
    }
    return ok;
}

/* A larger range of addresses for an array. Both ranges are the same memory, so that nobody needs to
 * hear of it who is about to use the old one, which stays. */
static bool reserve_more(int array)
{
    int saved_errno = errno;
    uint64_t most = most_of(array), bytes = store.arrays[array].reserved * 4;
    bytes = bytes < most ? bytes : most;
    unsigned char *base = bytes > store.arrays[array].reserved ? reserve(bytes) : NULL;
    bool ok = base && map_again(array, base);
    if (ok)
        place(array, base, bytes);
    else if (base)
        unmap(base, bytes);
    errno = saved_errno;
    return ok;
}

/* Make the array at least `bytes` long. */
static bool grow(int array, uint64_t bytes)
{
    struct fm_heap_header *h = fm_heap.header;
    if (FM_UNLIKELY(store.refused) && store.arrays[array].mapped < bytes) {
        store.refused--;
        return false;
    }
    while (store.arrays[array].mapped < bytes) {
        uint64_t piece =
            store.arrays[array].piece ? store.arrays[array].piece * 2 : FIRST_PIECE_BYTES;
        uint64_t at = store.arrays[array].mapped;
        if (at == store.arrays[array].reserved && !reserve_more(array))
            return false;
        uint64_t left = store.arrays[array].reserved - at;
        piece = piece > LARGEST_PIECE ? LARGEST_PIECE : piece;
        piece = piece > left ? left : piece;
        struct spot spot;
        if (!piece || h->piece_count == FM_HEAP_PIECES ||
            !map_more(store.arrays[array].base + at, piece, &spot)) {
            store.refused = REFUSALS;
            return false;
        }
        h->pieces[h->piece_count] =
            (struct fm_heap_piece){ (uint32_t)array, spot.file, spot.at, at, piece };
        __atomic_store_n(&h->piece_count, h->piece_count + 1, __ATOMIC_RELEASE);
        store.arrays[array].mapped += piece;
        store.arrays[array].piece = piece;
    }
    return true;
}

/* ---- opening ---- */

static int create_file(void)
{
    char *path = store.files[FIRST].path;
    for (int n = 0; n < MAX_STORES_PER_PID; n++) {
        int len = snprintf(path, sizeof store.files[FIRST].path, "%s/%d.%d%s", fm_heap.folder,
                           (int)getpid(), n, FM_HEAP_SUFFIX);
        if (len < 0 || (size_t)len >= sizeof store.files[FIRST].path)
            return -1;
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0) {
            close(fd);
            if (fm_heap.more[0])
                snprintf(store.files[SECOND].path, sizeof store.files[SECOND].path, "%s/%d.%d%s%s",
                         fm_heap.more, (int)getpid(), n, FM_HEAP_SUFFIX, FM_HEAP_MORE_SUFFIX);
            return 0;
        }
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* The header, in the first file if there is any room: that is where it is looked for. If there is none
 * anywhere, the empty file says so. */
static struct fm_heap_header *map_header(void)
{
    store.files[FIRST].bytes = store.files[SECOND].bytes = 0;
    store.files[SECOND].path[0] = '\0';
    store.files[FIRST].closed = false;
    store.refused = 0;
    if (create_file() < 0)
        return NULL;
    uint32_t file = FIRST;
    void *p = map_in(FIRST, NULL, FM_HEAP_HEADER_BYTES, false);
    if (p == MAP_FAILED) {
        file = SECOND;
        p = map_in(SECOND, NULL, FM_HEAP_HEADER_BYTES, false);
    }
    if (p == MAP_FAILED)
        return NULL;
    store.files[file].bytes = FM_HEAP_HEADER_BYTES;
    store.files[FIRST].closed = file == SECOND; /* it stays empty: by that a reader knows */
    struct fm_heap_header *h = p;
    h->version = FM_HEAP_VERSION;
    h->pid = (uint32_t)getpid();
    h->parent_pid = (uint32_t)getppid();
    h->start_ns = now_ns(CLOCK_MONOTONIC);
    h->start_real_ns = now_ns(CLOCK_REALTIME);
    h->sample_bytes = fm_heap.sample_bytes;
    h->epoch = h->halves[0].epoch = h->halves[1].epoch = 1;
    h->used[FM_HEAP_NODES] = 1; /* 0 is none */
    h->used[FM_HEAP_ACCOUNTS] = h->used[FM_HEAP_SHARES] = h->used[FM_HEAP_ERRORS] = 1;
    memcpy(h->magic, FM_HEAP_MAGIC, sizeof h->magic);
    return h;
}

const char *fm_heap_store_path(void)
{
    return store.files[FIRST].path;
}

int fm_heap_store_open(void)
{
    if (reserve_all() < 0)
        return -1;
    fm_heap.header = map_header();
    return fm_heap.header ? 0 : -1;
}

void fm_heap_store_ready(void)
{
    __atomic_or_fetch(&fm_heap.header->flags, FM_HEAP_READY, __ATOMIC_RELEASE);
}

/* The arrays of accounts begin where new ones will be. */
static void begin_behind(int array, uint64_t count, size_t record_bytes)
{
    fm_heap.header->used[array] = count;
    store.arrays[array].mapped = count * record_bytes / FIRST_PIECE_BYTES * FIRST_PIECE_BYTES;
}

void fm_heap_store_close(void)
{
    for (int i = 0; i < FM_HEAP_ARRAYS; i++)
        if (store.arrays[i].base)
            unmap(store.arrays[i].base, store.arrays[i].reserved);
    struct fm_heap_header *header = fm_heap.header;
    fm_heap.header = NULL;
    if (header)
        unmap(header, FM_HEAP_HEADER_BYTES);
    fm_heap.nodes = NULL;
    fm_heap.accounts = NULL;
    fm_heap.shares = NULL;
    memset(&store, 0, sizeof store);
}

int fm_heap_store_reopen(void)
{
    struct fm_heap_header *old = fm_heap.header, *h = map_header();
    uint64_t accounts = old->used[FM_HEAP_ACCOUNTS];
    fm_heap.header = h;
    for (int i = 0; i < FM_HEAP_ARRAYS; i++) {
        /* Nothing of the parent's may be reached any more. */
        if (store.arrays[i].reserved &&
            fm_heap_mmap(store.arrays[i].base, store.arrays[i].reserved, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                         0) == MAP_FAILED)
            h = fm_heap.header = NULL;
        store.arrays[i].mapped = store.arrays[i].piece = 0;
    }
    unmap(old, FM_HEAP_HEADER_BYTES);
    if (!h)
        return -1;
    h->flags = FM_HEAP_FORKED;
    h->inherited = (uint32_t)accounts - 1;
    begin_behind(FM_HEAP_ACCOUNTS, accounts, sizeof(struct fm_heap_account));
    begin_behind(FM_HEAP_SHARES, accounts, sizeof(struct fm_heap_share));
    begin_behind(FM_HEAP_ERRORS, accounts, sizeof(struct fm_heap_error));
    return 0;
}

/* ---- records ---- */

/* The next number of an array, and room for it. */
static uint32_t take(int array, size_t record_bytes)
{
    struct fm_heap_header *h = fm_heap.header;
    uint64_t number = h->used[array];
    if ((number + 1) * record_bytes > store.arrays[array].mapped &&
        !grow(array, (number + 1) * record_bytes))
        return 0;
    h->used[array] = number + 1;
    return (uint32_t)number;
}

uint32_t fm_heap_store_node(uint32_t parent, uint32_t code, uint32_t offset, uint32_t thread)
{
    fm_heap_lock_take(&store.lock);
    uint32_t number = take(FM_HEAP_NODES, sizeof(struct fm_heap_node));
    if (number)
        fm_heap.nodes[number] = (struct fm_heap_node){
            .parent = parent, .code = code, .offset = offset, .thread = thread
        };
    fm_heap_lock_give(&store.lock);
    return number;
}

uint32_t fm_heap_store_account(uint32_t node, uint32_t thread)
{
    fm_heap_lock_take(&store.lock);
    uint64_t count = fm_heap.header->used[FM_HEAP_ACCOUNTS] + 1;
    bool ok = grow(FM_HEAP_SHARES, count * sizeof(struct fm_heap_share)) &&
              (!fm_heap.sample_bytes || grow(FM_HEAP_ERRORS, count * sizeof(struct fm_heap_error)));
    uint32_t number = ok ? take(FM_HEAP_ACCOUNTS, sizeof(struct fm_heap_account)) : 0;
    if (number) {
        fm_heap.header->used[FM_HEAP_SHARES] = fm_heap.header->used[FM_HEAP_ERRORS] = number + 1;
        fm_heap.shares[number].epoch = __atomic_load_n(&fm_heap.run->epoch, __ATOMIC_RELAXED);
        fm_heap.accounts[number].node = node;
        fm_heap.accounts[number].thread = thread;
        fm_heap.accounts[number].epoch =
            __atomic_load_n(&fm_heap.header->epoch, __ATOMIC_RELAXED); /* never 0: see account.h */
    }
    fm_heap_lock_give(&store.lock);
    return number;
}

uint32_t fm_heap_store_number(const struct fm_heap_account *account)
{
    for (int i = 0; i < MOST_MOVES; i++) {
        uintptr_t at = (uintptr_t)account - store.accounts[i].base;
        if (at < store.accounts[i].bytes)
            return (uint32_t)(at / sizeof *account);
    }
    return 0;
}

struct fm_heap_thread *fm_heap_store_thread(uint32_t *ret_number)
{
    struct fm_heap_thread *threads = NULL;
    fm_heap_lock_take(&store.lock);
    uint64_t number = fm_heap.header->used[FM_HEAP_THREADS];
    bool ok = grow(FM_HEAP_THREADS, (number + 1) * sizeof *threads);
    if (ok) {
        threads = (struct fm_heap_thread *)(void *)store.arrays[FM_HEAP_THREADS].base;
        threads[number].start_ns = now_ns(CLOCK_MONOTONIC);
        threads[number].threads = 1;
        fm_heap.header->used[FM_HEAP_THREADS] = number + 1;
    }
    fm_heap_lock_give(&store.lock);
    *ret_number = (uint32_t)number;
    return ok ? &threads[number] : NULL;
}

void fm_heap_store_range(uint32_t number, const struct fm_heap_range *range)
{
    struct fm_heap_range *ranges = (void *)store.arrays[FM_HEAP_RANGES].base;
    uint64_t count = (uint64_t)number + 1;
    fm_heap_lock_take(&store.lock);
    if (grow(FM_HEAP_RANGES, count * sizeof *ranges)) {
        ranges[number] = *range;
        if (fm_heap.header->used[FM_HEAP_RANGES] < count)
            __atomic_store_n(&fm_heap.header->used[FM_HEAP_RANGES], count, __ATOMIC_RELEASE);
    }
    fm_heap_lock_give(&store.lock);
}

unsigned char *fm_heap_store_define(size_t bytes)
{
    fm_heap_lock_take(&store.lock);
    uint64_t at = fm_heap.header->used[FM_HEAP_DEFS];
    bool ok = grow(FM_HEAP_DEFS, at + bytes);
    fm_heap_lock_give(&store.lock);
    return ok ? store.arrays[FM_HEAP_DEFS].base + at : NULL;
}

void fm_heap_store_defined(size_t bytes)
{
    __atomic_store_n(&fm_heap.header->used[FM_HEAP_DEFS],
                     fm_heap.header->used[FM_HEAP_DEFS] + bytes, __ATOMIC_RELEASE);
}

void fm_heap_store_hold(void)
{
    fm_heap_lock_take(&store.lock);
}

void fm_heap_store_release(void)
{
    fm_heap_lock_give(&store.lock);
}

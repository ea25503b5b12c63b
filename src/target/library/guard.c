/* Work that gives up when memory is exhausted, and gives everything back; see guard.h. */
#include "target/library/guard.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/error.h"
#include "base/memory.h"

enum guarded_kind { MEMORY = 1, DESCRIPTOR, NAMED, ZSTD, ZLIB };

struct thing {
    uintptr_t value;        /* an address, or a descriptor */
    enum guarded_kind kind; /* 0: an empty place */
};

/* What the work holds: open addressing, at most half full. Its memory is outside what it counts. */
struct guard {
    jmp_buf escape;
    struct thing *things;
    size_t len, cap; /* cap is 0 or a power of two */
};

/* Initial-exec: reading it must not allocate. */
static __thread struct guard *current __attribute__((tls_model("initial-exec")));

/* What --wrap calls the functions themselves. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *memory);
int __real_open(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
int __real_mkostemp(char *path, int flags);
int __real_mkostemp64(char *path, int flags);
int __real_dup(int fd);
int __real_close(int fd);
ZSTD_CCtx *__real_ZSTD_createCCtx(void);
size_t __real_ZSTD_freeCCtx(ZSTD_CCtx *context);
int __real_deflateInit2_(z_stream *z, int level, int method, int bits, int memory, int strategy,
                         const char *version, int size);
int __real_deflateEnd(z_stream *z);

/* ---- the list ---------------------------------------------------------------------------- */

static size_t home_of(const struct guard *g, struct thing t)
{
    return (size_t)((t.value + (uintptr_t)t.kind) * 0x9e3779b97f4a7c15ULL >> 32) & (g->cap - 1);
}

/* Where it is, or the empty place where it would be. */
static size_t place_of(const struct guard *g, struct thing t)
{
    size_t i = home_of(g, t);
    while (g->things[i].kind && (g->things[i].kind != t.kind || g->things[i].value != t.value))
        i = (i + 1) & (g->cap - 1);
    return i;
}

static bool grow(struct guard *g)
{
    struct guard larger = { .cap = g->cap ? g->cap * 2 : 256 };
    larger.things = __real_calloc(larger.cap, sizeof *larger.things);
    if (!larger.things)
        return false;
    for (size_t i = 0; i < g->cap; i++)
        if (g->things[i].kind)
            larger.things[place_of(&larger, g->things[i])] = g->things[i];
    __real_free(g->things);
    g->things = larger.things;
    g->cap = larger.cap;
    return true;
}

/* Before something is taken: is there room to remember it? */
static bool has_room(void)
{
    return !current || current->len * 2 < current->cap || grow(current);
}

static void remember(enum guarded_kind kind, uintptr_t value)
{
    struct thing t = { value, kind };
    if (!current)
        return;
    current->things[place_of(current, t)] = t;
    current->len++;
}

static void forget(enum guarded_kind kind, uintptr_t value)
{
    struct guard *g = current;
    struct thing t = { value, kind };
    size_t hole = g && g->cap ? place_of(g, t) : 0;
    if (!g || !g->cap || !g->things[hole].kind)
        return; /* from before the work, or from the C library itself */
    g->len--;
    g->things[hole].kind = 0;
    /* What stands behind it may have been pushed on by it: move back what can be. */
    for (size_t i = (hole + 1) & (g->cap - 1); g->things[i].kind; i = (i + 1) & (g->cap - 1)) {
        size_t home = home_of(g, g->things[i]);
        if (((i - home) & (g->cap - 1)) < ((i - hole) & (g->cap - 1)))
            continue;
        g->things[hole] = g->things[i];
        g->things[i].kind = 0;
        hole = i;
    }
}

/* ---- giving back ------------------------------------------------------------------------- */

/* A file that lies under a passing name beside the one it was to become. */
static void unlink_descriptor(int fd)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    if (len > 0 && len < (ssize_t)sizeof path - 1) {
        path[len] = '\0';
        unlink(path);
    }
}

static void give_back(struct thing t)
{
    switch (t.kind) {
    case NAMED:
        unlink_descriptor((int)t.value);
        __real_close((int)t.value);
        break;
    case DESCRIPTOR:
        __real_close((int)t.value);
        break;
    case ZSTD:
        __real_ZSTD_freeCCtx((ZSTD_CCtx *)t.value);
        break;
    case ZLIB: /* on the stack of the work, which is still there */
        __real_deflateEnd((z_stream *)t.value);
        break;
    case MEMORY:
        break;
    }
}

/* Memory last: what else there is may lie in it. */
static void give_all_back(struct guard *g)
{
    for (size_t i = 0; i < g->cap; i++)
        give_back(g->things[i]);
    for (size_t i = 0; i < g->cap; i++)
        if (g->things[i].kind == MEMORY)
            __real_free((void *)g->things[i].value);
}

static void leave(size_t bytes)
{
    (void)bytes;
    if (!current)
        return; /* not within the work: the tool's own way */
    give_all_back(current);
    longjmp(current->escape, 1);
}

int fm_guard_run(int (*work)(void *context), void *context)
{
    struct guard guard = { 0 };
    volatile int rc = FM_NO_MEMORY; /* setjmp returns twice */
    fm_memory_exhausted = leave;
    current = &guard;
    if (setjmp(guard.escape) == 0)
        rc = work(context);
    current = NULL;
    __real_free(guard.things);
    return rc;
}

void fm_guard_keep(void *memory)
{
    forget(MEMORY, (uintptr_t)memory);
}

/* ---- what the tool's code calls ---------------------------------------------------------- */

void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes)
{
    void *memory = has_room() ? __real_malloc(bytes) : NULL;
    if (memory)
        remember(MEMORY, (uintptr_t)memory);
    return memory;
}

void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes)
{
    void *memory = has_room() ? __real_calloc(count, bytes) : NULL;
    if (memory)
        remember(MEMORY, (uintptr_t)memory);
    return memory;
}

void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes)
{
    uintptr_t before = (uintptr_t)old;
    void *memory = has_room() ? __real_realloc(old, bytes) : NULL;
    if (memory) {
        forget(MEMORY, before);
        remember(MEMORY, (uintptr_t)memory);
    }
    return memory;
}

void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
    forget(MEMORY, (uintptr_t)memory);
    __real_free(memory);
}

static int opened(int fd, enum guarded_kind kind)
{
    if (fd >= 0)
        remember(kind, (uintptr_t)fd);
    return fd;
}

/* The mode of open(), which is there only with flags that make a file. */
#define MODE_OF(flags, mode)                                                                       \
    do {                                                                                           \
        va_list args_;                                                                             \
        va_start(args_, flags);                                                                    \
        if ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE)                                   \
            mode = va_arg(args_, mode_t);                                                          \
        va_end(args_);                                                                             \
    } while (0)

int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    MODE_OF(flags, mode);
    return has_room() ? opened(__real_open(path, flags, mode), DESCRIPTOR) : -1;
}

int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    mode_t mode = 0;
    MODE_OF(flags, mode);
    return has_room() ? opened(__real_open64(path, flags, mode), DESCRIPTOR) : -1;
}

int __wrap_mkostemp(char *path, int flags);
int __wrap_mkostemp(char *path, int flags)
{
    return has_room() ? opened(__real_mkostemp(path, flags), NAMED) : -1;
}

int __wrap_mkostemp64(char *path, int flags);
int __wrap_mkostemp64(char *path, int flags)
{
    return has_room() ? opened(__real_mkostemp64(path, flags), NAMED) : -1;
}

int __wrap_dup(int fd);
int __wrap_dup(int fd)
{
    return has_room() ? opened(__real_dup(fd), DESCRIPTOR) : -1;
}

int __wrap_close(int fd);
int __wrap_close(int fd)
{
    forget(DESCRIPTOR, (uintptr_t)fd);
    forget(NAMED, (uintptr_t)fd);
    return __real_close(fd);
}

ZSTD_CCtx *__wrap_ZSTD_createCCtx(void);
ZSTD_CCtx *__wrap_ZSTD_createCCtx(void)
{
    ZSTD_CCtx *context = has_room() ? __real_ZSTD_createCCtx() : NULL;
    if (context)
        remember(ZSTD, (uintptr_t)context);
    return context;
}

size_t __wrap_ZSTD_freeCCtx(ZSTD_CCtx *context);
size_t __wrap_ZSTD_freeCCtx(ZSTD_CCtx *context)
{
    forget(ZSTD, (uintptr_t)context);
    return __real_ZSTD_freeCCtx(context);
}

int __wrap_deflateInit2_(z_stream *z, int level, int method, int bits, int memory, int strategy,
                         const char *version, int size);
int __wrap_deflateInit2_(z_stream *z, int level, int method, int bits, int memory, int strategy,
                         const char *version, int size)
{
    int rc = Z_MEM_ERROR;
    if (has_room())
        rc = __real_deflateInit2_(z, level, method, bits, memory, strategy, version, size);
    if (rc == Z_OK)
        remember(ZLIB, (uintptr_t)z);
    return rc;
}

int __wrap_deflateEnd(z_stream *z);
int __wrap_deflateEnd(z_stream *z)
{
    forget(ZLIB, (uintptr_t)z);
    return __real_deflateEnd(z);
}

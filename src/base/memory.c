/* Allocation that cannot fail, for the tool only; see memory.h. */
#include "base/memory.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

#define EXPECT_MIN_BYTES ((size_t)4 << 20)
#define EXPECT_MAX_BYTES ((size_t)1 << 30)
#define HUGE_PAGE_BYTES  ((size_t)2 << 20)

void (*fm_memory_exhausted)(size_t bytes);

static struct fm_memory_undo *undoes;

void fm_memory_undo_add(struct fm_memory_undo *undo)
{
    if (fm_memory_exhausted) /* who leaves by longjmp leaves this behind */
        return;
    undo->next = undoes;
    undoes = undo;
}

void fm_memory_undo_remove(struct fm_memory_undo *undo)
{
    struct fm_memory_undo **at = &undoes;
    while (*at && *at != undo)
        at = &(*at)->next;
    if (*at)
        *at = undo->next;
}

/* Nothing else is undone: what holds the memory may be half made. */
_Noreturn static void out_of_memory(size_t bytes)
{
    if (fm_memory_exhausted)
        fm_memory_exhausted(bytes);
    while (undoes) {
        struct fm_memory_undo *undo = undoes;
        undoes = undo->next;
        undo->undo(undo->data);
    }
    fprintf(stderr, "fathom: out of memory (asked for %zu bytes)\n", bytes);
    _exit(fm_status_exit(FM_NO_MEMORY));
}

void *fm_malloc(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p)
        out_of_memory(bytes);
    return p;
}

void *fm_calloc(size_t count, size_t bytes)
{
    void *p = calloc(count ? count : 1, bytes ? bytes : 1);
    if (!p)
        out_of_memory(count * bytes);
    return p;
}

void *fm_realloc(void *old, size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total))
        out_of_memory((size_t)-1);
    void *p = realloc(old, total ? total : 1);
    if (!p)
        out_of_memory(total);
    return p;
}

char *fm_strndup(const char *text, size_t len)
{
    char *copy = fm_malloc(len + 1);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

char *fm_strdup(const char *text)
{
    return fm_strndup(text, strlen(text));
}

/* Everything shall come from malloc's heap (not each large block from a mapping of its own), which
 * grows by all of it now, and stays. Where any step is refused, memory comes as it always does. */
void fm_memory_expect(size_t bytes)
{
#if defined(__GLIBC__) && defined(MADV_HUGEPAGE)
    if (bytes < EXPECT_MIN_BYTES)
        return;
    if (bytes > EXPECT_MAX_BYTES)
        bytes = EXPECT_MAX_BYTES;
    uintptr_t first = (uintptr_t)sbrk(0);
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the largest that is allowed */
    mallopt(M_TRIM_THRESHOLD, INT32_MAX);
    mallopt(M_TOP_PAD, (int)bytes);
    void *volatile piece = malloc(HUGE_PAGE_BYTES); /* volatile: it is not for its own sake */
    free(piece);
    mallopt(M_TOP_PAD, (int)EXPECT_MIN_BYTES);
    uintptr_t end = (uintptr_t)sbrk(0) & ~(HUGE_PAGE_BYTES - 1);
    first = (first + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1);
    if (first < end)
        madvise((void *)first, end - first, MADV_HUGEPAGE);
#else
    (void)bytes;
#endif
}

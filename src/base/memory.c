/* Allocation that cannot fail, for the tool only; see memory.h. */
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

static void out_of_memory(size_t bytes)
{
    fprintf(stderr, "fathom: out of memory (asked for %zu bytes)\n", bytes);
    abort();
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

/*
 * Memory for the tool: allocation that cannot fail, and the cleanup attribute.
 *
 * fm_malloc and friends abort the tool with one sentence when memory is exhausted: the tool has
 * nothing better to do, and every caller stays readable. NEVER used inside a profiled process,
 * where a failed allocation must turn the collector off instead.
 */
#ifndef FM_BASE_MEMORY_H
#define FM_BASE_MEMORY_H

#include <stddef.h>
#include <stdlib.h>

void *fm_malloc(size_t bytes);
void *fm_calloc(size_t count, size_t bytes);
void *fm_realloc(void *old, size_t count, size_t bytes); /* checks count * bytes */
char *fm_strdup(const char *text);
char *fm_strndup(const char *text, size_t len);

/* About this much will be allocated from now on, in many pieces: get it at once and in huge pages,
 * since touching it page by page would cost as much as reading a large file does. A hint; it sets
 * malloc's ways for the whole process, so it is for the command alone. */
void fm_memory_expect(size_t bytes);

/* `fm_autofree char *text = …;` is freed when the variable leaves its scope. */
static inline void fm_autofree_cleanup(void *p)
{
    free(*(void **)p);
}
#define fm_autofree __attribute__((cleanup(fm_autofree_cleanup)))

#define FM_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif

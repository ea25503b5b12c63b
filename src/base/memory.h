/*
 * Memory for the tool: allocation that cannot fail, and the cleanup attribute.
 *
 * fm_malloc and friends end the tool with one sentence and the status FM_NO_MEMORY when memory is
 * exhausted: the tool has nothing better to do, and every caller stays readable. The agent never
 * uses them: there a failed allocation turns the collector off. Where the tool's code runs inside a
 * program all the same, in libfathom.so, `fm_memory_exhausted` leads out (target/library/guard.h).
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

/* Called when memory is exhausted, if it is set; it may leave by longjmp. If it returns, the process
 * ends. Set before anything is allocated, the same for all threads. */
extern void (*fm_memory_exhausted)(size_t bytes);

/* What the process undoes when it ends because memory is exhausted: names of files that were only
 * reserved, or are not whole. `undo` may allocate: if that fails, too, the rest is left. Does nothing
 * where fm_memory_exhausted is set. Of one thread. */
struct fm_memory_undo {
    void (*undo)(void *data);
    void *data;
    struct fm_memory_undo *next;
};
void fm_memory_undo_add(struct fm_memory_undo *undo);
void fm_memory_undo_remove(struct fm_memory_undo *undo); /* of one that was not added: nothing */

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

/*
 * The functions of libfathom.so as the agent calls them: plain C types, so that
 * one library serves the agents of all Pythons. Implemented in src/target/library/library.c.
 */
#ifndef FM_AGENT_BRIDGE_ABI_H
#define FM_AGENT_BRIDGE_ABI_H

#include <stddef.h>

/* What these return when memory is exhausted; everything is as it was before. */
#define FATHOM_NO_MEMORY (-15)

/* One live store. */
struct fathom_live {
    const void *bytes;
    size_t len;
};

/* Turn live stores, added up, into a file of the named format ("fathom", "pstats", "entries"), in
 * memory that fathom_release gives back. 0, or negative with a sentence in `message`. */
typedef int fathom_convert_function(const struct fathom_live *lives, size_t count,
                                    const char *format, char **ret_bytes, size_t *ret_len,
                                    char *message, size_t message_size);

/* The same straight into a file. `*ret_exists` is set if it exists and must not be overwritten. */
typedef int fathom_save_function(const struct fathom_live *lives, size_t count, const char *path,
                                 int overwrite, int *ret_exists, char *message,
                                 size_t message_size);

/* What is alive in the heap store at `path`, of a process that runs, as marshal tuples that only
 * the Python package reads (target/library/alive.h); or its calling contexts (contexts.h). */
typedef int fathom_alive_function(const char *path, int contexts, char **ret_bytes, size_t *ret_len,
                                  char *message, size_t message_size);

/* Make a recording of the heap stores in `folder`: of this process, a Python of that version, and of
 * children that it forked. `*ret_exists` as above. */
typedef int fathom_late_function(const char *folder, const char *version, const char *path,
                                 int overwrite, int *ret_exists, char *message,
                                 size_t message_size);

typedef void fathom_release_function(void *bytes);

#endif

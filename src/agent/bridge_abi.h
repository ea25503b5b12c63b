/*
 * The functions of libfathom.so as the agent calls them: plain C types, no shared structs, so that
 * one library serves the agents of all Pythons. Implemented in src/library/library.c.
 */
#ifndef FM_AGENT_BRIDGE_ABI_H
#define FM_AGENT_BRIDGE_ABI_H

#include <stddef.h>

/* Turn a live store into a file of the named format ("fathom", "pstats", "entries"), in memory that
 * fathom_release gives back. 0, or negative with a sentence in `message`. */
typedef int fathom_convert_function(const void *live, size_t live_len, const char *format,
                                    char **ret_bytes, size_t *ret_len, char *message,
                                    size_t message_size);

/* The same straight into a file. `*ret_exists` is set if it exists and must not be overwritten. */
typedef int fathom_save_function(const void *live, size_t live_len, const char *path, int overwrite,
                                 int *ret_exists, char *message, size_t message_size);

typedef void fathom_release_function(void *bytes);

#endif

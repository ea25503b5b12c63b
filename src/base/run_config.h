/*
 * What `fathom run` tells the processes of a run, in one variable: "key=value" pairs behind one another.
 * The launcher writes it; agent and heap library read it here, inside somebody's program, so nothing is
 * allocated. Keys of --trace: trace (block or drop), max_depth, min_ns, include and exclude (patterns
 * as those of lines), args and returns (patterns, too), watch (FILE:LINE:NAME), repr (1). (The preload library, which includes nothing of ours, has its own reader.)
 */
#ifndef FM_BASE_RUN_CONFIG_H
#define FM_BASE_RUN_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define FM_RUN_SEPARATOR '\x1f'

/* In the folder of a run that has nothing inside the program: the same, for a program that uses regions. */
#define FM_RUN_REGIONS_FILE "regions"

/* Copy the value of `key` to `out`; false if it is not there or too long. */
static inline bool fm_run_config_value(const char *config, const char *key, char *out, size_t size)
{
    size_t key_len = strlen(key);
    for (const char *at = config; at && *at;) {
        const char *end = strchrnul(at, FM_RUN_SEPARATOR);
        if ((size_t)(end - at) > key_len && memcmp(at, key, key_len) == 0 && at[key_len] == '=') {
            size_t len = (size_t)(end - at) - key_len - 1;
            if (len >= size)
                return false;
            memcpy(out, at + key_len + 1, len);
            out[len] = '\0';
            return true;
        }
        at = *end ? end + 1 : NULL;
    }
    return false;
}

#endif

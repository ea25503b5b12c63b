/*
 * What the functions, regions and exceptions of a traced process are called, as far as somebody waits for
 * one of them: read from its live store (store/live_file.h) while it runs, as it grows.
 *
 * Who waits says by `judge` which of its wishes a name fulfils, as bits; texts are kept of those names, and
 * of all exceptions. Nothing in the store is trusted. Threads: it belongs to one at a time.
 */
#ifndef FM_WATCH_TRACE_NAMES_H
#define FM_WATCH_TRACE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "watch/store/live_file.h"

enum fm_named_kind { FM_NAMED_FUNCTION, FM_NAMED_REGION, FM_NAMED_EXCEPTION, FM_NAMED_KINDS };

/* Of a function `names` are its qualified name and its name, of an exception its type and all types that
 * it is made from, of others one. */
typedef uint32_t fm_named_judge(const void *context, enum fm_named_kind kind,
                                const char *const *names, size_t count);

struct fm_named {
    uint32_t wishes;
    char *text; /* or NULL */
};

struct fm_trace_names {
    fm_named_judge *judge;
    const void *context;
    struct fm_live_file files[FM_LIVE_FILES];
    FM_VEC(struct fm_named) of[FM_NAMED_KINDS]; /* by number */
};

void fm_trace_names_init(struct fm_trace_names *names, const char *folder, int pid, unsigned number,
                         fm_named_judge *judge, const void *context);
void fm_trace_names_release(struct fm_trace_names *names);

/* What has that number; looked for in the store if it is new. NULL: it is not defined (yet). */
const struct fm_named *fm_trace_names_find(struct fm_trace_names *names, enum fm_named_kind kind,
                                           uint32_t number);

#endif

/*
 * Names of regions, counters and instants: each different text once, with what is found fastest by it.
 *
 * A program names its regions by constants, which are the same object each time: a table by the
 * address of the text, which keeps a reference, answers at once. Others are found by their content.
 * Texts longer than FM_REGION_NAME_MAX bytes are cut, and there is room for FM_REGION_NAMES of them;
 * what comes later shares one name.
 *
 * Names live as long as the process and survive a fork; `here` is of one store (era) only.
 *
 * Threads: fm_region_name_of() needs the GIL, and that nobody holds regions (alone.h); the other is for who does.
 */
#ifndef FM_AGENT_REGION_NAMES_H
#define FM_AGENT_REGION_NAMES_H

#include "target/agent/python.h"

#include <stddef.h>
#include <stdint.h>

#define FM_REGION_NAME_MAX 4096u
#define FM_REGION_NAMES    60000u
#define FM_REGION_MORE     "<more regions>"

struct fm_func;
struct fm_region_record;

struct fm_region_name {
    uint64_t hash;
    uint32_t len;
    uint32_t era;                         /* of the store that these two are in */
    const struct fm_region_record *below; /* where a region of this name was found last, or NULL */
    struct fm_region_record *here;        /* … and that region */
    uint32_t trace, trace_era;            /* its number in the trace; see trace/marks.h */
    struct fm_func *func;                 /* in the tree of calls; NULL: it was not there yet */
    char text[];                          /* UTF-8, not terminated */
};

/* The name of a text; NULL if there is no memory. */
struct fm_region_name *fm_region_name_of(PyObject *text);
struct fm_region_name *fm_region_name_find(const char *text, size_t len);

#endif

/*
 * What a viewer shows: recordings by name, as the engine in the browser reads them, that is as
 * .fathom files with plain blocks. They are kept in memory that belongs to no file.
 */
#ifndef FM_VIEW_CONTENTS_H
#define FM_VIEW_CONTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "record/model/profile.h"

struct fm_content {
    char *name;
    const char *bytes;
    size_t len;
    uint64_t left_out;       /* bytes of single calls that are not in it */
    uint64_t from_ns, to_ns; /* of which time it has them nevertheless; equal: of none */
    int file;                /* where they can be had by place, or −1 */
};

/* Single calls of a trace may be more than a page can hold. */
struct fm_contents {
    uint64_t most_events; /* bytes of them that a recording may have; else all go … */
    bool elsewhere;       /* … and are fetched from the file when they come into sight */
    bool ranged;          /* … but those of this time, since the timeline began */
    uint64_t from_ns, to_ns;
    FM_VEC(struct fm_content) files;
};

/* Add the file at `path` as it is, but for the compression. False if it has to be opened, and what it
 * holds added: it is of another format, damaged, cut off, or cannot be read. */
bool fm_contents_add_file(struct fm_contents *c, const char *name, const char *path);

int fm_contents_add(struct fm_contents *c, const char *name, const struct fm_profile *p,
                    struct fm_error *err);
void fm_contents_release(struct fm_contents *c);

#endif

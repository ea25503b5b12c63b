/*
 * The memory map of a process: what /proc/PID/maps says, parsed once.
 *
 * Mappings are in the order of their addresses, as the kernel lists them. The text is bounded, and a
 * line that makes no sense ends the parsing with an error: nothing is guessed. A list may also be
 * filled by hand with fm_maps_add(), in ascending order (a core file's notes).
 */
#ifndef FM_OS_MAPS_H
#define FM_OS_MAPS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "watch/os/remote/remote.h"

struct fm_mapping {
    fm_addr start, end;
    uint64_t offset; /* in the file */
    uint64_t inode;  /* 0: no file */
    uint32_t major, minor;
    bool readable, writable, executable;
    bool shared;      /* what is written others see, too */
    bool deleted;     /* the file has no name any more */
    const char *path; /* "" for anonymous memory, "[stack]" and the like; owned by the list */
};

struct fm_maps {
    FM_VEC(struct fm_mapping) list;
};

/* The map of a running process. The errors are those of opening the file: FM_NOT_FOUND,
 * FM_FORBIDDEN (with the error number in `*errnum`, which may be NULL), FM_DAMAGED. The map of a
 * zombie and of a kernel thread is empty. */
int fm_maps_read(struct fm_maps *maps, pid_t pid, int *errnum, struct fm_error *err);

/* The text of such a file. */
int fm_maps_parse(struct fm_maps *maps, const char *text, struct fm_error *err);

void fm_maps_add(struct fm_maps *maps, const struct fm_mapping *mapping); /* copies the path */
void fm_maps_release(struct fm_maps *maps);

/* The mapping that holds an address, or NULL. */
const struct fm_mapping *fm_maps_at(const struct fm_maps *maps, fm_addr at);

/* Do two mappings show the same file? */
bool fm_mapping_same_file(const struct fm_mapping *a, const struct fm_mapping *b);

#endif

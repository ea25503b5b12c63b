/*
 * Folders of runs (folder.h) that are still there: those of runs that go on, and what killed ones
 * left.
 *
 * Model. A run goes on while its launcher holds the lock on the folder, or while a process has one
 * of the stores in it open for writing, which a mapping counts as; the kernel ends both with the
 * process, however that ends, and tells it across containers. Whatever is in doubt is held to go on.
 * A folder is only taken for a run's if it is this user's, closed to others, has the name that
 * folder.c gives, and holds nothing but what runs put there.
 *
 * Threads: none.
 */
#ifndef FM_OS_LEFTOVERS_H
#define FM_OS_LEFTOVERS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"
#include "base/vec.h"

struct fm_leftover {
    char *path;
    char *more;     /* its second folder, NULL if there is none */
    uint64_t bytes; /* that both take */
    time_t since;   /* when it was last added to */
    bool running;
};

struct fm_leftovers {
    FM_VEC(struct fm_leftover) list;
};

/* Every folder of a run of this user where folder.c would make one now: $FATHOM_TMPDIR counts. */
void fm_leftovers_find(struct fm_leftovers *leftovers);
void fm_leftovers_release(struct fm_leftovers *leftovers);

/* What is at `path`, if that is a run's folder; to be released by fm_leftover_release(). */
bool fm_leftover_at(const char *path, struct fm_leftover *leftover);
void fm_leftover_release(struct fm_leftover *leftover);

/* Remove it. False if it is in use (now), or cannot be removed; then it is as it was, or emptier. */
bool fm_leftover_remove(const struct fm_leftover *leftover);

#endif

/*
 * The folder of one run: where the profiled processes keep their live stores (capture/live.h).
 *
 * It lies in memory (/dev/shm) when there is room, so that recording involves no disk; then a
 * second folder on disk takes what no longer fits, and a link "more" in the first one leads to it.
 * Both are private to the user (0700), and locked (flock) as long as the launcher lives: by that
 * others know that the run goes on (leftovers.h). $FATHOM_TMPDIR, if set, names another place for it
 * ("FOLDER"), or two ("FOLDER:SECOND").
 */
#ifndef FM_OS_FOLDER_H
#define FM_OS_FOLDER_H

#include "base/error.h"

#define FM_FOLDER_MORE_LINK "more"
#define FM_FOLDER_IN_MEMORY "/dev/shm"
#define FM_FOLDER_PREFIX    "fathom-" /* then some letters that mkdtemp chooses */
#define FM_FOLDER_LETTERS   6

struct fm_folder {
    char *path;          /* absolute */
    char *more;          /* NULL if `path` is on disk already */
    int lock, more_lock; /* −1 where there is none */
};

int fm_folder_make(struct fm_folder *folder, struct fm_error *err);
void fm_folder_remove(const struct fm_folder *folder); /* the files in it, then itself */
void fm_folder_release(struct fm_folder *folder);

#endif

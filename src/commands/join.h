/*
 * Joins what the processes of a run left in its folder into one profile: PID.N.live stores (with
 * their .more files and traces) and PID.N.unprofiled notes, in order of PID and N, then what was sampled: the
 * sampler's own profile, or samples.fathom, which it wrote.
 *
 * The sources of the code that ran are taken in, too, as long as they are still there.
 *
 * Used by `fathom run` when the program has ended, and by `fathom merge` for a run whose launcher
 * was killed. Nothing in the folder is changed. The folder must be of this machine and boot: the
 * stores hold ticks of its clock.
 */
#ifndef FM_COMMANDS_JOIN_H
#define FM_COMMANDS_JOIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "record/model/profile.h"
#include "watch/trace/trace_watch.h"

/* How a process ended, as its parent learned. */
struct fm_join_ending {
    uint32_t pid;
    uint64_t end_ns;     /* CLOCK_MONOTONIC, 0 if unknown */
    int32_t exit_status; /* as a shell shows it, -1 if unknown */
};

/* Add every process in `folder` to `into`. A process may have several stores, one per program it
 * executed: the last takes the ending. A store that cannot be read becomes a note of kind "lost";
 * only a folder that cannot be read is an error. `sampled` is changed; NULL: that of the folder.
 * `traces` has what was packed of processes that ended; of others, or if it is NULL, that is done here. */
int fm_join_folder(struct fm_profile *into, const char *folder, struct fm_profile *sampled,
                   const struct fm_trace_watch *traces, const struct fm_join_ending *endings,
                   size_t n_endings, struct fm_error *err);

#endif

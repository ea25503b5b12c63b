/*
 * The curve of memory during `fathom run`: looked at by the launcher while it waits (wait.h), put
 * into the recording at the end. What was watched is in watch/memory/watch.h.
 */
#ifndef FM_COMMANDS_RUN_CURVE_H
#define FM_COMMANDS_RUN_CURVE_H

#include "commands/run/options.h"
#include "watch/memory/watch.h"
#include "watch/os/run/folder.h"

/* NULL if it was not asked for. */
struct fm_memory_watch *fm_run_curve_start(const struct fm_run_options *options,
                                           const struct fm_folder *folder, pid_t pid);

/* The curves, and a note if the kernel ended a process for want of memory. `exit_status` is that of
 * the program `pid`, −1 while it runs. */
void fm_run_curve_gather(struct fm_memory_watch *w, struct fm_profile *p, pid_t pid,
                         int32_t exit_status);

#endif

/*
 * The environment that `fathom run` gives to the program: the launcher's own, with the preload
 * library in LD_PRELOAD, behind what the user preloads, and the run described in FATHOM_RUN. The
 * order of everything else is kept. target/preload/environment.c takes both out again.
 */
#ifndef FM_COMMANDS_RUN_ENVIRONMENT_H
#define FM_COMMANDS_RUN_ENVIRONMENT_H

#include <stdbool.h>

#include "base/error.h"
#include "commands/run/options.h"
#include "watch/os/run/folder.h"

struct fm_run_environment {
    char **entries;      /* NULL-terminated, for exec */
    char *preload, *run; /* the two that are ours */
};

int fm_run_environment_init(struct fm_run_environment *environment, const char *agents,
                            const struct fm_folder *folder, const struct fm_run_options *options,
                            struct fm_error *err);
void fm_run_environment_release(struct fm_run_environment *environment);

/* A run that has nothing inside the program leaves word for a program that uses regions. A run can do without. */
void fm_run_environment_leave_word(const struct fm_folder *folder,
                                   const struct fm_run_options *options);

#endif

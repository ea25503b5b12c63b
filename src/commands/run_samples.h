/*
 * Sampling during `fathom run`: the sampler lives in the launcher and watches the program from outside.
 *
 * What it gathered is written into the run's folder now and then, and at the end, as samples.fathom:
 * join.c takes it from there together with the live stores, and `fathom merge` finds it if the launcher
 * was killed.
 */
#ifndef FM_COMMANDS_RUN_SAMPLES_H
#define FM_COMMANDS_RUN_SAMPLES_H

#include <sys/types.h>

#include "os/folder.h"
#include "sampler/sampler.h"

#define FM_RUN_SAMPLES_FILE "samples.fathom"

struct fm_run_samples {
    struct fm_sampler *sampler; /* NULL: not asked for */
    char *path;
    uint64_t next_save_ns;
};

/* Begin to watch the program `pid`, which was just launched. */
int fm_run_samples_start(struct fm_run_samples *s, const struct fm_sampler_options *options, pid_t pid,
                         const struct fm_folder *folder, struct fm_error *err);

/* When to call fm_run_samples_save() next, for a recording that outlives the launcher. */
uint64_t fm_run_samples_due_ns(const struct fm_run_samples *s);

/* Write what was gathered so far. */
int fm_run_samples_save(struct fm_run_samples *s, struct fm_error *err);

/* The program has ended: write everything. */
int fm_run_samples_finish(struct fm_run_samples *s, struct fm_error *err);
void fm_run_samples_release(struct fm_run_samples *s);

#endif

/*
 * Sampling during `fathom run`: the sampler lives in the launcher and watches the program from
 * outside.
 *
 * What it gathered is written into the run's folder now and then as samples.fathom, where `fathom
 * merge` finds it if the launcher was killed. At the end join.c takes it from memory together with
 * the live stores; it goes to the folder once more only if that stays, since the recording could
 * not be written or somebody still runs.
 */
#ifndef FM_COMMANDS_RUN_SAMPLES_H
#define FM_COMMANDS_RUN_SAMPLES_H

#include <sys/types.h>

#include "commands/save_times.h"
#include "watch/memory/watch.h"
#include "watch/os/run/folder.h"
#include "watch/sampler/sampler.h"

#define FM_RUN_SAMPLES_FILE "samples.fathom"
#define FM_RUN_FACTS_FILE   "run.fathom" /* what is known about the run before it begins */

struct fm_run_samples {
    struct fm_sampler *sampler; /* NULL: not asked for */
    char *path;
    struct fm_save_times times;
    struct fm_memory_watch *memory; /* whose curves are saved as well; NULL: none */
    bool redact;
    bool saved; /* there is something of it in the folder */
};

/* Begin to watch the program `pid`, which was just launched. */
int fm_run_samples_start(struct fm_run_samples *s, const struct fm_sampler_options *options,
                         pid_t pid, const struct fm_folder *folder, struct fm_error *err);

/* When to call fm_run_samples_save() next, for a recording that outlives the launcher. */
uint64_t fm_run_samples_due_ns(const struct fm_run_samples *s);

/* Write what was gathered so far into the folder. */
int fm_run_samples_save(struct fm_run_samples *s, struct fm_error *err);

/* What was gathered so far; NULL if nothing is sampled. The caller frees it. */
struct fm_profile *fm_run_samples_profile(struct fm_run_samples *s);

/* The program has ended: look no more. */
void fm_run_samples_stop(struct fm_run_samples *s);
void fm_run_samples_release(struct fm_run_samples *s);

#endif

/*
 * The flight recorder of `fathom run --trace --keep-on`: when something happens that was waited for
 * (watch/trace/trigger.h), the recording so far goes to a file of its own, beside that of the run.
 *
 * What happens while one is being written, or soon after, shares the next file: a quarter of the window lies
 * between two. So a program in which it happens all the time writes four files per window, and no more
 * than --keep-most in all. What happens last is in the recording of the run.
 */
#ifndef FM_COMMANDS_RUN_KEEP_H
#define FM_COMMANDS_RUN_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "commands/run/output.h"
#include "commands/run/trace_options.h"
#include "watch/trace/trace_watch.h"

struct fm_run_kept {
    char *path; /* NULL: it could not be written */
    char *why;
};

struct fm_run_keep {
    const struct fm_run_trace *options; /* NULL: nothing is waited for */
    struct fm_run_names names;
    char *template;
    uint64_t start_ns;         /* of the run */
    uint64_t look_ns, next_ns; /* when to look again, and when to write again */
    uint64_t pending;          /* what happened and is not written */
    char *why;                 /* … the first of it */
    uint64_t left_out;         /* … for which there was no file left */
    FM_VEC(struct fm_run_kept) files;
};

/* `template` is that of the run's recording, or NULL, `path` what it became. */
void fm_run_keep_init(struct fm_run_keep *keep, const struct fm_run_trace *options,
                      const char *template, const char *path, const struct fm_run_names *names,
                      uint64_t start_ns);
void fm_run_keep_release(struct fm_run_keep *keep);

/* When to look next; UINT64_MAX: never. */
uint64_t fm_run_keep_due_ns(const struct fm_run_keep *keep);

/* Has something happened that is to be written now? Then give the profile so far to the second; NULL: it
 * could not be had, for the reason in `err`. */
bool fm_run_keep_look(struct fm_run_keep *keep, struct fm_trace_watch *traces);
void fm_run_keep_write(struct fm_run_keep *keep, struct fm_profile *p, struct fm_error *err);

/* The program has ended: what was kept, and what is in the recording at `path` alone. */
void fm_run_keep_report(struct fm_run_keep *keep, struct fm_trace_watch *traces, const char *path);

#endif

/*
 * Where a run's recording goes: its name, and the promise that nothing is overwritten unasked.
 *
 * A .fathom output that is new exists from the start: a small valid recording with the facts of the
 * run, among them "live", the folder with the processes' stores. If the launcher is killed, `fathom
 * report` and `fathom merge` find everything through it. At the end the finished file takes its
 * place. One that --force gave up stays as it is until then, so that at every moment there is the
 * old recording or the whole new one; the folder of such a run is found by `fathom doctor`.
 */
#ifndef FM_COMMANDS_RUN_OUTPUT_H
#define FM_COMMANDS_RUN_OUTPUT_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/memory.h"
#include "record/formats/format.h"
#include "record/model/profile.h"

struct fm_run_output {
    char *path;
    const struct fm_format *format; /* NULL: .fathom */
    bool replace;                   /* whatever has that name at the end is ours to replace */
    bool made;                      /* the file exists because we made it … */
    bool written;        /* … and holds a recording, more than the facts of the start */
    bool force;          /* whatever else has that name may go, too */
    struct stat as_made; /* the file as we left it */
    struct fm_memory_undo undo;
};

/* What the letters of a name template stand for. */
struct fm_run_names {
    const char *stem; /* %s */
    pid_t pid;        /* %p */
};

/* The recording named by `template` (NULL: after the program). Fails with FM_EXISTS when there is
 * such a file and not `force`, with FM_CANNOT_WRITE when it could not be written later on.
 * `facts` is what the file holds until the run ends. */
int fm_run_output_open(struct fm_run_output *output, const char *template, bool force,
                       const struct fm_run_names *names, const struct fm_profile *facts,
                       struct fm_error *err);

int fm_run_output_write(struct fm_run_output *output, const struct fm_profile *p,
                        struct fm_error *err);

/* From now on the file stays, if memory is exhausted, although it holds the facts alone: they lead to
 * what is recorded. */
void fm_run_output_keep(struct fm_run_output *output);

/* Nothing ran, or nothing of it could be kept: leave no file behind that says otherwise. */
void fm_run_output_cancel(struct fm_run_output *output);
void fm_run_output_release(struct fm_run_output *output);

#endif

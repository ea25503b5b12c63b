/* The curve of memory during `fathom run`; see curve.h. */
#include "commands/run/curve.h"

#include <string.h>

struct fm_memory_watch *fm_run_curve_start(const struct fm_run_options *options,
                                           const struct fm_folder *folder, pid_t pid)
{
    if (!options->memory && !options->resident)
        return NULL;
    struct fm_memory_watch_options watch = { .folder = options->memory ? folder->path : NULL,
                                             .children = options->sampling.children,
                                             .shares = options->shares,
                                             .limit = options->limit };
    watch.events = options->memory && strcmp(options->memory, "events") == 0;
    return fm_memory_watch_new(&watch, pid);
}

void fm_run_curve_gather(struct fm_memory_watch *w, struct fm_profile *p, pid_t pid,
                         int32_t exit_status)
{
    if (!w)
        return;
    fm_memory_watch_gather(w, p);
    for (size_t i = 0; i < p->processes.len; i++)
        if (p->processes.data[i].pid == (uint32_t)pid && !p->processes.data[i].profiled &&
            p->processes.data[i].exit_status < 0)
            p->processes.data[i].exit_status = exit_status;
    fm_memory_watch_note_kills(w, p);
}

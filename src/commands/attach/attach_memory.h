/*
 * `fathom attach --memory` and `--trace`: the memory of a running Python, or when its calls begin and end, from
 * now on, until told to stop.
 *
 * The process begins a recording itself, in a folder of ours (attach_script.h); from there on all is as
 * in a run. The recording is made before the process is told to end it, so that nothing of that is in
 * it, and so that it is there though the process does not answer.
 */
#ifndef FM_COMMANDS_ATTACH_MEMORY_H
#define FM_COMMANDS_ATTACH_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "commands/run/trace_options.h"

struct fm_attach_memory_options {
    pid_t pid;
    const char *output; /* NULL: attach-PID.fathom */
    bool force, quiet, redact, children, shares;
    uint64_t duration_ns; /* 0: until told to stop */
    uint64_t wait_ns;     /* for the process to answer */
    int signals;          /* signalfd: SIGUSR1 saves, others stop */
    int ready_fd;         /* −1: none */
    /* Instead of memory: the trace, with these options; NULL: memory. */
    const struct fm_run_trace *trace;
    bool c_calls;
};

/* The exit status. */
int fm_attach_memory(const struct fm_attach_memory_options *options);

#endif

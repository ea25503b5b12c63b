/*
 * The options of `fathom run`. They end at the first word that is not one: the command.
 */
#ifndef FM_COMMANDS_RUN_OPTIONS_H
#define FM_COMMANDS_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "commands/run/trace_options.h"
#include "commands/sample_options.h"

struct fm_run_options {
    const char *output; /* -o, NULL if not given */
    const char *python; /* --python, NULL if not given */
    bool force, quiet, redact;
    /* The collectors. Each parses into here; run_environment.c hands it to the agents. */
    bool sample; /* stacks from outside */
    struct fm_sampler_options sampling;
    struct fm_run_trace trace; /* when every call begins and ends; `calls` is set, too */
    bool calls;                /* every call */
    bool c_calls;              /* … and every C call */
    bool lines;                /* lines of the functions that `patterns` chooses */
    bool split_lines;          /* physical lines, not statements */
    char patterns[1024];       /* separated by commas; see target/agent/lines/choose.h */
    int64_t fail_above;   /* bytes that no process may have at its peak; 0: as many as it likes */
    int64_t limit;        /* bytes that all processes may have; then they are ended. 0: no limit */
    bool types;           /* … with the types of objects */
    const char *memory;   /* NULL: not; else what of it: "all", "malloc", "sampled" */
    int64_t sample_bytes; /* of memory=sampled: a block in so many */
    uint64_t seed;        /* … and which: 0: others each time */
    bool resident;        /* the curve of resident memory, from outside; --memory has it, too */
    bool shares;          /* … with proportional shares and swap */
    int flush_signal;     /* sent to the launcher, writes the recording so far; 0: none */
    char **command;       /* NULL-terminated, at least one word */
};

/* Does a collector run inside the program? */
static inline bool fm_run_options_inside(const struct fm_run_options *options)
{
    return options->calls || options->lines || options->memory;
}

/* −1 to go on; otherwise the exit status with which to end: help was shown, or a sentence. */
int fm_run_options_parse(struct fm_run_options *options, int argc, char **argv);

#endif

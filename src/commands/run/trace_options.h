/*
 * What `fathom run --trace` is asked for beside the trace itself: what happens when there is no room, and
 * which calls are left out.
 */
#ifndef FM_COMMANDS_RUN_TRACE_OPTIONS_H
#define FM_COMMANDS_RUN_TRACE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "watch/trace/trigger.h"

struct fm_run_trace {
    const char *verb; /* whose options these are, for sentences */
    bool on;
    bool drops;         /* --on-full drop: events are lost rather than waiting for room */
    bool chosen;        /* --on-full was given */
    bool paused;        /* nothing is traced before the program asks for it */
    uint32_t max_depth; /* deeper calls are left out; 0: none */
    uint64_t window_ns; /* only the last so much of the timeline is kept; 0: all of it */
    uint64_t min_ns;    /* shorter calls are left out; 0: none */
    char include[1024]; /* patterns separated by commas, as those of --lines; "": everything */
    char exclude[1024];
    struct fm_trigger_rules keep_on; /* each writes a recording of its own */
    uint32_t keep_most;              /* … so many at most */
    char args[1024], returns[1024];  /* whose values are kept; "": nobody's */
    char watch[1024];                /* FILE:LINE:NAME, separated by commas */
    unsigned watches;                /* so many */
    bool repr;                       /* values are asked for their repr() */
};

#define FM_RUN_KEEP_MOST 10

/* clang-format off */
#define FM_RUN_TRACE_HELP \
    "  --trace         record when every call begins and ends, on every thread: the timeline; with\n" \
    "                  it all that --calls has. fathom view shows it\n" \
    "  --paused        with --trace: nothing before the program calls fathom.trace_start()\n" \
    "  --on-full WHAT  with --trace, when the disk is too slow: block (the default: the program waits)\n" \
    "                  or drop (calls are lost, counted and marked)\n" \
    "  --max-depth N   with --trace: only calls with fewer than N others around them\n" \
    "  --min-duration TIME   with --trace: only calls that took so long; 10us, 1.5ms, 2s\n" \
    "  --window TIME   with --trace: keep only the last so much of the timeline, however long it runs;\n" \
    "                  --flush-signal writes it at any time. Tables have the whole run\n" \
    "  --keep-on WHAT  with --trace: write the recording so far (with --window: its last seconds) to a file\n" \
    "                  of its own, NAME-kept-1.fathom, …, when exception[=TYPE] is raised, one is\n" \
    "                  uncaught[=TYPE], or on slow=NAME:TIME, a region or function; may be repeated\n" \
    "  --keep-most N   with --keep-on: at most so many files; default 10\n" \
    "  --include PATTERN, --exclude PATTERN   with --trace: only these functions, or not these: a\n" \
    "                  function, class, module or file name or glob, mine or all; may be repeated.\n" \
    "                  The time of a call that is left out is its caller's\n" \
    "  --args PATTERN, --returns PATTERN   with --trace: keep what these functions are called with, or\n" \
    "                  what they return; may be repeated. Numbers and short texts as they are, all\n" \
    "                  else by type and length; with --repr by its repr(), which runs the program's code\n" \
    "  --watch FILE:LINE:NAME   with --trace: the value of a variable each time the line is reached;\n" \
    "                  numbers are drawn as a curve; may be repeated\n"
/* clang-format on */

/* The option at words[*at]. −1: taken; −2: it is none of these; else the exit status. */
int fm_run_trace_take(struct fm_run_trace *trace, char **words, int *at);

/* −1, or the exit status: something that goes with --trace alone was given without it. */
int fm_run_trace_check(const struct fm_run_trace *trace);

/* What the agents are told (base/run_config.h). */
void fm_run_trace_config(const struct fm_run_trace *trace, struct fm_buffer *into);

#endif

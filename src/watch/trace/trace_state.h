/*
 * What a log tells whoever comes after it, with each mark of its packed file (journal.h): the state of its packer
 * (model/trace/pack/pack.h), which chunk of each thread is next, and how much of the past is kept. Only the last
 * one counts; the one before is given back to the file system.
 */
#ifndef FM_WATCH_TRACE_STATE_H
#define FM_WATCH_TRACE_STATE_H

#include "watch/trace/trace_parts.h"

#define FM_TRACE_STATE_BLOCK 61u /* its type in the packed file; it is in no recording */

/* The state and the mark behind it, into the packed file. False if that cannot be written. */
bool fm_trace_state_put(struct fm_trace_log *log);

struct fm_trace_state {
    uint64_t told_ns;   /* when; 0: there is no state */
    uint64_t window_ns; /* what is older may be gone; 0: everything is there */
    struct fm_cursor rest;
};

/* Read the first of it; the rest is to be taken when the packer has all blocks. `bytes` outlive it. */
struct fm_trace_state fm_trace_state_open(const void *bytes, size_t len);
bool fm_trace_state_take(struct fm_trace_log *log, struct fm_trace_state *state);

#endif

/*
 * Only the last seconds of a trace: blocks of the packed file that are older are given back to the file
 * system, as holes. So a run of any length takes as much room as its last seconds, and their places stay
 * where they are. A reader passes over holes. Which blocks decode alone says model/trace/pack/pack.h.
 */
#ifndef FM_WATCH_TRACE_WINDOW_H
#define FM_WATCH_TRACE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct fm_window_block {
    uint64_t at, end; /* in the file */
    uint64_t ns;      /* when it was written: later than all that is in it */
};

struct fm_trace_window {
    uint64_t ns;     /* how long; 0: everything is kept */
    uint64_t due_ns; /* when blocks are to be made and forgotten next */
    size_t first;    /* that is not forgotten */
    FM_VEC(struct fm_window_block) blocks;
};

void fm_trace_window_release(struct fm_trace_window *window);

/* A block was written. */
void fm_trace_window_add(struct fm_trace_window *window, uint16_t type, uint64_t at, uint64_t end);

/* Is it time? Four times in a window: then no more than a quarter is kept too long. */
bool fm_trace_window_is_due(struct fm_trace_window *window);

/* Give back what is too old, seen from that instant: whoever is told then how long the window is finds all of
 * it. */
void fm_trace_window_forget(struct fm_trace_window *window, int fd, uint64_t now_ns);

/* … one block. */
void fm_trace_window_give_back(const struct fm_window_block *block, int fd);

#endif

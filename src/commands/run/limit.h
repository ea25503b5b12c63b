/*
 * `--limit SIZE`: a run whose processes together have more is ended, in order, while the recording says
 * what was alive.
 *
 * The process that passes the limit notes it in the file that all of them share (capture/live_heap.h)
 * and asks itself to end, by SIGTERM, in the same instant. The launcher, which looks at that file
 * with each look at memory, then asks each of the others, once, and after five seconds ends by SIGKILL
 * who is still there.
 */
#ifndef FM_COMMANDS_RUN_LIMIT_H
#define FM_COMMANDS_RUN_LIMIT_H

#include "base/error.h"
#include "record/model/profile.h"
#include "watch/memory/watch.h"
#include "watch/os/run/watch.h"

struct fm_run_limit {
    int64_t bytes; /* 0: there is none */
    const char *folder;
    uint64_t passed_ns; /* when it was seen; 0: not */
    uint32_t pid;       /* who passed it, and what all had then */
    int64_t had;
};

/* To be called with each look at memory. */
void fm_run_limit_look(struct fm_run_limit *limit, struct fm_memory_watch *memory);

/* The program has ended: if the limit was passed, all its processes are to. */
void fm_run_limit_end(struct fm_run_limit *limit, struct fm_memory_watch *memory,
                      struct fm_watch *watch);

/* Put it into the recording, if it was passed. */
void fm_run_limit_note(const struct fm_run_limit *limit, struct fm_profile *p);

/* 0, or the exit status after a sentence. */
int fm_run_limit_report(const struct fm_run_limit *limit, const struct fm_profile *p);

#endif

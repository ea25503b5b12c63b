/* What fm_memory_watch is inside: watch.c looks, gather.c tells what was seen. Nobody else reads this. */
#ifndef FM_MEMORY_WATCHED_H
#define FM_MEMORY_WATCHED_H

#include "base/map.h"
#include "base/vec.h"
#include "record/model/curve.h"
#include "watch/memory/cgroup.h"
#include "watch/memory/residence.h"
#include "watch/memory/watch.h"
#include "watch/os/run/newborn.h"

#define FM_MEMORY_INTERVAL_NS 10000000u /* between two looks */

struct memory_watched {
    pid_t pid, parent;
    uint64_t first_ns, last_ns; /* looks */
    int resident, heap;         /* descriptors, −1 if there is none */
    unsigned heap_number;       /* PID.N.heap */
    bool asked;                 /* to end */
    struct fm_slicer *slicer;   /* of that; NULL: there is none */
    struct fm_event_log *log;   /* … or this */
    int more;                   /* the second file of the store, −1 if it is not open */
    struct fm_residence last, highest;
    int64_t code; /* bytes of the program's code */
    char *exe, *command;
    struct fm_curve curve;
};

struct fm_memory_watch {
    struct fm_memory_watch_options options;
    char *folder;
    int inotify;
    struct fm_newborn newborn;
    FM_VEC(struct memory_watched) list;
    FM_VEC(uint32_t) running;
    struct fm_map by_pid; /* the last of that number */
    struct fm_curve sum;
    struct fm_cgroup group;
    int64_t limit, kills, machine_kills;
    /* The most that the group had when it was close to its limit, and that; 0: never. */
    int64_t near, near_limit;
    uint64_t due_ns, limit_ns, shares_ns, slices_ns, into_ns;
    size_t into_next; /* of those that run: whose turn it is */
    uint64_t cpu_ns;  /* of this thread, when the last look was over */
};

static inline bool fm_memory_runs(const struct memory_watched *watched)
{
    return watched && watched->resident >= 0;
}

#endif

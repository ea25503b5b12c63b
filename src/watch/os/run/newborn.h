/*
 * New processes, noticed cheaply: what a sampler asks at every round.
 *
 * The last word of /proc/loadavg is the newest id that was given to any task of our pid namespace.
 * With a kept descriptor, one pread of about a microsecond tells that nothing was born; otherwise
 * the ids in between are looked at. Ids are also given to threads, and shortly before the task can
 * be seen: an id that shows nothing is looked at again for a while.
 *
 * When ids have wrapped around, or very many were given, or the file is not the kernel's own (lxcfs
 * shows another one), /proc is listed instead and everything that started since the last look is
 * reported. That may report a process twice: whoever keeps a set of known ones (they do, to ask about
 * kinship) does not mind.
 *
 * Every new process is reported, whoever made it; the caller decides about kinship. One whose parent
 * has ended belongs to process 1 or to a subreaper by the time it is seen (a daemon that forked
 * twice): its group and session still tell where it came from, unless it has made its own. A
 * process that was born and has ended between two looks is not reported.
 *
 * Threads: one caller at a time.
 */
#ifndef FM_OS_NEWBORN_H
#define FM_OS_NEWBORN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct fm_newborn_process {
    pid_t pid, parent, group, session;
    uint64_t start_ticks; /* tells processes of one number apart; see procfs.h */
};

/* Not 0 ends the report; fm_newborn_poll() returns it. What was not reported is lost. */
typedef int (*fm_newborn_fn)(const struct fm_newborn_process *process, void *data);

struct fm_newborn_pending {
    pid_t id;
    int64_t next_ns; /* when to look again */
    int64_t step_ns; /* how long that is after the last look; it doubles */
};

struct fm_newborn {
    int fd;                                    /* of /proc/loadavg; -1: listing only */
    pid_t last;                                /* newest id seen */
    uint64_t looked_ticks;                     /* when, in clock ticks since boot */
    int64_t listed_ns;                         /* when /proc was listed last, if it must be */
    FM_VEC(struct fm_newborn_pending) pending; /* ids that showed nothing yet */
};

/* From now on. Always works; a /proc that shows nothing gives no newborn. */
void fm_newborn_init(struct fm_newborn *nb);
void fm_newborn_release(struct fm_newborn *nb);

/* Report the processes born since the last call: 0, or what `report` returned. */
int fm_newborn_poll(struct fm_newborn *nb, fm_newborn_fn report, void *data);

/* Report all present descendants of a process, itself not: parents before their children. To miss
 * none, call it after fm_newborn_init(). */
int fm_newborn_descendants(pid_t pid, fm_newborn_fn report, void *data);

#endif

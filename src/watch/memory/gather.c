/*
 * What was seen of the memory of a run, as a profile; see watch.h.
 *
 * A process that recorded something is in the profile anyway and gets its curve. Others come in for
 * their memory alone if it mattered: a run may start thousands.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "watch/memory/watched.h"

/* Processes that are in a profile for their memory only: those that reached this part of the run's
 * highest sum, or, if they were looked at so often, that part. */
#define OTHERS_LARGE 4
#define OTHERS_LEAST 3 /* looks, of any */
#define OTHERS_LOOKS 10
#define OTHERS_SHARE 20
#define OTHERS_MAX   64 /* processes in a profile that are there for their memory only */

/* The process of the profile that `watched` was at that time: of several programs that it executed
 * the last that had begun, or the first. FM_NONE: it is not there. */
static uint32_t process_at(const struct fm_profile *p, const struct memory_watched *watched,
                           uint64_t at_ns)
{
    uint32_t found = FM_NONE;
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct fm_process *process = &p->processes.data[i];
        if (process->pid != (uint32_t)watched->pid ||
            (process->end_ns && process->end_ns < watched->first_ns) ||
            (process->start_ns &&
             process->start_ns > watched->last_ns + FM_MEMORY_INTERVAL_NS * 10))
            continue;
        if (found == FM_NONE ||
            (process->start_ns <= at_ns && process->start_ns >= p->processes.data[found].start_ns))
            found = i;
    }
    return found;
}

static void add_points(struct fm_profile *p, const struct memory_watched *watched, uint32_t process)
{
    size_t from = p->memory.points.len;
    fm_curve_copy(&watched->curve, process, &p->memory);
    for (size_t i = from; i < p->memory.points.len; i++) {
        struct fm_memory_point *point = &p->memory.points.data[i];
        uint32_t then = process_at(p, watched, point->at_ns);
        point->process = then == FM_NONE ? process : then;
    }
}

static void add_residence(struct fm_profile *p, const struct memory_watched *watched,
                          enum fm_resident_when when, const struct fm_residence *r)
{
    struct fm_resident account = r->account;
    uint32_t process = process_at(p, watched, account.at_ns);
    if (!account.rss || process == FM_NONE)
        return;
    account.process = process;
    account.when = when;
    fm_vec_push(&p->memory.residents, account);
    for (size_t i = 0; i < r->libraries.len; i++) {
        const struct fm_residence_library *library = &r->libraries.data[i];
        fm_vec_push(&p->memory.reserves,
                    ((struct fm_reserve){ process, when, fm_profile_string(p, library->path),
                                          library->reserved, library->resident }));
    }
}

static int64_t highest(const struct fm_curve *c)
{
    int64_t most = 0;
    for (size_t i = 0; i < c->points.len; i++)
        most = c->points.data[i].rss > most ? c->points.data[i].rss : most;
    return most;
}

struct memory_other {
    const struct memory_watched *watched;
    int64_t highest;
};

static int compare_others(const void *a, const void *b)
{
    const struct memory_other *x = a, *y = b;
    if (x->highest != y->highest)
        return x->highest < y->highest ? 1 : -1;
    return x->watched->first_ns < y->watched->first_ns ? -1 : 1;
}

static void add_other(struct fm_profile *p, const struct memory_watched *watched)
{
    uint64_t ago_ns = fm_clock_ns() - watched->first_ns;
    struct fm_process process = {
        .pid = (uint32_t)watched->pid,
        .parent_pid = (uint32_t)watched->parent,
        .exe = fm_profile_string(p, watched->exe ? watched->exe : ""),
        .command = fm_profile_string(p, watched->command ? watched->command : ""),
        .start_ns = watched->first_ns,
        .start_real_ns = fm_clock_read_ns(CLOCK_REALTIME) - ago_ns,
        .end_ns = fm_memory_runs(watched) ? 0 : watched->last_ns,
        .exit_status = -1,
    };
    add_points(p, watched, fm_profile_process(p, &process));
}

void fm_memory_watch_gather(struct fm_memory_watch *w, struct fm_profile *p)
{
    FM_VEC(struct memory_other) others = { 0 };
    if (!w)
        return;
    int64_t most = highest(&w->sum);
    for (size_t i = 0; i < w->list.len; i++) {
        const struct memory_watched *watched = &w->list.data[i];
        uint32_t process = process_at(p, watched, watched->last_ns);
        struct memory_other other = { watched, 0 };
        if (!watched->first_ns)
            continue;
        if (process != FM_NONE) {
            add_points(p, watched, process);
            add_residence(p, watched, FM_RESIDENT_HIGHEST, &watched->highest);
            add_residence(p, watched, FM_RESIDENT_LAST, &watched->last);
            continue;
        }
        other.highest = i == 0 ? INT64_MAX : highest(&watched->curve);
        size_t looks = watched->curve.points.len;
        if (i == 0 || (looks >= OTHERS_LEAST && other.highest >= most / OTHERS_LARGE) ||
            (looks >= OTHERS_LOOKS && other.highest >= most / OTHERS_SHARE))
            fm_vec_push(&others, other);
    }
    if (others.len)
        qsort(others.data, others.len, sizeof *others.data, compare_others);
    for (size_t i = 0; i < others.len && i < OTHERS_MAX; i++)
        add_other(p, others.data[i].watched);
    fm_vec_release(&others);
    fm_curve_copy(&w->sum, FM_NONE, &p->memory);
}

void fm_memory_watch_note_kills(const struct fm_memory_watch *w, struct fm_profile *p)
{
    if (!w)
        return;
    int64_t kills = fm_cgroup_kills(&w->group);
    bool group = w->kills >= 0 && kills > w->kills;
    bool machine = w->kills < 0 && w->machine_kills >= 0 && fm_machine_kills() > w->machine_kills;
    char text[256];
    if (w->near) {
        snprintf(text, sizeof text,
                 "its control group had %.1f MiB, without what is cached of files, of the %.1f MiB "
                 "that it may have",
                 (double)w->near / 1048576, (double)w->near_limit / 1048576);
        fm_profile_note(p, FM_NONE, "near-limit", 1, text);
    }
    for (uint32_t i = 0; i < p->processes.len && (group || machine); i++) {
        if (p->processes.data[i].exit_status != 128 + SIGKILL)
            continue;
        if (group && w->limit >= 0)
            snprintf(text, sizeof text,
                     "it was ended by the kernel: the memory that its control group may "
                     "have, %.1f MiB, was used up",
                     (double)w->limit / 1048576);
        else
            snprintf(text, sizeof text,
                     "it was ended by the kernel: the machine's memory was used up");
        fm_profile_note(p, i, "out-of-memory", 1, text);
    }
}

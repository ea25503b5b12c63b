/* Sitting on a processor; see seat.h. */
#include "watch/os/still/seat.h"

#include <errno.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 200000u
#define NICE     (-10)

/* Before all that is no real-time thread: the kernel allows that to root and by RLIMIT_RTPRIO. */
static bool go_first(struct fm_seat *seat, int priority)
{
    struct sched_param param = { .sched_priority = priority };
    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) != 0)
        return false;
    seat->priority = priority;
    return true;
}

/* A short slice, which anybody may ask for, and a higher priority, if that is allowed. */
static bool take_short_turns(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
    } attributes = { .size = 48, .policy = SCHED_OTHER, .nice = NICE, .runtime_ns = SLICE_NS };
    if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) {
        attributes.nice = getpriority(PRIO_PROCESS, 0);
        syscall(SYS_sched_setattr, 0, &attributes, 0);
    }
    /* Older kernels take the call and ignore the slice; those that know it tell it. */
    attributes.runtime_ns = 0;
    return syscall(SYS_sched_getattr, 0, &attributes, attributes.size, 0) == 0 &&
           attributes.runtime_ns == SLICE_NS;
}

void fm_seat_init(struct fm_seat *seat, bool sleeps)
{
    *seat = (struct fm_seat){ .cpu = -1 };
    sched_getaffinity(0, sizeof seat->own, &seat->own);
    prctl(PR_SET_TIMERSLACK, 1);
    seat->first = sleeps && go_first(seat, 1);
    seat->prompt = seat->first || (sleeps && take_short_turns());
}

bool fm_seat_go_before(struct fm_seat *seat, pid_t tid)
{
    struct sched_param param;
    int policy = sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK;
    if ((policy != SCHED_FIFO && policy != SCHED_RR) || sched_getparam(tid, &param) < 0)
        return true;
    if (seat->first && param.sched_priority < seat->priority)
        return true;
    return seat->first && param.sched_priority < sched_get_priority_max(SCHED_FIFO) &&
           go_first(seat, param.sched_priority + 1);
}

void fm_seat_wait_turn(struct fm_seat *seat)
{
    if (seat->first)
        seat->prompt = take_short_turns();
    seat->first = false;
}

bool fm_seat_take(struct fm_seat *seat, int cpu)
{
    cpu_set_t set;
    if (cpu == seat->cpu)
        return true;
    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return false;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) < 0) {
        seat->refused = errno;
        return false;
    }
    seat->cpu = cpu;
    return true;
}

void fm_seat_leave(struct fm_seat *seat)
{
    if (seat->cpu >= 0)
        sched_setaffinity(0, sizeof seat->own, &seat->own);
    seat->cpu = -1;
}

struct fm_seat_mark fm_seat_mark(void)
{
    struct rusage usage = { 0 };
    getrusage(RUSAGE_THREAD, &usage);
    return (struct fm_seat_mark){ usage.ru_nvcsw, usage.ru_nivcsw };
}

bool fm_seat_kept(const struct fm_seat_mark *mark)
{
    struct fm_seat_mark now = fm_seat_mark();
    return now.given_up == mark->given_up && now.taken_away == mark->taken_away;
}

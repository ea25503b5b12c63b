/*
 * Sitting on a processor: how a running thread is held still without being stopped.
 *
 * A thread that is pinned to the processor on which the program's thread runs preempts it when it
 * wakes. While it runs there, the other cannot: the kernel treats that as any preemption, there is
 * no signal, no ptrace, nothing to undo, and nothing happens to the program if we die meanwhile.
 * What is read in that time is of one instant, if
 *   1. we have not been switched away (the kernel counts that: fm_seat_kept), and
 *   2. the program's thread has not run elsewhere (its processor is ours still: os/still/rseq.h, or
 *      its stat file).
 *
 * Without more, that would be biased. A look that comes late comes when the processor is free, which
 * is when the program sleeps; and a thread that has just woken may run for a slice (some 3 ms)
 * before another that wakes preempts it, so that what it does first is never seen. So this thread
 * asks to run as soon as it wakes, as one of the lowest real-time priority where that is allowed,
 * else with a short slice (Linux 6.12). On two processors beside two busy loops and a program that
 * sleeps every other millisecond, none, 6 % and 10 % of 3,000 wakes came more than 0.2 ms late with
 * the first, the second and neither.
 *
 * Threads: of and for the calling one.
 */
#ifndef FM_OS_SEAT_H
#define FM_OS_SEAT_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

struct fm_seat {
    int cpu;       /* to which we are pinned; −1: to none */
    int refused;   /* why not, an error number; 0: it works, or was not tried */
    bool prompt;   /* it runs soon after it wakes … */
    bool first;    /* … before all others */
    int priority;  /* … of this real-time priority */
    cpu_set_t own; /* the processors this thread had at first */
};

/* This thread, as it is: pinned to nothing. Asks for prompt wake-ups, which a thread that never
 * sleeps has no claim to. */
void fm_seat_init(struct fm_seat *seat, bool sleeps);

/* Sit on this processor from now on. False if that is refused: another set of processors, or none
 * that exists. */
bool fm_seat_take(struct fm_seat *seat, int cpu);

/* Go before that thread too, if it is one of real-time priority. False if that is refused: then it is
 * never seen while it runs. */
bool fm_seat_go_before(struct fm_seat *seat, pid_t tid);

/* No longer before all others: it takes so much time that they would starve. */
void fm_seat_wait_turn(struct fm_seat *seat);

/* Sit nowhere any more. */
void fm_seat_leave(struct fm_seat *seat);

struct fm_seat_mark {
    long given_up, taken_away; /* how often the processor was */
};

struct fm_seat_mark fm_seat_mark(void);
/* Has this thread been on its processor all the time since? */
bool fm_seat_kept(const struct fm_seat_mark *mark);

#endif

/*
 * The sampler: watches processes from outside and gathers their stacks. It only reads: nothing is
 * stopped (unless that is asked for: halt.h), nothing written, and when it ends or dies the
 * processes do not notice.
 *
 * Model. Rounds at deadlines (with jitter, so that no rhythm of the program can hide from them). In
 * each round every thread of every watched process gives a stack and a state, weighted with the
 * real time since the round before. Equal stacks are counted in place, so memory grows with the
 * structure of the program, not with time. Threads that were blocked and have not run since their
 * last sample are not read again: what is known of them still holds.
 *
 * Threads: fm_sampler_start() makes one that samples. Every function here may be called from the
 * thread that owns the sampler while it runs.
 */
#ifndef FM_SAMPLER_SAMPLER_H
#define FM_SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "record/model/profile.h"
#include "watch/sampler/way.h"

struct fm_sampler_options {
    double rate_hz; /* 0: as fast as it goes */
    enum fm_sample_mode mode;
    double max_cpu_percent; /* of one processor; 0: no limit. The rate falls to keep it */
    bool max_cpu_asked;   /* somebody named that limit: a rate that is asked for does not lift it */
    uint64_t duration_ns; /* 0: until stopped or every process ended */
    bool children;        /* follow them, of every kind */
    bool tasks;           /* asyncio: the await stack of each task too */
    bool timeline;        /* keep the order of samples */
    enum fm_way way;      /* how to look at threads that run */
    const char *folder;   /* of the run, where the regions of its processes are found; or NULL */
};

struct fm_sampler_stats {
    uint64_t rounds, samples, partial, lost;
    uint64_t start_ns, now_ns;   /* CLOCK_MONOTONIC */
    uint64_t cpu_ns;             /* of the sampling thread */
    uint64_t late;               /* rounds that began more than half an interval late */
    double rate_hz;              /* wanted now: less than asked for if max_cpu_percent bites */
    uint32_t processes, threads; /* being watched now */
};

struct fm_sampler;

struct fm_sampler *fm_sampler_new(const struct fm_sampler_options *options);
void fm_sampler_free(struct fm_sampler *s); /* stops it first */

/* Watch a running Python. Errors as of fm_runtime_find(): nothing is watched then. */
int fm_sampler_add(struct fm_sampler *s, pid_t pid, struct fm_error *err);

/* Watch a process that may become a Python, or start some: a program just launched. */
void fm_sampler_expect(struct fm_sampler *s, pid_t pid);

int fm_sampler_start(struct fm_sampler *s, struct fm_error *err);
void fm_sampler_stop(struct fm_sampler *s);

/* A descriptor that becomes readable when sampling has ended by itself: every process is gone, or
 * the duration has passed. */
int fm_sampler_fd(const struct fm_sampler *s);

void fm_sampler_stats(struct fm_sampler *s, struct fm_sampler_stats *ret);

/* What was gathered so far, as a profile of its own: processes, trees, lines, spots, waits, notes
 * about what was lost. Sampling goes on. Sources are not taken in. */
struct fm_profile *fm_sampler_profile(struct fm_sampler *s);

#endif

/*
 * From counts to a profile: what was tallied of each target becomes processes, threads, trees, lines,
 * spots, waits and notes about what was lost (model/profile.h, model/samples.h).
 */
#ifndef FM_SAMPLER_GATHER_H
#define FM_SAMPLER_GATHER_H

#include "record/model/profile.h"

/* What the timeline of a run may take in its recording, about: so much for each minute, or for the whole of
 * a shorter run, and no more than the most. A megabyte an hour are 17,476 bytes a minute. */
#define FM_GATHER_MINUTE_BYTES 16000u
#define FM_GATHER_MOST_BYTES   4000000u

struct fm_account;
struct fm_target;

/* A target and what was counted of it. */
struct fm_gather_source {
    const struct fm_target *target; /* of which only what never changes is looked at */
    const struct fm_account *account;
};

struct fm_gather_settings {
    enum fm_sample_mode mode;
    uint64_t interval_ns;
    uint64_t cpu_ns; /* what sampling took in all; shared out by samples */
};

struct fm_profile *fm_gather(const struct fm_gather_source *sources, size_t n,
                             const struct fm_gather_settings *settings);

#endif

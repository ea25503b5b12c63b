/*
 * From counts to a profile: what was tallied of each target becomes processes, threads, trees, lines,
 * spots, waits and notes about what was lost (model/profile.h, model/samples.h).
 */
#ifndef FM_SAMPLER_GATHER_H
#define FM_SAMPLER_GATHER_H

#include "model/profile.h"

struct fm_target;

struct fm_gather_settings {
    enum fm_sample_mode mode;
    uint64_t interval_ns;
    uint64_t cpu_ns; /* what sampling took in all; shared out by samples */
};

/* The targets are not changed. */
struct fm_profile *fm_gather(struct fm_target *const *targets, size_t n,
                             const struct fm_gather_settings *settings);

#endif

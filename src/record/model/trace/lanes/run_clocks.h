/*
 * The clocks of runs that were merged, on one scale.
 *
 * Processes of one run share a clock that starts with the machine (CLOCK_MONOTONIC). Runs of several machines, or
 * of one that was started anew, are put side by side by the time of day: each process tells an instant on both
 * clocks, and the median of these is how far a run is moved. How far that may be off is what the processes of a
 * run disagree by, and no less than two readings of a clock; whether the clocks of two machines agreed when they
 * were read is known to nobody here. Runs that differ by less than a millisecond are taken for those of one
 * machine, whose clock is exact, and are not moved.
 */
#ifndef FM_MODEL_TRACE_RUN_CLOCKS_H
#define FM_MODEL_TRACE_RUN_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "record/model/profile.h"

struct fm_run_clock {
    bool known; /* a process of it tells the time of day */
    int64_t offset_ns;
    uint64_t shift_ns, uncertain_ns;
};

struct fm_run_clocks {
    FM_VEC(struct fm_run_clock) runs; /* by number; one alone is not moved */
};

void fm_run_clocks_find(struct fm_run_clocks *clocks, const struct fm_profile *p);
void fm_run_clocks_release(struct fm_run_clocks *clocks);

/* By how much times of a process are moved. */
uint64_t fm_run_clocks_shift_ns(const struct fm_run_clocks *clocks, const struct fm_profile *p,
                                uint32_t process);

#endif

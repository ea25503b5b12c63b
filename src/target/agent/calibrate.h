/*
 * What profiling costs this program: measured in the process itself, once, before it starts.
 *
 * A small loop of Python calls, of C calls, of generator resumes and of lines runs with and without
 * the hooks; the difference per event pair goes into the store's header. A millisecond or two in
 * all. Reports multiply it with the events counted, so what Fathom added is a measurement, not a
 * guess.
 *
 * On 3.11 a profile or trace function also slows every instruction in between, up to several times.
 * How many instructions a program runs is not known, only how long it was on a processor: reports
 * make a range of that.
 */
#ifndef FM_AGENT_CALIBRATE_H
#define FM_AGENT_CALIBRATE_H

#include "target/agent/collector.h"

struct fm_calibration {
    uint64_t python_call, c_call, resume; /* ticks * 256 per event pair */
    uint64_t line;                        /* … per line */
    uint64_t slow_permille; /* by how much instructions without an event take longer */
};

/* Measure; zeros where it could not be done. The GIL is held, no collector of this run is on yet.
 */
struct fm_calibration fm_calibrate(const struct fm_options *options);

#endif

/*
 * Sampled lanes of a timeline: what timeline.h asks, answered from the order of samples (sample_order.h).
 *
 * A span is a stretch of samples in which a frame stays at its place in the stack; two calls of one function
 * between which no sample fell are one. Where the order within a stretch of time was forgotten
 * (fm_lane.grain_ns), equal stacks of it stand side by side.
 *
 * A lane stands for a thread. Its instants are those of the samples, each of which stands for half the time
 * before and half the time after it.
 */
#ifndef FM_MODEL_TRACE_SAMPLED_H
#define FM_MODEL_TRACE_SAMPLED_H

#include "record/model/trace/lanes/timeline.h"

struct fm_sampled;

/* NULL if the recording has no order of samples. */
struct fm_sampled *fm_sampled_open(const struct fm_profile *p);
void fm_sampled_free(struct fm_sampled *s);

/* Times here are of the clock of the machine; of later runs of one recording they are moved to where the
 * calendar has them. */
size_t fm_sampled_lanes(const struct fm_sampled *s);
const struct fm_lane *fm_sampled_lane(const struct fm_sampled *s, size_t lane);

/* As fm_timeline_events; the state of a span is told when it ends: the one that it was in for longest. */
void fm_sampled_events(const struct fm_sampled *s, size_t lane, uint64_t from_ns, uint64_t to_ns,
                       fm_lane_event_fn *each, void *context);

/* As fm_timeline_cells. */
void fm_sampled_cells(const struct fm_sampled *s, size_t lane, uint64_t from_ns, uint64_t to_ns,
                      uint64_t cell_ns, struct fm_cells *into);

/* Add what was sampled between two instants to a profile with the same processes, threads and nodes: states,
 * samples and, of threads whose calls are not known, times. Of stretches that follow one another it adds up,
 * to the nanosecond, to what the recording has of them all. */
void fm_sampled_add(const struct fm_sampled *s, uint64_t from_ns, uint64_t to_ns,
                    struct fm_profile *into);

#endif

/*
 * Traced lanes out of begins and ends that somebody else recorded: foreign formats, and tests.
 *
 * Whoever builds gives what happened on each thread in the order of time, nested: an end ends what began
 * last. Times are ns of any clock that starts anywhere. Functions and names are those of the profile. What
 * is packed stays in memory; a span takes about two bytes.
 */
#ifndef FM_MODEL_TRACE_BUILD_H
#define FM_MODEL_TRACE_BUILD_H

#include "record/model/profile.h"
#include "record/model/trace/lanes/timeline.h"

struct fm_trace_build;

struct fm_trace_build *fm_trace_build_new(void);
void fm_trace_build_free(struct fm_trace_build *b);

/* `thread` is a thread of the profile. A function of kind REGION makes a region. A time that lies before
 * the last one of the thread is that one. An end without a begin is left out. */
void fm_trace_build_begin(struct fm_trace_build *b, const struct fm_profile *p, uint32_t thread,
                          uint64_t ns, uint32_t func);
void fm_trace_build_end(struct fm_trace_build *b, uint32_t thread, uint64_t ns);

/* A mark on a thread, at any time; of its fields lane is not used. */
void fm_trace_build_mark(struct fm_trace_build *b, uint32_t thread, const struct fm_mark *mark);

/* All that is open ends; the lanes are those of `process` in the profile, if there are any. Nothing may be
 * given afterwards. */
void fm_trace_build_finish(struct fm_trace_build *b, struct fm_profile *p, uint32_t process);

#endif

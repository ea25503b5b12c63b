/*
 * The timeline of a recording for the page: lanes, cells, marks, durations; see engine.h for the model.
 *
 * The model (record/model/trace/lanes/timeline.h) knows what happened when; here it becomes columns of numbers
 * with functions by their ids in the engine. Times are ns since the timeline began, as doubles. A timeline
 * is opened when it is first asked for.
 */
#ifndef FM_ENGINE_TIMELINE_H
#define FM_ENGINE_TIMELINE_H

#include "engine.h"

/* What there is, as JSON into e->text: "null" without a timeline. */
int fm_engine_timeline(struct fm_engine *e, int recording);

/* Columns: begin, end, function, depth, longest, spans, covered (0 to 255), flags, state. Scalar: 1 if rows
 * were left out. */
int fm_engine_timeline_cells(struct fm_engine *e, int recording, uint32_t lane, double from_ns,
                             double to_ns, double cell_ns);

/* Marks of all lanes; those of one kind and lane that begin within one cell are one row (with the name that
 * they share, or ""). Columns: begin, end, kind, lane, name (row of the JSON array in e->text), function
 * (FM_NONE: none), count, value, lowest, highest, other. Scalar: not 0 if there are more. timeline_marks.c */
int fm_engine_timeline_marks(struct fm_engine *e, int recording, double from_ns, double to_ns,
                             double cell_ns);

/* Names and texts by turns, as a JSON array in e->text: values of a span, or (depth FM_NONE) those of
 * variables that lie between two instants of the lane. timeline_values.c */
int fm_engine_timeline_values(struct fm_engine *e, int recording, uint32_t lane, double begin_ns,
                              double end_ns, uint32_t depth);

/* The same of a mark, by what its row says. */
int fm_engine_timeline_mark_values(struct fm_engine *e, int recording, uint32_t lane, uint32_t kind,
                                   double begin_ns, double value);

/* Tasks of asyncio in results[0]: process, lane (FM_NONE: not known), number in the process, name (row of the
 * JSON array in e->text), number of the task that made it or 0, created, done. Scalar: 1 if there are more.
 * Processes made by others in results[1]: lane and lane, when and when. timeline_tasks.c */
int fm_engine_timeline_tasks(struct fm_engine *e, int recording);

/* When Python code of a process stood still for at least `least_ns` while another thread had the interpreter, as
 * far as events between two instants tell. Columns: lane, lane that had the interpreter last, depth of the code,
 * last event before, first event of another, last event of another, its next event. Scalar: 1 if there are more.
 * timeline_turns.c */
int fm_engine_timeline_turns(struct fm_engine *e, int recording, uint32_t process, double from_ns,
                             double to_ns, double least_ns);

/* What threads waited for the interpreter between two instants, a row for each traced lane. Columns: is it
 * known, turns, waits, ns at least, at most, of the longest, and since when that. timeline_turns.c */
int fm_engine_timeline_waits(struct fm_engine *e, int recording, double from_ns, double to_ns);

/* Blocks of single calls that were needed and are not here, since this was last asked: trace, block, place,
 * bytes. Scalar: 1 if others were needed that are nowhere. */
int fm_engine_timeline_wanted(struct fm_engine *e, int recording);
/* Here is one of them; `bytes` is taken over. */
int fm_engine_timeline_give(struct fm_engine *e, int recording, uint32_t trace, uint32_t block,
                            void *bytes, size_t len);

/* How long calls of a function take (FM_NONE: of any). Columns of results[0], the longest: begin, end,
 * function, depth, flags, lane; of results[1], counts: from, to, calls. Scalars: calls, sum, min, max. */
/* `only_longest`, which is fast: nothing is counted. */
int fm_engine_timeline_durations(struct fm_engine *e, int recording, uint32_t func, double from_ns,
                                 double to_ns, uint32_t longest, bool only_longest);

/* Calls of a function by what they did, the largest groups. Columns of results[0]: calls, sum, half up to,
 * spans in each, then of the slowest begin, end, depth, flags, lane; scalars: how many groups there are, calls
 * beyond them, calls in them. Of results[1], differences: group, kind (0: its slowest call against the usual
 * one; 1: the usual one against that of the first group), function, own time, usual own time, spans, usual
 * spans. timeline_groups.c */
int fm_engine_timeline_groups(struct fm_engine *e, int recording, uint32_t func, double from_ns,
                              double to_ns);

/* The first span of any of these functions that begins after `from_ns` (`backwards`: the last one that
 * begins before it), looked for up to `to_ns`. Columns as of the longest above; no row: there is none. */
int fm_engine_timeline_find(struct fm_engine *e, int recording, const uint32_t *funcs, uint32_t len,
                            double from_ns, double to_ns, bool backwards);

/* A stretch of time as a recording of its own, to be closed like any; its number, or −1 and e->err. */
int fm_engine_timeline_range(struct fm_engine *e, int recording, double from_ns, double to_ns);

struct fm_mark_overview;
void fm_mark_overview_free(struct fm_mark_overview *overview);

/* The timeline of a recording, or NULL and e->err. */
struct fm_timeline *fm_engine_timeline_of(struct fm_engine *e, int recording,
                                          struct fm_recording **ret_recording);
/* A function of the profile by its id in the engine. */
uint32_t fm_recording_function(const struct fm_recording *r, uint32_t func);
/* The function of the profile with this id in the engine; FM_NONE: there is none. */
uint32_t fm_recording_function_within(const struct fm_recording *r, uint32_t func);
/* ns as the model counts them; what cannot be is 0 or the end of time. */
uint64_t fm_timeline_instant(double ns);

#endif

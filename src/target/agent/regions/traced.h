/*
 * Regions in a trace (`fathom run --trace`): begin and end as spans among the calls, tokens as spans that need not
 * nest, and the values that a region or an instant was given.
 *
 * Values are kept as text, and only where a trace is written: numbers, short texts, True, False and None as they are
 * written, everything else by the name of its type, so that no code of the program runs.
 *
 * Threads: the GIL, and nobody holds regions (alone.h): writing to a trace may wait for room.
 */
#ifndef FM_AGENT_REGIONS_TRACED_H
#define FM_AGENT_REGIONS_TRACED_H

#include "target/agent/python.h"
#include "target/agent/regions/names.h"
#include "target/agent/trace/marks.h"

/* The number of a name in the trace; 0: it has none. */
uint32_t fm_region_traced_name(struct fm_region_name *name);

/* What was given by keyword, as bytes; NULL: nothing, or nobody wants it. Raises nothing. */
PyObject *fm_region_values(PyObject *const *values, PyObject *keywords);

/* Tell of them; NULL: there are none. */
void fm_region_traced_values(struct fm_trace_valued of, PyObject *values);

#endif

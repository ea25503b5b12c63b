/*
 * An object of the program as a short text, for the values of a trace.
 *
 * No code of the program runs, unless its repr() is asked for: numbers, None, text and bytes (their
 * beginning) are shown as they are, containers by their type and length, functions and classes by their
 * name, everything else by its type. What a type says about itself (__len__, __class__, __repr__) is not
 * asked; that of what it inherits from the language is read in memory.
 *
 * Threads: the GIL. repr() may give it up.
 */
#ifndef FM_AGENT_TRACE_RENDER_H
#define FM_AGENT_TRACE_RENDER_H

#include <stdbool.h>
#include <stddef.h>

#include "record/capture/live_trace.h"
#include "target/agent/python.h"

/* UTF-8 without control characters, at most FM_TRACE_VALUE_BYTES bytes of it. What was cut ends with "…". */
struct fm_rendered {
    size_t len;
    bool cut;
    char text[FM_TRACE_VALUE_BYTES];
};

/* `object` may be NULL: nothing is bound. With `repr`, what has no plain text is asked for its own. An
 * exception that is raised now stays as it is. */
void fm_render(struct fm_rendered *to, PyObject *object, bool repr);

/* The tuple of *args or the dict of **kwargs: what is in it. */
void fm_render_rest(struct fm_rendered *to, PyObject *object, bool repr);

/* Is it a number that a curve can show? */
bool fm_render_number(PyObject *object, double *number);

#endif

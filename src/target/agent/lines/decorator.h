/*
 * @profile: marks functions so that their lines are recorded.
 *
 * The decorator returns the very object it was given: marking works on code objects, so nothing is
 * wrapped and nothing about the function changes. It looks through what usually stands around a
 * function: methods, staticmethod, classmethod, property, functools.partial and cached_property,
 * decorators that keep __wrapped__, and classes. Other objects are let through and not asked,
 * because asking could run the program's code. Functions nested in a marked one are marked too.
 *
 * Threads: called with the GIL.
 */
#ifndef FM_AGENT_DECORATOR_H
#define FM_AGENT_DECORATOR_H

#include "target/agent/collector.h"

/* Mark whatever code is behind `object`; how many code objects, or −1 with an exception. */
int fm_decorator_mark(struct fm_collector *c, PyObject *object);

/* The function `profile`, for builtins; marks in the run's collector. New, or NULL. */
PyObject *fm_decorator_function(void);

#endif

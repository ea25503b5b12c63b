/*
 * Functions of the interpreter in front of which the agent puts its own.
 *
 * Everything that calls a builtin function takes its C function from the definition
 * (PyMethodDef.ml_meth) at that moment, specialised instructions too. So that one pointer is
 * replaced, once and for good; the function object, which is all that a program sees, stays what
 * it is. Ours is called by all interpreters of the process and passes on what is not its concern.
 *
 * Threads: intercepting, with the GIL. Interpreters with a GIL of their own see the old pointer or
 * the new, and both will do.
 */
#ifndef FM_AGENT_INTERCEPT_H
#define FM_AGENT_INTERCEPT_H

#include <string.h>

#include "target/agent/python.h"

/* Put `ours` in front of a builtin function of one argument; `original` becomes what was there.
 * Nothing happens if that was done before, if the object is another, or NULL. */
static inline void fm_intercept(PyObject *function, const char *name, PyCFunction ours,
                                PyCFunction *original)
{
    if (*original || !function || !PyCFunction_CheckExact(function))
        return;
    PyMethodDef *def = ((PyCFunctionObject *)function)->m_ml;
    if (def->ml_flags != METH_O || strcmp(def->ml_name, name) != 0)
        return;
    *original = def->ml_meth;
    def->ml_meth = ours;
}

#endif

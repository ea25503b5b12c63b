/*
 * What a frame of the target holds: its local variables with their names, and its value stack.
 *
 * While a frame runs C code, 3.13 and older do not say how deep its value stack is. Then all slots
 * are given and `exact` is false: those above the real top hold what was left there, perhaps long
 * dead.
 */
#ifndef FM_CPYTHON_FRAME_H
#define FM_CPYTHON_FRAME_H

#include "watch/cpython/object.h"
#include "watch/cpython/stack.h"

struct fm_frame_slots {
    struct fm_addrs slots; /* objects, 0 where there is none: variables, then the value stack */
    size_t n_variables;
    bool exact;
};

/* False if the frame or its code cannot be read. */
bool fm_frame_slots(const struct fm_heap *t, const struct fm_stack_frame *frame,
                    struct fm_frame_slots *ret);
void fm_frame_slots_release(struct fm_frame_slots *slots);

struct fm_variable {
    char name[64];
    fm_addr value; /* never 0: variables without a value are left out */
};

struct fm_variables {
    struct fm_variable *data;
    size_t len, cap;
    bool partial; /* more than the bound, or some could not be read */
};

#define FM_FRAME_MAX_VARIABLES 200

/* The variables that have a value, in the order of the code: arguments, locals, cells, free
 * variables; cells are looked into. Code of a module or a class keeps its variables in a dict:
 * these are not read. */
void fm_frame_variables(const struct fm_heap *t, const struct fm_stack_frame *frame,
                        struct fm_variables *ret);

/* The dict of the frame's globals; 0 if unknown. */
fm_addr fm_frame_globals(const struct fm_heap *t, const struct fm_stack_frame *frame);

#endif

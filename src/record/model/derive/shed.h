/*
 * A recording of time and memory holds both in the same trees, side by side: contexts of memory are
 * lines, the others are functions. Who shows one of them takes the other out first, in place. Nodes
 * without any number left go with it; processes, threads, notes, facts and sources stay.
 */
#ifndef FM_MODEL_SHED_H
#define FM_MODEL_SHED_H

#include "record/model/profile.h"

/* Was memory recorded, in any process? And was anything else? */
bool fm_profile_has_memory(const struct fm_profile *p);
bool fm_profile_has_time(const struct fm_profile *p);

/* Leave what is not of memory. */
void fm_profile_shed_memory(struct fm_profile *p);

/* Were types of objects recorded? */
bool fm_profile_has_types(const struct fm_profile *p);
bool fm_function_is_type(const struct fm_function *f);

/* What the functions are, where memory is shown. */
enum fm_memory_rows {
    FM_ROWS_LINES, /* each line is a function that begins there, with the same names. So all that
                          is known of functions (tables, recursion, callers, folding) is known of lines */
    FM_ROWS_FUNCTIONS, /* whole functions */
    FM_ROWS_TYPES,     /* lines, and the types of the objects they made as their callees */
};

/*
 * Leave what is of memory. Unless types are asked for, what they have is that of the lines.
 *
 * The result says by function which one it was before: that is where its source is. Caller frees.
 */
uint32_t *fm_profile_shed_time(struct fm_profile *p, enum fm_memory_rows rows);

#endif

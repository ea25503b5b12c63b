/*
 * What a callgrind file says, gathered while it is read, and made into a profile at the end.
 *
 * A function of the file is an object, a file and a name. Names may end in a level of recursion
 * ("f'2"), which valgrind and Fathom write: the levels of a function become one function again.
 */
#ifndef FM_FORMATS_CALLGRIND_TABLE_H
#define FM_FORMATS_CALLGRIND_TABLE_H

#include "base/map.h"
#include "record/model/profile.h"

struct fm_callgrind_function {
    uint32_t object, file, name; /* string ids */
    uint32_t first_line;         /* the lowest line that calls of it name, FM_NONE if none does */
    uint32_t lowest_line;        /* the lowest line with a cost of its own, or FM_NONE */
    int64_t self;
};

struct fm_callgrind_call {
    uint32_t caller, callee; /* functions */
    int64_t calls, total;
};

struct fm_callgrind_table {
    struct fm_profile *p;
    FM_VEC(struct fm_callgrind_function) functions;
    FM_VEC(struct fm_callgrind_call) calls;
    struct fm_lines lines; /* func is a function of this table */
    struct fm_map pairs, function_index, call_index, line_index;
    bool pprofile; /* names are NAME:FIRSTLINE */
    bool no_lines; /* positions say nothing about lines but where functions begin */
};

uint32_t fm_callgrind_function_at(struct fm_callgrind_table *t, uint32_t object, uint32_t file,
                                  uint32_t name);

/* `cost` and `hits` of a function at a line; FM_NONE: a line of another file. */
void fm_callgrind_add_cost(struct fm_callgrind_table *t, uint32_t func, uint32_t line, int64_t cost,
                           int64_t hits);
void fm_callgrind_add_calls(struct fm_callgrind_table *t, uint32_t caller, uint32_t line,
                            uint32_t callee, uint32_t callee_line, int64_t calls, int64_t total);

/* Fill the profile. */
void fm_callgrind_settle(struct fm_callgrind_table *t);
void fm_callgrind_table_release(struct fm_callgrind_table *t);

#endif

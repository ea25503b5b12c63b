/*
 * Stacks on their way into a profile and out of it: what the formats that consist of stacks
 * (collapsed, speedscope, pprof) share.
 *
 * In. A reader names processes, threads and functions, and for each stack its frames from the root
 * to the leaf. Equal stacks become one path of a tree. Functions are known by file and name: most
 * tools write the line that was executing, not the one where the function begins. So the lowest
 * line seen stands for its first line, and the lines become rows of lines. Where a file has first
 * lines (`first_lines`), functions are told apart by them too, and there are no rows of lines.
 *
 * Of memory (`lined`) each line is a context of its own, as Fathom's are, and there are no rows of lines.
 *
 * What the file weighs stacks with may be no time. Then one of it is shown as a nanosecond, a note
 * says what it is, and so does the fact "unit", by which writers know not to call it a time.
 *
 * Out. A node's own numbers, and who is worth mentioning.
 */
#ifndef FM_FORMATS_STACKS_H
#define FM_FORMATS_STACKS_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/map.h"
#include "record/model/profile.h"
#include "record/model/tree.h"

/* A function of the file, until the end of the file shows its first line. */
struct fm_stacks_function {
    uint32_t name, file, line; /* name is the qualified one */
    uint32_t stack;            /* the last stack it was in, counted from 1 */
    bool distinct;             /* may look like another */
};

struct fm_stacks_spot {
    uint32_t function, line;
};

struct fm_stacks {
    struct fm_profile *p;
    bool first_lines;
    bool lined; /* to be said before the first stack */
    FM_VEC(struct fm_stacks_function) functions;
    struct fm_map names, function_index; /* (file, name); (that, line) */
    struct fm_map processes, threads;    /* pid; (process, tid) */
    struct fm_tree tree;                 /* that the stacks become */
    struct fm_map spots, lines;          /* (function, line); (that, process) → row of lines */
    FM_VEC(struct fm_stacks_spot) spot_list; /* by number of a spot, if lined: what it is */
    uint32_t stacks;
    /* The stack being added. */
    uint32_t node, process, row;
    int64_t samples, ns;
};

void fm_stacks_init(struct fm_stacks *s);

uint32_t fm_stacks_process(struct fm_stacks *s, uint32_t pid);
/* `name` is a string id; the thread is known by its number, and by its name if it has none. */
uint32_t fm_stacks_thread(struct fm_stacks *s, uint32_t process, uint32_t tid, uint32_t name);

/* name and file are string ids. */
uint32_t fm_stacks_function(struct fm_stacks *s, uint32_t name, uint32_t file, uint32_t line);
/* … that may look like another. */
uint32_t fm_stacks_function_new(struct fm_stacks *s, uint32_t name, uint32_t file, uint32_t line);

/* One stack: begin, push from the root to the leaf, end. The node at its end is returned, for
 * numbers of other metrics that are of the node alone. */
void fm_stacks_begin(struct fm_stacks *s, uint32_t thread, int64_t samples, int64_t ns);
void fm_stacks_push(struct fm_stacks *s, uint32_t function, uint32_t line);
uint32_t fm_stacks_end(struct fm_stacks *s);

/* The node for `function` under `node`. */
uint32_t fm_stacks_child(struct fm_stacks *s, uint32_t node, uint32_t function);

/* The numbers are not nanoseconds but this, which may be any text of the file. */
void fm_stacks_unit(struct fm_stacks *s, const char *unit, size_t len);

/* The numbers are of memory: what is not recorded of processes otherwise. Behind fm_stacks_settle. */
void fm_stacks_of_memory(struct fm_stacks *s);

/* Everything was added: name the functions, add up the totals. */
void fm_stacks_settle(struct fm_stacks *s);
void fm_stacks_release(struct fm_stacks *s);

/* A frame as text, "name (file:line)" or, if `austin`, "file:name:line", as a function. */
uint32_t fm_stacks_frame(struct fm_stacks *s, const char *text, size_t len, bool austin,
                         uint32_t *line);

/* ---- out ---- */

/* The recording as stacks. */
struct fm_own {
    int64_t *ns;         /* by node: time without callees, never below 0 */
    bool samples, calls; /* there are any */
    bool states;         /* … of the time */
    const char *unit;    /* NULL, or what `ns` is instead of nanoseconds */
    /* Metrics that have a column of their own everywhere, a bit each, and their numbers by node: what
     * is its own. */
    uint64_t columns;
    int64_t *column[FM_METRIC_COUNT];
    uint32_t processes, threads; /* that have anything */
};

/* Refuses a recording without stacks. Release in any case. */
int fm_own_init(struct fm_own *own, const struct fm_profile *p, struct fm_error *err);
void fm_own_release(struct fm_own *own);

/* Does the node have anything that is its own? */
bool fm_own_has(const struct fm_own *own, const struct fm_profile *p, uint32_t node);

/* The line that a frame has: of memory the one that allocated or called on, else the function's first. */
static inline uint32_t fm_own_line(const struct fm_profile *p, uint32_t node)
{
    uint32_t line = p->nodes.data[node].line;
    return line ? line : p->functions.data[p->nodes.data[node].func].line;
}

/* The path from the root (left out) to `node`: `path` has room for as many as there are nodes. */
size_t fm_own_path(const struct fm_profile *p, uint32_t node, uint32_t *path);

#endif

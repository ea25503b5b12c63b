/*
 * Firefox Profiler's tables of a recording, while they are made: firefox.c writes them, firefox_tables.c
 * fills them, firefox_order.c has the samples in the order of time.
 *
 * The format (version 60 of "processed profiles") has tables that all threads share: strings, sources,
 * functions, frames (a function in a category) and stacks (a frame on another stack), and for each thread
 * its samples: stack, time, weight. A state of a thread is a category, which the newest frame has.
 */
#ifndef FM_FORMATS_FIREFOX_H
#define FM_FORMATS_FIREFOX_H

#include "base/map.h"
#include "record/formats/stacks/stacks.h"
#include "record/model/profile.h"

#define FM_FIREFOX_NO_CATEGORY 0 /* the frame has that of its caller */

struct fm_firefox_function {
    uint32_t name, source; /* rows of strings and of sources, or FM_NONE */
    uint32_t line;
};

struct fm_firefox_frame {
    uint32_t function, line, category;
};

struct fm_firefox_stack {
    uint32_t prefix, frame; /* FM_NONE: it is the oldest */
};

struct fm_firefox_sample {
    uint32_t stack; /* FM_NONE: a gap */
    int64_t at_ns;  /* since the run began */
    int64_t weight;
};

/* Of all threads, those of one together. */
struct fm_firefox_samples {
    FM_VEC(struct fm_firefox_sample) list;
    size_t begin; /* where those of the thread being added begin */
};

struct fm_firefox {
    const struct fm_profile *p;
    struct fm_own own;
    FM_VEC(uint32_t) strings; /* string ids */
    FM_VEC(uint32_t) sources; /* rows of strings */
    FM_VEC(struct fm_firefox_function) functions;
    FM_VEC(struct fm_firefox_frame) frames;
    FM_VEC(struct fm_firefox_stack) stacks;
    struct fm_map string_of, source_of, function_of, frame_of, stack_of;
    uint32_t *node_stack;             /* by node; FM_NONE: a root, or nothing stands on it */
    uint32_t *first_node, *next_node; /* by thread, by node: the nodes of a thread */
    uint32_t *first_lane, *next_lane; /* … and its lanes in the order of samples */
    uint32_t no_frame; /* function of samples without any frame; FM_NONE while there are none */
};

void fm_firefox_init(struct fm_firefox *f, const struct fm_profile *p);
void fm_firefox_release(struct fm_firefox *f);

/* The stack that a function (at a line, or 0) in a category makes on top of `prefix`. */
uint32_t fm_firefox_stack(struct fm_firefox *f, uint32_t prefix, uint32_t func, uint32_t line,
                          uint32_t category);

static inline uint32_t fm_firefox_category(enum fm_state state)
{
    return 1 + (uint32_t)state; /* the first is the default one */
}

/* The stack of a node in a state. */
uint32_t fm_firefox_node_stack(struct fm_firefox *f, uint32_t node, enum fm_state state);

/* Add what was sampled of a thread in the order of time (since `start_ns`); false, and nothing is added, if the
 * recording does not have that. */
bool fm_firefox_add_order(struct fm_firefox *f, uint32_t thread, uint64_t start_ns,
                          struct fm_firefox_samples *into);

/* Append the tables that threads share. */
void fm_firefox_put_shared(const struct fm_firefox *f, struct fm_buffer *out);

#endif

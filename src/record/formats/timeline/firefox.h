/*
 * Firefox Profiler's tables of a recording, while they are made: firefox.c writes them, firefox_tables.c
 * fills them.
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
    uint32_t stack;
    int64_t at_ns; /* since the run began */
    int64_t weight;
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
    uint32_t
        no_frame; /* the function that stands for samples without any; FM_NONE while there are none */
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

/* Append the tables that threads share. */
void fm_firefox_put_shared(const struct fm_firefox *f, struct fm_buffer *out);

#endif

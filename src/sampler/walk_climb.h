/*
 * What the climb of walk_chunks.c and its generators (walk_generators.c) share; for these two only.
 */
#ifndef FM_SAMPLER_WALK_CLIMB_H
#define FM_SAMPLER_WALK_CLIMB_H

#include "sampler/walk_parts.h"

/* Of the frame in a slot of a chunk. */
enum fm_fate { FM_ENDED, FM_MAYBE, FM_ALIVE, FM_EXECUTING };

struct fm_found {
    struct fm_frame_view f;
    fm_addr at;
    const uint8_t *bytes; /* NULL for a loose frame */
    enum fm_fate fate;
};

/* One walk up. */
struct fm_climb {
    struct fm_walk *w;
    struct fm_walk_context *c;
    FM_VEC(struct fm_found) stack; /* oldest first */
    fm_addr newest;                /* what the thread state said shortly before: a hint */
    uint32_t certain; /* chunks of which one instant is known: that of the last of them */
    bool again;                    /* something is not in the copies */
    bool crowded;                  /* … and there is no room for more: most are of another time */
    bool missing;                  /* generators below an entry frame were not found */
    bool unsure;                   /* the older part is certain, the newest end is not */
    bool between;                  /* no frame executes just now */
};

static inline const struct fm_known_code *fm_climb_code(const struct fm_climb *k, const struct fm_frame_view *f)
{
    return &k->c->codes->list.data[f->number];
}

static inline unsigned fm_climb_opcode_kind(const struct fm_climb *k, const struct fm_frame_view *f)
{
    const struct fm_code *code = &fm_climb_code(k, f)->code;
    if (f->offset < 0 || (uint32_t)f->offset >= code->bytecode_len)
        return 0;
    return fm_layout_opcode_kind(k->c->layout, code->bytecode[f->offset]);
}

static inline fm_addr fm_climb_newest(const struct fm_climb *k)
{
    return k->stack.len ? k->stack.data[k->stack.len - 1].at : 0;
}

/* walk_generators.c */

/* What lies at `at`, which is in no chunk: an entry frame? A generator's is copied from now on. */
bool fm_climb_is_entry(struct fm_climb *k, fm_addr at);
/* Put the generators from `at`, which called `callee`, down to the newest frame so far on the stack. */
bool fm_climb_push_generators(struct fm_climb *k, fm_addr at, const struct fm_frame_view *callee);
/* May the newest frame so far, if it is a generator's, have called this one? Remembers that. */
bool fm_climb_may_have_called(struct fm_climb *k, const struct fm_frame_view *callee);
/* A frame was called through C, by the entry frame at `at`: put the generators below that on the stack. */
bool fm_climb_push_below_entry(struct fm_climb *k, fm_addr at);
/* A generator that runs on top of frame `at`, directly or through C; NULL if there is none. */
struct fm_loose *fm_climb_generator_on(struct fm_climb *k, fm_addr at, struct fm_frame_view *f);
/* Put generators on top of the newest frame of the chunks. */
void fm_climb_generators(struct fm_climb *k);
/* Does the newest frame stand at an instruction that resumes a generator, with none on top of it? */
bool fm_climb_lacks_generator(const struct fm_climb *k);
/* Find that one on its value stack. */
bool fm_climb_push_resumed(struct fm_climb *k);

#endif

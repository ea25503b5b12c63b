/*
 * The stack of one thread of a running target, right although the thread runs on while it is read.
 *
 * The trouble. A Python function may take 50 ns; one read of another process takes 2 µs, and each
 * further piece of memory in the same call comes some 400 ns after the one before. Whoever follows
 * pointers from the thread state to the frames mixes instants: the newest frame of one, the callers
 * of another. Such stacks may never have existed, and rejecting what changed between two readings
 * makes quick functions invisible.
 *
 * What helps. Since 3.11 the frames of a thread lie one behind the other in a chunk of memory, each
 * starts where its caller ends, and each tells by itself whether it is alive: in 3.11 to 3.13 the
 * frame that executes has stacktop −1, those that called have another; since 3.14 a frame that ended
 * has its stack pointer reset to the start of its locals. So one contiguous copy of the chunk, taken
 * within some ten nanoseconds, holds the whole stack of one instant: it is read from the oldest frame
 * up, and where the thread state pointed to before or after does not matter.
 *
 * A deep stack goes on in further chunks, which come and go with it: they are read after the oldest one, whose
 * instant counts whatever becomes of them (walk_copy.c).
 *
 * Generators and coroutines live outside the chunks. They are copied before and after the chunk, and
 * count only if both copies agree, or if what they called leaves no other choice (walk_generators.c).
 * Python 3.9 and 3.10 have all frames outside (walk_heap.c).
 *
 * A walk remembers where the frames of its thread were, so that one read gets all that is needed. A
 * plan that proves wrong is mended (which takes reads of its own) and tried again.
 *
 * A thread that is blocked is simply followed from the newest frame down (fm_walk_still).
 *
 * Invariants:
 *  1. Chunks are in order of age, oldest first; neither `used` nor `copied` exceeds `bytes`. `used` may grow
 *     while a copy is looked at, so only `copied` tells what is in it.
 *  2. What is followed lies in a copy, which was bounds-checked when planned, or is read by a call that checks.
 *  3. Every walk is bounded by FM_WALK_MAX_FRAMES, so no cycle can hold it.
 */
#ifndef FM_SAMPLER_WALK_H
#define FM_SAMPLER_WALK_H

#include "base/vec.h"
#include "sampler/codes.h"

#define FM_WALK_MAX_FRAMES 20000u
#define FM_WALK_MAX_CHUNKS 256u
#define FM_WALK_MAX_LOOSE  200u
#define FM_WALK_SHIMS      32u /* a power of two */
#define FM_WALK_MAX_SPANS  (9 + 2 * FM_WALK_MAX_CHUNKS + 2 * FM_WALK_MAX_LOOSE)

struct fm_chunk {
    fm_addr at;
    uint32_t bytes; /* its size */
    uint32_t used;  /* how much of it to copy */
    uint32_t copied; /* … and was */
    uint32_t copy;  /* where its copy lies in the buffer */
    uint32_t again; /* … and of older chunks a second one, made after the newest chunk's */
};

/* A frame of a stack, and its code. */
struct fm_walk_mark {
    fm_addr at, code;
};

#define FM_SEVERAL_CALLERS UINT32_MAX

/* How long a read of so many spans takes. */
struct fm_usual_time {
    int spans;
    uint64_t ns;
};

/* A frame outside the chunks. */
struct fm_loose {
    fm_addr at;
    uint32_t copies[2]; /* before and after the chunks */
    uint32_t idle;      /* for how many looks it has not been on the stack */
    fm_addr code;       /* of its last call */
    fm_addr caller;     /* of a generator with that code: who resumed it when it was last seen running */
    /* 3.9 and 3.10: */
    uint32_t depth; /* how many frames were below it */
    uint32_t met;   /* … + 1 when it was last found on the stack; 0: never */
    bool shared;    /* it, or the code, was not always the same */
};

struct fm_walk {
    fm_addr thread, interp;
    /* The plan. */
    fm_addr cframe;
    FM_VEC(struct fm_chunk) chunks; /* also those that were in use when the stack was deeper */
    uint32_t in_use;                /* how many are, by what was last read */
    FM_VEC(struct fm_loose) loose; /* the last ones were last on the stack */
    fm_addr shims[FM_WALK_SHIMS]; /* entry frames on the C stack, known to be no Python's; | 1 if it stood
                                   * on a generator */
    struct {
        fm_addr at;
        uint64_t read_ns;
    } others[8]; /* where no frame was when last read: words of dead frames name them over and over */
    struct fm_map callers; /* code → that of the generator that calls it, or FM_SEVERAL_CALLERS */
    struct {
        uint32_t callee, caller, times;
        uint64_t seen_ns;
    } unusual[16]; /* calls by another generator, not believed yet */
    struct fm_map sites; /* 3.9 and 3.10: who called whom (pairs of codes) → at which instruction */
    /* What was read. */
    FM_VEC(uint8_t) buffer;
    uint64_t copied_ns; /* when something was last copied */
    uint64_t read_ns;   /* the instant that the copy shows */
    uint32_t head, cframe_copy, generation_copy;
    bool complete; /* of the instant read_ns all chunks are known */
    bool unfit;    /* the plan is to be made anew */
    uint32_t failed; /* reads of newer chunks in a row */
    uint64_t deep_ns;   /* when the stack was last found to go beyond its oldest chunk */
    uint64_t waited_ns; /* when a read last waited for the target's memory map */
    bool torn;     /* it took longer than usual: see walk_copy.c */
    uint64_t generation; /* 3.14+: how many code objects had died when all else was read */
    struct fm_usual_time usual[8]; /* of the first read, and of the second by the number of chunks */
    FM_VEC(struct fm_walk_mark) doubted; /* 3.11 to 3.13: the last stack in which no frame executed */
    void *scratch; /* of walk_chunks.c, kept for the next walk */
    size_t scratch_cap;
    /* The result: newest first. */
    FM_VEC(struct fm_raw_frame) frames;
    bool partial; /* only the older frames are certain */
};

enum fm_walk_result {
    FM_WALK_OK,
    FM_WALK_AGAIN, /* the plan did not fit or the target moved on: plan and read once more */
    FM_WALK_GONE,  /* this is no thread state any more */
};

struct fm_walk_context {
    const struct fm_remote *remote;
    const struct fm_layout *layout;
    struct fm_codes *codes;
    uint64_t now_ns;
    bool last_try; /* keep what is certain instead of asking for another try */
};

void fm_walk_init(struct fm_walk *w, fm_addr thread, fm_addr interp);
void fm_walk_release(struct fm_walk *w);

/* The stack of a running thread, from one copy. */
enum fm_walk_result fm_walk_running(struct fm_walk *w, struct fm_walk_context *c);

/* The stack of a thread that does not run. Reads by itself. */
enum fm_walk_result fm_walk_still(struct fm_walk *w, struct fm_walk_context *c);

#endif

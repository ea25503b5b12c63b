/*
 * The climb: from the bytes of one instant to the stack of a thread, newest frame first.
 *
 * The climb decides and reads nothing: memory and code objects are answers of the caller. Where an
 * answer is "not here", the climb stops, says what it wants, and goes on from there when called
 * again. It knows nothing of earlier looks.
 *
 * The rules, for all versions from 3.9 to 3.15:
 *  1. The newest frame is what the thread state names; 3.11 and 3.12 name it through the record of
 *     the innermost evaluation (cframe). That record is linked some nanoseconds before it is
 *     filled: if what it names is no frame, the record below it counts.
 *  2. From each frame the climb goes on to `previous`.
 *  3. A frame of the interpreter itself (since 3.12 one stands between C and the Python code that
 *     it calls) is passed over.
 *  4. Any other frame has a code object, in which its instruction lies. Only the very newest may
 *     fail that test: that frame is being made, and passed over. Any later misfit means "no".
 *  5. Frames of the interpreter's own code (what 3.12+ puts between a class and its __init__) are
 *     passed over.
 *  6. The chain ends where a stack begins: since 3.12 with a frame of the interpreter, in 3.11 with
 *     one that is no generator's, in 3.9 and 3.10 with one that executes. Any other end means "no":
 *     at that instant a generator was being left, and stood on nothing.
 *
 * "No" is an answer about the instant, not about the thread: there is nothing to mend, the look is
 * counted as lost or made again later. Bytes of several instants make stacks that never were, and
 * no rule can tell: whoever calls must know that the thread did not run while they were copied
 * (look.h).
 */
#ifndef FM_SAMPLER_CLIMB_H
#define FM_SAMPLER_CLIMB_H

#include "base/vec.h"
#include "watch/cpython/layout.h"

#define FM_CLIMB_MAX_FRAMES 20000u

/* A frame as found: which code, and where in it. */
struct fm_raw_frame {
    uint32_t code;  /* the caller's number of the code object */
    int32_t offset; /* in its bytecode; FM_NOT_BEGUN */
};

/* A region of the program stands on a stack as a frame does (open_regions.h). */
#define FM_RAW_REGION 0x80000000u

static inline struct fm_raw_frame fm_raw_region(uint32_t number)
{
    return (struct fm_raw_frame){ number | FM_RAW_REGION, 0 };
}

static inline bool fm_raw_is_region(const struct fm_raw_frame *frame)
{
    return frame->code & FM_RAW_REGION;
}

static inline uint32_t fm_raw_region_number(const struct fm_raw_frame *frame)
{
    return frame->code & ~FM_RAW_REGION;
}

/* Where a frame is, and its code object. */
struct fm_climb_place {
    fm_addr frame, code;
};

enum fm_climb_memory {
    FM_MEMORY_HERE,
    FM_MEMORY_MISSING,
    FM_MEMORY_NONE /* there is none at this address */
};

enum fm_climb_code {
    FM_CODE_FITS,
    FM_CODE_HIDDEN,  /* … and is the interpreter's own */
    FM_CODE_MISFIT,  /* there is no code object, or the instruction is not in it */
    FM_CODE_MISSING, /* not known, or known from too long ago to call it a misfit */
};

/* What the climb stands on. */
struct fm_climb_ground {
    const struct fm_layout *layout;
    fm_addr thread; /* state */
    /* Copy `len` bytes at `at`; if some are missing, the address of the first to `*want`. */
    enum fm_climb_memory (*memory)(void *data, fm_addr at, void *into, size_t len, fm_addr *want);
    enum fm_climb_code (*code)(void *data, fm_addr at, uint64_t instr, struct fm_raw_frame *ret);
    void *data;
};

enum fm_climb_result {
    FM_CLIMB_WHOLE,
    FM_CLIMB_CUT,        /* more than FM_CLIMB_MAX_FRAMES: the newest of them */
    FM_CLIMB_WANTS,      /* memory at `want` */
    FM_CLIMB_WANTS_CODE, /* the code object at `want` */
    FM_CLIMB_NO,
};

struct fm_climb {
    FM_VEC(struct fm_raw_frame) frames;   /* newest first */
    FM_VEC(struct fm_climb_place) places; /* of each of them */
    fm_addr want;
    /* How far the climb has come. */
    bool begun;
    fm_addr at, last; /* the next frame, and the one before it */
    bool last_is_own; /* the frame at `last` was the interpreter's */
    uint8_t last_owner;
    uint32_t passed; /* frames so far, of every kind */
};

void fm_climb_begin(struct fm_climb *climb);
enum fm_climb_result fm_climb_go(struct fm_climb *climb, const struct fm_climb_ground *ground);
void fm_climb_release(struct fm_climb *climb);

#endif

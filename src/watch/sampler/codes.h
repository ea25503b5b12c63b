/*
 * The code objects of one target that were seen on stacks, each read once and known by a number.
 *
 * An address may come to hold another code object later. So what is known is compared with the
 * target, within the look that relies on it: in every look while code objects come and go (one was
 * new or replaced within the last second), else if the last comparison is more than 10 ms old;
 * since 3.14, where the interpreter counts dying code objects, when that count has changed. A
 * code object that differs gets a new number, and what was counted under the old one stays right.
 *
 * Threads: belongs to the thread that samples. What `list` points to never moves, and names, lines
 * and tables never change, so that another thread may use these through a copy of the list.
 */
#ifndef FM_SAMPLER_CODES_H
#define FM_SAMPLER_CODES_H

#include "base/map.h"
#include "base/vec.h"
#include "watch/cpython/code.h"
#include "watch/sampler/climb.h"

struct fm_known_code {
    struct fm_code code;
    bool hidden; /* the interpreter's own (3.12+: what stands between a class and __init__) */
    /* Of the sampling thread alone: */
    uint64_t look, checked_ns; /* when it was last compared */
    uint64_t generation;       /* … and the target's count of dead ones then */
    uint64_t bytecode_ns;      /* when the bytecode was last copied */
};

struct fm_codes {
    const struct fm_remote *remote;
    const struct fm_layout *layout;
    FM_VEC(struct fm_known_code *) list;
    fm_addr type;             /* of code objects; 0 until one was read */
    struct fm_map by_address; /* address → newest number, or FM_NO_CODE */
    uint64_t changed_ns;      /* when one was last new or replaced */
    /* The look at hand. */
    uint64_t look, now_ns, generation;
    bool counts_deaths; /* `generation` is known */
    fm_addr none[8];    /* where no code object was */
    uint32_t n_none;
    FM_VEC(uint32_t) due; /* numbers to compare */
};

#define FM_NO_CODE UINT32_MAX

void fm_codes_init(struct fm_codes *codes, const struct fm_remote *remote,
                   const struct fm_layout *layout);
void fm_codes_release(struct fm_codes *codes);

/* A look begins. */
void fm_codes_begin(struct fm_codes *codes, uint64_t now_ns);
/* The target's count of dead code objects, as of this look. */
void fm_codes_deaths(struct fm_codes *codes, uint64_t generation);

/* Is the instruction in the code object at `at`? The answer that struct fm_climb_ground wants. */
enum fm_climb_code fm_codes_fit(struct fm_codes *codes, fm_addr at, uint64_t instr,
                                struct fm_raw_frame *ret);

/* Read the code object at `at`, or compare what is known of it; fm_codes_fit() knows the answer
 * then. */
void fm_codes_read(struct fm_codes *codes, fm_addr at);

/* Compare the code objects of these frames whose turn it is. False if one was replaced: then the
 * frames were made of what is no more, and the climb begins anew. */
bool fm_codes_confirm(struct fm_codes *codes, const struct fm_raw_frame *frames, size_t n);

/* The number of the code object at `at`, read if new; FM_NO_CODE if there is none. */
uint32_t fm_codes_number(struct fm_codes *codes, fm_addr at);

/* Whether the instruction at which a running frame stands runs C code that may take long. The
 * interpreter specialises bytecode while it runs, so the copy is renewed from time to time. */
bool fm_codes_runs_c(struct fm_codes *codes, const struct fm_raw_frame *frame, uint64_t now_ns);

#endif

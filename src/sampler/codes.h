/*
 * The code objects of one target that were seen on stacks, each read once and known by a number.
 *
 * An address may come to hold another code object later. So each is compared with the target again
 * when it was last compared more than FM_CODES_FRESH_NS ago, or always while some are found to have been
 * replaced (since 3.14, where the interpreter counts dying code objects, when that count has changed); one
 * that differs gets a new number, and what was counted under the old one stays right.
 *
 * Threads: belongs to the thread that samples, or to whoever holds the sampler's lock.
 */
#ifndef FM_SAMPLER_CODES_H
#define FM_SAMPLER_CODES_H

#include "base/map.h"
#include "base/vec.h"
#include "cpython/code.h"

#define FM_CODES_FRESH_NS 10000000u
#define FM_CODES_CHURN_NS 1000000000u /* after one was replaced, expect others */

/* A frame as found: which code, and where in it. */
struct fm_raw_frame {
    uint32_t code;  /* number in fm_codes */
    int32_t offset; /* in its bytecode; FM_NOT_BEGUN */
};

struct fm_known_code {
    struct fm_code code;
    uint64_t checked_ns, bytecode_ns;
    uint64_t generation;  /* of fm_codes when it was compared */
    uint64_t stamp;       /* of the last fm_codes_check() that looked at it */
    uint32_t frame_bytes; /* of a frame of this code in a datastack chunk; 0 before 3.11 */
    uint64_t replaced_ns; /* when it was found where another had been, which may come again; 0: never */
    bool hidden;          /* the interpreter's own (3.12+: what stands between a class and __init__) */
};

struct fm_codes {
    const struct fm_remote *remote;
    const struct fm_layout *layout;
    FM_VEC(struct fm_known_code) list;
    bool counts_deaths; /* the target tells when code objects died: fm_codes_doubt() */
    uint64_t generation; /* … how often it has, as far as is known */
    uint64_t before;     /* … and was known before the stack at hand was read */
    uint64_t stamp;      /* number of calls of fm_codes_check() */
    uint64_t replaced_ns; /* when an address was last found to hold another; at first, when that began */
    fm_addr type; /* of code objects; 0 until one was read */
    struct fm_map by_address; /* address → newest number */
    struct fm_addr_number { fm_addr at; uint32_t number; } recent[256]; /* the map's fast face */
};

#define FM_NO_CODE UINT32_MAX

void fm_codes_init(struct fm_codes *codes, const struct fm_remote *remote,
                   const struct fm_layout *layout);
void fm_codes_release(struct fm_codes *codes);

/* The number of the code object at `at`, read if new; FM_NO_CODE if there is none. */
uint32_t fm_codes_slow(struct fm_codes *codes, fm_addr at);

static inline uint32_t fm_codes_number(struct fm_codes *codes, fm_addr at)
{
    const struct fm_addr_number *r = &codes->recent[at >> 4 & 255];
    return r->at == at ? r->number : fm_codes_slow(codes, at);
}

/* What the instruction at which a running frame stands does (enum fm_opcode_kind). Bytecode changes
 * while it runs, so the copy is renewed from time to time. */
unsigned fm_codes_opcode_kind(struct fm_codes *codes, const struct fm_raw_frame *frame,
                              uint64_t now_ns);

/* The target's count of dead code objects. If it is another than before, each is compared before it is
 * relied on again. */
void fm_codes_doubt(struct fm_codes *codes, uint64_t generation);

/* Compare these with the target. Returns how many were replaced (their numbers in `numbers` are
 * changed to the new ones, or to FM_NO_CODE). */
uint32_t fm_codes_check(struct fm_codes *codes, uint32_t *numbers, uint32_t n, uint64_t now_ns);

/* The number of what now lies where `number` was read: a frame that does not fit what is known of its code
 * is no proof of a dead frame while that may be out of date. Compared when fm_codes_check() would, or, with
 * `at_once`, if it has not been at this very time. */
uint32_t fm_codes_renew(struct fm_codes *codes, uint32_t number, bool at_once, uint64_t now_ns);

#endif

/*
 * Which functions of two profiles are the same.
 *
 * A function is known by its kind, its names and its file, and, where several have all of these in common, by
 * which of them it is in the order of their lines. So it is found again although its lines have moved. (The page
 * has it so for all its recordings.)
 *
 * A file that only one of both has may be the other's under another folder: a second checkout, another venv. It
 * is taken for that one with which it shares most of the end of its path, if no other shares as much. So is a
 * relative one, of which only its end is known. Where one profile knows no qualified names, bare ones are enough
 * (bare_names.h).
 */
#ifndef FM_MODEL_PAIRS_H
#define FM_MODEL_PAIRS_H

#include "record/model/profile.h"

/* By function: how many of the same kind, names and file come before it there. Caller frees. */
uint32_t *fm_function_ordinals_new(const struct fm_profile *p);

struct fm_pairs {
    uint32_t *of[2]; /* by function of each profile: its number among those of both */
    uint32_t count;
};

void fm_pairs_init(struct fm_pairs *pairs, const struct fm_profile *const p[2]);
void fm_pairs_release(struct fm_pairs *pairs);

#endif

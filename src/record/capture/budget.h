/*
 * What reading a compressed file may cost, in relation to its size.
 *
 * A few bytes can unpack to gigabytes, and a row of a byte becomes a structure of a hundred. So a
 * reader says what it is about to make, before it does, and stops when that is more than any
 * recording of that size asks for. docs/format.md has what real recordings reach.
 */
#ifndef FM_CAPTURE_BUDGET_H
#define FM_CAPTURE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define FM_BUDGET_SMALL_BYTES ((uint64_t)512 << 20) /* always allowed */
#define FM_BUDGET_GROWTH      500                   /* … and so many times the file */

struct fm_budget {
    uint64_t all_bytes, left_bytes;
    bool spent; /* something was refused */
};

static inline struct fm_budget fm_budget_for(size_t file_bytes)
{
    uint64_t all = FM_BUDGET_SMALL_BYTES + (uint64_t)file_bytes * FM_BUDGET_GROWTH;
    return (struct fm_budget){ .all_bytes = all, .left_bytes = all };
}

/* Allow no more than this in all. */
static inline void fm_budget_limit(struct fm_budget *budget, uint64_t all_bytes)
{
    if (all_bytes < budget->all_bytes)
        budget->all_bytes = budget->left_bytes = all_bytes;
}

/* May `count` pieces of `bytes` each be made? Once refused, nothing more is allowed. */
static inline bool fm_budget_take(struct fm_budget *budget, uint64_t count, uint64_t bytes)
{
    uint64_t wanted;
    if (budget->spent || __builtin_mul_overflow(count, bytes, &wanted) ||
        wanted > budget->left_bytes) {
        budget->spent = true;
        return false;
    }
    budget->left_bytes -= wanted;
    return true;
}

/* The sentence for that. */
static inline int fm_budget_fail(const struct fm_budget *budget, struct fm_error *err)
{
    return fm_error_set(err, FM_DAMAGED,
                        "it unpacks to more than %llu MB, which no honest recording of its size "
                        "does",
                        (unsigned long long)(budget->all_bytes >> 20));
}

#endif

/*
 * A curve of memory that stays short however long it is watched.
 *
 * Looks are added one after the other. When there are FM_CURVE_POINTS_MAX points, each four in a row
 * become two, and from then on so many looks as one of the new points stands for are taken together.
 * Of what is taken together each column keeps its least and its greatest value, in the order in which
 * they came: highest and lowest points are exact for ever, only their times get coarser. So values
 * of one point need not be of one instant in a curve that was thinned out.
 *
 * What was not looked at (−1) is nobody's least value.
 */
#ifndef FM_MODEL_CURVE_H
#define FM_MODEL_CURVE_H

#include "record/model/memory.h"

#define FM_CURVE_POINTS_MAX 16384u
#define FM_CURVE_COLUMNS    6

/* Looks that are taken together, so far. */
struct fm_curve_group {
    uint32_t looks;
    uint64_t first_ns, half_ns; /* of the first look, and of the first of the second half */
    struct fm_curve_extremes {
        int64_t low, high;
        uint32_t low_at, high_at, known; /* which looks, and how many of them had a value */
    } columns[FM_CURVE_COLUMNS];
};

/* A zeroed one is empty and valid. */
struct fm_curve {
    FM_VEC(struct fm_memory_point) points;
    uint32_t stride; /* looks that make two points; 0: each is one */
    struct fm_curve_group group;
};

void fm_curve_release(struct fm_curve *c);
void fm_curve_add(struct fm_curve *c, const struct fm_memory_point *look);

/* Append its points, what was taken together so far included, as those of `process`. */
void fm_curve_copy(const struct fm_curve *c, uint32_t process, struct fm_memory *into);

#endif

/*
 * Sorting what is mostly in order already: runs that are sorted, one behind the other, but for some of it that
 * is a few places too late. Takes count × log(runs) steps, and memory for a copy. Equal ones stay in their order.
 */
#ifndef FM_BASE_RUNS_H
#define FM_BASE_RUNS_H

#include <stddef.h>

/* As qsort(); `size` is a multiple of 8. */
void fm_sort_runs(void *data, size_t count, size_t size,
                  int (*compare)(const void *a, const void *b));

#endif

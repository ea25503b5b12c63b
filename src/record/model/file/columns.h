/*
 * A table of a .fathom file (docs/format.md, "Payloads") being read: numbers, column after column.
 *
 * A payload is untrusted: each number takes a byte at least, so a table never takes more memory
 * than eight times its payload, and a table of which a number is missing is refused as a whole.
 * A column that is not there reads as zeros.
 */
#ifndef FM_MODEL_COLUMNS_H
#define FM_MODEL_COLUMNS_H

#include "base/varint.h"
#include "base/vec.h"

struct fm_columns {
    FM_VEC(uint64_t) cells;
    uint32_t first, rows, width; /* ids first … first + rows − 1 */
};

/* The first three numbers, then the rest; or both at once. False if it makes no sense. */
bool fm_columns_shape(struct fm_columns *t, struct fm_cursor *c);
bool fm_columns_cells(struct fm_columns *t, struct fm_cursor *c);
bool fm_columns_read(struct fm_columns *t, struct fm_cursor *c);
void fm_columns_release(struct fm_columns *t);

static inline uint64_t fm_columns_cell(const struct fm_columns *t, uint32_t row, uint32_t column)
{
    return column < t->width ? t->cells.data[(size_t)column * t->rows + row] : 0;
}

#endif

/*
 * Rows of one kind on their way into a .fathom file: gathered column by column until they are a
 * table (docs/format.md, "Payloads").
 *
 * A table is as wide as its widest row; the others have zeros there, as readers do with columns that
 * are missing. It numbers its rows and knows nothing of what is in them.
 */
#ifndef FM_CAPTURE_ROWS_H
#define FM_CAPTURE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/vec.h"

#define FM_ROWS_MAX 32768u /* of one block */

struct fm_rows {
    FM_VEC(struct fm_buffer) columns;
    uint32_t count, width; /* gathered */
    uint64_t first;        /* the number of the first of them */
};

static inline bool fm_rows_full(const struct fm_rows *rows)
{
    return rows->count == FM_ROWS_MAX;
}

/* The number that the next row gets. */
static inline uint64_t fm_rows_next(const struct fm_rows *rows)
{
    return rows->first + rows->count;
}

/* Add a row; there must be room. */
void fm_rows_add(struct fm_rows *rows, const uint64_t *cells, uint32_t width);

/* Append the table to `payload` and forget its rows; the next row has the next number. */
void fm_rows_take(struct fm_rows *rows, struct fm_buffer *payload);

void fm_rows_release(struct fm_rows *rows);

#endif

/* Rows on their way into a file; see rows.h. */
#include "record/capture/rows.h"

void fm_rows_add(struct fm_rows *rows, const uint64_t *cells, uint32_t width)
{
    while (rows->columns.len < width)
        fm_vec_push(&rows->columns, ((struct fm_buffer){ 0 }));
    for (; rows->width < width; rows->width++)
        for (uint32_t i = 0; i < rows->count; i++)
            fm_buffer_add_varint(&rows->columns.data[rows->width], 0);
    for (uint32_t i = 0; i < rows->width; i++)
        fm_buffer_add_varint(&rows->columns.data[i], i < width ? cells[i] : 0);
    rows->count++;
}

void fm_rows_take(struct fm_rows *rows, struct fm_buffer *payload)
{
    fm_buffer_add_varint(payload, rows->first);
    fm_buffer_add_varint(payload, rows->count);
    fm_buffer_add_varint(payload, rows->width);
    for (uint32_t i = 0; i < rows->width; i++) {
        fm_buffer_add(payload, rows->columns.data[i].data, rows->columns.data[i].len);
        fm_buffer_clear(&rows->columns.data[i]);
    }
    rows->first += rows->count;
    rows->count = rows->width = 0;
}

void fm_rows_release(struct fm_rows *rows)
{
    for (size_t i = 0; i < rows->columns.len; i++)
        fm_buffer_release(&rows->columns.data[i]);
    fm_vec_release(&rows->columns);
}

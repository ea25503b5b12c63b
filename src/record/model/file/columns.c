/* A table of a .fathom file being read; see columns.h. */
#include "record/model/file/columns.h"

#define WIDTH_MAX 1024

bool fm_columns_cells(struct fm_columns *t, struct fm_cursor *c)
{
    uint64_t count = (uint64_t)t->rows * t->width;
    if (c->failed || count > fm_cursor_left(c))
        return false;
    fm_vec_reserve(&t->cells, count);
    for (uint64_t i = 0; i < count; i++)
        t->cells.data[i] = fm_cursor_varint(c);
    return !c->failed;
}

bool fm_columns_shape(struct fm_columns *t, struct fm_cursor *c)
{
    uint64_t first = fm_cursor_varint(c);
    uint64_t rows = fm_cursor_varint(c);
    uint64_t width = fm_cursor_varint(c);
    if (c->failed || first >= UINT32_MAX || rows >= UINT32_MAX - first || width > WIDTH_MAX)
        return false;
    if (!width && rows)
        return false;
    t->first = (uint32_t)first;
    t->rows = (uint32_t)rows;
    t->width = (uint32_t)width;
    return true;
}

bool fm_columns_read(struct fm_columns *t, struct fm_cursor *c)
{
    return fm_columns_shape(t, c) && fm_columns_cells(t, c);
}

void fm_columns_release(struct fm_columns *t)
{
    fm_vec_release(&t->cells);
}

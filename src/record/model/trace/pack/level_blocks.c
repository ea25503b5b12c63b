/*
 * Blocks of levels of detail; see levels.h.
 *
 *     head := thread, top, width, begin, length, cells
 *     body := runs, then of each run: depth, cells; then column after column: gap to the cell before of
 *             the depth, length, subject, spans − 1, longest, covered, origin · 8 + flags
 *
 * Times are counted in 2^(width − 5) ticks: a thirtieth of what can be seen at the finest level; those of
 * cells that stand for many spans are rounded to half a bucket of the level that made them. `longest`
 * is 0 if the cell is one span, else the first four bits of the number and its magnitude; `covered` is in
 * fifteenths of its length.
 */
#include "record/model/trace/pack/levels.h"

#include <stdlib.h>

#define FINE_BITS 5

static unsigned quantum_of(uint32_t width)
{
    return width > FINE_BITS ? width - FINE_BITS : 0;
}

/* Four bits of precision: 8 … 15, and how often it was halved. */
static uint32_t magnitude(uint64_t value)
{
    unsigned bits = value ? 64 - (unsigned)__builtin_clzll(value) : 1;
    unsigned halved = bits > 4 ? bits - 4 : 0;
    return 1 + ((halved << 4) | (uint32_t)(value >> halved));
}

static uint64_t from_magnitude(uint64_t code)
{
    uint64_t halved = (code - 1) >> 4;
    return halved < 59 ? ((code - 1) & 15) << halved : 0;
}

static int compare_cells(const void *a, const void *b)
{
    const struct fm_level_cell *x = a, *y = b;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

enum { GAP, LENGTH, SUBJECT, SPANS, LONGEST, COVERED, ORIGIN, COLUMNS };

/* What stands for many spans begins and ends with halves of a bucket of the level that made it. */
static void add_cell(struct fm_buffer *columns, const struct fm_level_cell *cell, unsigned width,
                     uint64_t *last)
{
    unsigned quantum = quantum_of(width), half = cell->origin ? width + 2 * cell->origin - 3 : 0;
    uint64_t rest = ((uint64_t)1 << half) - 1;
    uint64_t begin = (cell->begin & ~rest) >> quantum,
             end = ((cell->end + rest) & ~rest) >> quantum;
    begin = begin < *last ? *last : begin;
    end = end < begin ? begin : end;
    uint64_t length = (end - begin) << quantum;
    fm_buffer_add_varint(&columns[GAP], begin - *last);
    fm_buffer_add_varint(&columns[LENGTH], end - begin);
    fm_buffer_add_varint(&columns[SUBJECT], cell->subject);
    fm_buffer_add_varint(&columns[SPANS], cell->spans - 1);
    fm_buffer_add_varint(&columns[LONGEST], cell->origin ? magnitude(cell->longest) : 0);
    uint64_t share = length ? (uint64_t)((double)cell->covered * 15 / (double)length + 0.5) : 15;
    share = share > 15 ? 15 : share ? share : 1;
    fm_buffer_add_char(&columns[COVERED], (char)share);
    fm_buffer_add_varint(&columns[ORIGIN], (uint32_t)cell->origin << 3 | (cell->flags & 7));
    *last = end;
}

static void add_runs(const struct fm_level_cell *cells, size_t count, struct fm_buffer *body)
{
    fm_autobuffer runs = FM_BUFFER_INIT;
    uint64_t number = 0;
    for (size_t i = 0, end; i < count; i = end, number++) {
        for (end = i; end < count && cells[end].depth == cells[i].depth;)
            end++;
        fm_buffer_add_varint(&runs, cells[i].depth);
        fm_buffer_add_varint(&runs, end - i);
    }
    fm_buffer_add_varint(body, number);
    fm_buffer_add(body, runs.data, runs.len);
}

static void widen(uint64_t *begin, uint64_t *end, const struct fm_level_cell *cell, unsigned width)
{
    uint64_t rest = cell->origin ? ((uint64_t)1 << (width + 2 * cell->origin - 3)) - 1 : 0;
    *begin = (cell->begin & ~rest) < *begin ? cell->begin & ~rest : *begin;
    *end = ((cell->end + rest) & ~rest) > *end ? (cell->end + rest) & ~rest : *end;
}

void fm_level_block(struct fm_levels *levels, uint32_t thread, unsigned top, struct fm_buffer *head,
                    struct fm_buffer *body)
{
    struct fm_level_cell *cells = levels->done[top].cells.data;
    size_t count = levels->done[top].cells.len;
    struct fm_buffer columns[COLUMNS] = { 0 };
    unsigned quantum = quantum_of(levels->width);
    uint64_t begin = UINT64_MAX, end = 0, last = 0;
    qsort(cells, count, sizeof *cells, compare_cells);
    for (size_t i = 0; i < count; i++) /* those that are rounded may begin earlier, and end later */
        widen(&begin, &end, &cells[i], levels->width);
    begin = begin >> quantum << quantum;
    for (size_t i = 0; i < count; i++) {
        if (!i || cells[i].depth != cells[i - 1].depth)
            last = begin >> quantum;
        add_cell(columns, &cells[i], levels->width, &last);
    }
    fm_buffer_clear(head);
    const uint64_t facts[] = { thread, top, levels->width, begin, end - begin, count };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        fm_buffer_add_varint(head, facts[i]);
    fm_buffer_clear(body);
    add_runs(cells, count, body);
    for (int i = 0; i < COLUMNS; i++) {
        fm_buffer_add_varint(body, columns[i].len);
        fm_buffer_add(body, columns[i].data, columns[i].len);
        fm_buffer_release(&columns[i]);
    }
    levels->done[top].cells.len = 0;
}

/* ---- reading ---- */

bool fm_level_facts(struct fm_level_facts *facts, struct fm_cursor *head)
{
    uint64_t thread = fm_cursor_varint(head), top = fm_cursor_varint(head);
    uint64_t width = fm_cursor_varint(head);
    *facts = (struct fm_level_facts){ (uint32_t)thread, (uint32_t)top, (uint32_t)width, 0, 0, 0 };
    facts->begin = fm_cursor_varint(head);
    facts->end = facts->begin + fm_cursor_varint(head);
    facts->cells = fm_cursor_varint(head);
    return !head->failed && thread <= UINT32_MAX && top && top <= FM_LEVELS && width < 48 &&
           facts->end >= facts->begin && !(facts->end >> 62);
}

static bool read_cell(struct fm_cursor *columns, const struct fm_level_facts *facts,
                      struct fm_level_cell *cell, uint64_t *last)
{
    unsigned quantum = quantum_of(facts->width);
    uint64_t begin = *last + fm_cursor_varint(&columns[GAP]);
    uint64_t end = begin + fm_cursor_varint(&columns[LENGTH]);
    uint64_t limit = (facts->end >> quantum) + 1;
    if (begin < *last || end < begin || end > limit)
        return false;
    *last = end;
    cell->begin = begin << quantum;
    cell->end = (end << quantum) | (end == begin ? 1u : 0u);
    cell->subject = (uint32_t)fm_cursor_varint(&columns[SUBJECT]);
    cell->spans = fm_cursor_varint(&columns[SPANS]) + 1;
    uint64_t longest = fm_cursor_varint(&columns[LONGEST]);
    const uint8_t *covered = fm_cursor_bytes(&columns[COVERED], 1);
    uint64_t origin = fm_cursor_varint(&columns[ORIGIN]);
    cell->longest = longest ? from_magnitude(longest) : cell->end - cell->begin;
    uint64_t share = covered && *covered < 15 ? *covered : 15;
    cell->covered = (cell->end - cell->begin) / 15 * share;
    cell->origin = (uint8_t)(origin >> 3);
    cell->flags = origin & 7;
    for (int i = 0; i < COLUMNS; i++)
        if (columns[i].failed)
            return false;
    return origin >> 3 <= FM_LEVELS;
}

bool fm_level_read(const struct fm_level_facts *facts, const struct fm_buffer *body,
                   fm_level_cell_fn *each, void *context)
{
    struct fm_cursor c = fm_cursor_over(body->data, body->len), columns[COLUMNS];
    uint64_t runs = fm_cursor_varint(&c);
    struct fm_cursor run = c;
    if (runs > FM_LEVEL_DEPTH)
        return false;
    for (uint64_t i = 0; i < 2 * runs; i++)
        fm_cursor_varint(&c);
    for (int i = 0; i < COLUMNS; i++) {
        uint64_t len = fm_cursor_varint(&c);
        const uint8_t *bytes = fm_cursor_bytes(&c, len);
        columns[i] = fm_cursor_over(bytes, bytes ? (size_t)len : 0);
    }
    for (; runs && !c.failed; runs--) {
        struct fm_level_cell cell = { .depth = 0 };
        uint64_t depth = fm_cursor_varint(&run), last = facts->begin >> quantum_of(facts->width);
        cell.depth = (uint16_t)depth;
        for (uint64_t left = fm_cursor_varint(&run); left; left--) {
            if (depth >= FM_LEVEL_DEPTH || !read_cell(columns, facts, &cell, &last))
                return false;
            each(context, &cell);
        }
    }
    return !c.failed;
}

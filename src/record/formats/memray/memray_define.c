/* What all of memray's files have: threads, code and frames, memory over time; see memray_bin.h. */
#include "record/formats/memray/memray_bin.h"

#define TEXT_MAX  ((size_t)1 << 20)
#define TABLE_MAX ((size_t)16 << 20)

/* ---- threads and what they call ---- */

enum fm_memray_ending fm_memray_switch_thread(struct fm_memray_bin *b)
{
    uint64_t tid = fm_memray_fixed(&b->s, 8);
    if (!fm_memray_whole(&b->s))
        return FM_MEMRAY_CUT_OFF;
    uint32_t thread = fm_memray_thread(&b->c, tid);
    if (thread == FM_NONE)
        return FM_MEMRAY_TOO_MUCH;
    const struct fm_memray_thread *t = &b->c.threads.data[thread];
    b->thread = thread;
    b->context = t->stack.len ? t->stack.data[t->stack.len - 1] : t->root;
    return FM_MEMRAY_GOES_ON;
}

/* A text, whose numbers may follow: they are in the window then. */
bool fm_memray_read_text(struct fm_memray_bin *b, struct fm_buffer *text)
{
    fm_buffer_clear(text);
    if (!fm_memray_text(&b->s, text, TEXT_MAX))
        return false;
    fm_memray_next(&b->s);
    return true;
}

static uint32_t string_of(struct fm_memray_bin *b, const struct fm_buffer *text)
{
    return fm_strings_add(b->c.p->strings, fm_buffer_text(text), text->len);
}

enum fm_memray_ending fm_memray_name_thread(struct fm_memray_bin *b)
{
    if (!fm_memray_read_text(b, &b->text))
        return FM_MEMRAY_CUT_OFF;
    if (!fm_budget_take(&b->budget, 1, b->text.len + 1))
        return FM_MEMRAY_TOO_MUCH;
    b->c.threads.data[b->thread].name = string_of(b, &b->text);
    return FM_MEMRAY_GOES_ON;
}

/* ---- definitions ---- */

/* Function and file of a code object or frame. */
bool fm_memray_read_names(struct fm_memray_bin *b)
{
    return fm_memray_read_text(b, &b->text) && fm_memray_read_text(b, &b->other);
}

static uint32_t as_line(uint64_t line)
{
    return (int64_t)line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

enum fm_memray_ending fm_memray_define_place(struct fm_memray_bin *b, uint64_t number,
                                             uint64_t line)
{
    struct fm_memray_code code = { .line = as_line(line) };
    if (!fm_memray_whole(&b->s))
        return FM_MEMRAY_CUT_OFF;
    if (number > UINT32_MAX)
        return FM_MEMRAY_DAMAGED;
    if (!fm_budget_take(&b->budget, 1, b->text.len + b->other.len))
        return FM_MEMRAY_TOO_MUCH;
    code.name = string_of(b, &b->text);
    code.file = string_of(b, &b->other);
    return fm_memray_define(&b->c, (uint32_t)number, &code, &b->table) ? FM_MEMRAY_GOES_ON
                                                                       : FM_MEMRAY_TOO_MUCH;
}

enum fm_memray_ending fm_memray_define_code(struct fm_memray_bin *b)
{
    uint64_t number = fm_memray_varint(&b->s);
    if (!fm_memray_read_names(b))
        return FM_MEMRAY_CUT_OFF;
    uint64_t line = fm_memray_delta(&b->s, &b->last_line);
    uint64_t len = fm_memray_varint(&b->s);
    fm_buffer_clear(&b->table);
    if (len > TABLE_MAX)
        return FM_MEMRAY_DAMAGED;
    if (!fm_memray_whole(&b->s) || !fm_memray_bytes(&b->s, &b->table, len, TABLE_MAX))
        return FM_MEMRAY_CUT_OFF;
    return fm_memray_define_place(b, number, line);
}

enum fm_memray_ending fm_memray_define_frame(struct fm_memray_bin *b)
{
    uint64_t number = fm_memray_delta(&b->s, &b->last_frame);
    if (!fm_memray_read_names(b))
        return FM_MEMRAY_CUT_OFF;
    return fm_memray_define_place(b, number, fm_memray_delta(&b->s, &b->last_line));
}

/* ---- what is passed over: native frames and where libraries lie ---- */

enum fm_memray_ending fm_memray_skip_native_frame(struct fm_memray_bin *b)
{
    fm_memray_delta(&b->s, &b->last_instruction);
    fm_memray_delta(&b->s, &b->last_native);
    return fm_memray_whole(&b->s) ? FM_MEMRAY_GOES_ON : FM_MEMRAY_CUT_OFF;
}

enum fm_memray_ending fm_memray_skip_segments(struct fm_memray_bin *b)
{
    if (!fm_memray_read_text(b, &b->text))
        return FM_MEMRAY_CUT_OFF;
    uint64_t count = fm_memray_varint(&b->s);
    fm_memray_skip(&b->s, 8);
    for (; count && fm_memray_next(&b->s); count--) {
        fm_memray_skip(&b->s, 1 + 8);
        fm_memray_varint(&b->s);
    }
    return count || !fm_memray_whole(&b->s) ? FM_MEMRAY_CUT_OFF : FM_MEMRAY_GOES_ON;
}

/* ---- memory over time ---- */

void fm_memray_add_look(struct fm_memray_bin *b, uint64_t ms, uint64_t rss, uint64_t heap)
{
    uint64_t at_ms = b->header.start_ms + ms;
    if (ms > FM_MEMRAY_TIME_MAX_MS || rss > FM_MEMRAY_BYTES_MAX || heap > FM_MEMRAY_BYTES_MAX ||
        at_ms < b->last_ms)
        return;
    b->last_ms = at_ms;
    struct fm_memory_point point = { .at_ns = at_ms * 1000000,
                                     .heap = (int64_t)heap,
                                     .rss = (int64_t)rss };
    point.pss = point.swap = point.limit = point.group = -1;
    fm_curve_add(&b->curve, &point);
}

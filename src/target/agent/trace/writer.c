/* Words of a trace; see writer.h. */
#include "target/agent/trace/writer.h"

/* What follows a word stands in the chunk before it: a reader of a dead process finds whole records. */
static void put_word(uint8_t *at, uint16_t word)
{
    __atomic_signal_fence(__ATOMIC_RELEASE);
    fm_trace_put16(at, word);
    __atomic_signal_fence(__ATOMIC_RELEASE);
}

static void put_record(struct fm_trace_writer *w, uint16_t units, enum fm_trace_escape kind,
                       const uint32_t *numbers, unsigned count)
{
    uint8_t *at = w->cursor;
    fm_trace_put16(at + 2, (uint16_t)(kind | count * 2 << 8));
    for (unsigned i = 0; i < count; i++)
        fm_trace_put32(at + 4 + 4 * i, numbers[i]);
    put_word(at, (uint16_t)((units + 1) << 2 | FM_TRACE_ESCAPE));
    w->cursor = at + 4 + 4 * (size_t)count;
}

void fm_trace_settle(struct fm_trace_writer *w, uint64_t now)
{
    if ((int64_t)(now - w->last) <= 0 || fm_trace_units(w, now) <= FM_TRACE_TIME_MAX)
        return;
    if (w->after_time == w->cursor) /* what came after it was taken back: it is of no use */
        w->cursor -= FM_TRACE_TIME_BYTES;
    put_record(w, 0, FM_TRACE_TIME, (uint32_t[]){ (uint32_t)now, (uint32_t)(now >> 32) }, 2);
    w->after_time = w->cursor;
    w->last = now;
}

uint16_t fm_trace_advance(struct fm_trace_writer *w, uint64_t now)
{
    fm_trace_settle(w, now);
    if ((int64_t)(now - w->last) <= 0)
        return 0;
    uint64_t units = fm_trace_units(w, now);
    w->last += units << FM_TRACE_SHIFT;
    return (uint16_t)units;
}

void fm_trace_put_escape(struct fm_trace_writer *w, uint64_t now, enum fm_trace_escape kind,
                         const uint32_t *numbers, unsigned count)
{
    uint16_t units = fm_trace_advance(w, now);
    put_record(w, units, kind, numbers, count);
}

void fm_trace_put_value(struct fm_trace_writer *w, uint64_t now, uint32_t name,
                        enum fm_trace_value_of of, uint32_t token, const char *text, size_t len)
{
    uint16_t units = fm_trace_advance(w, now);
    uint8_t *at = w->cursor;
    size_t head = of == FM_TRACE_OF_TOKEN ? 5 : 3, words = head + (len + 1) / 2;
    uint8_t *to = at + 4 + 2 * head;
    fm_trace_put16(at + 2, (uint16_t)(FM_TRACE_VALUE | words << 8));
    fm_trace_put32(at + 4, name);
    fm_trace_put16(at + 8, (uint16_t)(of | len << 4));
    if (of == FM_TRACE_OF_TOKEN)
        fm_trace_put32(at + 10, token);
    memcpy(to, text, len);
    if (len % 2)
        to[len] = 0;
    put_word(at, (uint16_t)((units + 1) << 2 | FM_TRACE_ESCAPE));
    w->cursor = at + 4 + 2 * words;
}

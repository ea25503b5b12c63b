/* What a log tells whoever comes after it; see trace_state.h. */
#include "watch/trace/trace_state.h"

#include "base/clock.h"

/* Threads that have ended have no chunks any more. */
static void tell_next(const struct fm_trace_log *log, struct fm_buffer *into)
{
    size_t count;
    fm_autobuffer list = FM_BUFFER_INIT;
    uint64_t told = 0;
    const struct fm_trace_thread *threads = fm_trace_pack_threads(log->pack, &count);
    for (size_t i = 0; i < count; i++) {
        const uint32_t *next = fm_map_find(&log->next, threads[i].thread);
        if (!next || !fm_trace_pack_goes_on(log->pack, threads[i].thread))
            continue;
        fm_buffer_add_varint(&list, threads[i].thread);
        fm_buffer_add_varint(&list, *next);
        told++;
    }
    fm_buffer_add_varint(into, told);
    fm_buffer_add(into, list.data, list.len);
}

bool fm_trace_state_put(struct fm_trace_log *log)
{
    fm_autobuffer state = FM_BUFFER_INIT;
    uint64_t number = log->journal.number, at = log->writer.bytes;
    log->told_ns = fm_clock_ns();
    fm_buffer_add_varint(&state, log->told_ns);
    fm_buffer_add_varint(&state, log->window.ns);
    tell_next(log, &state);
    fm_trace_pack_tell_state(log->pack, &state);
    if (fm_writer_block(&log->writer, FM_TRACE_STATE_BLOCK, state.data, state.len) < 0)
        return false;
    struct fm_window_block block = { .at = at, .end = log->writer.bytes };
    if (fm_writer_block(&log->writer, FM_JOURNAL_BLOCK, &number, sizeof number) < 0)
        return false;
    if (log->state.end)
        fm_trace_window_give_back(&log->state, log->packed);
    log->state = block;
    return true;
}

struct fm_trace_state fm_trace_state_open(const void *bytes, size_t len)
{
    struct fm_trace_state state = { .rest = fm_cursor_over(bytes, len) };
    state.told_ns = fm_cursor_varint(&state.rest);
    state.window_ns = fm_cursor_varint(&state.rest);
    return state;
}

bool fm_trace_state_take(struct fm_trace_log *log, struct fm_trace_state *state)
{
    struct fm_cursor *c = &state->rest;
    for (uint64_t count = fm_cursor_varint(c); count && !c->failed; count--) {
        uint64_t thread = fm_cursor_varint(c), next = fm_cursor_varint(c);
        if (!c->failed && thread <= UINT32_MAX && next <= UINT32_MAX)
            *fm_map_at(&log->next, thread, 0, NULL) = (uint32_t)next;
    }
    return !c->failed && fm_trace_pack_take_state(log->pack, c);
}

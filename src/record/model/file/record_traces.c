/*
 * The traces of a profile through the recorder: tables that say what the numbers in their blocks are in
 * this file, then the blocks as they are, with the number that the trace has here in front.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "record/model/file/recorder.h"
#include "record/model/file/recording.h"
#include "record/model/trace/traces.h"

static void append_tables(struct fm_recorder *r, const struct fm_trace *trace, uint64_t number,
                          const struct fm_append_numbers *n)
{
    for (size_t i = 0; i < trace->streams.len; i++) {
        const struct fm_trace_stream *s = &trace->streams.data[i];
        FM_RECORDER_ROW(r, FM_TABLE_TRACE_STREAMS, number,
                        (uint64_t)n->first_process + trace->process, s->number,
                        (uint64_t)n->first_thread + s->thread, s->begin_ns, s->end_ns, s->events,
                        s->lost, s->depth);
    }
    for (size_t i = 0; i < trace->functions.len; i++)
        if (trace->functions.data[i] != FM_NONE)
            FM_RECORDER_ROW(r, FM_TABLE_TRACE_FUNCTIONS, number, i,
                            n->functions[trace->functions.data[i]]);
    size_t names = trace->names.len > trace->regions.len ? trace->names.len : trace->regions.len;
    for (size_t i = 0; i < names; i++) {
        uint32_t name = i < trace->names.len ? trace->names.data[i] : FM_NONE;
        uint32_t region = i < trace->regions.len ? trace->regions.data[i] : FM_NONE;
        if (name != FM_NONE || region != FM_NONE)
            FM_RECORDER_ROW(r, FM_TABLE_TRACE_NAMES, number, i,
                            name == FM_NONE ? 0 : n->string(n->context, name),
                            region == FM_NONE ? 0 : (uint64_t)n->functions[region] + 1);
    }
}

/* A block that cannot be read is left out. Returns how many are. */
static uint64_t copy_blocks(struct fm_recorder *r, const struct fm_trace *trace, uint32_t number)
{
    uint8_t *payload = NULL;
    size_t room = 0;
    uint64_t lost = 0;
    for (size_t i = 0; i < trace->blocks.len && !r->failed; i++) {
        const struct fm_trace_block *block = &trace->blocks.data[i];
        if (block->away) {
            lost++;
            continue;
        }
        if (block->bytes > room) {
            room = block->bytes;
            payload = fm_realloc(payload, room, 1);
        }
        if (block->bytes < sizeof number ||
            !trace->source->read(trace->source->context, block->at, payload, block->bytes)) {
            lost++;
            continue;
        }
        for (unsigned b = 0; b < sizeof number; b++)
            payload[b] = (uint8_t)(number >> 8 * b);
        r->failed = fm_writer_block(&r->writer, block->type, payload, block->bytes);
    }
    free(payload);
    return lost;
}

void fm_recorder_traces(struct fm_recorder *r, const struct fm_profile *p,
                        const struct fm_append_numbers *numbers)
{
    uint64_t lost = 0;
    for (size_t i = 0; i < p->traces.list.len; i++)
        append_tables(r, &p->traces.list.data[i], r->traces + i, numbers);
    if (p->traces.list.len)
        fm_recorder_write(r); /* what blocks refer to stands before them */
    for (size_t i = 0; i < p->traces.list.len; i++)
        lost += copy_blocks(r, &p->traces.list.data[i], r->traces + (uint32_t)i);
    r->traces += (uint32_t)p->traces.list.len;
    if (lost)
        FM_RECORDER_ROW(r, FM_TABLE_NOTES, 0, fm_recorder_text(r, "lost"), lost,
                        fm_recorder_text(r, "pieces of a timeline that could not be read"));
}

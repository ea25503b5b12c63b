/* Reads what a .fathom file says of traces, and where their blocks are; see loader.h, trace/traces.h and
 * docs/format.md. */
#include "record/capture/format.h"
#include "record/model/file/loader.h"
#include "record/model/trace/traces.h"

#define ID_MOST (1u << 29) /* of functions and names in blocks */

static struct fm_trace *trace_at(struct fm_loader *l, uint64_t number)
{
    const uint32_t *index = number < FM_NONE ? fm_map_find(&l->traces, number) : NULL;
    return index ? &l->p->traces.list.data[*index] : NULL;
}

static struct fm_trace *new_trace(struct fm_loader *l, uint64_t number, uint32_t process)
{
    if (number >= FM_NONE || !l->source)
        return NULL;
    fm_map_at(&l->traces, number, (uint32_t)l->p->traces.list.len, NULL);
    fm_vec_push(&l->p->traces.list, ((struct fm_trace){ .process = process, .source = l->source }));
    l->source->users++;
    return &l->p->traces.list.data[l->p->traces.list.len - 1];
}

bool fm_load_trace_streams(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || l->table.width < 4)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint64_t number = fm_loader_cell(l, i, 0);
        struct fm_trace_stream stream = {
            .number = fm_loader_cell32(l, i, 2),
            .thread = fm_loader_id(&l->threads, fm_loader_cell(l, i, 3)),
            .begin_ns = fm_loader_cell(l, i, 4),
            .end_ns = fm_loader_cell(l, i, 5),
            .events = fm_loader_cell(l, i, 6),
            .lost = fm_loader_cell(l, i, 7),
            .depth = fm_loader_cell32(l, i, 8),
        };
        uint32_t process = fm_loader_id(&l->processes, fm_loader_cell(l, i, 1));
        if (stream.thread == FM_NONE || process == FM_NONE) {
            l->lost_nodes++;
            continue;
        }
        struct fm_trace *trace = trace_at(l, number);
        if (!trace)
            trace = new_trace(l, number, process);
        if (!trace)
            return false;
        fm_vec_push(&trace->streams, stream);
    }
    return true;
}

/* Where the number `id` of a table stands; NULL if that is out of all proportion. */
static uint32_t *place_of(struct fm_loader *l, struct fm_trace *trace, bool names, uint64_t id)
{
    size_t len = names ? trace->names.len : trace->functions.len;
    if (id >= ID_MOST || (id >= len && !fm_budget_take(&l->budget, id - len + 1, sizeof(uint32_t))))
        return NULL;
    if (names) {
        while (trace->names.len <= id)
            fm_vec_push(&trace->names, FM_NONE);
        return &trace->names.data[id];
    }
    while (trace->functions.len <= id)
        fm_vec_push(&trace->functions, FM_NONE);
    return &trace->functions.data[id];
}

/* As many as there are names, for which there was room. */
static void add_region(struct fm_loader *l, struct fm_trace *trace, size_t id, uint64_t function)
{
    while (trace->regions.len <= id)
        fm_vec_push(&trace->regions, FM_NONE);
    trace->regions.data[id] = fm_loader_function(l, function);
}

static bool load_ids(struct fm_loader *l, struct fm_cursor *c, bool names)
{
    if (!fm_loader_table(l, c) || l->table.width < 3)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_trace *trace = trace_at(l, fm_loader_cell(l, i, 0));
        uint32_t *place = trace ? place_of(l, trace, names, fm_loader_cell(l, i, 1)) : NULL;
        if (!place) {
            l->lost_nodes++;
            continue;
        }
        uint64_t id = fm_loader_cell(l, i, 2), region = fm_loader_cell(l, i, 3);
        *place = names ? fm_loader_string(l, id) : fm_loader_function(l, id);
        if (names && region)
            add_region(l, trace, (size_t)fm_loader_cell(l, i, 1), region - 1);
    }
    return true;
}

bool fm_load_trace_functions(struct fm_loader *l, struct fm_cursor *c)
{
    return load_ids(l, c, false);
}

bool fm_load_trace_names(struct fm_loader *l, struct fm_cursor *c)
{
    return load_ids(l, c, true);
}

/* A block of which only the head is here: it is read as that of any other, four bytes before it. */
static bool take_away(const struct fm_block *block, struct fm_trace_block *place)
{
    struct fm_cursor c = fm_cursor_over(block->data + 4, block->len - 4);
    place->away_at = fm_cursor_varint(&c);
    uint64_t bytes = fm_cursor_varint(&c);
    size_t passed = (size_t)(c.at - block->data) - 4;
    place->away_bytes = (uint32_t)bytes;
    place->at += passed;
    place->bytes -= (uint32_t)passed;
    return !c.failed && bytes <= FM_BLOCK_MAX_BYTES &&
           (block->type == FM_BLOCK_TRACE_EVENTS || block->type == FM_BLOCK_TRACE_LEVELS);
}

bool fm_load_trace_block(struct fm_loader *l, const struct fm_block *block)
{
    uint32_t number = 0;
    if (block->len < sizeof number)
        return false;
    for (unsigned b = 0; b < sizeof number; b++)
        number |= (uint32_t)block->data[b] << 8 * b;
    struct fm_trace *trace = trace_at(l, number & ~FM_TRACE_AWAY);
    if (!trace)
        return false;
    struct fm_trace_block place = { .at = block->offset + FM_BLOCK_HEADER_BYTES,
                                    .bytes = block->stored,
                                    .type = block->type,
                                    .away = number & FM_TRACE_AWAY };
    if (place.away && !take_away(block, &place))
        return false;
    fm_vec_push(&trace->blocks, place);
    return true;
}

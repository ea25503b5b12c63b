/* Traced lanes out of begins and ends; see build.h. */
#include "record/model/trace/pack/build.h"

#include <string.h>

#include "base/memory.h"
#include "record/model/trace/pack/pack.h"
#include "record/model/trace/pack/packing.h"

#define NS_MAX ((uint64_t)1 << 61)

/* Payloads in memory, as a source of blocks. */
struct built_bytes {
    struct fm_buffer bytes;
};

struct fm_trace_build {
    struct fm_trace_pack *pack;
    struct built_bytes *built;
    FM_VEC(struct fm_trace_block) blocks;
    FM_VEC(uint32_t) functions, names; /* by local id, as in a trace */
    FM_VEC(uint32_t) regions;
    struct fm_map function_ids, name_ids; /* of the profile → local id */
};

static void take_payload(void *context, uint16_t type, const void *payload, size_t bytes)
{
    struct fm_trace_build *b = context;
    struct fm_trace_block block = { b->built->bytes.len, (uint32_t)bytes, type };
    fm_vec_push(&b->blocks, block);
    fm_buffer_add(&b->built->bytes, payload, bytes);
}

static bool read_built(void *context, uint64_t at, void *into, size_t bytes)
{
    const struct built_bytes *built = context;
    if (at > built->bytes.len || bytes > built->bytes.len - at)
        return false;
    memcpy(into, built->bytes.data + at, bytes);
    return true;
}

static void release_built(void *context)
{
    struct built_bytes *built = context;
    fm_buffer_release(&built->bytes);
    free(built);
}

struct fm_trace_build *fm_trace_build_new(void)
{
    struct fm_trace_build *b = fm_calloc(1, sizeof *b);
    b->built = fm_calloc(1, sizeof *b->built);
    b->pack = fm_trace_pack_new(0, take_payload, b);
    fm_trace_pack_clock(b->pack, 1, 0); /* a tick is a nanosecond, and none is 0 */
    fm_trace_pack_clock(b->pack, NS_MAX + 1, NS_MAX);
    fm_vec_push(&b->functions, FM_NONE);
    fm_vec_push(&b->names, FM_NONE);
    fm_vec_push(&b->regions, FM_NONE);
    return b;
}

void fm_trace_build_free(struct fm_trace_build *b)
{
    if (!b)
        return;
    fm_trace_pack_free(b->pack);
    if (b->built)
        release_built(b->built);
    fm_vec_release(&b->blocks);
    fm_vec_release(&b->functions);
    fm_vec_release(&b->names);
    fm_vec_release(&b->regions);
    fm_map_release(&b->function_ids);
    fm_map_release(&b->name_ids);
    free(b);
}

static uint32_t local_function(struct fm_trace_build *b, uint32_t func)
{
    bool is_new;
    uint32_t id = *fm_map_at(&b->function_ids, func, (uint32_t)b->functions.len, &is_new);
    if (is_new)
        fm_vec_push(&b->functions, func);
    return id;
}

/* A name, or (by its function) a region. */
static uint32_t local_name(struct fm_trace_build *b, uint32_t string, uint32_t region)
{
    bool is_new;
    uint32_t id = *fm_map_at(&b->name_ids, fm_map_pair(region != FM_NONE, string),
                             (uint32_t)b->names.len, &is_new);
    if (is_new) {
        fm_vec_push(&b->names, string);
        fm_vec_push(&b->regions, region);
    }
    return id;
}

static struct fm_stream *stream_at(struct fm_trace_build *b, uint32_t thread, uint64_t *ns)
{
    struct fm_stream *s = fm_pack_stream(b->pack, thread + 1, thread + 1);
    *ns = *ns < NS_MAX ? *ns + 1 : NS_MAX;
    fm_pack_begin_stream(b->pack, s, *ns);
    *ns = *ns > s->ticks ? *ns : s->ticks;
    return s;
}

void fm_trace_build_begin(struct fm_trace_build *b, const struct fm_profile *p, uint32_t thread,
                          uint64_t ns, uint32_t func)
{
    struct fm_stream *s = stream_at(b, thread, &ns);
    const struct fm_function *f = &p->functions.data[func];
    uint32_t code = f->kind == FM_FUNCTION_REGION
                        ? fm_event_begin(local_name(b, f->name, func) * 2, FM_EVENT_OTHER)
                        : fm_event_begin(local_function(b, func), FM_EVENT_CALL);
    fm_pack_begin(b->pack, s, code, ns, 0);
}

void fm_trace_build_end(struct fm_trace_build *b, uint32_t thread, uint64_t ns)
{
    struct fm_stream *s = stream_at(b, thread, &ns);
    if (s->beyond)
        s->beyond--;
    else if (s->frames.len)
        fm_pack_end_frame(b->pack, s,
                          fm_event_is_call(s->frames.data[s->frames.len - 1].code)
                              ? FM_EVENT_RETURN
                              : FM_EVENT_REGION_END,
                          ns);
}

void fm_trace_build_mark(struct fm_trace_build *b, uint32_t thread, const struct fm_mark *mark)
{
    uint64_t begin = mark->begin_ns < NS_MAX ? mark->begin_ns + 1 : 1;
    uint64_t end = mark->end_ns < NS_MAX ? mark->end_ns + 1 : begin;
    struct fm_trace_mark packed = { .begin = begin,
                                    .end = end > begin ? end : begin,
                                    .kind = (uint32_t)mark->kind,
                                    .name = mark->name ? local_name(b, mark->name, FM_NONE) : 0,
                                    .value = mark->value,
                                    .other = mark->other };
    if (mark->func != FM_NONE)
        packed.subject = local_function(b, mark->func) * 2 + 1;
    fm_pack_mark(fm_pack_stream(b->pack, thread + 1, thread + 1), &packed);
}

void fm_trace_build_finish(struct fm_trace_build *b, struct fm_profile *p, uint32_t process)
{
    size_t count;
    struct fm_trace trace = { .process = process };
    fm_trace_pack_end(b->pack, 0);
    const struct fm_trace_thread *threads = fm_trace_pack_threads(b->pack, &count);
    for (size_t i = 0; i < count; i++) {
        struct fm_trace_stream s = { .number = threads[i].thread,
                                     .thread = threads[i].thread - 1,
                                     .depth = threads[i].depth,
                                     .events = threads[i].events };
        const struct fm_thread *thread = &p->threads.data[s.thread];
        s.begin_ns = threads[i].first_ticks ? threads[i].first_ticks - 1 : thread->start_ns;
        s.end_ns = threads[i].first_ticks ? threads[i].last_ticks - 1 : thread->end_ns;
        fm_vec_push(&trace.streams, s);
    }
    if (!count)
        return;
    trace.source = fm_calloc(1, sizeof *trace.source);
    *trace.source = (struct fm_trace_source){ read_built, release_built, b->built, 1 };
    memcpy(&trace.blocks, &b->blocks, sizeof trace.blocks);
    memcpy(&trace.functions, &b->functions, sizeof trace.functions);
    memcpy(&trace.names, &b->names, sizeof trace.names);
    memcpy(&trace.regions, &b->regions, sizeof trace.regions);
    memset(&b->blocks, 0, sizeof b->blocks);
    memset(&b->functions, 0, sizeof b->functions);
    memset(&b->names, 0, sizeof b->names);
    memset(&b->regions, 0, sizeof b->regions);
    b->built = NULL;
    fm_vec_push(&p->traces.list, trace);
}

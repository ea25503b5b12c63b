/*
 * Reads the live store of a process into a profile; see live.h and capture/live.h.
 *
 * Model. One pass over the pages finds the chunks. Then, in this order: definitions (functions,
 * facts, sources), threads, nodes with what completed entries took, what generators add, and last
 * the calls that were still open, which get the time until the end. Ticks become nanoseconds by two
 * (ticks, ns) pairs, always rounded down, so children never add up to more than their caller.
 * Definitions are read by model/live/live_definitions.c, and lines and regions, which are beside all this, by
 * model/live/live_lines.c and model/live/live_regions.c.
 *
 * Trust. The process may have been killed at any instant, the file may be anything, and a living
 * process may change it meanwhile. So: every record is copied once and only the copy is used; every
 * id, count and address is checked; a record that fails is dropped and counted.
 *  1. A node's parent has a smaller id and was accepted before it. So there are no cycles.
 *  2. Ids along an open stack increase strictly. So no node is credited twice for one stack.
 *  3. Memory is allocated by what is there, never by a number that the store claims.
 */
#include "record/model/live/live.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "record/model/live/live_lines.h"
#include "record/model/live/live_loader.h"
#include "record/model/live/live_regions.h"
#include "record/model/live/live_trace.h"

/* ---- time ---- */

static int64_t clamp(unsigned __int128 value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

int64_t fm_live_ticks_ns(const struct fm_live_loader *l, uint64_t ticks)
{
    return clamp((unsigned __int128)ticks * l->rate_ns / l->rate_ticks);
}

/* An instant on the tick counter as CLOCK_MONOTONIC; instants before the start are the start. */
uint64_t fm_live_instant_ns(const struct fm_live_loader *l, uint64_t ticks)
{
    uint64_t since = ticks > l->header.start_ticks ? ticks - l->header.start_ticks : 0;
    return l->header.start_ns + (uint64_t)fm_live_ticks_ns(l, since);
}

static void set_rate(struct fm_live_loader *l, const struct fm_live_ending *ending)
{
    const struct fm_live_header *h = &l->header;
    struct fm_clock_pair later = { h->later_ticks, h->later_ns };
    if (ending && ending->now.ticks)
        later = ending->now;
    l->rate_ns = l->rate_ticks = 1;
    if (later.ticks > h->start_ticks && later.ns > h->start_ns) {
        l->rate_ns = later.ns - h->start_ns;
        l->rate_ticks = later.ticks - h->start_ticks;
    } else {
        fm_profile_note(l->p, l->process_id, "clock", 1,
                        "the length of a clock tick is unknown: times may be wrong by a factor");
    }
}

/* The last instant that the region visits of a chunk mention, or the one given. */
static uint64_t last_visit(const struct fm_live_piece *chunk, uint64_t last)
{
    struct fm_live_visit visit;
    for (uint32_t at = 0; chunk->used - at >= sizeof visit; at += sizeof visit) {
        memcpy(&visit, chunk->payload + at, sizeof visit);
        uint64_t instant = visit.state == FM_LIVE_VISIT_ENDED ? visit.end_ticks : visit.begin_ticks;
        if (visit.state != FM_LIVE_VISIT_FREE && instant > last)
            last = instant;
    }
    return last;
}

/* The last instant that anything in the store mentions. */
static uint64_t last_instant(const struct fm_live_loader *l)
{
    uint64_t last = l->header.start_ticks;
    if (l->header.later_ticks > last)
        last = l->header.later_ticks;
    for (size_t i = 0; i < l->threads.len; i++)
        if (l->threads.data[i].last_ticks > last)
            last = l->threads.data[i].last_ticks;
    for (size_t i = 0; i < l->chunks.all.len; i++) {
        const struct fm_live_piece *c = &l->chunks.all.data[i];
        if (c->kind == FM_LIVE_VISITS)
            last = last_visit(c, last);
        if (c->kind != FM_LIVE_STACK)
            continue;
        for (uint32_t at = 0; c->room - at >= sizeof(struct fm_live_frame);
             at += sizeof(struct fm_live_frame)) {
            struct fm_live_frame frame;
            memcpy(&frame, c->payload + at, sizeof frame);
            if (frame.enter_ticks > last)
                last = frame.enter_ticks;
        }
    }
    return last;
}

/* Until when open calls ran. A process that said so itself stopped recording then, even if it went
 * on for a while. */
static void set_end(struct fm_live_loader *l, const struct fm_live_ending *ending)
{
    const struct fm_live_header *h = &l->header;
    if (ending && ending->end_ns > h->start_ns) {
        uint64_t since = ending->end_ns - h->start_ns;
        unsigned __int128 ticks = (unsigned __int128)since * l->rate_ticks / l->rate_ns;
        ticks += h->start_ticks;
        l->end_ticks = ticks > UINT64_MAX ? UINT64_MAX : (uint64_t)ticks;
        l->process.end_ns = ending->end_ns;
        if ((h->flags & FM_LIVE_ENDED) && h->end_ticks && h->end_ticks < l->end_ticks)
            l->end_ticks = h->end_ticks;
        return;
    }
    l->end_ticks = h->end_ticks ? h->end_ticks : last_instant(l);
    l->process.end_ns = fm_live_instant_ns(l, l->end_ticks);
}

/* ---- threads and nodes ---- */

static void read_threads(struct fm_live_loader *l, const struct fm_live_piece *chunk)
{
    for (uint32_t at = 0; chunk->used - at >= sizeof(struct fm_live_thread);
         at += sizeof(struct fm_live_thread)) {
        struct fm_live_thread live;
        memcpy(&live, chunk->payload + at, sizeof live);
        fm_map_at(&l->root_threads, live.root, (uint32_t)l->threads.len, NULL);
        fm_vec_push(&l->threads, live);
    }
}

/* Until when the calls open on a thread ran: it may have ended before the process. */
static uint64_t end_of_thread(const struct fm_live_loader *l, const struct fm_live_thread *live)
{
    return live->end_ticks && live->end_ticks < l->end_ticks ? live->end_ticks : l->end_ticks;
}

/* The thread of a root, with its root node; a root whose thread was not recorded any more still has
 * its time. */
static uint32_t add_thread(struct fm_live_loader *l, uint32_t live_root)
{
    struct fm_thread thread = { .process = l->process_id, .start_ns = l->header.start_ns };
    const uint32_t *index = fm_map_find(&l->root_threads, live_root);
    if (index) {
        const struct fm_live_thread *live = &l->threads.data[*index];
        size_t name_len = strnlen(live->name, sizeof live->name);
        thread.tid = live->tid;
        thread.name = fm_strings_add(l->p->strings, live->name, name_len);
        thread.start_ns = fm_live_instant_ns(l, live->start_ticks);
        thread.end_ns =
            fm_live_instant_ns(l, live->depth ? end_of_thread(l, live) : live->last_ticks);
        thread.cpu_ns = live->cpu_ns;
    }
    return fm_profile_thread(l->p, &thread);
}

uint32_t fm_live_unknown_function(struct fm_live_loader *l)
{
    uint32_t name = fm_profile_string(l->p, "<unknown>");
    struct fm_function f = { .kind = FM_FUNCTION_PYTHON, .name = name, .qualname = name };
    return fm_profile_function(l->p, &f);
}

static bool add_node(struct fm_live_loader *l, const struct fm_live_node *live, uint32_t id)
{
    struct fm_profile *p = l->p;
    if (live->id != id || live->parent > id)
        return false;
    if (live->parent == id) {
        uint32_t thread = add_thread(l, id); /* first: it may move the array */
        return fm_renumber_add(&l->nodes, id, p->threads.data[thread].root);
    }
    uint32_t parent = fm_renumber_get(&l->nodes, live->parent);
    if (parent == FM_NONE)
        return false;
    uint32_t func = live->func < l->functions.len ? l->functions.data[live->func] : FM_NONE;
    if (func == FM_NONE) {
        func = fm_live_unknown_function(l);
        l->unknown_functions++;
    }
    uint32_t node = fm_profile_node(p, parent, func);
    fm_renumber_add(&l->nodes, id, node);
    fm_profile_add(p, FM_METRIC_CALLS, node, clamp(live->calls));
    fm_profile_add(p, FM_METRIC_TOTAL, node, fm_live_ticks_ns(l, live->total_ticks));
    if (live->min_ticks && live->min_ticks != UINT64_MAX) {
        /* 0 means "none", so an entry shorter than a nanosecond took one. */
        int64_t min_ns = fm_live_ticks_ns(l, live->min_ticks);
        fm_profile_add(p, FM_METRIC_MIN, node, min_ns ? min_ns : 1);
    }
    fm_profile_add(p, FM_METRIC_MAX, node, fm_live_ticks_ns(l, live->max_ticks));
    return true;
}

static void read_nodes(struct fm_live_loader *l, const struct fm_live_piece *chunk)
{
    uint64_t id = chunk->first_id;
    fm_profile_reserve(l->p, l->p->nodes.len + chunk->used / sizeof(struct fm_live_node));
    for (uint32_t at = 0; chunk->used - at >= sizeof(struct fm_live_node);
         at += sizeof(struct fm_live_node), id++) {
        struct fm_live_node live;
        memcpy(&live, chunk->payload + at, sizeof live);
        size_t runs = l->nodes.runs.len;
        bool above = !runs || id >= (uint64_t)l->nodes.runs.data[runs - 1].from +
                                        l->nodes.runs.data[runs - 1].count;
        if (!above || id >= FM_NONE || !add_node(l, &live, (uint32_t)id))
            l->broken_nodes++;
    }
}

static void read_resumed(struct fm_live_loader *l, const struct fm_live_piece *chunk)
{
    for (uint32_t at = 0; chunk->used - at >= sizeof(struct fm_live_resumed);
         at += sizeof(struct fm_live_resumed)) {
        struct fm_live_resumed live;
        memcpy(&live, chunk->payload + at, sizeof live);
        uint32_t node = fm_renumber_get(&l->nodes, live.node);
        if (node == FM_NONE || l->p->nodes.data[node].parent == FM_NONE) {
            l->broken_records++;
            continue;
        }
        fm_profile_add(l->p, FM_METRIC_RESUMES, node, clamp(live.resumes));
        fm_profile_add(l->p, FM_METRIC_SUSPENDED, node, fm_live_ticks_ns(l, live.suspended_ticks));
    }
}

/* ---- open calls ---- */

/* Since when an open region has been in the tree, by its node (target/agent/regions/region_nodes.h). */
struct open_regions {
    struct fm_map of_node; /* → place */
    FM_VEC(uint64_t) since;
};

static void find_open_regions(struct fm_live_loader *l, struct open_regions *open)
{
    struct fm_live_visit visit;
    for (size_t i = 0; i < l->chunks.all.len; i++) {
        const struct fm_live_piece *chunk = &l->chunks.all.data[i];
        for (uint32_t at = 0; chunk->kind == FM_LIVE_VISITS && chunk->used - at >= sizeof visit;
             at += sizeof visit) {
            memcpy(&visit, chunk->payload + at, sizeof visit);
            if (visit.state != FM_LIVE_VISIT_RUNS || !visit.node)
                continue;
            uint32_t node = fm_renumber_get(&l->nodes, visit.node);
            fm_map_at(&open->of_node, node, (uint32_t)open->since.len, NULL);
            fm_vec_push(&open->since, visit.since_ticks);
        }
    }
}

/* A call that is in regions stands for the innermost of them: they are credited from when they were entered, or (one inside
 * itself) the call was. The context of the call itself. */
static uint32_t credit_regions(struct fm_live_loader *l, const struct open_regions *open,
                               uint32_t node, uint64_t enter, uint64_t end)
{
    while (l->p->nodes.data[node].parent != FM_NONE &&
           l->p->functions.data[l->p->nodes.data[node].func].kind == FM_FUNCTION_REGION) {
        const uint32_t *known = fm_map_find(&open->of_node, node);
        uint64_t since = known ? open->since.data[*known] : enter;
        since = since > enter ? since : enter;
        if (end > since)
            fm_profile_add(l->p, FM_METRIC_TOTAL, node, fm_live_ticks_ns(l, end - since));
        node = l->p->nodes.data[node].parent;
    }
    return node;
}

static void credit_frames(struct fm_live_loader *l, const struct open_regions *open,
                          const struct fm_live_piece *stack, uint64_t depth, uint64_t end_ticks)
{
    /* A program's own timer need not be on the scale of the clock that gave the start. */
    uint64_t last_enter = l->end_ticks < l->header.start_ticks ? 0 : l->header.start_ticks;
    uint64_t last_id = 0;
    for (uint64_t i = 0; i < depth && i < stack->room / sizeof(struct fm_live_frame); i++) {
        struct fm_live_frame frame;
        memcpy(&frame, stack->payload + i * sizeof frame, sizeof frame);
        if (frame.node && frame.node == l->header.nowhere)
            continue; /* counted as lost already; its caller has the time */
        uint32_t id = fm_live_chunks_node(&l->chunks, frame.node);
        uint32_t node = id == FM_NONE ? FM_NONE : fm_renumber_get(&l->nodes, id);
        if (node == FM_NONE) {
            l->broken_records++;
            return;
        }
        uint64_t enter = frame.enter_ticks > last_enter ? frame.enter_ticks : last_enter;
        node = credit_regions(l, open, node, enter, end_ticks);
        if (l->p->nodes.data[node].parent == FM_NONE) {
            depth += i == 0; /* the thread itself lies below its open calls, not counted */
            continue;
        }
        /* Not below its caller: a call without a context of its own. Older than its caller: the
         * process died while it wrote this frame. Either way the caller has the time. */
        if (id <= last_id || frame.enter_ticks < last_enter)
            continue;
        last_id = id;
        last_enter = frame.enter_ticks;
        if (end_ticks > last_enter)
            fm_profile_add(l->p, FM_METRIC_TOTAL, node,
                           fm_live_ticks_ns(l, end_ticks - last_enter));
    }
}

static void credit_open_calls(struct fm_live_loader *l)
{
    struct fm_map stacks = { 0 };
    struct open_regions open = { 0 };
    find_open_regions(l, &open);
    for (size_t i = 0; i < l->chunks.all.len; i++)
        if (l->chunks.all.data[i].kind == FM_LIVE_STACK)
            fm_map_at(&stacks, l->chunks.all.data[i].first_id, (uint32_t)i, NULL);
    for (size_t i = 0; i < l->threads.len; i++) {
        const struct fm_live_thread *live = &l->threads.data[i];
        const uint32_t *stack = fm_map_find(&stacks, live->stack);
        if (!live->depth)
            continue;
        if (stack)
            credit_frames(l, &open, &l->chunks.all.data[*stack], live->depth,
                          end_of_thread(l, live));
        else
            l->broken_records++;
    }
    fm_map_release(&stacks);
    fm_map_release(&open.of_node);
    fm_vec_release(&open.since);
}

/* A thread's root has the time of the calls below it. */
static void total_roots(struct fm_live_loader *l, size_t first_node)
{
    for (size_t i = first_node; i < l->p->nodes.len; i++) {
        uint32_t parent = l->p->nodes.data[i].parent;
        if (parent != FM_NONE && l->p->nodes.data[parent].parent == FM_NONE)
            fm_profile_add(l->p, FM_METRIC_TOTAL, parent,
                           fm_profile_value(l->p, FM_METRIC_TOTAL, (uint32_t)i));
    }
}

/* ---- the whole ---- */

static void note_losses(struct fm_live_loader *l)
{
    static const char *const meanings[] = {
#define X(name, meaning) meaning,
        FM_LIVE_LOST_LIST(X)
#undef X
    };
    for (size_t i = 0; i < FM_COUNT(l->header.lost); i++)
        if (l->header.lost[i])
            fm_profile_note(l->p, l->process_id, "lost", l->header.lost[i],
                            i < FM_COUNT(meanings) ? meanings[i]
                                                   : "losses of a kind that only a newer Fathom "
                                                     "can name");
    if (l->chunks.broken)
        fm_profile_note(l->p, l->process_id, "damaged", l->chunks.broken,
                        "pieces of the live store that are broken or cut off");
    if (l->broken_nodes)
        fm_profile_note(l->p, l->process_id, "damaged", l->broken_nodes,
                        "contexts in the live store that make no sense and were left out");
    if (l->unknown_functions)
        fm_profile_note(l->p, l->process_id, "damaged", l->unknown_functions,
                        "contexts whose function the live store does not name");
    if (l->broken_records)
        fm_profile_note(l->p, l->process_id, "damaged", l->broken_records,
                        "records in the live store that make no sense and were left out");
}

static uint64_t cost_ps(const struct fm_live_loader *l, uint64_t ticks_256)
{
    unsigned __int128 ps = (unsigned __int128)ticks_256 * 1000 / 256;
    if (ps > UINT64_MAX)
        ps = UINT64_MAX;
    return (uint64_t)clamp(ps * l->rate_ns / l->rate_ticks);
}

static void fill_process(struct fm_live_loader *l, const struct fm_live_ending *ending)
{
    const struct fm_live_header *h = &l->header;
    struct fm_process *process = &l->process;
    process->pid = h->pid;
    process->parent_pid = h->parent_pid;
    process->start_real_ns = h->start_real_ns;
    process->start_ns = h->start_ns;
    process->exit_status = ending ? ending->exit_status : -1;
    process->profiled = true;
    process->forked = h->flags & FM_LIVE_FORKED;
    process->c_calls = h->flags & FM_LIVE_C_CALLS;
    process->lines = h->flags & FM_LIVE_LINES_ON;
    process->calls = h->flags & FM_LIVE_CALLS;
    process->cost_call_ps = cost_ps(l, h->cost_python_call);
    process->cost_c_call_ps = cost_ps(l, h->cost_c_call);
    process->cost_resume_ps = cost_ps(l, h->cost_resume);
    process->cost_line_ps = cost_ps(l, h->cost_line);
    process->slow_permille = h->slow_permille;
    /* What a call costs is not measured in a program that runs already: then nothing is said of costs. */
    bool measured = h->cost_python_call || !(h->flags & FM_LIVE_TRACED);
    process->own_ns = measured ? (uint64_t)fm_live_ticks_ns(l, h->own_ticks) : 0;
    if (!process->version && h->python_hex) {
        char version[32];
        snprintf(version, sizeof version, "%u.%u.%u", h->python_hex >> 24,
                 h->python_hex >> 16 & 0xff, h->python_hex >> 8 & 0xff);
        process->version = fm_profile_string(l->p, version);
    }
}

static void read_lines(struct fm_live_loader *l)
{
    struct fm_live_lines lines = { .p = l->p,
                                   .functions = l->functions.data,
                                   .function_count = l->functions.len,
                                   .process = l->process_id,
                                   .rate_ns = l->rate_ns,
                                   .rate_ticks = l->rate_ticks };
    for (size_t i = 0; i < l->chunks.all.len; i++)
        if (l->chunks.all.data[i].kind == FM_LIVE_LINES)
            fm_live_lines_read(&lines, &l->chunks.all.data[i]);
    l->broken_records += lines.broken;
    fm_lines_sort(&l->p->lines);
}

static void read_chunks(struct fm_live_loader *l, enum fm_live_kind kind,
                        void (*read)(struct fm_live_loader *l, const struct fm_live_piece *chunk))
{
    for (size_t i = 0; i < l->chunks.all.len; i++)
        if (l->chunks.all.data[i].kind == kind)
            read(l, &l->chunks.all.data[i]);
}

static void read_store(struct fm_live_loader *l, const struct fm_live_ending *ending)
{
    size_t first_node = l->p->nodes.len;
    fm_live_chunks_sort(&l->chunks);
    for (size_t i = 0; i < l->p->sources.len; i++) {
        const struct fm_source *source = &l->p->sources.data[i];
        fm_map_at(&l->sources, fm_map_pair(source->file, source->text), (uint32_t)i, NULL);
    }
    l->process_id = fm_profile_process(l->p, &l->process);
    read_chunks(l, FM_LIVE_DEFS, fm_live_read_definitions);
    read_chunks(l, FM_LIVE_THREADS, read_threads);
    set_rate(l, ending);
    set_end(l, ending);
    fill_process(l, ending);
    read_chunks(l, FM_LIVE_NODES, read_nodes);
    read_chunks(l, FM_LIVE_RESUMED, read_resumed);
    if (!(l->header.flags & FM_LIVE_TRACED))
        credit_open_calls(l);
    if (ending && ending->trace)
        fm_live_read_trace(l, ending->trace);
    total_roots(l, first_node);
    read_lines(l);
    fm_live_read_regions(l);
    note_losses(l);
    l->p->processes.data[l->process_id] = l->process;
}

int fm_live_load(struct fm_profile *p, const void *bytes, size_t len, const void *more,
                 size_t more_len, const struct fm_live_ending *ending, struct fm_error *err)
{
    struct fm_live_loader l = { .p = p };
    if (len < sizeof l.header)
        return fm_error_set(err, FM_NOT_RECORDING, "too short to be a live store");
    memcpy(&l.header, bytes, sizeof l.header);
    if (memcmp(l.header.magic, FM_LIVE_MAGIC, sizeof l.header.magic) != 0)
        return fm_error_set(err, FM_NOT_RECORDING, "not a live store");
    if (l.header.version != FM_LIVE_VERSION)
        return fm_error_set(err, FM_NEWER, "live store of version %u, this Fathom reads %u",
                            l.header.version, FM_LIVE_VERSION);
    fm_live_chunks_find(&l.chunks, bytes, len, FM_LIVE_PAGE);
    if (more)
        fm_live_chunks_find(&l.chunks, more, more_len, 0);
    read_store(&l, ending);
    fm_live_chunks_release(&l.chunks);
    fm_vec_release(&l.threads);
    fm_vec_release(&l.functions);
    fm_vec_release(&l.names);
    fm_map_release(&l.twins);
    fm_map_release(&l.sources);
    fm_map_release(&l.root_threads);
    fm_renumber_release(&l.nodes);
    return FM_OK;
}

/*
 * What is open on a thread, and the tree of calls that follows from it; see pack.h, packing.h.
 *
 * The tree is that of --calls: a node is a function below its caller, an entry is counted when it
 * begins (a generator that goes on is a resume), its time is added when it ends. So are regions, below the
 * call or region that they are in. Collections are spans and no nodes: calls in them are below the call around them.
 */
#include "record/model/trace/lanes/timeline.h"
#include "record/model/trace/pack/packing.h"

#define NODES_MAX    (4u << 20)
#define SUBJECTS_MAX (1u << 20) /* about which facts are told */
#define NAMES_MAX    (1u << 24) /* of regions that are known by name */

/* ---- the tree ---- */

uint32_t fm_pack_root(struct fm_trace_pack *pack, uint32_t thread)
{
    struct fm_trace_node root = { .parent = FM_NONE, .thread = thread, .last_child = FM_NONE };
    root.next = (uint32_t)pack->nodes.len;
    fm_vec_push(&pack->nodes, root);
    return root.next;
}

static uint32_t find_child(struct fm_trace_pack *pack, uint32_t parent, uint32_t func)
{
    bool is_new;
    uint32_t fresh = (uint32_t)pack->nodes.len;
    uint64_t key = fm_map_pair(parent, func);
    const uint32_t *known = fresh >= NODES_MAX ? fm_map_find(&pack->children, key)
                                               : fm_map_at(&pack->children, key, fresh, &is_new);
    if (!known)
        return FM_NONE;
    uint32_t node = *known, last = pack->nodes.data[parent].last_child;
    if (node == fresh) {
        struct fm_trace_node child = { .parent = parent,
                                       .func = func,
                                       .thread = pack->nodes.data[parent].thread,
                                       .last_child = FM_NONE,
                                       .next = fresh,
                                       .min_ticks = 0 };
        fm_vec_push(&pack->nodes, child);
    }
    if (last != FM_NONE)
        pack->nodes.data[last].next = node;
    pack->nodes.data[parent].last_child = node;
    return node;
}

/* Programs call the same again and again: the child that was called last, or what followed it then. */
static inline uint32_t known_child(struct fm_trace_pack *pack, uint32_t parent, uint32_t func)
{
    struct fm_trace_node *nodes = pack->nodes.data;
    uint32_t guess = nodes[parent].last_child;
    if (guess != FM_NONE) {
        if (nodes[guess].func == func)
            return guess;
        guess = nodes[guess].next;
        if (nodes[guess].func == func && nodes[guess].parent == parent)
            return nodes[parent].last_child = guess;
    }
    return FM_NONE;
}

static uint32_t child_of(struct fm_trace_pack *pack, uint32_t parent, uint32_t func)
{
    uint32_t known = known_child(pack, parent, func);
    return known != FM_NONE ? known : find_child(pack, parent, func);
}

/* The context of what is open below another; FM_NONE: it has none of its own. */
static uint32_t context_of(struct fm_trace_pack *pack, uint32_t code, uint32_t parent)
{
    uint32_t id = fm_event_id(code);
    if (fm_event_is_call(code))
        return child_of(pack, parent, id);
    return id && !(id & 1) && id / 2 < NAMES_MAX
               ? child_of(pack, parent, FM_TRACE_NODE_REGION | id / 2)
               : FM_NONE;
}

void fm_pack_new_tree(struct fm_trace_pack *pack, struct fm_stream *s, uint64_t ticks)
{
    uint32_t parent = fm_pack_root(pack, s->index);
    pack->nodes.data[pack->threads.data[s->index].root].thread = FM_NONE;
    pack->threads.data[s->index].root = parent;
    for (size_t i = 0; i < s->frames.len; i++) {
        struct fm_pack_frame *frame = &s->frames.data[i];
        uint32_t node = context_of(pack, frame->code, parent);
        frame->entered = ticks;
        frame->flags &= ~(uint32_t)FM_FRAME_NO_NODE;
        frame->flags |= FM_FRAME_CUT | (node == FM_NONE ? FM_FRAME_NO_NODE : 0);
        frame->node = parent = node == FM_NONE ? parent : node;
    }
}

/* `whole`: how it ended is known, so how long an entry took is, too. 0 is none for the shortest. */
static inline void add_time(struct fm_trace_pack *pack, const struct fm_pack_frame *frame,
                            uint64_t ticks, bool whole)
{
    if (__builtin_expect(frame->flags & (FM_FRAME_NO_NODE | FM_FRAME_CUT), 0)) {
        if (frame->flags & FM_FRAME_NO_NODE)
            return;
        whole = false;
    }
    struct fm_trace_node *node = &pack->nodes.data[frame->node];
    uint64_t entry = ticks - frame->entered;
    node->total_ticks += entry;
    if (__builtin_expect(!whole, 0))
        return;
    if (__builtin_expect(fm_event_how(frame->code) == FM_EVENT_OPEN, 0))
        entry = ticks - frame->begin;
    if (entry > node->max_ticks)
        node->max_ticks = entry;
    entry += !entry;
    if (entry - 1 < node->min_ticks - 1)
        node->min_ticks = entry;
}

/* ---- begins ---- */

/* A call that was open before a loss, and is told again: its time in the tree goes on from there. */
static uint64_t entered_at(const struct fm_stream *s, const struct fm_pack_frame *frame,
                           uint64_t ticks)
{
    size_t depth = s->frames.len;
    if (fm_event_how(frame->code) != FM_EVENT_OPEN)
        return ticks;
    if (!s->reopening)
        return ticks;
    if (depth < s->lost_frames.len && s->lost_frames.data[depth].begin == frame->begin &&
        fm_event_id(s->lost_frames.data[depth].code) == fm_event_id(frame->code))
        return s->lost_from;
    return frame->begin > s->lost_from ? frame->begin : s->lost_from;
}

static void count_entry(struct fm_trace_pack *pack, struct fm_stream *s,
                        struct fm_pack_frame *frame, uint32_t parent)
{
    enum fm_event_begin how = fm_event_how(frame->code);
    frame->node = child_of(pack, parent, fm_event_id(frame->code));
    if (frame->node == FM_NONE) {
        frame->node = parent;
        frame->flags |= FM_FRAME_NO_NODE;
        pack->lost_nodes += how == FM_EVENT_CALL;
        return;
    }
    struct fm_trace_node *node = &pack->nodes.data[frame->node];
    node->calls += how == FM_EVENT_CALL;
    if (how == FM_EVENT_RESUME) {
        node->resumes++;
        node->suspended_ticks += s->suspended;
    }
}

/* A region; one of a generator that went on is no new entry. */
static void enter_region(struct fm_trace_pack *pack, const struct fm_stream *s,
                         struct fm_pack_frame *frame, uint32_t parent, uint32_t name)
{
    uint32_t child = child_of(pack, parent, FM_TRACE_NODE_REGION | name);
    if (child == FM_NONE)
        return;
    struct fm_trace_node *node = &pack->nodes.data[child];
    node->calls += !s->suspended;
    node->resumes += s->suspended != 0;
    node->suspended_ticks += s->suspended;
    frame->node = child;
    frame->flags &= ~(uint32_t)FM_FRAME_NO_NODE;
}

/* A region or a collection, which has no context of its own. */
static void enter_other(struct fm_trace_pack *pack, const struct fm_stream *s,
                        struct fm_pack_frame *frame, uint32_t parent)
{
    uint32_t id = fm_event_id(frame->code), name = id & 1 ? 0 : id / 2;
    frame->node = parent;
    frame->flags |= FM_FRAME_NO_NODE;
    if (name >= NAMES_MAX)
        return;
    while (pack->region_names.len <= name)
        fm_vec_push(&pack->region_names, 0);
    pack->region_names.data[name] = 1;
    if (name)
        enter_region(pack, s, frame, parent, name);
}

void fm_pack_begin(struct fm_trace_pack *pack, struct fm_stream *s, uint32_t code, uint64_t ticks,
                   uint64_t extra)
{
    if (s->frames.len >= FM_TRACE_DEPTH_MAX) {
        s->beyond++;
        return;
    }
    enum fm_event_begin how = fm_event_how(code);
    fm_vec_reserve(&s->frames, s->frames.len + 1);
    struct fm_pack_frame *frame = &s->frames.data[s->frames.len];
    const struct fm_pack_frame *top = s->frames.len ? frame - 1 : NULL;
    uint32_t parent = top ? top->node : pack->threads.data[s->index].root;
    frame->begin = ticks & pack->grid;
    frame->code = code;
    frame->flags = 0;
    if (how == FM_EVENT_OPEN) {
        frame->begin = (extra < ticks ? ticks - extra : 0) & pack->grid;
        if (top && frame->begin < top->begin)
            frame->begin = top->begin;
        extra = (ticks & pack->grid) - frame->begin;
        frame->flags = s->reopening ? FM_FRAME_LOST : 0;
    }
    frame->entered = entered_at(s, frame, ticks);
    if (how == FM_EVENT_OTHER)
        enter_other(pack, s, frame, parent);
    else
        count_entry(pack, s, frame, parent);
    s->frames.len++;
    struct fm_trace_thread *thread = &pack->threads.data[s->index];
    if (s->frames.len > s->stretch.depth) {
        s->stretch.depth = (uint32_t)s->frames.len;
        if (s->stretch.depth > thread->depth)
            thread->depth = s->stretch.depth;
    }
    thread->events++;
    if ((how == FM_EVENT_RESUME || how == FM_EVENT_OPEN) && !pack->replaying)
        fm_buffer_add_varint(&s->stretch.extras, extra);
    s->suspended = 0;
    fm_pack_event(pack, s, code, ticks);
}

/* Fields are written where they stay: a frame that is made elsewhere and copied waits for its own stores. */
void fm_pack_call(struct fm_trace_pack *pack, struct fm_stream *s, uint32_t func, uint64_t ticks)
{
    uint32_t code = fm_event_begin(func, FM_EVENT_CALL), node = FM_NONE;
    size_t depth = s->frames.len;
    if (depth && depth < s->stretch.depth && depth < s->frames.cap)
        node = known_child(pack, s->frames.data[depth - 1].node, func);
    if (node == FM_NONE) {
        fm_pack_begin(pack, s, code, ticks, 0);
        return;
    }
    struct fm_pack_frame *frame = &s->frames.data[depth];
    frame->begin = ticks & pack->grid;
    frame->entered = ticks;
    frame->code = code;
    frame->node = node;
    frame->flags = 0;
    s->frames.len = depth + 1;
    pack->nodes.data[node].calls++;
    pack->threads.data[s->index].events++;
    s->suspended = 0;
    fm_pack_event(pack, s, code, ticks);
}

/* ---- ends ---- */

/* The first time in a stretch. False: there are too many. */
static __attribute__((noinline)) bool meet_subject(struct fm_stream *s, uint32_t subject)
{
    static const struct fm_pack_subject none = { .stretch = UINT64_MAX };
    if (subject >= SUBJECTS_MAX) {
        s->some_untold = true;
        return false;
    }
    while (s->subjects.len <= subject)
        fm_vec_push(&s->subjects, none);
    s->subjects.data[subject] = (struct fm_pack_subject){ .stretch = s->stretch_number };
    fm_vec_push(&s->told, subject);
    return true;
}

static inline void tell_subject(struct fm_stream *s, uint32_t subject, uint64_t ticks)
{
    if (__builtin_expect((subject >= s->subjects.len ||
                          s->subjects.data[subject].stretch != s->stretch_number) &&
                             !meet_subject(s, subject),
                         0))
        return;
    struct fm_pack_subject *known = &s->subjects.data[subject];
    known->spans++;
    if (ticks > known->longest)
        known->longest = ticks;
}

static void add_to_levels(struct fm_stream *s, const struct fm_pack_frame *frame, uint64_t end,
                          uint8_t flags)
{
    uint64_t length = end - frame->begin;
    struct fm_level_cell span = { .begin = frame->begin,
                                  .end = end,
                                  .longest = length,
                                  .covered = length,
                                  .spans = 1,
                                  .subject = fm_event_subject(frame->code),
                                  .flags = flags };
    if (s->frames.len <= FM_LEVEL_DEPTH) {
        span.depth = (uint16_t)(s->frames.len - 1);
        fm_levels_add(&s->levels, &span);
    }
}

static inline void end_frame(struct fm_trace_pack *pack, struct fm_stream *s, uint32_t code,
                             uint64_t ticks)
{
    size_t depth = s->frames.len - 1;
    const struct fm_pack_frame *frame = &s->frames.data[depth];
    uint64_t end = ticks & pack->grid, length = end - frame->begin;
    uint32_t subject = fm_event_subject(frame->code);
    uint8_t flags = (uint8_t)((frame->flags & FM_FRAME_LOST ? FM_CELL_LOST : 0) |
                              (code == FM_EVENT_UNWIND ? FM_CELL_ERROR : 0));
    add_time(pack, frame, ticks, code != FM_EVENT_CLOSE);
    if (!fm_levels_join(&s->levels, depth, frame->begin, end, subject, flags))
        add_to_levels(s, frame, end, flags);
    s->frames.len--;
    pack->threads.data[s->index].events++;
    if (!pack->replaying)
        tell_subject(s, subject, length);
    fm_pack_event(pack, s, code, ticks);
}

void fm_pack_end_frame(struct fm_trace_pack *pack, struct fm_stream *s, uint32_t code,
                       uint64_t ticks)
{
    end_frame(pack, s, code, ticks);
}

void fm_pack_orphan(struct fm_stream *s, const struct fm_pack_frame *frame)
{
    uint32_t id = fm_event_id(frame->code);
    struct fm_pack_orphan region = { frame->begin, id / 2 };
    if (!fm_event_is_call(frame->code) && !(id & 1) && !(frame->flags & FM_FRAME_ENDED) &&
        s->orphans.len < 1024)
        fm_vec_push(&s->orphans, region);
}

static __attribute__((noinline)) bool
end_call_with_others(struct fm_trace_pack *pack, struct fm_stream *s, uint32_t code, uint64_t ticks)
{
    if (s->beyond) {
        s->beyond--;
        return true;
    }
    size_t call = s->frames.len;
    while (call && !fm_event_is_call(s->frames.data[call - 1].code))
        call--;
    if (!call)
        return false;
    while (s->frames.len > call) {
        fm_pack_orphan(s, &s->frames.data[s->frames.len - 1]);
        fm_pack_end_frame(pack, s, FM_EVENT_CLOSE, ticks);
    }
    fm_pack_end_frame(pack, s, code, ticks);
    while (s->frames.len && s->frames.data[s->frames.len - 1].flags & FM_FRAME_ENDED)
        fm_pack_end_frame(pack, s, FM_EVENT_REGION_END, ticks);
    return true;
}

bool fm_pack_end_call(struct fm_trace_pack *pack, struct fm_stream *s, uint32_t code,
                      uint64_t ticks)
{
    const struct fm_pack_frame *frames = s->frames.data;
    size_t depth = s->frames.len;
    if (__builtin_expect(depth < 2 || s->beyond || !fm_event_is_call(frames[depth - 1].code) ||
                             frames[depth - 2].flags & FM_FRAME_ENDED,
                         0))
        return end_call_with_others(pack, s, code, ticks);
    end_frame(pack, s, code, ticks);
    return true;
}

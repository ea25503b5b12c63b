/*
 * Tracks of a Perfetto trace, and what lies beside calls; see perfetto.h.
 *
 * A thread has a track of the kind that Perfetto knows for threads. It knows them by their numbers alone, so a number
 * that was used again gets a plain track of its own. What does not nest with calls has further tracks below: exceptions
 * and instants are instants of the thread itself; regions that overlap, losses and waits get a track for each that is
 * under way at once, which the page shows as one; a task has one track of its own.
 */
#include "base/memory.h"
#include "record/formats/timeline/perfetto.h"
#include "record/formats/timeline/protobuf.h"

#define FIRST_SEQUENCE 1
#define BESIDE         (1ull << 62)
#define CHAIN_MOST     1000 /* tracks of one name that are looked through for a free one */
#define EXPLICIT_ORDER 3
#define MERGE_NONE     2

uint64_t fm_perfetto_process_track(uint32_t process)
{
    return (process + 1ull) << 32;
}

uint64_t fm_perfetto_lane_track(const struct fm_perfetto *w, size_t lane)
{
    return fm_perfetto_process_track(w->from->lane(w->from->context, lane)->process) + lane + 1;
}

/* ---- tracks ---- */

/* The descriptor that was made in `event`. */
static void put_track(struct fm_perfetto *w)
{
    fm_proto_number(&w->packet, PACKET_SEQUENCE, FIRST_SEQUENCE);
    fm_proto_message(&w->packet, PACKET_TRACK, &w->event);
    fm_perfetto_packet(w);
}

static void begin_track(struct fm_perfetto *w, uint64_t uuid, uint64_t parent)
{
    fm_buffer_clear(&w->event);
    fm_proto_number(&w->event, TRACK_UUID, uuid);
    if (parent)
        fm_proto_number(&w->event, TRACK_PARENT, parent);
}

static void add_text(struct fm_perfetto *w, struct fm_buffer *to, uint32_t field, uint32_t string)
{
    fm_proto_bytes(to, field, fm_profile_text(w->p, string), fm_strings_len(w->p->strings, string));
}

static bool is_taken(struct fm_perfetto *w, uint32_t pid, uint32_t tid)
{
    bool is_new;
    fm_map_at(&w->people, fm_map_pair(pid, tid), 0, &is_new);
    return !is_new;
}

static void describe_process(struct fm_perfetto *w, uint32_t process)
{
    bool is_new;
    const struct fm_process *q = &w->p->processes.data[process];
    fm_map_at(&w->process_tracks, process, 0, &is_new);
    if (!is_new)
        return;
    begin_track(w, fm_perfetto_process_track(process), 0);
    if (is_taken(w, q->pid, 0)) {
        fm_buffer_clear(&w->part);
        fm_buffer_addf(&w->part, "%s %u", fm_profile_text(w->p, q->command), q->pid);
        fm_proto_message(&w->event, TRACK_NAME, &w->part);
    } else {
        fm_buffer_clear(&w->part);
        fm_proto_number(&w->part, 1, q->pid);
        add_text(w, &w->part, 6, q->command);
        fm_proto_message(&w->event, TRACK_PROCESS, &w->part);
    }
    fm_proto_number(&w->event, TRACK_CHILD_ORDER, EXPLICIT_ORDER);
    fm_proto_number(&w->event, TRACK_RANK, process);
    put_track(w);
}

void fm_perfetto_describe_lane(struct fm_perfetto *w, size_t lane)
{
    const struct fm_lane *l = w->from->lane(w->from->context, lane);
    const struct fm_process *process = &w->p->processes.data[l->process];
    const struct fm_thread *thread = &w->p->threads.data[l->thread];
    fm_autobuffer name = FM_BUFFER_INIT;
    describe_process(w, l->process);
    if (fm_strings_len(w->p->strings, thread->name))
        fm_buffer_add(&name, fm_profile_text(w->p, thread->name),
                      fm_strings_len(w->p->strings, thread->name));
    else
        fm_buffer_addf(&name, "Thread %u", thread->tid);
    if (l->kind == FM_LANE_SAMPLED)
        fm_buffer_add_text(&name, " (sampled)");
    if (!thread->tid || is_taken(w, process->pid, thread->tid)) {
        begin_track(w, fm_perfetto_lane_track(w, lane), fm_perfetto_process_track(l->process));
        fm_proto_message(&w->event, TRACK_NAME, &name);
        fm_proto_number(&w->event, TRACK_MERGING, MERGE_NONE);
    } else {
        begin_track(w, fm_perfetto_lane_track(w, lane), 0);
        fm_buffer_clear(&w->part);
        fm_proto_number(&w->part, 1, process->pid);
        fm_proto_number(&w->part, 2, thread->tid);
        fm_proto_message(&w->part, 5, &name);
        fm_proto_message(&w->event, TRACK_THREAD, &w->part);
    }
    fm_proto_number(&w->event, TRACK_RANK, lane);
    put_track(w);
}

/* A new track beside calls. */
static uint64_t new_track(struct fm_perfetto *w, uint64_t parent, const char *name, size_t len,
                          bool alone)
{
    uint64_t uuid = BESIDE | ++w->uuids;
    begin_track(w, uuid, parent);
    fm_proto_bytes(&w->event, TRACK_NAME, name, len);
    if (alone)
        fm_proto_number(&w->event, TRACK_MERGING, MERGE_NONE);
    put_track(w);
    return uuid;
}

/* A track of that name in which nothing is under way at `begin_ns`; it is then, until `end_ns`. */
static uint64_t free_track(struct fm_perfetto *w, uint64_t key, uint64_t parent, const char *name,
                           size_t len, uint64_t begin_ns, uint64_t end_ns)
{
    bool is_new;
    uint32_t fresh = (uint32_t)w->tracks.len;
    uint32_t at = *fm_map_at(&w->track_of, key, fresh, &is_new), last = at;
    struct fm_perfetto_track made = { .next = FM_NONE, .busy_until_ns = end_ns };
    for (unsigned n = 0; !is_new && at != FM_NONE && n < CHAIN_MOST; n++) {
        struct fm_perfetto_track *track = &w->tracks.data[at];
        if (track->busy_until_ns <= begin_ns) {
            track->busy_until_ns = end_ns;
            return track->uuid;
        }
        last = at;
        at = track->next;
    }
    made.uuid = new_track(w, parent, name, len, false);
    if (!is_new) {
        made.next = w->tracks.data[last].next;
        w->tracks.data[last].next = fresh;
    }
    fm_vec_push(&w->tracks, made);
    return made.uuid;
}

/* ---- events beside calls ---- */

static void begin_event(struct fm_perfetto *w, enum fm_perfetto_type type, uint64_t track,
                        const char *category, const char *name, size_t len)
{
    fm_buffer_clear(&w->event);
    fm_proto_number(&w->event, EVENT_TYPE, type);
    fm_proto_number(&w->event, EVENT_TRACK, track);
    if (category)
        fm_proto_text(&w->event, EVENT_CATEGORIES, category);
    if (name)
        fm_proto_bytes(&w->event, EVENT_NAME, name, len);
}

static void put_event(struct fm_perfetto *w, uint64_t at_ns)
{
    fm_proto_number(&w->packet, PACKET_TIMESTAMP, w->from->start_ns + at_ns);
    fm_proto_number(&w->packet, PACKET_SEQUENCE, FIRST_SEQUENCE);
    fm_proto_message(&w->packet, PACKET_EVENT, &w->event);
    fm_perfetto_packet(w);
}

/* A number beside an event that is being made. */
static void annotate(struct fm_perfetto *w, const char *name, uint64_t value)
{
    fm_buffer_clear(&w->part);
    fm_proto_text(&w->part, 10, name);
    fm_proto_number(&w->part, 3, value);
    fm_proto_message(&w->event, EVENT_ANNOTATIONS, &w->part);
}

void fm_perfetto_say(struct fm_perfetto *w, const char *word)
{
    if (!word)
        return;
    fm_buffer_clear(&w->part);
    fm_proto_text(&w->part, 10, word);
    fm_proto_number(&w->part, 2, 1);
    fm_proto_message(&w->event, EVENT_ANNOTATIONS, &w->part);
}

/* A text with a name, beside it. */
static void annotate_text(struct fm_perfetto *w, const char *name, size_t name_len,
                          const char *text, size_t text_len)
{
    fm_buffer_clear(&w->part);
    fm_proto_bytes(&w->part, 10, name, name_len);
    fm_proto_bytes(&w->part, 6, text, text_len);
    fm_proto_message(&w->event, EVENT_ANNOTATIONS, &w->part);
}

void fm_perfetto_values(struct fm_perfetto *w, const struct fm_export_values *values)
{
    const struct fm_export_value *value;
    for (size_t at = 0; (value = fm_export_value_next(values, &at));)
        annotate_text(w, fm_profile_text(w->p, value->name),
                      fm_strings_len(w->p->strings, value->name), values->texts + value->text_at,
                      value->text_len);
}

static void put_end(struct fm_perfetto *w, uint64_t track, uint64_t at_ns)
{
    begin_event(w, SLICE_END, track, NULL, NULL, 0);
    put_event(w, at_ns);
}

/* A stretch on a track of that name below the lane's process or thread. */
static void put_stretch(struct fm_perfetto *w, const struct fm_mark *mark, uint64_t parent,
                        const char *category, const char *name, size_t len,
                        const struct fm_export_values *values)
{
    uint64_t key = fm_mix64(parent ^ fm_mix64((uint64_t)mark->kind << 32 | mark->name));
    uint64_t track = free_track(w, key, parent, name, len, mark->begin_ns, mark->end_ns);
    begin_event(w, SLICE_BEGIN, track, category, name, len);
    if (mark->kind == FM_MARK_LOST)
        annotate(w, "events", mark->value);
    fm_perfetto_values(w, values);
    put_event(w, mark->begin_ns);
    put_end(w, track, mark->end_ns);
}

/* Tasks have a track each, which the page does not join with others of their name. */
static void put_task(struct fm_perfetto *w, const struct fm_mark *mark, uint64_t process)
{
    bool is_new;
    uint64_t key = fm_mix64(process ^ fm_mix64(mark->value << 8 | 1));
    const char *name = fm_profile_text(w->p, mark->name);
    size_t len = fm_strings_len(w->p->strings, mark->name);
    uint32_t at = *fm_map_at(&w->track_of, key, (uint32_t)w->tracks.len, &is_new);
    if (is_new) {
        struct fm_perfetto_track made = { .next = FM_NONE };
        made.uuid = new_track(w, process, name, len, true);
        fm_vec_push(&w->tracks, made);
    }
    uint64_t track = w->tracks.data[at].uuid;
    begin_event(w, SLICE_BEGIN, track, "task", name, len);
    put_event(w, mark->begin_ns);
    put_end(w, track, mark->end_ns);
}

static void put_counter(struct fm_perfetto *w, const struct fm_mark *mark, uint64_t process)
{
    bool is_new;
    uint64_t key = fm_mix64(process ^ fm_mix64((uint64_t)mark->name << 8 | 2));
    uint32_t at = *fm_map_at(&w->track_of, key, (uint32_t)w->tracks.len, &is_new);
    if (is_new) {
        struct fm_perfetto_track made = { .uuid = BESIDE | ++w->uuids, .next = FM_NONE };
        fm_vec_push(&w->tracks, made);
        begin_track(w, made.uuid, process);
        add_text(w, &w->event, TRACK_NAME, mark->name);
        fm_proto_bytes(&w->event, TRACK_COUNTER, "", 0);
        put_track(w);
    }
    begin_event(w, COUNTER, w->tracks.data[at].uuid, NULL, NULL, 0);
    fm_proto_fixed64(&w->event, EVENT_DOUBLE, mark->value);
    put_event(w, mark->begin_ns);
}

/* An arrow leads from a fork to the first lane of the child. */
static uint64_t flow_of(uint32_t child_pid)
{
    return 1ull << 40 | child_pid;
}

static void put_instant(struct fm_perfetto *w, const struct fm_mark *mark, const char *category,
                        const char *name, size_t len, const struct fm_export_values *values)
{
    begin_event(w, INSTANT, fm_perfetto_lane_track(w, w->lane), category, name, len);
    if (mark->kind == FM_MARK_COLLECTION) { /* a span of the lane itself; this is what it did */
        annotate(w, "generation", mark->value);
        annotate(w, "collected", mark->other);
    }
    if (mark->kind == FM_MARK_FORK) {
        annotate(w, "child", mark->value);
        fm_proto_fixed64(&w->event, EVENT_FLOWS, flow_of((uint32_t)mark->value));
    }
    if (mark->text)
        annotate_text(w, "value", 5, mark->text, mark->text_len);
    fm_perfetto_values(w, values);
    put_event(w, mark->begin_ns);
}

void fm_perfetto_mark(struct fm_perfetto *w, const struct fm_mark *mark,
                      const struct fm_export_values *values)
{
    uint64_t lane = fm_perfetto_lane_track(w, w->lane);
    uint64_t process = fm_perfetto_process_track(w->from->lane(w->from->context, w->lane)->process);
    const char *name = fm_profile_text(w->p, mark->name);
    size_t len = fm_strings_len(w->p->strings, mark->name);
    switch (mark->kind) {
    case FM_MARK_EXCEPTION:
        put_instant(w, mark, "exception", name, len, values);
        break;
    case FM_MARK_INSTANT:
        put_instant(w, mark, "instant", name, len, values);
        break;
    case FM_MARK_VARIABLE:
        put_instant(w, mark, "variable", name, len, values);
        break;
    case FM_MARK_FORK:
        put_instant(w, mark, "process", "fork", 4, values);
        break;
    case FM_MARK_CLOCK:
        put_instant(w, mark, "clock", "the clock jumped", 16, values);
        break;
    case FM_MARK_COLLECTION:
        put_instant(w, mark, "gc", "generation", 10, values);
        break;
    case FM_MARK_REGION:
        put_stretch(w, mark, process, "region", name, len, values);
        break;
    case FM_MARK_LOST:
        put_stretch(w, mark, lane, "lost", "events lost", 11, values);
        break;
    case FM_MARK_WAITED:
        put_stretch(w, mark, lane, "lost", "waited for room", 15, values);
        break;
    case FM_MARK_TASK:
        put_task(w, mark, process);
        break;
    case FM_MARK_COUNTER:
        put_counter(w, mark, process);
        break;
    default: /* of what begins here, not of the time line */
        break;
    }
}

void fm_perfetto_forked(struct fm_perfetto *w, size_t lane)
{
    const struct fm_lane *l = w->from->lane(w->from->context, lane);
    const struct fm_process *process = &w->p->processes.data[l->process];
    bool first = lane == 0 || w->from->lane(w->from->context, lane - 1)->process != l->process;
    if (!process->forked || !first)
        return;
    begin_event(w, INSTANT, fm_perfetto_lane_track(w, lane), "process", "forked", 6);
    fm_proto_fixed64(&w->event, EVENT_LAST_FLOWS, flow_of(process->pid));
    put_event(w, l->begin_ns);
}

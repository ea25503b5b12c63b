/* Writes Perfetto's trace; see perfetto.h. */
#include "record/formats/timeline/perfetto.h"

#define ZLIB_CONST
#include <zlib.h>

#include "base/memory.h"
#include "record/formats/timeline/protobuf.h"

#define FIRST_SEQUENCE 1 /* of everything beside calls; lanes follow */
#define CLEARED        1 /* sequence_flags: nothing was said before */
#define NEEDS_BEFORE   2 /* … what was said before is needed */
#define DELTA_CLOCK    64
#define BOOTTIME       6
#define MONOTONIC      3
#define REALTIME       1
#define PIECE          ((size_t)256 << 10)

/* Categories by number in every sequence. */
static const char *const categories[] = { "python", "c", "native", "region", "gc" };

/* ---- packets ---- */

/* What has gathered as one packet of packed packets. */
static void pack(struct fm_perfetto *w)
{
    uLongf bound = compressBound((uLong)w->packets.len);
    if (!w->packets.len)
        return;
    fm_autofree Bytef *packed = fm_malloc(bound);
    fm_buffer_clear(&w->inner);
    if (compress2(packed, &bound, (const Bytef *)w->packets.data, (uLong)w->packets.len, 6) ==
        Z_OK) {
        fm_proto_bytes(&w->inner, PACKET_COMPRESSED, packed, bound);
        fm_proto_message(&w->file.bytes, PACKET, &w->inner);
    } else { /* as they are */
        fm_buffer_add(&w->file.bytes, w->packets.data, w->packets.len);
    }
    fm_buffer_clear(&w->packets);
    fm_export_flush(&w->file);
}

void fm_perfetto_packet(struct fm_perfetto *w)
{
    fm_proto_message(&w->packets, PACKET, &w->packet);
    fm_buffer_clear(&w->packet);
    if (w->packets.len > PIECE)
        pack(w);
}

static void add_clock(struct fm_perfetto *w, uint64_t clock, uint64_t ns, bool delta)
{
    fm_buffer_clear(&w->part);
    fm_proto_number(&w->part, 1, clock);
    fm_proto_number(&w->part, 2, ns);
    if (delta)
        fm_proto_number(&w->part, 3, 1);
    fm_proto_message(&w->inner, 1, &w->part);
}

/* Which instant of the calendar the timeline began at; 0: nobody knows. */
static uint64_t real_start(const struct fm_perfetto *w)
{
    for (size_t i = 0; i < w->p->processes.len; i++) {
        const struct fm_process *process = &w->p->processes.data[i];
        if (process->start_real_ns && process->start_ns)
            return process->start_real_ns + w->from->start_ns - process->start_ns;
    }
    return 0;
}

static void start(void *context)
{
    struct fm_perfetto *w = context;
    uint64_t real_ns = real_start(w);
    fm_buffer_clear(&w->inner);
    add_clock(w, BOOTTIME, w->from->start_ns, false);
    add_clock(w, MONOTONIC, w->from->start_ns, false);
    if (real_ns)
        add_clock(w, REALTIME, real_ns, false);
    fm_proto_number(&w->inner, 2, BOOTTIME);
    fm_proto_number(&w->packet, PACKET_SEQUENCE, FIRST_SEQUENCE);
    fm_proto_number(&w->packet, PACKET_FLAGS, CLEARED);
    fm_proto_message(&w->packet, PACKET_CLOCK_SNAPSHOT, &w->inner);
    fm_perfetto_packet(w);
}

/* ---- lanes ---- */

static void add_sequence(struct fm_perfetto *w, uint64_t flags)
{
    fm_proto_number(&w->packet, PACKET_SEQUENCE, FIRST_SEQUENCE + 1 + w->lane);
    fm_proto_number(&w->packet, PACKET_FLAGS, flags);
}

/* A sequence begins with its clock, which stands at the beginning of the timeline, and its defaults. */
static void begin_sequence(struct fm_perfetto *w)
{
    add_sequence(w, CLEARED);
    fm_buffer_clear(&w->inner);
    add_clock(w, DELTA_CLOCK, 0, true);
    add_clock(w, BOOTTIME, w->from->start_ns, false);
    fm_proto_message(&w->packet, PACKET_CLOCK_SNAPSHOT, &w->inner);
    fm_buffer_clear(&w->part);
    fm_proto_number(&w->part, EVENT_TRACK, fm_perfetto_lane_track(w, w->lane));
    fm_buffer_clear(&w->inner);
    fm_proto_message(&w->inner, 11, &w->part); /* track_event_defaults */
    fm_proto_number(&w->inner, PACKET_CLOCK, DELTA_CLOCK);
    fm_proto_message(&w->packet, PACKET_DEFAULTS, &w->inner);
    fm_buffer_clear(&w->inner);
    for (size_t i = 0; i < FM_COUNT(categories); i++) {
        fm_buffer_clear(&w->part);
        fm_proto_number(&w->part, 1, i + 1);
        fm_proto_text(&w->part, 2, categories[i]);
        fm_proto_message(&w->inner, 1, &w->part);
    }
    fm_proto_message(&w->packet, PACKET_INTERNED, &w->inner);
    fm_perfetto_packet(w);
    w->last_ns = 0;
}

static void begin_lane(void *context, size_t lane)
{
    struct fm_perfetto *w = context;
    w->lane = lane;
    fm_perfetto_describe_lane(w, lane);
    begin_sequence(w);
    fm_perfetto_forked(w, lane);
}

/* Name and place of a function, by its number, once in each sequence. */
static void add_name(struct fm_perfetto *w, uint32_t func)
{
    const struct fm_function *f = &w->p->functions.data[func];
    if (w->named_in[func] == w->lane + 1)
        return;
    w->named_in[func] = (uint32_t)w->lane + 1;
    fm_buffer_clear(&w->inner);
    fm_buffer_clear(&w->part);
    fm_proto_number(&w->part, 1, func + 1ull);
    fm_proto_bytes(&w->part, 2, fm_profile_text(w->p, f->qualname),
                   fm_strings_len(w->p->strings, f->qualname));
    fm_proto_message(&w->inner, 2, &w->part); /* event_names */
    if (fm_strings_len(w->p->strings, f->file)) {
        fm_buffer_clear(&w->part);
        fm_proto_number(&w->part, 1, func + 1ull);
        fm_proto_bytes(&w->part, 2, fm_profile_text(w->p, f->file),
                       fm_strings_len(w->p->strings, f->file));
        fm_proto_number(&w->part, 4, f->line);
        fm_proto_message(&w->inner, 4, &w->part); /* source_locations */
    }
    fm_proto_message(&w->packet, PACKET_INTERNED, &w->inner);
}

static uint64_t category_number(const char *name)
{
    for (size_t i = 0; i < FM_COUNT(categories); i++)
        if (strcmp(name, categories[i]) == 0)
            return i + 1;
    return 1;
}

static void end_event(struct fm_perfetto *w, uint64_t at_ns)
{
    fm_proto_number(&w->packet, PACKET_TIMESTAMP, at_ns - w->last_ns);
    add_sequence(w, NEEDS_BEFORE);
    fm_proto_message(&w->packet, PACKET_EVENT, &w->event);
    w->last_ns = at_ns;
    fm_perfetto_packet(w);
}

static void begin_span(void *context, const struct fm_time_span *span, uint64_t at_ns,
                       const struct fm_export_values *values)
{
    struct fm_perfetto *w = context;
    bool known = span->func < w->p->functions.len;
    fm_buffer_clear(&w->event);
    fm_proto_number(&w->event, EVENT_TYPE, SLICE_BEGIN);
    fm_proto_number(&w->event, EVENT_CATEGORY_IIDS,
                    category_number(fm_export_category(w->p, span)));
    if (known) {
        add_name(w, span->func);
        fm_proto_number(&w->event, EVENT_NAME_IID, span->func + 1ull);
        if (w->p->functions.data[span->func].file)
            fm_proto_number(&w->event, EVENT_SOURCE_IID, span->func + 1ull);
    } else {
        fm_proto_text(&w->event, EVENT_NAME, "?");
    }
    fm_perfetto_say(w, fm_export_begin_word(span));
    fm_perfetto_values(w, values);
    end_event(w, at_ns);
}

static void end_span(void *context, const struct fm_time_span *span, uint64_t at_ns,
                     const struct fm_export_values *values)
{
    struct fm_perfetto *w = context;
    fm_buffer_clear(&w->event);
    fm_proto_number(&w->event, EVENT_TYPE, SLICE_END);
    fm_perfetto_say(w, fm_export_end_word(span));
    fm_perfetto_values(w, values);
    end_event(w, at_ns);
}

static void take_mark(void *context, const struct fm_mark *mark,
                      const struct fm_export_values *values)
{
    fm_perfetto_mark(context, mark, values);
}

static void finish(void *context)
{
    struct fm_perfetto *w = context;
    pack(w);
    fm_export_flush(&w->file);
}

int fm_perfetto_write(const struct fm_profile *p, const struct fm_export_from *from,
                      const struct fm_save_choice *choice, int fd, struct fm_error *err)
{
    struct fm_perfetto w = { .p = p, .from = from, .file = { .fd = fd, .err = err } };
    struct fm_export_writer writer = { .context = &w,
                                       .start = start,
                                       .lane = begin_lane,
                                       .begin = begin_span,
                                       .end = end_span,
                                       .mark = take_mark,
                                       .finish = finish };
    w.named_in = fm_calloc(p->functions.len + 1, sizeof *w.named_in);
    int status = fm_export_run(from, choice, &writer, &w.file, err);
    free(w.named_in);
    fm_map_release(&w.people);
    fm_map_release(&w.process_tracks);
    fm_map_release(&w.track_of);
    fm_vec_release(&w.tracks);
    fm_buffer_release(&w.packets);
    fm_buffer_release(&w.packet);
    fm_buffer_release(&w.event);
    fm_buffer_release(&w.inner);
    fm_buffer_release(&w.part);
    fm_buffer_release(&w.file.bytes);
    return status;
}

static int save(const struct fm_profile *p, const struct fm_save_choice *choice, int fd,
                struct fm_error *err)
{
    return fm_export_save(p, choice, fd, fm_perfetto_write, err);
}

static const char *const suffixes[] = { ".pftrace", ".perfetto-trace", ".perfetto", NULL };

const struct fm_format fm_format_perfetto = {
    .name = "perfetto",
    .title = "Perfetto's trace",
    .suffixes = suffixes,
    .save_timeline = save,
};

/*
 * Perfetto's trace, while it is written: perfetto.c writes what lanes hold, perfetto_tracks.c the tracks and what lies
 * beside calls.
 *
 * A file is a row of packets. Packets of one sequence share what was said before in it: names by number, the track, and
 * a clock whose times are differences. Each lane is a sequence of its own; all else, which is little, is the first one,
 * with times as they are. Packets are packed by zlib in pieces, which makes a tenth of them.
 */
#ifndef FM_FORMATS_PERFETTO_H
#define FM_FORMATS_PERFETTO_H

#include "base/map.h"
#include "record/formats/timeline/export.h"

/* Fields, by message (protos/perfetto/trace in Perfetto's source). */
enum fm_perfetto_field {
    PACKET = 1, /* of the file */
    /* TracePacket */
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_COMPRESSED = 50,
    PACKET_CLOCK = 58,
    PACKET_DEFAULTS = 59,
    PACKET_TRACK = 60,
    /* TrackEvent */
    EVENT_CATEGORY_IIDS = 3,
    EVENT_ANNOTATIONS = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_CATEGORIES = 22,
    EVENT_NAME = 23,
    EVENT_SOURCE_IID = 34,
    EVENT_DOUBLE = 44,
    EVENT_FLOWS = 47,
    EVENT_LAST_FLOWS = 48,
    /* TrackDescriptor */
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    TRACK_CHILD_ORDER = 11,
    TRACK_RANK = 12,
    TRACK_MERGING = 15,
};

enum fm_perfetto_type { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 };

struct fm_perfetto_track {
    uint64_t uuid, busy_until_ns;
    uint32_t next; /* of the same name, or FM_NONE */
};

struct fm_perfetto {
    const struct fm_profile *p;
    const struct fm_export_from *from;
    struct fm_export_file file;
    struct fm_buffer packets;       /* not yet packed */
    struct fm_buffer packet, event; /* being made */
    struct fm_buffer inner, part;
    size_t lane;
    uint64_t last_ns;             /* of the lane's clock */
    uint32_t *named_in;           /* by function: the lane + 1 that knows its name */
    struct fm_map people;         /* (pid, tid): taken */
    struct fm_map process_tracks; /* process: described */
    struct fm_map track_of;       /* what a track beside calls is for: the first of them */
    FM_VEC(struct fm_perfetto_track) tracks;
    uint64_t uuids; /* given to these */
};

/* End the packet that was made: it goes to the file. */
void fm_perfetto_packet(struct fm_perfetto *w);

/* The track of a process and of a lane. */
uint64_t fm_perfetto_process_track(uint32_t process);
uint64_t fm_perfetto_lane_track(const struct fm_perfetto *w, size_t lane);

/* Describe the tracks of a lane and its process. */
void fm_perfetto_describe_lane(struct fm_perfetto *w, size_t lane);

/* A word that is true of the event that is being made; NULL: none. */
void fm_perfetto_say(struct fm_perfetto *w, const char *word);

/* Values of the event that is being made. */
void fm_perfetto_values(struct fm_perfetto *w, const struct fm_export_values *values);

/* What lies beside calls. */
void fm_perfetto_mark(struct fm_perfetto *w, const struct fm_mark *mark,
                      const struct fm_export_values *values);

/* The child's end of arrows from forks. */
void fm_perfetto_forked(struct fm_perfetto *w, size_t lane);

#endif

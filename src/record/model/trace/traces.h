/*
 * The traces of a profile: of each process that was traced, which packed blocks are its own, and what the
 * numbers in them are in the profile. The blocks stay where they are, in a file or in memory; a profile
 * knows only their places, so one of 100 million calls opens at once.
 *
 * The recorder writes them into a file (TRACE_STREAMS, TRACE_FUNCTIONS, TRACE_NAMES, and the blocks, with
 * the number of the trace in their first four bytes); model/file/load_traces.c finds them again.
 */
#ifndef FM_MODEL_TRACE_TRACES_H
#define FM_MODEL_TRACE_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* Where bytes of blocks are. Several traces may share one; the last lets it go. */
struct fm_trace_source {
    bool (*read)(void *context, uint64_t at, void *into, size_t bytes);
    void (*release)(void *context);
    void *context;
    uint32_t users;
};

/* A payload: stored as it is (its columns are packed by themselves). Of one that is away only the head is
 * there, as in a page that fetches the rest when it comes into sight, or has it not at all. */
struct fm_trace_block {
    uint64_t
        at; /* in the source; of a block that is away only what payload.h calls its head is there */
    uint32_t bytes;
    uint16_t type; /* capture/format.h */
    bool away;
    uint32_t away_bytes; /* 0: nowhere */
    uint64_t away_at;
};

#define FM_TRACE_AWAY                                                                              \
    0x80000000u /* in the number of the trace: varint place, varint bytes, head follow */

/* A lane. */
struct fm_trace_stream {
    uint32_t number; /* of the thread, in blocks */
    uint32_t thread; /* in the profile */
    uint32_t depth;
    uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC of the process's machine */
    uint64_t events, lost;
};

struct fm_trace {
    uint32_t process;
    struct fm_trace_source *source;
    FM_VEC(uint32_t) functions; /* by number in blocks: function of the profile, or FM_NONE */
    FM_VEC(uint32_t) names;     /* … string of the profile */
    FM_VEC(uint32_t)
    regions; /* by number of a name: the function of kind REGION that stands for spans
                                   of that name, or FM_NONE; [0]: of collections. May be shorter */
    FM_VEC(struct fm_trace_stream) streams;
    FM_VEC(struct fm_trace_block) blocks; /* in the order of the file */
};

struct fm_traces {
    FM_VEC(struct fm_trace) list;
};

void fm_trace_release(struct fm_trace *trace);

struct fm_profile;
/* The region of that name (string id), as a function. */
uint32_t fm_trace_region_function(struct fm_profile *p, uint32_t name);

/* Functions for the regions whose names a trace has: to be called when a packer is done, with the names
 * that were used for regions (fm_trace_pack_region_names) and once the names are filled in. */
void fm_trace_add_regions(struct fm_profile *p, struct fm_trace *trace, const uint8_t *is_region,
                          size_t count);

void fm_traces_release(struct fm_traces *traces);

/* A source that reads a file by position; takes a descriptor of its own. NULL if it cannot. */
struct fm_trace_source *fm_trace_source_file(int fd);
/* One that opens a file whenever it reads: of many, which stay where they are as long as they are used. */
struct fm_trace_source *fm_trace_source_path(const char *path);
/* One that reads bytes in memory, which outlive it. */
struct fm_trace_source *fm_trace_source_bytes(const void *bytes, size_t len);
void fm_trace_source_drop(struct fm_trace_source *source);

#endif

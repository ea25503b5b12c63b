/* What the files that read a live store share while they do; see live.c. */
#ifndef FM_MODEL_LIVE_LOADER_H
#define FM_MODEL_LIVE_LOADER_H

#include "base/map.h"
#include "record/capture/live.h"
#include "record/model/file/renumber.h"
#include "record/model/live/live_chunks.h"
#include "record/model/profile.h"

struct fm_live_loader {
    struct fm_profile *p;
    struct fm_live_header header;
    struct fm_live_chunks chunks;
    FM_VEC(struct fm_live_thread) threads;
    FM_VEC(uint32_t) functions; /* by live id: function, or FM_NONE */
    FM_VEC(uint32_t) names;     /* by live id: string, or FM_NONE */
    struct fm_map twins;        /* function → times its looks were defined here */
    struct fm_map sources;      /* (file, text) string ids → source */
    struct fm_map root_threads; /* live node id of a root → index into threads */
    struct fm_renumber nodes;   /* live node id → node */
    struct fm_process process;
    uint32_t process_id;
    uint64_t regions;             /* that were defined: the last so many rows of the profile */
    uint64_t rate_ns, rate_ticks; /* rate_ticks ticks take rate_ns */
    uint64_t end_ticks;
    uint64_t broken_nodes, broken_records, unknown_functions;
};

/* What stands for a function that nothing defines. */
uint32_t fm_live_unknown_function(struct fm_live_loader *l);

/* A chunk of definitions: functions, facts about the process, sources, files. */
void fm_live_read_definitions(struct fm_live_loader *l, const struct fm_live_piece *chunk);

#endif

/*
 * The trace of a process whose live store is read: what its packer made (model/trace/pack/pack.h) becomes the
 * nodes of its threads, as if the store had had them, and a trace of the profile.
 */
#ifndef FM_MODEL_LIVE_TRACE_H
#define FM_MODEL_LIVE_TRACE_H

#include "record/model/live/live_loader.h"
#include "record/model/trace/pack/pack.h"

struct fm_live_trace {
    const struct fm_trace_pack *pack; /* that has ended */
    int packed;                       /* the file with its blocks; −1: there is none */
    const char *path;                 /* of it, if it stays there; NULL: it has no name */
    uint64_t window_ns;               /* it has only the last so much of them; 0: all */
    bool tree_cut;                    /* … and so has the packer's tree */
};

/* When definitions, threads and nodes of the store were read. */
void fm_live_read_trace(struct fm_live_loader *l, const struct fm_live_trace *trace);

#endif

/*
 * Inside the packer: what pack.c (chunks, the process), pack_frames.c (what is open, the tree),
 * pack_escapes.c (records that are no calls), pack_blocks.c (what goes out), pack_replay.c (what an earlier
 * packer gave out), pack_state.c (what the next one has to know) and pack_window.c (from when on is told) share.
 * Nobody else includes this, but for build.c, which has begins and ends without words.
 *
 * Invariants:
 *  1. Of a stream `frames` is what is open after its last event, `stretch` what happened since its
 *     keyframe, and everything before that went out.
 *  2. Levels, marks and tasks go out right behind a stretch, never before the events they come from.
 *  3. A frame without a context of its own (`node` is its caller's) has FM_FRAME_NO_NODE.
 */
#ifndef FM_MODEL_TRACE_PACKING_H
#define FM_MODEL_TRACE_PACKING_H

#include "base/map.h"
#include "record/model/trace/pack/clock.h"
#include "record/model/trace/pack/levels.h"
#include "record/model/trace/pack/pack.h"
#include "record/model/trace/pack/stretch.h"
#include "record/model/trace/pack/trace_marks.h"
#include "record/model/trace/pack/words.h"

enum fm_frame_flags {
    FM_FRAME_NO_NODE = 1,
    FM_FRAME_ENDED = 2, /* a region that ended while something in it was open */
    FM_FRAME_LOST = 4,  /* some of it was lost */
    FM_FRAME_CUT = 8, /* it began before what is told: how long an entry took is not of that time */
};

struct fm_pack_frame {
    uint64_t begin;   /* of the span, on the grid of times */
    uint64_t entered; /* since when its time is not in the tree yet */
    uint32_t code;    /* of its begin, events.h */
    uint32_t node;
    uint32_t flags;
};

/* Spans of one subject that ended in the current stretch. */
struct fm_pack_subject {
    uint64_t stretch; /* which: others have been told */
    uint64_t spans, longest;
};

/* A region whose call returned before it ended. */
struct fm_pack_orphan {
    uint64_t begin;
    uint32_t name;
};

struct fm_stream {
    uint32_t thread, tid;
    uint32_t index; /* of the thread in the packer */
    bool begun;
    bool before;    /* … what is told (pack_window.c): it is followed, and nothing goes out */
    bool lost_some; /* in the time that is not told */
    bool stopped;   /* it went on behind the last that is taken */
    uint64_t ticks; /* of the last event */
    FM_VEC(struct fm_pack_frame) frames;
    uint64_t beyond; /* begins that were too deep, and not ended yet */
    struct fm_stretch_writer stretch;
    uint64_t stretch_number;
    FM_VEC(struct fm_pack_subject) subjects;
    FM_VEC(uint32_t) told; /* subjects of this stretch */
    bool some_untold;
    struct fm_levels levels;
    struct fm_trace_marks marks;
    FM_VEC(struct fm_pack_orphan) orphans;
    /* Between two records. */
    uint64_t suspended; /* ticks: the generator that goes on next had waited */
    bool reopening;     /* after a loss: open calls are told again */
    uint64_t lost_from;
    FM_VEC(struct fm_pack_frame) lost_frames; /* what was open before it */
    /* The step of a task that runs. */
    uint32_t task;
    uint64_t task_begin;
    uint64_t instant; /* ticks of the one that was told last, which values are of; 0: it was lost */
};

struct fm_async_span {
    uint32_t name, token;
    uint64_t ticks; /* of its begin; of its end if that came first */
    bool ended;
};

struct fm_trace_pack {
    unsigned shift;
    uint64_t grid;  /* all bits of a time that blocks have; the tree has all */
    uint64_t from;  /* ticks, on the grid: what was before is not told; 0: everything is */
    uint64_t until; /* ticks: what comes later in words is not taken; 0: everything is */
    fm_trace_sink *sink;
    void *context;
    void *packer; /* of payloads */
    struct fm_buffer head, body, payload;
    FM_VEC(struct fm_stream *) streams; /* in order of appearance; NULL: it ended */
    struct fm_map stream_of;            /* thread → index */
    FM_VEC(struct fm_trace_thread) threads;
    FM_VEC(struct fm_trace_node) nodes;
    struct fm_map children; /* (parent, function) → node */
    uint64_t lost_nodes, broken;
    uint32_t functions, names; /* that are defined; UINT32_MAX: not known */
    struct fm_trace_clock clock;
    size_t clock_told;
    struct fm_trace_tasks tasks;
    FM_VEC(struct fm_async_span) async;
    FM_VEC(uint8_t) region_names; /* by name: 1, it was used for a region */
    uint64_t last;                /* ticks of the last event of any thread */
    bool replaying;
};

/* pack.c: the first event of a thread. */
void fm_pack_begin_stream(struct fm_trace_pack *pack, struct fm_stream *s, uint64_t ticks);

/* pack_frames.c */
void fm_pack_begin(struct fm_trace_pack *pack, struct fm_stream *s, uint32_t code, uint64_t ticks,
                   uint64_t extra);
/* The same of a call that begins now, in words. */
void fm_pack_call(struct fm_trace_pack *pack, struct fm_stream *s, uint32_t func, uint64_t ticks);
/* The innermost that is open ends. */
void fm_pack_end_frame(struct fm_trace_pack *pack, struct fm_stream *s, uint32_t code,
                       uint64_t ticks);
/* The innermost call ends, with regions and collections in it. False: none is open. */
bool fm_pack_end_call(struct fm_trace_pack *pack, struct fm_stream *s, uint32_t code,
                      uint64_t ticks);
/* A region that is open when its call ends, or in which something is when it ends, is a mark: it does
 * not nest. */
void fm_pack_orphan(struct fm_stream *s, const struct fm_pack_frame *frame);
uint32_t fm_pack_root(struct fm_trace_pack *pack, uint32_t thread);
/* The thread gets a tree of its own anew, in which what is open goes on from `ticks` on. */
void fm_pack_new_tree(struct fm_trace_pack *pack, struct fm_stream *s, uint64_t ticks);

/* pack_escapes.c */
void fm_pack_escape(struct fm_trace_pack *pack, struct fm_stream *s, const struct fm_word *word,
                    uint64_t ticks);
void fm_pack_mark(struct fm_stream *s, const struct fm_trace_mark *mark);
/* A step of a task ends, if one runs. */
void fm_pack_end_step(struct fm_stream *s, uint64_t ticks);

/* pack_blocks.c */
struct fm_stream *fm_pack_stream(struct fm_trace_pack *pack, uint32_t thread, uint32_t tid);
void fm_pack_stream_free(struct fm_stream *s);
void fm_pack_set_grid(struct fm_trace_pack *pack);
void fm_pack_keyframe(struct fm_stream *s, uint64_t ticks);
/* The stretch goes out if it is large enough, or (`all`) in any case, and what waits behind it. */
void fm_pack_emit(struct fm_trace_pack *pack, struct fm_stream *s, bool all);
void fm_pack_emit_process(struct fm_trace_pack *pack, bool all);

/* pack_window.c: something happens on a thread at `ticks`. False: that is before what is told. */
bool fm_pack_arrive(struct fm_trace_pack *pack, struct fm_stream *s, uint64_t ticks);
/* Nothing of the thread is told: it ended before that, or began later. */
void fm_pack_leave_out(struct fm_trace_pack *pack, struct fm_stream *s);
/* Marks that end before that are none. */
void fm_pack_cut_marks(const struct fm_trace_pack *pack, struct fm_stream *s);

/* pack_replay.c: these are open at `ticks`, nobody heard how they began. */
void fm_pack_open_frames(struct fm_trace_pack *pack, struct fm_stream *s,
                         const struct fm_open_frame *frames, size_t count, uint64_t ticks);

#define FM_STRETCH_FULL (224u << 10)

static inline void fm_pack_event(struct fm_trace_pack *pack, struct fm_stream *s, uint32_t code,
                                 uint64_t ticks)
{
    s->ticks = ticks;
    if (pack->replaying)
        return;
    fm_stretch_add(&s->stretch, code, ticks & pack->grid);
    if (fm_stretch_bytes(&s->stretch) >= FM_STRETCH_FULL)
        fm_pack_emit(pack, s, false);
}

#endif

/*
 * The contexts of a memray file: threads, what each of them is calling just now, and the tree of all that was
 * ever so; and in the end the same as a profile.
 *
 * A frame is told by a number. Files of version 12 and later: a code object and an instruction, whose line the
 * code object's table has. Older files: a number that is defined as function, file and line. Either may be
 * defined after it was used, so names and lines are looked up in the end.
 *
 * Contexts count from 1. The first of a thread is the thread itself.
 */
#ifndef FM_FORMATS_MEMRAY_CONTEXTS_H
#define FM_FORMATS_MEMRAY_CONTEXTS_H

#include "base/buffer.h"
#include "base/map.h"
#include "base/positions.h"
#include "record/capture/budget.h"
#include "record/formats/memray/memray_heap.h"
#include "record/model/profile.h"

struct fm_memray_context {
    uint32_t parent; /* 0 of a thread */
    uint32_t frame;
    uint32_t thread;
};

/* What was called last, by context and frame mixed: nearly always it is what is called next, too. */
#define FM_MEMRAY_RECENT 4096
struct fm_memray_recent {
    uint64_t key;
    uint32_t context, child; /* child 0: none */
};

struct fm_memray_thread {
    uint64_t tid;
    uint32_t name; /* string id, 0: not known */
    uint32_t root;
    FM_VEC(uint32_t) stack; /* contexts, the newest last */
};

/* A code object, or a frame of an older file, which has but one line and no table. */
struct fm_memray_code {
    uint32_t name, file; /* string ids */
    uint32_t line;       /* the first, or the only one */
    uint32_t table_len;
    size_t table; /* in `tables` */
};

struct fm_memray_contexts {
    struct fm_profile *p;
    struct fm_budget *budget;
    struct fm_memray_heap *heap; /* which has an account for each */
    FM_VEC(struct fm_memray_context) all;
    FM_VEC(struct fm_memray_thread) threads;
    FM_VEC(uint64_t) frames; /* their keys */
    FM_VEC(struct fm_memray_code) codes;
    struct fm_buffer tables;
    struct fm_map children, frame_index, code_index, thread_index;
    struct fm_memray_recent *recent; /* FM_MEMRAY_RECENT */
    enum fm_table_kind table_kind;
    bool lines_are_defined; /* an older file: the key of a frame is the number of its code */
};

void fm_memray_contexts_init(struct fm_memray_contexts *c, struct fm_memray_heap *heap,
                             struct fm_budget *budget);
void fm_memray_contexts_release(struct fm_memray_contexts *c);

/* All that make something return FM_NONE, or false, when the budget is spent. */

uint32_t fm_memray_thread(struct fm_memray_contexts *c, uint64_t tid);

static inline struct fm_memray_recent *fm_memray_recent_of(struct fm_memray_contexts *c,
                                                           uint32_t context, uint64_t key)
{
    uint64_t mixed = (key ^ (uint64_t)context << 20) * 0x9e3779b97f4a7c15u;
    return &c->recent[mixed >> 52];
}
_Static_assert(FM_MEMRAY_RECENT == 1 << (64 - 52), "as many as the bits that are left");

/* What `context` is calling. */
uint32_t fm_memray_child_slowly(struct fm_memray_contexts *c, uint32_t context, uint64_t key);
static inline uint32_t fm_memray_child(struct fm_memray_contexts *c, uint32_t context, uint64_t key)
{
    const struct fm_memray_recent *known = fm_memray_recent_of(c, context, key);
    if (known->context == context && known->key == key && known->child)
        return known->child;
    return fm_memray_child_slowly(c, context, key);
}

static inline uint64_t fm_memray_frame_key(uint32_t code, uint32_t instruction)
{
    return (uint64_t)code << 32 | instruction;
}

/* A later definition of the same number takes the place of the first, as it does for memray. */
bool fm_memray_define(struct fm_memray_contexts *c, uint32_t number,
                      const struct fm_memray_code *code, const struct fm_buffer *table);

/* Make threads and nodes of `process` in the profile, the oldest `skipped` frames of the main thread left out. The
 * node of each context, which the caller frees. */
uint32_t *fm_memray_place(struct fm_memray_contexts *c, uint32_t process, uint64_t main_tid,
                          uint64_t skipped);

#endif

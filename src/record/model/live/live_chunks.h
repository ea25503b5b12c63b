/*
 * The chunks of a live store (capture/live.h), found and bounded: the border at which untrusted
 * lengths become trusted ones. What is inside the chunks is model/live/live.c's to judge.
 */
#ifndef FM_MODEL_LIVE_CHUNKS_H
#define FM_MODEL_LIVE_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct fm_live_piece {
    const uint8_t *payload; /* `room` bytes that exist, `used` of them in use */
    uint32_t kind, used, room, first_id;
    uint64_t address; /* of the chunk, in the process */
};

struct fm_live_chunks {
    FM_VEC(struct fm_live_piece) all;   /* in the order of the file */
    FM_VEC(struct fm_live_piece) nodes; /* those of nodes, by address once sorted */
    uint64_t broken;                    /* chunks that lie about their size, or are cut off */
    uint64_t definition_bytes;
};

/* Add the chunks of one file, from offset `at` on. */
void fm_live_chunks_find(struct fm_live_chunks *chunks, const void *bytes, size_t len, size_t at);
void fm_live_chunks_sort(struct fm_live_chunks *chunks);
void fm_live_chunks_release(struct fm_live_chunks *chunks);

/* The id that a node at this address in the process should have; UINT32_MAX (FM_NONE) if no node
 * can be there. Needs the chunks sorted. */
uint32_t fm_live_chunks_node(const struct fm_live_chunks *chunks, uint64_t address);

#endif

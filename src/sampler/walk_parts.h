/*
 * What the parts of the walk share; see walk.h. For walk*.c only.
 */
#ifndef FM_SAMPLER_WALK_PARTS_H
#define FM_SAMPLER_WALK_PARTS_H

#include <string.h>

#include "base/clock.h"
#include "sampler/walk.h"

#define FM_FRAME_MAX_BYTES 512 /* of what is read of a frame */

/* The words of a frame. */
struct fm_frame_view {
    fm_addr previous, code_at;
    uint64_t instr;
    uint8_t owner;
    uint32_t number; /* of the code, after fm_walk_identify */
    int32_t offset;
};

static inline uint64_t fm_word(const uint8_t *bytes, uint32_t offset)
{
    uint64_t word;
    memcpy(&word, bytes + offset, sizeof word);
    return word;
}

/* Take the words out of a frame's bytes; false if its code cannot be a code object. */
bool fm_walk_decode(const struct fm_walk_context *c, const uint8_t *bytes, struct fm_frame_view *f);
/* Which code it is and where in it; false if it is none or the instruction lies elsewhere. */
bool fm_walk_identify(const struct fm_walk_context *c, struct fm_frame_view *f);
/* Is it another code by now, and does the frame fit that? As fm_codes_renew(). */
bool fm_walk_renew(const struct fm_walk_context *c, struct fm_frame_view *f, bool at_once);
void fm_walk_push(struct fm_walk *w, const struct fm_walk_context *c, const struct fm_frame_view *f);
void fm_walk_reverse(struct fm_walk *w);

/* Is an entry frame known to lie there? And did it stand on a generator when it was last looked at? */
enum fm_shim { FM_SHIM_NONE, FM_SHIM_PLAIN, FM_SHIM_OF_GENERATOR };
enum fm_shim fm_walk_is_shim(const struct fm_walk *w, fm_addr at);
void fm_walk_add_shim(struct fm_walk *w, fm_addr at, fm_addr previous);
struct fm_loose *fm_walk_loose(struct fm_walk *w, fm_addr at);
/* Take the i-th frame outside the chunks out of the plan. */
void fm_walk_forget(struct fm_walk *w, size_t i);
struct fm_chunk *fm_walk_chunk_of(struct fm_walk *w, fm_addr at);
/* Copy the chunk that holds `end` up to there and somewhat further from now on. */
void fm_walk_reach(struct fm_walk *w, fm_addr end);

/* Append the frames from the one at `at` down, one by one: those that do not change as they have called
 * what was read before. */
enum fm_walk_result fm_walk_older(struct fm_walk *w, struct fm_walk_context *c, fm_addr at);

/* Find out anew where the frames lie. */
enum fm_walk_result fm_walk_learn(struct fm_walk *w, struct fm_walk_context *c);

/* walk_copy.c: copy all that the stack needs, in one read if possible. Negative if the process is gone or not even
 * the thread state can be read. */
int fm_walk_copy(struct fm_walk *w, const struct fm_walk_context *c);
/* After a pause all that a copy needs has left the processor's caches, and the copy takes several times as long as
 * it need to: a first one, that is not looked at, helps. Not so where it would wait for the memory map. */
bool fm_walk_is_cold(const struct fm_walk *w, const struct fm_walk_context *c);
/* Only the chunks in use; forgets them if they cannot be read. */
void fm_walk_copy_chunks(struct fm_walk *w, const struct fm_walk_context *c);

/* Room for `len` bytes at `at` in the buffer: where. It may move while it grows. */
uint32_t fm_walk_place(struct fm_walk *w, struct fm_span *span, fm_addr at, size_t len);
/* Did a copy of so many spans and bytes take longer than usual? */
bool fm_walk_is_late(struct fm_usual_time *usual, int spans, size_t bytes, uint64_t took_ns);

bool fm_walk_is_same(const struct fm_walk *w, const struct fm_layout *layout, const uint8_t *thread);
/* Make the stack of what was copied. */
enum fm_walk_result fm_walk_finish_chunks(struct fm_walk *w, struct fm_walk_context *c);
/* Copy, and make the stack of it: 3.9 and 3.10. */
enum fm_walk_result fm_walk_heap(struct fm_walk *w, struct fm_walk_context *c);

#endif

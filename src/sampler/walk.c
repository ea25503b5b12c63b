/*
 * Where the frames of a thread lie, and following them one by one; see walk.h. What is copied of a running
 * thread is in walk_copy.c, its stack of 3.11+ in walk_chunks.c, that of 3.9 and 3.10 in walk_heap.c.
 */
#include "sampler/walk.h"

#include <string.h>

#include "sampler/walk_parts.h"

#define SLACK_BYTES 1024u /* how much deeper a stack may get without a new plan */
#define MAX_THREAD_BYTES 65536u
#define MAX_CHUNKS_BYTES (16u << 20) /* of all chunks of a thread: some hundred thousand frames */

void fm_walk_init(struct fm_walk *w, fm_addr thread, fm_addr interp)
{
    *w = (struct fm_walk){ .thread = thread, .interp = interp };
}

void fm_walk_release(struct fm_walk *w)
{
    fm_vec_release(&w->chunks);
    fm_vec_release(&w->loose);
    fm_vec_release(&w->buffer);
    fm_vec_release(&w->frames);
    fm_vec_release(&w->doubted);
    fm_map_release(&w->callers);
    fm_map_release(&w->sites);
    free(w->scratch);
    w->scratch = NULL;
    w->scratch_cap = 0;
}

enum fm_shim fm_walk_is_shim(const struct fm_walk *w, fm_addr at)
{
    fm_addr known = w->shims[at >> 4 & (FM_WALK_SHIMS - 1)];
    if (!at || (known & ~(fm_addr)1) != at)
        return FM_SHIM_NONE;
    return known & 1 ? FM_SHIM_OF_GENERATOR : FM_SHIM_PLAIN;
}

void fm_walk_add_shim(struct fm_walk *w, fm_addr at, fm_addr previous)
{
    bool base = previous - w->thread < MAX_THREAD_BYTES; /* 3.15: where every stack ends */
    bool plain = !previous || base || fm_walk_chunk_of(w, previous);
    w->shims[at >> 4 & (FM_WALK_SHIMS - 1)] = plain ? at : at | 1;
}

struct fm_loose *fm_walk_loose(struct fm_walk *w, fm_addr at)
{
    for (size_t i = 0; i < w->loose.len; i++) {
        if (w->loose.data[i].at == at)
            return &w->loose.data[i];
    }
    return NULL;
}

void fm_walk_forget(struct fm_walk *w, size_t i)
{
    memmove(&w->loose.data[i], &w->loose.data[i + 1], (w->loose.len - i - 1) * sizeof *w->loose.data);
    w->loose.len--;
}

struct fm_chunk *fm_walk_chunk_of(struct fm_walk *w, fm_addr at)
{
    for (size_t i = w->chunks.len; i-- > 0;) {
        struct fm_chunk *chunk = &w->chunks.data[i];
        if (at >= chunk->at && at < chunk->at + chunk->bytes)
            return chunk;
    }
    return NULL;
}

bool fm_walk_decode(const struct fm_walk_context *c, const uint8_t *bytes, struct fm_frame_view *f)
{
    const struct fm_layout *l = c->layout;
    f->previous = fm_word(bytes, l->frame_previous);
    f->code_at = fm_word(bytes, l->frame_code) & ~(uint64_t)l->code_tag_mask;
    f->owner = l->frame_owner == FM_ABSENT ? 0 : bytes[l->frame_owner];
    if (l->frames == FM_FRAMES_HEAP) {
        int32_t last;
        memcpy(&last, bytes + l->frame_instr, sizeof last);
        f->instr = (uint64_t)(int64_t)last;
    } else {
        f->instr = fm_word(bytes, l->frame_instr);
    }
    return f->code_at && !(f->code_at & 7);
}

/* Where in its code it is. */
static bool locate(const struct fm_walk_context *c, struct fm_frame_view *f)
{
    return fm_code_offset(&c->codes->list.data[f->number].code, c->layout, f->instr, &f->offset);
}

bool fm_walk_identify(const struct fm_walk_context *c, struct fm_frame_view *f)
{
    f->number = fm_codes_number(c->codes, f->code_at);
    return f->number != FM_NO_CODE && (locate(c, f) || fm_walk_renew(c, f, true));
}

bool fm_walk_renew(const struct fm_walk_context *c, struct fm_frame_view *f, bool at_once)
{
    uint32_t number = fm_codes_renew(c->codes, f->number, at_once, c->now_ns);
    if (number == f->number || number == FM_NO_CODE)
        return false;
    f->number = number;
    return locate(c, f);
}

void fm_walk_push(struct fm_walk *w, const struct fm_walk_context *c, const struct fm_frame_view *f)
{
    if (!c->codes->list.data[f->number].hidden)
        fm_vec_push(&w->frames, ((struct fm_raw_frame){ f->number, f->offset }));
}

void fm_walk_reverse(struct fm_walk *w)
{
    for (size_t i = 0, k = w->frames.len; i + 1 < k; i++) {
        struct fm_raw_frame swap = w->frames.data[i];
        w->frames.data[i] = w->frames.data[--k];
        w->frames.data[k] = swap;
    }
}

/* --- learning ----------------------------------------------------------------------------------- */

/* A chunk that was found in the list; what is known of it already is kept. */
static struct fm_chunk chunk_found(struct fm_walk *w, fm_addr at, uint32_t bytes, uint32_t used)
{
    struct fm_chunk *known = fm_walk_chunk_of(w, at);
    struct fm_chunk chunk = { .at = at, .bytes = bytes, .used = used };
    if (known && known->at == at && known->bytes == bytes && known->used > used)
        chunk.used = known->used;
    return chunk;
}

/* Take over the list of chunks that the thread state begins. Deeper ones that the plan had stay in it: a stack
 * that was deep becomes so again. */
static void learn_chunks(struct fm_walk *w, const struct fm_walk_context *c, fm_addr newest)
{
    const struct fm_layout *l = c->layout;
    FM_VEC(struct fm_chunk) found = { 0 };
    uint64_t left = MAX_CHUNKS_BYTES;
    fm_addr at = newest;
    while (at && found.len < FM_WALK_MAX_CHUNKS) {
        uint8_t head[64];
        if (l->chunk_header > sizeof head || fm_remote_read(c->remote, at, head, l->chunk_header) < 0)
            break;
        uint64_t bytes = fm_word(head, l->chunk_bytes);
        if (bytes < l->chunk_header || bytes > left)
            break;
        left -= bytes;
        /* older ones are used to their end, or nearly */
        uint32_t used = at == newest ? l->chunk_header : (uint32_t)bytes;
        fm_vec_push(&found, chunk_found(w, at, (uint32_t)bytes, used));
        at = fm_word(head, l->chunk_previous);
    }
    if (at)
        found.len = 0; /* without the oldest chunk no stack has an end */
    w->in_use = (uint32_t)found.len;
    bool same = found.len && found.len <= w->chunks.len && w->chunks.data[found.len - 1].at == newest;
    if (!same)
        w->chunks.len = 0;
    while (w->chunks.len < found.len)
        fm_vec_push(&w->chunks, ((struct fm_chunk){ 0 }));
    for (size_t i = 0; i < found.len; i++)
        w->chunks.data[i] = found.data[found.len - 1 - i];
    for (size_t i = found.len; i < w->chunks.len; i++) {
        if (w->chunks.data[i].bytes > left)
            w->chunks.len = i;
        else
            left -= w->chunks.data[i].bytes;
    }
    fm_vec_release(&found);
}

void fm_walk_reach(struct fm_walk *w, fm_addr end)
{
    struct fm_chunk *chunk = fm_walk_chunk_of(w, end - 1);
    if (!chunk)
        return;
    uint64_t used = end - chunk->at + SLACK_BYTES;
    chunk->used = used > chunk->bytes ? chunk->bytes : used > chunk->used ? (uint32_t)used : chunk->used;
}

/* The newest frame that a thread state names. */
static fm_addr newest_frame(const struct fm_walk_context *c, const uint8_t *thread)
{
    fm_addr at = fm_word(thread, c->layout->thread_frame);
    if (c->layout->frames == FM_FRAMES_CFRAME)
        return at ? fm_remote_pointer(c->remote, at + c->layout->cframe_frame) : 0;
    return at;
}

/* One frame at `at`, directly or from the copy of its chunk just read. */
static bool fetch(struct fm_walk *w, const struct fm_walk_context *c, fm_addr at, uint8_t *bytes)
{
    struct fm_chunk *chunk = fm_walk_chunk_of(w, at);
    uint32_t size = c->layout->frame_size;
    if (chunk && at + size <= chunk->at + chunk->copied) {
        memcpy(bytes, w->buffer.data + chunk->copy + (at - chunk->at), size);
        return true;
    }
    return fm_remote_read(c->remote, at, bytes, size) == 0;
}

/* Follow the frames from the newest down, one by one. With `learn`, only note where they lie;
 * otherwise gather the stack. */
static enum fm_walk_result follow(struct fm_walk *w, struct fm_walk_context *c, fm_addr at, bool learn)
{
    const struct fm_layout *l = c->layout;
    uint8_t bytes[FM_FRAME_MAX_BYTES];
    fm_addr above_loose = 0;
    if (l->frame_size > sizeof bytes)
        return FM_WALK_GONE;
    for (uint32_t n = 0; at; n++) {
        struct fm_frame_view f;
        if (n == FM_WALK_MAX_FRAMES || !fetch(w, c, at, bytes)) {
            w->partial = true;
            break;
        }
        bool plausible = fm_walk_decode(c, bytes, &f);
        bool ours = f.owner < l->owner_boundary;
        if (learn) {
            if (!ours)
                fm_walk_add_shim(w, at, f.previous);
            if (fm_walk_chunk_of(w, at))
                fm_walk_reach(w, at + l->frame_size);
            else if ((ours || above_loose) && w->loose.len < FM_WALK_MAX_LOOSE && !fm_walk_loose(w, at))
                fm_vec_push(&w->loose, (struct fm_loose){ .at = at });
            above_loose = ours && !fm_walk_chunk_of(w, at) ? at : 0;
        } else if (ours) {
            if (!plausible || !fm_walk_identify(c, &f)) {
                w->partial = true;
                break;
            }
            fm_walk_push(w, c, &f);
        }
        at = f.previous;
    }
    return FM_WALK_OK;
}

enum fm_walk_result fm_walk_older(struct fm_walk *w, struct fm_walk_context *c, fm_addr at)
{
    return follow(w, c, at, false);
}

bool fm_walk_is_same(const struct fm_walk *w, const struct fm_layout *l, const uint8_t *thread)
{
    return fm_word(thread, l->thread_interp) == w->interp;
}

enum fm_walk_result fm_walk_learn(struct fm_walk *w, struct fm_walk_context *c)
{
    const struct fm_layout *l = c->layout;
    uint8_t thread[2048];
    if (l->thread_size > sizeof thread || fm_remote_read(c->remote, w->thread, thread, l->thread_size) < 0)
        return FM_WALK_GONE;
    if (!fm_walk_is_same(w, l, thread))
        return FM_WALK_GONE;
    w->frames.len = 0;
    w->partial = false;
    if (w->loose.len == FM_WALK_MAX_LOOSE)
        w->loose.len = 0; /* most are of another time */
    w->cframe = l->frames == FM_FRAMES_CFRAME ? fm_word(thread, l->thread_frame) : 0;
    learn_chunks(w, c, fm_word(thread, l->thread_chunk));
    fm_addr newest = newest_frame(c, thread);
    if (fm_walk_chunk_of(w, newest))
        fm_walk_reach(w, newest + l->frame_size);
    if (!w->in_use && fm_word(thread, l->thread_chunk))
        return FM_WALK_OK; /* too deep to be copied */
    fm_walk_copy_chunks(w, c);
    return follow(w, c, newest, true);
}

enum fm_walk_result fm_walk_still(struct fm_walk *w, struct fm_walk_context *c)
{
    const struct fm_layout *l = c->layout;
    uint8_t thread[2048];
    if (l->thread_size > sizeof thread || fm_remote_read(c->remote, w->thread, thread, l->thread_size) < 0)
        return FM_WALK_GONE;
    if (!fm_walk_is_same(w, l, thread))
        return FM_WALK_GONE;
    fm_addr newest = newest_frame(c, thread);
    if (l->frames != FM_FRAMES_HEAP) {
        if (!w->in_use || w->chunks.data[w->in_use - 1].at != fm_word(thread, l->thread_chunk))
            learn_chunks(w, c, fm_word(thread, l->thread_chunk));
        if (fm_walk_chunk_of(w, newest))
            fm_walk_reach(w, newest + l->frame_size);
        fm_walk_copy_chunks(w, c);
    }
    w->frames.len = 0;
    w->partial = false;
    if (l->interp_code_generation != FM_ABSENT)
        w->generation = fm_remote_pointer(c->remote, w->interp + l->interp_code_generation);
    return follow(w, c, newest, false);
}

static enum fm_walk_result walk_chunks(struct fm_walk *w, struct fm_walk_context *c)
{
    int status = fm_walk_copy(w, c);
    w->frames.len = 0;
    w->partial = false;
    if (status < 0 || !fm_walk_is_same(w, c->layout, w->buffer.data + w->head))
        return FM_WALK_GONE;
    return fm_walk_finish_chunks(w, c);
}

enum fm_walk_result fm_walk_running(struct fm_walk *w, struct fm_walk_context *c)
{
    enum fm_walk_result result =
        c->layout->frames == FM_FRAMES_HEAP ? fm_walk_heap(w, c) : walk_chunks(w, c);
    return result == FM_WALK_OK && w->torn && !c->last_try ? FM_WALK_AGAIN : result;
}

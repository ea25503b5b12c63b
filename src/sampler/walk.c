/*
 * Plans and following of frames; see walk.h. The running thread of 3.11+ is in walk_chunks.c, that of
 * 3.9 and 3.10 in walk_heap.c.
 */
#include "sampler/walk.h"

#include <errno.h>
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

/* --- the plan ----------------------------------------------------------------------------------- */

static uint32_t place(struct fm_walk *w, struct fm_span *span, fm_addr at, size_t len)
{
    uint32_t offset = (uint32_t)w->buffer.len;
    size_t rounded = (len + 7) & ~(size_t)7;
    fm_vec_reserve(&w->buffer, w->buffer.len + rounded);
    w->buffer.len += rounded;
    *span = (struct fm_span){ at, NULL, len };
    return offset;
}

int fm_walk_plan(struct fm_walk *w, const struct fm_layout *l, struct fm_span *spans)
{
    uint32_t offsets[FM_WALK_MAX_SPANS];
    int n = 0;
    w->buffer.len = 0;
    w->head = offsets[n] = place(w, &spans[n], w->thread, l->thread_size);
    n++;
    if (l->frames == FM_FRAMES_CFRAME && w->cframe) {
        w->cframe_copy = offsets[n] = place(w, &spans[n], w->cframe, l->cframe_frame + 8);
        n++;
    }
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < w->loose.len; i++, n++)
            w->loose.data[i].copies[round] = offsets[n] =
                place(w, &spans[n], w->loose.data[i].at, l->frame_size);
        for (size_t i = 0; i < w->chunks.len && round == 0; i++, n++) {
            struct fm_chunk *chunk = &w->chunks.data[i];
            chunk->copy = offsets[n] = place(w, &spans[n], chunk->at, chunk->used);
            chunk->copied = chunk->used;
        }
    }
    for (size_t i = 0; i + 1 < w->chunks.len; i++, n++)
        w->chunks.data[i].again = offsets[n] =
            place(w, &spans[n], w->chunks.data[i].at, w->chunks.data[i].used);
    if (w->loose.len) { /* what the newest frame was, after everything */
        w->tail = offsets[n] = place(w, &spans[n], w->thread, l->thread_frame + 8);
        n++;
    }
    if (l->interp_code_generation != FM_ABSENT) {
        w->generation_copy = offsets[n] =
            place(w, &spans[n], w->interp + l->interp_code_generation, sizeof w->generation);
        n++;
    }
    for (int i = 0; i < n; i++) /* the buffer may have moved while it grew */
        spans[i].into = w->buffer.data + offsets[i];
    w->planned = true;
    return n;
}

/* Does the list of chunks that the thread state begins differ from the plan's? Then take it over. */
static bool learn_chunks(struct fm_walk *w, const struct fm_walk_context *c, fm_addr newest)
{
    const struct fm_layout *l = c->layout;
    FM_VEC(struct fm_chunk) found = { 0 };
    uint64_t left = MAX_CHUNKS_BYTES;
    for (fm_addr at = newest; at && found.len < FM_WALK_MAX_CHUNKS;) {
        uint8_t head[64];
        if (l->chunk_header > sizeof head || fm_remote_read(c->remote, at, head, l->chunk_header) < 0)
            break;
        uint64_t bytes = fm_word(head, l->chunk_bytes);
        if (bytes < l->chunk_header || bytes > left)
            break;
        left -= bytes;
        struct fm_chunk *known = fm_walk_chunk_of(w, at);
        struct fm_chunk chunk = { .at = at, .bytes = (uint32_t)bytes, .used = l->chunk_header };
        if (known && known->at == at && known->bytes == bytes)
            chunk.used = known->used;
        if (at != newest) /* older ones are used to their end, or nearly */
            chunk.used = chunk.bytes;
        fm_vec_push(&found, chunk);
        at = fm_word(head, l->chunk_previous);
    }
    w->chunks.len = 0;
    for (size_t i = found.len; i-- > 0;)
        fm_vec_push(&w->chunks, found.data[i]);
    fm_vec_release(&found);
    return w->chunks.len > 0;
}

void fm_walk_reach(struct fm_walk *w, fm_addr end)
{
    struct fm_chunk *chunk = fm_walk_chunk_of(w, end - 1);
    if (!chunk)
        return;
    uint64_t used = end - chunk->at + SLACK_BYTES;
    chunk->used = used > chunk->bytes ? chunk->bytes : used > chunk->used ? (uint32_t)used : chunk->used;
}

fm_addr fm_walk_newest(const struct fm_walk *w, const struct fm_walk_context *c, const uint8_t *thread)
{
    fm_addr at = fm_word(thread, c->layout->thread_frame);
    (void)w;
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

static bool read_chunks(struct fm_walk *w, const struct fm_walk_context *c)
{
    struct fm_span spans[FM_WALK_MAX_CHUNKS];
    w->buffer.len = 0;
    if (!w->chunks.len)
        return true;
    for (size_t i = 0; i < w->chunks.len; i++) {
        struct fm_chunk *chunk = &w->chunks.data[i];
        chunk->copy = place(w, &spans[i], chunk->at, chunk->used);
        chunk->copied = chunk->used;
    }
    for (size_t i = 0; i < w->chunks.len; i++)
        spans[i].into = w->buffer.data + w->chunks.data[i].copy;
    return fm_remote_read_spans(c->remote, spans, (int)w->chunks.len) == (int)w->chunks.len;
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
        bool known_far = learn && l->frames == FM_FRAMES_HEAP && w->loose.len == FM_WALK_MAX_LOOSE;
        if (known_far)
            break;
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
            else if ((ours || above_loose) && w->loose.len < FM_WALK_MAX_LOOSE)
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

static bool is_same_thread(const struct fm_walk *w, const struct fm_layout *l, const uint8_t *thread)
{
    return fm_word(thread, l->thread_interp) == w->interp;
}

enum fm_walk_result fm_walk_learn(struct fm_walk *w, struct fm_walk_context *c)
{
    const struct fm_layout *l = c->layout;
    uint8_t thread[2048];
    if (l->thread_size > sizeof thread || fm_remote_read(c->remote, w->thread, thread, l->thread_size) < 0)
        return FM_WALK_GONE;
    if (!is_same_thread(w, l, thread))
        return FM_WALK_GONE;
    w->loose.len = w->frames.len = 0;
    w->partial = false;
    w->cframe = l->frames == FM_FRAMES_CFRAME ? fm_word(thread, l->thread_frame) : 0;
    if (l->frames != FM_FRAMES_HEAP)
        learn_chunks(w, c, fm_word(thread, l->thread_chunk));
    fm_addr newest = fm_walk_newest(w, c, thread);
    if (fm_walk_chunk_of(w, newest))
        fm_walk_reach(w, newest + l->frame_size);
    if (!read_chunks(w, c))
        w->chunks.len = 0;
    return follow(w, c, newest, true);
}

enum fm_walk_result fm_walk_still(struct fm_walk *w, struct fm_walk_context *c)
{
    const struct fm_layout *l = c->layout;
    uint8_t thread[2048];
    if (l->thread_size > sizeof thread || fm_remote_read(c->remote, w->thread, thread, l->thread_size) < 0)
        return FM_WALK_GONE;
    if (!is_same_thread(w, l, thread))
        return FM_WALK_GONE;
    fm_addr newest = fm_walk_newest(w, c, thread);
    if (l->frames != FM_FRAMES_HEAP) {
        if (!w->chunks.len || w->chunks.data[w->chunks.len - 1].at != fm_word(thread, l->thread_chunk))
            learn_chunks(w, c, fm_word(thread, l->thread_chunk));
        if (fm_walk_chunk_of(w, newest))
            fm_walk_reach(w, newest + l->frame_size);
        if (!read_chunks(w, c))
            w->chunks.len = 0;
    }
    w->frames.len = 0;
    w->partial = false;
    if (l->interp_code_generation != FM_ABSENT)
        w->generation = fm_remote_pointer(c->remote, w->interp + l->interp_code_generation);
    return follow(w, c, newest, false);
}

enum fm_walk_result fm_walk_finish(struct fm_walk *w, struct fm_walk_context *c, int got)
{
    const struct fm_layout *l = c->layout;
    w->frames.len = 0;
    w->partial = false;
    if (!w->planned || got < 1 || !is_same_thread(w, l, w->buffer.data + w->head))
        return FM_WALK_GONE;
    if (l->frames == FM_FRAMES_HEAP)
        return fm_walk_finish_heap(w, c, got);
    return fm_walk_finish_chunks(w, c, got);
}

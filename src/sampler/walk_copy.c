/*
 * What is copied of a running thread of 3.11 and later: the plan as a list of spans, read at once; see walk.h.
 *
 * The order of the spans is that of the instants at which they are copied. Frames outside the chunks lie around
 * them, those that were last on the stack next to them. Chunks come oldest first, so that the
 * newest of those in use is the last, and then the older ones again: what both copies of them agree on held when
 * the newest was copied. Chunks that were in use when the stack was deeper are planned, too: memory of a chunk is
 * given back to the system when it is not used any more, so where the read stops tells how deep the stack is;
 * the rest is then read by itself.
 */
#include <errno.h>

#include "sampler/walk_parts.h"

uint32_t fm_walk_place(struct fm_walk *w, struct fm_span *span, fm_addr at, size_t len)
{
    uint32_t offset = (uint32_t)w->buffer.len;
    size_t rounded = (len + 7) & ~(size_t)7;
    fm_vec_reserve(&w->buffer, w->buffer.len + rounded);
    w->buffer.len += rounded;
    *span = (struct fm_span){ at, NULL, len };
    return offset;
}

static uint32_t place_chunk(struct fm_walk *w, struct fm_span *span, struct fm_chunk *chunk)
{
    chunk->copied = chunk->used;
    return fm_walk_place(w, span, chunk->at, chunk->used);
}

/* The spans of the plan, in groups; each begins where the one before ends. */
struct plan {
    struct fm_span spans[FM_WALK_MAX_SPANS];
    int chunks, after_chunks, again, rest, n;
};

static void make_plan(struct fm_walk *w, const struct fm_layout *l, struct plan *p)
{
    uint32_t offsets[FM_WALK_MAX_SPANS];
    struct fm_span *spans = p->spans;
    int n = 0;
    w->buffer.len = 0;
    w->head = offsets[n] = fm_walk_place(w, &spans[n], w->thread, l->thread_size);
    n++;
    if (l->frames == FM_FRAMES_CFRAME && w->cframe) {
        w->cframe_copy = offsets[n] = fm_walk_place(w, &spans[n], w->cframe, l->cframe_frame + 8);
        n++;
    }
    for (size_t i = 0; i < w->loose.len; i++, n++)
        w->loose.data[i].copies[0] = offsets[n] = fm_walk_place(w, &spans[n], w->loose.data[i].at, l->frame_size);
    p->chunks = n;
    for (size_t i = 0; i < w->chunks.len; i++, n++)
        w->chunks.data[i].copy = offsets[n] = place_chunk(w, &spans[n], &w->chunks.data[i]);
    p->after_chunks = n;
    for (size_t i = w->loose.len; i-- > 0; n++)
        w->loose.data[i].copies[1] = offsets[n] = fm_walk_place(w, &spans[n], w->loose.data[i].at, l->frame_size);
    p->again = n;
    for (size_t i = 0; i + 1 < w->chunks.len; i++, n++)
        w->chunks.data[i].again = offsets[n] = place_chunk(w, &spans[n], &w->chunks.data[i]);
    p->rest = n;
    if (l->interp_code_generation != FM_ABSENT) {
        w->generation_copy = offsets[n] =
            fm_walk_place(w, &spans[n], w->interp + l->interp_code_generation, sizeof w->generation);
        n++;
    }
    for (int i = 0; i < n; i++) /* the buffer may have moved while it grew */
        spans[i].into = w->buffer.data + offsets[i];
    p->n = n;
}

/* The read stopped at a chunk: it and deeper ones are not in use. Read what comes after them. */
static bool read_rest(struct fm_walk *w, const struct fm_walk_context *c, struct plan *p, int got)
{
    int n = 0;
    if (got <= p->chunks || got >= p->after_chunks)
        return false;
    w->in_use = (uint32_t)(got - p->chunks);
    for (int i = p->after_chunks; i < p->n; i++) {
        bool unused = i >= p->again && i < p->rest && (uint32_t)(i - p->again) + 1 >= w->in_use;
        if (!unused)
            p->spans[n++] = p->spans[i];
    }
    return n == 0 || fm_remote_read_spans(c->remote, p->spans, n) == n;
}

/* A copy that took longer than such copies take was interrupted, by the scheduler or by the machine below
 * ours, and may be of two instants. What is usual is learnt: the least so far, given up slowly. */
void fm_walk_time(struct fm_walk *w, int n, uint64_t took_ns)
{
    /* More of a large copy is in another processor's cache when much of it is in use. */
    uint64_t allowed_ns = 300 + w->buffer.len / 4;
    int *spans = &w->usual[w->in_use % FM_COUNT(w->usual)].spans;
    uint64_t *usual_ns = &w->usual[w->in_use % FM_COUNT(w->usual)].ns;
    if (n != *spans || took_ns < *usual_ns) {
        *spans = n;
        *usual_ns = took_ns;
        w->torn = false;
        return;
    }
    w->torn = took_ns > *usual_ns + *usual_ns / 2 + allowed_ns;
    *usual_ns += *usual_ns / 64 + 1;
}

int fm_walk_copy(struct fm_walk *w, const struct fm_walk_context *c)
{
    struct plan p;
    make_plan(w, c->layout, &p);
    w->in_use = (uint32_t)w->chunks.len;
    uint64_t begin_ns = fm_clock_ns();
    int got = fm_remote_read_spans(c->remote, p.spans, p.n);
    w->complete = got == p.n || (got > 0 && read_rest(w, c, &p, got));
    if (!w->complete) { /* of older chunks there is one copy only: what the oldest holds is certain */
        w->in_use = got > p.chunks;
        for (size_t i = 0; i < w->loose.len; i++)
            w->loose.data[i].copies[1] = 0;
    }
    w->torn = false;
    if (w->complete)
        fm_walk_time(w, p.n, fm_clock_ns() - begin_ns);
    return got < 1 ? (got < 0 ? got : -EFAULT) : 0;
}

void fm_walk_copy_chunks(struct fm_walk *w, const struct fm_walk_context *c)
{
    struct fm_span spans[FM_WALK_MAX_CHUNKS];
    int n = (int)w->in_use;
    w->buffer.len = 0;
    for (int i = 0; i < n; i++)
        w->chunks.data[i].copy = place_chunk(w, &spans[i], &w->chunks.data[i]);
    for (int i = 0; i < n; i++)
        spans[i].into = w->buffer.data + w->chunks.data[i].copy;
    if (n && fm_remote_read_spans(c->remote, spans, n) < n)
        w->in_use = (uint32_t)(w->chunks.len = 0);
    for (size_t i = w->in_use; i < w->chunks.len; i++)
        w->chunks.data[i].copied = 0;
}

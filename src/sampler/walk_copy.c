/*
 * What is copied of a running thread of 3.11 and later: the plan as a list of spans, read at once; see walk.h.
 *
 * The order of the spans is that of the instants at which they are copied. First comes what most stacks consist
 * of: the thread state, which names the newest chunk, and the oldest chunk. Frames outside the chunks lie around
 * it, those that were last on the stack next to it.
 *
 * Only a stack that goes beyond its oldest chunk takes a second read: of the newer chunks, oldest first, and then of
 * all but the newest again. What both copies of a chunk agree on held when the newest was copied. The instant that
 * counts is that of the first read, whatever becomes of the second: each span waits for the lock of the target's
 * memory map, and chunks come and go by changes of that map. Such a wait takes long enough for a stack to be gone, and
 * to look again until nothing disturbs would leave out all that is deep.
 */
#include <errno.h>
#include <sys/resource.h>

#include "sampler/walk_parts.h"

#define COLD_NS      200000
#define DEEP_NS      5000000 /* for how long after a deep stack a read may wait for the memory map */
#define WAITING_NS   5000000 /* … and after one that did, another is to be expected */
#define MAX_FAILED   3 /* reads of newer chunks, before the plan is doubted */

uint32_t fm_walk_place(struct fm_walk *w, struct fm_span *span, fm_addr at, size_t len)
{
    uint32_t offset = (uint32_t)w->buffer.len;
    size_t rounded = (len + 7) & ~(size_t)7;
    fm_vec_reserve(&w->buffer, w->buffer.len + rounded);
    w->buffer.len += rounded;
    *span = (struct fm_span){ at, NULL, len };
    return offset;
}

struct plan {
    struct fm_span spans[FM_WALK_MAX_SPANS];
    uint32_t offsets[FM_WALK_MAX_SPANS];
    int n;
    uint64_t took_ns; /* to read it */
};

static uint32_t add(struct fm_walk *w, struct plan *p, fm_addr at, size_t len)
{
    p->offsets[p->n] = fm_walk_place(w, &p->spans[p->n], at, len);
    return p->offsets[p->n++];
}

static uint32_t add_chunk(struct fm_walk *w, struct plan *p, struct fm_chunk *chunk)
{
    chunk->copied = chunk->used;
    return add(w, p, chunk->at, chunk->used);
}

/* How many spans were read, or negative. */
static int read_plan(struct fm_walk *w, const struct fm_walk_context *c, struct plan *p)
{
    for (int i = 0; i < p->n; i++) /* the buffer may have moved while it grew */
        p->spans[i].into = w->buffer.data + p->offsets[i];
    uint64_t begin_ns = fm_clock_ns();
    int got = fm_remote_read_spans(c->remote, p->spans, p->n);
    w->copied_ns = fm_clock_ns();
    p->took_ns = w->copied_ns - begin_ns;
    return got;
}

/* A copy that took longer than such copies take was interrupted, by the scheduler or by the machine below
 * ours, and may be of two instants. What is usual is learnt: the least so far, given up slowly. */
bool fm_walk_is_late(struct fm_usual_time *usual, int spans, size_t bytes, uint64_t took_ns)
{
    /* More of a large copy is in another processor's cache when much of it is in use. */
    uint64_t allowed_ns = 300 + bytes / 4;
    if (spans != usual->spans || took_ns < usual->ns) {
        *usual = (struct fm_usual_time){ spans, took_ns };
        return false;
    }
    bool late = took_ns > usual->ns + usual->ns / 2 + allowed_ns;
    usual->ns += usual->ns / 64 + 1;
    return late;
}

/* How long before the look began; negative: in it. */
static int64_t since(const struct fm_walk_context *c, uint64_t ns)
{
    return (int64_t)(c->now_ns - ns);
}

/* How often this thread gave up its processor. */
static long waits(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

/* A read that waited for the lock of the target's memory map, which is taken for each span, was late but has not
 * been interrupted within a span. To ask for that takes a tenth of a look, so it is done where stacks are deep: these
 * change the map. */
static bool is_torn(struct fm_walk *w, const struct plan *p, long waits_before)
{
    if (!fm_walk_is_late(&w->usual[0], p->n, w->buffer.len, p->took_ns))
        return false;
    if (waits_before < 0 || waits() == waits_before)
        return true;
    w->waited_ns = w->copied_ns;
    w->read_ns = w->copied_ns; /* most comes after the wait */
    return false;
}

/* The read stopped at span `at`. If that is one of a frame outside the chunks, its memory was given back, and it would
 * stop every read to come. `first` is the first such span; behind all of them comes the chunk, and they in reverse. */
static void drop_unreadable(struct fm_walk *w, int at, int first)
{
    int n = (int)w->loose.len, behind = first + n + (w->chunks.len > 0);
    int gone = at >= first && at < first + n ? at - first : at >= behind && at < behind + n ? behind + n - 1 - at : -1;
    if (gone >= 0)
        fm_walk_forget(w, (size_t)gone);
}

/* All but the newer chunks. Returns how many spans were read, or negative. */
static int copy_oldest(struct fm_walk *w, const struct fm_walk_context *c)
{
    const struct fm_layout *l = c->layout;
    struct plan p;
    p.n = 0;
    w->buffer.len = 0;
    w->head = add(w, &p, w->thread, l->thread_size);
    if (l->frames == FM_FRAMES_CFRAME && w->cframe)
        w->cframe_copy = add(w, &p, w->cframe, l->cframe_frame + 8);
    int first_loose = p.n;
    for (size_t i = 0; i < w->loose.len; i++)
        w->loose.data[i].copies[0] = add(w, &p, w->loose.data[i].at, l->frame_size);
    int before_chunk = p.n;
    if (w->chunks.len)
        w->chunks.data[0].copy = add_chunk(w, &p, &w->chunks.data[0]);
    for (size_t i = w->loose.len; i-- > 0;)
        w->loose.data[i].copies[1] = add(w, &p, w->loose.data[i].at, l->frame_size);
    if (l->interp_code_generation != FM_ABSENT)
        w->generation_copy = add(w, &p, w->interp + l->interp_code_generation, sizeof w->generation);
    long waits_before = since(c, w->deep_ns) < DEEP_NS ? waits() : -1;
    int got = read_plan(w, c, &p);
    w->in_use = w->chunks.len && got > before_chunk;
    w->complete = got == p.n;
    w->unfit = !w->complete;
    w->read_ns = w->copied_ns - p.took_ns / 2;
    w->torn = w->complete && is_torn(w, &p, waits_before);
    if (!w->complete)
        w->generation_copy = 0;
    for (size_t i = 0; i < w->loose.len && !w->complete; i++)
        w->loose.data[i].copies[1] = 0;
    for (size_t i = 1; i < w->chunks.len; i++)
        w->chunks.data[i].copied = 0;
    if (got > 0 && got < p.n)
        drop_unreadable(w, got, first_loose);
    return got;
}

/* The chunks up to that with this index. They stay unused, except for their memory, if one cannot be read. */
static void copy_newer(struct fm_walk *w, const struct fm_walk_context *c, uint32_t newest)
{
    struct plan p;
    size_t before = w->buffer.len;
    p.n = 0;
    for (uint32_t i = 1; i <= newest; i++)
        w->chunks.data[i].copy = add_chunk(w, &p, &w->chunks.data[i]);
    uint32_t named = add(w, &p, w->thread + c->layout->thread_chunk, sizeof(fm_addr));
    for (uint32_t i = 0; i < newest; i++)
        w->chunks.data[i].again = add(w, &p, w->chunks.data[i].at, w->chunks.data[i].copied);
    uint32_t generation = 0;
    if (w->generation_copy)
        generation = add(w, &p, w->interp + c->layout->interp_code_generation, sizeof w->generation);
    if (read_plan(w, c, &p) < p.n) { /* they are gone by now, or lie elsewhere */
        w->unfit = ++w->failed > MAX_FAILED;
        for (uint32_t i = 1; i <= newest; i++)
            w->chunks.data[i].copied = 0;
        return;
    }
    w->failed = 0;
    w->generation_copy = generation;
    struct fm_usual_time *usual = &w->usual[1 + newest % (FM_COUNT(w->usual) - 1)]; /* [0] is the first read's */
    bool late = fm_walk_is_late(usual, p.n, w->buffer.len - before, p.took_ns);
    w->in_use = newest + !late; /* of older ones there are two copies */
    w->complete = !late && fm_word(w->buffer.data, named) == w->chunks.data[newest].at;
}

bool fm_walk_is_cold(const struct fm_walk *w, const struct fm_walk_context *c)
{
    return since(c, w->copied_ns) > COLD_NS && since(c, w->waited_ns) > WAITING_NS;
}

int fm_walk_copy(struct fm_walk *w, const struct fm_walk_context *c)
{
    if (fm_walk_is_cold(w, c))
        copy_oldest(w, c);
    int got = copy_oldest(w, c);
    if (got < 1)
        return got < 0 ? got : -EFAULT;
    fm_addr newest = fm_word(w->buffer.data + w->head, c->layout->thread_chunk);
    if (!w->complete || !w->in_use || newest == w->chunks.data[0].at)
        return 0;
    uint32_t i = 1;
    while (i < w->chunks.len && w->chunks.data[i].at != newest)
        i++;
    w->complete = false;
    w->unfit = i == w->chunks.len;
    w->deep_ns = c->now_ns;
    if (!w->unfit && !w->torn)
        copy_newer(w, c, i);
    return 0;
}

void fm_walk_copy_chunks(struct fm_walk *w, const struct fm_walk_context *c)
{
    struct plan p;
    p.n = 0;
    w->buffer.len = 0;
    for (uint32_t i = 0; i < w->in_use; i++)
        w->chunks.data[i].copy = add_chunk(w, &p, &w->chunks.data[i]);
    if (p.n && read_plan(w, c, &p) < p.n)
        w->in_use = (uint32_t)(w->chunks.len = 0);
    for (size_t i = w->in_use; i < w->chunks.len; i++)
        w->chunks.data[i].copied = 0;
}

/*
 * What lies beside calls in Chrome's trace events: instants, counters, and what is asynchronous, whose begins and ends
 * belong together by a key.
 */
#include "record/formats/timeline/chrome.h"
#include "record/model/trace/pack/build.h"

void fm_chrome_async_begin(struct fm_chrome *c, uint64_t key, const struct fm_chrome_mark *mark)
{
    struct fm_chrome_mark made = *mark;
    uint32_t *last = fm_map_at(&c->open_marks, key, 0, NULL);
    made.open = true;
    made.before = *last;
    *last = (uint32_t)c->marks.len + 1;
    fm_vec_push(&c->marks, made);
}

bool fm_chrome_async_end(struct fm_chrome *c, uint64_t key, int64_t at_ns)
{
    uint32_t *last = fm_map_at(&c->open_marks, key, 0, NULL);
    if (!*last)
        return false;
    struct fm_chrome_mark *mark = &c->marks.data[*last - 1];
    *last = mark->before;
    mark->open = false;
    mark->end_ns = at_ns > mark->begin_ns ? at_ns : mark->begin_ns;
    return true;
}

/* The thread of a mark: its own if that has calls, else any of its process; NULL if that has none. */
static const struct fm_chrome_thread *
thread_of(const struct fm_chrome *c, const struct fm_chrome_mark *mark, const uint32_t *any_of)
{
    const uint32_t *process = fm_map_find(&c->processes, mark->process);
    const uint32_t *at =
        process ? fm_map_find(&c->threads, fm_map_pair(*process, mark->thread)) : NULL;
    if (at && c->thread_list.data[*at].seen)
        return &c->thread_list.data[*at];
    if (!process || any_of[*process] == FM_NONE)
        return NULL;
    return &c->thread_list.data[any_of[*process]];
}

static uint64_t since(int64_t ns, int64_t start_ns)
{
    return ns > start_ns ? (uint64_t)ns - (uint64_t)start_ns + 1 : 1;
}

void fm_chrome_give_marks(struct fm_chrome *c, struct fm_trace_build **builds, int64_t start_ns)
{
    size_t processes = c->p->processes.len;
    fm_autofree uint32_t *any_of = fm_malloc((processes + 1) * sizeof *any_of);
    for (size_t i = 0; i < processes; i++)
        any_of[i] = FM_NONE;
    for (size_t i = c->thread_list.len; i-- > 0;)
        if (c->thread_list.data[i].seen)
            any_of[c->thread_list.data[i].process] = (uint32_t)i;
    for (size_t i = 0; i < c->marks.len; i++) {
        const struct fm_chrome_mark *mark = &c->marks.data[i];
        const struct fm_chrome_thread *t = thread_of(c, mark, any_of);
        if (!t || !builds[t->process])
            continue;
        int64_t end_ns = mark->open && t->last_ns > mark->begin_ns ? t->last_ns : mark->end_ns;
        struct fm_mark given = { .begin_ns = since(mark->begin_ns, start_ns),
                                 .end_ns = since(end_ns, start_ns),
                                 .kind = mark->kind,
                                 .name = mark->name,
                                 .func = FM_NONE,
                                 .value = mark->value };
        fm_trace_build_mark(builds[t->process], t->thread, &given);
    }
}

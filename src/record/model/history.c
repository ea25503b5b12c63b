/* Slices of memory over time; see history.h. */
#include "record/model/history.h"

#include <string.h>

#include "base/memory.h"
#include "record/model/profile.h"

void fm_slices_release(struct fm_slices *s)
{
    fm_buffer_release(&s->bytes);
    fm_buffer_release(&s->open);
    *s = (struct fm_slices){ 0 };
}

void fm_slices_begin(struct fm_slices *s, uint64_t at_ns)
{
    uint64_t at_us = at_ns / 1000;
    /* No two are of one time: whoever reads them as rows tells them apart by it. */
    uint64_t since = at_us > s->last_us ? at_us - s->last_us : s->count > 0;
    fm_buffer_clear(&s->open);
    fm_buffer_add_varint(&s->open, since);
    s->last_us += since;
    s->context = 0;
}

void fm_slices_change(struct fm_slices *s, const struct fm_history_change *change)
{
    fm_buffer_add_varint(&s->open, fm_zigzag((int64_t)change->context - (int64_t)s->context));
    fm_buffer_add_varint(&s->open, fm_zigzag(change->bytes));
    fm_buffer_add_varint(&s->open, fm_zigzag(change->blocks));
    s->context = change->context;
}

void fm_slices_end(struct fm_slices *s)
{
    fm_buffer_add_varint(&s->bytes, s->open.len);
    fm_buffer_add(&s->bytes, s->open.data, s->open.len);
    s->count++;
}

struct fm_slices_walk fm_slices_walk(const void *bytes, size_t len)
{
    return (struct fm_slices_walk){ .rest = fm_cursor_over(len ? bytes : "", len) };
}

bool fm_slices_next(struct fm_slices_walk *w, uint64_t *ret_at_ns)
{
    uint64_t len = fm_cursor_left(&w->rest) ? fm_cursor_varint(&w->rest) : 0;
    const uint8_t *bytes = len ? fm_cursor_bytes(&w->rest, len) : NULL;
    if (!bytes)
        return false;
    w->slice = fm_cursor_over(bytes, len);
    uint64_t since_us = fm_cursor_varint(&w->slice);
    if (w->slice.failed || since_us > UINT64_MAX / 1000 - w->at_us) {
        w->rest.failed = true;
        return false;
    }
    w->at_us += since_us;
    w->context = 0;
    *ret_at_ns = w->at_us * 1000;
    return true;
}

bool fm_slices_next_change(struct fm_slices_walk *w, struct fm_history_change *ret)
{
    if (w->slice.failed || !fm_cursor_left(&w->slice))
        return false;
    int64_t step = fm_unzigzag(fm_cursor_varint(&w->slice));
    ret->bytes = fm_unzigzag(fm_cursor_varint(&w->slice));
    ret->blocks = fm_unzigzag(fm_cursor_varint(&w->slice));
    int64_t context = fm_sum(step, w->context);
    if (w->slice.failed || context < 0 || context >= UINT32_MAX) {
        w->slice.failed = true;
        return false;
    }
    ret->context = w->context = (uint32_t)context;
    return true;
}

/* ---- thinning out ---- */

/* The next change of one of two slices that ascend; a context that both have is one change. */
struct slice_end {
    struct fm_slices_walk walk;
    struct fm_history_change next;
    bool more;
};

static void step(struct slice_end *e)
{
    e->more = fm_slices_next_change(&e->walk, &e->next);
}

static void combine(struct fm_slices *into, const struct fm_slices_walk *first,
                    const struct fm_slices_walk *second)
{
    struct slice_end a = { .walk = *first }, b = { .walk = *second };
    step(&a);
    step(&b);
    while (a.more || b.more) {
        bool take_a = a.more && (!b.more || a.next.context <= b.next.context);
        bool take_b = b.more && (!a.more || b.next.context <= a.next.context);
        struct fm_history_change sum = take_a ? a.next : b.next;
        if (take_a && take_b) {
            sum.bytes = fm_sum(a.next.bytes, b.next.bytes);
            sum.blocks = fm_sum(a.next.blocks, b.next.blocks);
        }
        if (sum.bytes || sum.blocks)
            fm_slices_change(into, &sum);
        if (take_a)
            step(&a);
        if (take_b)
            step(&b);
    }
}

void fm_slices_thin(struct fm_slices *s)
{
    struct fm_slices thin = { 0 };
    struct fm_slices_walk w = fm_slices_walk(s->bytes.data, s->bytes.len);
    uint64_t at_ns;
    while (fm_slices_next(&w, &at_ns)) {
        struct fm_slices_walk first = w, none = { 0 };
        bool two = fm_slices_next(&w, &at_ns);
        fm_slices_begin(&thin, at_ns);
        combine(&thin, &first, two ? &w : &none);
        fm_slices_end(&thin);
    }
    fm_slices_release(s);
    *s = thin;
}

void fm_history_release(struct fm_history *h)
{
    fm_vec_release(&h->contexts);
    fm_slices_release(&h->slices);
}

/* ---- an instant ---- */

static bool is_of(const struct fm_profile *p, uint32_t process, uint32_t run)
{
    return process < p->processes.len && p->processes.data[process].run == run;
}

bool fm_history_span(const struct fm_profile *p, uint32_t run, uint64_t *ret_begin_ns,
                     uint64_t *ret_end_ns)
{
    uint64_t begin_ns = UINT64_MAX, end_ns = 0;
    for (size_t i = 0; i < p->memory.histories.len; i++) {
        const struct fm_history *h = &p->memory.histories.data[i];
        if (!is_of(p, h->process, run))
            continue;
        begin_ns = h->begin_ns < begin_ns ? h->begin_ns : begin_ns;
        end_ns = h->end_ns > end_ns ? h->end_ns : end_ns;
    }
    if (begin_ns > end_ns)
        return false;
    /* Curves of whole runs do not say which: they count where there is one run only. */
    bool one = fm_profile_runs(p) == 1;
    for (size_t i = 0; i < p->memory.points.len; i++) {
        const struct fm_memory_point *point = &p->memory.points.data[i];
        if ((one || is_of(p, point->process, run)) && point->at_ns < begin_ns)
            begin_ns = point->at_ns;
    }
    *ret_begin_ns = begin_ns;
    *ret_end_ns = end_ns;
    return true;
}

struct alive {
    int64_t bytes, blocks;
};

/* What contexts had alive at that time, by number of the history. When that was looked at. */
static uint64_t sum_up(const struct fm_history *h, uint64_t until_ns, struct alive *sums)
{
    struct fm_slices_walk w = fm_slices_walk(h->slices.bytes.data, h->slices.bytes.len);
    struct fm_history_change change;
    uint64_t at_ns, shown_ns = h->begin_ns;
    while (fm_slices_next(&w, &at_ns) && at_ns <= until_ns) {
        shown_ns = at_ns > shown_ns ? at_ns : shown_ns;
        while (fm_slices_next_change(&w, &change)) {
            if (change.context >= h->contexts.len)
                continue;
            struct alive *sum = &sums[change.context];
            sum->bytes = fm_sum(sum->bytes, change.bytes);
            sum->blocks = fm_sum(sum->blocks, change.blocks);
        }
    }
    return shown_ns;
}

static int64_t negative(int64_t number)
{
    return number == INT64_MIN ? INT64_MAX : -number;
}

/* Add, or take away, what was alive at that time. When that was looked at. */
static uint64_t add_alive(struct fm_profile *p, const struct fm_history *h, uint64_t until_ns,
                          bool add)
{
    fm_autofree struct alive *sums = fm_calloc(h->contexts.len + 1, sizeof *sums);
    uint64_t shown_ns = sum_up(h, until_ns, sums);
    for (size_t i = 0; i < h->contexts.len; i++) {
        uint32_t node = h->contexts.data[i];
        if (sums[i].bytes)
            fm_profile_add(p, FM_METRIC_THEN, node, add ? sums[i].bytes : negative(sums[i].bytes));
        if (sums[i].blocks)
            fm_profile_add(p, FM_METRIC_THEN_BLOCKS, node,
                           add ? sums[i].blocks : negative(sums[i].blocks));
    }
    return shown_ns;
}

/* When `moment` is in a run; −1: before or after it. Percents are there whatever rounding does. */
static double moment_ns(const struct fm_moment *moment, uint64_t begin_ns, uint64_t end_ns)
{
    double length = (double)(end_ns - begin_ns);
    double at = moment->percent ? length * moment->value / 100 : moment->value;
    if (moment->percent && at > length)
        at = length;
    return at >= 0 && at <= length ? at : -1;
}

static bool show(struct fm_profile *p, uint32_t run, const struct fm_moment *moment, bool add,
                 struct fm_shown *shown)
{
    uint64_t begin_ns, end_ns;
    if (!fm_history_span(p, run, &begin_ns, &end_ns))
        return false;
    double at = moment_ns(moment, begin_ns, end_ns);
    if (at < 0)
        return false;
    uint64_t until_ns = begin_ns + (uint64_t)at;
    until_ns = until_ns < end_ns ? until_ns : end_ns;
    shown->asked_ns = at;
    shown->begin_ns = begin_ns;
    for (size_t i = 0; i < p->memory.histories.len; i++) {
        const struct fm_history *h = &p->memory.histories.data[i];
        if (!is_of(p, h->process, run) || h->begin_ns > until_ns || h->end_ns < until_ns)
            continue;
        double at_ns = (double)add_alive(p, h, until_ns, add) - (double)begin_ns;
        shown->shown_ns = !shown->processes || at_ns < shown->shown_ns ? at_ns : shown->shown_ns;
        shown->exact = h->exact && (shown->exact || !shown->processes);
        shown->processes++;
    }
    if (!shown->processes)
        shown->shown_ns = at;
    return true;
}

bool fm_history_show(struct fm_profile *p, const struct fm_moment *from, const struct fm_moment *to,
                     struct fm_shown *ret_from, struct fm_shown *ret_to)
{
    bool any_from = false, any_to = false;
    *ret_from = *ret_to = (struct fm_shown){ 0 };
    for (int m = FM_METRIC_THEN; m <= FM_METRIC_THEN_BLOCKS; m++) {
        free(p->columns[m].data);
        p->columns[m].data = NULL;
    }
    for (size_t i = 0; i < p->processes.len; i++) {
        uint32_t run = p->processes.data[i].run;
        if (i && p->processes.data[i - 1].run == run)
            continue; /* those of a run stand together */
        any_to = show(p, run, to, true, ret_to) || any_to;
        if (from)
            any_from = show(p, run, from, false, ret_from) || any_from;
    }
    return any_to && (any_from || !from);
}

/* Slices of a heap store; see live_slices.h. */
#include "record/model/live/live_slices.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "record/capture/live_slices.h"

struct slice_load {
    struct fm_profile *p;
    const struct fm_sliced *of;
    struct fm_history history;
    struct fm_map context_of;                 /* node → context */
    FM_VEC(struct fm_history_change) changes; /* of the slice being read */
    FM_VEC(struct fm_history_change) alive;   /* by context, after it */
    uint64_t bad;
};

/* The context of an account; FM_NONE if there is no such account. */
static uint32_t context_of(struct slice_load *l, uint64_t account)
{
    const struct fm_sliced *of = l->of;
    uint32_t node = account < of->account_count ? of->accounts[account].node : 0;
    node = node && node < of->node_count ? of->place[node] : FM_NONE;
    if (node == FM_NONE)
        return FM_NONE;
    bool is_new;
    uint32_t *context = fm_map_at(&l->context_of, node, (uint32_t)l->history.contexts.len, &is_new);
    if (is_new) {
        struct fm_history_change none = { *context, 0, 0 };
        fm_vec_push(&l->history.contexts, node);
        fm_vec_push(&l->alive, none);
    }
    return *context;
}

static uint32_t context_of_inherited(struct slice_load *l, uint64_t account)
{
    const struct fm_sliced *of = l->of;
    uint32_t node = account < of->account_count ? of->accounts[account].node : 0;
    bool is = node && node < of->node_count && of->place[node] == of->inherited;
    return is && of->inherited != FM_NONE ? context_of(l, account) : FM_NONE;
}

static int compare_changes(const void *a, const void *b)
{
    const struct fm_history_change *x = a, *y = b;
    return x->context < y->context ? -1 : x->context > y->context;
}

/* Write the changes down as a slice, those of one context as one. */
static void add_slice(struct slice_load *l, uint64_t at_ns)
{
    if (l->changes.len)
        qsort(l->changes.data, l->changes.len, sizeof *l->changes.data, compare_changes);
    fm_slices_begin(&l->history.slices, at_ns);
    for (size_t i = 0; i < l->changes.len;) {
        struct fm_history_change sum = l->changes.data[i];
        while (++i < l->changes.len && l->changes.data[i].context == sum.context) {
            sum.bytes = fm_sum(sum.bytes, l->changes.data[i].bytes);
            sum.blocks = fm_sum(sum.blocks, l->changes.data[i].blocks);
        }
        struct fm_history_change *alive = &l->alive.data[sum.context];
        alive->bytes = fm_sum(alive->bytes, sum.bytes);
        alive->blocks = fm_sum(alive->blocks, sum.blocks);
        if (sum.bytes || sum.blocks)
            fm_slices_change(&l->history.slices, &sum);
    }
    fm_slices_end(&l->history.slices);
    l->changes.len = 0;
}

static void read_slices(struct slice_load *l, const void *bytes, size_t len)
{
    struct fm_slices_walk w = fm_slices_walk(bytes, len);
    struct fm_history_change change;
    uint64_t at_ns;
    while (fm_slices_next(&w, &at_ns)) {
        while (fm_slices_next_change(&w, &change)) {
            change.context = context_of(l, change.context);
            if (change.context == FM_NONE)
                l->bad++;
            else
                fm_vec_push(&l->changes, change);
        }
        add_slice(l, at_ns);
    }
}

/* Of events: what a child was born with was no event. It is what is left, and what was freed of it. */
static void add_inherited(struct slice_load *l, const void *bytes, size_t len)
{
    struct fm_slices_walk w = fm_slices_walk(bytes, len);
    struct fm_history_change change, born = { 0 };
    uint64_t at_ns;
    for (uint64_t i = 1; i < l->of->account_count; i++) {
        uint32_t context = context_of_inherited(l, i);
        if (context == FM_NONE)
            continue;
        born.context = context;
        born.bytes = fm_sum(born.bytes, l->of->accounts[i].live);
        born.blocks = fm_sum(born.blocks, l->of->accounts[i].live_blocks);
    }
    while (fm_slices_next(&w, &at_ns))
        while (fm_slices_next_change(&w, &change))
            if (context_of_inherited(l, change.context) != FM_NONE) {
                born.bytes = fm_sum(born.bytes, -change.bytes);
                born.blocks = fm_sum(born.blocks, -change.blocks);
            }
    if (!born.bytes && !born.blocks)
        return;
    fm_vec_push(&l->changes, born);
    add_slice(l, l->history.begin_ns);
}

/* The difference between what the slices say and what the store holds. */
static void add_last(struct slice_load *l)
{
    for (uint64_t i = 1; i < l->of->account_count; i++) {
        const struct fm_heap_account *a = &l->of->accounts[i];
        uint32_t context = a->live || a->live_blocks ? context_of(l, i) : FM_NONE;
        struct fm_history_change has = { context, a->live, a->live_blocks };
        if (context != FM_NONE)
            fm_vec_push(&l->changes, has);
    }
    for (uint32_t i = 0; i < l->alive.len; i++) {
        struct fm_history_change had = l->alive.data[i];
        had.bytes = had.bytes == INT64_MIN ? INT64_MAX : -had.bytes;
        had.blocks = had.blocks == INT64_MIN ? INT64_MAX : -had.blocks;
        if (had.bytes || had.blocks)
            fm_vec_push(&l->changes, had);
    }
    add_slice(l, l->of->end_ns);
}

void fm_live_slices_load(struct fm_profile *p, const struct fm_sliced *of, const void *bytes,
                         size_t len)
{
    struct fm_slices_header header;
    struct slice_load l = { .p = p, .of = of };
    if (len < sizeof header)
        return;
    memcpy(&header, bytes, sizeof header);
    if (memcmp(header.magic, FM_SLICES_MAGIC, sizeof header.magic) != 0 ||
        header.version != FM_SLICES_VERSION)
        return;
    l.history.process = of->process;
    l.history.begin_ns = of->begin_ns;
    l.history.exact = header.kind == FM_SLICES_EVENTS;
    if (l.history.exact && of->end_ns)
        add_inherited(&l, (const char *)bytes + sizeof header, len - sizeof header);
    read_slices(&l, (const char *)bytes + sizeof header, len - sizeof header);
    if (of->end_ns)
        add_last(&l);
    l.history.end_ns = l.history.slices.last_us * 1000;
    if (l.history.end_ns < of->end_ns || l.history.end_ns < of->begin_ns)
        l.history.end_ns = of->end_ns > of->begin_ns ? of->end_ns : of->begin_ns;
    if (l.bad)
        fm_profile_note(p, of->process, "damaged", l.bad,
                        "changes of memory over time were left out: they are of no context");
    fm_buffer_release(&l.history.slices.open);
    fm_vec_push(&p->memory.histories, l.history);
    fm_map_release(&l.context_of);
    fm_vec_release(&l.changes);
    fm_vec_release(&l.alive);
}

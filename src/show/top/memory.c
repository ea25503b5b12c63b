/* Rows of `fathom top --memory`, and keys; see memory.h. */
#include "show/top/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "record/model/derive/flat.h"
#include "record/model/derive/shed.h"

#define NO_FUNCTION "<in no Python function>"

const struct fm_top_key fm_memory_keys[] = {
#define X(name, a, b, shown, word, help) { FM_MEMORY_##name, { a, b }, shown, word, help },
    FM_MEMORY_KEY_LIST(X)
#undef X
};
const unsigned fm_memory_keys_count = FM_COUNT(fm_memory_keys);

void fm_memory_top_init(struct fm_memory_top *top)
{
    *top = (struct fm_memory_top){ .strings = fm_strings_new(), .sort = FM_MEMORY_LIVE };
}

void fm_memory_top_release(struct fm_memory_top *top)
{
    fm_strings_free(top->strings);
    fm_vec_release(&top->rows);
    fm_vec_release(&top->old);
    fm_map_release(&top->before);
}

double fm_memory_top_per_second(const struct fm_memory_top *top, int64_t bytes)
{
    uint64_t span = top->old_ns ? top->now_ns - top->old_ns : 0;
    return span ? (double)bytes * 1e9 / (double)span : 0;
}

/* ---- order ---- */

static int64_t number_of(const struct fm_memory_row *row, enum fm_memory_action sort)
{
    switch (sort) {
    case FM_MEMORY_TOTAL:
        return row->now.total;
    case FM_MEMORY_GROWTH:
        return row->growth;
    case FM_MEMORY_MADE:
        return row->made;
    case FM_MEMORY_BLOCKS:
        return row->now.blocks;
    case FM_MEMORY_PEAK:
        return row->now.peak;
    default:
        return row->now.live;
    }
}

static int compare(const void *left, const void *right, void *context)
{
    const struct fm_memory_row *a = left, *b = right;
    const struct fm_memory_top *top = context;
    int64_t x = number_of(a, top->sort), y = number_of(b, top->sort);
    int order = top->sort == FM_MEMORY_NAME ? strcmp(fm_strings_get(top->strings, a->name),
                                                     fm_strings_get(top->strings, b->name))
                                            : (x < y) - (x > y);
    if (!order)
        order = (a->now.live < b->now.live) - (a->now.live > b->now.live);
    if (!order)
        order = (a->now.total < b->now.total) - (a->now.total > b->now.total);
    if (!order)
        order = (a->key > b->key) - (a->key < b->key);
    return top->reverse ? -order : order;
}

static void sort_rows(struct fm_memory_top *top)
{
    if (top->rows.len)
        qsort_r(top->rows.data, top->rows.len, sizeof *top->rows.data, compare, top);
    size_t found = 0;
    for (size_t i = 0; top->followed && i < top->rows.len; i++)
        if (top->rows.data[i].key == top->followed)
            found = i;
    top->selected = found;
    fm_memory_top_scroll(top);
}

void fm_memory_top_scroll(struct fm_memory_top *top)
{
    size_t page = top->page ? top->page : 1;
    if (top->selected >= top->rows.len)
        top->selected = top->rows.len ? top->rows.len - 1 : 0;
    if (top->selected < top->first)
        top->first = top->selected;
    if (top->selected >= top->first + page)
        top->first = top->selected - page + 1;
}

/* ---- taking in ---- */

/* What a row had: kept by its key. */
static void keep(struct fm_memory_top *top)
{
    fm_map_release(&top->before);
    top->before = (struct fm_map){ 0 };
    top->old.len = 0;
    for (size_t i = 0; i < top->rows.len; i++) {
        bool is_new;
        fm_map_at(&top->before, top->rows.data[i].key, (uint32_t)i, &is_new);
        fm_vec_push(&top->old, top->rows.data[i].now);
    }
    top->rows.len = 0;
    top->all_before = top->all;
    top->old_ns = top->now_ns;
}

static void add_row(struct fm_memory_top *top, const char *name, const char *file, uint32_t line,
                    const struct fm_memory_alive *now)
{
    fm_autobuffer key = FM_BUFFER_INIT;
    fm_buffer_addf(&key, "%s%c%s%c%u", name, 0, file, 0, line);
    struct fm_memory_row row = { .name = fm_strings_add(top->strings, name, strlen(name)),
                                 .file = fm_strings_add(top->strings, file, strlen(file)),
                                 .key = fm_strings_add(top->strings, key.data, key.len),
                                 .line = line,
                                 .now = *now };
    struct fm_memory_alive was = { 0 };
    bool is_new = !top->old_ns;
    uint32_t *old = is_new ? NULL : fm_map_at(&top->before, row.key, UINT32_MAX, &is_new);
    if (old && *old < top->old.len)
        was = top->old.data[*old];
    if (top->old_ns) {
        row.growth = now->live - was.live;
        row.made = now->allocated - was.allocated;
    }
    fm_vec_push(&top->rows, row);
}

static struct fm_memory_alive sums_of(const struct fm_profile *p)
{
    struct fm_memory_alive sums = { 0 };
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        sums.live = fm_sum(sums.live, fm_profile_value(p, FM_METRIC_LEAKED, i));
        sums.blocks = fm_sum(sums.blocks, fm_profile_value(p, FM_METRIC_LEAKED_BLOCKS, i));
        sums.peak = fm_sum(sums.peak, fm_profile_value(p, FM_METRIC_PEAK, i));
        sums.allocated = fm_sum(sums.allocated, fm_profile_value(p, FM_METRIC_ALLOCATED, i));
    }
    return sums;
}

/* Lines that have something, or had. */
static void add_rows(struct fm_memory_top *top, const struct fm_profile *p)
{
    struct fm_flat *flat = fm_flat_new(p, &(struct fm_flat_scope){ FM_NONE, FM_NONE });
    struct fm_memory_alive rest = top->all;
    for (size_t i = 0; i < flat->rows.len; i++) {
        const struct fm_flat_row *row = &flat->rows.data[i];
        const struct fm_function *f = &p->functions.data[row->func];
        struct fm_memory_alive now = {
            .live = row->self[FM_METRIC_LEAKED],
            .blocks = row->self[FM_METRIC_LEAKED_BLOCKS],
            .total = row->total[FM_METRIC_LEAKED],
            .peak = row->self[FM_METRIC_PEAK],
            .allocated = row->self[FM_METRIC_ALLOCATED],
        };
        rest.live -= now.live;
        rest.blocks -= now.blocks;
        rest.peak -= now.peak;
        rest.allocated -= now.allocated;
        if (now.allocated || now.total)
            add_row(top, fm_profile_text(p, f->qualname), fm_profile_text(p, f->file), f->line,
                    &now);
    }
    rest.total = rest.live;
    if (rest.allocated)
        add_row(top, NO_FUNCTION, "", 0, &rest);
    fm_flat_free(flat);
}

void fm_memory_top_take(struct fm_memory_top *top, struct fm_profile *p, uint64_t now_ns)
{
    keep(top);
    top->now_ns = now_ns;
    top->all = sums_of(p);
    top->peak_blocks = 0;
    for (uint32_t i = 0; i < p->nodes.len; i++)
        top->peak_blocks = fm_sum(top->peak_blocks, fm_profile_value(p, FM_METRIC_PEAK_BLOCKS, i));
    top->own_bytes = p->processes.len ? (int64_t)p->processes.data[0].memory_own_bytes : 0;
    top->sample_bytes = p->processes.len ? (int64_t)p->processes.data[0].memory_sample_bytes : 0;
    top->python = p->processes.len && p->processes.data[0].memory_python;
    free(fm_profile_shed_time(p, top->lines ? FM_ROWS_LINES : FM_ROWS_FUNCTIONS));
    add_rows(top, p);
    sort_rows(top);
}

/* ---- keys ---- */

static void select_row(struct fm_memory_top *top, size_t row)
{
    top->selected = row;
    fm_memory_top_scroll(top);
    top->followed =
        top->selected && top->selected < top->rows.len ? top->rows.data[top->selected].key : 0;
}

static void move(struct fm_memory_top *top, enum fm_memory_action action)
{
    size_t at = top->selected, page = top->page > 1 ? top->page - 1 : 1;
    switch (action) {
    case FM_MEMORY_UP:
        at -= at > 0;
        break;
    case FM_MEMORY_DOWN:
        at++;
        break;
    case FM_MEMORY_PAGE_UP:
        at = at > page ? at - page : 0;
        break;
    case FM_MEMORY_PAGE_DOWN:
        at += page;
        break;
    default:
        at = action == FM_MEMORY_HOME ? 0 : top->rows.len;
    }
    select_row(top, at);
}

/* Lines and functions are different rows: what they had before is not known. */
static enum fm_memory_wish choose_rows(struct fm_memory_top *top, bool lines)
{
    if (lines == top->lines)
        return FM_MEMORY_WISH_NONE;
    top->lines = lines;
    top->rows.len = 0;
    top->now_ns = 0;
    select_row(top, 0);
    return FM_MEMORY_WISH_REFRESH;
}

static enum fm_memory_action action_of(uint32_t key)
{
    for (unsigned i = 0; key && i < fm_memory_keys_count; i++)
        for (size_t k = 0; k < FM_COUNT(fm_memory_keys[i].keys); k++)
            if (fm_memory_keys[i].keys[k] == key)
                return (enum fm_memory_action)fm_memory_keys[i].action;
    return FM_MEMORY_NOTHING;
}

enum fm_memory_wish fm_memory_top_key(struct fm_memory_top *top, uint32_t key)
{
    enum fm_memory_action action = action_of(key);
    if (top->help && action != FM_MEMORY_QUIT) {
        top->help = false;
        return FM_MEMORY_WISH_NONE;
    }
    switch (action) {
    case FM_MEMORY_NOTHING:
        return FM_MEMORY_WISH_NONE;
    case FM_MEMORY_QUIT:
        return FM_MEMORY_WISH_QUIT;
    case FM_MEMORY_REDRAW:
        return FM_MEMORY_WISH_REDRAW;
    case FM_MEMORY_HELP:
        top->help = true;
        return FM_MEMORY_WISH_NONE;
    case FM_MEMORY_LINES:
    case FM_MEMORY_FUNCTIONS:
        return choose_rows(top, action == FM_MEMORY_LINES && !top->lines);
    case FM_MEMORY_PAUSE:
        top->paused = !top->paused && !top->ended;
        return top->paused || top->ended ? FM_MEMORY_WISH_NONE : FM_MEMORY_WISH_REFRESH;
    case FM_MEMORY_REVERSE:
        top->reverse = !top->reverse;
        sort_rows(top);
        return FM_MEMORY_WISH_NONE;
    case FM_MEMORY_LIVE:
    case FM_MEMORY_TOTAL:
    case FM_MEMORY_GROWTH:
    case FM_MEMORY_MADE:
    case FM_MEMORY_BLOCKS:
    case FM_MEMORY_PEAK:
    case FM_MEMORY_NAME:
        top->sort = action;
        sort_rows(top);
        return FM_MEMORY_WISH_NONE;
    default:
        move(top, action);
        return FM_MEMORY_WISH_NONE;
    }
}

/*
 * Reads the blocks of a .fathom file that say what was alive over time; see loader.h, history.h and
 * docs/format.md.
 *
 * Changes add up, so one that is missing makes all later instants wrong: of a history all rows are
 * there, in order, or it is left out.
 */
#include "record/capture/format.h"
#include "record/model/file/loader.h"

/* It can be no more what the file says. */
#define BROKEN UINT64_MAX

static struct fm_history *history_at(struct fm_loader *l, uint32_t index)
{
    return &l->p->memory.histories.data[index];
}

bool fm_load_histories(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || l->table.width < 4 ||
        !fm_loader_is_new(l, &l->history.histories) ||
        !fm_budget_take(&l->budget, l->table.rows, sizeof(struct fm_history)))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_history h = {
            .process = fm_loader_row_process(l, i),
            .begin_ns = fm_loader_cell(l, i, 1),
            .end_ns = fm_loader_cell(l, i, 2),
            .exact = fm_loader_cell(l, i, 4) == 1,
        };
        uint64_t rows = fm_loader_cell(l, i, 3);
        uint32_t index = (uint32_t)l->p->memory.histories.len;
        fm_vec_push(&l->p->memory.histories, h);
        fm_vec_push(&l->history.missing, h.end_ns < h.begin_ns ? BROKEN : rows);
        fm_renumber_add(&l->history.histories, l->table.first + i, index);
    }
    return true;
}

bool fm_load_history_contexts(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || l->table.width < 2 || !fm_loader_is_new(l, &l->history.places))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint32_t history = fm_loader_id(&l->history.histories, fm_loader_cell(l, i, 0));
        uint32_t node = fm_loader_id(&l->nodes, fm_loader_cell(l, i, 1));
        if (history == FM_NONE)
            continue;
        if (node == FM_NONE) {
            l->history.missing.data[history] = BROKEN;
            continue;
        }
        struct fm_history *h = history_at(l, history);
        struct fm_history_place place = { history, (uint32_t)h->contexts.len };
        fm_vec_push(&h->contexts, node);
        fm_renumber_add(&l->history.places, l->table.first + i, (uint32_t)l->history.all.len);
        fm_vec_push(&l->history.all, place);
    }
    return true;
}

static void end_slice(struct fm_loader *l)
{
    if (l->history.open)
        fm_slices_end(&history_at(l, l->history.open - 1)->slices);
    l->history.open = 0;
}

/* One row: of the slice that is open, or of a new one. False if it fits no history. */
static bool add_change(struct fm_loader *l, uint32_t history, uint64_t at_ns, uint64_t context,
                       const struct fm_history_change *change)
{
    struct fm_history *h = history_at(l, history);
    uint32_t number = fm_loader_id(&l->history.places, context);
    bool none = !change->bytes && !change->blocks;
    if (!none && (number == FM_NONE || l->history.all.data[number].history != history))
        return false;
    if (l->history.open != history + 1 || l->history.open_ns != at_ns) {
        end_slice(l);
        if (h->slices.count && at_ns / 1000 <= h->slices.last_us)
            return false;
        fm_slices_begin(&h->slices, at_ns);
        l->history.open = history + 1;
        l->history.open_ns = at_ns;
    }
    if (none)
        return true;
    struct fm_history_change known = *change;
    known.context = l->history.all.data[number].context;
    if (known.context < h->slices.context)
        return false; /* they ascend */
    fm_slices_change(&h->slices, &known);
    return true;
}

bool fm_load_history_changes(struct fm_loader *l, struct fm_cursor *c)
{
    uint64_t us = 0, context = 0;
    if (!fm_loader_table(l, c) || l->table.width < 5)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint32_t history = fm_loader_id(&l->history.histories, fm_loader_cell(l, i, 0));
        struct fm_history_change change = { .bytes = fm_loader_signed(l, i, 3),
                                            .blocks = fm_loader_signed(l, i, 4) };
        us += (uint64_t)fm_loader_signed(l, i, 1);
        context += (uint64_t)fm_loader_signed(l, i, 2);
        if (history == FM_NONE)
            continue;
        uint64_t *missing = &l->history.missing.data[history];
        if (*missing == BROKEN)
            continue;
        bool fits = *missing > 0 && us < UINT64_MAX / 1000 &&
                    add_change(l, history, us * 1000, context, &change);
        *missing = fits ? *missing - 1 : BROKEN;
    }
    return true;
}

void fm_load_histories_end(struct fm_loader *l)
{
    size_t kept = 0, lost = 0;
    end_slice(l);
    for (size_t i = 0; i < l->p->memory.histories.len; i++) {
        struct fm_history *h = history_at(l, (uint32_t)i);
        if (l->history.missing.data[i]) {
            fm_history_release(h);
            lost++;
        } else {
            l->p->memory.histories.data[kept++] = *h;
        }
    }
    l->p->memory.histories.len = kept;
    if (lost)
        fm_profile_note(l->p, FM_NONE, "damaged", lost,
                        "histories of what was alive were left out: some of them is missing");
}

void fm_load_histories_release(struct fm_loader *l)
{
    fm_renumber_release(&l->history.histories);
    fm_renumber_release(&l->history.places);
    fm_vec_release(&l->history.all);
    fm_vec_release(&l->history.missing);
}

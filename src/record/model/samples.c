/*
 * Spots and waits; see samples.h.
 *
 * Rows are pushed in any order. Sorting by everything but the numbers puts equal ones side by side,
 * where they are combined. What is in order already is only looked at.
 */
#include "record/model/samples.h"

#include <math.h>

#include "base/memory.h"
#include "record/model/profile.h"

void fm_samples_release(struct fm_samples *samples)
{
    fm_vec_release(&samples->spots);
    fm_vec_release(&samples->waits);
}

static int keys_order(const uint32_t *a, const uint32_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static int spot_order(const void *left, const void *right)
{
    const struct fm_spot *a = left, *b = right;
    const uint32_t x[] = { a->process, a->func, a->line, a->end_line, a->column, a->end_column };
    const uint32_t y[] = { b->process, b->func, b->line, b->end_line, b->column, b->end_column };
    return keys_order(x, y, FM_COUNT(x));
}

static int wait_order(const void *left, const void *right)
{
    const struct fm_wait *a = left, *b = right;
    const uint32_t x[] = { a->process, a->func, a->line, a->state, a->detail };
    const uint32_t y[] = { b->process, b->func, b->line, b->state, b->detail };
    return keys_order(x, y, FM_COUNT(x));
}

/* The same for both kinds of rows, which have the same numbers. */
#define SORT_AND_COMBINE(rows, order)                                                              \
    do {                                                                                           \
        size_t ordered_ = (rows)->len ? 1 : 0, kept_ = 0;                                          \
        while (ordered_ < (rows)->len &&                                                           \
               order(&(rows)->data[ordered_ - 1], &(rows)->data[ordered_]) < 0)                    \
            ordered_++;                                                                            \
        if (ordered_ == (rows)->len)                                                               \
            break;                                                                                 \
        qsort((rows)->data, (rows)->len, sizeof *(rows)->data, order);                             \
        for (size_t i_ = 1; i_ < (rows)->len; i_++) {                                              \
            if (order(&(rows)->data[kept_], &(rows)->data[i_]) != 0) {                             \
                (rows)->data[++kept_] = (rows)->data[i_];                                          \
                continue;                                                                          \
            }                                                                                      \
            (rows)->data[kept_].samples =                                                          \
                fm_sum((rows)->data[kept_].samples, (rows)->data[i_].samples);                     \
            (rows)->data[kept_].ns = fm_sum((rows)->data[kept_].ns, (rows)->data[i_].ns);          \
        }                                                                                          \
        (rows)->len = kept_ + 1;                                                                   \
    } while (0)

void fm_samples_sort(struct fm_samples *samples)
{
    SORT_AND_COMBINE(&samples->spots, spot_order);
    SORT_AND_COMBINE(&samples->waits, wait_order);
}

/* ---- only some states ---- */

static bool is_kept(unsigned states, int state)
{
    return states >> state & 1;
}

/* So many of `samples` as have `part` of the time `whole`; at least one if there is any time. */
static int64_t scaled(int64_t samples, int64_t part, int64_t whole)
{
    if (part == whole || whole <= 0 || part <= 0)
        return part > 0 && part == whole ? samples : 0;
    int64_t n = llround((double)samples * ((double)part / (double)whole));
    return n > 0 ? n : samples > 0;
}

static void keep_in_node(struct fm_profile *p, uint32_t node, unsigned states)
{
    int64_t kept_ns = 0, all_ns = 0;
    for (int s = 0; s < FM_STATE_COUNT; s++) {
        int64_t *column = p->columns[fm_metric_of_state((enum fm_state)s)].data;
        if (!column)
            continue;
        all_ns = fm_sum(all_ns, column[node]);
        if (is_kept(states, s))
            kept_ns = fm_sum(kept_ns, column[node]);
        else
            column[node] = 0;
    }
    if (p->columns[FM_METRIC_SAMPLES].data)
        p->columns[FM_METRIC_SAMPLES].data[node] =
            scaled(p->columns[FM_METRIC_SAMPLES].data[node], kept_ns, all_ns);
    fm_profile_add(p, FM_METRIC_TOTAL, node, kept_ns); /* those of callees follow */
}

static void keep_in_line(struct fm_line *row, unsigned states)
{
    int64_t kept_ns = 0, all_ns = 0;
    for (int s = 0; s < FM_STATE_COUNT; s++) {
        all_ns = fm_sum(all_ns, row->state_ns[s]);
        if (is_kept(states, s))
            kept_ns = fm_sum(kept_ns, row->state_ns[s]);
        else
            row->state_ns[s] = 0;
    }
    row->samples = scaled(row->samples, kept_ns, all_ns);
    row->total_ns = row->self_ns = kept_ns;
    row->hits = row->min_ns = row->max_ns = row->suspended_ns = 0;
    row->histogram = FM_NONE;
}

static bool is_sampled(const struct fm_profile *p, uint32_t process)
{
    return process != FM_NONE && p->processes.data[process].sampled;
}

/* Calls and their exact times know no states: of a process that has both, the samples are what is
 * left. */
static void drop_calls(struct fm_profile *p)
{
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        if (!is_sampled(p, p->threads.data[p->nodes.data[i].thread].process))
            continue;
        for (int m = 0; m < FM_METRIC_COUNT; m++)
            if (p->columns[m].data && fm_metric_info((enum fm_metric)m)->origin != FM_SAMPLED)
                p->columns[m].data[i] = 0;
    }
    for (size_t i = 0; i < p->processes.len; i++) {
        struct fm_process *process = &p->processes.data[i];
        if (process->sampled)
            process->calls = process->c_calls = process->lines = false;
    }
}

static void keep_beside_trees(struct fm_profile *p, unsigned states)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->lines.rows.len; i++)
        if (is_sampled(p, p->lines.rows.data[i].process))
            keep_in_line(&p->lines.rows.data[i], states);
    for (size_t i = 0; i < p->samples.waits.len; i++)
        if (is_kept(states, (int)p->samples.waits.data[i].state))
            p->samples.waits.data[kept++] = p->samples.waits.data[i];
    p->samples.waits.len = kept;
    fm_vec_release(&p->samples.spots);
}

bool fm_samples_keep_states(struct fm_profile *p, unsigned states)
{
    bool any = false;
    for (uint32_t i = 0; i < p->processes.len; i++)
        any = any || is_sampled(p, i);
    if (!any)
        return false;
    drop_calls(p);
    for (uint32_t i = 0; i < p->nodes.len; i++)
        if (is_sampled(p, p->threads.data[p->nodes.data[i].thread].process))
            keep_in_node(p, i, states);
    /* Backwards, so that a node has all of its callees' time before it gives its own on. */
    int64_t *total = p->columns[FM_METRIC_TOTAL].data;
    for (uint32_t i = (uint32_t)p->nodes.len; total && i-- > 0;) {
        uint32_t parent = p->nodes.data[i].parent;
        if (parent != FM_NONE && is_sampled(p, p->threads.data[p->nodes.data[i].thread].process))
            total[parent] = fm_sum(total[parent], total[i]);
    }
    keep_beside_trees(p, states);
    return true;
}

/* Time without memory, and memory without time; see shed.h. */
#include "record/model/derive/shed.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "record/model/derive/flat.h"

static bool is_of_memory(int metric)
{
    return fm_metric_is_memory((enum fm_metric)metric);
}

bool fm_profile_has_memory(const struct fm_profile *p)
{
    for (size_t i = 0; i < p->processes.len; i++)
        if (p->processes.data[i].memory)
            return true;
    return false;
}

/* A process of which nothing was recorded, not even memory, is shown among others of time. */
bool fm_profile_has_time(const struct fm_profile *p)
{
    bool any = p->flat || p->lines.rows.len || p->lines.marked.len;
    for (size_t i = 0; i < p->processes.len && !any; i++) {
        const struct fm_process *process = &p->processes.data[i];
        any = process->calls || process->lines || process->sampled;
    }
    for (uint32_t i = 0; i < p->nodes.len && !any; i++)
        any = fm_profile_value(p, FM_METRIC_TOTAL, i) || fm_profile_value(p, FM_METRIC_CALLS, i);
    return any || !fm_profile_has_memory(p);
}

/* Does the node have a number of memory, or of anything else? */
static bool has_number(const struct fm_profile *p, uint32_t node, bool of_memory)
{
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        if (is_of_memory(m) == of_memory && fm_profile_value(p, (enum fm_metric)m, node))
            return true;
    return false;
}

static void drop_columns(struct fm_profile *p, bool of_memory)
{
    for (int m = 0; m < FM_METRIC_COUNT; m++) {
        if (is_of_memory(m) != of_memory)
            continue;
        free(p->columns[m].data);
        p->columns[m].data = NULL;
    }
}

/* Let the others go. Who is kept has its parent kept. */
static void keep_nodes(struct fm_profile *p, const bool *kept)
{
    fm_autofree uint32_t *place = fm_malloc((p->nodes.len + 1) * sizeof *place);
    uint32_t n = 0;
    for (size_t i = 0; i < p->nodes.len; i++) {
        struct fm_node node = p->nodes.data[i];
        place[i] = FM_NONE;
        if (!kept[i])
            continue;
        if (node.parent != FM_NONE)
            node.parent = place[node.parent];
        for (int m = 0; m < FM_METRIC_COUNT; m++)
            if (p->columns[m].data)
                p->columns[m].data[n] = p->columns[m].data[i];
        p->nodes.data[n] = node;
        place[i] = n++;
    }
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        if (p->columns[m].data)
            memset(p->columns[m].data + n, 0, (p->nodes.len - n) * sizeof *p->columns[m].data);
    fm_sample_order_move(&p->order, place, p->nodes.len);
    p->nodes.len = n;
    for (size_t i = 0; i < p->threads.len; i++)
        p->threads.data[i].root = place[p->threads.data[i].root];
    fm_memory_forget_histories(&p->memory);
}

void fm_profile_shed_memory(struct fm_profile *p)
{
    fm_autofree bool *kept = fm_calloc(p->nodes.len + 1, sizeof *kept);
    if (!fm_profile_has_memory(p))
        return;
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        const struct fm_node *node = &p->nodes.data[i];
        bool region = p->functions.data[node->func].kind == FM_FUNCTION_REGION;
        bool of_memory = node->line || (region && !has_number(p, i, false));
        kept[i] = node->parent == FM_NONE || (kept[node->parent] && !of_memory);
    }
    drop_columns(p, true);
    keep_nodes(p, kept);
    p->has_lined_nodes = false;
}

/* The function that a line of another one becomes. */
static uint32_t function_at(struct fm_profile *p, uint32_t func, uint32_t line)
{
    struct fm_function f = p->functions.data[func];
    f.line = line ? line : f.line;
    return fm_profile_function(p, &f);
}

/* Where two functions of one name have the same line, the first one's text is taken. */
static uint32_t *lines_as_functions(struct fm_profile *p)
{
    FM_VEC(uint32_t) origin = { 0 };
    struct fm_map known = { 0 };
    for (uint32_t f = 0; f < p->functions.len; f++)
        fm_vec_push(&origin, f);
    for (size_t i = 0; i < p->nodes.len; i++) {
        struct fm_node *node = &p->nodes.data[i];
        bool is_new;
        uint32_t *func = fm_map_at(&known, fm_map_pair(node->func, node->line), 0, &is_new);
        if (is_new)
            *func = function_at(p, node->func, node->line);
        if (origin.len < p->functions.len)
            fm_vec_push(&origin, node->func);
        node->func = *func;
        node->line = 0;
    }
    fm_map_release(&known);
    p->has_lined_nodes = false;
    return origin.data;
}

bool fm_function_is_type(const struct fm_function *f)
{
    return f->kind == FM_FUNCTION_REGION && f->flags & FM_FUNCTION_TYPE;
}

bool fm_profile_has_types(const struct fm_profile *p)
{
    for (size_t i = 0; i < p->functions.len; i++)
        if (fm_function_is_type(&p->functions.data[i]))
            return true;
    return false;
}

/* Give what objects of a type have to the line that made them. */
static void melt_types(struct fm_profile *p)
{
    for (uint32_t i = (uint32_t)p->nodes.len; i-- > 0;) {
        const struct fm_node *node = &p->nodes.data[i];
        if (node->parent == FM_NONE || !fm_function_is_type(&p->functions.data[node->func]))
            continue;
        for (int m = 0; m < FM_METRIC_COUNT; m++) {
            int64_t *data = p->columns[m].data;
            if (!is_of_memory(m) || !data)
                continue;
            data[node->parent] = fm_sum(data[node->parent], data[i]);
            data[i] = 0;
        }
    }
}

uint32_t *fm_profile_shed_time(struct fm_profile *p, enum fm_memory_rows rows)
{
    if (rows != FM_ROWS_TYPES)
        melt_types(p);
    fm_autofree bool *kept = fm_calloc(p->nodes.len + 1, sizeof *kept);
    for (uint32_t i = (uint32_t)p->nodes.len; i-- > 0;) {
        uint32_t parent = p->nodes.data[i].parent;
        kept[i] = kept[i] || parent == FM_NONE || has_number(p, i, true);
        if (kept[i] && parent != FM_NONE)
            kept[parent] = true;
    }
    drop_columns(p, false);
    keep_nodes(p, kept);
    fm_lines_release(&p->lines);
    fm_samples_release(&p->samples);
    fm_flat_free(p->flat);
    p->flat = NULL;
    memset(&p->lines, 0, sizeof p->lines);
    memset(&p->samples, 0, sizeof p->samples);
    fm_sample_order_release(&p->order);
    for (size_t i = 0; i < p->processes.len; i++)
        p->processes.data[i].sampled = p->processes.data[i].calls = p->processes.data[i].lines =
            false;
    if (rows != FM_ROWS_FUNCTIONS)
        return lines_as_functions(p);
    uint32_t *origin = fm_malloc((p->functions.len + 1) * sizeof *origin);
    for (uint32_t f = 0; f < p->functions.len; f++)
        origin[f] = f;
    return origin;
}

/*
 * A profile in memory; see profile.h.
 *
 * Owns: the profile's arrays, and the index by which equal functions are found again.
 * Invariants:
 *  1. nodes.data[i].parent < i, or FM_NONE for the root of a thread.
 *  2. Every column that exists has column_cap >= nodes.len numbers, zero beyond nodes.len.
 *  3. The index holds every function; a place in its table is a function id + 1, or 0.
 */
#include "record/model/profile.h"

#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "record/model/derive/flat.h"

struct fm_function_index {
    uint32_t *table;
    size_t cap;              /* a power of two */
    struct fm_map next_twin; /* function id of twin 0 → twin number to try next */
};

struct fm_profile *fm_profile_new(void)
{
    struct fm_profile *p = fm_calloc(1, sizeof *p);
    p->strings = fm_strings_new();
    p->function_index = fm_calloc(1, sizeof *p->function_index);
    p->function_index->cap = 256;
    p->function_index->table = fm_calloc(p->function_index->cap, sizeof(uint32_t));
    return p;
}

void fm_profile_free(struct fm_profile *p)
{
    if (!p)
        return;
    fm_strings_free(p->strings);
    fm_vec_release(&p->functions);
    fm_vec_release(&p->processes);
    fm_vec_release(&p->threads);
    fm_vec_release(&p->nodes);
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        free(p->columns[m].data);
    fm_vec_release(&p->notes);
    fm_vec_release(&p->sources);
    fm_vec_release(&p->facts);
    fm_lines_release(&p->lines);
    fm_samples_release(&p->samples);
    fm_sample_order_release(&p->order);
    fm_memory_release(&p->memory);
    fm_regions_release(&p->regions);
    fm_traces_release(&p->traces);
    fm_flat_free(p->flat);
    free(p->function_index->table);
    fm_map_release(&p->function_index->next_twin);
    free(p->function_index);
    free(p);
}

uint32_t fm_profile_string(struct fm_profile *p, const char *text)
{
    return fm_strings_add_text(p->strings, text);
}

const char *fm_profile_text(const struct fm_profile *p, uint32_t string)
{
    return fm_strings_get(p->strings, string);
}

uint32_t fm_profile_string_of(struct fm_profile *into, const struct fm_profile *from, uint32_t id)
{
    return fm_strings_add(into->strings, fm_strings_get(from->strings, id),
                          fm_strings_len(from->strings, id));
}

/* ---- functions ---- */

static uint64_t function_hash(const struct fm_function *f)
{
    uint64_t h = fm_mix64(fm_map_pair(f->name, f->qualname));
    h = fm_mix64(h ^ fm_map_pair(f->file, f->line));
    return fm_mix64(h ^ fm_map_pair(f->twin, f->kind));
}

static bool function_equal(const struct fm_function *a, const struct fm_function *b)
{
    return a->kind == b->kind && a->line == b->line && a->name == b->name &&
           a->qualname == b->qualname && a->file == b->file && a->twin == b->twin;
}

static uint32_t *function_place(const struct fm_profile *p, const struct fm_function *f)
{
    const struct fm_function_index *index = p->function_index;
    size_t i = (size_t)function_hash(f) & (index->cap - 1);
    while (index->table[i] && !function_equal(&p->functions.data[index->table[i] - 1], f))
        i = (i + 1) & (index->cap - 1);
    return &index->table[i];
}

static uint32_t function_push(struct fm_profile *p, const struct fm_function *f)
{
    struct fm_function_index *index = p->function_index;
    fm_vec_push(&p->functions, *f);
    if (p->functions.len * 2 <= index->cap) {
        *function_place(p, f) = (uint32_t)p->functions.len;
        return (uint32_t)p->functions.len - 1;
    }
    free(index->table);
    index->cap *= 2;
    index->table = fm_calloc(index->cap, sizeof *index->table);
    for (size_t i = 0; i < p->functions.len; i++)
        *function_place(p, &p->functions.data[i]) = (uint32_t)i + 1;
    return (uint32_t)p->functions.len - 1;
}

uint32_t fm_profile_function(struct fm_profile *p, const struct fm_function *f)
{
    uint32_t place = *function_place(p, f);
    if (!place)
        return function_push(p, f);
    p->functions.data[place - 1].flags |= f->flags;
    return place - 1;
}

uint32_t fm_profile_function_distinct(struct fm_profile *p, const struct fm_function *f)
{
    struct fm_function twin = *f;
    twin.twin = 0;
    uint32_t first = *function_place(p, &twin);
    if (!first)
        return function_push(p, &twin);
    uint32_t *next = fm_map_at(&p->function_index->next_twin, first - 1, 1, NULL);
    do
        twin.twin = (*next)++;
    while (*function_place(p, &twin));
    return function_push(p, &twin);
}

/* ---- processes, threads, nodes ---- */

uint32_t fm_profile_runs(const struct fm_profile *p)
{
    uint32_t runs = 0;
    for (size_t i = 0; i < p->processes.len; i++)
        if (p->processes.data[i].run >= runs)
            runs = p->processes.data[i].run + 1;
    return runs;
}

uint32_t fm_profile_process(struct fm_profile *p, const struct fm_process *process)
{
    fm_vec_push(&p->processes, *process);
    return (uint32_t)p->processes.len - 1;
}

static void columns_grow(struct fm_profile *p, size_t cap)
{
    for (int m = 0; m < FM_METRIC_COUNT; m++) {
        struct fm_column *c = &p->columns[m];
        if (!c->data)
            continue;
        c->data = fm_realloc(c->data, cap, sizeof *c->data);
        memset(c->data + p->column_cap, 0, (cap - p->column_cap) * sizeof *c->data);
    }
    p->column_cap = cap;
}

static uint32_t node_push(struct fm_profile *p, struct fm_node node)
{
    fm_vec_push(&p->nodes, node);
    if (p->nodes.len > p->column_cap)
        columns_grow(p, p->nodes.cap);
    return (uint32_t)p->nodes.len - 1;
}

void fm_profile_reserve(struct fm_profile *p, size_t nodes)
{
    fm_vec_reserve(&p->nodes, nodes);
    if (p->nodes.cap > p->column_cap)
        columns_grow(p, p->nodes.cap);
}

uint32_t fm_profile_thread_rootless(struct fm_profile *p, const struct fm_thread *thread)
{
    struct fm_thread copy = *thread;
    copy.root = FM_NONE;
    fm_vec_push(&p->threads, copy);
    return (uint32_t)p->threads.len - 1;
}

uint32_t fm_profile_thread_root(struct fm_profile *p, uint32_t thread)
{
    uint32_t name = fm_profile_string(p, "<thread>");
    struct fm_function f = { .kind = FM_FUNCTION_ROOT, .name = name, .qualname = name };
    struct fm_node node = { FM_NONE, fm_profile_function(p, &f), thread, 0 };
    return p->threads.data[thread].root = node_push(p, node);
}

uint32_t fm_profile_thread(struct fm_profile *p, const struct fm_thread *thread)
{
    uint32_t id = fm_profile_thread_rootless(p, thread);
    fm_profile_thread_root(p, id);
    return id;
}

uint32_t fm_profile_node_at(struct fm_profile *p, uint32_t parent, uint32_t func, uint32_t line)
{
    p->has_lined_nodes = p->has_lined_nodes || line;
    return node_push(p, (struct fm_node){ parent, func, p->nodes.data[parent].thread, line });
}

uint32_t fm_profile_node(struct fm_profile *p, uint32_t parent, uint32_t func)
{
    return fm_profile_node_at(p, parent, func, 0);
}

int64_t fm_profile_value(const struct fm_profile *p, enum fm_metric metric, uint32_t node)
{
    const int64_t *data = p->columns[metric].data;
    return data ? data[node] : 0;
}

void fm_profile_add(struct fm_profile *p, enum fm_metric metric, uint32_t node, int64_t value)
{
    struct fm_column *c = &p->columns[metric];
    if (!value)
        return;
    if (!c->data)
        c->data = fm_calloc(p->column_cap, sizeof *c->data);
    if (!c->data[node] && value > 0)
        c->data[node] = value; /* the first one, whatever the kind: nearly always */
    else
        c->data[node] = fm_metric_combine(metric, c->data[node], value);
}

static int64_t *column_copy(const struct fm_profile *p, enum fm_metric metric)
{
    int64_t *copy = fm_calloc(p->nodes.len + 1, sizeof *copy);
    if (p->columns[metric].data)
        memcpy(copy, p->columns[metric].data, p->nodes.len * sizeof *copy);
    return copy;
}

int64_t *fm_profile_selves_new(const struct fm_profile *p, enum fm_metric metric)
{
    int64_t *selves = column_copy(p, metric);
    const int64_t *totals = p->columns[metric].data;
    if (!totals || fm_metric_info(metric)->scope != FM_OF_CALLEES)
        return selves;
    for (size_t i = 0; i < p->nodes.len; i++) {
        uint32_t parent = p->nodes.data[i].parent;
        if (parent != FM_NONE)
            selves[parent] =
                fm_sum(selves[parent], totals[i] == INT64_MIN ? INT64_MAX : -totals[i]);
    }
    return selves;
}

int64_t *fm_profile_totals_new(const struct fm_profile *p, enum fm_metric metric)
{
    int64_t *totals = column_copy(p, metric);
    if (!p->columns[metric].data || !fm_metric_is_self(metric))
        return totals;
    for (size_t i = p->nodes.len; i-- > 0;) {
        uint32_t parent = p->nodes.data[i].parent;
        if (parent != FM_NONE)
            totals[parent] = fm_metric_combine(metric, totals[parent], totals[i]);
    }
    return totals;
}

bool fm_profile_has_estimates(const struct fm_profile *p)
{
    for (size_t i = 0; i < p->processes.len; i++)
        if (p->processes.data[i].memory_sample_bytes)
            return true;
    return false;
}

int64_t fm_profile_error_bytes(const struct fm_profile *p, int64_t squares)
{
    uint64_t most = 0;
    for (size_t i = 0; squares > 0 && i < p->processes.len; i++)
        if (p->processes.data[i].memory_sample_bytes > most)
            most = p->processes.data[i].memory_sample_bytes;
    return fm_error_bytes(squares, most);
}

uint64_t fm_profile_columns(const struct fm_profile *p)
{
    uint64_t columns = 0;
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        if (p->columns[m].data && fm_metric_info((enum fm_metric)m)->place == FM_PLACE_COLUMN)
            columns |= (uint64_t)1 << m;
    return columns;
}

/* ---- notes and facts ---- */

void fm_profile_note(struct fm_profile *p, uint32_t process, const char *kind, uint64_t count,
                     const char *text)
{
    struct fm_note note = { process, fm_profile_string(p, kind), count,
                            fm_profile_string(p, text) };
    fm_vec_push(&p->notes, note);
}

void fm_profile_fact(struct fm_profile *p, const char *key, const char *value)
{
    struct fm_fact fact = { fm_profile_string(p, key), fm_profile_string(p, value) };
    for (size_t i = 0; i < p->facts.len; i++) {
        if (p->facts.data[i].key == fact.key) {
            p->facts.data[i] = fact;
            return;
        }
    }
    fm_vec_push(&p->facts, fact);
}

const char *fm_profile_fact_get(const struct fm_profile *p, const char *key)
{
    for (size_t i = 0; i < p->facts.len; i++)
        if (strcmp(fm_profile_text(p, p->facts.data[i].key), key) == 0)
            return fm_profile_text(p, p->facts.data[i].value);
    return NULL;
}

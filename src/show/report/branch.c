/* Trees ready to be walked; see branch.h. */
#include "show/report/branch.h"

#include "base/memory.h"

static int compare_children(const void *a, const void *b, void *data)
{
    const int64_t *total = data; /* or weight */
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (total[x] != total[y])
        return total[x] < total[y] ? 1 : -1;
    return x < y ? -1 : x > y;
}

static void add_children(struct fm_branches *b, const struct fm_profile *p)
{
    size_t n = p->nodes.len;
    b->p = p;
    fm_node_numbers_init(&b->numbers, p);
    b->children = fm_calloc(n, sizeof *b->children);
    b->start = fm_calloc(n + 2, sizeof *b->start);
    for (uint32_t i = 0; i < n; i++)
        if (p->nodes.data[i].parent != FM_NONE)
            b->start[p->nodes.data[i].parent + 2]++;
    for (size_t i = 2; i < n + 2; i++)
        b->start[i] += b->start[i - 1];
    for (uint32_t i = 0; i < n; i++)
        if (p->nodes.data[i].parent != FM_NONE)
            b->children[b->start[p->nodes.data[i].parent + 1]++] = i;
}

static void add_times(struct fm_branches *b, const struct fm_profile *p)
{
    size_t n = p->nodes.len;
    b->total_ns = fm_calloc(n, sizeof *b->total_ns);
    b->self_ns = fm_calloc(n, sizeof *b->self_ns);
    for (uint32_t i = 0; i < n; i++)
        if (p->nodes.data[i].parent != FM_NONE)
            b->total_ns[i] = b->self_ns[i] = fm_profile_value(p, FM_METRIC_TOTAL, i);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t parent = p->nodes.data[i].parent;
        if (parent == FM_NONE)
            continue;
        if (p->nodes.data[parent].parent == FM_NONE)
            b->total_ns[parent] += b->total_ns[i];
        else
            b->self_ns[parent] -= b->total_ns[i];
    }
    for (uint32_t i = 0; i < p->threads.len; i++) {
        uint32_t root = p->threads.data[i].root;
        int64_t own = fm_profile_value(p, FM_METRIC_TOTAL, root) - b->total_ns[root];
        b->self_ns[root] = own > 0 ? own : 0;
        b->total_ns[root] += b->self_ns[root];
    }
}

/* Where some numbers are below zero: what each node and its callees have, without the sign. */
static int64_t *weights_new(const struct fm_profile *p, const int64_t *selves)
{
    size_t n = p->nodes.len, below = 0;
    for (size_t i = 0; i < n; i++)
        below += selves[i] < 0;
    if (!below)
        return NULL;
    int64_t *weight = fm_calloc(n + 1, sizeof *weight);
    for (size_t i = n; i-- > 0;) {
        int64_t own = selves[i] == INT64_MIN ? INT64_MAX : selves[i] < 0 ? -selves[i] : selves[i];
        weight[i] = fm_sum(weight[i], own);
        if (p->nodes.data[i].parent != FM_NONE)
            weight[p->nodes.data[i].parent] = fm_sum(weight[p->nodes.data[i].parent], weight[i]);
    }
    return weight;
}

static void sort_children(struct fm_branches *b)
{
    for (size_t i = 0; i < b->p->nodes.len; i++)
        qsort_r(b->children + b->start[i], b->start[i + 1] - b->start[i], sizeof *b->children,
                compare_children, b->weight ? b->weight : b->total_ns);
}

void fm_branches_init(struct fm_branches *b, const struct fm_profile *p)
{
    add_children(b, p);
    add_times(b, p);
    b->weight = NULL;
    sort_children(b);
}

void fm_branches_init_of(struct fm_branches *b, const struct fm_profile *p, enum fm_metric metric)
{
    add_children(b, p);
    b->total_ns = fm_profile_totals_new(p, metric);
    b->self_ns = fm_profile_selves_new(p, metric);
    b->weight = weights_new(p, b->self_ns);
    sort_children(b);
}

void fm_branches_release(struct fm_branches *b)
{
    free(b->children);
    free(b->start);
    free(b->total_ns);
    free(b->weight);
    free(b->self_ns);
    fm_node_numbers_release(&b->numbers);
}

bool fm_branches_shows(const struct fm_profile *p, const struct fm_flat_scope *scope,
                       uint32_t thread)
{
    if (scope->thread != FM_NONE)
        return scope->thread == thread;
    return scope->process == FM_NONE || p->threads.data[thread].process == scope->process;
}

static uint64_t last_bit(int depth)
{
    return depth < 64 ? (uint64_t)1 << depth : 0;
}

typedef FM_VEC(struct fm_step) step_stack;

/* Put the children of `step` on the stack, the smallest first, so that the largest comes off first.
 */
static void push_children(const struct fm_branches *b, const struct fm_step *step, int depth_max,
                          int64_t least_ns, step_stack *stack)
{
    uint32_t first = b->start[step->node], end = b->start[step->node + 1], shown = first;
    int depth = step->depth + 1;
    struct fm_step rest = { step->node, depth, step->lasts | last_bit(depth), 0, 0 };
    while (shown < end && (depth_max < 0 || depth <= depth_max) &&
           fm_branches_weight(b, b->children[shown]) >= least_ns)
        shown++;
    int64_t weight = 0;
    for (uint32_t i = shown; i < end; i++) {
        rest.hidden_ns += b->total_ns[b->children[i]];
        weight += fm_branches_weight(b, b->children[i]);
    }
    rest.hidden = end - shown;
    bool show_rest = rest.hidden && weight >= least_ns;
    if (show_rest)
        fm_vec_push(stack, rest);
    for (uint32_t i = shown; i-- > first;) {
        bool last = i + 1 == shown && !show_rest;
        struct fm_step next = { b->children[i], depth, step->lasts | (last ? last_bit(depth) : 0),
                                0, 0 };
        fm_vec_push(stack, next);
    }
}

void fm_branches_walk(const struct fm_branches *b, uint32_t thread, int depth_max, int64_t least_ns,
                      fm_step_show *show, void *data)
{
    step_stack stack = { 0 };
    struct fm_step root = { b->p->threads.data[thread].root, 0, 0, 0, 0 };
    fm_vec_push(&stack, root);
    while (stack.len) {
        struct fm_step step = stack.data[--stack.len];
        show(b, &step, data);
        if (!step.hidden)
            push_children(b, &step, depth_max, least_ns, &stack);
    }
    fm_vec_release(&stack);
}

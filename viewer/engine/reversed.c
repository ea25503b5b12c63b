/* The tree of callers; see reversed.h. */
#include "reversed.h"

#include "base/memory.h"

#define MAX_ITEMS 40000000u

static void node_push(struct fm_reversed *r, uint32_t parent, uint32_t func, uint32_t first,
                      uint32_t items)
{
    fm_vec_push(&r->nodes,
                ((struct fm_reversed_node){
                    .parent = parent, .func = func, .first_item = first, .items = items }));
}

struct fm_reversed *fm_reversed_new(struct fm_view *v)
{
    struct fm_reversed *r = fm_calloc(1, sizeof *r);
    uint32_t only = v->options.callers_of;
    r->counts_len = (uint32_t)v->engine->functions.len;
    r->counts = fm_calloc(r->counts_len, sizeof *r->counts);
    for (uint32_t i = 1; i < v->nodes && only != FM_NONE; i++)
        if (v->func[i] == only && v->outermost[i])
            fm_vec_push(&r->items, ((struct fm_reversed_item){ i, i }));
    r->all = only == FM_NONE;
    node_push(r, FM_NONE, 0, 0, r->all ? v->nodes - 1 : (uint32_t)r->items.len);
    return r;
}

void fm_reversed_free(struct fm_reversed *r)
{
    if (!r)
        return;
    fm_vec_release(&r->nodes);
    fm_vec_release(&r->items);
    free(r->counts);
    free(r);
}

/* The items of the root need not be there if they are all contexts. */
static struct fm_reversed_item item_of(const struct fm_reversed *r, uint32_t node, uint32_t i)
{
    if (!node && r->all)
        return (struct fm_reversed_item){ i + 1, i + 1 };
    return r->items.data[r->nodes.data[node].first_item + i];
}

/* The function under which an item is found one level further; FM_NONE if there is none. */
static uint32_t next_of(const struct fm_view *v, uint32_t node, struct fm_reversed_item *item)
{
    if (node) /* the first level is the contexts themselves */
        item->here = v->parent[item->here];
    return item->here ? v->func[item->here] : FM_NONE;
}

bool fm_reversed_expand(struct fm_view *v, uint32_t node)
{
    struct fm_reversed *r = v->reversed;
    struct fm_reversed_node n = r->nodes.data[node];
    if (n.expanded)
        return true;
    if (r->items.len + n.items > MAX_ITEMS)
        return false;
    /* Count by function, in order of appearance; then put the items in place. */
    uint32_t first_child = (uint32_t)r->nodes.len, kept = 0;
    for (uint32_t i = 0; i < n.items; i++) {
        struct fm_reversed_item item = item_of(r, node, i);
        uint32_t func = next_of(v, node, &item);
        if (func == FM_NONE)
            continue;
        kept++;
        if (r->counts[func]++ == 0)
            node_push(r, node, func, 0, 0);
    }
    uint32_t at = (uint32_t)r->items.len;
    fm_vec_reserve(&r->items, r->items.len + kept);
    r->items.len += kept;
    for (uint32_t c = first_child; c < r->nodes.len; c++) {
        uint32_t count = r->counts[r->nodes.data[c].func];
        r->counts[r->nodes.data[c].func] = c;
        r->nodes.data[c].first_item = at;
        at += count;
    }
    for (uint32_t i = 0; i < n.items; i++) {
        struct fm_reversed_item item = item_of(r, node, i);
        uint32_t func = next_of(v, node, &item);
        if (func == FM_NONE)
            continue;
        struct fm_reversed_node *child = &r->nodes.data[r->counts[func]];
        r->items.data[child->first_item + child->items++] = item;
    }
    for (uint32_t c = first_child; c < r->nodes.len; c++)
        r->counts[r->nodes.data[c].func] = 0;
    r->nodes.data[node].first_child = first_child;
    r->nodes.data[node].children = (uint32_t)r->nodes.len - first_child;
    r->nodes.data[node].expanded = true;
    return true;
}

double fm_reversed_sum(const struct fm_view *v, uint32_t node, const int64_t *column)
{
    const struct fm_reversed_node *n = &v->reversed->nodes.data[node];
    double sum = 0;
    for (uint32_t i = 0; i < n->items; i++)
        sum += (double)column[item_of(v->reversed, node, i).leaf];
    return sum;
}

bool fm_reversed_has_callers(const struct fm_view *v, uint32_t node)
{
    const struct fm_reversed_node *n = &v->reversed->nodes.data[node];
    for (uint32_t i = 0; i < n->items; i++)
        if (!node || v->parent[item_of(v->reversed, node, i).here])
            return true;
    return false;
}

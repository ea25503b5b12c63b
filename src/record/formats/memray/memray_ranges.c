/* Mapped ranges; see memray_ranges.h. */
#include "record/formats/memray/memray_ranges.h"

#include "base/map.h"

void fm_memray_ranges_release(struct fm_memray_ranges *r)
{
    fm_vec_release(&r->all);
    fm_vec_release(&r->met);
}

/* ---- the treap ---- */

static struct fm_memray_range *at(struct fm_memray_ranges *r, uint32_t i)
{
    return &r->all.data[i];
}

static uint32_t make(struct fm_memray_ranges *r, const struct fm_memray_range *range)
{
    uint32_t fresh = r->unused;
    if (!r->all.len)
        fm_vec_push(&r->all, (struct fm_memray_range){ 0 });
    if (fresh) {
        r->unused = at(r, fresh)->left;
    } else {
        fresh = (uint32_t)r->all.len;
        fm_vec_push(&r->all, (struct fm_memray_range){ 0 });
    }
    *at(r, fresh) = *range;
    at(r, fresh)->left = at(r, fresh)->right = 0;
    at(r, fresh)->rank = (uint32_t)fm_mix64(r->seed++);
    at(r, fresh)->reach = range->end;
    return fresh;
}

static void measure(struct fm_memray_ranges *r, uint32_t node)
{
    struct fm_memray_range *n = at(r, node);
    n->reach = n->end;
    if (at(r, n->left)->reach > n->reach)
        n->reach = at(r, n->left)->reach;
    if (at(r, n->right)->reach > n->reach)
        n->reach = at(r, n->right)->reach;
}

/* Those that begin before `address`, and the others. */
static void split(struct fm_memray_ranges *r, uint32_t node, uint64_t address, uint32_t *low,
                  uint32_t *high)
{
    if (!node) {
        *low = *high = 0;
    } else if (at(r, node)->begin < address) {
        split(r, at(r, node)->right, address, &at(r, node)->right, high);
        measure(r, *low = node);
    } else {
        split(r, at(r, node)->left, address, low, &at(r, node)->left);
        measure(r, *high = node);
    }
}

static uint32_t join(struct fm_memray_ranges *r, uint32_t low, uint32_t high)
{
    if (!low || !high)
        return low ? low : high;
    uint32_t top = at(r, low)->rank > at(r, high)->rank ? low : high;
    if (top == low)
        at(r, low)->right = join(r, at(r, low)->right, high);
    else
        at(r, high)->left = join(r, low, at(r, high)->left);
    measure(r, top);
    return top;
}

void fm_memray_ranges_add(struct fm_memray_ranges *r, const struct fm_memray_range *range)
{
    uint32_t node = make(r, range), low, high;
    split(r, r->root, range->begin, &low, &high);
    r->root = join(r, join(r, low, node), high);
}

/* ---- taking away ---- */

/* Take out all that reach beyond `begin`; what is left. */
static uint32_t take_out(struct fm_memray_ranges *r, uint32_t node, uint64_t begin)
{
    if (!node || at(r, node)->reach <= begin)
        return node;
    uint32_t left = take_out(r, at(r, node)->left, begin);
    uint32_t right = take_out(r, at(r, node)->right, begin);
    if (at(r, node)->end > begin) {
        fm_vec_push(&r->met, *at(r, node));
        at(r, node)->left = r->unused;
        r->unused = node;
        return join(r, left, right);
    }
    at(r, node)->left = left;
    at(r, node)->right = right;
    measure(r, node);
    return node;
}

/* The piece of `whole` from `begin` to `end`, if there is any. */
static int put_back(struct fm_memray_ranges *r, const struct fm_memray_range *whole, uint64_t begin,
                    uint64_t end)
{
    struct fm_memray_range piece = *whole;
    if (begin >= end)
        return 0;
    piece.begin = begin;
    piece.end = end;
    fm_memray_ranges_add(r, &piece);
    return 1;
}

void fm_memray_ranges_take(struct fm_memray_ranges *r, uint64_t begin, uint64_t end,
                           fm_memray_taken *taken, void *data)
{
    uint32_t low, high;
    r->met.len = 0;
    if (begin >= end || !r->root)
        return;
    split(r, r->root, end, &low, &high);
    low = take_out(r, low, begin);
    r->root = join(r, low, high);
    for (size_t i = 0; i < r->met.len; i++) {
        struct fm_memray_range whole = r->met.data[i];
        uint64_t from = whole.begin > begin ? whole.begin : begin;
        uint64_t to = whole.end < end ? whole.end : end;
        int pieces = put_back(r, &whole, whole.begin, from) + put_back(r, &whole, to, whole.end);
        taken(data, &whole, to - from, pieces - 1);
    }
}

/* Functions with and without qualified names; see bare_names.h. */
#include "record/model/derive/bare_names.h"

#include <stdlib.h>

static int by_number(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

static bool same_group(const struct fm_bare_name *a, const struct fm_bare_name *b)
{
    return a->file == b->file && a->name == b->name;
}

static int group_order(const void *left, const void *right)
{
    const struct fm_bare_name *a = left, *b = right;
    int order = by_number(a->file, b->file);
    if (!order)
        order = by_number(a->name, b->name);
    if (!order)
        order = by_number(a->side, b->side);
    if (!order)
        order = by_number(a->line, b->line);
    return order ? order : by_number(a->id, b->id);
}

/* The first `middle` are of one side, the rest of the other: each in the order of lines. */
static bool any_line_in_both(const struct fm_bare_name *all, size_t middle, size_t n)
{
    for (size_t i = 0, j = middle; i < middle && j < n;) {
        if (all[i].line == all[j].line && all[i].line)
            return true;
        if (all[i].line < all[j].line)
            i++;
        else
            j++;
    }
    return false;
}

static bool all_bare(const struct fm_bare_name *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (all[i].qualname != all[i].name)
            return false;
    return true;
}

static void match_group(struct fm_bare_name *all, size_t n)
{
    size_t middle = 0;
    while (middle < n && !all[middle].side)
        middle++;
    if (!middle || middle == n || all_bare(all, middle) == all_bare(all + middle, n - middle))
        return;
    bool by_line = any_line_in_both(all, middle, n) || middle != n - middle;
    for (size_t i = 0; i < n; i++) {
        bool again = i && all[i].side == all[i - 1].side && all[i].line == all[i - 1].line;
        all[i].found = true;
        all[i].place = by_line ? all[i].line : (uint32_t)(i < middle ? i : i - middle);
        all[i].nth = by_line && again ? all[i - 1].nth + 1 : 0;
    }
}

void fm_bare_names_match(struct fm_bare_name *all, size_t n)
{
    if (n)
        qsort(all, n, sizeof *all, group_order);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && same_group(&all[i], &all[end]);)
            end++;
        match_group(all + i, end - i);
    }
}

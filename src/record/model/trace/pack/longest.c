/* The longest calls; see longest.h. */
#include "record/model/trace/pack/longest.h"

#include <stdlib.h>

static bool is_shorter(const struct fm_found_call *a, const struct fm_found_call *b)
{
    uint64_t x = fm_found_ns(a), y = fm_found_ns(b);
    return x < y || (x == y && a->span.begin_ns > b->span.begin_ns);
}

static void swap(struct fm_found_call *a, struct fm_found_call *b)
{
    struct fm_found_call kept = *a;
    *a = *b;
    *b = kept;
}

static void sift_up(struct fm_found_call *heap, size_t at)
{
    while (at && is_shorter(&heap[at], &heap[(at - 1) / 2])) {
        swap(&heap[at], &heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static void sift_down(struct fm_found_call *heap, size_t count)
{
    for (size_t at = 0, child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_shorter(&heap[child + 1], &heap[child]))
            child++;
        if (!is_shorter(&heap[child], &heap[at]))
            return;
        swap(&heap[child], &heap[at]);
    }
}

void fm_longest_add(struct fm_longest *l, const struct fm_found_call *call)
{
    if (!l->most)
        return;
    if (l->calls.len < l->most) {
        fm_vec_push(&l->calls, *call);
        sift_up(l->calls.data, l->calls.len - 1);
    } else if (is_shorter(&l->calls.data[0], call)) {
        l->calls.data[0] = *call;
        sift_down(l->calls.data, l->calls.len);
    }
}

static int compare_calls(const void *a, const void *b)
{
    return is_shorter(a, b) ? 1 : is_shorter(b, a) ? -1 : 0;
}

void fm_longest_sort(struct fm_longest *l)
{
    if (l->calls.len)
        qsort(l->calls.data, l->calls.len, sizeof *l->calls.data, compare_calls);
}

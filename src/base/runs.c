/* Sorting by runs; see runs.h. */
#include "base/runs.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

typedef int compare_fn(const void *a, const void *b);

#define NEAR      32u  /* places */
#define MOST_SIZE 128u /* bytes of one, to be put back */

/* By words: in a browser, copying a few bytes by memcpy() costs more than all the rest. */
static inline void copy_one(char *to, const char *from, size_t size)
{
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t word;
        __builtin_memcpy(&word, from + i, sizeof word);
        __builtin_memcpy(to + i, &word, sizeof word);
    }
}

/* Two runs that follow one another, from `a` to `b` and from there to `end`. */
static void merge(const char *a, const char *b, const char *end, char *to, size_t size,
                  compare_fn *compare)
{
    const char *a_end = b;
    while (a < a_end && b < end) {
        const char **least = compare(a, b) <= 0 ? &a : &b;
        copy_one(to, *least, size);
        *least += size;
        to += size;
    }
    memcpy(to, a, (size_t)(a_end - a));
    memcpy(to + (a_end - a), b, (size_t)(end - b));
}

/* What is a few places too late goes back, so that it ends no run: past what is greater, and no further. */
static void put_back(char *data, size_t i, size_t size, compare_fn *compare)
{
    char one[MOST_SIZE];
    size_t to = i;
    copy_one(one, data + i * size, size);
    for (; to && i - to < NEAR && compare(data + (to - 1) * size, one) > 0; to--)
        copy_one(data + to * size, data + (to - 1) * size, size);
    copy_one(data + to * size, one, size);
}

void fm_sort_runs(void *data, size_t count, size_t size, compare_fn *compare)
{
    FM_VEC(size_t) ends = { 0 }; /* of runs, in bytes */
    char *from = data;
    for (size_t i = 1; i < count && size <= MOST_SIZE; i++)
        if (compare(from + (i - 1) * size, from + i * size) > 0)
            put_back(from, i, size, compare);
    for (size_t i = 1; i < count; i++)
        if (compare(from + (i - 1) * size, from + i * size) > 0)
            fm_vec_push(&ends, i * size);
    if (!ends.len)
        return;
    fm_vec_push(&ends, count * size);
    char *spare = fm_malloc(count * size), *to = spare;
    while (ends.len > 1) {
        size_t begin = 0, kept = 0;
        for (size_t i = 0; i < ends.len; i += 2) {
            size_t middle = ends.data[i], end = ends.data[i + 1 < ends.len ? i + 1 : i];
            merge(from + begin, from + middle, from + end, to + begin, size, compare);
            ends.data[kept++] = begin = end;
        }
        ends.len = kept;
        char *merged = to;
        to = from;
        from = merged;
    }
    if (from != data)
        memcpy(data, from, count * size);
    free(spare);
    fm_vec_release(&ends);
}

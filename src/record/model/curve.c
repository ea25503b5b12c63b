/* A curve of memory that stays short; see curve.h. */
#include "record/model/curve.h"

#include <stddef.h>

static const size_t places[FM_CURVE_COLUMNS] = {
    offsetof(struct fm_memory_point, heap),  offsetof(struct fm_memory_point, rss),
    offsetof(struct fm_memory_point, pss),   offsetof(struct fm_memory_point, swap),
    offsetof(struct fm_memory_point, limit), offsetof(struct fm_memory_point, group),
};

static int64_t *value_of(struct fm_memory_point *point, size_t column)
{
    return (int64_t *)((char *)point + places[column]);
}

void fm_curve_release(struct fm_curve *c)
{
    fm_vec_release(&c->points);
    *c = (struct fm_curve){ 0 };
}

static void gather(struct fm_curve_group *g, const struct fm_memory_point *look, uint32_t stride)
{
    struct fm_memory_point point = *look;
    uint32_t at = g->looks++;
    if (at == 0)
        g->first_ns = point.at_ns;
    if (at == stride / 2)
        g->half_ns = point.at_ns;
    for (size_t i = 0; i < FM_CURVE_COLUMNS; i++) {
        struct fm_curve_extremes *e = &g->columns[i];
        int64_t value = *value_of(&point, i);
        if (value < 0)
            continue;
        if (!e->known || value < e->low) {
            e->low = value;
            e->low_at = at;
        }
        if (!e->known || value > e->high) {
            e->high = value;
            e->high_at = at;
        }
        e->known++;
    }
}

/* The two points of a group; returns how many there are: one, if all of it was one look. */
static size_t points_of(const struct fm_curve_group *g, uint32_t stride,
                        struct fm_memory_point points[2])
{
    points[0] = (struct fm_memory_point){ .at_ns = g->first_ns };
    points[1] =
        (struct fm_memory_point){ .at_ns = g->looks > stride / 2 ? g->half_ns : g->first_ns };
    for (size_t i = 0; i < FM_CURVE_COLUMNS; i++) {
        const struct fm_curve_extremes *e = &g->columns[i];
        int64_t first = -1, second = -1;
        if (e->known == 1 && e->low_at < stride / 2)
            first = e->low;
        else if (e->known == 1)
            second = e->low;
        else if (e->known) {
            first = e->low_at < e->high_at ? e->low : e->high;
            second = e->low_at < e->high_at ? e->high : e->low;
        }
        *value_of(&points[0], i) = first;
        *value_of(&points[1], i) = second;
    }
    return g->looks > 1 ? 2 : g->looks;
}

/* Each four points become two. */
static void thin_out(struct fm_curve *c)
{
    size_t len = 0;
    for (size_t at = 0; at < c->points.len; at += 4) {
        struct fm_curve_group g = { 0 };
        struct fm_memory_point points[2];
        for (size_t i = at; i < at + 4 && i < c->points.len; i++)
            gather(&g, &c->points.data[i], 4);
        size_t n = points_of(&g, 4, points);
        for (size_t i = 0; i < n; i++)
            c->points.data[len++] = points[i];
    }
    c->points.len = len;
    c->stride = c->stride ? c->stride * 2 : 4;
}

void fm_curve_add(struct fm_curve *c, const struct fm_memory_point *look)
{
    if (c->stride == 0 && c->points.len < FM_CURVE_POINTS_MAX) {
        fm_vec_push(&c->points, *look);
        return;
    }
    if (c->points.len + 2 > FM_CURVE_POINTS_MAX && c->group.looks == 0)
        thin_out(c);
    gather(&c->group, look, c->stride);
    if (c->group.looks < c->stride)
        return;
    struct fm_memory_point points[2];
    size_t n = points_of(&c->group, c->stride, points);
    for (size_t i = 0; i < n; i++)
        fm_vec_push(&c->points, points[i]);
    c->group = (struct fm_curve_group){ 0 };
}

void fm_curve_copy(const struct fm_curve *c, uint32_t process, struct fm_memory *into)
{
    struct fm_memory_point rest[2];
    size_t n = points_of(&c->group, c->stride, rest);
    for (size_t i = 0; i < c->points.len + n; i++) {
        struct fm_memory_point point =
            i < c->points.len ? c->points.data[i] : rest[i - c->points.len];
        point.process = process;
        fm_vec_push(&into->points, point);
    }
}

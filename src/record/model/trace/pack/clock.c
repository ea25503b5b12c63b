/* The clock of a traced process; see clock.h. */
#include "record/model/trace/pack/clock.h"

#include <string.h>

#define SPACING_NS 1000000000u /* pairs that lie closer are as good as one */
#define JUMP_PART  100u        /* … of the time between two pairs */
#define JUMP_NS    20000000u   /* … and at least this: who reads both clocks may be interrupted */

static void set_paces(struct fm_trace_clock *clock)
{
    struct fm_clock_point *points = clock->points.data;
    size_t count = clock->points.len;
    clock->near = 0;
    clock->pace = 0;
    for (size_t i = 0; i + 1 < count; i++)
        points[i].ns_per_tick = (double)(points[i + 1].ns - points[i].ns) /
                                (double)(points[i + 1].ticks - points[i].ticks);
    if (count < 2) {
        if (count)
            points[0].ns_per_tick = 1;
        return;
    }
    points[count - 1].ns_per_tick = points[count - 2].ns_per_tick;
    clock->pace = (double)(points[count - 1].ns - points[0].ns) /
                  (double)(points[count - 1].ticks - points[0].ticks);
    if (!(clock->pace > 0))
        clock->pace = 0;
}

static bool is_jump(const struct fm_trace_clock *clock, uint64_t ticks, uint64_t ns)
{
    const struct fm_clock_point *last = &clock->points.data[clock->points.len - 1];
    if (clock->points.len < 2 || !(clock->pace > 0))
        return false;
    double real = (double)(ns - last->ns), told = (double)(ticks - last->ticks) * clock->pace;
    double off = real > told ? real - told : told - real;
    return off > JUMP_NS && off > real / JUMP_PART;
}

bool fm_trace_clock_append(struct fm_trace_clock *clock, uint64_t ticks, uint64_t ns)
{
    struct fm_clock_point point = { .ticks = ticks, .ns = ns };
    size_t count = clock->points.len;
    if (ticks >> 62 || ns >> 62)
        return false;
    if (count) {
        const struct fm_clock_point *last = &clock->points.data[count - 1];
        if (ticks <= last->ticks || ns < last->ns)
            return false;
        point.jump = is_jump(clock, ticks, ns);
    }
    fm_vec_push(&clock->points, point);
    set_paces(clock);
    return true;
}

bool fm_trace_clock_add(struct fm_trace_clock *clock, uint64_t ticks, uint64_t ns)
{
    size_t count = clock->points.len;
    if (count >= 2 && ns < clock->points.data[count - 1].ns + SPACING_NS)
        return false;
    return fm_trace_clock_append(clock, ticks, ns);
}

void fm_trace_clock_release(struct fm_trace_clock *clock)
{
    fm_vec_release(&clock->points);
}

/* The point at or before `ticks`; the first if there is none. */
static size_t find(const struct fm_trace_clock *clock, uint64_t ticks)
{
    size_t low = 0, high = clock->points.len;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (clock->points.data[middle].ticks <= ticks)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Exact where it can be: instants may be nanoseconds since 1970, which no double holds. */
static uint64_t length_at(double pace, uint64_t ticks)
{
    return pace == 1.0 ? ticks : (uint64_t)((double)ticks * pace);
}

uint64_t fm_trace_clock_find_ns(struct fm_trace_clock *clock, uint64_t ticks)
{
    size_t count = clock->points.len, i = clock->near;
    if (!count)
        return ticks;
    const struct fm_clock_point *points = clock->points.data;
    if (ticks < points[i].ticks || (i + 1 < count && ticks >= points[i + 1].ticks))
        i = clock->near = find(clock, ticks);
    if (ticks < points[i].ticks) {
        uint64_t before = length_at(points[i].ns_per_tick, points[i].ticks - ticks);
        return before < points[i].ns ? points[i].ns - before : 0;
    }
    uint64_t ns = points[i].ns + length_at(points[i].ns_per_tick, ticks - points[i].ticks);
    return i + 1 < count && ns > points[i + 1].ns ? points[i + 1].ns : ns;
}

uint64_t fm_trace_clock_length_ns(const struct fm_trace_clock *clock, uint64_t ticks)
{
    return clock->pace > 0 ? length_at(clock->pace, ticks) : ticks;
}

uint64_t fm_trace_clock_ticks(const struct fm_trace_clock *clock, uint64_t ns)
{
    struct fm_trace_clock copy = *clock;
    uint64_t low = 0, high = (uint64_t)1 << 62;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (fm_trace_clock_ns(&copy, middle) <= ns)
            low = middle;
        else
            high = middle;
    }
    return low;
}

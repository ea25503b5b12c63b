/* The clocks of runs that were merged; see run_clocks.h. */
#include "record/model/trace/lanes/run_clocks.h"

#include <stdlib.h>

#define ONE_MACHINE_NS 1000000
#define READING_NS     1000u              /* between two readings of a clock */
#define MOST_SHIFT_NS  ((int64_t)1 << 61) /* beyond, somebody is lying */

struct offset_list {
    FM_VEC(int64_t) ns;
};

static int compare_offsets(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static uint64_t distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static struct fm_run_clock clock_of(const struct fm_profile *p, uint32_t run,
                                    struct offset_list *list)
{
    struct fm_run_clock clock = { .uncertain_ns = READING_NS };
    list->ns.len = 0;
    for (size_t i = 0; i < p->processes.len; i++) {
        const struct fm_process *process = &p->processes.data[i];
        if (process->run == run && process->start_real_ns && process->start_ns)
            fm_vec_push(&list->ns, (int64_t)(process->start_real_ns - process->start_ns));
    }
    if (!list->ns.len)
        return clock;
    qsort(list->ns.data, list->ns.len, sizeof *list->ns.data, compare_offsets);
    clock.known = true;
    clock.offset_ns = list->ns.data[list->ns.len / 2];
    uint64_t half = distance(list->ns.data[list->ns.len - 1], list->ns.data[0]) / 2;
    clock.uncertain_ns = half > READING_NS ? half : READING_NS;
    return clock;
}

void fm_run_clocks_find(struct fm_run_clocks *clocks, const struct fm_profile *p)
{
    struct offset_list list = { 0 };
    uint32_t runs = 1;
    int64_t first = INT64_MAX;
    clocks->runs.len = 0;
    for (size_t i = 0; i < p->processes.len; i++) /* there are no more runs than processes */
        if (p->processes.data[i].run >= runs && p->processes.data[i].run < p->processes.len)
            runs = p->processes.data[i].run + 1;
    for (uint32_t run = 0; run < runs && runs > 1; run++) {
        struct fm_run_clock clock = clock_of(p, run, &list);
        fm_vec_push(&clocks->runs, clock);
        first = clock.known && clock.offset_ns < first ? clock.offset_ns : first;
    }
    fm_vec_release(&list.ns);
    for (size_t run = 0; run < clocks->runs.len; run++) {
        struct fm_run_clock *clock = &clocks->runs.data[run];
        uint64_t shift_ns = clock->known ? distance(clock->offset_ns, first) : 0;
        if (shift_ns >= ONE_MACHINE_NS && shift_ns < (uint64_t)MOST_SHIFT_NS)
            clock->shift_ns = shift_ns;
        else if (shift_ns < ONE_MACHINE_NS && shift_ns > clock->uncertain_ns)
            clock->uncertain_ns = shift_ns;
        else if (shift_ns >= (uint64_t)MOST_SHIFT_NS)
            clock->known = false;
    }
}

void fm_run_clocks_release(struct fm_run_clocks *clocks)
{
    fm_vec_release(&clocks->runs);
}

uint64_t fm_run_clocks_shift_ns(const struct fm_run_clocks *clocks, const struct fm_profile *p,
                                uint32_t process)
{
    uint32_t run = process < p->processes.len ? p->processes.data[process].run : 0;
    return run < clocks->runs.len ? clocks->runs.data[run].shift_ns : 0;
}

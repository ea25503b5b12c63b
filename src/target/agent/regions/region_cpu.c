/* Processor time of threads, for regions; see region_cpu.h. */
#include "target/agent/regions/region_cpu.h"

#include <time.h>

struct fm_region_clock fm_region_clock_new(struct fm_clock_pair since)
{
    struct fm_clock_pair now = fm_clock_pair_now();
    double ns = (double)(now.ns - since.ns);
    double limit = ns > 0 ? FM_REGION_CPU_NS * ((double)(now.ticks - since.ticks) / ns) : 0;
    return (struct fm_region_clock){ .limit_ticks = limit < 1e9 ? (uint64_t)limit : 0 };
}

void fm_region_clock_read(struct fm_region_clock *clock)
{
    clock->ns = (int64_t)fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    clock->read_ticks = fm_clock_ticks();
}

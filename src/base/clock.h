/*
 * Clocks: a tick counter that costs a few nanoseconds, and the system's clocks in nanoseconds.
 *
 * Ticks are the time-stamp counter (x86-64) or the virtual counter (AArch64): constant rate on
 * every machine this runs on in practice. A tick has no fixed length; whoever reads ticks later
 * needs two (ticks, ns) pairs far enough apart, see `struct fm_clock_pair`. Elsewhere a tick is a
 * nanosecond. Usable inside a profiled process: no allocation, errno is untouched.
 */
#ifndef FM_BASE_CLOCK_H
#define FM_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t fm_clock_read_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t fm_clock_ns(void)
{
    return fm_clock_read_ns(CLOCK_MONOTONIC);
}

static inline uint64_t fm_clock_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return fm_clock_ns();
#endif
}

struct fm_clock_pair {
    uint64_t ticks, ns;
};

/* Both clocks at one instant: the closest of a few readings. */
static inline struct fm_clock_pair fm_clock_pair_now(void)
{
    struct fm_clock_pair best = { 0, 0 };
    uint64_t narrowest = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t before = fm_clock_ticks();
        uint64_t ns = fm_clock_ns();
        uint64_t after = fm_clock_ticks();
        if (after - before < narrowest) {
            narrowest = after - before;
            best = (struct fm_clock_pair){ before + (after - before) / 2, ns };
        }
    }
    return best;
}

#endif

/* The floor of sampling from a program's own processor: a thread that wakes there as often as asked
 * for, as a sampler would, and does nothing. What this costs the program, no look can cost less.
 *
 *   wake PID RATE          until it is interrupted */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "watch/os/still/seat.h"

#define FOLLOW 64 /* wakes after which to see where the program is */

static volatile sig_atomic_t over;

static void end(int signal)
{
    (void)signal;
    over = 1;
}

static int cpu_of(const char *pid)
{
    char path[64], text[1024] = "";
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f)
        exit(1);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 39; field++)
        at = strchr(at + 1, ' ');
    return at ? atoi(at + 1) : 0;
}

int main(int argc, char **argv)
{
    struct fm_seat seat;
    struct timespec at;
    if (argc != 3)
        return 2;
    signal(SIGINT, end);
    fm_seat_init(&seat, true);
    long interval_ns = 1000000000 / atol(argv[2]);
    clock_gettime(CLOCK_MONOTONIC, &at);
    for (unsigned i = 0; !over; i++) {
        if (i % FOLLOW == 0)
            fm_seat_take(&seat, cpu_of(argv[1]));
        at.tv_nsec += interval_ns / 2 + random() % interval_ns;
        at.tv_sec += at.tv_nsec / 1000000000;
        at.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
    return 0;
}

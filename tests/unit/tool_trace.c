/*
 * Writes a recording with a trace of a made-up program, for tests of timelines and for measuring them:
 *
 *     tool_trace OUTPUT EVENTS [PROCESSES [THREADS]]
 *     tool_trace --read RECORDING: what its timeline costs to open and to look at
 *
 * A thread handles requests, one after the other: calls down to 60 deep that follow one another as in a
 * program, some slow, with exceptions, collections, regions, counters, and tasks on the first thread.
 * Says what packing cost.
 */
#include <fcntl.h>
#include <time.h>

#include "record/model/file/file.h"
#include "record/model/trace/lanes/timeline.h"
#include "trace_profile.h"
#include "trace_words.h"

#define FUNCTIONS    400u
#define NAMES        12u
#define SHIFT        3
#define TICKS_PER_NS 2.6

struct program {
    struct trace_words w;
    uint64_t now;   /* ticks */
    uint64_t state; /* of chance */
    uint64_t shape; /* … that decides what is called */
    uint64_t left;  /* events to make */
    uint32_t stack[64];
    unsigned depth;
    uint32_t task;
};

static uint32_t chance(struct program *g)
{
    g->state = g->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(g->state >> 33);
}

/* Requests of one kind call the same. */
static uint32_t choice(struct program *g)
{
    g->shape = g->shape * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(g->shape >> 33);
}

static void advance(struct program *g, uint32_t ns)
{
    g->now += (uint64_t)((double)(ns / 10 * 10) * TICKS_PER_NS);
}

static void step(struct program *g)
{
    uint32_t r = chance(g);
    advance(g, 40 + (r & 127) + (r % 97 == 0 ? r % 3000 : 0) + (r % 50021 == 0 ? r % 3000000 : 0));
}

static void mark(struct program *g, unsigned kind, uint32_t a, uint32_t b, uint32_t c, unsigned n)
{
    words_escape(&g->w, g->now, kind, (const uint32_t[]){ a, b, c }, n);
}

static void call(struct program *g, uint32_t func)
{
    step(g);
    words_call(&g->w, g->now, func);
    g->stack[g->depth++] = func;
    g->left -= g->left > 0;
}

static void leave(struct program *g)
{
    step(g);
    if (chance(g) % 3001 == 0) {
        mark(g, FM_TRACE_RAISE, 1 + chance(g) % 3, 0, 0, 1);
        mark(g, FM_TRACE_UNWIND, 0, 0, 0, 0);
    } else {
        words_return(&g->w, g->now);
    }
    g->depth--;
    g->left -= g->left > 0;
}

/* What a function calls follows from what it is, and a little from chance. */
static void body(struct program *g, unsigned deepest)
{
    uint32_t func = g->stack[g->depth - 1];
    unsigned calls = 1 + func % 4;
    if (choice(g) % 64 == 0)
        calls += 6;
    for (unsigned i = 0; i < calls && g->left && g->depth < deepest; i++) {
        call(g, 10 + (func * 7 + i * 13 + (choice(g) % 16 == 0)) % (FUNCTIONS - 10));
        if (choice(g) % 64 < 25 || g->depth % 60 > 45)
            body(g, deepest);
        leave(g);
    }
    if (chance(g) % 20000 == 0) {
        mark(g, FM_TRACE_GC_BEGIN, chance(g) % 3, 0, 0, 1);
        advance(g, 200000 + chance(g) % 2000000);
        mark(g, FM_TRACE_GC_END, chance(g) % 500, 0, 0, 2);
    }
}

static void request(struct program *g, uint32_t number)
{
    if (g->w.thread == 1) {
        mark(g, FM_TRACE_TASK_NEW, number, 10, number > 4 ? number - 4 : 0, 3);
        mark(g, FM_TRACE_TASK_STEP, number, 0, 0, 1);
    }
    g->shape = number % 20;
    call(g, 2 + number % 3);
    mark(g, FM_TRACE_REGION_BEGIN, 4 + number % 2, 0, 0, 1);
    for (unsigned i = 0; i < 4; i++) {
        call(g, 5 + i);
        body(g, 4 + choice(g) % 56);
        leave(g);
    }
    if (number % 97 == 0) /* a slow one */
        advance(g, 20000000);
    mark(g, FM_TRACE_REGION_END, 4 + number % 2, 0, 0, 1);
    if (number % 8 == 0)
        mark(g, FM_TRACE_COUNTER, 8, 0, 0x40000000 + (number % 100) * 4096, 3);
    leave(g);
    if (g->w.thread == 1) {
        mark(g, FM_TRACE_TASK_STEP, 0, 0, 0, 1);
        mark(g, FM_TRACE_TASK_DONE, number, 0, 0, 1);
    }
    advance(g, chance(g) % 200000);
}

static void run_process(struct fm_profile *p, uint32_t number, uint64_t events, uint32_t threads)
{
    struct trace_packed packed = trace_packed_new();
    struct fm_trace_pack *pack = fm_trace_pack_new(SHIFT, trace_sink, &packed);
    struct program **all = calloc(threads, sizeof *all);
    struct timespec begin, end;
    uint64_t start = 260000000000u + number * 5000000, made = 0;
    fm_trace_pack_clock(pack, start, (uint64_t)((double)start / TICKS_PER_NS));
    fm_trace_pack_clock(pack, start + 2600000, (uint64_t)((double)start / TICKS_PER_NS) + 1000000);
    for (uint32_t t = 0; t < threads; t++) {
        struct program *g = all[t] = calloc(1, sizeof *g);
        g->w = (struct trace_words){ .pack = pack, .thread = t + 1, .tid = 100 * number + t };
        g->w.shift = SHIFT;
        g->w.ns_per_tick = 1 / TICKS_PER_NS;
        g->now = start + t * 3000000;
        g->state = number * 1000 + t;
        g->left = events / threads;
        words_begin(&g->w, g->now);
        call(g, 1);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (uint32_t r = 1, busy = threads; busy; r++) {
        busy = 0;
        for (uint32_t t = 0; t < threads; t++) {
            if (all[t]->left) {
                request(all[t], r);
                busy++;
            }
        }
    }
    for (uint32_t t = 0; t < threads; t++) {
        if (t % 2)
            leave(all[t]);
        words_hand_over(&all[t]->w);
        free(all[t]);
    }
    fm_trace_pack_end(pack, 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    size_t count;
    const struct fm_trace_thread *known = fm_trace_pack_threads(pack, &count);
    for (size_t i = 0; i < count; i++)
        made += known[i].events;
    double seconds =
        (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    printf(
        "process %u: %llu events, %.1f ns each with making them; bytes each: events %.3f, levels "
        "%.3f, rest %.3f\n",
        number, (unsigned long long)made, seconds * 1e9 / (double)made,
        (double)packed.events_bytes / (double)made, (double)packed.level_bytes / (double)made,
        (double)packed.other_bytes / (double)made);
    trace_add(p, pack, &packed, 1000 + number, FUNCTIONS, NAMES);
    fm_trace_pack_free(pack);
    free(all);
}

/* ---- reading ---- */

static double seconds_since(const struct timespec *begin)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begin->tv_sec) + 1e-9 * (double)(now.tv_nsec - begin->tv_nsec);
}

static bool count_span(void *context, const struct fm_time_span *span)
{
    uint64_t *spans = context;
    *spans += span->end_ns >= span->begin_ns;
    return true;
}

static void say_sizes(const struct fm_profile *p, uint64_t events)
{
    uint64_t bytes[64] = { 0 };
    for (size_t i = 0; i < p->traces.list.len; i++)
        for (size_t k = 0; k < p->traces.list.data[i].blocks.len; k++)
            bytes[p->traces.list.data[i].blocks.data[k].type & 63] +=
                p->traces.list.data[i].blocks.data[k].bytes;
    printf("bytes per event: events %.3f, levels %.3f, marks %.3f, tasks %.3f\n",
           (double)bytes[34] / (double)events, (double)bytes[35] / (double)events,
           (double)bytes[36] / (double)events, (double)bytes[39] / (double)events);
}

/* What the timeline of a recording costs to open and to look at. */
static int read_back(const char *path)
{
    struct fm_error err = FM_ERROR_INIT;
    struct timespec begin;
    struct fm_cells cells = { 0 };
    struct fm_durations slow;
    uint64_t events = 0, spans = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct fm_profile *p =
        fm_file_load_fd(fd, (uint64_t)lseek(fd, 0, SEEK_END), path, FM_FILE_ALL, &err);
    printf("load %.1f ms\n", seconds_since(&begin) * 1e3);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    struct fm_timeline *t = p ? fm_timeline_open(p, &err) : NULL;
    if (!t) {
        fprintf(stderr, "%s: no timeline %s\n", path, err.text);
        return 1;
    }
    printf("open %.1f ms\n", seconds_since(&begin) * 1e3);
    uint64_t length = fm_timeline_length_ns(t);
    for (size_t i = 0; i < fm_timeline_lanes(t); i++)
        events += fm_timeline_lane(t, i)->events;
    printf("%llu events, %.3f s\n", (unsigned long long)events, (double)length / 1e9);
    say_sizes(p, events);
    for (uint64_t part = 1; part <= 4096; part *= 4) {
        size_t count = 0;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (size_t i = 0; i < fm_timeline_lanes(t); i++) {
            fm_timeline_cells(t, i, length / 3, length / 3 + length / part,
                              length / part / 1600 + 1, &cells, &err);
            count += cells.cells.len;
        }
        printf("1/%llu of all: %zu cells, %.1f ms\n", (unsigned long long)part, count,
               seconds_since(&begin) * 1e3);
    }
    clock_gettime(CLOCK_MONOTONIC, &begin);
    fm_timeline_slowest(t, 12, 0, UINT64_MAX, 10, &slow, &err);
    printf("slowest %.1f ms\n", seconds_since(&begin) * 1e3);
    fm_durations_release(&slow);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (size_t i = 0; i < fm_timeline_lanes(t); i++)
        fm_timeline_spans(t, i, 0, UINT64_MAX, count_span, &spans, &err);
    printf("all %llu spans %.1f ms\n", (unsigned long long)spans, seconds_since(&begin) * 1e3);
    fm_cells_release(&cells);
    fm_timeline_free(t);
    fm_profile_free(p);
    close(fd);
    return 0;
}

int main(int argc, char **argv)
{
    struct fm_error err = FM_ERROR_INIT;
    if (argc == 3 && strcmp(argv[1], "--read") == 0)
        return read_back(argv[2]);
    if (argc < 3) {
        fprintf(stderr, "tool_trace OUTPUT EVENTS [PROCESSES [THREADS]]\n");
        return 2;
    }
    uint64_t events = strtoull(argv[2], NULL, 10);
    uint32_t processes = argc > 3 ? (uint32_t)atoi(argv[3]) : 2;
    uint32_t threads = argc > 4 ? (uint32_t)atoi(argv[4]) : 3;
    struct fm_profile *p = fm_profile_new();
    fm_profile_fact(p, "command", "made-up program");
    for (uint32_t i = 0; i < processes; i++)
        run_process(p, i, events / processes, threads);
    int fd = open(argv[1], O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
    int status = fd < 0 ? 1 : fm_file_save(p, fd, &err);
    if (status)
        fprintf(stderr, "%s\n", err.text);
    fm_profile_free(p);
    return status ? 1 : 0;
}

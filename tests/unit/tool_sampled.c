/*
 * Writes a sampled recording whose every number is known, for the behaviour tests of reports:
 *
 *     tool_sampled OUT.fathom [OUTSIDE]
 *
 * 1,000 samples of 1 ms each, in one process with two threads:
 *
 *     MainThread  <module> → main 20 python, 100 sleep
 *                             ├ fetch 30 python, 200 network
 *                             └ walk 50 python → walk 50 python → price 300 python, 100 c
 *     worker      work 100 gil, 50 lock
 *
 * and, if asked for, OUTSIDE more of the main thread that show no Python frame, in C.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "record/model/file/file.h"

#define MS 1000000

static const char app_source[] = "import socket, time\n"                   /* 1 */
                                 "\n"                                      /* 2 */
                                 "def price(x, y):\n"                      /* 3 */
                                 "    return (x * y) ** 2 + x / (y + 1)\n" /* 4 */
                                 "\n"                                      /* 5 */
                                 "def fetch(sock):\n"                      /* 6 */
                                 "    data = sock.recv(4096)\n"            /* 7 */
                                 "    return data.decode()\n"              /* 8 */
                                 "\n"                                      /* 9 */
                                 "def walk(n):\n"                          /* 10 */
                                 "    if n == 0:\n"                        /* 11 */
                                 "        return price(n, 2)\n"            /* 12 */
                                 "    return walk(n - 1)\n"                /* 13 */
                                 "\n"                                      /* 14 */
                                 "def main():\n"                           /* 15 */
                                 "    for i in range(1000):\n"             /* 16 */
                                 "        fetch(sock)\n"                   /* 17 */
                                 "        walk(3)\n"                       /* 18 */
                                 "    time.sleep(1)\n"                     /* 19 */
                                 "\n"                                      /* 20 */
                                 "main()\n";                               /* 21 */

static const char lib_source[] = "def work(lock):\n"
                                 "\tnäme = lock.acquire()\n";

static uint32_t function(struct fm_profile *p, const char *name, const char *file, uint32_t line)
{
    struct fm_function f = { .kind = FM_FUNCTION_PYTHON, .line = line };
    f.name = f.qualname = fm_profile_string(p, name);
    f.file = fm_profile_string(p, file);
    return fm_profile_function(p, &f);
}

static uint32_t thread(struct fm_profile *p, uint32_t tid, const char *name, uint64_t cpu_ms)
{
    struct fm_thread t = { .process = 0,
                           .tid = tid,
                           .name = fm_profile_string(p, name),
                           .start_ns = 1000 * MS,
                           .end_ns = 1850 * MS,
                           .cpu_ns = cpu_ms * MS };
    uint32_t id = fm_profile_thread(p, &t);
    return p->threads.data[id].root;
}

/* Samples that ended in a node; its callers' totals grow. */
static void add(struct fm_profile *p, uint32_t node, int64_t samples, enum fm_state state)
{
    fm_profile_add(p, FM_METRIC_SAMPLES, node, samples);
    fm_profile_add(p, fm_metric_of_state(state), node, samples * MS);
    for (uint32_t n = node; n != FM_NONE; n = p->nodes.data[n].parent)
        fm_profile_add(p, FM_METRIC_TOTAL, n, samples * MS);
}

static void line(struct fm_profile *p, uint32_t func, uint32_t number, int64_t total_ms,
                 enum fm_state state, int64_t samples, enum fm_state other, int64_t more)
{
    struct fm_line *row = fm_lines_add(&p->lines, 0, func, number, false);
    row->samples = samples + more;
    row->total_ns = total_ms * MS;
    row->self_ns = (samples + more) * MS;
    row->state_ns[state] += samples * MS;
    row->state_ns[other] += more * MS;
}

static void spot(struct fm_profile *p, uint32_t func, uint32_t number, uint32_t column,
                 uint32_t end_column, int64_t samples)
{
    struct fm_spot s = { 0, func, number, number, column, end_column, samples, samples * MS };
    fm_vec_push(&p->samples.spots, s);
}

static void wait_for(struct fm_profile *p, uint32_t func, uint32_t number, enum fm_state state,
                     const char *detail, int64_t samples)
{
    struct fm_wait w = {
        0, func, number, (uint32_t)state, fm_profile_string(p, detail), samples, samples * MS
    };
    fm_vec_push(&p->samples.waits, w);
}

static void source(struct fm_profile *p, const char *file, const char *text)
{
    struct fm_source s = { .file = fm_profile_string(p, file), .text = fm_profile_string(p, text) };
    fm_vec_push(&p->sources, s);
}

static void add_process(struct fm_profile *p)
{
    struct fm_process process = { .pid = 100,
                                  .command = fm_profile_string(p, "python3 app.py"),
                                  .version = fm_profile_string(p, "3.13.0"),
                                  .start_ns = 1000 * MS,
                                  .end_ns = 1850 * MS,
                                  .profiled = true,
                                  .sampled = true,
                                  .sample_interval_ns = MS,
                                  .sample_rounds = 850,
                                  .samples = 1000,
                                  .samples_partial = 3,
                                  .samples_lost = 2,
                                  .sampler_cpu_ns = 17 * MS };
    fm_profile_process(p, &process);
}

struct functions {
    uint32_t module, main, fetch, walk, price, work;
};

static void add_trees(struct fm_profile *p, const struct functions *f)
{
    uint32_t first = thread(p, 100, "MainThread", 550);
    uint32_t module = fm_profile_node(p, first, f->module);
    uint32_t top = fm_profile_node(p, module, f->main);
    uint32_t fetch = fm_profile_node(p, top, f->fetch);
    uint32_t outer = fm_profile_node(p, top, f->walk);
    uint32_t inner = fm_profile_node(p, outer, f->walk);
    uint32_t price = fm_profile_node(p, inner, f->price);
    uint32_t work = fm_profile_node(p, thread(p, 101, "worker", 1), f->work);
    add(p, top, 20, FM_STATE_PYTHON);
    add(p, top, 100, FM_STATE_SLEEP);
    add(p, fetch, 30, FM_STATE_PYTHON);
    add(p, fetch, 200, FM_STATE_NETWORK);
    add(p, outer, 50, FM_STATE_PYTHON);
    add(p, inner, 50, FM_STATE_PYTHON);
    add(p, price, 300, FM_STATE_PYTHON);
    add(p, price, 100, FM_STATE_C);
    add(p, work, 100, FM_STATE_GIL);
    add(p, work, 50, FM_STATE_LOCK);
}

static void add_places(struct fm_profile *p, const struct functions *f)
{
    line(p, f->module, 21, 850, FM_STATE_PYTHON, 0, FM_STATE_PYTHON, 0);
    line(p, f->main, 16, 20, FM_STATE_PYTHON, 20, FM_STATE_PYTHON, 0);
    line(p, f->main, 17, 230, FM_STATE_PYTHON, 0, FM_STATE_PYTHON, 0);
    line(p, f->main, 18, 500, FM_STATE_PYTHON, 0, FM_STATE_PYTHON, 0);
    line(p, f->main, 19, 100, FM_STATE_SLEEP, 100, FM_STATE_PYTHON, 0);
    line(p, f->fetch, 7, 200, FM_STATE_NETWORK, 200, FM_STATE_PYTHON, 0);
    line(p, f->fetch, 8, 30, FM_STATE_PYTHON, 30, FM_STATE_PYTHON, 0);
    line(p, f->walk, 12, 400, FM_STATE_PYTHON, 0, FM_STATE_PYTHON, 0);
    line(p, f->walk, 13, 500, FM_STATE_PYTHON, 100, FM_STATE_PYTHON, 0);
    line(p, f->price, 4, 400, FM_STATE_PYTHON, 300, FM_STATE_C, 100);
    line(p, f->work, 2, 150, FM_STATE_GIL, 100, FM_STATE_LOCK, 50);
    fm_lines_sort(&p->lines);
    spot(p, f->price, 4, 12, 24, 300); /* (x * y) ** 2 */
    spot(p, f->price, 4, 27, 38, 100); /* x / (y + 1) */
    spot(p, f->fetch, 7, 12, 27, 200); /* sock.recv(4096) */
    spot(p, f->work, 2, 10, 24, 150);  /* lock.acquire(), behind a tab and an umlaut */
    spot(p, f->main, 19, 0, 0, 100);   /* a Python without columns */
    wait_for(p, f->fetch, 7, FM_STATE_NETWORK, "tcp 127.0.0.1:5000 → 127.0.0.1:6379", 200);
    wait_for(p, f->work, 2, FM_STATE_LOCK, "held by MainThread in price, app.py:4", 50);
    wait_for(p, f->work, 2, FM_STATE_GIL, "held by MainThread", 100);
    wait_for(p, f->main, 19, FM_STATE_SLEEP, "", 100);
    fm_samples_sort(&p->samples);
}

int main(int argc, char **argv)
{
    struct fm_error err = FM_ERROR_INIT;
    if (argc != 2 && argc != 3)
        return 2;
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    struct fm_profile *p = fm_profile_new();
    fm_profile_fact(p, "command", "python3 app.py");
    add_process(p);
    struct functions f = { .module = function(p, "<module>", "/srv/app.py", 1),
                           .main = function(p, "main", "/srv/app.py", 15),
                           .fetch = function(p, "fetch", "/srv/app.py", 6),
                           .walk = function(p, "walk", "/srv/app.py", 10),
                           .price = function(p, "price", "/srv/app.py", 3),
                           .work = function(p, "work", "/srv/lib.py", 1) };
    add_trees(p, &f);
    if (argc == 3)
        add(p, p->threads.data[0].root, atoi(argv[2]), FM_STATE_C);
    add_places(p, &f);
    source(p, "/srv/app.py", app_source);
    source(p, "/srv/lib.py", lib_source);
    int rc = fd < 0 ? -1 : fm_file_save(p, fd, &err);
    if (rc)
        fprintf(stderr, "%s: %s\n", argv[1], err.text);
    fm_profile_free(p);
    if (fd >= 0)
        close(fd);
    return rc ? 1 : 0;
}

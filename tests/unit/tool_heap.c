/*
 * Writes a recording of memory whose every number is known, for tests of reports, formats and the page:
 *
 *     tool_heap OUT.fathom [SAMPLES]
 *
 * In MiB (blocks): at the peak; at the end; allocated; of these temporary. Lines are load.py's.
 *
 *     process 100
 *       MainThread  <before the program>                        2 (200); 1 (100); 3 (1000)
 *                   <module>:16 → main:13 → rows:2              4 (1);   0;       4 (1)
 *                                         → rows:5 → parse:9    1 (10);  ½ (5);   8 (800);  6 (600)
 *                                                  → parse:10   3 (30);  1 (10);  6 (60)
 *                                                    → parse:10 1 (10);  0;       1 (10)
 *                               → main:14 → rows:2              8 (1);   8 (1);   8 (1)
 *                                         → rows:5 → parse:9    0;       0;       2 (200);  2 (200)
 *       worker      of the thread itself                        1 (3);   1 (3);   1 (3)
 *     process 200, its child
 *       MainThread  <inherited by fork>                         5 (50);  5 (50);  0
 *                   <module>:16 → main:13 → rows:2              2 (1);   0;       2 (1)
 *                                                        sums: 27 (306); 16½ (169); 35 (2076); 8 (800)
 *
 * The heap of process 100 grows by 4 MiB a second from 2 to 18 MiB, is 20 MiB at its peak after 6 seconds and 11 MiB at
 * the end, after 10; resident are 10 MiB more. Process 200 lives from 3 to 8 seconds with 7 MiB, 12 resident. Both
 * may have 64 MiB. With SAMPLES the main thread was also seen that often, each for 1 ms, in main.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "record/capture/live_heap.h"
#include "record/model/file/file.h"

#define MS  1000000
#define MIB (1 << 20)

static const char load_source[] = "def rows(size):\n"              /* 1 */
                                  "    data = bytearray(size)\n"   /* 2 */
                                  "    cache = []\n"               /* 3 */
                                  "    for i in range(100):\n"     /* 4 */
                                  "        cache += parse(i)\n"    /* 5 */
                                  "    return data, cache\n"       /* 6 */
                                  "\n"                             /* 7 */
                                  "def parse(i):\n"                /* 8 */
                                  "    text = str(i) * 1000\n"     /* 9 */
                                  "    return [text] + parse(0)\n" /* 10 */
                                  "\n"                             /* 11 */
                                  "def main():\n"                  /* 12 */
                                  "    rows(4 << 20)\n"            /* 13 */
                                  "    return rows(8 << 20)\n"     /* 14 */
                                  "\n"                             /* 15 */
                                  "kept = main()\n";               /* 16 */

struct functions {
    uint32_t module, main, rows, parse;
};

static uint32_t function(struct fm_profile *p, const char *name, const char *file, uint32_t line)
{
    struct fm_function f = { .kind = *file ? FM_FUNCTION_PYTHON : FM_FUNCTION_REGION,
                             .line = line };
    f.name = f.qualname = fm_profile_string(p, name);
    f.file = fm_profile_string(p, file);
    return fm_profile_function(p, &f);
}

static uint32_t thread(struct fm_profile *p, uint32_t process, uint32_t tid, const char *name)
{
    struct fm_thread t = { .process = process,
                           .tid = tid,
                           .name = fm_profile_string(p, name),
                           .start_ns = p->processes.data[process].start_ns,
                           .end_ns = p->processes.data[process].end_ns };
    uint32_t id = fm_profile_thread(p, &t);
    return p->threads.data[id].root;
}

static void process(struct fm_profile *p, uint32_t pid, uint64_t start_ms, uint64_t end_ms)
{
    struct fm_process made = { .pid = pid,
                               .parent_pid = pid == 200 ? 100 : 1,
                               .command = fm_profile_string(p, "python3 load.py"),
                               .version = fm_profile_string(p, "3.13.0"),
                               .start_ns = start_ms * MS,
                               .end_ns = end_ms * MS,
                               .forked = pid == 200,
                               .profiled = true,
                               .memory = true,
                               .memory_python = true,
                               .memory_own_bytes = MIB };
    fm_profile_process(p, &made);
}

/* Bytes are in halves of a MiB. */
static void add(struct fm_profile *p, uint32_t node, const int64_t peak[2], const int64_t end[2],
                const int64_t all[2], const int64_t temporary[2])
{
    const int64_t *const numbers[] = { peak, end, all, temporary };
    for (int i = 0; i < 4; i++) {
        enum fm_metric bytes = (enum fm_metric)(FM_METRIC_PEAK + 2 * i);
        enum fm_metric blocks = (enum fm_metric)(FM_METRIC_PEAK_BLOCKS + 2 * i);
        fm_profile_add(p, bytes, node, numbers[i][0] * MIB / 2);
        fm_profile_add(p, blocks, node, numbers[i][1]);
    }
}

#define N(halves, blocks) ((const int64_t[2]){ halves, blocks })

static void add_parent(struct fm_profile *p, const struct functions *f)
{
    uint32_t top = thread(p, 0, 100, "MainThread");
    uint32_t before = fm_profile_node(p, top, function(p, "<before the program>", "", 0));
    uint32_t module = fm_profile_node_at(p, top, f->module, 16);
    uint32_t first = fm_profile_node_at(p, module, f->main, 13);
    uint32_t small = fm_profile_node_at(p, first, f->rows, 2);
    uint32_t loop = fm_profile_node_at(p, first, f->rows, 5);
    uint32_t text = fm_profile_node_at(p, loop, f->parse, 9);
    uint32_t list = fm_profile_node_at(p, loop, f->parse, 10);
    uint32_t inner = fm_profile_node_at(p, list, f->parse, 10);
    uint32_t second = fm_profile_node_at(p, module, f->main, 14);
    uint32_t large = fm_profile_node_at(p, second, f->rows, 2);
    uint32_t again = fm_profile_node_at(p, second, f->rows, 5);
    uint32_t other = fm_profile_node_at(p, again, f->parse, 9);
    add(p, before, N(4, 200), N(2, 100), N(6, 1000), N(0, 0));
    add(p, small, N(8, 1), N(0, 0), N(8, 1), N(0, 0));
    add(p, text, N(2, 10), N(1, 5), N(16, 800), N(12, 600));
    add(p, list, N(6, 30), N(2, 10), N(12, 60), N(0, 0));
    add(p, inner, N(2, 10), N(0, 0), N(2, 10), N(0, 0));
    add(p, large, N(16, 1), N(16, 1), N(16, 1), N(0, 0));
    add(p, other, N(0, 0), N(0, 0), N(4, 200), N(4, 200));
    add(p, thread(p, 0, 101, "worker"), N(2, 3), N(2, 3), N(2, 3), N(0, 0));
}

static void add_child(struct fm_profile *p, const struct functions *f)
{
    uint32_t top = thread(p, 1, 200, "MainThread");
    uint32_t before = fm_profile_node(p, top, function(p, "<inherited by fork>", "", 0));
    uint32_t module = fm_profile_node_at(p, top, f->module, 16);
    uint32_t first = fm_profile_node_at(p, module, f->main, 13);
    add(p, before, N(10, 50), N(10, 50), N(0, 0), N(0, 0));
    add(p, fm_profile_node_at(p, first, f->rows, 2), N(4, 1), N(0, 0), N(4, 1), N(0, 0));
}

static void add_samples(struct fm_profile *p, const struct functions *f, int64_t samples)
{
    uint32_t node = p->threads.data[0].root;
    p->processes.data[0].sampled = true;
    p->processes.data[0].samples = (uint64_t)samples;
    fm_profile_add(p, FM_METRIC_TOTAL, node, samples * MS);
    for (int i = 0; i < 2; i++) {
        node = fm_profile_node(p, node, i ? f->main : f->module);
        fm_profile_add(p, FM_METRIC_TOTAL, node, samples * MS);
    }
    fm_profile_add(p, FM_METRIC_SAMPLES, node, samples);
    fm_profile_add(p, fm_metric_of_state(FM_STATE_PYTHON), node, samples * MS);
}

static void point(struct fm_profile *p, uint32_t of, uint64_t second, int64_t heap, int64_t rss,
                  int64_t limit)
{
    struct fm_memory_point at = {
        of, (1000 + second * 1000) * MS, heap < 0 ? -1 : heap * MIB, rss * MIB, -1,
        -1, limit < 0 ? -1 : limit * MIB
    };
    fm_vec_push(&p->memory.points, at);
}

static void add_curves(struct fm_profile *p)
{
    static const int64_t heap[] = { 2, 6, 10, 14, 18, 18, 20, 16, 13, 12, 11 };
    for (uint64_t t = 0; t < FM_COUNT(heap); t++)
        point(p, 0, t, heap[t], heap[t] + 10, -1);
    for (uint64_t t = 3; t <= 8; t++)
        point(p, 1, t, 7, 12, -1);
    for (uint64_t t = 0; t < FM_COUNT(heap); t++)
        point(p, FM_NONE, t, -1, heap[t] + 10 + (t >= 3 && t <= 8 ? 12 : 0), 64);
}

static void count(struct fm_profile *p, uint32_t of, enum fm_heap_table table, uint32_t bucket,
                  int64_t blocks, int64_t mib)
{
    fm_vec_push(&p->memory.counts,
                ((struct fm_heap_count){ of, table, bucket, blocks, mib * MIB }));
}

static void add_counts(struct fm_profile *p)
{
    count(p, 0, FM_HEAP_SIZES, 20, 1700, 0); /* 1 KiB to below 1.5 KiB */
    count(p, 0, FM_HEAP_SIZES, 21, 373, 0);
    count(p, 0, FM_HEAP_SIZES, 44, 1, 0); /* 4 MiB */
    count(p, 0, FM_HEAP_SIZES, 46, 1, 0); /* 8 MiB */
    count(p, 1, FM_HEAP_SIZES, 42, 1, 0); /* 2 MiB */
    count(p, 0, FM_HEAP_LIVES, 1, 800, 0);
    count(p, 0, FM_HEAP_LIVES, 8, 1100, 0); /* 128 to below 256 allocations later */
    count(p, 1, FM_HEAP_LIVES, 3, 1, 0);
    count(p, 0, FM_HEAP_BY_KIND, FM_HEAP_KIND_OBJECT, 2000, 18);
    count(p, 0, FM_HEAP_BY_KIND, FM_HEAP_KIND_MALLOC, 75, 15);
    count(p, 1, FM_HEAP_BY_KIND, FM_HEAP_KIND_MALLOC, 1, 2);
}

int main(int argc, char **argv)
{
    struct fm_error err = FM_ERROR_INIT;
    if (argc != 2 && argc != 3)
        return 2;
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    struct fm_profile *p = fm_profile_new();
    fm_profile_fact(p, "command", "python3 load.py");
    process(p, 100, 1000, 11000);
    process(p, 200, 4000, 9000);
    struct functions f = { .module = function(p, "<module>", "/srv/load.py", 1),
                           .main = function(p, "main", "/srv/load.py", 12),
                           .rows = function(p, "rows", "/srv/load.py", 1),
                           .parse = function(p, "parse", "/srv/load.py", 8) };
    add_parent(p, &f);
    add_child(p, &f);
    if (argc == 3)
        add_samples(p, &f, atoi(argv[2]));
    add_curves(p);
    add_counts(p);
    fm_vec_push(&p->sources, ((struct fm_source){ .file = fm_profile_string(p, "/srv/load.py"),
                                                  .text = fm_profile_string(p, load_source) }));
    int rc = fd < 0 ? -1 : fm_file_save(p, fd, &err);
    if (rc)
        fprintf(stderr, "%s: %s\n", argv[1], err.text);
    fm_profile_free(p);
    if (fd >= 0)
        close(fd);
    return rc ? 1 : 0;
}

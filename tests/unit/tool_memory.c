/*
 * Writes a recording of memory whose every number is known, for the behaviour tests of reports:
 *
 *     tool_memory OUT.fathom [calls]
 *
 * In thousands of bytes at the peak, what is a context's own; a block has ten thousand bytes unless it
 * says another number behind it:
 *
 *     process 100 (all allocators)
 *       MainThread  <before the program> 1000/10000
 *                   <module>:16 → main:12 → block:4 4000/40, of which 3900/39 are bytearrays
 *                               → main:13 → walk:9 300/3 ┬ block:4 200/2
 *                                                        ├ walk:9 100/1 → block:4 50/1
 *                                                        └ walk:8 → block:4 150/1
 *                               → main:14, nothing at the peak, but 8000/800 freed at once
 *       worker      work:2 1500/15, of which 500/5 are bytes and 300/1 a list
 *       pool        700/7 without any Python code
 *     process 200 (malloc alone), forked
 *       MainThread  <inherited by fork> 2000/20
 *                   work:3 500/5
 *
 * All of it was allocated once, what was there before the program twice, and what was inherited never
 * (in this process). At the end there are a tenth of <before the program>, 500/5 of main:12's blocks
 * and all of work. If asked for, calls as well: main, 10 ms, called block 50 times, 4 ms.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record/model/file/file.h"

#define MS 1000000

static const char app_source[] = "import lib\n"                                      /* 1 */
                                 "\n"                                                /* 2 */
                                 "def block(n):\n"                                   /* 3 */
                                 "    return bytearray(n)\n"                         /* 4 */
                                 "\n"                                                /* 5 */
                                 "def walk(n):\n"                                    /* 6 */
                                 "    if n == 0:\n"                                  /* 7 */
                                 "        return [block(10)]\n"                      /* 8 */
                                 "    return walk(n - 1) + [block(1)]\n"             /* 9 */
                                 "\n"                                                /* 10 */
                                 "def main():\n"                                     /* 11 */
                                 "    keep = [block(100) for i in range(40)]\n"      /* 12 */
                                 "    walk(1)\n"                                     /* 13 */
                                 "    [bytes(10) + bytes(10) for i in range(800)]\n" /* 14 */
                                 "\n"                                                /* 15 */
                                 "main()\n";                                         /* 16 */

static const char lib_source[] = "def work():\n"
                                 "    here = [bytes(100) for i in range(15)]\n"
                                 "    there = [bytes(100) for i in range(5)]\n";

static uint32_t type(struct fm_profile *p, const char *name)
{
    struct fm_function f = { .kind = FM_FUNCTION_REGION, .flags = FM_FUNCTION_TYPE };
    f.name = f.qualname = fm_profile_string(p, name);
    return fm_profile_function(p, &f);
}

static uint32_t function(struct fm_profile *p, enum fm_function_kind kind, const char *name,
                         const char *file, uint32_t line)
{
    struct fm_function f = { .kind = kind, .line = line };
    f.name = f.qualname = fm_profile_string(p, name);
    f.file = fm_profile_string(p, file);
    return fm_profile_function(p, &f);
}

static uint32_t thread(struct fm_profile *p, uint32_t process, uint32_t tid, const char *name)
{
    struct fm_thread t = { .process = process,
                           .tid = tid,
                           .name = fm_profile_string(p, name),
                           .start_ns = 1000 * MS,
                           .end_ns = 1850 * MS };
    uint32_t id = fm_profile_thread(p, &t);
    return p->threads.data[id].root;
}

/* What was alive at the peak, and allocated so many times over. */
static void peak(struct fm_profile *p, uint32_t node, int64_t kilo, int64_t blocks, int64_t times)
{
    fm_profile_add(p, FM_METRIC_PEAK, node, kilo * 1000);
    fm_profile_add(p, FM_METRIC_PEAK_BLOCKS, node, blocks);
    fm_profile_add(p, FM_METRIC_ALLOCATED, node, kilo * 1000 * times);
    fm_profile_add(p, FM_METRIC_BLOCKS, node, blocks * times);
}

static void leak(struct fm_profile *p, uint32_t node, int64_t kilo, int64_t blocks)
{
    fm_profile_add(p, FM_METRIC_LEAKED, node, kilo * 1000);
    fm_profile_add(p, FM_METRIC_LEAKED_BLOCKS, node, blocks);
}

static void waste(struct fm_profile *p, uint32_t node, int64_t kilo, int64_t blocks)
{
    fm_profile_add(p, FM_METRIC_ALLOCATED, node, kilo * 1000);
    fm_profile_add(p, FM_METRIC_BLOCKS, node, blocks);
    fm_profile_add(p, FM_METRIC_TEMPORARY, node, kilo * 1000);
    fm_profile_add(p, FM_METRIC_TEMPORARY_BLOCKS, node, blocks);
}

static void add_process(struct fm_profile *p, uint32_t pid, bool calls, bool python)
{
    struct fm_process process = { .pid = pid,
                                  .parent_pid = pid == 200 ? 100 : 0,
                                  .command = fm_profile_string(p, "python3 app.py"),
                                  .version = fm_profile_string(p, "3.13.0"),
                                  .start_ns = 1000 * MS,
                                  .end_ns = 1850 * MS,
                                  .profiled = true,
                                  .calls = calls,
                                  .memory = true,
                                  .memory_python = python,
                                  .memory_own_bytes = 1024 * 1024 };
    fm_profile_process(p, &process);
}

static void count(struct fm_profile *p, uint32_t process, enum fm_heap_table table, uint32_t bucket,
                  int64_t blocks, int64_t bytes)
{
    fm_vec_push(&p->memory.counts,
                ((struct fm_heap_count){ process, table, bucket, blocks, bytes }));
}

/* Buckets 10 and 11 are 32 to 47 and 48 to 63 bytes, 20 is 1024 to 1535; a life in bucket n is
 * 2^(n−1) allocations or more; kinds 0 and 2 are Python's objects and malloc. */
static void add_counts(struct fm_profile *p)
{
    count(p, 0, FM_HEAP_SIZES, 10, 4000, 0);
    count(p, 0, FM_HEAP_SIZES, 11, 1000, 0);
    count(p, 0, FM_HEAP_SIZES, 20, 100, 0);
    count(p, 0, FM_HEAP_LIVES, 0, 800, 0);
    count(p, 0, FM_HEAP_LIVES, 1, 50, 0);
    count(p, 0, FM_HEAP_LIVES, 3, 10, 0);
    count(p, 0, FM_HEAP_BY_KIND, 0, 5000, 3000000);
    count(p, 0, FM_HEAP_BY_KIND, 2, 100, 7000000);
    count(p, 1, FM_HEAP_SIZES, 10, 1, 0);
    count(p, 1, FM_HEAP_BY_KIND, 2, 5, 500000);
}

static void look(struct fm_profile *p, uint32_t process, uint64_t ms, int64_t heap, int64_t rss)
{
    struct fm_memory_point point = { .process = process,
                                     .at_ns = ms * MS,
                                     .heap = heap,
                                     .rss = rss,
                                     .pss = -1,
                                     .swap = -1,
                                     .limit = -1 };
    fm_vec_push(&p->memory.points, point);
}

/* The highest of the heaps and of resident memory are of two instants. */
static void add_looks(struct fm_profile *p)
{
    look(p, 0, 1100, 5000000, 10000000);
    look(p, 0, 1200, 7000000, 12000000);
    look(p, 0, 1300, 6000000, 11000000);
    look(p, FM_NONE, 1200, 9000000, 20000000);
    look(p, FM_NONE, 1300, 8000000, 30000000);
}

struct functions {
    uint32_t before, inherited, module, block, walk, main, work;
    uint32_t bytearray, bytes, list; /* types */
};

static void add_memory(struct fm_profile *p, const struct functions *f, uint32_t first)
{
    uint32_t before = fm_profile_node(p, first, f->before);
    uint32_t module = fm_profile_node_at(p, first, f->module, 16);
    uint32_t kept = fm_profile_node_at(p, module, f->main, 12);
    uint32_t walked = fm_profile_node_at(p, module, f->main, 13);
    uint32_t wasted = fm_profile_node_at(p, module, f->main, 14);
    uint32_t blocks = fm_profile_node_at(p, kept, f->block, 4);
    uint32_t outer = fm_profile_node_at(p, walked, f->walk, 9);
    uint32_t inner = fm_profile_node_at(p, outer, f->walk, 9);
    uint32_t last = fm_profile_node_at(p, outer, f->walk, 8);
    peak(p, before, 1000, 10000, 2);
    leak(p, before, 100, 1000);
    peak(p, blocks, 100, 1, 1);
    peak(p, fm_profile_node(p, blocks, f->bytearray), 3900, 39, 1);
    leak(p, blocks, 500, 5);
    peak(p, outer, 300, 3, 1);
    peak(p, fm_profile_node_at(p, outer, f->block, 4), 200, 2, 1);
    peak(p, inner, 100, 1, 1);
    peak(p, fm_profile_node_at(p, inner, f->block, 4), 50, 1, 1);
    peak(p, fm_profile_node_at(p, last, f->block, 4), 150, 1, 1);
    waste(p, wasted, 8000, 800);
    uint32_t work = fm_profile_node_at(p, thread(p, 0, 101, "worker"), f->work, 2);
    peak(p, work, 700, 9, 1);
    peak(p, fm_profile_node(p, work, f->bytes), 500, 5, 1);
    peak(p, fm_profile_node(p, work, f->list), 300, 1, 1);
    leak(p, work, 1500, 15);
    peak(p, thread(p, 0, 102, "pool"), 700, 7, 1);
    uint32_t child = thread(p, 1, 200, "MainThread");
    peak(p, fm_profile_node(p, child, f->inherited), 2000, 20, 0);
    uint32_t there = fm_profile_node_at(p, child, f->work, 3);
    peak(p, there, 500, 5, 1);
    leak(p, there, 500, 5);
}

static void add_calls(struct fm_profile *p, const struct functions *f, uint32_t first)
{
    uint32_t main = fm_profile_node(p, first, f->main);
    uint32_t block = fm_profile_node(p, main, f->block);
    fm_profile_add(p, FM_METRIC_TOTAL, first, 10 * MS);
    fm_profile_add(p, FM_METRIC_TOTAL, main, 10 * MS);
    fm_profile_add(p, FM_METRIC_CALLS, main, 1);
    fm_profile_add(p, FM_METRIC_TOTAL, block, 4 * MS);
    fm_profile_add(p, FM_METRIC_CALLS, block, 50);
}

static void source(struct fm_profile *p, const char *file, const char *text)
{
    struct fm_source s = { .file = fm_profile_string(p, file), .text = fm_profile_string(p, text) };
    fm_vec_push(&p->sources, s);
}

int main(int argc, char **argv)
{
    struct fm_error err = FM_ERROR_INIT;
    if (argc != 2 && argc != 3)
        return 2;
    bool calls = argc == 3 && strcmp(argv[2], "calls") == 0;
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    struct fm_profile *p = fm_profile_new();
    fm_profile_fact(p, "command", "python3 app.py");
    add_process(p, 100, calls, true);
    add_process(p, 200, false, false);
    struct functions f = {
        .before = function(p, FM_FUNCTION_REGION, "<before the program>", "", 0),
        .inherited = function(p, FM_FUNCTION_REGION, "<inherited by fork>", "", 0),
        .module = function(p, FM_FUNCTION_PYTHON, "<module>", "/srv/app.py", 1),
        .block = function(p, FM_FUNCTION_PYTHON, "block", "/srv/app.py", 3),
        .walk = function(p, FM_FUNCTION_PYTHON, "walk", "/srv/app.py", 6),
        .main = function(p, FM_FUNCTION_PYTHON, "main", "/srv/app.py", 11),
        .work = function(p, FM_FUNCTION_PYTHON, "work", "/srv/lib.py", 1),
        .bytearray = type(p, "bytearray"),
        .bytes = type(p, "bytes"),
        .list = type(p, "list"),
    };
    uint32_t first = thread(p, 0, 100, "MainThread");
    if (calls)
        add_calls(p, &f, first);
    add_memory(p, &f, first);
    add_counts(p);
    add_looks(p);
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

/*
 * Writes a recording with a given number of calling contexts, to measure how long it takes to open:
 *
 *     contexts NODES OUT.fathom
 *
 * The tree is like those of large programs: 5,000 functions, half of them in libraries, each
 * context with up to four callees of unequal size, some thirty levels deep. Built by bench/run
 * against the libraries of the build.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "record/model/file/file.h"
#include "record/model/profile.h"

#define FUNCTIONS 5000

static uint32_t functions[FUNCTIONS];
static uint64_t random_state = 1;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % limit);
}

static void add_functions(struct fm_profile *p)
{
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        char name[64], file[96];
        const char *folder =
            i < FUNCTIONS / 2 ? "/srv/application" : "/srv/venv/lib/python3.13/site-packages";
        snprintf(name, sizeof name, "function_%u", i);
        snprintf(file, sizeof file, "%s/package_%u/module_%u.py", folder, i / 500, i / 20);
        uint32_t string = fm_profile_string(p, name);
        struct fm_function f = { .kind = FM_FUNCTION_PYTHON,
                                 .line = 1 + i % 20 * 15,
                                 .name = string,
                                 .qualname = string,
                                 .file = fm_profile_string(p, file) };
        functions[i] = fm_profile_function(p, &f);
    }
}

/* A context of `func` with `size` contexts in all from it on down; gives its total time. */
static int64_t add_contexts(struct fm_profile *p, uint32_t parent, uint32_t func, uint32_t size)
{
    uint32_t node = fm_profile_node(p, parent, functions[func]);
    int64_t calls = 1 + random_below(1000), total_ns = calls * (50 + random_below(400));
    uint32_t left = size - 1;
    for (uint32_t child = 0; left > 0; child++) {
        uint32_t part = child == 3 || left < 4 ? left : 1 + random_below(left * 2 / 3);
        total_ns += add_contexts(p, node, (func * 7 + child * 131 + 1) % FUNCTIONS, part);
        left -= part;
    }
    fm_profile_add(p, FM_METRIC_CALLS, node, calls);
    fm_profile_add(p, FM_METRIC_TOTAL, node, total_ns);
    fm_profile_add(p, FM_METRIC_MIN, node, 40 + random_below(100));
    fm_profile_add(p, FM_METRIC_MAX, node, 1000 + random_below(100000));
    return total_ns;
}

int main(int argc, char **argv)
{
    uint32_t nodes = argc == 3 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    if (nodes < 2) {
        fprintf(stderr, "usage: contexts NODES OUT.fathom\n");
        return 2;
    }
    struct fm_profile *p = fm_profile_new();
    fm_profile_reserve(p, nodes);
    add_functions(p);
    uint32_t process = fm_profile_process(p, &(struct fm_process){ .pid = 1, .profiled = true });
    uint32_t thread = fm_profile_thread(p, &(struct fm_thread){ .process = process, .tid = 1 });
    uint32_t root = p->threads.data[thread].root;
    fm_profile_add(p, FM_METRIC_TOTAL, root, add_contexts(p, root, 0, nodes - 1));

    struct fm_error err = FM_ERROR_INIT;
    int fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || fm_file_save(p, fd, &err) != 0 || close(fd) != 0) {
        fprintf(stderr, "contexts: cannot write %s: %s\n", argv[2], err.text);
        return 1;
    }
    fm_profile_free(p);
    return 0;
}

/*
 * Writes a recording that has a number of every metric and every state in each of its contexts, for
 * tests that ask whether all of them arrive everywhere:
 *
 *     tool_metrics OUT.fathom
 *
 *     MainThread  main 1 → f 2 → g 3
 *                      └ g 4
 *
 * The numbers are what is each context's own, in units of a millisecond, a KiB, a hundredth or one;
 * metrics that include callees have the sums. Metrics are taken from the model's list as it is.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "record/model/file/file.h"

static int64_t one_of(enum fm_metric metric)
{
    static const int64_t ones[FM_UNIT_KINDS] = {
        [FM_UNIT_COUNT] = 1,     [FM_UNIT_NS] = 1000000, [FM_UNIT_BYTES] = 1024,
        [FM_UNIT_SHARE] = 10000, [FM_UNIT_ERROR] = 1024,
    };
    return ones[fm_metric_info(metric)->unit];
}

/* So many of every metric are the node's own. */
static uint32_t node(struct fm_profile *p, uint32_t parent, const char *name, int64_t own)
{
    struct fm_function f = { .kind = FM_FUNCTION_PYTHON, .line = 1 };
    f.name = f.qualname = fm_profile_string(p, name);
    f.file = fm_profile_string(p, "/srv/app.py");
    uint32_t id = fm_profile_node(p, parent, fm_profile_function(p, &f));
    for (int m = 0; m < FM_METRIC_COUNT; m++) {
        enum fm_metric metric = (enum fm_metric)m;
        bool callees = fm_metric_info(metric)->scope == FM_OF_CALLEES;
        for (uint32_t n = id; n != FM_NONE; n = callees ? p->nodes.data[n].parent : FM_NONE)
            fm_profile_add(p, metric, n, own * one_of(metric));
    }
    return id;
}

int main(int argc, char **argv)
{
    struct fm_error err = FM_ERROR_INIT;
    if (argc != 2)
        return 2;
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    struct fm_profile *p = fm_profile_new();
    struct fm_process process = { .pid = 100,
                                  .profiled = true,
                                  .calls = true,
                                  .sampled = true,
                                  .samples = 10,
                                  .sample_rounds = 10,
                                  .sample_interval_ns = 1000000 };
    struct fm_thread thread = { .tid = 100, .name = fm_profile_string(p, "MainThread") };
    fm_profile_fact(p, "command", "python3 app.py");
    fm_profile_process(p, &process);
    uint32_t id = fm_profile_thread(p, &thread);
    uint32_t top = node(p, p->threads.data[id].root, "main", 1);
    node(p, node(p, top, "f", 2), "g", 3);
    node(p, top, "g", 4);
    int rc = fd < 0 ? -1 : fm_file_save(p, fd, &err);
    if (rc)
        fprintf(stderr, "%s: %s\n", argv[1], err.text);
    fm_profile_free(p);
    if (fd >= 0)
        close(fd);
    return rc ? 1 : 0;
}

/*
 * Starting under `fathom run`; see start.h.
 *
 * The preload library calls fathom_agent_start() when the interpreter is ready and about to run the
 * program, fathom_agent_audit() when source is compiled, and fathom_agent_end() when the process is
 * about to exit or exec. A failure in here turns the collector off and nothing else.
 */
#include "target/agent/start.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/command_line.h"
#include "base/run_config.h"
#include "target/agent/calibrate.h"
#include "target/agent/heap.h"
#include "target/agent/lines/decorator.h"
#include "target/agent/regions/regions.h"
#include "target/agent/sources.h"

#define EXPORT __attribute__((visibility("default")))

static struct fm_collector *running;
static PyInterpreterState *interpreter; /* the one that is recorded; others are left alone */
static struct fm_calibration cost;

struct fm_collector *fm_start_collector(void)
{
    return running;
}

/* ---- facts about the process ------------------------------------------------------------- */

/* The command line with its parts separated by spaces, cut to fit. */
static void read_command(char *out, size_t size)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, out, size - 1);
    if (fd >= 0)
        close(fd);
    if (len < 0)
        len = 0;
    while (len > 0 && out[len - 1] == '\0')
        len--;
    for (ssize_t i = 0; i < len; i++)
        if (out[i] == '\0' || out[i] == '\n')
            out[i] = ' ';
    out[len] = '\0';
}

static void describe_command(struct fm_collector *c)
{
    char command[4096], left[4096];
    read_command(command, sizeof command);
    if (c->redact)
        fm_command_line_redact(command, left, sizeof left);
    fm_store_info(&c->store, "command", c->redact ? left : command);
}

void fm_start_describe_process(struct fm_collector *c, uint32_t flags)
{
    char text[4096];
    struct fm_live_header *header = c->store.header;
    header->flags = flags | (c->c_calls ? FM_LIVE_C_CALLS : 0) | (c->calls ? FM_LIVE_CALLS : 0) |
                    (c->lines_on ? FM_LIVE_LINES_ON : 0) | (c->trace ? FM_LIVE_TRACED : 0);
    header->python_hex = PY_VERSION_HEX;
    header->nowhere = (uintptr_t)&c->nowhere;
    header->cost_python_call = cost.python_call;
    header->cost_c_call = cost.c_call;
    header->cost_resume = cost.resume;
    header->cost_line = cost.line;
    header->slow_permille = cost.slow_permille;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(Py_GetVersion(), " "), Py_GetVersion());
    fm_store_info(&c->store, "version", text);
    describe_command(c);
    ssize_t len = readlink("/proc/self/exe", text, sizeof text - 1);
    if (len > 0) {
        text[len] = '\0';
        fm_store_info(&c->store, "exe", text);
    }
    if (getcwd(text, sizeof text))
        fm_store_info(&c->store, "cwd", text);
    struct fm_clock_pair later = fm_clock_pair_now();
    header->later_ticks = later.ticks;
    header->later_ns = later.ns;
}

/* ---- what the preload library calls ------------------------------------------------------ */

EXPORT void fathom_agent_end(void)
{
    if (running)
        fm_collector_mark_end_of_process(running);
}

EXPORT void fathom_agent_audit(const char *event, void *args)
{
    /* Audit hooks are told of all interpreters, and each may have a GIL of its own. */
    if (PyInterpreterState_Get() == interpreter && running && running->store.header &&
        !running->forked && !running->redact && strcmp(event, "compile") == 0)
        fm_sources_see_compile(running, args);
}

/* Put @profile where programs written for line_profiler expect it, unless there is one. */
static void offer_decorator(void)
{
    PyObject *builtins = PyEval_GetBuiltins(); /* borrowed */
    PyObject *function =
        builtins && !PyDict_GetItemString(builtins, "profile") ? fm_decorator_function() : NULL;
    if (function)
        PyDict_SetItemString(builtins, "profile", function);
    Py_XDECREF(function);
    PyErr_Clear();
}

/* Starting takes milliseconds, in which others may get the processor: what it took of that counts. */
static void charge_start(struct fm_clock_pair since, uint64_t cpu_since_ns)
{
    struct fm_clock_pair now = fm_clock_pair_now();
    uint64_t cpu_ns = fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_since_ns;
    uint64_t ns = now.ns - since.ns, ticks = now.ticks - since.ticks;
    if (running->store.header)
        running->store.header->own_ticks +=
            cpu_ns < ns ? (uint64_t)((double)ticks * (double)cpu_ns / (double)ns) : ticks;
}

static uint64_t config_number(const char *config, const char *key)
{
    char text[32];
    return fm_run_config_value(config, key, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}

/* Of --trace: "trace" is what to do when there is no room, "block" or "drop". The texts must outlive
 * the options. */
struct trace_texts {
    char include[1024], exclude[1024];
};

static void read_trace_options(const char *config, struct fm_options *options,
                               struct trace_texts *texts)
{
    char trace[16];
    if (!fm_run_config_value(config, "trace", trace, sizeof trace))
        return;
    options->trace = options->calls = true;
    options->trace_drop = strcmp(trace, "drop") == 0;
    uint64_t depth = config_number(config, "max_depth");
    options->trace_depth = depth < UINT32_MAX ? (uint32_t)depth : 0;
    options->trace_min_ns = config_number(config, "min_ns");
    options->trace_late = config_number(config, "late");
    options->trace_exceptions = config_number(config, "exceptions");
    if (fm_run_config_value(config, "include", texts->include, sizeof texts->include))
        options->trace_include = texts->include;
    if (fm_run_config_value(config, "exclude", texts->exclude, sizeof texts->exclude))
        options->trace_exclude = texts->exclude;
}

EXPORT int fathom_agent_start(const char *config)
{
    char folder[512], more[512], c_calls[8], calls[8], lines[1024], split[8], redact[8];
    struct trace_texts trace_texts;
    if (running || !fm_run_config_value(config, "folder", folder, sizeof folder))
        return -1;
    struct fm_options options = { .folder = folder };
    if (fm_run_config_value(config, "more", more, sizeof more) && more[0])
        options.more_folder = more;
    options.c_calls = !fm_run_config_value(config, "c_calls", c_calls, sizeof c_calls) ||
                      strcmp(c_calls, "0") != 0;
    options.calls =
        !fm_run_config_value(config, "calls", calls, sizeof calls) || strcmp(calls, "0") != 0;
    if (fm_run_config_value(config, "lines", lines, sizeof lines))
        options.lines = lines;
    options.lines_split =
        fm_run_config_value(config, "split", split, sizeof split) && strcmp(split, "1") == 0;
    read_trace_options(config, &options, &trace_texts);
    if (options.trace)
        options.lines = NULL; /* they need stacks of their own */
    options.redact =
        fm_run_config_value(config, "redact", redact, sizeof redact) && strcmp(redact, "1") == 0;
    char memory[32];
    options.lines_wait = !options.calls && !options.lines &&
                         fm_run_config_value(config, "memory", memory, sizeof memory);
    struct fm_clock_pair since = fm_clock_pair_now();
    uint64_t cpu_ns = fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    struct fm_raised raised = fm_python_put_aside();
    bool listens = options.calls || options.lines; /* else the process is only described */
    if (listens)
        cost = fm_calibrate(&options);
    interpreter = PyInterpreterState_Get();
    fm_heap_introduce();
    running = fm_collector_new(&options);
    int rc = -1;
    if (running) {
        fm_regions_begin_run();
        atexit(fathom_agent_end);
        bool waits = options.trace && options.trace_late; /* until it is told to begin */
        rc = listens && !waits ? fm_collector_start(running) : 0;
        if (rc == 0 && (running->lines_on || running->lines_waiting))
            offer_decorator();
        charge_start(since, cpu_ns);
    }
    PyErr_Clear();
    fm_python_put_back(raised);
    return rc;
}

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
#include "target/agent/regions/foreign.h"
#include "target/agent/regions/regions.h"
#include "target/agent/sources.h"
#include "target/agent/threads.h"
#include "target/agent/trace/late.h"

#define EXPORT __attribute__((visibility("default")))

#define SCRIPT_FRAMES 2 /* of commands/attach/attach_script.c: a function in a module */

static struct fm_collector *running;
static PyInterpreterState *interpreter; /* the one that is recorded; others are left alone */
static struct fm_calibration cost;
static bool attached; /* it was begun by fm_start_attached() */

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
    if (strcmp(event, "exec") == 0)
        fm_foreign_see_exec(args);
    else if (PyInterpreterState_Get() == interpreter && running && running->store.header &&
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

/* What is too long is not there, which the launcher does not do. */
static void read_ask(const char *config, struct fm_trace_ask *ask)
{
    if (!fm_run_config_value(config, "args", ask->args, sizeof ask->args))
        ask->args[0] = '\0';
    if (!fm_run_config_value(config, "returns", ask->returns, sizeof ask->returns))
        ask->returns[0] = '\0';
    if (!fm_run_config_value(config, "watch", ask->watch, sizeof ask->watch))
        ask->watch[0] = '\0';
    ask->repr = config_number(config, "repr") == 1;
}

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
    read_ask(config, &options->ask);
}

/* The texts that options point to. */
struct option_texts {
    char folder[512], more[512], lines[1024];
    struct trace_texts trace;
};

static bool is_number(const char *config, const char *key, const char *number)
{
    char text[8];
    return fm_run_config_value(config, key, text, sizeof text) && strcmp(text, number) == 0;
}

static bool read_options(const char *config, struct fm_options *options, struct option_texts *texts)
{
    char memory[32];
    *options = (struct fm_options){ .folder = texts->folder };
    if (!fm_run_config_value(config, "folder", texts->folder, sizeof texts->folder))
        return false;
    if (fm_run_config_value(config, "more", texts->more, sizeof texts->more) && texts->more[0])
        options->more_folder = texts->more;
    options->c_calls = !is_number(config, "c_calls", "0");
    options->calls = !is_number(config, "calls", "0");
    if (fm_run_config_value(config, "lines", texts->lines, sizeof texts->lines))
        options->lines = texts->lines;
    options->lines_split = is_number(config, "split", "1");
    read_trace_options(config, options, &texts->trace);
    if (options->trace)
        options->lines = NULL; /* they need stacks of their own */
    options->redact = is_number(config, "redact", "1");
    options->lines_wait = !options->calls && !options->lines &&
                          fm_run_config_value(config, "memory", memory, sizeof memory);
    return true;
}

EXPORT int fathom_agent_start(const char *config)
{
    struct fm_options options;
    struct option_texts texts;
    if (running || !read_options(config, &options, &texts))
        return -1;
    struct fm_clock_pair since = fm_clock_pair_now();
    uint64_t cpu_ns = fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    struct fm_raised raised = fm_python_put_aside();
    bool listens = options.calls || options.lines; /* else the process is only described */
    if (listens && !attached) /* in a program that runs it would measure that, too */
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

/* ---- a program that runs already --------------------------------------------------------- */

static int begin_again(const char *config)
{
    struct fm_options options;
    struct option_texts texts;
    return read_options(config, &options, &texts) ? fm_collector_begin_again(running, &options)
                                                  : -1;
}

int fm_start_attached(const char *config)
{
    if (running && (!attached || running->store.header))
        return 1;
    attached = true;
    int rc = running ? begin_again(config) : fathom_agent_start(config);
    if (rc == 0) {
        running->trace_attached = true;
        running->trace_own_frames = SCRIPT_FRAMES;
        rc = fm_trace_go_on(running);
    }
    if (rc > 0)
        return 0;
    if (running)
        fm_start_attached_over();
    else
        attached = false;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_OSError, "the trace cannot be kept, or another profiler of Fathom's "
                                       "has its place in this process");
    return -1;
}

void fm_start_attached_over(void)
{
    if (!attached || !running || !running->store.header)
        return;
    struct fm_raised raised = fm_python_put_aside();
    if (fm_trace_pause(running) < 0)
        PyErr_Clear();
    fm_threads_detach_all(running);
    fm_collector_forget(running);
    fm_python_put_back(raised);
}

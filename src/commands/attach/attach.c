/*
 * `fathom attach`: sample a running Python, and the processes it starts, until told to stop.
 *
 * The main thread only waits: for signals (SIGINT, SIGTERM, SIGHUP stop; SIGUSR1 writes the recording so
 * far), for the sampler to end by itself, and for whoever drives it through a pipe (--control-fd, used by
 * the Python package). The recording is also written now and then while it grows, so that a kill of
 * Fathom costs little.
 *
 * Nothing is done to the process: attaching and detaching are ours alone. But for --memory, which is
 * another way altogether (attach_memory.h).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clean.h"
#include "base/clock.h"
#include "base/memory.h"
#include "commands/attach/attach_memory.h"
#include "commands/facts.h"
#include "commands/redact.h"
#include "commands/run/output.h"
#include "commands/run/trace_options.h"
#include "commands/sample_options.h"
#include "commands/save_times.h"
#include "commands/verb.h"
#include "show/report/summary.h"
#include "watch/memory/watch.h"

#define SUMMARY_ROWS      15
#define MAX_CONTROL_BYTES 8192
#define DEFAULT_WAIT_NS   10000000000u

/* clang-format off */
static const char help[] =
    "usage: fathom attach [options] PID\n"
    "\n"
    "Samples a running Python, and every Python it starts, from outside. Nothing in it is stopped or\n"
    "changed; it does not notice. Ends with it, with Ctrl-C, or after --duration.\n"
    "\n"
    "  --duration S    stop after so many seconds\n"
    "  -o NAME         the recording; default: attach-PID.fathom, attach-PID-2.fathom, …\n"
    "                  NAME.speedscope.json, NAME.pb.gz, NAME.collapsed, NAME.prof: in those formats\n"
    FM_WATCH_OPTIONS_HELP
    "  --rounds N      stop after every thread was looked at so many times\n"
    "  --rss           resident memory over time, too, of any process, Python or not; fathom plot\n"
    "                  draws it\n"
    "  --pss           … with what is theirs of shared memory, and swap\n"
    "  --memory        instead of samples: what it allocates from now on, by line (CPython 3.14 and\n"
    "                  later, which begin that themselves when asked)\n"
    "  --trace         instead of samples: when every call begins and ends from now on: the timeline (CPython\n"
    "                  3.14 and later); with it --no-c-calls, --max-depth, --min-duration, --window,\n"
    "                  --include, --exclude and --on-full, as with fathom run\n"
    "  --wait S        with --memory or --trace: how long the process may take to answer; default 10\n"
    "  --redact        leave the arguments of command lines out of the recording\n"
    "  -q, --quiet     no table at the end\n"
    "\n"
    "SIGUSR1 sent to fathom writes the recording so far; sampling goes on. See docs/attach.md.\n";
/* clang-format on */

struct attach {
    struct fm_watch_options watch;
    bool quiet, redact, heap;
    struct fm_run_trace trace;
    bool no_c_calls;
    uint64_t rounds, duration_ns, wait_ns;
    int ready_fd, control_fd;
    bool resident, shares; /* memory over time, with shares and swap */
    struct fm_sampler *sampler;
    struct fm_memory_watch *memory; /* NULL: not asked for */
    bool alone;                     /* no Python: memory is all there is to watch */
    struct fm_run_output output;
    struct fm_profile *facts;
    int signals;
    bool stop;
    uint64_t start_ns;
    struct fm_save_times times;
    struct fm_buffer control;
};

/* --- options ------------------------------------------------------------------------------------ */

static int take_seconds(uint64_t *ret_ns, const char *name, const char *value, struct fm_error *err)
{
    double seconds;
    if (!fm_option_number(value, 0.001, 1e9, &seconds))
        return fm_error_set(err, FM_USAGE, "%s needs a number of seconds, 0.001 or more", name);
    *ret_ns = (uint64_t)(seconds * 1e9);
    return 1;
}

/* The options that only this verb has. */
static int take_own(void *context, char **words, int *at, struct fm_error *err)
{
    struct attach *a = context;
    const char *value;
    long whole = 0;
    if (fm_option_value("--duration", words, at, &value))
        return take_seconds(&a->duration_ns, "--duration", value, err);
    if (fm_option_value("--wait", words, at, &value))
        return take_seconds(&a->wait_ns, "--wait", value, err);
    if (fm_option_flag("--memory", words, at)) {
        a->heap = true;
        return 1;
    }
    if (fm_option_value("--rounds", words, at, &value)) {
        bool right = fm_option_whole(value, 1, 1000000000, &whole);
        a->rounds = (uint64_t)whole;
        return right ? 1 : fm_error_set(err, FM_USAGE, "--rounds needs a whole number");
    }
    bool ready = fm_option_value("--ready-fd", words, at, &value);
    if (ready || fm_option_value("--control-fd", words, at, &value)) {
        if (!fm_option_whole(value, 0, 1 << 20, &whole))
            return fm_error_set(err, FM_USAGE, "%s needs a descriptor",
                                ready ? "--ready-fd" : "--control-fd");
        *(ready ? &a->ready_fd : &a->control_fd) = (int)whole;
        return 1;
    }
    if (fm_option_flag("--redact", words, at)) {
        a->redact = true;
        return 1;
    }
    bool shares = fm_option_flag("--pss", words, at);
    if (shares || fm_option_flag("--rss", words, at)) {
        a->resident = true;
        a->shares = a->shares || shares;
        return 1;
    }
    if (!fm_option_flag("-q", words, at) && !fm_option_flag("--quiet", words, at))
        return 0;
    a->quiet = true;
    return 1;
}

/* The options of --trace, taken out of the words. −1, or the exit status. */
static int take_trace(struct attach *a, int *argc, char **argv)
{
    int kept = 1;
    for (int at = 1; at < *argc;) {
        if (fm_option_flag("--no-c-calls", argv, &at)) {
            a->no_c_calls = true;
            continue;
        }
        int taken = fm_run_trace_take(&a->trace, argv, &at);
        if (taken >= 0)
            return taken;
        if (taken == -2)
            argv[kept++] = argv[at++];
    }
    argv[kept] = NULL;
    *argc = kept;
    if (a->no_c_calls && !a->trace.on)
        return fm_verb_usage("attach", "--no-c-calls goes with --trace");
    return fm_run_trace_check(&a->trace);
}

/* --- the recording ------------------------------------------------------------------------------ */

/* What was gathered so far, complete in itself. */
static struct fm_profile *profile_now(struct attach *a)
{
    struct fm_profile *p = fm_sampler_profile(a->sampler);
    fm_memory_watch_gather(a->memory, p);
    fm_facts_complete(p, a->facts, a->start_ns);
    if (a->redact)
        fm_redact(p);
    return p;
}

/* While sampling goes on: whoever reads this after a kill is to know that there was more. */
static int save(struct attach *a, struct fm_error *err)
{
    uint64_t begin_ns = fm_clock_ns();
    struct fm_profile *p = profile_now(a);
    fm_profile_note(p, FM_NONE, "cut-off", 1,
                    "sampling still went on when this was saved; what followed is not in it");
    int rc = fm_run_output_write(&a->output, p, err);
    fm_profile_free(p);
    fm_save_times_done(&a->times, begin_ns, fm_clock_ns());
    return rc;
}

/* --- events ------------------------------------------------------------------------------------- */

static void complain(const struct fm_error *err)
{
    fm_clean_say(stderr, "fathom attach: %s", err->text);
}

static void on_signal(struct attach *a)
{
    struct signalfd_siginfo info;
    while (read(a->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        struct fm_error err = FM_ERROR_INIT;
        if (info.ssi_signo != SIGUSR1)
            a->stop = true;
        else if (save(a, &err) < 0)
            complain(&err);
        else if (!a->quiet)
            fm_clean_say(stderr, "fathom attach: written to %s", a->output.path);
    }
}

static void answer(struct attach *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void answer(struct attach *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vdprintf(a->control_fd, format, args);
    va_end(args);
}

/* One line of whoever drives us: "snapshot PATH" or "stop". */
static void obey(struct attach *a, const char *line)
{
    static const char snapshot[] = "snapshot ";
    struct fm_error err = FM_ERROR_INIT;
    if (strcmp(line, "stop") == 0) {
        a->stop = true;
        return;
    }
    if (strncmp(line, snapshot, strlen(snapshot)) != 0) {
        answer(a, "error unknown request\n");
        return;
    }
    const char *path = line + strlen(snapshot);
    struct fm_profile *p = profile_now(a);
    if (fm_profile_write(p, path, fm_format_of_path(path), a->watch.force, &err) < 0)
        answer(a, "error %s\n", err.text);
    else
        answer(a, "ok\n");
    fm_profile_free(p);
}

static void on_control(struct attach *a)
{
    char bytes[1024];
    ssize_t n = read(a->control_fd, bytes, sizeof bytes);
    if (n <= 0 && !(n < 0 && errno == EINTR)) {
        a->stop = true; /* the program is gone, or wants no more of us */
        return;
    }
    if (n > 0)
        fm_buffer_add(&a->control, bytes, (size_t)n);
    char *end;
    while (a->control.len && (end = memchr(a->control.data, '\n', a->control.len))) {
        *end = '\0';
        obey(a, a->control.data);
        size_t used = (size_t)(end + 1 - a->control.data);
        memmove(a->control.data, end + 1, a->control.len - used);
        a->control.len -= used;
    }
    if (a->control.len > MAX_CONTROL_BYTES)
        a->stop = true;
}

static bool rounds_done(struct attach *a)
{
    struct fm_sampler_stats stats;
    if (!a->rounds)
        return false;
    fm_sampler_stats(a->sampler, &stats);
    return stats.rounds >= a->rounds;
}

static uint64_t next_due_ns(const struct attach *a)
{
    uint64_t memory_ns = fm_memory_watch_due_ns(a->memory);
    return memory_ns < a->times.next_ns ? memory_ns : a->times.next_ns;
}

/* What is due; false if there is nothing left to watch. */
static bool do_due(struct attach *a)
{
    struct fm_error err = FM_ERROR_INIT;
    uint64_t now_ns = fm_clock_ns();
    if (fm_memory_watch_due_ns(a->memory) <= now_ns)
        fm_memory_watch_look(a->memory);
    if (a->alone && (fm_memory_watch_is_over(a->memory) ||
                     (a->duration_ns && now_ns - a->start_ns >= a->duration_ns)))
        return false;
    if (now_ns >= a->times.next_ns && save(a, &err) < 0)
        complain(&err);
    return true;
}

static void wait_for_end(struct attach *a)
{
    while (!a->stop && !rounds_done(a)) {
        struct pollfd fds[] = { { a->signals, POLLIN, 0 },
                                { a->alone ? -1 : fm_sampler_fd(a->sampler), POLLIN, 0 },
                                { a->control_fd, POLLIN, 0 } };
        uint64_t now_ns = fm_clock_ns(), due_ns = next_due_ns(a);
        int timeout_ms = a->rounds         ? 1
                         : due_ns > now_ns ? (int)((due_ns - now_ns) / 1000000) + 1
                                           : 0;
        poll(fds, 3, timeout_ms);
        if (fds[0].revents)
            on_signal(a);
        if (fds[2].revents)
            on_control(a);
        if (fds[1].revents || !do_due(a))
            break;
    }
    fm_sampler_stop(a->sampler);
}

/* --- from start to end -------------------------------------------------------------------------- */

static void take_signals(struct attach *a)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    a->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    signal(SIGPIPE, SIG_IGN);
}

static int begin(struct attach *a, struct fm_error *err)
{
    struct fm_run_names names = { "attach", a->watch.pid };
    a->sampler = fm_sampler_new(&a->watch.sampling);
    if (fm_sampler_add(a->sampler, a->watch.pid, err) < 0) {
        a->alone = a->resident && err->status == FM_NOT_PYTHON;
        if (!a->alone)
            return err->status;
        *err = (struct fm_error)FM_ERROR_INIT;
    }
    a->facts = fm_facts_of_watching("attach", a->watch.pid);
    char stem[32];
    snprintf(stem, sizeof stem, "attach-%d", (int)a->watch.pid);
    names.stem = stem;
    if (fm_run_output_open(&a->output, a->watch.output, a->watch.force, &names, a->facts, err) < 0)
        return err->status;
    a->start_ns = fm_clock_ns();
    fm_save_times_begin(&a->times, a->start_ns);
    struct fm_memory_watch_options memory = { .children = a->watch.sampling.children,
                                              .shares = a->shares };
    if (a->resident)
        a->memory = fm_memory_watch_new(&memory, a->watch.pid);
    int rc = a->alone ? 0 : fm_sampler_start(a->sampler, err);
    if (rc == 0 && a->ready_fd >= 0) {
        dprintf(a->ready_fd, "attached\n");
        close(a->ready_fd);
    }
    return rc;
}

static int finish(struct attach *a)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = profile_now(a);
    if (fm_run_output_write(&a->output, p, &err) < 0) {
        fm_profile_free(p);
        if (a->control_fd >= 0)
            answer(a, "error %s\n", err.text);
        return fm_verb_fail("attach", &err);
    }
    if (a->control_fd >= 0) /* to "stop": where the recording is */
        answer(a, "ok %s\n", a->output.path);
    if (!a->quiet && !a->alone)
        fm_report_summary(p, stderr, SUMMARY_ROWS);
    if (!a->quiet)
        fm_clean_say(stderr, "Recorded to %s; next: fathom %s %s", a->output.path,
                     a->alone ? "plot" : "report", a->output.path);
    fm_profile_free(p);
    return 0;
}

static int attach_memory(const struct attach *a)
{
    struct fm_attach_memory_options options = {
        .pid = a->watch.pid,
        .output = a->watch.output,
        .force = a->watch.force,
        .quiet = a->quiet,
        .redact = a->redact,
        .children = a->watch.sampling.children,
        .shares = a->shares,
        .duration_ns = a->duration_ns,
        .wait_ns = a->wait_ns ? a->wait_ns : DEFAULT_WAIT_NS,
        .signals = a->signals,
        .ready_fd = a->ready_fd,
        .trace = a->trace.on ? &a->trace : NULL,
        .c_calls = !a->no_c_calls,
    };
    if (a->rounds || a->control_fd >= 0)
        return fm_verb_usage("attach", "%s takes no samples: --rounds has no meaning",
                             a->trace.on ? "--trace" : "--memory");
    if (a->heap && a->trace.on)
        return fm_verb_usage("attach", "--memory and --trace cannot be had at once");
    if (a->trace.keep_on.count || a->trace.paused)
        return fm_verb_usage("attach", "%s goes with fathom run",
                             a->trace.paused ? "--paused" : "--keep-on");
    return fm_attach_memory(&options);
}

int fm_verb_attach(int argc, char **argv)
{
    struct attach a = { .trace.verb = "attach", .ready_fd = -1, .control_fd = -1, .signals = -1 };
    struct fm_error err = FM_ERROR_INIT;
    struct fm_watch_verb verb = { "attach", help, take_own, &a };
    take_signals(&a); /* before anything that takes time */
    int status = take_trace(&a, &argc, argv);
    if (status < 0)
        status = fm_watch_options_parse(&a.watch, &verb, argc, argv);
    if (status >= 0) {
        close(a.signals);
        return status;
    }
    if (a.heap || a.trace.on) {
        status = attach_memory(&a);
        close(a.signals);
        return status;
    }
    a.watch.sampling.duration_ns = a.duration_ns;
    if (begin(&a, &err) < 0) {
        status = fm_verb_fail("attach", &err);
        fm_run_output_cancel(&a.output);
    } else {
        wait_for_end(&a);
        status = finish(&a);
    }
    fm_sampler_free(a.sampler);
    fm_memory_watch_free(a.memory);
    fm_run_output_release(&a.output);
    fm_profile_free(a.facts);
    fm_buffer_release(&a.control);
    if (a.signals >= 0)
        close(a.signals);
    return status;
}

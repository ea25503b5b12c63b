/*
 * `fathom attach`: sample a running Python, and the processes it starts, until told to stop.
 *
 * The main thread only waits: for signals (SIGINT, SIGTERM, SIGHUP stop; SIGUSR1 writes the recording so
 * far), for the sampler to end by itself, and for whoever drives it through a pipe (--control-fd, used by
 * the Python package). The recording is also written now and then while it grows, so that a kill of
 * Fathom costs little.
 *
 * Nothing is done to the process: attaching and detaching are ours alone.
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
#include "base/clock.h"
#include "base/memory.h"
#include "commands/facts.h"
#include "commands/run_output.h"
#include "commands/sample_options.h"
#include "commands/verb.h"
#include "formats/sources.h"
#include "report/summary.h"

#define SUMMARY_ROWS 15
#define FIRST_SAVE_NS 5000000000u
#define MAX_CONTROL_BYTES 8192

static const char help[] =
    "usage: fathom attach [options] PID\n"
    "\n"
    "Samples a running Python, and every Python it starts, from outside. Nothing in it is stopped or\n"
    "changed; it does not notice. Ends with it, with Ctrl-C, or after --duration.\n"
    "\n"
    "  --duration S    stop after so many seconds\n"
    "  -o NAME         the recording; default: attach-PID.fathom, attach-PID-2.fathom, …\n"
    "                  NAME.speedscope.json, NAME.pb.gz, NAME.collapsed, NAME.prof: in those formats\n"
    "                  in NAME: %p pid, %h host, %n first free number, %t time, %% percent sign\n"
    "  --force         overwrite an existing NAME\n"
    FM_SAMPLE_OPTIONS_HELP
    "  --no-children   leave out processes that it starts\n"
    "  --rounds N      stop after every thread was looked at so many times\n"
    "  -q, --quiet     no table at the end\n"
    "\n"
    "SIGUSR1 sent to fathom writes the recording so far; sampling goes on. See docs/attach.md.\n";

struct attach {
    struct fm_sampler_options sampling;
    const char *template;
    bool force, quiet;
    pid_t pid;
    uint64_t rounds;
    int ready_fd, control_fd;
    struct fm_sampler *sampler;
    struct fm_run_output output;
    struct fm_profile *facts;
    int signals;
    bool stop;
    uint64_t start_ns, next_save_ns;
    struct fm_buffer control;
};

/* --- options ------------------------------------------------------------------------------------ */

static bool take(const char *name, char **words, int *at, const char **ret)
{
    if (strcmp(words[*at], name) != 0)
        return false;
    *ret = words[*at + 1];
    *at += *ret ? 2 : 1;
    return true;
}

static bool parse_whole(const char *text, long least, long most, long *ret)
{
    char *end;
    errno = 0;
    long value = text && *text ? strtol(text, &end, 10) : 0;
    if (!text || !*text || errno || *end || value < least || value > most)
        return false;
    *ret = value;
    return true;
}

/* −1: taken; else the exit status. */
static int parse_one(struct attach *a, char **words, int *at)
{
    struct fm_error err = FM_ERROR_INIT;
    const char *value;
    long whole = 0;
    int taken = fm_sample_options_take(&a->sampling, words, at, &err);
    if (taken)
        return taken > 0 ? -1 : fm_verb_usage("attach", "%s", err.text);
    if (take("--duration", words, at, &value))
        return fm_sample_options_seconds(value, &a->sampling.duration_ns, &err) < 0
                   ? fm_verb_usage("attach", "%s", err.text)
                   : -1;
    if (take("-o", words, at, &value) || take("--output", words, at, &value)) {
        a->template = value;
        return value && *value ? -1 : fm_verb_usage("attach", "-o needs a name");
    }
    if (take("--rounds", words, at, &value)) {
        bool right = parse_whole(value, 1, 1000000000, &whole);
        a->rounds = (uint64_t)whole;
        return right ? -1 : fm_verb_usage("attach", "--rounds needs a whole number");
    }
    bool ready = take("--ready-fd", words, at, &value);
    if (ready || take("--control-fd", words, at, &value)) {
        if (!parse_whole(value, 0, 1 << 20, &whole))
            return fm_verb_usage("attach", "%s needs a descriptor", words[*at - 1]);
        *(ready ? &a->ready_fd : &a->control_fd) = (int)whole;
        return -1;
    }
    const char *word = words[(*at)++];
    if (strcmp(word, "--force") == 0)
        a->force = true;
    else if (strcmp(word, "-q") == 0 || strcmp(word, "--quiet") == 0)
        a->quiet = true;
    else if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0)
        return fputs(help, stdout) < 0;
    else if (word[0] == '-')
        return fm_verb_usage("attach", "unknown option %s", word);
    else if (a->pid)
        return fm_verb_usage("attach", "one process at a time; its children are followed");
    else if (!parse_whole(word, 1, INT32_MAX, &whole))
        return fm_verb_usage("attach", "%s is no process id", word);
    else
        a->pid = (pid_t)whole;
    return -1;
}

static int parse(struct attach *a, int argc, char **argv)
{
    int rc = -1;
    for (int at = 1; at < argc && rc == -1;)
        rc = parse_one(a, argv, &at);
    if (rc == -1 && !a->pid)
        return fm_verb_usage("attach", "which process? Give its id");
    return rc;
}

/* --- the recording ------------------------------------------------------------------------------ */

static struct fm_profile *facts_of(const struct attach *a)
{
    struct fm_profile *p = fm_profile_new();
    char text[64];
    snprintf(text, sizeof text, "attach %d", (int)a->pid);
    fm_facts_add(p);
    fm_profile_fact(p, "collectors", "samples");
    fm_profile_fact(p, "attached", text);
    return p;
}

/* What was gathered so far, complete in itself. */
static struct fm_profile *profile_now(struct attach *a)
{
    struct fm_profile *p = fm_sampler_profile(a->sampler);
    char text[64];
    for (size_t i = 0; i < a->facts->facts.len; i++)
        fm_profile_fact(p, fm_profile_text(a->facts, a->facts->facts.data[i].key),
                        fm_profile_text(a->facts, a->facts->facts.data[i].value));
    snprintf(text, sizeof text, "%.6f", (double)(fm_clock_ns() - a->start_ns) / 1e9);
    fm_profile_fact(p, "duration", text);
    if (p->processes.len)
        fm_profile_fact(p, "command", fm_profile_text(p, p->processes.data[0].command));
    fm_sources_embed(p);
    return p;
}

/* Write it, and do so again when ten times as long has passed as it took, at least. */
static int save(struct attach *a, struct fm_error *err)
{
    uint64_t begin_ns = fm_clock_ns();
    struct fm_profile *p = profile_now(a);
    int rc = fm_run_output_write(&a->output, p, err);
    fm_profile_free(p);
    uint64_t took_ns = fm_clock_ns() - begin_ns;
    a->next_save_ns = begin_ns + FIRST_SAVE_NS + took_ns * 200;
    return rc;
}

/* --- events ------------------------------------------------------------------------------------- */

static void complain(const struct fm_error *err)
{
    fprintf(stderr, "fathom attach: %s\n", err->text);
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
            fprintf(stderr, "fathom attach: written to %s\n", a->output.path);
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
    if (fm_profile_write(p, path, fm_format_of_path(path), a->force, &err) < 0)
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

static void wait_for_end(struct attach *a)
{
    while (!a->stop && !rounds_done(a)) {
        struct pollfd fds[] = { { a->signals, POLLIN, 0 },
                                { fm_sampler_fd(a->sampler), POLLIN, 0 },
                                { a->control_fd, POLLIN, 0 } };
        struct fm_error err = FM_ERROR_INIT;
        uint64_t now_ns = fm_clock_ns();
        int timeout_ms = a->rounds ? 1
                         : a->next_save_ns > now_ns ? (int)((a->next_save_ns - now_ns) / 1000000) + 1
                                                    : 0;
        poll(fds, 3, timeout_ms);
        if (fds[0].revents)
            on_signal(a);
        if (fds[2].revents)
            on_control(a);
        if (fds[1].revents)
            break;
        if (fm_clock_ns() >= a->next_save_ns && save(a, &err) < 0)
            complain(&err);
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
    struct fm_run_names names = { "attach", a->pid };
    take_signals(a);
    a->sampler = fm_sampler_new(&a->sampling);
    if (fm_sampler_add(a->sampler, a->pid, err) < 0)
        return err->status;
    a->facts = facts_of(a);
    char stem[32];
    snprintf(stem, sizeof stem, "attach-%d", (int)a->pid);
    names.stem = stem;
    if (fm_run_output_open(&a->output, a->template, a->force, &names, a->facts, err) < 0)
        return err->status;
    a->start_ns = fm_clock_ns();
    a->next_save_ns = a->start_ns + FIRST_SAVE_NS;
    int rc = fm_sampler_start(a->sampler, err);
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
    if (!a->quiet) {
        fm_report_summary(p, stderr, SUMMARY_ROWS);
        fprintf(stderr, "Recorded to %s; next: fathom report %s\n", a->output.path, a->output.path);
    }
    fm_profile_free(p);
    return 0;
}

int fm_verb_attach(int argc, char **argv)
{
    struct attach a = { .ready_fd = -1, .control_fd = -1, .signals = -1 };
    struct fm_error err = FM_ERROR_INIT;
    fm_sample_options_init(&a.sampling);
    int status = parse(&a, argc, argv);
    if (status >= 0)
        return status;
    if (begin(&a, &err) < 0) {
        status = fm_verb_fail("attach", &err);
        fm_run_output_cancel(&a.output);
    } else {
        wait_for_end(&a);
        status = finish(&a);
    }
    fm_sampler_free(a.sampler);
    fm_run_output_release(&a.output);
    fm_profile_free(a.facts);
    fm_buffer_release(&a.control);
    if (a.signals >= 0)
        close(a.signals);
    return status;
}

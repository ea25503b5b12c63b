/*
 * `fathom top`: the functions and lines of a running Python, live in the terminal. This file has
 * the options and the life cycle: start the sampler, then draw what it gathered once per interval
 * and do what keys ask for, until the user or a signal ends it. The terminal is given back first,
 * then anything else is said.
 *
 * Signals (SIGINT, SIGTERM, SIGHUP, SIGWINCH) are blocked and read as events, so nothing happens in
 * the middle of something else. Threads: the sampler has its own; all of this is in the main one.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/clock.h"
#include "base/memory.h"
#include "commands/facts.h"
#include "commands/run/output.h"
#include "commands/sample_options.h"
#include "commands/top/top_memory.h"
#include "commands/verb.h"
#include "record/formats/format.h"
#include "show/report/samples/sampling.h"
#include "show/top/page.h"
#include "show/top/screen.h"
#include "watch/sampler/sampler.h"

#define FIRST_PICTURE_NS 200000000u

static const char help[] =
    "usage: fathom top [options] PID\n"
    "\n"
    "Shows live in the terminal where a running Python, and every Python it starts, spends its\n"
    "time. They are only read: nothing in them is stopped or changed. h shows the keys, q quits.\n"
    "\n"
    "  --memory        of a process below `fathom run --memory`: what is alive, and who grows\n"
    "  --delay S       seconds between two pictures; default 1\n"
    "  -o NAME         write the recording at the end; the key w does it at any "
    "time\n" FM_WATCH_OPTIONS_HELP "\n"
    "See docs/top.md.\n";

struct top {
    struct fm_watch_options watch;
    double delay_s;
    bool memory;
    struct fm_sampler *sampler;
    struct fm_top_model *model;
    struct fm_top_view view;
    struct fm_top_status status;
    struct fm_run_output output;
    struct fm_profile *facts;
    int signals; /* descriptor */
    uint64_t next_ns;
    bool quit, warned; /* warned: the last q could not write */
    int exit_status;
    char said[512]; /* after the terminal was given back */
};

/* ---- options ---- */

/* The options that only this verb has. */
static int take_own(void *context, char **words, int *at, struct fm_error *err)
{
    struct top *t = context;
    const char *value;
    if (fm_option_flag("--memory", words, at)) {
        t->memory = true;
        return 1;
    }
    if (!fm_option_value("--delay", words, at, &value))
        return 0;
    return fm_option_number(value, 0.1, 3600, &t->delay_s)
               ? 1
               : fm_error_set(err, FM_USAGE, "--delay goes from 0.1 to 3600 seconds");
}

/* ---- writing ---- */

/* What was gathered so far, complete in itself. */
static struct fm_profile *gathered(struct top *t)
{
    struct fm_profile *p = fm_sampler_profile(t->sampler);
    fm_facts_complete(p, t->facts, t->status.start_ns);
    return p;
}

static void say_written(struct top *t, const char *path, const struct fm_profile *p)
{
    char count[FM_NUMBER_BYTES];
    uint64_t samples = 0;
    for (size_t i = 0; i < p->processes.len; i++)
        samples += p->processes.data[i].samples;
    fm_number_count(count, (int64_t)samples);
    fm_top_view_say(&t->view, false, "%s samples written to %s", count, path);
}

static void write_now(struct top *t, bool replace)
{
    struct fm_error err = FM_ERROR_INIT;
    const char *path = fm_buffer_text(&t->view.input);
    const struct fm_format *format = fm_format_of_path(path);
    if (strcmp(path, "-") == 0) {
        fm_top_view_say(&t->view, true, "- would be this terminal: nothing was written");
        return;
    }
    if (format && !format->save) {
        fm_top_view_say(&t->view, true, "%s can be read but not written", format->title);
        return;
    }
    struct fm_profile *p = gathered(t);
    int rc = fm_profile_write(p, path, format, replace, &err);
    if (rc == FM_EXISTS)
        fm_top_view_ask_replace(&t->view);
    else if (rc < 0)
        fm_top_view_say(&t->view, true, "not written: %s", err.text);
    else
        say_written(t, path, p);
    fm_profile_free(p);
}

/* The recording that -o asked for. */
static int write_output(struct top *t, struct fm_error *err)
{
    if (!t->watch.output)
        return 0;
    struct fm_profile *p = gathered(t);
    int rc = fm_run_output_write(&t->output, p, err);
    fm_profile_free(p);
    if (rc == 0)
        snprintf(t->said, sizeof t->said, "wrote %s", t->output.path);
    return rc;
}

/* A recording that could not be written is not thrown away at once: w may put it elsewhere. */
static void quit(struct top *t, bool at_once)
{
    struct fm_error err = FM_ERROR_INIT;
    t->quit = true;
    if (write_output(t, &err) == 0)
        return;
    if (at_once || t->warned) {
        t->exit_status = fm_status_exit(err.status);
        snprintf(t->said, sizeof t->said, "%s", err.text);
        return;
    }
    fm_top_view_say(&t->view, true, "%s; w writes elsewhere, q quits without", err.text);
    t->quit = false;
    t->warned = true;
}

/* ---- the loop ---- */

static void take(struct top *t)
{
    struct fm_profile *p = fm_sampler_profile(t->sampler);
    t->status.before = t->status.now;
    fm_sampler_stats(t->sampler, &t->status.now);
    /* Tables and drawing cost something, too. */
    t->status.now.cpu_ns = fm_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
    fm_top_model_take(t->model, p, t->status.now.now_ns);
    fm_top_view_refresh(&t->view, t->model);
    fm_profile_free(p);
    t->next_ns = fm_clock_ns() + (uint64_t)(t->delay_s * 1e9);
}

static void read_signals(struct top *t)
{
    struct signalfd_siginfo info;
    while (read(t->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGWINCH)
            fm_screen_resize();
        else
            quit(t, true);
    }
}

static void read_keys(struct top *t)
{
    uint32_t key;
    while (!t->quit && (key = fm_screen_key()) != FM_KEY_NONE) {
        enum fm_top_wish wish = fm_top_view_key(&t->view, t->model, key);
        if (wish == FM_TOP_WISH_QUIT)
            quit(t, false);
        else
            t->warned = false;
        if (wish == FM_TOP_WISH_WRITE || wish == FM_TOP_WISH_REPLACE)
            write_now(t, wish == FM_TOP_WISH_REPLACE);
        else if (wish == FM_TOP_WISH_REFRESH)
            take(t);
        else if (wish == FM_TOP_WISH_REDRAW)
            fm_screen_redraw();
    }
}

/* Wait for whatever comes first, and see to it. */
static void turn(struct top *t)
{
    bool waiting = !t->view.paused && !t->view.ended;
    uint64_t now = fm_clock_ns();
    int left = !waiting ? -1 : t->next_ns > now ? (int)((t->next_ns - now) / 1000000) + 1 : 0;
    struct pollfd fds[] = {
        { STDIN_FILENO, POLLIN, 0 },
        { t->signals, POLLIN, 0 },
        { t->view.ended ? -1 : fm_sampler_fd(t->sampler), POLLIN, 0 },
    };
    int ready = poll(fds, FM_COUNT(fds), left);
    if (ready < 0 && errno != EINTR)
        quit(t, true);
    if (ready > 0 && (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)))
        quit(t, true); /* the terminal is gone */
    if (ready > 0 && fds[1].revents)
        read_signals(t);
    if (ready > 0 && fds[2].revents) {
        t->view.paused = false; /* there is nothing left to wait for */
        t->view.ended = true;
        take(t);
    }
    read_keys(t);
    if (!t->quit && !t->view.paused && !t->view.ended && fm_clock_ns() >= t->next_ns)
        take(t);
}

static void show(struct top *t)
{
    fm_top_view_init(&t->view, "");
    char file[64];
    snprintf(file, sizeof file, "top-%d.fathom", (int)t->watch.pid);
    t->view.file = file;
    t->model = fm_top_model_new(t->status.start_ns);
    t->next_ns = fm_clock_ns() + FIRST_PICTURE_NS;
    while (!t->quit) {
        fm_page_draw(&t->view, t->model, &t->status);
        turn(t);
    }
    fm_screen_close();
    fm_top_view_release(&t->view);
    fm_top_model_free(t->model);
}

/* ---- life cycle ---- */

static int block_signals(struct top *t, struct fm_error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGWINCH);
    sigprocmask(SIG_BLOCK, &set, NULL);
    t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return t->signals < 0 ? fm_error_set_errno(err, FM_SYSTEM, errno, "signalfd") : 0;
}

/* The file that -o names is there from the start, so that no other run takes the name. */
static int open_output(struct top *t, struct fm_error *err)
{
    if (!t->watch.output)
        return 0;
    struct fm_run_names names = { .stem = "top", .pid = t->watch.pid };
    return fm_run_output_open(&t->output, t->watch.output, t->watch.force, &names, t->facts, err);
}

static int watch(struct top *t, struct fm_error *err)
{
    t->facts = fm_facts_of_watching("top", t->watch.pid);
    if (fm_screen_check(err) < 0 || fm_sampler_add(t->sampler, t->watch.pid, err) < 0 ||
        open_output(t, err) < 0)
        return err->status;
    t->status.start_ns = t->status.now.now_ns = fm_clock_ns();
    t->status.now.cpu_ns = fm_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (fm_sampler_start(t->sampler, err) < 0 || fm_screen_open(err) < 0) {
        fm_run_output_cancel(&t->output);
        return err->status;
    }
    show(t);
    return 0;
}

int fm_verb_top(int argc, char **argv)
{
    struct top t = { .signals = -1, .delay_s = 1 };
    struct fm_error err = FM_ERROR_INIT;
    struct fm_watch_verb verb = { "top", help, take_own, &t };
    if (block_signals(&t, &err) < 0) /* before anything that takes time */
        return fm_verb_fail("top", &err);
    int rc = fm_watch_options_parse(&t.watch, &verb, argc, argv);
    if (rc != -1) {
        close(t.signals);
        return rc;
    }
    if (t.memory) {
        rc = t.watch.output ? fm_verb_usage("top", "with --memory nothing is written: `fathom run "
                                                   "--memory` writes when the program ends")
                            : fm_top_memory(t.watch.pid, t.delay_s, t.signals);
        close(t.signals);
        return rc;
    }
    t.status.pid = t.watch.pid;
    t.watch.sampling.timeline = t.watch.sampling.timeline && t.watch.output; /* it is not shown */
    t.status.rate_hz = t.watch.sampling.rate_hz;
    t.status.mode = fm_sample_mode_name(t.watch.sampling.mode);
    t.sampler = fm_sampler_new(&t.watch.sampling);
    rc = watch(&t, &err);
    fm_sampler_free(t.sampler);
    fm_run_output_release(&t.output);
    fm_profile_free(t.facts);
    if (t.signals >= 0)
        close(t.signals);
    if (rc < 0)
        return fm_verb_fail("top", &err);
    if (*t.said)
        fm_clean_say(stderr, "fathom top: %s", t.said);
    return t.exit_status;
}

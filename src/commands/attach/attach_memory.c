/* The memory or the trace of a running process; see attach_memory.h. */
#include "commands/attach/attach_memory.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clean.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/run_config.h"
#include "commands/attach/attach_script.h"
#include "commands/facts.h"
#include "commands/join.h"
#include "commands/redact.h"
#include "commands/run/output.h"
#include "commands/run/samples.h"
#include "commands/verb.h"
#include "show/report/summary.h"
#include "watch/memory/together.h"
#include "watch/memory/watch.h"
#include "watch/os/locate.h"
#include "watch/os/path.h"
#include "watch/os/procfs.h"
#include "watch/os/run/folder.h"
#include "watch/os/run/watch.h"
#include "watch/trace/trace_watch.h"

#define SUMMARY_ROWS 15
#define END_NS       2000000000u /* for the process to end it; it can do so later, too */
#define GRACE_MS     100         /* for the exit status of a process that has ended */

struct attach_memory {
    const struct fm_attach_memory_options *options;
    struct fm_remote remote;
    struct fm_runtime runtime;
    struct fm_remote_call call;
    struct fm_proc process;
    gid_t gid; /* for its files */
    char *agents, *exe, *cwd, *command;
    struct fm_folder folder;
    struct fm_attach_script script;
    struct fm_run_output output;
    struct fm_profile *facts;
    struct fm_watch watch;
    struct fm_memory_watch *memory; /* NULL with a trace … */
    struct fm_trace_watch *traces;  /* … which is emptied here */
    char *config;                   /* … and asked for so */
    uint64_t start_ns;
    bool begun, stop;
};

/* ---- before it begins ---- */

/* Does the process see the same file there as we do? Not if it lives in a container. */
static int check_seen(const struct attach_memory *a, const char *path, struct fm_error *err)
{
    struct stat ours, theirs;
    fm_autobuffer there = FM_BUFFER_INIT;
    fm_buffer_addf(&there, "/proc/%d/root%s", (int)a->options->pid, path);
    if (stat(path, &ours) == 0 && stat(fm_buffer_text(&there), &theirs) == 0 &&
        ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino)
        return 0;
    return fm_error_set(err, FM_UNSUPPORTED,
                        "process %d does not see %s: it lives in a container; use the Fathom in "
                        "there",
                        (int)a->options->pid, path);
}

/*
 * As root we deal with files as the user of the process does: it writes into the folder itself, and a
 * hostile one that put links there must not lead us anywhere that it may not go. Only the recording is
 * written as who we are. What we may do to processes stays.
 */
static void act_as_process(const struct attach_memory *a)
{
    if (a->process.euid == geteuid())
        return;
    setfsgid(a->gid);
    setfsuid(a->process.euid);
}

static void act_as_self(void)
{
    setfsuid(geteuid());
    setfsgid(getegid());
}

static int become_process(struct attach_memory *a, struct fm_error *err)
{
    struct stat st;
    char text[32];
    snprintf(text, sizeof text, "/proc/%d", (int)a->options->pid);
    a->gid = stat(text, &st) == 0 ? st.st_gid : getegid();
    act_as_process(a);
    if ((uid_t)setfsuid((uid_t)-1) == a->process.euid) /* says who we are, and changes nothing */
        return 0;
    return fm_error_set(err, FM_FORBIDDEN,
                        "process %d is another user's, and only root may act for that one",
                        (int)a->options->pid);
}

static int find(struct attach_memory *a, struct fm_error *err)
{
    pid_t pid = a->options->pid;
    fm_remote_live(&a->remote, pid);
    if (fm_runtime_find(&a->runtime, &a->remote, err) < 0 ||
        fm_remote_call_find(&a->call, &a->remote, &a->runtime, err) < 0)
        return err->status;
    if (fm_process_read(&a->process, pid) < 0)
        return fm_error_set(err, FM_NOT_FOUND, "there is no process %d", (int)pid);
    a->exe = fm_process_exe(pid);
    a->cwd = fm_process_cwd(pid);
    a->command = fm_process_command(pid);
    return 0;
}

static struct fm_profile *make_facts(const struct attach_memory *a)
{
    struct fm_profile *p = fm_facts_of_watching("attach", a->options->pid);
    fm_profile_fact(p, "collectors",
                    !a->options->trace    ? "memory"
                    : a->options->c_calls ? "trace"
                                          : "trace without C calls");
    fm_profile_fact(p, "command", a->command ? a->command : "");
    if (a->options->redact)
        fm_redact(p);
    return p;
}

/* For whoever finds the folder without a recording. */
static void keep_facts(const struct attach_memory *a)
{
    fm_autofree char *path = fm_path_join(a->folder.path, FM_RUN_FACTS_FILE);
    fm_profile_write(a->facts, path, NULL, true, NULL); /* can do without */
}

static char *config_of(const struct attach_memory *a)
{
    struct fm_buffer text = FM_BUFFER_INIT;
    fm_buffer_addf(&text, "folder=%s%ccalls=1%cc_calls=%d%clate=1", a->folder.path,
                   FM_RUN_SEPARATOR, FM_RUN_SEPARATOR, a->options->c_calls, FM_RUN_SEPARATOR);
    fm_run_trace_config(a->options->trace, &text);
    if (a->options->redact)
        fm_buffer_addf(&text, "%credact=1", FM_RUN_SEPARATOR);
    return fm_buffer_detach(&text);
}

static void choose_script(struct attach_memory *a)
{
    a->script.begin = "memory_begin";
    a->script.end = "memory_over";
    a->script.argument = a->folder.path;
    a->script.recorded = "its memory by `fathom run --memory`, fathom.memory() or another `fathom "
                         "attach --memory`";
    if (!a->options->trace)
        return;
    a->script.begin = "trace_begin";
    a->script.end = "trace_over";
    a->script.argument = a->config = config_of(a);
    a->script.recorded = "by `fathom run` or another `fathom attach --trace`";
}

static int prepare(struct attach_memory *a, struct fm_error *err)
{
    char stem[32];
    struct fm_run_names names = { stem, a->options->pid };
    snprintf(stem, sizeof stem, "attach-%d", (int)a->options->pid);
    if (find(a, err) < 0 || !(a->agents = fm_locate_agents(err)) || become_process(a, err) < 0 ||
        fm_folder_make(&a->folder, err) < 0)
        return err->status;
    a->script.call = &a->call;
    a->script.folder = a->folder.path;
    a->script.agents = a->agents;
    a->script.stop_fd = a->options->signals;
    choose_script(a);
    if (!a->options->trace)
        fm_together_make(a->folder.path, 0); /* can do without */
    if (check_seen(a, a->folder.path, err) < 0 || check_seen(a, a->agents, err) < 0)
        return err->status;
    a->facts = make_facts(a);
    fm_profile_fact(a->facts, "live", a->folder.path);
    keep_facts(a);
    act_as_self();
    int rc = fm_run_output_open(&a->output, a->options->output, a->options->force, &names, a->facts,
                                err);
    act_as_process(a);
    return rc;
}

static int begin(struct attach_memory *a, struct fm_error *err)
{
    struct fm_memory_watch_options memory = { .folder = a->folder.path,
                                              .children = a->options->children,
                                              .shares = a->options->shares };
    fm_watch_init(&a->watch, a->folder.path);
    fm_watch_add(&a->watch, a->options->pid);
    a->start_ns = fm_clock_ns();
    if (a->options->trace &&
        !(a->traces = fm_trace_watch_new(a->folder.path, a->options->trace->window_ns, NULL)))
        return fm_error_set(err, FM_SYSTEM, "no thread can be started that keeps the trace");
    if (fm_attach_script_begin(&a->script, a->options->wait_ns, err) < 0)
        return err->status;
    a->begun = true;
    fm_run_output_keep(&a->output);
    if (!a->options->trace)
        a->memory = fm_memory_watch_new(&memory, a->options->pid);
    if (a->options->ready_fd >= 0) {
        dprintf(a->options->ready_fd, "attached\n");
        close(a->options->ready_fd);
    }
    return 0;
}

/* ---- the recording ---- */

/* What a run's agent would have told of the process; its store is joined to that. */
static void describe(const struct attach_memory *a, struct fm_profile *p)
{
    char version[32];
    uint32_t hex = a->runtime.version_hex;
    const struct fm_watched *watched = &a->watch.list.data[0];
    uint64_t now_ns = fm_clock_ns();
    snprintf(version, sizeof version, "%u.%u.%u", hex >> 24, hex >> 16 & 255, hex >> 8 & 255);
    struct fm_process process = {
        .pid = (uint32_t)a->options->pid,
        .parent_pid = (uint32_t)a->process.parent,
        .exe = fm_profile_string(p, a->exe ? a->exe : ""),
        .command = fm_profile_string(p, a->command ? a->command : ""),
        .cwd = fm_profile_string(p, a->cwd ? a->cwd : ""),
        .version = fm_profile_string(p, version),
        .start_real_ns = fm_clock_read_ns(CLOCK_REALTIME) - (now_ns - a->start_ns),
        .start_ns = a->start_ns,
        .end_ns = watched->end_ns ? watched->end_ns : now_ns,
        .exit_status = watched->exit_status,
        .profiled = true,
    };
    fm_profile_process(p, &process);
}

static struct fm_profile *join(struct attach_memory *a, struct fm_error *err)
{
    FM_VEC(struct fm_join_ending) endings = { 0 };
    for (size_t i = 0; i < a->watch.list.len; i++) {
        const struct fm_watched *watched = &a->watch.list.data[i];
        struct fm_join_ending ending = { (uint32_t)watched->pid, watched->end_ns,
                                         watched->exit_status };
        fm_vec_push(&endings, ending);
    }
    struct fm_profile *p = fm_profile_new();
    if (!a->options->trace) /* the store of a traced process tells that itself */
        describe(a, p);
    fm_memory_watch_drain(a->memory);
    fm_trace_watch_hold(a->traces);
    int rc = fm_join_folder(p, a->folder.path, NULL, a->traces, endings.data, endings.len, err);
    fm_trace_watch_go_on(a->traces);
    fm_vec_release(&endings);
    if (rc < 0) {
        fm_profile_free(p);
        return NULL;
    }
    if (a->memory) {
        fm_memory_watch_gather(a->memory, p);
        fm_memory_watch_note_kills(a->memory, p);
    }
    struct fm_profile *facts = make_facts(a); /* without "live" */
    fm_profile_fact(facts, "start", fm_profile_fact_get(a->facts, "start"));
    fm_facts_complete(p, facts, a->start_ns);
    fm_profile_free(facts);
    if (a->options->redact)
        fm_redact(p);
    return p;
}

static int write_recording(struct attach_memory *a, const struct fm_profile *p,
                           struct fm_error *err)
{
    act_as_self();
    int rc = fm_run_output_write(&a->output, p, err);
    act_as_process(a);
    return rc;
}

static void save(struct attach_memory *a)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = join(a, &err);
    if (p)
        fm_profile_note(p, FM_NONE, "cut-off", 1,
                        "recording still went on when this was saved; what followed is not in it");
    if (!p || write_recording(a, p, &err) < 0)
        fm_verb_fail("attach", &err);
    else if (!a->options->quiet)
        fm_clean_say(stderr, "fathom attach: written to %s", a->output.path);
    fm_profile_free(p);
}

/* ---- meanwhile ---- */

static void on_signal(struct attach_memory *a)
{
    struct signalfd_siginfo info;
    while (read(a->options->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGUSR1)
            save(a);
        else
            a->stop = true;
    }
}

static bool has_ended(const struct attach_memory *a)
{
    return a->watch.list.data[0].end_ns != 0 || (a->memory && fm_memory_watch_is_over(a->memory));
}

static void wait_for_end(struct attach_memory *a)
{
    uint64_t end_ns =
        a->options->duration_ns ? fm_clock_ns() + a->options->duration_ns : UINT64_MAX;
    while (!a->stop && !has_ended(a)) {
        uint64_t now_ns = fm_clock_ns(), due_ns = fm_memory_watch_due_ns(a->memory);
        if (now_ns >= end_ns)
            break;
        due_ns = due_ns < end_ns ? due_ns : end_ns;
        int ms = due_ns > now_ns ? (int)((due_ns - now_ns) / 1000000 % 60000) + 1 : 0;
        if (fm_watch_wait(&a->watch, a->options->signals, ms) == 1)
            on_signal(a);
        if (a->memory && fm_memory_watch_due_ns(a->memory) <= fm_clock_ns())
            fm_memory_watch_look(a->memory);
    }
    fm_watch_scan(&a->watch);
    if (has_ended(a)) {
        fm_watch_wait(&a->watch, -1, GRACE_MS);
        fm_watch_ask_statuses(&a->watch);
    }
}

/* ---- the end ---- */

static void remove_folders(struct attach_memory *a, bool is_left)
{
    struct fm_folder more = { .path = a->folder.more };
    fm_folder_remove(is_left ? &more : &a->folder);
}

/* Tell the process; what is recorded is safe already. True if the folder is left to it. */
static bool tell_end(struct attach_memory *a)
{
    struct fm_error err = FM_ERROR_INIT;
    if (has_ended(a) || fm_attach_script_end(&a->script, END_NS, &err) == 0 ||
        err.status != FM_NO_ANSWER)
        return false;
    fm_clean_say(stderr, "fathom attach: %s", err.text);
    return true;
}

static int finish(struct attach_memory *a)
{
    struct fm_error err = FM_ERROR_INIT;
    if (has_ended(a))
        fm_trace_watch_stop(a->traces);
    struct fm_profile *p = join(a, &err);
    int rc = p ? write_recording(a, p, &err) : err.status;
    remove_folders(a, tell_end(a));
    act_as_self();
    if (rc < 0) {
        fm_profile_free(p);
        fm_run_output_cancel(&a->output);
        return fm_verb_fail("attach", &err);
    }
    if (!a->options->quiet) {
        fm_report_summary(p, stderr, SUMMARY_ROWS);
        fm_clean_say(stderr, "Recorded to %s; next: fathom report %s", a->output.path,
                     a->output.path);
    }
    fm_profile_free(p);
    return 0;
}

static void release(struct attach_memory *a)
{
    if (a->watch.folder)
        fm_watch_release(&a->watch);
    fm_memory_watch_free(a->memory);
    fm_trace_watch_free(a->traces);
    free(a->config);
    fm_run_output_release(&a->output);
    fm_profile_free(a->facts);
    fm_folder_release(&a->folder);
    free(a->agents);
    free(a->exe);
    free(a->cwd);
    free(a->command);
}

int fm_attach_memory(const struct fm_attach_memory_options *options)
{
    struct attach_memory a = { .options = options, .folder = { .lock = -1, .more_lock = -1 } };
    struct fm_error err = FM_ERROR_INIT;
    int status;
    if (prepare(&a, &err) < 0 || begin(&a, &err) < 0) {
        status = fm_verb_fail("attach", &err);
        fm_folder_remove(&a.folder);
        act_as_self();
        fm_run_output_cancel(&a.output);
    } else {
        wait_for_end(&a);
        status = finish(&a);
    }
    release(&a);
    return status;
}

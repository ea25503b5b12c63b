/*
 * `fathom run`: profile a program, and every Python below it, from start to end.
 *
 * The launcher makes a folder for the run, starts the program with the preload library (see
 * target/preload/preload.h) and waits. The profiled processes keep their profiles in the folder by
 * themselves; the launcher only notes when they end, joins what they left into one recording, and
 * ends the way the program ended. It adds nothing to the program's descriptors, group, terminal or
 * signals, and if it dies the program goes on.
 *
 * What goes to the user goes to stderr, after the program has ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clean.h"
#include "base/clock.h"
#include "base/memory.h"
#include "commands/facts.h"
#include "commands/join.h"
#include "commands/redact.h"
#include "commands/run/absence.h"
#include "commands/run/command.h"
#include "commands/run/curve.h"
#include "commands/run/environment.h"
#include "commands/run/gate.h"
#include "commands/run/keep.h"
#include "commands/run/limit.h"
#include "commands/run/lines.h"
#include "commands/run/options.h"
#include "commands/run/output.h"
#include "commands/run/samples.h"
#include "commands/run/wait.h"
#include "commands/verb.h"
#include "show/report/summary.h"
#include "watch/memory/together.h"
#include "watch/os/locate.h"
#include "watch/os/path.h"
#include "watch/os/run/folder.h"
#include "watch/os/run/spawn.h"
#include "watch/trace/trace_watch.h"

#define SUMMARY_ROWS   15
#define MAX_UNPROFILED 5 /* named one by one */

/* One run, from the command line to its end. */
struct run {
    struct fm_run_options options;
    struct fm_run_command command;
    struct fm_folder folder;
    struct fm_run_environment environment;
    struct fm_relay relay;
    struct fm_watch watch;
    struct fm_spawn spawn;
    struct fm_run_output output;
    struct fm_run_samples samples;
    struct fm_memory_watch *memory; /* NULL: not asked for */
    struct fm_trace_watch *traces;  /* … the same */
    struct fm_run_limit limit;
    struct fm_run_keep keep;
    struct fm_profile *facts;
    struct fm_memory_undo undo; /* until the program runs */
    uint64_t start_ns;
    int32_t exit_status; /* as a shell shows it; −1 while the program runs */
};

/* What is known about the run before it begins. */
static struct fm_profile *gather_facts(const struct run *run)
{
    struct fm_profile *p = fm_profile_new();
    fm_autofree char *command = fm_run_command_text(run->command.argv);
    fm_autofree char *cwd = getcwd(NULL, 0);
    char text[512];
    fm_profile_fact(p, "command", command);
    fm_profile_fact(p, "cwd", cwd ? cwd : "");
    fm_facts_add(p);
    snprintf(text, sizeof text, "%s%s%s%s%s%s", run->options.sample ? ", samples" : "",
             run->options.trace.on ? ", trace"
             : run->options.calls  ? ", calls"
                                   : "",
             run->options.calls && !run->options.c_calls ? " without C calls" : "",
             run->options.lines ? ", lines" : "", run->options.memory ? ", memory" : "",
             run->options.resident ? ", resident memory" : "");
    fm_profile_fact(p, "collectors", text + strlen(", "));
    if (run->options.lines)
        fm_profile_fact(p, "lines", run->options.patterns);
    if (run->options.redact)
        fm_redact(p);
    return p;
}

/* The agents need the program's help to get into it; whoever only watches from outside does not. */
static int prepare_environment(struct run *run, struct fm_error *err)
{
    if (!fm_run_options_inside(&run->options)) {
        fm_run_environment_leave_word(&run->folder, &run->options);
        return 0;
    }
    fm_autofree char *agents = fm_locate_agents(err);
    if (!agents)
        return err->status;
    return fm_run_environment_init(&run->environment, agents, &run->folder, &run->options, err);
}

/* What is known is in the folder, too, for whoever finds that without a recording. */
static void keep_facts(const struct run *run)
{
    fm_autofree char *path = fm_path_join(run->folder.path, FM_RUN_FACTS_FILE);
    fm_profile_write(run->facts, path, NULL, true, NULL); /* a run can do without */
}

static void remove_folder(void *run)
{
    fm_folder_remove(&((const struct run *)run)->folder);
}

/* Everything up to the moment before the program runs. 0, or the exit status. */
static int prepare(struct run *run, struct fm_error *err)
{
    int status = fm_run_command_init(&run->command, run->options.python, run->options.command, err);
    if (status)
        return status;
    run->undo = (struct fm_memory_undo){ remove_folder, run, NULL };
    fm_memory_undo_add(&run->undo);
    if (fm_folder_make(&run->folder, err) < 0 || prepare_environment(run, err) < 0)
        return FM_RUN_OWN_FAILURE;
    /* A run can do without, unless it has a limit. */
    if (run->options.memory && fm_together_make(run->folder.path, run->options.limit) < 0 &&
        run->options.limit) {
        fm_error_set_errno(err, FM_CANNOT_WRITE, errno, "the limit cannot be kept: %s",
                           run->folder.path);
        return FM_RUN_OWN_FAILURE;
    }
    run->limit = (struct fm_run_limit){ .bytes = run->options.limit, .folder = run->folder.path };
    fm_relay_mark(&run->relay);
    char **entries = run->environment.entries ? run->environment.entries : environ;
    if (fm_spawn_make(&run->spawn, run->command.file, run->command.argv, entries, &run->relay,
                      err) < 0)
        return FM_RUN_OWN_FAILURE;

    run->facts = gather_facts(run);
    fm_profile_fact(run->facts, "live", run->folder.path);
    struct fm_run_names names = { run->command.stem, run->spawn.pid };
    if (fm_run_output_open(&run->output, run->options.output, run->options.force, &names,
                           run->facts, err) < 0) {
        fm_spawn_cancel(&run->spawn);
        return fm_status_exit(err->status);
    }
    keep_facts(run);
    return 0;
}

/* Many processes mean many descriptors; only the launcher's own limit is raised. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static uint64_t due_ns(void *data)
{
    const struct run *run = data;
    uint64_t samples_ns = fm_run_samples_due_ns(&run->samples);
    uint64_t memory_ns = fm_memory_watch_due_ns(run->memory);
    uint64_t keep_ns = fm_run_keep_due_ns(&run->keep);
    uint64_t first_ns = samples_ns < memory_ns ? samples_ns : memory_ns;
    return first_ns < keep_ns ? first_ns : keep_ns;
}

static struct fm_profile *join_so_far(struct run *run, struct fm_error *err);

static void on_due(void *data)
{
    struct run *run = data;
    struct fm_error err = FM_ERROR_INIT;
    uint64_t now_ns = fm_clock_ns();
    if (fm_memory_watch_due_ns(run->memory) <= now_ns)
        fm_memory_watch_look(run->memory);
    fm_run_limit_look(&run->limit, run->memory);
    if (fm_run_samples_due_ns(&run->samples) <= now_ns)
        fm_run_samples_save(&run->samples, &err); /* tried again at the end */
    if (fm_run_keep_due_ns(&run->keep) <= now_ns && fm_run_keep_look(&run->keep, run->traces)) {
        struct fm_profile *p = join_so_far(run, &err);
        fm_run_keep_write(&run->keep, p, &err);
        fm_profile_free(p);
    }
}

static struct fm_profile *join(struct run *run, struct fm_error *err);

static struct fm_profile *join_so_far(struct run *run, struct fm_error *err)
{
    fm_watch_scan(&run->watch);
    fm_trace_watch_hold(run->traces);
    struct fm_profile *p = join(run, err);
    fm_trace_watch_go_on(run->traces);
    return p;
}

/* Write the recording so far. Whoever reads it after a kill is to know that there was more. */
static void on_flush(void *data)
{
    struct run *run = data;
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = join_so_far(run, &err);
    fm_run_samples_save(&run->samples, &err);
    if (p) {
        fm_autobuffer text = FM_BUFFER_INIT;
        fm_buffer_addf(&text,
                       "the program still ran when this was saved; if nothing took its place, "
                       "`fathom merge %s -o NAME` reads the whole",
                       run->folder.path);
        fm_profile_note(p, FM_NONE, "cut-off", 1, fm_buffer_text(&text));
    }
    if (!p || fm_run_output_write(&run->output, p, &err) < 0)
        fm_verb_fail("run", &err);
    fm_profile_free(p);
}

/* Let the program run, and wait for its end. 0, or the exit status if it could not be executed. */
static int execute(struct run *run, int *ret_wait_status, struct fm_error *err)
{
    fm_watch_init(&run->watch, run->folder.path);
    run->start_ns = fm_clock_ns();
    int errnum = fm_spawn_go(&run->spawn);
    if (errnum)
        return fm_run_command_failed(&run->command, errnum, err);
    fm_run_output_keep(&run->output);
    fm_memory_undo_remove(&run->undo);
    raise_descriptor_limit();
    signal(SIGPIPE, SIG_IGN); /* a reader of stderr that went away must not cost the recording */
    struct fm_error late = FM_ERROR_INIT;
    run->samples.redact = run->options.redact;
    if (run->options.sample && fm_run_samples_start(&run->samples, &run->options.sampling,
                                                    run->spawn.pid, &run->folder, &late) < 0)
        fm_clean_say(stderr, "fathom run: %s; the program runs without being sampled", late.text);
    if (run->options.trace.on &&
        !(run->traces = fm_trace_watch_new(run->folder.path, run->options.trace.window_ns,
                                           &run->options.trace.keep_on)))
        fm_clean_say(stderr, "fathom run: no thread can be started that keeps the trace");
    struct fm_run_names names = { run->command.stem, run->spawn.pid };
    fm_run_keep_init(&run->keep, &run->options.trace, run->options.output, run->output.path, &names,
                     run->start_ns);
    run->memory = fm_run_curve_start(&run->options, &run->folder, run->spawn.pid);
    run->samples.memory = run->memory;
    struct fm_run_meanwhile meanwhile = { due_ns, on_due, on_flush, run };
    *ret_wait_status = fm_run_wait(&run->relay, &run->watch, run->spawn.pid, &meanwhile);
    fm_run_limit_end(&run->limit, run->memory, &run->watch);
    return 0;
}

/* Everything the processes left, with the facts of the run. */
static struct fm_profile *join(struct run *run, struct fm_error *err)
{
    FM_VEC(struct fm_join_ending) endings = { 0 };
    for (size_t i = 0; i < run->watch.list.len; i++) {
        const struct fm_watched *watched = &run->watch.list.data[i];
        struct fm_join_ending ending = { (uint32_t)watched->pid, watched->end_ns,
                                         watched->exit_status };
        fm_vec_push(&endings, ending);
    }
    struct fm_profile *p = gather_facts(run);
    char text[64];
    /* The facts were gathered anew, without "live", but the start was then. */
    fm_profile_fact(p, "start", fm_profile_fact_get(run->facts, "start"));
    snprintf(text, sizeof text, "%.6f", (double)(fm_clock_ns() - run->start_ns) / 1e9);
    fm_profile_fact(p, "seconds", text);
    if (run->exit_status >= 0) {
        snprintf(text, sizeof text, "%d", (int)run->exit_status);
        fm_profile_fact(p, "exit", text);
    }
    fm_memory_watch_drain(run->memory);
    struct fm_profile *sampled = fm_run_samples_profile(&run->samples);
    if (fm_join_folder(p, run->folder.path, sampled, run->traces, endings.data, endings.len, err) <
        0) {
        fm_profile_free(p);
        p = NULL;
    }
    fm_profile_free(sampled);
    if (p)
        fm_run_curve_gather(run->memory, p, run->spawn.pid, run->exit_status);
    if (p)
        fm_run_limit_note(&run->limit, p);
    if (p && run->options.redact)
        fm_redact(p);
    if (p && run->options.lines)
        fm_run_lines_note(p, run->options.patterns);
    fm_vec_release(&endings);
    return p;
}

static size_t count_profiled(const struct fm_profile *p)
{
    size_t count = 0;
    for (size_t i = 0; i < p->processes.len; i++)
        count += p->processes.data[i].profiled;
    return count;
}

/* Each Python that was not profiled, and why; the summary says so too, but is not always shown. True
 * if it was said of the whole run. */
static bool report_unprofiled(const struct fm_profile *p)
{
    bool whole = false;
    size_t said = 0, more = 0;
    for (size_t i = 0; i < p->notes.len; i++) {
        const struct fm_note *note = &p->notes.data[i];
        if (strcmp(fm_profile_text(p, note->kind), "unprofiled") != 0)
            continue;
        if (said == MAX_UNPROFILED) {
            more++;
            continue;
        }
        said++;
        if (note->process >= p->processes.len) { /* seen from outside only: the text says which */
            fm_clean_say(stderr, "fathom run: %s", fm_profile_text(p, note->text));
            whole = whole || strncmp(fm_profile_text(p, note->text), FM_RUN_ABSENCE,
                                     strlen(FM_RUN_ABSENCE)) == 0;
            continue;
        }
        const struct fm_process *process = &p->processes.data[note->process];
        const char *exe = fm_profile_text(p, process->exe);
        fm_clean_say(stderr, "fathom run: process %u was not profiled: %s%s%s%s", process->pid,
                     fm_profile_text(p, note->text), *exe ? " (" : "", exe, *exe ? ")" : "");
    }
    if (more)
        fm_clean_say(stderr, "fathom run: %zu more processes were not profiled", more);
    return whole;
}

/* What the user reads at the end. */
static void report(const struct run *run, struct fm_profile *p, size_t running)
{
    bool any = count_profiled(p) > 0, said = false;
    if (any && !run->options.quiet) {
        fputc('\n', stderr); /* apart from the program's own output */
        fm_report_summary(p, stderr, SUMMARY_ROWS);
    } else {
        said = report_unprofiled(p);
    }
    if (!any && !said && !run->options.resident)
        fm_clean_say(stderr, "fathom run: no Python was profiled in this run");
    if (running > 0)
        fm_clean_say(
            stderr,
            "fathom run: %zu process%s still running; when %s ended, `fathom merge %s -o NAME` "
            "reads the whole",
            running, running == 1 ? " is" : "es are", running == 1 ? "it has" : "they have",
            run->folder.path);
    if (!run->options.quiet)
        fm_clean_say(stderr, "Recorded to %s; next: fathom %s %s", run->output.path,
                     !any && run->options.resident ? "plot" : "report", run->output.path);
}

/* The folder of the run stays: what was sampled must be in it as well. Says so if it cannot be put
 * there; false if nothing of the run is kept then. */
static bool keep_samples(struct run *run)
{
    struct fm_error err = FM_ERROR_INIT;
    bool others = fm_run_options_inside(&run->options);
    if (fm_run_samples_save(&run->samples, &err) == 0)
        return true;
    fm_clean_say(stderr, "fathom run: %s were not kept: %s",
                 run->samples.saved ? "the samples since they were last saved" : "the samples",
                 err.text);
    return others || run->samples.saved;
}

/* Join, write, report, tidy up. 0, or the exit status for a recording that was not written. */
static int finish(struct run *run)
{
    struct fm_error err = FM_ERROR_INIT;
    size_t running = fm_watch_recording(&run->watch);
    fm_run_samples_stop(&run->samples);
    fm_trace_watch_stop(run->traces);
    fm_watch_end_names(&run->watch);
    struct fm_profile *p = join(run, &err);
    if (p && fm_run_options_inside(&run->options))
        fm_run_absence_note(p, &run->command);
    if (!p || fm_run_output_write(&run->output, p, &err) < 0) {
        fm_profile_free(p);
        fm_verb_fail("run", &err);
        if (keep_samples(run)) {
            fm_clean_say(
                stderr,
                "fathom run: what was recorded is kept in %s; `fathom merge %s -o NAME` reads it",
                run->folder.path, run->folder.path);
        } else {
            fm_run_output_cancel(&run->output); /* it would name a folder that is gone */
            fm_folder_remove(&run->folder);
        }
        return fm_status_exit(FM_CANNOT_WRITE);
    }
    if (running == 0)
        fm_folder_remove(&run->folder);
    else
        keep_samples(run);
    report(run, p, running);
    fm_run_keep_report(&run->keep, run->traces, run->output.path);
    int status = fm_run_limit_report(&run->limit, p);
    if (!status && run->options.fail_above)
        status = fm_run_gate(p, run->options.fail_above);
    fm_profile_free(p);
    return status;
}

static void release(struct run *run)
{
    fm_run_output_release(&run->output);
    fm_run_samples_release(&run->samples);
    fm_run_keep_release(&run->keep);
    fm_memory_watch_free(run->memory);
    fm_trace_watch_free(run->traces);
    fm_watch_release(&run->watch);
    fm_relay_release(&run->relay);
    fm_run_environment_release(&run->environment);
    fm_folder_release(&run->folder);
    fm_run_command_release(&run->command);
    fm_profile_free(run->facts);
}

/* Started with standard descriptors closed, the launcher must not open others in their place: a
 * sentence for stderr would go into them. The program gets them closed, as they were. */
static void hold_standard_descriptors(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int fm_verb_run(int argc, char **argv)
{
    struct run run = { .relay.fd = -1, .watch.inotify_fd = -1, .exit_status = -1 };
    struct fm_error err = FM_ERROR_INIT;
    int wait_status = 0;
    hold_standard_descriptors();
    /* Signals first: they are for the program, which is to get them, or would leave a folder that
     * nobody removes. */
    int status = fm_relay_init(&run.relay, &err) < 0 ? FM_RUN_OWN_FAILURE : 0;
    int parsed = fm_run_options_parse(&run.options, argc, argv);
    if (parsed >= 0) {
        fm_relay_release(&run.relay);
        return parsed;
    }
    run.relay.kept = run.options.flush_signal;
    if (status == 0)
        status = prepare(&run, &err);
    if (status == 0)
        status = execute(&run, &wait_status, &err);
    if (status) {
        fm_verb_fail("run", &err);
        fm_run_output_cancel(&run.output);
        fm_memory_undo_remove(&run.undo);
        if (run.folder.path)
            fm_folder_remove(&run.folder);
        release(&run);
        return status;
    }
    run.exit_status = fm_exit_status_of_wait(wait_status);
    int not_written = finish(&run);
    bool ended = run.limit.passed_ns;
    release(&run);
    fflush(NULL);
    if (ended) /* by us: how it took that is not the point */
        return not_written;
    if (WIFSIGNALED(wait_status))
        fm_relay_die(WTERMSIG(wait_status));
    status = fm_exit_status_of_wait(wait_status);
    return status ? status : not_written;
}

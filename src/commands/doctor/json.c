/* `fathom doctor --json`; the members are described in docs/doctor.md. */
#include <stdlib.h>
#include <unistd.h>

#include "base/buffer.h"
#include "commands/doctor/doctor.h"
#include "show/report/json_text.h"

static void add_bool(struct fm_buffer *out, const char *key, bool value)
{
    fm_json_add_key(out, key);
    fm_buffer_add_text(out, value ? "true" : "false");
}

static void open_list(struct fm_buffer *out, const char *key)
{
    fm_json_add_key(out, key);
    fm_buffer_add_char(out, '[');
}

/* An object in a list. */
static void open_element(struct fm_buffer *out)
{
    if (out->data[out->len - 1] != '[')
        fm_buffer_add_text(out, ", ");
    fm_buffer_add_char(out, '{');
}

static void add_version(struct fm_buffer *out, uint32_t version_hex, bool exact)
{
    char version[32];
    fm_json_add_key(out, "version");
    if (version_hex)
        fm_json_add_text(out, fm_doctor_version(version, version_hex, exact));
    else
        fm_buffer_add_text(out, "null");
}

static void add_number_or_null(struct fm_buffer *out, const char *key, int value)
{
    if (value != FM_PERMITS_UNKNOWN) {
        fm_json_add_member(out, key, value);
        return;
    }
    fm_json_add_key(out, key);
    fm_buffer_add_text(out, "null");
}

static void add_findings(struct fm_buffer *out, const struct fm_doctor *d)
{
    static const char *const verdicts[] = { "works", "limited", "extra" };
    open_list(out, "findings");
    for (size_t i = 0; i < d->findings.len; i++) {
        const struct fm_doctor_finding *f = &d->findings.data[i];
        open_element(out);
        fm_json_add_text_member(out, "id", f->id);
        fm_json_add_text_member(out, "what", f->what);
        fm_json_add_text_member(out, "verdict", verdicts[f->verdict]);
        fm_json_add_text_member(out, "text", f->text);
        fm_json_add_text_member(out, "command", f->command);
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
}

static void add_permits(struct fm_buffer *out, const struct fm_permits *p)
{
    fm_json_add_key(out, "permissions");
    fm_buffer_add_char(out, '{');
    fm_json_add_text_member(out, "user", fm_permits_user(geteuid()));
    add_bool(out, "proc", p->proc);
    fm_json_add_member(out, "hidepid", p->hidepid > 0 ? p->hidepid : 0);
    add_number_or_null(out, "yama_ptrace_scope", p->yama_scope);
    add_number_or_null(out, "perf_event_paranoid", p->perf_paranoid);
    fm_json_add_key(out, "capabilities");
    fm_buffer_addf(out, "\"%016llx\"", (unsigned long long)p->capabilities);
    add_bool(out, "sys_ptrace", p->ptrace_capable);
    fm_json_add_member(out, "seccomp", p->seccomp);
    fm_json_add_text_member(out, "container", p->container);
    add_bool(out, "user_namespace", p->user_namespace);
    add_bool(out, "read_self", !p->read_self);
    add_bool(out, "read_child", !p->read_child);
    add_bool(out, "read_syscall", !p->read_syscall);
    add_bool(out, "read_schedstat", !p->read_schedstat);
    add_bool(out, "perf_event_open", !p->open_perf);
    add_bool(out, "sit_on_processor", !p->seat);
    add_bool(out, "short_slice", p->prompt);
    add_bool(out, "stop_thread", !p->stop);
    fm_buffer_add_char(out, '}');
}

static void add_pythons(struct fm_buffer *out, const struct fm_doctor *d)
{
    open_list(out, "pythons");
    for (size_t i = 0; i < d->pythons.len; i++) {
        const struct fm_doctor_python *p = &d->pythons.data[i];
        open_element(out);
        fm_json_add_text_member(out, "file", p->path);
        add_version(out, p->version_hex, p->exact);
        add_bool(out, "sampled", p->readable);
        add_bool(out, "agent", p->agent);
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
}

static void add_processes(struct fm_buffer *out, const struct fm_doctor *d)
{
    open_list(out, "processes");
    for (size_t i = 0; i < d->processes.len; i++) {
        const struct fm_doctor_process *p = &d->processes.data[i];
        open_element(out);
        fm_json_add_member(out, "pid", p->pid);
        fm_json_add_member(out, "uid", p->uid);
        add_version(out, p->version_hex, true);
        add_bool(out, "free_threaded", p->free_threaded);
        add_bool(out, "readable", !p->status);
        fm_json_add_text_member(out, "why", p->why);
        fm_json_add_text_member(out, "command", p->command);
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
}

static void add_runs(struct fm_buffer *out, const struct fm_doctor *d)
{
    open_list(out, "runs");
    for (size_t i = 0; i < d->runs.list.len; i++) {
        const struct fm_leftover *run = &d->runs.list.data[i];
        fm_autofree char *command = fm_doctor_run_command(run);
        open_element(out);
        fm_json_add_text_member(out, "folder", run->path);
        fm_json_add_member(out, "bytes", (int64_t)run->bytes);
        fm_json_add_member(out, "written", (int64_t)run->since);
        add_bool(out, "running", run->running);
        fm_json_add_text_member(out, "command", command);
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
}

static void add_process(struct fm_buffer *out, const struct fm_doctor *d)
{
    const struct fm_proc *p = &d->process;
    fm_json_add_key(out, "process");
    fm_buffer_add_char(out, '{');
    fm_json_add_member(out, "pid", p->pid);
    fm_json_add_member(out, "tgid", p->tgid);
    fm_json_add_member(out, "parent", p->parent);
    fm_json_add_member(out, "inner_pid", p->inner_pid);
    fm_json_add_member(out, "uid", p->uid);
    fm_json_add_member(out, "threads", p->threads);
    fm_json_add_text_member(out, "command", d->command);
    fm_json_add_text_member(out, "executable", d->exe);
    fm_json_add_text_member(out, "folder", d->cwd);
    add_bool(out, "readable", d->found);
    add_version(out, d->found ? d->runtime.version_hex : 0, true);
    add_bool(out, "free_threaded", d->found && d->runtime.layout.free_threaded);
    fm_json_add_text_member(out, "interpreter", d->found ? d->runtime.path : "");
    fm_json_add_key(out, "runtime");
    fm_buffer_addf(out, "\"%#llx\"", (unsigned long long)(d->found ? d->runtime.at : 0));
    fm_buffer_add_char(out, '}');
}

void fm_doctor_json(const struct fm_doctor *d, FILE *out)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    fm_buffer_add_char(&text, '{');
    fm_json_add_text_member(&text, "fathom", FATHOM_VERSION);
    fm_json_add_text_member(&text, "kernel", d->kernel);
    fm_json_add_text_member(&text, "machine", d->machine);
    add_bool(&text, "limited", fm_doctor_limited(d));
    add_findings(&text, d);
    add_permits(&text, &d->permits);
    if (d->pid) {
        add_process(&text, d);
    } else {
        fm_json_add_text_member(&text, "agents", d->agents ? d->agents : "");
        add_pythons(&text, d);
        add_processes(&text, d);
        add_runs(&text, d);
    }
    fm_buffer_add_text(&text, "}\n");
    fwrite(text.data, 1, text.len, out);
}

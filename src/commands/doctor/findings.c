/* What works here and what does not; see doctor_findings.h. */
#include "commands/doctor/findings.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "show/report/number.h"

#define SYSCTL_YAMA "sudo sysctl kernel.yama.ptrace_scope=0"

static struct fm_doctor_finding *add(struct fm_doctor *d, const char *id, const char *what,
                                     enum fm_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

static struct fm_doctor_finding *add(struct fm_doctor *d, const char *id, const char *what,
                                     enum fm_verdict verdict, const char *format, ...)
{
    struct fm_doctor_finding f = { .id = id, .what = what, .verdict = verdict };
    va_list args;
    va_start(args, format);
    vsnprintf(f.text, sizeof f.text, format, args);
    va_end(args);
    fm_vec_push(&d->findings, f);
    return &d->findings.data[d->findings.len - 1];
}

static void set_command(struct fm_doctor_finding *f, const char *command)
{
    snprintf(f->command, sizeof f->command, "%s", command);
}

const char *fm_doctor_version(char out[32], uint32_t version_hex, bool exact)
{
    if (!version_hex)
        snprintf(out, 32, "?");
    else if (exact)
        snprintf(out, 32, "%u.%u.%u", version_hex >> 24, version_hex >> 16 & 0xff,
                 version_hex >> 8 & 0xff);
    else
        snprintf(out, 32, "%u.%u", version_hex >> 24, version_hex >> 16 & 0xff);
    return out;
}

bool fm_doctor_limited(const struct fm_doctor *d)
{
    for (size_t i = 0; i < d->findings.len; i++)
        if (d->findings.data[i].verdict == FM_VERDICT_LIMITED)
            return true;
    return false;
}

/* ---- the machine ---- */

static void find_agents(struct fm_doctor *d)
{
    const char *what = "run --calls, --lines";
    fm_autobuffer have = FM_BUFFER_INIT, lack = FM_BUFFER_INIT;
    for (size_t i = 0; i < d->agent_minors.len; i++)
        fm_buffer_addf(&have, "%s3.%u", i ? ", " : "", d->agent_minors.data[i]);
    for (size_t i = 0; i < d->pythons.len; i++) {
        const struct fm_doctor_python *p = &d->pythons.data[i];
        char version[32];
        /* Older ones than the oldest agent have none by design. */
        if (p->readable && !p->agent && d->agent_minors.len &&
            (p->version_hex >> 16 & 0xff) > d->agent_minors.data[0])
            fm_buffer_addf(&lack, "%s%s (%s)", lack.len ? ", " : "",
                           fm_doctor_version(version, p->version_hex, false), p->path);
    }
    if (!d->agents) {
        add(d, "calls", what, FM_VERDICT_LIMITED, "%s", d->agents_missing);
    } else if (!have.len) {
        set_command(
            add(d, "calls", what, FM_VERDICT_LIMITED, "no agent was built in %s", d->agents),
            "make");
    } else if (lack.len) {
        set_command(add(d, "calls", what, FM_VERDICT_LIMITED, "agents for %s; none for %s",
                        fm_buffer_text(&have), fm_buffer_text(&lack)),
                    "install the headers of that Python, then: make");
    } else {
        add(d, "calls", what, FM_VERDICT_WORKS, "agents for %s", fm_buffer_text(&have));
    }
}

static void find_launch(struct fm_doctor *d)
{
    const struct fm_permits *p = &d->permits;
    const char *what = "run";
    if (!p->proc) {
        set_command(add(d, "run", what, FM_VERDICT_LIMITED, "/proc is not mounted"),
                    "mount -t proc proc /proc");
    } else if (p->read_self) {
        set_command(add(d, "run", what, FM_VERDICT_LIMITED,
                        "process_vm_readv is refused by a filter (%s), even of our own memory",
                        strerror(p->read_self)),
                    p->container[0] ? "start the container with --cap-add=SYS_PTRACE" : "");
    } else if (p->read_child) {
        set_command(add(d, "run", what, FM_VERDICT_LIMITED, "children cannot be read: %s",
                        strerror(p->read_child)),
                    p->yama_scope >= 2 ? SYSCTL_YAMA : "sudo fathom …");
    } else {
        add(d, "run", what, FM_VERDICT_WORKS,
            "samples the Pythons that it starts, " FM_OLDEST_PYTHON " to " FM_NEWEST_PYTHON);
    }
}

static void find_attach(struct fm_doctor *d)
{
    const struct fm_permits *p = &d->permits;
    const char *what = "attach, top, dump";
    if (p->yama_scope == 3) {
        add(d, "attach", what, FM_VERDICT_LIMITED,
            "kernel.yama.ptrace_scope is 3: forbidden to all "
            "until the next boot; set it lower in /etc/sysctl.d and boot again");
    } else if (p->yama_scope > 0 && !p->ptrace_capable) {
        set_command(add(d, "attach", what, FM_VERDICT_LIMITED,
                        "kernel.yama.ptrace_scope is %d: only %s may read a process; use sudo "
                        "fathom …, or allow it:",
                        p->yama_scope, p->yama_scope == 1 ? "its parent" : "root"),
                    SYSCTL_YAMA);
    } else if (!p->proc || p->read_child) {
        add(d, "attach", what, FM_VERDICT_LIMITED, "as above");
    } else {
        add(d, "attach", what, FM_VERDICT_WORKS, "of every Python of user %s",
            fm_permits_user(geteuid()));
    }
}

static void find_others(struct fm_doctor *d)
{
    const struct fm_permits *p = &d->permits;
    const char *what = "… of other users";
    if (p->ptrace_capable && !p->read_child) {
        add(d, "others", what, FM_VERDICT_WORKS, "by the capability SYS_PTRACE");
        return;
    }
    struct fm_doctor_finding *f =
        add(d, "others", what, FM_VERDICT_EXTRA,
            p->hidepid > 0 ? "/proc hides them (hidepid=%d)" : "needs root", p->hidepid);
    set_command(f, p->root ? "start the container with --cap-add=SYS_PTRACE" : "sudo fathom …");
}

/* By which way a running thread is held still while its stack is read. */
static void find_way(struct fm_doctor *d)
{
    const struct fm_permits *p = &d->permits;
    const char *what = "stacks of one instant";
    if (!p->seat && p->prompt)
        add(d, "way", what, FM_VERDICT_WORKS,
            "by sitting on the thread's processor: it is not stopped");
    else if (!p->seat && !p->stop)
        add(d, "way", what, FM_VERDICT_WORKS,
            "by sitting on the thread's processor; this kernel has no short slices (Linux "
            "6.12 has), so if looks come late the thread is stopped for some 10 µs instead");
    else if (!p->stop)
        add(d, "way", what, FM_VERDICT_WORKS,
            "by stopping the thread for some 10 µs, as sitting on its processor is "
            "refused (%s)",
            strerror(p->seat));
    else if (!p->seat)
        add(d, "way", what, FM_VERDICT_LIMITED,
            "this kernel has no short slices (Linux 6.12 has) and ptrace is refused (%s): "
            "what a thread does first after it woke may be missed",
            strerror(p->stop));
    else
        add(d, "way", what, FM_VERDICT_LIMITED,
            "best effort: sitting on a processor is refused (%s), stopping a thread "
            "too",
            strerror(p->seat));
}

static void find_states(struct fm_doctor *d, int failed)
{
    if (!failed)
        add(d, "states", "states of threads", FM_VERDICT_WORKS,
            "/proc/TID/syscall tells what a thread waits for");
    else
        add(d, "states", "states of threads", FM_VERDICT_LIMITED,
            "running or waiting only: /proc/TID/syscall cannot be read (%s)", strerror(failed));
}

static void find_cpu(struct fm_doctor *d)
{
    int failed = d->permits.read_schedstat;
    if (!failed)
        add(d, "cpu", "CPU time of threads", FM_VERDICT_WORKS, "/proc/TID/schedstat can be read");
    else
        add(d, "cpu", "CPU time of threads", FM_VERDICT_LIMITED,
            "in steps of 10 ms: /proc/TID/schedstat cannot be read (%s)", strerror(failed));
}

static void find_perf(struct fm_doctor *d)
{
    const struct fm_permits *p = &d->permits;
    if (!p->open_perf) {
        add(d, "perf", "kernel's counters", FM_VERDICT_WORKS, "perf_event_open is allowed");
        return;
    }
    struct fm_doctor_finding *f =
        add(d, "perf", "kernel's counters", FM_VERDICT_EXTRA,
            "perf_event_open is refused (%s); nothing above needs it", strerror(p->open_perf));
    if (p->container[0])
        set_command(f, "start the container with --cap-add=PERFMON");
    else if (p->perf_paranoid > 2)
        set_command(f, "sudo sysctl kernel.perf_event_paranoid=2");
}

/* Only if there is something: nobody needs to know that there is nothing. */
static void find_left(struct fm_doctor *d)
{
    struct fm_doctor_left left = fm_doctor_left(&d->runs);
    char bytes[FM_NUMBER_BYTES];
    if (left.folders)
        set_command(add(d, "left", "left by runs", FM_VERDICT_EXTRA,
                        "%zu folder%s of runs that were cut off, %s bytes; `fathom merge FOLDER -o "
                        "NAME` reads one, or remove them all:",
                        left.folders, left.folders == 1 ? "" : "s",
                        fm_number_count(bytes, (int64_t)left.bytes)),
                    "fathom doctor --clear");
}

void fm_doctor_find(struct fm_doctor *d)
{
    find_launch(d);
    find_attach(d);
    find_others(d);
    find_way(d);
    find_states(d, d->permits.read_syscall);
    find_cpu(d);
    find_agents(d);
    find_perf(d);
    find_left(d);
}

/* ---- one process ---- */

void fm_doctor_find_process(struct fm_doctor *d, const struct fm_error *why)
{
    char version[32];
    if (!d->found) {
        add(d, "attach", "attach, top, dump", FM_VERDICT_LIMITED, "%s", why->text);
        return;
    }
    const struct fm_runtime *r = &d->runtime;
    add(d, "attach", "attach, top, dump", FM_VERDICT_WORKS, "Python %s%s",
        fm_doctor_version(version, r->version_hex, true),
        r->layout.free_threaded ? ", free-threaded" : "");
    fm_autobuffer text = FM_BUFFER_INIT;
    find_states(d, -fm_procfs_read_of(d->pid, "syscall", 4096, &text));
    fm_doctor_version(version, r->version_hex, false);
    if (fm_doctor_has_agent(d, r->version_hex))
        add(d, "calls", "run --calls, --lines", FM_VERDICT_WORKS,
            "there is an agent for Python %s: start the program with fathom run", version);
    else
        add(d, "calls", "run --calls, --lines", FM_VERDICT_EXTRA,
            "no agent was built for Python %s; fathom run samples it", version);
}

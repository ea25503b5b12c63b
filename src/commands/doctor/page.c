/*
 * `fathom doctor` as a page for the terminal: findings first, then the facts behind them. Marks fall
 * back to words where the locale has no UTF-8.
 */
#include <langinfo.h>
#include <linux/capability.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clean.h"
#include "base/clock.h"
#include "commands/doctor/doctor.h"
#include "show/report/number.h"

#define DEFAULT_WIDTH   100
#define PROCESSES_SHOWN 30
#define RUNS_SHOWN      20
#define LABEL_COLUMNS   22

struct doctor_page {
    const struct fm_doctor *d;
    struct fm_style style;
    FILE *out;
    bool utf8;
};

/* What the user's locale says; the command itself always works in UTF-8. */
static bool locale_is_utf8(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool utf8 = locale && strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    if (locale)
        freelocale(locale);
    return utf8;
}

static const char *mark(const struct doctor_page *p, enum fm_verdict verdict)
{
    switch (verdict) {
    case FM_VERDICT_WORKS:
        return p->utf8 ? "✓" : "ok";
    case FM_VERDICT_LIMITED:
        return p->utf8 ? "✗" : "no";
    default:
        return p->utf8 ? "·" : "- ";
    }
}

static enum fm_color mark_color(enum fm_verdict verdict)
{
    return verdict == FM_VERDICT_WORKS     ? FM_COLOR_HEAT2
           : verdict == FM_VERDICT_LIMITED ? FM_COLOR_HEAT4
                                           : FM_COLOR_DIM;
}

static void put(const struct doctor_page *p, enum fm_color color, const char *text)
{
    fm_color_begin(&p->style, p->out, color);
    fm_clean_put(p->out, text);
    fm_color_end(&p->style, p->out, color);
}

static void pad(const struct doctor_page *p, const char *text, size_t columns)
{
    size_t width = fm_text_width(text, strlen(text));
    fputs(text, p->out);
    for (; width < columns; width++)
        fputc(' ', p->out);
}

/* Words from column `indent` on, within the width. */
static void put_wrapped(const struct doctor_page *p, const char *unclean, size_t indent)
{
    fm_autobuffer clean = FM_BUFFER_INIT;
    fm_clean_add(&clean, unclean, strlen(unclean));
    const char *text = fm_buffer_text(&clean);
    size_t width = p->style.width > 40 ? p->style.width : DEFAULT_WIDTH, column = indent;
    while (*text) {
        size_t len = strcspn(text, " "), columns = fm_text_width(text, len);
        if (column > indent && column + 1 + columns > width) {
            fprintf(p->out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', p->out);
            column++;
        }
        fwrite(text, 1, len, p->out);
        column += columns;
        text += len + strspn(text + len, " ");
    }
    fputc('\n', p->out);
}

static void put_title(const struct doctor_page *p, const char *title)
{
    fputc('\n', p->out);
    put(p, FM_COLOR_BOLD, title);
    fputc('\n', p->out);
}

static void put_findings(const struct doctor_page *p)
{
    size_t indent = 2 + (p->utf8 ? 2 : 3) + LABEL_COLUMNS;
    for (size_t i = 0; i < p->d->findings.len; i++) {
        const struct fm_doctor_finding *f = &p->d->findings.data[i];
        fputs("  ", p->out);
        put(p, mark_color(f->verdict), mark(p, f->verdict));
        fputc(' ', p->out);
        pad(p, !p->utf8 && strncmp(f->what, "…", 3) == 0 ? f->what + 4 : f->what, LABEL_COLUMNS);
        put_wrapped(p, f->text, indent);
        if (!f->command[0])
            continue;
        fprintf(p->out, "%*s%s ", (int)indent, "", p->utf8 ? "→" : "->");
        put(p, FM_COLOR_NAME, f->command);
        fputc('\n', p->out);
    }
}

static void put_fact(const struct doctor_page *p, const char *label, const char *text)
{
    size_t indent = 2 + (p->utf8 ? 2 : 3) + LABEL_COLUMNS;
    fprintf(p->out, "%*s", (int)(indent - LABEL_COLUMNS), "");
    fm_color_begin(&p->style, p->out, FM_COLOR_DIM);
    pad(p, label, LABEL_COLUMNS);
    fm_color_end(&p->style, p->out, FM_COLOR_DIM);
    put_wrapped(p, text, indent);
}

/* ---- the machine ---- */

static const char *capabilities_text(const struct fm_permits *permits)
{
    static const struct {
        int bit;
        const char *name;
    } names[] = { { CAP_SYS_PTRACE, "SYS_PTRACE" },
                  { CAP_SYS_ADMIN, "SYS_ADMIN" },
                  { 38, "PERFMON" },
                  { 40, "CHECKPOINT_RESTORE" } };
    static char text[128];
    text[0] = '\0';
    for (size_t i = 0; i < FM_COUNT(names); i++)
        if (permits->capabilities >> names[i].bit & 1)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", text[0] ? ", " : "",
                     names[i].name);
    return text[0] ? text : "none of SYS_PTRACE, SYS_ADMIN, PERFMON, CHECKPOINT_RESTORE";
}

static void put_permits(const struct doctor_page *p)
{
    static const char *const scopes[] = { "0: no restriction", "1: a process is read by its parent",
                                          "2: by root only", "3: by nobody" };
    static const char *const filters[] = { "none", "strict", "a filter is on" };
    const struct fm_permits *permits = &p->d->permits;
    char text[256];
    int scope = permits->yama_scope;
    put_title(p, "What the system permits");
    put_fact(p, "user", fm_permits_user(geteuid()));
    put_fact(p, "capabilities", capabilities_text(permits));
    put_fact(p, "yama ptrace_scope",
             scope >= 0 && scope <= 3 ? scopes[scope] : "not there: no restriction");
    put_fact(p, "seccomp",
             permits->seccomp >= 0 && permits->seccomp <= 2 ? filters[permits->seccomp]
                                                            : "unknown");
    snprintf(text, sizeof text, "%s%s%s", permits->container[0] ? permits->container : "no",
             permits->inner_pids ? ", pids of its own" : "",
             permits->user_namespace ? ", users of its own" : "");
    put_fact(p, "container", text);
    snprintf(text, sizeof text, "%s, hidepid=%d", permits->proc ? "mounted" : "not mounted",
             permits->hidepid > 0 ? permits->hidepid : 0);
    put_fact(p, "/proc", text);
    if (permits->perf_paranoid == FM_PERMITS_UNKNOWN)
        snprintf(text, sizeof text, "not there");
    else
        snprintf(text, sizeof text, "%d", permits->perf_paranoid);
    put_fact(p, "perf_event_paranoid", text);
    snprintf(text, sizeof text, "%s, %s, %s", p->d->kernel, p->d->machine, p->d->libraries);
    put_fact(p, "kernel, libraries", text);
    put_fact(p, "agents", p->d->agents ? p->d->agents : "not found");
}

static void put_pythons(const struct doctor_page *p)
{
    struct fm_table t;
    put_title(p, "Pythons on PATH");
    fm_table_init(&t, p->style);
    fm_table_column(&t, "version", FM_TABLE_LEFT);
    fm_table_column(&t, "sampled", FM_TABLE_LEFT);
    fm_table_column(&t, "agent", FM_TABLE_LEFT);
    fm_table_column(&t, "file", FM_TABLE_FLEXIBLE);
    for (size_t i = 0; i < p->d->pythons.len; i++) {
        const struct fm_doctor_python *python = &p->d->pythons.data[i];
        char version[32];
        fm_table_cell(&t, FM_COLOR_NONE,
                      fm_doctor_version(version, python->version_hex, python->exact));
        fm_table_cell(&t, FM_COLOR_NONE, python->readable ? mark(p, FM_VERDICT_WORKS) : "-");
        fm_table_cell(&t, FM_COLOR_NONE, python->agent ? mark(p, FM_VERDICT_WORKS) : "-");
        fm_table_cell(&t, FM_COLOR_NONE, python->path);
    }
    if (p->d->pythons.len)
        fm_table_print(&t, p->out);
    else
        fputs("none\n", p->out);
    fm_table_release(&t);
    if (p->d->scripts)
        fprintf(p->out, "and %d %s only choose%s one of them\n", p->d->scripts,
                p->d->scripts == 1 ? "script that" : "scripts that", p->d->scripts == 1 ? "s" : "");
}

static void put_process_row(const struct doctor_page *p, struct fm_table *t,
                            const struct fm_doctor_process *process)
{
    char text[64], version[32];
    snprintf(text, sizeof text, "%d", (int)process->pid);
    fm_table_cell(t, FM_COLOR_NONE, text);
    fm_table_cell(t, FM_COLOR_NONE, fm_permits_user(process->uid));
    snprintf(text, sizeof text, "%s%s", fm_doctor_version(version, process->version_hex, true),
             process->free_threaded ? "t" : "");
    fm_table_cell(t, FM_COLOR_NONE, text);
    fm_table_cell(t, FM_COLOR_NONE,
                  mark(p, process->status ? FM_VERDICT_LIMITED : FM_VERDICT_WORKS));
    fm_table_cell(t, FM_COLOR_NONE, process->command);
}

static void put_processes(const struct doctor_page *p)
{
    const struct fm_doctor *d = p->d;
    struct fm_table t;
    put_title(p, d->permits.ptrace_capable ? "Running Pythons" : "Running Pythons of this user");
    fm_table_init(&t, p->style);
    fm_table_column(&t, "pid", FM_TABLE_RIGHT);
    fm_table_column(&t, "user", FM_TABLE_LEFT);
    fm_table_column(&t, "version", FM_TABLE_LEFT);
    fm_table_column(&t, "attach", FM_TABLE_LEFT);
    fm_table_column(&t, "command", FM_TABLE_TEXT);
    for (size_t i = 0; i < d->processes.len && i < PROCESSES_SHOWN; i++)
        put_process_row(p, &t, &d->processes.data[i]);
    if (d->processes.len)
        fm_table_print(&t, p->out);
    else
        fputs("none\n", p->out);
    fm_table_release(&t);
    if (d->processes.len > PROCESSES_SHOWN)
        fprintf(p->out, "and %zu more\n", d->processes.len - PROCESSES_SHOWN);
    for (size_t i = 0; i < d->processes.len && i < PROCESSES_SHOWN; i++)
        if (d->processes.data[i].status)
            put_wrapped(p, d->processes.data[i].why, 0);
}

static void put_runs(const struct doctor_page *p)
{
    const struct fm_leftovers *runs = &p->d->runs;
    struct fm_table t;
    if (!runs->list.len)
        return;
    put_title(p, "Folders of runs");
    fm_table_init(&t, p->style);
    fm_table_column(&t, "folder", FM_TABLE_LEFT);
    fm_table_column(&t, "bytes", FM_TABLE_RIGHT);
    fm_table_column(&t, "last written", FM_TABLE_LEFT);
    fm_table_column(&t, "state", FM_TABLE_LEFT);
    fm_table_column(&t, "command", FM_TABLE_TEXT);
    for (size_t i = 0; i < runs->list.len && i < RUNS_SHOWN; i++) {
        const struct fm_leftover *run = &runs->list.data[i];
        char bytes[FM_NUMBER_BYTES], since[32] = "";
        struct tm tm;
        fm_autofree char *command = fm_doctor_run_command(run);
        strftime(since, sizeof since, "%Y-%m-%d %H:%M", localtime_r(&run->since, &tm));
        fm_table_cell(&t, FM_COLOR_NONE, run->path);
        fm_table_cell(&t, FM_COLOR_NONE, fm_number_count(bytes, (int64_t)run->bytes));
        fm_table_cell(&t, FM_COLOR_NONE, since);
        fm_table_cell(&t, FM_COLOR_NONE, run->running ? "goes on" : "cut off");
        fm_table_cell(&t, FM_COLOR_NONE, command);
    }
    fm_table_print(&t, p->out);
    fm_table_release(&t);
    if (runs->list.len > RUNS_SHOWN)
        fprintf(p->out, "and %zu more\n", runs->list.len - RUNS_SHOWN);
}

/* ---- one process ---- */

static void put_process(const struct doctor_page *p)
{
    const struct fm_doctor *d = p->d;
    const struct fm_proc *process = &d->process;
    char text[512], age[FM_NUMBER_BYTES];
    snprintf(text, sizeof text, "Process %d: %s", (int)d->pid, d->command);
    put_wrapped(p, text, 0);
    put_title(p, "What works");
    put_findings(p);
    put_title(p, "About it");
    put_fact(p, "executable", d->exe[0] ? d->exe : "unknown");
    put_fact(p, "folder", d->cwd[0] ? d->cwd : "unknown");
    put_fact(p, "user", fm_permits_user(process->uid));
    int64_t since_ns =
        (int64_t)fm_clock_read_ns(CLOCK_REALTIME) - fm_process_start_ns(process->start_ticks);
    snprintf(text, sizeof text, "%s", fm_number_time(age, since_ns));
    put_fact(p, "running for", text);
    snprintf(text, sizeof text, "%d, parent %d", process->threads, (int)process->parent);
    put_fact(p, "threads", text);
    if (process->tgid != process->pid) {
        snprintf(text, sizeof text, "it is a thread of process %d", (int)process->tgid);
        put_fact(p, "note", text);
    }
    if (process->in_namespace) {
        snprintf(text, sizeof text, "yes, it is process %d there", (int)process->inner_pid);
        put_fact(p, "container", text);
    }
    if (d->found) {
        put_fact(p, "interpreter in", d->runtime.path);
        snprintf(text, sizeof text, "%#llx", (unsigned long long)d->runtime.at);
        put_fact(p, "_PyRuntime at", text);
    }
}

void fm_doctor_page(const struct fm_doctor *d, struct fm_style style, FILE *out)
{
    struct doctor_page p = { d, style, out, locale_is_utf8() };
    if (d->pid) {
        put_process(&p);
        return;
    }
    fprintf(out, "Fathom %s\n", FATHOM_VERSION);
    put_title(&p, "What works here");
    put_findings(&p);
    put_permits(&p);
    put_pythons(&p);
    put_processes(&p);
    put_runs(&p);
}

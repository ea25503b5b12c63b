/* A dump for people; see dump.h. Names and paths come from the target, so all are cleaned. */
#include <signal.h>
#include <string.h>

#include "base/clean.h"
#include "commands/dump/dump.h"

static void add_safe(struct fm_buffer *out, const char *text)
{
    fm_clean_add(out, text, strlen(text));
}

static void add_place(struct fm_buffer *out, const struct fm_dump_frame *f)
{
    add_safe(out, f->function);
    fm_buffer_add_text(out, " (");
    add_safe(out, f->file);
    if (f->position.line)
        fm_buffer_addf(out, ":%u", f->position.line);
    if (f->position.line && f->position.column)
        fm_buffer_addf(out, ":%u", f->position.column);
    fm_buffer_add_char(out, ')');
}

static void add_thread_name(struct fm_buffer *out, const struct fm_dump_thread *t)
{
    if (t->raw.native_id)
        fm_buffer_addf(out, "%llu", (unsigned long long)t->raw.native_id);
    else
        fm_buffer_addf(out, "0x%llx", (unsigned long long)t->raw.ident);
    if (*t->name) {
        fm_buffer_add_text(out, " \"");
        add_safe(out, t->name);
        fm_buffer_add_char(out, '"');
    }
}

static void add_holder(struct fm_buffer *out, const struct fm_dump *dump,
                       const struct fm_dump_thread *t)
{
    if (t->holder == FM_DUMP_NOBODY)
        return;
    const struct fm_dump_thread *h = &dump->threads.data[t->holder];
    fm_buffer_addf(out, ", %s by thread ", t->holder_is_sure ? "held" : "probably held");
    add_thread_name(out, h);
    size_t frame = t->holder_frame >= 0 ? (size_t)t->holder_frame : 0;
    if (frame < h->frames.len) {
        fm_buffer_add_text(out, " in ");
        add_place(out, &h->frames.data[frame]);
    }
}

static void add_lock(struct fm_buffer *out, const struct fm_lock *lock)
{
    fm_buffer_add_text(out, ": ");
    if (*lock->name) {
        add_safe(out, lock->name);
        fm_buffer_add_text(out, ", ");
    }
    fm_buffer_addf(out, "%s at 0x%llx", lock->recursive ? "RLock" : "Lock",
                   (unsigned long long)lock->at);
}

static void add_state(struct fm_buffer *out, const struct fm_dump *dump,
                      const struct fm_dump_thread *t)
{
    fm_buffer_add_text(out, fm_dump_state_title(t));
    if (t->holds_gil && t->state_known && fm_state_is_running(t->state))
        fm_buffer_add_text(out, ", holds the GIL");
    if (t->lock.at) {
        add_lock(out, &t->lock);
    } else if (t->detail && *t->detail && t->state != FM_STATE_GIL) {
        fm_buffer_add_text(out, ": ");
        add_safe(out, t->detail);
    }
    add_holder(out, dump, t);
    if (t->signal)
        fm_buffer_addf(out, "; ended by SIG%s",
                       sigabbrev_np(t->signal) ? sigabbrev_np(t->signal) : "?");
}

static void add_frame(struct fm_buffer *out, const struct fm_dump_frame *f)
{
    fm_buffer_add_text(out, "    ");
    add_place(out, f);
    fm_buffer_add_char(out, '\n');
    for (size_t i = 0; i < f->variables.len; i++) {
        fm_buffer_add_text(out, "        ");
        add_safe(out, f->variables.data[i].name);
        fm_buffer_add_text(out, " = ");
        add_safe(out, f->variables.data[i].value);
        fm_buffer_add_char(out, '\n');
    }
    if (f->has_variables && f->more_variables)
        fm_buffer_add_text(out, "        …\n");
}

static void add_thread(struct fm_buffer *out, const struct fm_dump *dump,
                       const struct fm_dump_thread *t)
{
    fm_buffer_add_text(out, "\nThread ");
    add_thread_name(out, t);
    fm_buffer_add_text(out, ": ");
    add_state(out, dump, t);
    fm_buffer_add_char(out, '\n');
    for (size_t i = 0; i < t->frames.len; i++)
        add_frame(out, &t->frames.data[i]);
    if (!t->frames.len)
        fm_buffer_add_text(out, "    (no Python frames)\n");
    if (t->stack.partial)
        fm_buffer_add_text(out, "    … the rest of the stack could not be read\n");
    if (!t->stack.steady)
        fm_buffer_add_text(out, "    (the thread ran on while it was read: the stack may mix two "
                                "instants)\n");
}

static void add_circles(struct fm_buffer *out, const struct fm_dump *dump)
{
    for (size_t i = 0; i < dump->circles.len; i++) {
        const struct fm_dump_circle *c = &dump->circles.data[i];
        fm_buffer_add_text(out, c->is_sure ? "\nDeadlock: " : "\nProbably a deadlock: ");
        for (size_t k = 0; k < c->len; k++) {
            fm_buffer_add_text(out, k > 1 ? ", which waits for " : k ? " waits for " : "thread ");
            add_thread_name(out, &dump->threads.data[dump->circled.data[c->first + k]]);
        }
        fm_buffer_add_text(out, c->len > 1 ? ", which waits for the first" : " waits for itself");
        fm_buffer_add_char(out, '\n');
    }
}

static void add_task(struct fm_buffer *out, const struct fm_dump_task *task)
{
    fm_buffer_add_text(out, "  Task \"");
    add_safe(out, task->name);
    fm_buffer_addf(out, "\": %s", task->running ? "running" : "waiting");
    if (*task->awaited_by) {
        fm_buffer_add_text(out, ", awaited by \"");
        add_safe(out, task->awaited_by);
        fm_buffer_add_char(out, '"');
    }
    fm_buffer_add_char(out, '\n');
    for (size_t i = 0; i < task->frames.len; i++)
        add_frame(out, &task->frames.data[i]);
}

static void add_tasks(struct fm_buffer *out, const struct fm_dump *dump)
{
    size_t thread = FM_DUMP_NOBODY;
    for (size_t i = 0; i < dump->tasks.len; i++) {
        if (dump->tasks.data[i].thread != thread) {
            thread = dump->tasks.data[i].thread;
            fm_buffer_add_text(out, "\nTasks of thread ");
            add_thread_name(out, &dump->threads.data[thread]);
            fm_buffer_add_char(out, '\n');
        }
        add_task(out, &dump->tasks.data[i]);
    }
    if (dump->tasks_note)
        fm_buffer_addf(out, "\nTasks may be missing: %s\n", dump->tasks_note);
}

static void add_header(struct fm_buffer *out, const struct fm_dump *dump)
{
    if (dump->core) {
        fm_buffer_add_text(out, "Core file ");
        add_safe(out, dump->core_path);
        fm_buffer_addf(out, " of process %d", (int)dump->pid);
    } else {
        fm_buffer_addf(out, "Process %d", (int)dump->pid);
    }
    if (dump->command && *dump->command) {
        fm_buffer_add_text(out, ": ");
        add_safe(out, dump->command);
    }
    fm_buffer_add_text(out, "\nPython ");
    fm_dump_version(dump, out);
    fm_buffer_add_text(out, dump->runtime.layout.free_threaded ? "t, " : ", ");
    add_safe(out, dump->runtime.path);
    fm_buffer_add_char(out, '\n');
    if (dump->core && fm_core_is_cut(dump->core))
        fm_buffer_add_text(out, "The core file is cut off: what it lacks is missing here.\n");
}

static bool has_subinterpreters(const struct fm_dump *dump)
{
    for (size_t i = 0; i < dump->threads.len; i++) {
        if (dump->threads.data[i].raw.interp != dump->threads.data[0].raw.interp)
            return true;
    }
    return false;
}

void fm_dump_text(const struct fm_dump *dump, struct fm_buffer *out)
{
    fm_addr interp = 0;
    bool several = has_subinterpreters(dump);
    add_header(out, dump);
    for (size_t i = 0; i < dump->threads.len; i++) {
        const struct fm_dump_thread *t = &dump->threads.data[i];
        if (several && t->raw.interp != interp)
            fm_buffer_addf(out, "\nInterpreter %lld\n", (long long)t->raw.interp_id);
        interp = t->raw.interp;
        add_thread(out, dump, t);
    }
    add_circles(out, dump);
    add_tasks(out, dump);
    if (dump->other_threads)
        fm_buffer_addf(out, "\n%zu more thread%s without Python\n", dump->other_threads,
                       dump->other_threads == 1 ? "" : "s");
    if (dump->partial)
        fm_buffer_add_text(out, "\nThe list of threads could not be read to its end.\n");
}

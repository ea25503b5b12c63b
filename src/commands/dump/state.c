/*
 * What each thread does, in words: its name, its state, what it waits for and who holds that; see
 * dump.h.
 *
 * The state comes from the kernel (one line of /proc, or the registers in a core), the name from
 * the threading module, holders from the interpreter. Sure and likely are told apart.
 */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "commands/dump/dump.h"
#include "watch/cpython/object.h"
#include "watch/os/procfs.h"
#include "watch/sampler/syscalls.h"

static struct fm_heap heap_of(const struct fm_dump *dump)
{
    return (struct fm_heap){ &dump->remote, &dump->runtime.layout };
}

/* ---- names ---- */

/* threading._active: ident → Thread, which has its name as an attribute. */
static char *name_from(const struct fm_heap *t, const struct fm_items *active, uint64_t ident)
{
    char name[128];
    for (size_t i = 0; i < active->len; i++) {
        int64_t key;
        if (fm_object_int(t, active->data[i].key, &key) && (uint64_t)key == ident &&
            fm_object_text(t, fm_object_attribute(t, active->data[i].value, "_name"), name,
                           sizeof name))
            return fm_strdup(name);
    }
    return NULL;
}

static char *name_from_kernel(const struct fm_dump *dump, uint64_t tid)
{
    char file[64];
    struct fm_buffer text = FM_BUFFER_INIT;
    if (dump->core || !tid)
        return fm_strdup("");
    snprintf(file, sizeof file, "task/%llu/comm", (unsigned long long)tid);
    if (fm_procfs_read_of(dump->pid, file, 64, &text) < 0)
        fm_buffer_clear(&text);
    while (text.len && text.data[text.len - 1] == '\n')
        text.data[--text.len] = 0;
    fm_buffer_add_text(&text, "");
    return text.len ? fm_buffer_detach(&text) : (fm_buffer_release(&text), fm_strdup(""));
}

static void name_threads(struct fm_dump *dump)
{
    struct fm_heap t = heap_of(dump);
    struct fm_items active = { 0 };
    fm_addr interp = 0;
    for (size_t i = 0; i < dump->threads.len; i++) {
        struct fm_dump_thread *thread = &dump->threads.data[i];
        if (thread->raw.interp != interp) {
            interp = thread->raw.interp;
            active.len = 0;
            fm_addr module = fm_module_find(&t, interp, "threading");
            if (module)
                fm_dict_items(&t, fm_module_attribute(&t, module, "_active"), FM_STACK_MAX_THREADS,
                              &active);
        }
        thread->name = name_from(&t, &active, thread->raw.ident);
        if (!thread->name)
            thread->name = name_from_kernel(dump, thread->raw.native_id);
    }
    fm_vec_release(&active);
}

/* ---- states ---- */

static bool call_of_core(const struct fm_dump *dump, struct fm_dump_thread *thread,
                         struct fm_syscall *call)
{
    size_t n;
    const struct fm_core_thread *threads = fm_core_threads(dump->core, &n);
    for (size_t i = 0; i < n; i++) {
        if ((uint64_t)threads[i].tid != thread->raw.native_id)
            continue;
        thread->signal = i == 0 ? threads[i].signal : 0;
        *call = (struct fm_syscall){ .running = !threads[i].in_syscall,
                                     .number = threads[i].number,
                                     .stack_pointer = threads[i].stack_pointer,
                                     .program_counter = threads[i].program_counter };
        memcpy(call->args, threads[i].args, sizeof call->args);
        return true;
    }
    return false;
}

bool fm_dump_call(const struct fm_dump *dump, struct fm_dump_thread *thread,
                  struct fm_syscall *call)
{
    char file[64];
    fm_autobuffer text = FM_BUFFER_INIT;
    if (dump->core)
        return call_of_core(dump, thread, call);
    if (!thread->raw.native_id)
        return false;
    snprintf(file, sizeof file, "task/%llu/syscall", (unsigned long long)thread->raw.native_id);
    return fm_procfs_read_of(dump->pid, file, 512, &text) >= 0 &&
           fm_syscall_parse(call, fm_buffer_text(&text), text.len);
}

/* A thread on a processor: Python or C, by the instruction of its newest frame. */
static enum fm_state running_state(struct fm_dump *dump, const struct fm_dump_thread *thread)
{
    const struct fm_layout *l = &dump->runtime.layout;
    const struct fm_code *code =
        thread->stack.len ? fm_dump_code(dump, thread->stack.data[0].code) : NULL;
    int32_t offset;
    if (!code || !fm_code_offset(code, l, thread->stack.data[0].instr, &offset))
        return FM_STATE_C;
    if (offset < 0 || (uint32_t)offset >= code->bytecode_len)
        return FM_STATE_PYTHON;
    return fm_layout_runs_c(l, code->bytecode[offset]) ? FM_STATE_C : FM_STATE_PYTHON;
}

static void describe(struct fm_dump *dump, struct fm_dump_thread *thread,
                     const struct fm_syscall *call, struct fm_fd_kinds *kinds)
{
    struct fm_buffer text = FM_BUFFER_INIT;
    if (!dump->core)
        fm_syscall_describe(call, &dump->remote, kinds, &text);
    free(thread->detail);
    thread->detail = fm_strdup(fm_buffer_text(&text));
    fm_buffer_release(&text);
}

static bool has_gil(const struct fm_dump *dump, const struct fm_dump_thread *thread)
{
    return fm_stack_gil_holder(&dump->runtime, &dump->remote, thread->raw.interp) == thread->raw.at;
}

/* A thread that waits for the GIL wakes every few milliseconds to ask for it, and then looks as if
 * it ran. 3.15 has a mark for that; with others, looking a few times more tells. */
static bool asks_for_gil(const struct fm_dump *dump, struct fm_dump_thread *thread, fm_addr gil)
{
    const struct fm_layout *l = &dump->runtime.layout;
    const struct timespec pause = { 0, 300000 };
    for (int i = 0; i < 6 && !dump->core; i++) {
        struct fm_syscall call;
        int32_t requested = 0;
        if (l->thread_gil_requested != FM_ABSENT &&
            fm_remote_read(&dump->remote, thread->raw.at + l->thread_gil_requested, &requested,
                           sizeof requested) == 0 &&
            requested)
            return true;
        thread->holds_gil = has_gil(dump, thread);
        if (thread->holds_gil || (fm_dump_call(dump, thread, &call) && !call.running))
            return !thread->holds_gil && call.number == SYS_futex &&
                   call.args[0] - gil < l->gil_size;
        nanosleep(&pause, NULL);
    }
    return false;
}

static void find_state(struct fm_dump *dump, struct fm_dump_thread *thread,
                       struct fm_fd_kinds *kinds)
{
    const struct fm_runtime *r = &dump->runtime;
    const struct fm_syscall *call = &thread->call;
    fm_addr gil = fm_stack_gil(r, &dump->remote, thread->raw.interp);
    thread->holds_gil = has_gil(dump, thread);
    thread->detail = fm_strdup("");
    if (!thread->state_known)
        return;
    if (call->running && gil && !thread->holds_gil && asks_for_gil(dump, thread, gil)) {
        thread->state = FM_STATE_GIL;
    } else if (call->running) {
        thread->without_gil = gil && !thread->holds_gil;
        thread->state = thread->without_gil ? FM_STATE_C : running_state(dump, thread);
    } else {
        thread->state = fm_syscall_state(call, &dump->remote, gil, r->layout.gil_size, kinds);
        describe(dump, thread, call, kinds);
        if (call->number == SYS_futex)
            thread->futex = call->args[0];
    }
}

const char *fm_dump_state_title(const struct fm_dump_thread *thread)
{
    if (!thread->state_known)
        return "state unknown";
    if (thread->without_gil)
        return "running C, without the GIL";
    return fm_state_title(thread->state);
}

/* ---- holders ---- */

static size_t thread_with(const struct fm_dump *dump, fm_addr state, uint64_t ident)
{
    for (size_t i = 0; i < dump->threads.len; i++) {
        const struct fm_stack_thread *t = &dump->threads.data[i].raw;
        if ((state && t->at == state) || (ident && t->ident == ident))
            return i;
    }
    return FM_DUMP_NOBODY;
}

/* Is the method one that a thread which waits for the lock has made, for the `with` that it waits in? What another
 * has at the same address is left from long ago. */
static bool is_a_waiters(const struct fm_dump *dump, fm_addr method, fm_addr lock)
{
    struct fm_heap t = heap_of(dump);
    for (size_t i = 0; method && i < dump->threads.len; i++) {
        const struct fm_dump_thread *other = &dump->threads.data[i];
        if (other->lock.at == lock && fm_lock_has_slot(&t, method, &other->stack))
            return true;
    }
    return false;
}

/* Who is inside `with lock:`, and does not wait for it. */
static void find_plain_holder(const struct fm_dump *dump, struct fm_dump_thread *thread)
{
    struct fm_heap t = heap_of(dump);
    for (size_t i = 0; i < dump->threads.len; i++) {
        const struct fm_dump_thread *other = &dump->threads.data[i];
        if (other == thread || (other->lock.at == thread->lock.at && other->lock.at))
            continue;
        fm_addr method;
        int frame = fm_lock_held_in(&t, thread->lock.at, &other->stack, &method);
        if (frame >= 0 && !is_a_waiters(dump, method, thread->lock.at)) {
            thread->holder = i;
            thread->holder_frame = frame;
            return;
        }
    }
}

static void find_locks(struct fm_dump *dump)
{
    struct fm_heap t = heap_of(dump);
    for (size_t i = 0; i < dump->threads.len; i++) {
        struct fm_dump_thread *thread = &dump->threads.data[i];
        if (thread->state_known && thread->state == FM_STATE_LOCK && thread->futex)
            fm_lock_find(&t, thread->futex, &thread->stack, &thread->lock);
    }
}

static void find_holder(struct fm_dump *dump, struct fm_dump_thread *thread)
{
    if (!thread->state_known)
        return;
    if (thread->state == FM_STATE_GIL) {
        fm_addr holder = fm_stack_gil_holder(&dump->runtime, &dump->remote, thread->raw.interp);
        thread->holder = holder ? thread_with(dump, holder, 0) : FM_DUMP_NOBODY;
        thread->holder_is_sure = true;
        if (thread->holder != FM_DUMP_NOBODY && &dump->threads.data[thread->holder] == thread)
            thread->holder = FM_DUMP_NOBODY; /* it got it meanwhile */
    } else if (thread->lock.at && thread->lock.recursive) {
        thread->holder = thread_with(dump, 0, thread->lock.owner);
        thread->holder_is_sure = true;
    } else if (thread->lock.at) {
        find_plain_holder(dump, thread);
    }
}

/* ---- circles ---- */

/* Whom a thread waits for with a lock; the holder of the GIL gives it back by itself. */
static size_t waits_for(const struct fm_dump *dump, size_t thread)
{
    const struct fm_dump_thread *t = &dump->threads.data[thread];
    return t->lock.at ? t->holder : FM_DUMP_NOBODY;
}

/* Follow the holders from `first` on: back to it, through later threads only? Each circle is found
 * once then, from its first thread. */
static void find_circle(struct fm_dump *dump, size_t first)
{
    struct fm_dump_circle circle = { dump->circled.len, 0, true };
    size_t at = first;
    do {
        circle.is_sure = circle.is_sure && dump->threads.data[at].holder_is_sure;
        fm_vec_push(&dump->circled, at);
        circle.len++;
        at = waits_for(dump, at);
    } while (at != FM_DUMP_NOBODY && at > first && circle.len <= dump->threads.len);
    if (at == first)
        fm_vec_push(&dump->circles, circle);
    else
        dump->circled.len = circle.first;
}

void fm_dump_states(struct fm_dump *dump)
{
    struct fm_fd_kinds *kinds = fm_fd_kinds_new(dump->core ? 0 : dump->pid);
    name_threads(dump);
    for (size_t i = 0; i < dump->threads.len; i++)
        find_state(dump, &dump->threads.data[i], kinds);
    find_locks(dump);
    for (size_t i = 0; i < dump->threads.len; i++)
        find_holder(dump, &dump->threads.data[i]);
    for (size_t i = 0; i < dump->threads.len; i++)
        find_circle(dump, i);
    fm_fd_kinds_free(kinds);
}

/* Gathering what a dump shows: threads, stacks, variables, tasks; see dump.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commands/dump/dump.h"
#include "watch/cpython/render.h"
#include "watch/cpython/thread_ids.h"
#include "watch/os/procfs.h"

static struct fm_heap heap_of(const struct fm_dump *dump)
{
    return (struct fm_heap){ &dump->remote, &dump->runtime.layout };
}

const struct fm_code *fm_dump_code(struct fm_dump *dump, fm_addr at)
{
    bool is_new;
    uint32_t *number = fm_map_at(&dump->code_numbers, at, UINT32_MAX, &is_new);
    if (is_new) {
        struct fm_code code;
        if (fm_code_read(&code, &dump->remote, &dump->runtime.layout, at, 0) == 0) {
            *number = (uint32_t)dump->codes.len;
            fm_vec_push(&dump->codes, code);
        }
    }
    return *number == UINT32_MAX ? NULL : &dump->codes.data[*number];
}

/* ---- frames ---- */

static void name_frame(struct fm_dump *dump, fm_addr code_at, uint64_t instr,
                       struct fm_dump_frame *frame)
{
    const struct fm_layout *l = &dump->runtime.layout;
    const struct fm_code *code = fm_dump_code(dump, code_at);
    int32_t offset;
    frame->function = fm_strdup(code ? code->qualname : "?");
    frame->file = fm_strdup(code ? code->file : "?");
    frame->readable = code;
    if (!code)
        return;
    bool inside = fm_code_offset(code, l, instr, &offset);
    frame->position = fm_code_position(code, l, inside ? offset : FM_NOT_BEGUN);
}

static void read_variables(const struct fm_dump *dump, const struct fm_stack_frame *raw,
                           struct fm_dump_frame *frame)
{
    static const struct fm_render_limits limits = FM_RENDER_LIMITS;
    struct fm_heap t = heap_of(dump);
    struct fm_variables variables = { 0 };
    fm_frame_variables(&t, raw, &variables);
    for (size_t i = 0; i < variables.len; i++) {
        struct fm_dump_variable v = { 0 };
        struct fm_buffer text = FM_BUFFER_INIT;
        snprintf(v.name, sizeof v.name, "%s", variables.data[i].name);
        fm_object_render(&t, variables.data[i].value, &limits, &text);
        v.value = fm_buffer_detach(&text);
        fm_vec_push(&frame->variables, v);
    }
    frame->has_variables = true;
    frame->more_variables = variables.partial;
    fm_vec_release(&variables);
}

/* Some frames are the interpreter's own: what 3.12+ puts between a class and its __init__, say. */
static void drop_shims(struct fm_dump *dump, struct fm_stack *stack)
{
    size_t kept = 0;
    for (size_t i = 0; i < stack->len; i++) {
        const struct fm_code *code = fm_dump_code(dump, stack->data[i].code);
        if (!code || (strcmp(code->file, "<shim>") != 0 && strcmp(code->file, "<trampoline>") != 0))
            stack->data[kept++] = stack->data[i];
    }
    stack->len = kept;
}

static void read_frames(struct fm_dump *dump, struct fm_dump_thread *thread, bool locals)
{
    drop_shims(dump, &thread->stack);
    for (size_t i = 0; i < thread->stack.len; i++) {
        const struct fm_stack_frame *raw = &thread->stack.data[i];
        struct fm_dump_frame frame = { 0 };
        name_frame(dump, raw->code, raw->instr, &frame);
        if (locals && i < FM_DUMP_LOCALS_FRAMES && frame.readable)
            read_variables(dump, raw, &frame);
        fm_vec_push(&thread->frames, frame);
    }
}

/* ---- threads ---- */

static void tids_of(const struct fm_dump *dump, struct fm_tids *tids)
{
    size_t n = 0;
    if (!dump->core) {
        fm_process_tids(dump->pid, tids);
        return;
    }
    tids->process = dump->pid;
    const struct fm_core_thread *threads = fm_core_threads(dump->core, &n);
    for (size_t i = 0; i < n; i++)
        fm_vec_push(&tids->list, ((struct fm_tid){ threads[i].tid, threads[i].tid }));
}

/* The kernel's ids of the threads, as we number them. */
static void identify(const struct fm_dump *dump, struct fm_stack_threads *threads,
                     const struct fm_tids *tids)
{
    fm_autofree struct fm_thread_id *ids = fm_calloc(threads->len, sizeof *ids);
    for (size_t i = 0; i < threads->len; i++) {
        ids[i].ident = threads->data[i].ident;
        ids[i].native = threads->data[i].native_id;
    }
    fm_thread_ids_find(&dump->remote, ids, threads->len, tids);
    for (size_t i = 0; i < threads->len; i++)
        threads->data[i].native_id = (uint64_t)ids[i].tid;
}

/* Interpreters and their threads are listed newest first; people expect the main thread on top. */
static void oldest_first(struct fm_stack_threads *threads)
{
    for (size_t i = 0, k = threads->len; i + 1 < k; i++, k--) {
        struct fm_stack_thread swapped = threads->data[i];
        threads->data[i] = threads->data[k - 1];
        threads->data[k - 1] = swapped;
    }
}

static bool same_call(const struct fm_syscall *a, const struct fm_syscall *b)
{
    return a->running == b->running &&
           (a->running || (a->number == b->number && a->stack_pointer == b->stack_pointer &&
                           a->args[0] == b->args[0]));
}

/* Stack and state of one instant: the kernel says the same before and after the stack was read. */
static int read_stack(struct fm_dump *dump, struct fm_dump_thread *thread)
{
    enum { TRIES = 5 };
    for (int i = 0; i < TRIES; i++) {
        struct fm_syscall before;
        bool known = fm_dump_call(dump, thread, &before);
        int status = fm_stack_read(&dump->runtime, &dump->remote, thread->raw.at, &thread->stack);
        if (status < 0)
            return status;
        thread->state_known = fm_dump_call(dump, thread, &thread->call);
        if (known == thread->state_known && (!known || same_call(&before, &thread->call)))
            return 0;
    }
    thread->stack.steady = false;
    return 0;
}

static int read_threads(struct fm_dump *dump, bool locals, struct fm_error *err)
{
    struct fm_stack_threads found = { 0 };
    struct fm_tids tids = { 0 };
    if (fm_stack_threads(&dump->runtime, &dump->remote, &found) < 0 || !found.len) {
        fm_vec_release(&found);
        return fm_error_set(err, FM_NOT_READY, "the process ended or changed while it was read");
    }
    tids_of(dump, &tids);
    identify(dump, &found, &tids);
    dump->partial = found.partial;
    dump->other_threads = tids.list.len > found.len ? tids.list.len - found.len : 0;
    oldest_first(&found);
    for (size_t i = 0; i < found.len; i++) {
        struct fm_dump_thread thread = { .raw = found.data[i],
                                         .holder = FM_DUMP_NOBODY,
                                         .holder_frame = -1 };
        if (read_stack(dump, &thread) < 0) {
            fm_stack_release(&thread.stack);
            continue; /* it ended */
        }
        read_frames(dump, &thread, locals);
        fm_vec_push(&dump->threads, thread);
    }
    fm_vec_release(&found);
    fm_tids_release(&tids);
    return 0;
}

/* ---- tasks ---- */

static void add_task(struct fm_dump *dump, size_t thread, const struct fm_tasks *tasks,
                     const struct fm_task *found)
{
    struct fm_dump_task task = { .thread = thread, .running = found->running };
    snprintf(task.name, sizeof task.name, "%s", found->name);
    snprintf(task.awaited_by, sizeof task.awaited_by, "%s", found->awaited_by);
    for (uint32_t i = 0; i < found->n_frames; i++) {
        const struct fm_task_frame *raw = &tasks->frames.data[found->first_frame + i];
        struct fm_dump_frame frame = { 0 };
        name_frame(dump, raw->code, raw->instr, &frame);
        fm_vec_push(&task.frames, frame);
    }
    fm_vec_push(&dump->tasks, task);
}

static void read_tasks(struct fm_dump *dump)
{
    struct fm_error why = FM_ERROR_INIT;
    struct fm_tasks tasks = { 0 };
    struct fm_task_reader *reader = fm_task_reader_new(&dump->runtime, &dump->remote, &why);
    if (!reader) {
        dump->tasks_note = fm_strdup(why.text);
        return;
    }
    for (size_t i = 0; i < dump->threads.len; i++) {
        fm_addr thread = dump->threads.data[i].raw.at;
        int status = fm_task_reader_read(reader, &dump->remote, thread, &tasks);
        if (status < 0 && !dump->tasks_note)
            dump->tasks_note =
                fm_strdup(status == -ENODATA ? "the file of _asyncio, which describes them, "
                                               "cannot be read"
                                             : "the list of tasks changed while it was read");
        for (size_t k = 0; k < tasks.list.len; k++)
            add_task(dump, i, &tasks, &tasks.list.data[k]);
    }
    fm_tasks_release(&tasks);
    fm_task_reader_free(reader);
}

/* ---- all ---- */

int fm_dump_gather(struct fm_dump *dump, const struct fm_dump_options *options,
                   struct fm_error *err)
{
    if (read_threads(dump, options->locals, err) < 0)
        return err->status;
    dump->command =
        dump->core ? fm_strdup(fm_core_command(dump->core)) : fm_process_command(dump->pid);
    fm_dump_states(dump);
    if (options->tasks)
        read_tasks(dump);
    return 0;
}

void fm_dump_version(const struct fm_dump *dump, struct fm_buffer *out)
{
    uint32_t v = dump->runtime.version_hex;
    fm_buffer_addf(out, "%u.%u.%u", v >> 24, v >> 16 & 0xff, v >> 8 & 0xff);
    static const char *const levels[] = { [0xa] = "a", [0xb] = "b", [0xc] = "rc", [0xf] = NULL };
    if (levels[v >> 4 & 0xf])
        fm_buffer_addf(out, "%s%u", levels[v >> 4 & 0xf], v & 0xf);
}

static void release_frames(struct fm_dump_frames *frames)
{
    for (size_t i = 0; i < frames->len; i++) {
        struct fm_dump_frame *f = &frames->data[i];
        free(f->function);
        free(f->file);
        for (size_t k = 0; k < f->variables.len; k++)
            free(f->variables.data[k].value);
        fm_vec_release(&f->variables);
    }
    fm_vec_release(frames);
}

void fm_dump_release(struct fm_dump *dump)
{
    for (size_t i = 0; i < dump->threads.len; i++) {
        struct fm_dump_thread *t = &dump->threads.data[i];
        release_frames(&t->frames);
        fm_stack_release(&t->stack);
        free(t->name);
        free(t->detail);
    }
    for (size_t i = 0; i < dump->tasks.len; i++)
        release_frames(&dump->tasks.data[i].frames);
    for (size_t i = 0; i < dump->codes.len; i++)
        fm_code_release(&dump->codes.data[i]);
    fm_vec_release(&dump->threads);
    fm_vec_release(&dump->tasks);
    fm_vec_release(&dump->codes);
    fm_vec_release(&dump->circles);
    fm_vec_release(&dump->circled);
    fm_map_release(&dump->code_numbers);
    fm_core_free(dump->core);
    free(dump->command);
    free(dump->tasks_note);
}

/* The asyncio tasks of a thread; see task_look.h. */
#include "watch/sampler/task_look.h"

#include "watch/sampler/thread_look.h"
#include "watch/sampler/threads.h"

static void take_frames(struct fm_target *t, const struct fm_task *task)
{
    t->task_stack.len = 0;
    for (uint32_t k = 0; k < task->n_frames; k++) {
        const struct fm_task_frame *f = &t->task_list.frames.data[task->first_frame + k];
        struct fm_raw_frame raw = { fm_codes_number(&t->codes, f->code), FM_NOT_BEGUN };
        if (raw.code == FM_NO_CODE)
            continue;
        fm_code_offset(&t->codes.list.data[raw.code]->code, &t->runtime.layout, f->instr,
                       &raw.offset);
        fm_vec_push(&t->task_stack, raw);
    }
}

/* The await stack of a task, as a row of the tally. False if nothing of it can be read. */
static bool row_of(struct fm_target *t, const struct fm_task *task, uint32_t thread, uint32_t *ret)
{
    take_frames(t, task);
    if (!fm_codes_confirm(&t->codes, t->task_stack.data, t->task_stack.len))
        take_frames(t, task);
    if (t->task_stack.len)
        *ret =
            fm_tally_row(&t->tally, thread, t->task_stack.data, (uint32_t)t->task_stack.len, false);
    return t->task_stack.len > 0;
}

struct task_reading {
    struct fm_target *t;
    fm_addr thread;
    int status;
};

static void read_tasks(void *data, const struct fm_remote *remote)
{
    struct task_reading *r = data;
    r->status = fm_task_reader_stacks(r->t->tasks, remote, r->thread, &r->t->task_list);
}

/* The tasks of the thread as its stack showed it: if possible before the thread has run on. */
static bool read(struct fm_target *t, struct fm_watched_thread *th)
{
    struct task_reading r = { .t = t, .thread = th->look.thread };
    const struct fm_watched_interp *interp = fm_thread_interp(t, th);
    bool gil_is_known = th->proof != FM_PROOF_GIL || (interp && interp->holder);
    enum fm_proof proof =
        !gil_is_known || th->proof == FM_PROOF_STOPPED ? FM_PROOF_PLAIN : th->proof;
    enum fm_look_result result =
        fm_look_beside(&t->looker, &th->look, proof, interp ? &interp->gil : NULL, &th->task_hints,
                       read_tasks, &r);
    return result == FM_LOOK_WHOLE && r.status == 0;
}

static void look(struct fm_target *t, struct fm_watched_thread *th, uint64_t now_ns)
{
    th->tasks.len = 0;
    if (!read(t, th)) {
        t->counts.lost++;
        return;
    }
    for (size_t i = 0; i < t->task_list.list.len; i++) {
        const struct fm_task *task = &t->task_list.list.data[i];
        struct fm_watched_thread *own = fm_threads_tasks_of(t, th, now_ns);
        struct fm_task_sample sample = { .state = task->running ? th->state : FM_STATE_OTHER };
        if (row_of(t, task, own->number, &sample.row))
            fm_vec_push(&th->tasks, sample);
        own->end_ns = now_ns;
    }
}

void fm_task_look(struct fm_target *t, struct fm_watched_thread *th, bool looked, uint64_t now_ns)
{
    if (looked)
        look(t, th, now_ns);
    for (size_t i = 0; i < th->tasks.len; i++)
        fm_tally_add(&t->tally, th->tasks.data[i].row, th->tasks.data[i].state);
}

/* One process being watched; see target.h. */
#include "sampler/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/procfs.h"
#include "sampler/fold.h"
#include "sampler/threads.h"

#define TRIES 6
#define TOO_LATE_NS 100000u
#define MAX_DETAILS 100000

#define STACK_START_FIELD 28 /* of /proc/PID/stat, as proc(5) counts them */

uint64_t fm_target_stack_start(pid_t pid)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    if (fm_procfs_read_of(pid, "stat", 4096, &text) < 0)
        return 0;
    const char *at = strrchr(fm_buffer_text(&text), ')'); /* the end of the second field */
    for (int field = 2; at && field < STACK_START_FIELD; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

struct fm_target *fm_target_new(pid_t pid, bool tasks, struct fm_error *err)
{
    struct fm_target *t = fm_calloc(1, sizeof *t);
    struct fm_process_kin kin = { 0 };
    t->pid = pid;
    fm_remote_live(&t->remote, pid);
    if (fm_runtime_find(&t->runtime, &t->remote, err) < 0) {
        free(t);
        return NULL;
    }
    if (fm_process_kin(&kin, pid) == 0) {
        t->parent = kin.parent;
        t->start_ticks = kin.start_ticks;
        t->stack_start = fm_target_stack_start(pid);
    }
    fm_codes_init(&t->codes, &t->remote, &t->runtime.layout);
    t->fds = fm_fd_kinds_new(pid);
    t->details = fm_strings_new();
    t->exe = fm_process_exe(pid);
    t->command = fm_process_command(pid);
    t->cwd = fm_process_cwd(pid);
    t->start_ns = fm_clock_ns();
    if (tasks)
        t->tasks = fm_task_reader_new(&t->runtime, &t->remote, NULL);
    return t;
}

void fm_target_free(struct fm_target *t)
{
    if (!t)
        return;
    fm_threads_free(t);
    fm_task_reader_free(t->tasks);
    fm_tasks_release(&t->task_list);
    fm_vec_release(&t->task_stack);
    fm_tally_release(&t->tally);
    fm_codes_release(&t->codes);
    fm_fd_kinds_free(t->fds);
    fm_strings_free(t->details);
    fm_map_release(&t->detail_of);
    free(t->exe);
    free(t->command);
    free(t->cwd);
    free(t);
}

/* --- the kernel's view of a thread -------------------------------------------------------------- */

/* How often the thread was given a processor; false if the kernel does not say, or it is gone. */
static bool read_switches(const struct fm_watched_thread *th, uint64_t *ret)
{
    char line[80];
    ssize_t n = fm_threads_file(th, th->switches_fd, FM_THREADS_SWITCHES, line, sizeof line - 1);
    if (n <= 0)
        return false;
    line[n] = '\0';
    const char *last = strrchr(line, ' ');
    if (!last)
        return false;
    *ret = strtoull(last + 1, NULL, 10);
    return *ret > 0; /* a kernel that does not count says 0 of everybody */
}

static bool read_syscall(const struct fm_watched_thread *th, struct fm_syscall *call)
{
    char line[256];
    ssize_t n = fm_threads_file(th, th->syscall_fd, FM_THREADS_SYSCALL, line, sizeof line - 1);
    return n > 0 && fm_syscall_parse(call, line, (size_t)n);
}

static bool holds_gil(const struct fm_target *t, const struct fm_watched_thread *th)
{
    for (size_t i = 0; i < t->gil_holders.len; i++) {
        if (t->gil_holders.data[i] == th->at)
            return true;
    }
    return false;
}

static fm_addr gil_of(const struct fm_target *t, const struct fm_watched_thread *th)
{
    for (size_t i = 0; i < t->interps.len; i++) {
        if (t->interps.data[i].at == th->walk.interp)
            return t->interps.data[i].gil;
    }
    return 0;
}

/* --- what a thread does ------------------------------------------------------------------------- */

/* A thread on a processor runs Python unless the newest frame stands at something that runs C. */
static enum fm_state running_state(struct fm_target *t, const struct fm_watched_thread *th,
                                   uint64_t now_ns)
{
    if (!th->walk.frames.len)
        return FM_STATE_C;
    if (fm_codes_opcode_kind(&t->codes, &th->walk.frames.data[0], now_ns) & FM_OPCODE_RUNS_C)
        return FM_STATE_C;
    /* Between two instructions, and not its turn: on its way into or out of the wait for it. */
    return t->gil_holders.len && !holds_gil(t, th) ? FM_STATE_GIL : FM_STATE_PYTHON;
}

/* The text for what the thread waits for, looked up once. */
static uint32_t detail_of(struct fm_target *t, const struct fm_syscall *call)
{
    uint64_t key = fm_syscall_identity(call, &t->remote, t->fds);
    const uint32_t *known = fm_map_find(&t->detail_of, key);
    if (known)
        return *known;
    fm_autobuffer text = FM_BUFFER_INIT;
    bool whole = fm_syscall_describe(call, &t->remote, t->fds, &text);
    uint32_t id = fm_strings_add_text(t->details, fm_buffer_text(&text));
    if (whole && t->detail_of.len < MAX_DETAILS)
        fm_map_at(&t->detail_of, key, id, NULL);
    return id;
}

static void note_wait(struct fm_target *t, struct fm_watched_thread *th, const struct fm_syscall *call)
{
    if (!th->walk.frames.len || th->state == FM_STATE_SLEEP || th->state == FM_STATE_GIL)
        return;
    struct fm_tally_wait wait = { .where = th->walk.frames.data[0], .state = th->state,
                                  .detail = detail_of(t, call) };
    if (wait.detail)
        th->wait = fm_tally_wait(&t->tally, &wait);
}

/* --- one sample --------------------------------------------------------------------------------- */

static struct fm_walk_context context_of(struct fm_target *t, uint64_t now_ns)
{
    return (struct fm_walk_context){ .remote = &t->remote, .layout = &t->runtime.layout,
                                     .codes = &t->codes, .now_ns = now_ns };
}

/* Is what the addresses stand for still what it was? Where it is not, the frames get what is there now.
 * False if one has no code any more. */
static bool check_codes(struct fm_target *t, struct fm_walk *w, uint64_t now_ns)
{
    uint32_t numbers[1024], n = 0;
    /* Each interpreter has a count of its own: with several it tells nothing. */
    t->codes.counts_deaths =
        t->interps.len == 1 && t->runtime.layout.interp_code_generation != FM_ABSENT;
    if (t->codes.counts_deaths)
        fm_codes_doubt(&t->codes, w->generation);
    for (; n < w->frames.len && n < FM_COUNT(numbers); n++)
        numbers[n] = w->frames.data[n].code;
    if (fm_codes_check(&t->codes, numbers, n, now_ns) == 0)
        return true;
    for (uint32_t i = 1; i < n; i++) { /* a recursion has been compared once, at its newest frame */
        for (uint32_t k = 0; k < i && numbers[i] == w->frames.data[i].code; k++) {
            if (w->frames.data[k].code == w->frames.data[i].code)
                numbers[i] = numbers[k];
        }
    }
    for (uint32_t i = n; i-- > 0;) {
        if (numbers[i] == FM_NO_CODE) { /* it and what it called is not to be known */
            memmove(w->frames.data, w->frames.data + i + 1,
                    (w->frames.len - i - 1) * sizeof *w->frames.data);
            w->frames.len -= i + 1;
            return false;
        }
        w->frames.data[i].code = numbers[i];
    }
    return true;
}

/* Was it read after the stack (numbers from `first_fresh` on), so that it may have been replaced in between? Or can it
 * not be told from one that comes to lie there again and again? */
static bool is_doubtful(const struct fm_target *t, uint32_t code, uint32_t first_fresh)
{
    uint64_t replaced_ns = t->codes.list.data[code].replaced_ns;
    return code >= first_fresh || (replaced_ns && t->last_round_ns - replaced_ns < FM_CODES_CHURN_NS &&
                                   fm_code_compares_tails(&t->runtime.layout));
}

static bool has_doubtful(const struct fm_target *t, const struct fm_walk *w, uint32_t first_fresh)
{
    for (size_t i = 0; i < w->frames.len; i++) {
        if (is_doubtful(t, w->frames.data[i].code, first_fresh))
            return true;
    }
    return false;
}

/* How many of the oldest frames two stacks share, by their code. */
static size_t shared_frames(const struct fm_raw_frame *a, size_t n, const struct fm_raw_frame *b, size_t m)
{
    size_t same = 0;
    while (same < n && same < m && a[n - 1 - same].code == b[m - 1 - same].code)
        same++;
    return same;
}

/* If another look finds doubtful code still there, it was there when the stack was read, too; else only what is
 * below it is certain. It is always the first look that counts: taking the later one would leave out whatever
 * is over quickly. */
static void confirm(const struct fm_target *t, struct fm_walk *w, struct fm_walk_context *c, uint32_t first_fresh)
{
    size_t n = w->frames.len, kept = 0;
    bool partial = w->partial;
    fm_autofree struct fm_raw_frame *first = fm_malloc((n + 1) * sizeof *first);
    memcpy(first, w->frames.data, n * sizeof *first);
    enum fm_walk_result result = FM_WALK_AGAIN;
    for (int i = 0; i < TRIES && result == FM_WALK_AGAIN; i++) {
        c->last_try = i == TRIES - 1;
        result = fm_walk_running(w, c);
    }
    if (result == FM_WALK_OK)
        kept = shared_frames(first, n, w->frames.data, w->frames.len);
    while (kept < n && !is_doubtful(t, first[n - 1 - kept].code, first_fresh))
        kept++;
    w->frames.len = 0;
    for (size_t i = n - kept; i < n; i++)
        fm_vec_push(&w->frames, first[i]);
    w->partial = partial || kept < n;
}

/* Has so much time passed since the stack was read that where code comes and goes, one may have died in between and
 * its like be there again? That takes an interruption, which comes at any time: another look is as good. */
static bool is_too_late(const struct fm_target *t, const struct fm_walk *w, uint64_t now_ns)
{
    return now_ns - t->codes.replaced_ns < FM_CODES_CHURN_NS && fm_clock_ns() - w->read_ns > TOO_LATE_NS;
}

static enum fm_walk_result walk_running(struct fm_target *t, struct fm_watched_thread *th,
                                        uint64_t now_ns)
{
    struct fm_walk_context c = context_of(t, now_ns);
    struct fm_walk *w = &th->walk;
    enum fm_walk_result result = FM_WALK_AGAIN;
    uint32_t first_fresh = 0;
    for (int i = 0; i < TRIES && result == FM_WALK_AGAIN; i++) {
        first_fresh = (uint32_t)t->codes.list.len;
        c.last_try = i == TRIES - 1;
        result = fm_walk_running(w, &c);
        if (result == FM_WALK_OK && !check_codes(t, w, now_ns))
            w->partial = true;
        if (result == FM_WALK_OK && !c.last_try && is_too_late(t, w, now_ns))
            result = FM_WALK_AGAIN;
    }
    if (result != FM_WALK_OK)
        return result;
    t->read_ns = t->read_ns ? t->read_ns : w->read_ns;
    if (has_doubtful(t, w, first_fresh))
        confirm(t, w, &c, first_fresh);
    return FM_WALK_OK;
}

static enum fm_walk_result walk_still(struct fm_target *t, struct fm_watched_thread *th, uint64_t now_ns)
{
    struct fm_walk_context c = context_of(t, now_ns);
    enum fm_walk_result result = fm_walk_still(&th->walk, &c);
    if (result == FM_WALK_OK && !check_codes(t, &th->walk, now_ns))
        th->walk.partial = true;
    return result;
}

/* What the kernel says the thread does, with the count of switches for which that holds; a thread that
 * runs has none. */
static bool ask_kernel(struct fm_watched_thread *th, struct fm_syscall *call)
{
    th->still = false;
    if (th->syscall_fd < 0 && !th->opens_anew)
        return true; /* unknown: taken for running */
    if (!read_syscall(th, call))
        return false;
    if (call->running || !read_switches(th, &th->switches))
        return true;
    if (!read_syscall(th, call))
        return false;
    /* This answer is not older than the count. Who waits for us to have read goes on at once. */
    th->still = !call->running && !fm_syscall_maps(call);
    return true;
}

/* A new look at the thread. Returns false if it could not be read. */
static bool look(struct fm_target *t, struct fm_watched_thread *th, enum fm_target_mode mode,
                 uint64_t now_ns)
{
    struct fm_syscall call = { .running = true };
    uint64_t switches;
    enum fm_walk_result result = FM_WALK_AGAIN;
    if (!ask_kernel(th, &call))
        return false;
    if (!call.running && mode == FM_TARGET_RUNNING) {
        th->state = FM_STATE_OTHER; /* whatever: it does not count */
        th->waits_for_gil = false;
        return true;
    }
    if (th->still) {
        result = walk_still(t, th, now_ns);
        if (!(read_switches(th, &switches) && switches == th->switches)) {
            th->still = false; /* it woke up meanwhile */
            result = FM_WALK_AGAIN;
        }
    }
    if (result == FM_WALK_AGAIN)
        result = walk_running(t, th, now_ns);
    if (result == FM_WALK_GONE)
        return false;
    th->state = call.running ? running_state(t, th, now_ns)
                             : fm_syscall_state(&call, &t->remote, gil_of(t, th),
                                                t->runtime.layout.gil_size, t->fds);
    th->row = fm_tally_row(&t->tally, th->number, th->walk.frames.data,
                           (uint32_t)th->walk.frames.len, th->walk.partial);
    th->wait = UINT32_MAX;
    th->waits_for_gil = th->state == FM_STATE_GIL; /* also just before it blocks, and just after */
    if (!call.running)
        note_wait(t, th, &call);
    return true;
}

/* A blocked thread that woke needs the GIL before it can change its stack: while no other thread has taken
 * it, all but the last holder are as they were. What runs without it shows when the kernel is asked again. */
static bool cannot_have_run(const struct fm_target *t, const struct fm_watched_thread *th)
{
    for (size_t i = 0; i < t->interps.len; i++) {
        const struct fm_watched_interp *interp = &t->interps.data[i];
        if (interp->at == th->walk.interp)
            return interp->quiet && interp->last_holder != th->at;
    }
    return false;
}

static bool is_unchanged(const struct fm_target *t, const struct fm_watched_thread *th)
{
    uint64_t switches;
    if (!th->still)
        return false;
    return cannot_have_run(t, th) || (read_switches(th, &switches) && switches == th->switches);
}

static bool counts_in(const struct fm_target *t, const struct fm_watched_thread *th,
                      enum fm_target_mode mode)
{
    if (mode == FM_TARGET_RUNNING)
        return fm_state_is_running(th->state);
    return mode == FM_TARGET_ALL || holds_gil(t, th);
}

static void count(struct fm_target *t, const struct fm_watched_thread *th)
{
    fm_tally_add(&t->tally, th->row, th->state);
    t->counts.samples++;
    t->counts.partial += t->tally.rows.data[th->row].partial;
    if (th->wait != UINT32_MAX)
        fm_tally_add_wait(&t->tally, th->wait);
}

static void count_gil_wait(struct fm_target *t, const struct fm_watched_thread *th,
                           const struct fm_watched_thread *holder)
{
    const struct fm_tally_row *row = &t->tally.rows.data[th->row];
    const struct fm_tally_row *held = &t->tally.rows.data[holder->row];
    if (!row->n || !held->n)
        return;
    struct fm_tally_wait wait = { .where = t->tally.frames.data[row->first],
                                  .state = FM_STATE_GIL, .detail = FM_TALLY_HOLDER,
                                  .holder = holder->number,
                                  .held_at = t->tally.frames.data[held->first] };
    fm_tally_add_wait(&t->tally, fm_tally_wait(&t->tally, &wait));
}

/* Who held the GIL while others waited for it, and where: known when all have been looked at. Each
 * interpreter may have a GIL of its own. */
static void count_gil_waits(struct fm_target *t)
{
    for (size_t i = 0; i < t->live.len; i++) {
        const struct fm_watched_thread *holder = t->threads.data[t->live.data[i]];
        if (!holds_gil(t, holder))
            continue;
        fm_addr gil = gil_of(t, holder);
        for (size_t k = 0; k < t->live.len; k++) {
            const struct fm_watched_thread *th = t->threads.data[t->live.data[k]];
            if (th->waits_for_gil && th != holder && gil_of(t, th) == gil)
                count_gil_wait(t, th, holder);
        }
    }
}

/* The await stack of a task, as a row of the tally. False if nothing of it can be read. */
static bool task_row(struct fm_target *t, const struct fm_task *task, uint32_t thread, uint32_t *ret)
{
    t->task_stack.len = 0;
    for (uint32_t k = 0; k < task->n_frames; k++) {
        const struct fm_task_frame *f = &t->task_list.frames.data[task->first_frame + k];
        struct fm_raw_frame raw = { fm_codes_number(&t->codes, f->code), FM_NOT_BEGUN };
        if (raw.code == FM_NO_CODE)
            continue;
        fm_code_offset(&t->codes.list.data[raw.code].code, &t->runtime.layout, f->instr, &raw.offset);
        fm_vec_push(&t->task_stack, raw);
    }
    if (t->task_stack.len)
        *ret = fm_tally_row(&t->tally, thread, t->task_stack.data, (uint32_t)t->task_stack.len, false);
    return t->task_stack.len > 0;
}

static void look_at_tasks(struct fm_target *t, struct fm_watched_thread *th, uint64_t now_ns)
{
    th->tasks.len = 0;
    if (fm_task_reader_read(t->tasks, &t->remote, th->at, &t->task_list) < 0)
        t->counts.lost++;
    for (size_t i = 0; i < t->task_list.list.len; i++) {
        const struct fm_task *task = &t->task_list.list.data[i];
        struct fm_watched_thread *own = fm_threads_tasks_of(t, th, now_ns);
        struct fm_task_sample sample = { .state = task->running ? th->state : FM_STATE_OTHER };
        if (task_row(t, task, own->number, &sample.row))
            fm_vec_push(&th->tasks, sample);
        own->end_ns = now_ns;
    }
}

/* The await stacks of the thread's tasks count as stacks of a thread of their own. While the thread is
 * blocked its tasks cannot change either. */
static void count_tasks(struct fm_target *t, struct fm_watched_thread *th, bool looked, uint64_t now_ns)
{
    if (looked)
        look_at_tasks(t, th, now_ns);
    for (size_t i = 0; i < th->tasks.len; i++)
        fm_tally_add(&t->tally, th->tasks.data[i].row, th->tasks.data[i].state);
}

static bool has_ended(const struct fm_watched_thread *th)
{
    char byte;
    return fm_threads_file(th, th->syscall_fd, FM_THREADS_SYSCALL, &byte, 1) < 0 &&
           (errno == ESRCH || errno == ENOENT);
}

static void sample(struct fm_target *t, struct fm_watched_thread *th, enum fm_target_mode mode,
                   uint64_t now_ns)
{
    bool looked = !is_unchanged(t, th);
    if (looked && !look(t, th, mode, now_ns)) {
        if (has_ended(th))
            fm_threads_end(t, th, now_ns);
        else
            t->counts.lost++;
        th->waits_for_gil = th->still = false;
        t->last_list_ns = 0; /* is it still there? */
        return;
    }
    t->counts.running += fm_state_is_running(th->state);
    t->counts.gil += th->state == FM_STATE_GIL;
    if (counts_in(t, th, mode))
        count(t, th);
    if (t->tasks)
        count_tasks(t, th, looked, now_ns);
}

/* How long after the stacks of the round before those of this one were read. That is not when the rounds began:
 * a look takes longer where stacks are deep, and what comes after them would get time that was theirs. */
static uint64_t time_between(struct fm_target *t, uint64_t now_ns, uint64_t first_ns)
{
    uint64_t before_ns = t->seen_ns;
    t->seen_ns = t->read_ns ? t->read_ns : now_ns;
    return before_ns ? t->seen_ns - before_ns : first_ns;
}

bool fm_target_round(struct fm_target *t, enum fm_target_mode mode, uint64_t now_ns, uint64_t first_ns)
{
    t->last_round_ns = now_ns;
    t->read_ns = 0;
    t->only_gil = mode == FM_TARGET_GIL;
    if (!fm_threads_glance(t, now_ns))
        return false;
    fm_fold_ended(t);
    t->counts.rounds++;
    t->counts.running = t->counts.gil = 0;
    for (size_t i = 0; i < t->live.len; i++) {
        struct fm_watched_thread *th = t->threads.data[t->live.data[i]];
        if (mode == FM_TARGET_GIL && !holds_gil(t, th))
            continue;
        sample(t, th, mode, now_ns);
    }
    if (mode == FM_TARGET_ALL && t->counts.gil)
        count_gil_waits(t);
    fm_tally_end_round(&t->tally, time_between(t, now_ns, first_ns));
    if (now_ns >= t->next_names_ns)
        fm_threads_name(t, now_ns);
    return true;
}

/* One process being watched; see target.h. */
#include "watch/sampler/target.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "watch/os/procfs.h"
#include "watch/os/still/rseq.h"
#include "watch/sampler/task_look.h"
#include "watch/sampler/thread_look.h"
#include "watch/sampler/threads.h"

#define STACK_START_FIELD 28        /* of /proc/PID/stat, as proc(5) counts them */
#define MOST_INTERVALS    10u       /* that one look stands for; what is beyond was not seen */
#define MOST_NS           10000000u /* … at the highest rate */

uint64_t fm_target_stack_start(pid_t pid)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    if (fm_procfs_read_of(pid, "stat", 4096, &text) < 0)
        return 0;
    const char *start = fm_procfs_stat_field(fm_buffer_text(&text), STACK_START_FIELD);
    return start ? strtoull(start, NULL, 10) : 0;
}

struct fm_target *fm_target_new(pid_t pid, const struct fm_target_options *options,
                                struct fm_error *err)
{
    struct fm_target *t = fm_calloc(1, sizeof *t);
    struct fm_process_kin kin = { 0 };
    t->options = *options;
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
    fm_exit_watch_open(&t->exit, pid);
    if (!fm_rseq_find(&t->remote, &t->cpu_distance))
        t->cpu_distance = 0;
    fm_codes_init(&t->codes, &t->remote, &t->runtime.layout);
    t->looker = (struct fm_looker){ .remote = &t->remote,
                                    .layout = &t->runtime.layout,
                                    .codes = &t->codes,
                                    .regions = &t->regions };
    fm_open_regions_init(&t->regions, options->folder, pid);
    t->fds = fm_fd_kinds_new(pid);
    t->details = fm_strings_new();
    t->exe = fm_process_exe(pid);
    t->command = fm_process_command(pid);
    t->cwd = fm_process_cwd(pid);
    t->start_ns = fm_clock_ns();
    t->order = (struct fm_target_order){ .on = options->timeline, .grain = 1 };
    if (options->tasks)
        t->tasks = fm_task_reader_new(&t->runtime, &t->remote, NULL);
    return t;
}

void fm_target_free(struct fm_target *t)
{
    if (!t)
        return;
    fm_threads_free(t);
    fm_exit_watch_close(&t->exit);
    fm_task_reader_free(t->tasks);
    fm_tasks_release(&t->task_list);
    fm_vec_release(&t->task_stack);
    fm_open_regions_release(&t->regions);
    fm_vec_release(&t->woven.frames);
    fm_tally_release(&t->tally);
    fm_vec_release(&t->order.times);
    fm_looker_release(&t->looker);
    fm_codes_release(&t->codes);
    fm_fd_kinds_free(t->fds);
    fm_strings_free(t->details);
    fm_map_release(&t->detail_of);
    free(t->exe);
    free(t->command);
    free(t->cwd);
    free(t);
}

/* --- counting --------------------------------------------------------------------------------- */

/* A thread that runs code of a sub-interpreter has a state in each: its stack is that in the newest
 * (they stand in that order) where it has one. Its other states wait below. */
static bool is_below_another(const struct fm_target *t, const struct fm_watched_thread *th)
{
    for (size_t i = 0; i < t->live.len && t->interps.len > 1; i++) {
        const struct fm_watched_thread *other = t->live.data[i];
        if (other != th && other->tid == th->tid && other->has_newest && !other->gone &&
            fm_thread_interp(t, other) < fm_thread_interp(t, th))
            return true;
    }
    return false;
}

static bool counts_in(const struct fm_target *t, const struct fm_watched_thread *th)
{
    if (is_below_another(t, th))
        return false;
    if (t->options.mode == FM_TARGET_RUNNING)
        return fm_state_is_running(th->state);
    return t->options.mode == FM_TARGET_ALL || fm_thread_holds_gil(t, th);
}

static void count(struct fm_target *t, struct fm_watched_thread *th)
{
    fm_tally_add(&t->tally, th->row, th->state);
    if (t->order.on)
        fm_thread_order_add(&th->order, &t->order, &t->tally, th->row, th->state, t->counts.rounds);
    t->counts.samples++;
    t->counts.proofs[th->proof]++;
    t->counts.partial += t->tally.rows.data[th->row].partial;
    if (th->wait != UINT32_MAX)
        fm_tally_add_wait(&t->tally, th->wait);
}

static void count_gil_wait(struct fm_target *t, const struct fm_watched_thread *th,
                           const struct fm_watched_thread *holder)
{
    if (!th->has_newest || !holder->has_newest)
        return;
    struct fm_tally_wait wait = { .where = th->newest,
                                  .state = FM_STATE_GIL,
                                  .detail = FM_TALLY_HOLDER,
                                  .holder = holder->number,
                                  .held_at = holder->newest };
    fm_tally_add_wait(&t->tally, fm_tally_wait(&t->tally, &wait));
}

/* Who held the GIL while others waited for it, and where: known when all have been looked at. Each
 * interpreter may have a GIL of its own. */
static void count_gil_waits(struct fm_target *t)
{
    for (size_t i = 0; i < t->live.len; i++) {
        const struct fm_watched_thread *holder = t->live.data[i];
        if (!fm_thread_holds_gil(t, holder))
            continue;
        fm_addr gil = fm_thread_interp(t, holder)->gil.at;
        for (size_t k = 0; k < t->live.len; k++) {
            const struct fm_watched_thread *th = t->live.data[k];
            const struct fm_watched_interp *interp = fm_thread_interp(t, th);
            if (th->waits_for_gil && th != holder && interp && interp->gil.at == gil)
                count_gil_wait(t, th, holder);
        }
    }
}

/* --- a round ---------------------------------------------------------------------------------- */

static bool has_ended(const struct fm_watched_thread *th)
{
    char byte;
    return fm_threads_file(th, th->syscall_fd, FM_THREADS_SYSCALL, &byte, 1) < 0 &&
           (errno == ESRCH || errno == ENOENT);
}

static void lose(struct fm_target *t, struct fm_watched_thread *th, enum fm_thread_seen seen,
                 uint64_t now_ns)
{
    th->waits_for_gil = th->still = false;
    if (seen == FM_THREAD_GONE) {
        t->last_list_ns = 0; /* is the thread still there? */
        if (has_ended(th)) {
            fm_threads_end(t, th, now_ns);
            return;
        }
    }
    t->counts.lost++;
}

static void sample(struct fm_target *t, struct fm_watched_thread *th, uint64_t now_ns)
{
    bool looked = !fm_thread_is_unchanged(t, th);
    enum fm_thread_seen seen = looked ? fm_thread_look(t, th, now_ns) : FM_THREAD_SEEN;
    if (seen != FM_THREAD_SEEN) {
        lose(t, th, seen, now_ns);
        return;
    }
    t->counts.running += fm_state_is_running(th->state);
    t->counts.gil += th->state == FM_STATE_GIL;
    if (counts_in(t, th))
        count(t, th);
    if (t->tasks)
        fm_task_look(t, th, looked, now_ns);
}

/* The holders of GILs first, then everybody else. */
static void sample_all(struct fm_target *t, uint64_t now_ns)
{
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < t->live.len; i++) {
            struct fm_watched_thread *th = t->live.data[i];
            if (th->in_turn == (turn == 0))
                sample(t, th, now_ns);
        }
    }
}

/* Who holds a GIL may change during the round: this is how it was when it began. */
static void give_turns(struct fm_target *t)
{
    for (size_t i = 0; i < t->live.len; i++)
        t->live.data[i]->in_turn = fm_thread_holds_gil(t, t->live.data[i]);
}

/* How long after the stacks of the round before those of this one were read. That is not when the
 * rounds began: a look takes longer where stacks are deep, and what comes after them would get time
 * that was theirs. */
static uint64_t time_between(struct fm_target *t, uint64_t now_ns)
{
    uint64_t before_ns = t->seen_ns;
    t->seen_ns = t->read_ns ? t->read_ns : now_ns;
    return before_ns ? t->seen_ns - before_ns : t->options.interval_ns;
}

/* Forget the order within longer and longer times, until half of what may be is used: so it is not done
 * in each round. */
static void thin_order(struct fm_target *t)
{
    while (t->order.items > FM_ORDER_MOST_ITEMS / 2 && t->order.grain <= t->counts.rounds) {
        t->order.grain *= 2;
        t->order.items = 0;
        for (size_t i = 0; i < t->live.len + t->ended.len; i++) {
            struct fm_watched_thread *th =
                i < t->live.len ? t->live.data[i] : t->ended.data[i - t->live.len];
            fm_thread_order_thin(&th->order, t->order.grain);
            t->order.items += th->order.items.len;
        }
    }
}

/* Nobody is charged with more than a stated time: what is beyond counts as lost. */
static void end_round(struct fm_target *t, uint64_t now_ns)
{
    uint64_t interval_ns = t->options.interval_ns;
    uint64_t most_ns = interval_ns ? MOST_INTERVALS * interval_ns : MOST_NS;
    uint64_t seen = t->tally.now.seen.len;
    uint64_t unseen_ns = fm_tally_end_round(&t->tally, time_between(t, now_ns), most_ns);
    t->counts.lost += interval_ns ? unseen_ns / interval_ns * seen : 0;
    if (t->order.on)
        fm_target_order_round(&t->order, t->counts.rounds, t->seen_ns, interval_ns);
    if (fm_target_order_is_full(&t->order))
        thin_order(t);
}

bool fm_target_round(struct fm_target *t, struct fm_seat *seat, uint64_t now_ns)
{
    bool only_gil = t->options.mode == FM_TARGET_GIL;
    t->last_round_ns = now_ns;
    t->read_ns = 0;
    t->looker.seat = seat;
    if (!fm_threads_glance(t, now_ns))
        return false;
    t->looker.counts_deaths =
        t->interps.len == 1 && t->runtime.layout.interp_code_generation != FM_ABSENT;
    t->counts.rounds++;
    t->counts.running = t->counts.gil = 0;
    fm_open_regions_refresh(&t->regions, now_ns);
    give_turns(t);
    if (only_gil) {
        for (size_t i = 0; i < t->live.len; i++) {
            if (t->live.data[i]->in_turn)
                sample(t, t->live.data[i], now_ns);
        }
    } else {
        sample_all(t, now_ns);
    }
    fm_threads_drop_ended(t);
    if (t->options.mode == FM_TARGET_ALL && t->counts.gil)
        count_gil_waits(t);
    end_round(t, now_ns);
    if (now_ns >= t->next_names_ns)
        fm_threads_name(t, now_ns);
    return true;
}

struct fm_tally fm_target_take(struct fm_target *t)
{
    FM_VEC(uint32_t *) rows = { 0 };
    FM_VEC(uint32_t *) waits = { 0 };
    for (size_t i = 0; i < t->live.len; i++) {
        struct fm_watched_thread *th = t->live.data[i];
        fm_vec_push(&rows, &th->row);
        fm_vec_push(&waits, &th->wait);
        for (size_t k = 0; k < th->tasks.len; k++)
            fm_vec_push(&rows, &th->tasks.data[k].row);
    }
    struct fm_tally taken = fm_tally_take(&t->tally, rows.data, rows.len, waits.data, waits.len);
    fm_vec_release(&rows);
    fm_vec_release(&waits);
    return taken;
}

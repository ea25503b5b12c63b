/* A look at one watched thread; see thread_look.h. */
#include "watch/sampler/thread_look.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "watch/os/still/halt.h"
#include "watch/sampler/look_log.h"
#include "watch/sampler/threads.h"

#define TRIES  4
#define NAP_NS 10000 /* for a thread that stands between two frames to go on */
#define CPU_NS                                                                                     \
    50000000u /* how often to ask for the processor time of a thread that is always running */
#define MAX_DETAILS 100000

struct fm_watched_interp *fm_thread_interp(const struct fm_target *t,
                                           const struct fm_watched_thread *th)
{
    for (size_t i = 0; i < t->interps.len; i++) {
        if (t->interps.data[i].at == th->look.interp)
            return &t->interps.data[i];
    }
    return NULL;
}

bool fm_thread_holds_gil(const struct fm_target *t, const struct fm_watched_thread *th)
{
    const struct fm_watched_interp *interp = fm_thread_interp(t, th);
    return interp && interp->holder == th->look.thread;
}

/* --- the kernel's view ------------------------------------------------------------------------ */

static bool read_syscall(const struct fm_watched_thread *th, struct fm_syscall *call)
{
    char line[256];
    ssize_t n = fm_threads_file(th, th->syscall_fd, FM_THREADS_SYSCALL, line, sizeof line - 1);
    return n > 0 && fm_syscall_parse(call, line, (size_t)n);
}

/* What the kernel says the thread does, with the count of switches for which that holds; a thread
 * that runs has none. */
static bool ask_kernel(struct fm_watched_thread *th, struct fm_syscall *call)
{
    th->still = false;
    if (th->syscall_fd < 0 && !th->opens_anew)
        return true; /* unknown: taken for running */
    if (!read_syscall(th, call))
        return false;
    if (call->running || !fm_threads_switches(th, &th->switches))
        return true;
    if (!read_syscall(th, call))
        return false;
    /* This answer is not older than the count. Who waits for us to have read goes on at once. */
    th->still = !call->running && !fm_syscall_maps(call);
    return true;
}

/* A blocked thread that woke needs the GIL before it can change its stack: while no other thread
 * has taken it, all but the last holder are as they were. What runs without it shows when the
 * kernel is asked again. */
static bool cannot_have_run(const struct fm_target *t, const struct fm_watched_thread *th)
{
    const struct fm_watched_interp *interp = fm_thread_interp(t, th);
    return interp && interp->quiet && interp->last_holder != th->look.thread;
}

bool fm_thread_is_unchanged(const struct fm_target *t, struct fm_watched_thread *th)
{
    uint64_t switches;
    if (!th->still)
        return false;
    return cannot_have_run(t, th) ||
           (fm_threads_switches(th, &switches) && switches == th->switches);
}

/* --- the stack -------------------------------------------------------------------------------- */

static enum fm_look_result look_blocked(struct fm_target *t, struct fm_watched_thread *th,
                                        uint64_t now_ns)
{
    uint64_t switches;
    enum fm_look_result result = fm_look(&t->looker, &th->look, FM_PROOF_BLOCKED, NULL, now_ns);
    bool woke = !(fm_threads_switches(th, &switches) && switches == th->switches);
    th->still = !woke;
    return woke ? FM_LOOK_MOVED : result;
}

/* The kernel refuses this way: take the other one, for good, or the last that is left. */
static void take_next_way(struct fm_target *t, int why)
{
    if (t->options.way == FM_WAY_DISPLACE)
        t->seat_refused = why;
    else
        t->stop_refused = why;
    t->options.way = !t->seat_refused   ? FM_WAY_DISPLACE
                     : !t->stop_refused ? FM_WAY_STOP
                                        : FM_WAY_PLAIN;
}

/* Follow the thread to its processor, for the next try. */
static enum fm_look_result look_displaced(struct fm_target *t, struct fm_watched_thread *th,
                                          uint64_t now_ns)
{
    struct fm_looker *k = &t->looker;
    enum fm_look_result result = fm_look(k, &th->look, FM_PROOF_DISPLACED, NULL, now_ns);
    if (result != FM_LOOK_MOVED)
        return result;
    if (k->cpu < 0 && th->look.cpu_word) {
        th->look.cpu_word = 0; /* the thread has none registered: ask its stat file */
    } else if (k->cpu < 0) {
        take_next_way(t, ENOENT);
    } else if (k->cpu != k->seat->cpu && !fm_seat_take(k->seat, k->cpu)) {
        take_next_way(t, k->seat->refused);
    }
    return result;
}

static enum fm_look_result look_stopped(struct fm_target *t, struct fm_watched_thread *th,
                                        uint64_t now_ns)
{
    struct fm_halt halt;
    int status = fm_halt_stop(&halt, th->tid);
    if (status == -ESRCH)
        return FM_LOOK_GONE;
    if (status < 0) {
        take_next_way(t, -status);
        return FM_LOOK_MOVED;
    }
    enum fm_look_result result = fm_look(&t->looker, &th->look, FM_PROOF_STOPPED, NULL, now_ns);
    fm_halt_end(&halt);
    return result;
}

static bool other_holds_gil(const struct fm_target *t, const struct fm_watched_thread *th)
{
    const struct fm_watched_interp *interp = fm_thread_interp(t, th);
    return interp && interp->holder && interp->holder != th->look.thread &&
           !t->runtime.layout.free_threaded;
}

/* Whoever takes the GIL after another counts up the number of changes: as long as that stays,
 * everybody but the last holder is kept off, whether it is held just now or not. */
static bool is_kept_off(const struct fm_target *t, const struct fm_watched_thread *th)
{
    const struct fm_watched_interp *interp = fm_thread_interp(t, th);
    return interp && interp->last_holder && interp->last_holder != th->look.thread &&
           !t->runtime.layout.free_threaded;
}

/* Go to where the thread is before anything is asked about it. Were it only followed when it is
 * found to run elsewhere, it would be asleep by then more often than it is. */
static void go_there(struct fm_target *t, const struct fm_watched_thread *th)
{
    int32_t cpu;
    if (t->options.way == FM_WAY_DISPLACE && t->live.len > 1 && th->look.cpu_word &&
        !is_kept_off(t, th) &&
        fm_remote_read(&t->remote, th->look.cpu_word, &cpu, sizeof cpu) == 0 && cpu >= 0)
        fm_seat_take(t->looker.seat, cpu);
}

static enum fm_look_result look_running(struct fm_target *t, struct fm_watched_thread *th,
                                        enum fm_proof *proof, uint64_t now_ns)
{
    if (t->options.way == FM_WAY_PLAIN) {
        *proof = FM_PROOF_PLAIN;
        return fm_look(&t->looker, &th->look, *proof, NULL, now_ns);
    }
    if (is_kept_off(t, th)) {
        struct fm_watched_interp *interp = fm_thread_interp(t, th);
        *proof = FM_PROOF_GIL;
        enum fm_look_result result = fm_look(&t->looker, &th->look, *proof, &interp->gil, now_ns);
        if (result == FM_LOOK_MOVED)
            fm_threads_see_gil(t, interp);
        return result;
    }
    *proof = t->options.way == FM_WAY_DISPLACE ? FM_PROOF_DISPLACED : FM_PROOF_STOPPED;
    return *proof == FM_PROOF_DISPLACED ? look_displaced(t, th, now_ns)
                                        : look_stopped(t, th, now_ns);
}

/* --- what it does ----------------------------------------------------------------------------- */

/* A thread on a processor runs Python unless the newest frame stands at something that runs C. */
static enum fm_state running_state(struct fm_target *t, const struct fm_watched_thread *th,
                                   uint64_t now_ns)
{
    if (!th->has_newest || fm_codes_runs_c(&t->codes, &th->newest, now_ns))
        return FM_STATE_C;
    /* Between two instructions, and not its turn: on its way into or out of the wait for it. */
    return other_holds_gil(t, th) ? FM_STATE_GIL : FM_STATE_PYTHON;
}

static enum fm_state blocked_state(const struct fm_target *t, const struct fm_watched_thread *th,
                                   const struct fm_syscall *call)
{
    const struct fm_watched_interp *interp = fm_thread_interp(t, th);
    return fm_syscall_state(call, &t->remote, interp ? interp->gil.at : 0,
                            t->runtime.layout.gil_size, t->fds);
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

static void note_wait(struct fm_target *t, struct fm_watched_thread *th,
                      const struct fm_syscall *call)
{
    if (!th->has_newest || th->state == FM_STATE_SLEEP || th->state == FM_STATE_GIL)
        return;
    struct fm_tally_wait wait = { .where = th->newest,
                                  .state = th->state,
                                  .detail = detail_of(t, call) };
    if (wait.detail)
        th->wait = fm_tally_wait(&t->tally, &wait);
}

/* The row of the stack that was seen, with the regions among its calls. */
static uint32_t row_of(struct fm_target *t, const struct fm_watched_thread *th, bool partial)
{
    const struct fm_looker *k = &t->looker;
    if (!k->open.n)
        return fm_tally_row(&t->tally, th->number, k->climb.frames.data,
                            (uint32_t)k->climb.frames.len, partial);
    fm_open_regions_weave(&t->regions, &k->open, &k->climb, &t->woven);
    return fm_tally_row(&t->tally, th->number, t->woven.frames.data, (uint32_t)t->woven.frames.len,
                        partial);
}

static void take_sample(struct fm_target *t, struct fm_watched_thread *th,
                        const struct fm_syscall *call, enum fm_look_result result,
                        enum fm_proof proof, uint64_t now_ns)
{
    const struct fm_looker *k = &t->looker;
    uint32_t n = (uint32_t)k->climb.frames.len;
    th->has_newest = n > 0;
    if (n)
        th->newest = k->climb.frames.data[0];
    if (proof != FM_PROOF_BLOCKED && !t->read_ns)
        t->read_ns = k->read_ns;
    th->state = call->running ? running_state(t, th, now_ns) : blocked_state(t, th, call);
    th->row = row_of(t, th, result == FM_LOOK_CUT);
    th->wait = UINT32_MAX;
    th->waits_for_gil = th->state == FM_STATE_GIL; /* also on the way in and out */
    th->proof = proof;
    if (!call->running)
        note_wait(t, th, call);
    fm_look_log_stack(t, th);
}

enum fm_thread_seen fm_thread_look(struct fm_target *t, struct fm_watched_thread *th,
                                   uint64_t now_ns)
{
    uint64_t switches;
    fm_open_regions_place(&t->regions, th->native ? (uint32_t)th->native : (uint32_t)th->tid,
                          &th->look.regions);
    go_there(t, th);
    if (now_ns - th->cpu_read_ns > CPU_NS) {
        th->cpu_read_ns = now_ns;
        fm_threads_switches(th, &switches);
    }
    for (int i = 0; i < TRIES; i++) {
        struct fm_syscall call = { .running = true };
        enum fm_proof proof = FM_PROOF_BLOCKED;
        if (!ask_kernel(th, &call))
            return FM_THREAD_GONE;
        if (!call.running && t->options.mode == FM_TARGET_RUNNING) {
            th->state = FM_STATE_OTHER; /* any value: the row is not counted */
            th->waits_for_gil = false;
            return FM_THREAD_SEEN;
        }
        enum fm_look_result result =
            th->still ? look_blocked(t, th, now_ns) : look_running(t, th, &proof, now_ns);
        if (result == FM_LOOK_WHOLE || result == FM_LOOK_CUT) {
            take_sample(t, th, &call, result, proof, now_ns);
            return FM_THREAD_SEEN;
        }
        if (result == FM_LOOK_GONE)
            return FM_THREAD_GONE;
        if (proof == FM_PROOF_PLAIN)
            break; /* nothing holds the thread: whoever tries again prefers what is slow */
        if (result == FM_LOOK_NO && proof != FM_PROOF_BLOCKED)
            nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
    }
    fm_look_log_lost(t, th);
    return FM_THREAD_LOST;
}

/*
 * The sampling thread; see sampler.h.
 *
 * Owns the list of targets (Pythons being watched), of what was counted of each (accounts), and of
 * suspects (processes that may become one: a program just launched, the children of targets).
 *
 * Locking: `lock` guards everything but `stop`, `wanted` and the accounts. The thread holds it for a round at a time;
 * whoever else wants it raises `wanted` first, so that a sampler that never sleeps lets him in. `gathering`, taken
 * before `lock`, guards the accounts: making a profile of them takes long, and sampling goes on meanwhile.
 */
#include "watch/sampler/sampler.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "watch/os/procfs.h"
#include "watch/os/run/newborn.h"
#include "watch/os/still/seat.h"
#include "watch/sampler/account.h"
#include "watch/sampler/gather.h"
#include "watch/sampler/suspects.h"
#include "watch/sampler/target.h"

#define KIN_NS        5000000u /* how often to look for new processes at most */
#define SUSPECT_NS    1000000u /* … while some process is about to become a Python */
#define CPU_CHECK_NS  100000000u
#define SLOWEST_NS    1000000000u
#define BEGINNING_NS  200000000.0 /* what may be spent in that time is there from the start */
#define LATE_NS       200000u /* a look that comes later than this prefers what comes late, too */
#define LATE_LOOKS    500u    /* of so many … */
#define LATE_MOST     25u     /* … no more may be */
#define MOST_AS_FIRST 0.3     /* of a processor, for one who goes before all others */
#define SHORTEST_SEATED_NS                                                                         \
    500000u /* between looks: more often, sitting on its processor would stop the program */

struct fm_sampler {
    struct fm_sampler_options options;
    pthread_t thread;
    bool started;
    int done_fd;
    pthread_mutex_t lock, gathering;
    atomic_int stop; /* a futex */
    atomic_int wanted;
    FM_VEC(struct fm_target *) targets;   /* ended ones included, in order of appearance */
    FM_VEC(struct fm_account *) accounts; /* of each of them; some may have none yet */
    struct fm_seat seat;
    struct fm_suspects suspects;
    struct fm_newborn newborn;
    uint64_t start_ns, interval_ns, last_kin_ns;
    uint64_t cpu_ns, kin_cpu_ns; /* in all; of that, for looking for more processes */
    uint64_t cpu_checked_ns, cpu_at_check_ns, rounds_at_check;
    uint64_t rounds, late;
    uint32_t looks_judged, looks_late; /* since they were last judged */
    bool is_late;                      /* this round is */
    uint64_t random;
};

/* As asked for; 0: as fast as it goes. */
static uint64_t interval_of(const struct fm_sampler_options *options)
{
    return options->rate_hz > 0 ? (uint64_t)(1e9 / options->rate_hz) : 0;
}

struct fm_sampler *fm_sampler_new(const struct fm_sampler_options *options)
{
    struct fm_sampler *s = fm_calloc(1, sizeof *s);
    s->options = *options;
    s->interval_ns = interval_of(options);
    s->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->random = fm_clock_ns() | 1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->gathering, NULL);
    fm_newborn_init(&s->newborn);
    return s;
}

void fm_sampler_free(struct fm_sampler *s)
{
    if (!s)
        return;
    fm_sampler_stop(s);
    for (size_t i = 0; i < s->targets.len; i++)
        fm_target_free(s->targets.data[i]);
    for (size_t i = 0; i < s->accounts.len; i++)
        fm_account_free(s->accounts.data[i]);
    fm_vec_release(&s->targets);
    fm_vec_release(&s->accounts);
    fm_suspects_release(&s->suspects);
    fm_newborn_release(&s->newborn);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->gathering);
    close(s->done_fd);
    free(s);
}

static void lock(struct fm_sampler *s)
{
    atomic_fetch_add(&s->wanted, 1);
    pthread_mutex_lock(&s->lock);
    atomic_fetch_sub(&s->wanted, 1);
}

static void unlock(struct fm_sampler *s)
{
    pthread_mutex_unlock(&s->lock);
}

/* --- who is watched --------------------------------------------------------------------------- */

static bool is_watched(const struct fm_sampler *s, pid_t pid)
{
    for (size_t i = 0; i < s->targets.len; i++) {
        if (s->targets.data[i]->pid == pid && !s->targets.data[i]->gone)
            return true;
    }
    return fm_suspects_has(&s->suspects, pid);
}

/* Was this process forked, without executing anything since, by a process below a watched one that
 * ended before we saw either? Daemons do so. */
static bool is_orphan(const struct fm_sampler *s, const struct fm_newborn_process *p)
{
    uint64_t stack_start = fm_target_stack_start(p->pid);
    for (size_t i = 0; i < s->targets.len && stack_start; i++) {
        const struct fm_target *t = s->targets.data[i];
        fm_autofree char *exe = NULL;
        if (t->stack_start == stack_start && t->pid != p->pid && t->start_ticks <= p->start_ticks &&
            t->exe && (exe = fm_process_exe(p->pid)) && strcmp(exe, t->exe) == 0)
            return true;
    }
    return false;
}

static int suspect_child(const struct fm_newborn_process *p, void *data)
{
    struct fm_sampler *s = data;
    if (!is_watched(s, p->pid) && (is_watched(s, p->parent) || is_orphan(s, p)))
        fm_suspects_add(&s->suspects, p->pid, p->parent, fm_clock_ns());
    return 0;
}

static struct fm_target_options options_of(const struct fm_sampler *s)
{
    static const enum fm_target_mode modes[] = { [FM_SAMPLE_WALL] = FM_TARGET_ALL,
                                                 [FM_SAMPLE_CPU] = FM_TARGET_RUNNING,
                                                 [FM_SAMPLE_GIL] = FM_TARGET_GIL };
    uint64_t interval_ns = interval_of(&s->options);
    return (struct fm_target_options){ .mode = modes[s->options.mode],
                                       .tasks = s->options.tasks,
                                       .timeline = s->options.timeline,
                                       .interval_ns = interval_ns,
                                       .folder = s->options.folder,
                                       .way = interval_ns < SHORTEST_SEATED_NS ? FM_WAY_PLAIN
                                                                               : s->options.way };
}

static void add_target(struct fm_sampler *s, struct fm_target *t)
{
    fm_vec_push(&s->targets, t);
    if (s->options.children)
        fm_newborn_descendants(t->pid, suspect_child, s);
}

int fm_sampler_add(struct fm_sampler *s, pid_t pid, struct fm_error *err)
{
    struct fm_proc process;
    if (fm_process_read(&process, pid) == 0)
        pid = process.tgid; /* the number of a thread, as top shows them, means its process */
    struct fm_target_options options = options_of(s);
    struct fm_target *t = fm_target_new(pid, &options, err);
    if (!t)
        return err ? err->status : FM_SYSTEM;
    lock(s);
    add_target(s, t);
    unlock(s);
    return 0;
}

void fm_sampler_expect(struct fm_sampler *s, pid_t pid)
{
    lock(s);
    fm_suspects_add(&s->suspects, pid, 0, fm_clock_ns());
    if (s->options.children) /* a shell is quick to start what it shall start */
        fm_newborn_descendants(pid, suspect_child, s);
    unlock(s);
}

/* Look at the suspects whose time has come; those that have become a Python are watched. */
static void settle_suspects(struct fm_sampler *s, uint64_t now_ns)
{
    struct fm_target_options options = options_of(s);
    struct fm_target *t;
    while ((t = fm_suspects_try(&s->suspects, &options, now_ns)))
        add_target(s, t);
}

static void look_for_kin(struct fm_sampler *s, uint64_t now_ns)
{
    if (now_ns - s->last_kin_ns < (s->suspects.list.len ? SUSPECT_NS : KIN_NS))
        return;
    s->last_kin_ns = now_ns;
    if (s->options.children)
        fm_newborn_poll(&s->newborn, suspect_child, s);
    if (!s->suspects.list.len)
        return;
    /* An interpreter that starts is looked at often, but not for long: the rate need not fall. */
    uint64_t cpu_ns = fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    settle_suspects(s, now_ns);
    s->kin_cpu_ns += fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
}

/* The process has ended, or executed another program: that may be a Python again. */
static void end_target(struct fm_sampler *s, struct fm_target *t, uint64_t now_ns)
{
    t->gone = true;
    fm_open_regions_close(&t->regions);
    t->end_ns = now_ns;
    if (kill(t->pid, 0) == 0 || errno == EPERM)
        fm_suspects_add(&s->suspects, t->pid, t->parent, now_ns);
}

/* --- rounds ----------------------------------------------------------------------------------- */

/* Targets whose threads run where we sit come first: moving to another processor takes 20 µs. */
static bool round_of(struct fm_sampler *s, uint64_t now_ns)
{
    bool any = s->suspects.list.len > 0;
    int here = s->seat.cpu;
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < s->targets.len; i++) {
            struct fm_target *t = s->targets.data[i];
            if (t->gone || t->round == s->rounds + 1 || (turn == 0 && t->looker.cpu != here))
                continue;
            t->round = s->rounds + 1;
            t->options.interval_ns = s->interval_ns;
            t->counts.looks_late += s->is_late;
            if (fm_target_round(t, &s->seat, now_ns))
                any = true;
            else
                end_target(s, t, now_ns);
        }
    }
    s->rounds++;
    return any || s->suspects.list.len > 0;
}

/* Lower the rate if sampling takes more of a processor than allowed. What a round costs tells which
 * rate would be right; that rate is taken at once if slower, in steps if faster, since first rounds have
 * more to read than later ones. */
static void keep_cpu_limit(struct fm_sampler *s, uint64_t now_ns)
{
    if (now_ns - s->cpu_checked_ns < CPU_CHECK_NS)
        return;
    s->cpu_ns = fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t rounds_cpu_ns = s->cpu_ns - s->kin_cpu_ns;
    double spent_ns = (double)(rounds_cpu_ns - s->cpu_at_check_ns);
    double rounds = (double)(s->rounds - s->rounds_at_check);
    s->cpu_at_check_ns = rounds_cpu_ns;
    s->rounds_at_check = s->rounds;
    double share = spent_ns / (double)(now_ns - s->cpu_checked_ns);
    s->cpu_checked_ns = now_ns;
    if (share > MOST_AS_FIRST)
        fm_seat_wait_turn(&s->seat);
    if (s->options.max_cpu_percent <= 0 || rounds < 1)
        return;
    /* Imports show more that is new than all the rest: the limit is one of the whole, not of its
     * beginning. */
    double limit =
        s->options.max_cpu_percent / 100 * (1 + BEGINNING_NS / (double)(now_ns - s->start_ns + 1));
    double right_ns = spent_ns / rounds / limit;
    double wanted_ns = (double)interval_of(&s->options);
    if (right_ns < wanted_ns)
        right_ns = wanted_ns;
    else if (right_ns > SLOWEST_NS)
        right_ns = wanted_ns > SLOWEST_NS ? wanted_ns : SLOWEST_NS;
    double half_ns = (double)s->interval_ns / 2;
    s->interval_ns = (uint64_t)(right_ns > half_ns ? right_ns : half_ns);
}

static uint64_t next_random(struct fm_sampler *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return s->random;
}

/* Sleep until the deadline, or until somebody wakes us (fm_sampler_stop). A wait for a futex takes
 * less than any other that can be ended, and what it takes, it takes from the program on whose
 * processor we sit. */
static void sleep_until(struct fm_sampler *s, uint64_t deadline_ns)
{
    struct timespec at = { (time_t)(deadline_ns / 1000000000u), (long)(deadline_ns % 1000000000u) };
    syscall(SYS_futex, &s->stop, FUTEX_WAIT_BITSET_PRIVATE, 0, &at, NULL, FUTEX_BITSET_MATCH_ANY);
}

/* One instant in each slot of time, anywhere in it. */
static uint64_t sleep_a_slot(struct fm_sampler *s, uint64_t *slot_ns, uint64_t interval_ns)
{
    uint64_t now_ns = fm_clock_ns();
    *slot_ns += interval_ns;
    if (*slot_ns + interval_ns < now_ns) {
        s->late += (now_ns - *slot_ns) / interval_ns;
        *slot_ns = now_ns;
    }
    uint64_t due_ns = *slot_ns + next_random(s) % interval_ns;
    sleep_until(s, due_ns);
    now_ns = fm_clock_ns();
    s->looks_judged++;
    s->is_late = now_ns > due_ns + LATE_NS;
    s->looks_late += s->is_late;
    return now_ns;
}

/* Without a short slice (an old kernel) who has just woken is not preempted for milliseconds:
 * sitting on its processor would never see what it does first. Then the thread is stopped instead. */
static void judge_lateness(struct fm_sampler *s)
{
    if (s->looks_judged < LATE_LOOKS)
        return;
    bool biased = s->looks_late > LATE_MOST && !s->seat.prompt && s->options.way == FM_WAY_DISPLACE;
    s->looks_judged = s->looks_late = 0;
    if (!biased)
        return;
    s->options.way = FM_WAY_STOP;
    fm_seat_leave(&s->seat);
    for (size_t i = 0; i < s->targets.len; i++) {
        if (s->targets.data[i]->options.way == FM_WAY_DISPLACE) {
            s->targets.data[i]->options.way = FM_WAY_STOP;
            s->targets.data[i]->seat_refused = ETIME;
        }
    }
}

static void run_rounds(struct fm_sampler *s)
{
    uint64_t now_ns = fm_clock_ns(), slot_ns = now_ns;
    bool any = true;
    s->start_ns = now_ns;
    s->cpu_checked_ns = now_ns;
    while (any && !atomic_load(&s->stop)) {
        if (s->options.duration_ns && now_ns - s->start_ns >= s->options.duration_ns)
            break;
        pthread_mutex_lock(&s->lock);
        look_for_kin(s, now_ns);
        any = round_of(s, now_ns);
        keep_cpu_limit(s, now_ns);
        judge_lateness(s);
        uint64_t interval_ns = s->interval_ns;
        pthread_mutex_unlock(&s->lock);
        while (atomic_load(&s->wanted))
            usleep(20);
        now_ns = interval_ns ? sleep_a_slot(s, &slot_ns, interval_ns) : fm_clock_ns();
    }
}

static void *thread_main(void *data)
{
    struct fm_sampler *s = data;
    sigset_t all;
    uint64_t one = 1;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    prctl(PR_SET_NAME, "fathom-sampler");
    fm_seat_init(&s->seat, s->interval_ns > 0);
    run_rounds(s);
    s->cpu_ns = fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    if (write(s->done_fd, &one, sizeof one) < 0)
        return NULL;
    return NULL;
}

int fm_sampler_start(struct fm_sampler *s, struct fm_error *err)
{
    int rc = pthread_create(&s->thread, NULL, thread_main, s);
    if (rc)
        return fm_error_set_errno(err, FM_SYSTEM, rc, "starting the sampling thread");
    s->started = true;
    return 0;
}

void fm_sampler_stop(struct fm_sampler *s)
{
    if (!s->started)
        return;
    atomic_store(&s->stop, 1);
    syscall(SYS_futex, &s->stop, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    pthread_join(s->thread, NULL);
    s->started = false;
}

int fm_sampler_fd(const struct fm_sampler *s)
{
    return s->done_fd;
}

void fm_sampler_stats(struct fm_sampler *s, struct fm_sampler_stats *ret)
{
    *ret = (struct fm_sampler_stats){ 0 };
    lock(s);
    ret->rounds = s->rounds;
    ret->late = s->late;
    ret->start_ns = s->start_ns;
    ret->now_ns = fm_clock_ns();
    ret->cpu_ns = s->cpu_ns;
    ret->rate_hz = s->interval_ns ? 1e9 / (double)s->interval_ns : 0;
    for (size_t i = 0; i < s->targets.len; i++) {
        const struct fm_target *t = s->targets.data[i];
        ret->samples += t->counts.samples;
        ret->partial += t->counts.partial;
        ret->lost += t->counts.lost;
        ret->processes += !t->gone;
        ret->threads += t->gone ? 0 : (uint32_t)t->live.len;
    }
    unlock(s);
}

/* Take over what every target has counted: `sources`, one for each. */
static size_t take_counts(struct fm_sampler *s, struct fm_gather_source **sources,
                          struct fm_gather_settings *settings)
{
    lock(s);
    size_t n = s->targets.len;
    *settings = (struct fm_gather_settings){ .mode = s->options.mode,
                                             .interval_ns = interval_of(&s->options),
                                             .cpu_ns = s->cpu_ns };
    *sources = fm_calloc(n + 1, sizeof **sources);
    while (s->accounts.len < n)
        fm_vec_push(&s->accounts, fm_account_new());
    for (size_t i = 0; i < n; i++) {
        size_t share = FM_ACCOUNT_ITEMS / n;
        s->accounts.data[i]->order.limit = share > FM_ACCOUNT_LEAST ? share : FM_ACCOUNT_LEAST;
        fm_account_take(s->accounts.data[i], s->targets.data[i]);
        (*sources)[i] = (struct fm_gather_source){ s->targets.data[i], s->accounts.data[i] };
    }
    unlock(s);
    return n;
}

static void note_refusals(struct fm_sampler *s, struct fm_profile *p)
{
    lock(s);
    for (size_t i = 0; i < s->suspects.refused.len; i++)
        fm_profile_note(p, FM_NONE, "unprofiled", 1, s->suspects.refused.data[i].text);
    unlock(s);
}

struct fm_profile *fm_sampler_profile(struct fm_sampler *s)
{
    fm_autofree struct fm_gather_source *sources = NULL;
    pthread_mutex_lock(&s->gathering);
    struct fm_gather_settings settings;
    size_t n = take_counts(s, &sources, &settings);
    for (size_t i = 0; i < n; i++)
        fm_account_settle(s->accounts.data[i]);
    struct fm_profile *p = fm_gather(sources, n, &settings);
    note_refusals(s, p);
    pthread_mutex_unlock(&s->gathering);
    return p;
}

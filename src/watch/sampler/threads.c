/* The threads of a target; see threads.h. */
#include "watch/sampler/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "watch/cpython/thread_ids.h"
#include "watch/cpython/thread_names.h"
#include "watch/os/procfs.h"

#define MAX_INTERPRETERS 4096
#define MAX_THREADS      65536
#define THREAD_MAX_BYTES 2048
#define REFRESH_NS       100000000u
#define SOON_NS                                                                                    \
    200000u /* after which a thread that has not begun yet is looked for, then twice as long … */
#define QUIET_ROUNDS 8 /* at least each so many rounds the kernel is asked about everybody */
#define PLAIN_NS                                                                                   \
    1000000u /* between two glances at a process with one thread, at the highest rates */
#define SPARE_FDS        64
#define LISTINGS         3           /* how often to read the lists, should they change meanwhile */
#define NAMES_NS         3000000u    /* after a new thread was seen */
#define NAMES_AT_MOST_NS 5000000000u /* an older thread gets no name any more */

static uint64_t word(const uint8_t *bytes, uint32_t offset)
{
    uint64_t value;
    memcpy(&value, bytes + offset, sizeof value);
    return value;
}

static int open_of(pid_t pid, pid_t tid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

ssize_t fm_threads_file(const struct fm_watched_thread *th, int fd, const char *name, char *into,
                        size_t cap)
{
    int own = fd < 0 && th->opens_anew ? open_of(th->pid, th->tid, name) : -1;
    if (fd < 0 && own < 0 && th->opens_anew)
        return -1;
    ssize_t n = pread(own < 0 ? fd : own, into, cap, 0);
    int why = errno;
    if (own >= 0)
        close(own);
    errno = why;
    return n;
}

/* Two descriptors for each thread, as long as there are plenty: the recording needs some, too. */
static void open_files(struct fm_watched_thread *th)
{
    struct rlimit limit;
    th->syscall_fd = open_of(th->pid, th->tid, FM_THREADS_SYSCALL);
    bool scarce = th->syscall_fd < 0 && (errno == EMFILE || errno == ENFILE);
    if (th->syscall_fd >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        scarce = (rlim_t)th->syscall_fd + SPARE_FDS > limit.rlim_cur;
    th->opens_anew = scarce;
    if (scarce && th->syscall_fd >= 0)
        close(th->syscall_fd);
    th->syscall_fd = scarce ? -1 : th->syscall_fd;
    th->switches_fd = scarce ? -1 : open_of(th->pid, th->tid, FM_THREADS_SWITCHES);
    th->look.stat_fd = scarce ? -1 : open_of(th->pid, th->tid, "stat");
}

bool fm_threads_switches(struct fm_watched_thread *th, uint64_t *ret)
{
    char line[80];
    ssize_t n = th->tasks_of || th->gone ? -1
                                         : fm_threads_file(th, th->switches_fd, FM_THREADS_SWITCHES,
                                                           line, sizeof line - 1);
    if (n <= 0)
        return false;
    line[n] = '\0';
    const char *last = strrchr(line, ' ');
    if (!last)
        return false;
    th->cpu_ns = strtoull(line, NULL, 10);
    *ret = strtoull(last + 1, NULL, 10);
    return *ret > 0; /* a kernel that does not count says 0 of everybody */
}

/* What the kernel calls the thread: the name of the program, unless somebody set another. */
static char *kernel_name(pid_t pid, pid_t tid)
{
    char path[32];
    fm_autobuffer text = FM_BUFFER_INIT;
    snprintf(path, sizeof path, "task/%d/comm", (int)tid);
    if (fm_procfs_read_of(pid, path, 64, &text) < 0 || !text.len)
        return NULL;
    return fm_strndup(text.data, strcspn(text.data, "\n"));
}

static struct fm_watched_thread *add(struct fm_target *t, uint64_t now_ns)
{
    struct fm_watched_thread *th = fm_calloc(1, sizeof *th);
    th->number = t->n_threads++;
    th->start_ns = now_ns;
    th->syscall_fd = th->switches_fd = th->look.stat_fd = -1;
    th->row = th->wait = UINT32_MAX;
    return th;
}

static uint64_t native_of(const struct fm_target *t, const uint8_t *bytes)
{
    uint32_t offset = t->runtime.layout.thread_native_id;
    return offset == FM_ABSENT ? 0 : word(bytes, offset);
}

/* A thread state that was found in the lists of an interpreter. */
struct listed_state {
    fm_addr at, interp;
    uint64_t ident, native;
    bool begun;
};

static void add_thread(struct fm_target *t, const struct listed_state *found, pid_t tid,
                       uint64_t now_ns)
{
    struct fm_watched_thread *th = add(t, now_ns);
    th->look.thread = found->at;
    th->look.interp = found->interp;
    th->look.cpu_word = t->cpu_distance ? found->ident + (uint64_t)t->cpu_distance : 0;
    th->ident = found->ident;
    th->native = found->native;
    th->tid = tid;
    th->pid = t->pid;
    open_files(th);
    fm_threads_switches(th, &th->switches);
    th->cpu_first_ns = th->cpu_ns;
    th->name = kernel_name(t->pid, tid);
    if (t->next_names_ns > now_ns + NAMES_NS)
        t->next_names_ns = now_ns + NAMES_NS;
    fm_vec_push(&t->live, th);
}

static bool take_name(struct fm_watched_thread *th, const struct fm_thread_names *names)
{
    for (size_t i = 0; i < names->list.len; i++) {
        if (names->list.data[i].ident == th->ident) {
            free(th->name);
            th->name = fm_strdup(names->list.data[i].text);
            return true;
        }
    }
    return false;
}

/* A thread is in threading's list from shortly after its start; those of C never are, and no thread
 * of a program that does not import threading: so each further try takes as long to come as all
 * before it. */
void fm_threads_name(struct fm_target *t, uint64_t now_ns)
{
    struct fm_heap heap = { &t->remote, &t->runtime.layout };
    struct fm_thread_names names = { 0 };
    uint64_t youngest_ns = UINT64_MAX; /* age of the latest without a name */
    for (size_t i = 0; i < t->interps.len; i++)
        fm_thread_names_read(&names, &heap, t->interps.data[i].at);
    for (size_t i = 0; i < t->live.len; i++) {
        struct fm_watched_thread *th = t->live.data[i];
        th->named = th->named || take_name(th, &names);
        if (!th->named && now_ns - th->start_ns < youngest_ns)
            youngest_ns = now_ns - th->start_ns;
    }
    fm_thread_names_release(&names);
    uint64_t wait_ns = youngest_ns > 16 * NAMES_NS ? youngest_ns : 16 * NAMES_NS;
    t->next_names_ns = youngest_ns < NAMES_AT_MOST_NS ? now_ns + wait_ns : UINT64_MAX;
}

static void close_file(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void fm_threads_end(struct fm_target *t, struct fm_watched_thread *th, uint64_t now_ns)
{
    if (th->gone)
        return;
    th->gone = true;
    th->end_ns = now_ns;
    close_file(&th->syscall_fd);
    close_file(&th->switches_fd);
    close_file(&th->look.stat_fd);
    fm_vec_release(&th->look.hints);
    fm_vec_release(&th->task_hints);
    fm_vec_release(&th->tasks);
    if (th->tasks_in)
        fm_threads_end(t, th->tasks_in, now_ns);
}

void fm_threads_drop_ended(struct fm_target *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->live.len; i++) {
        struct fm_watched_thread *th = t->live.data[i];
        if (!th->gone) {
            t->live.data[kept++] = th;
            continue;
        }
        fm_vec_push(&t->ended, th);
        if (th->tasks_in)
            fm_vec_push(&t->ended, th->tasks_in);
    }
    t->live.len = kept;
}

/* One walk through the lists of thread states. */
struct listing {
    FM_VEC(struct listed_state) found;
    struct fm_map
        visited; /* addresses: a list that was changed while it was read may be a circle */
    bool whole;  /* every list was read to its end */
    uint64_t now_ns;
    bool early; /* some have not begun yet */
};

static void list_threads_of(struct fm_target *t, fm_addr interp, fm_addr at, struct listing *list)
{
    const struct fm_layout *l = &t->runtime.layout;
    uint8_t bytes[THREAD_MAX_BYTES];
    fm_addr newer = 0;
    for (uint32_t n = 0; at; n++) {
        bool is_new = false;
        if (n < MAX_THREADS)
            fm_map_at(&list->visited, at, 0, &is_new);
        if (!is_new || l->thread_size > sizeof bytes ||
            fm_remote_read(&t->remote, at, bytes, l->thread_size) < 0 ||
            word(bytes, l->thread_interp) != interp || word(bytes, l->thread_prev) != newer) {
            list->whole =
                false; /* a thread ended under our eyes: those behind it are out of sight */
            return;
        }
        /* Until a new thread runs, its state names the thread that made it. */
        struct listed_state found = { at, interp, word(bytes, l->thread_id), native_of(t, bytes),
                                      l->thread_chunk == FM_ABSENT ||
                                          word(bytes, l->thread_chunk) };
        fm_vec_push(&list->found, found);
        newer = at;
        at = word(bytes, l->thread_next);
    }
}

/* A thread state can be freed and another made in its place, even with the same pthread_t. */
static bool is_same(const struct fm_watched_thread *th, const struct listed_state *found)
{
    return th->ident == found->ident && th->native == found->native &&
           th->look.interp == found->interp;
}

/* In a child the state of the thread that forked has the parent's number until Python has noted the
 * new one; to the kernel it was the same thread all the time. */
static bool is_renumbered(const struct fm_watched_thread *th, const struct listed_state *found,
                          pid_t tid)
{
    return th->ident == found->ident && th->look.interp == found->interp && tid && th->tid == tid;
}

/* Which thread of the kernel each state belongs to: asked only if one is new. One thread may have a
 * state in each interpreter. */
static struct fm_thread_id *ids_of(struct fm_target *t, const struct listing *list)
{
    size_t n = list->found.len, first = 0;
    struct fm_thread_id *ids = fm_calloc(n + 1, sizeof *ids);
    struct fm_tids tids = { 0 };
    fm_process_tids(t->pid, &tids);
    for (size_t i = 0; i < n; i++) {
        const struct listed_state *found = &list->found.data[i];
        ids[i] = (struct fm_thread_id){ .ident = found->ident, .native = found->native };
        if (i + 1 == n || found[1].interp != found->interp) {
            fm_thread_ids_find(&t->remote, ids + first, i + 1 - first, &tids);
            first = i + 1;
        }
    }
    fm_tids_release(&tids);
    return ids;
}

/* Add those that are new; true for each of `seen` that is still there (by its place in the list of
 * the living). */
static void take_found(struct fm_target *t, struct listing *list, bool *seen)
{
    fm_autofree struct fm_thread_id *ids = NULL;
    struct fm_map by_state = { 0 };
    for (size_t i = 0; i < t->live.len; i++)
        fm_map_at(&by_state, t->live.data[i]->look.thread, (uint32_t)i, NULL);
    for (size_t i = 0; i < list->found.len; i++) {
        const struct listed_state *found = &list->found.data[i];
        const uint32_t *place = fm_map_find(&by_state, found->at);
        if (place && is_same(t->live.data[*place], found)) {
            seen[*place] = true;
            continue;
        }
        ids = ids ? ids : ids_of(t, list);
        if (place && is_renumbered(t->live.data[*place], found, ids[i].tid)) {
            t->live.data[*place]->native = found->native;
            seen[*place] = true;
            continue;
        }
        if (found->begun && ids[i].tid)
            add_thread(t, found, ids[i].tid, list->now_ns);
        else
            list->early = true; /* just born, or about to end */
    }
    fm_map_release(&by_state);
}

static void end_unseen(struct fm_target *t, const bool *seen, size_t n, uint64_t now_ns)
{
    for (size_t i = 0; i < n; i++) {
        if (!seen[i])
            fm_threads_end(t, t->live.data[i], now_ns);
    }
    fm_threads_drop_ended(t);
}

static fm_addr gil_of(const struct fm_target *t, const uint8_t *interp)
{
    const struct fm_layout *l = &t->runtime.layout;
    if (l->runtime_gil != FM_ABSENT)
        return t->runtime.at + l->runtime_gil;
    return l->interp_gil != FM_ABSENT ? word(interp, l->interp_gil) : 0;
}

static bool has_interp(const struct fm_target *t, fm_addr at)
{
    for (size_t i = 0; i < t->interps.len; i++) {
        if (t->interps.data[i].at == at)
            return true;
    }
    return false;
}

static void list_threads(struct fm_target *t, struct listing *list)
{
    const struct fm_layout *l = &t->runtime.layout;
    fm_autofree uint8_t *bytes = fm_malloc(l->interp_size);
    fm_addr at = fm_remote_pointer(&t->remote, t->runtime.at + l->runtime_interpreters_head);
    fm_map_release(&list->visited);
    list->found.len = t->interps.len = 0;
    list->whole = true;
    while (at && t->interps.len < MAX_INTERPRETERS) {
        if (has_interp(t, at) || fm_remote_read(&t->remote, at, bytes, l->interp_size) < 0) {
            list->whole = false;
            break;
        }
        struct fm_watched_interp interp = { .at = at,
                                            .newest_thread = word(bytes, l->interp_threads_head),
                                            .gil.at = gil_of(t, bytes) };
        fm_vec_push(&t->interps, interp);
        list_threads_of(t, at, interp.newest_thread, list);
        at = word(bytes, l->interp_next);
    }
}

bool fm_threads_refresh(struct fm_target *t, uint64_t now_ns)
{
    size_t before = t->live.len;
    fm_autofree bool *seen = fm_calloc(before + 1, sizeof *seen);
    struct listing list = { .now_ns = now_ns };
    for (int i = 0; i < LISTINGS && !list.whole; i++)
        list_threads(t, &list);
    take_found(t, &list, seen);
    for (size_t i = 0; i < t->live.len; i++)
        t->outruns_us |= t->looker.seat && !fm_seat_go_before(t->looker.seat, t->live.data[i]->tid);
    if (t->interps.len && list.whole)
        end_unseen(t, seen, before, now_ns);
    fm_map_release(&list.visited);
    fm_vec_release(&list.found);
    t->last_list_ns = now_ns;
    uint64_t wait_ns = t->list_wait_ns ? 2 * t->list_wait_ns : SOON_NS;
    t->list_wait_ns = !list.early ? 0 : wait_ns < REFRESH_NS ? wait_ns : REFRESH_NS;
    return t->interps.len > 0;
}

/* Is there somebody to fight for the GIL, or is it asked who holds it? */
static bool reads_gil(const struct fm_target *t, const struct fm_watched_interp *interp)
{
    const struct fm_layout *l = &t->runtime.layout;
    return interp->gil.at && (t->live.len > 1 || t->options.mode == FM_TARGET_GIL) &&
           l->gil_locked + 4 <= FM_LOOK_GIL_BYTES && l->gil_holder + 8 <= FM_LOOK_GIL_BYTES &&
           l->gil_switches + 8 <= FM_LOOK_GIL_BYTES;
}

/* Who holds the GIL, and has it been given from thread to thread since the last look? */
static void take_gil(struct fm_target *t, struct fm_watched_interp *interp)
{
    const struct fm_layout *l = &t->runtime.layout;
    const uint8_t *gil = interp->gil.before;
    int32_t locked;
    memcpy(&locked, gil + l->gil_locked, sizeof locked);
    interp->last_holder = word(gil, l->gil_holder);
    interp->holder = locked == 1 ? interp->last_holder : 0;
    uint64_t switches = word(gil, l->gil_switches);
    bool same = switches == interp->gil_switches && !l->free_threaded;
    interp->quiet_rounds = same ? interp->quiet_rounds + 1 : 0;
    interp->quiet = same && interp->quiet_rounds % QUIET_ROUNDS;
    interp->gil_switches = switches;
}

void fm_threads_see_gil(struct fm_target *t, struct fm_watched_interp *interp)
{
    interp->holder = 0;
    if (reads_gil(t, interp) &&
        fm_remote_read(&t->remote, interp->gil.at, interp->gil.before, FM_LOOK_GIL_BYTES) == 0)
        take_gil(t, interp);
}

/* One read for one interpreter. False if a thread was added, or nothing could be read. */
static bool glance_at(struct fm_target *t, struct fm_watched_interp *interp)
{
    uint64_t newest_thread;
    struct fm_span spans[2] = {
        { interp->at + t->runtime.layout.interp_threads_head, &newest_thread, 8 },
        { interp->gil.at, interp->gil.before, FM_LOOK_GIL_BYTES },
    };
    int n = reads_gil(t, interp) ? 2 : 1;
    interp->holder = 0;
    interp->quiet = false;
    if (fm_remote_read_spans(&t->remote, spans, n) < n || newest_thread != interp->newest_thread)
        return false;
    if (n > 1)
        take_gil(t, interp);
    return true;
}

bool fm_threads_glance(struct fm_target *t, uint64_t now_ns)
{
    uint64_t wait_ns = t->list_wait_ns ? t->list_wait_ns : REFRESH_NS;
    bool changed = !t->interps.len || now_ns - t->last_list_ns > wait_ns;
    /* Looking as often as it goes, a glance each time would take a fifth of the time. */
    if (t->options.way == FM_WAY_PLAIN && t->live.len == 1 && !changed &&
        now_ns - t->last_glance_ns < PLAIN_NS)
        return true;
    t->last_glance_ns = now_ns;
    for (size_t i = 0; i < t->interps.len && !changed; i++) {
        changed = !glance_at(t, &t->interps.data[i]);
        if (changed)
            t->list_wait_ns = 0; /* who is new will begin soon */
    }
    if (changed && !fm_threads_refresh(t, now_ns))
        return false;
    for (size_t i = 0; i < t->interps.len && changed; i++)
        fm_threads_see_gil(t, &t->interps.data[i]);
    return true;
}

struct fm_watched_thread *fm_threads_tasks_of(struct fm_target *t, struct fm_watched_thread *th,
                                              uint64_t now_ns)
{
    if (th->tasks_in)
        return th->tasks_in;
    struct fm_watched_thread *tasks = add(t, now_ns);
    tasks->tasks_of = th;
    th->tasks_in = tasks;
    tasks->tid = th->tid;
    return tasks;
}

void fm_threads_drop(struct fm_watched_thread *th)
{
    fm_vec_release(&th->tasks);
    fm_vec_release(&th->order.items);
    free(th->name);
    free(th);
}

void fm_threads_free(struct fm_target *t)
{
    for (size_t i = 0; i < t->live.len; i++)
        fm_threads_end(t, t->live.data[i], 0);
    fm_threads_drop_ended(t);
    for (size_t i = 0; i < t->ended.len; i++)
        fm_threads_drop(t->ended.data[i]);
    fm_vec_release(&t->live);
    fm_vec_release(&t->ended);
    fm_vec_release(&t->interps);
}

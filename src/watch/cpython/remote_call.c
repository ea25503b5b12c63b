/* Asking a Python to run a script; see remote_call.h. */
#include "watch/cpython/remote_call.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "watch/cpython/debug_offsets.h"
#include "watch/cpython/stack.h"
#include "watch/os/procfs.h"
#include "watch/os/remote/remote_write.h"
#include "watch/os/still/halt.h"

#define PLEASE_STOP    (1u << 5) /* of the eval breaker, 3.14 and 3.15 */
#define MAX_STATE      65536     /* bytes of a thread state */
#define MAX_INTERP     (64u << 20)
#define MAX_PATH_BYTES 4096
#define MAIN_TRIES     50 /* a millisecond each */

/* ---- where it is ---- */

static int no_support(struct fm_error *err)
{
    return fm_error_set(
        err, FM_UNSUPPORTED,
        "nothing can be begun in a running process before CPython 3.14; there `fathom run` with "
        "the same options records from the start, and fathom.memory() a part of the code");
}

static int read_offsets(struct fm_remote_call *call, uint64_t *ret_enabled, struct fm_error *err)
{
    struct fm_debug_offsets offsets;
    uint64_t support, pending, path, size;
    if (fm_debug_offsets_read(&offsets, call->remote, call->runtime->at) < 0 ||
        !fm_debug_offsets_find(&offsets, "debugger_support.eval_breaker", &call->breaker) ||
        !fm_debug_offsets_find(&offsets, "debugger_support.remote_debugger_support", &support) ||
        !fm_debug_offsets_find(&offsets, "debugger_support.remote_debugging_enabled",
                               ret_enabled) ||
        !fm_debug_offsets_find(&offsets, "debugger_support.debugger_pending_call", &pending) ||
        !fm_debug_offsets_find(&offsets, "debugger_support.debugger_script_path", &path) ||
        !fm_debug_offsets_find(&offsets, "debugger_support.debugger_script_path_size",
                               &call->path_size) ||
        !fm_debug_offsets_find(&offsets, "interpreter_state.threads_main", &call->main_at) ||
        !fm_debug_offsets_find(&offsets, "thread_state.size", &size))
        return no_support(err);
    if (offsets.free_threaded)
        return fm_error_set(err, FM_UNSUPPORTED,
                            "the memory of a Python without the GIL is not recorded");
    /* One by one: their sums cannot overflow then. */
    bool sane = size <= MAX_STATE && call->breaker <= size - 8 && size >= 8 && support <= size &&
                pending <= size && path <= size && call->path_size >= 2 &&
                call->path_size <= MAX_PATH_BYTES && support + pending + 4 <= size &&
                support + path + call->path_size <= size && *ret_enabled <= MAX_INTERP &&
                call->main_at <= MAX_INTERP;
    if (!sane)
        return fm_error_set(err, FM_DAMAGED, "what the process says about itself makes no sense");
    call->pending = support + pending;
    call->path = support + path;
    return 0;
}

/* The main interpreter and its main thread. Threads may come and go while they are listed, so the list
 * may end anywhere, but an interpreter knows its main thread. */
static bool find_main(struct fm_remote_call *call, fm_addr *ret_interp)
{
    struct fm_stack_threads threads = { 0 };
    if (fm_stack_threads(call->runtime, call->remote, &threads) == 0)
        for (size_t i = 0; i < threads.len && !*ret_interp; i++)
            if (threads.data[i].interp_id == 0)
                *ret_interp = threads.data[i].interp;
    fm_vec_release(&threads);
    return *ret_interp &&
           fm_remote_read(call->remote, *ret_interp + call->main_at, &call->main, 8) == 0 &&
           call->main;
}

int fm_remote_call_find(struct fm_remote_call *call, const struct fm_remote *remote,
                        const struct fm_runtime *runtime, struct fm_error *err)
{
    fm_addr interp = 0;
    uint64_t enabled_at;
    int32_t enabled = 0;
    *call = (struct fm_remote_call){ .remote = remote, .runtime = runtime };
    if (read_offsets(call, &enabled_at, err) < 0)
        return err->status;
    for (int i = 0; i < MAIN_TRIES && !find_main(call, &interp); i++)
        usleep(1000);
    if (!call->main || fm_remote_read(remote, interp + enabled_at, &enabled, sizeof enabled) < 0)
        return fm_error_set(err, FM_NOT_READY, "process %d is not ready, or is ending",
                            (int)remote->pid);
    if (enabled != 1)
        return fm_error_set(
            err, FM_REMOTE_OFF,
            "remote debugging is switched off in process %d, so nothing can be begun in it "
            "(PYTHON_DISABLE_REMOTE_DEBUG, -X disable-remote-debug, or how it was built): "
            "`fathom run` with the same options records from the start",
            (int)remote->pid);
    return 0;
}

/* ---- asking ---- */

/*
 * The path first, then the mark, then the breaker, as sys.remote_exec() does it. Somebody in the
 * process may set another bit between our reading and our writing, which is then lost: most are set
 * again, and it is a matter of a microsecond. A thread that is held sets none itself.
 */
static int ask(const struct fm_remote_call *call, fm_addr thread, const char *path)
{
    int32_t one = 1;
    uint64_t breaker;
    int r = fm_remote_write(call->remote, thread + call->path, path, strlen(path) + 1);
    if (r == 0)
        r = fm_remote_write(call->remote, thread + call->pending, &one, sizeof one);
    if (r == 0)
        r = fm_remote_read(call->remote, thread + call->breaker, &breaker, sizeof breaker);
    if (r < 0 || breaker & PLEASE_STOP)
        return r;
    breaker |= PLEASE_STOP;
    return fm_remote_write(call->remote, thread + call->breaker, &breaker, sizeof breaker);
}

/* The breaker stays as it is: a thread that sees it without the mark goes on. Was the mark seen? */
static bool unask(const struct fm_remote_call *call, fm_addr thread)
{
    int32_t mark = 1, none = 0;
    char empty[MAX_PATH_BYTES] = { 0 };
    fm_remote_read(call->remote, thread + call->pending, &mark, sizeof mark);
    if (fm_remote_write(call->remote, thread + call->pending, &none, sizeof none) == 0)
        fm_remote_write(call->remote, thread + call->path, empty, call->path_size);
    return mark == 0;
}

static bool is_running(pid_t tid)
{
    struct fm_process_kin kin;
    return fm_process_kin(&kin, tid) == 0 && kin.state == 'R';
}

int fm_remote_call_post(struct fm_remote_call *call, const char *path, struct fm_error *err)
{
    struct fm_halt halt;
    pid_t pid = call->remote->pid;
    if (strlen(path) + 1 > call->path_size)
        return fm_error_set(err, FM_SYSTEM, "the path %s is too long", path);
    call->taken = 0;
    bool held = is_running(pid) && fm_halt_stop(&halt, pid) == 0;
    int r = ask(call, call->main, path);
    if (held)
        fm_halt_end(&halt);
    if (r == -EPERM)
        fm_runtime_explain_refusal(pid, EPERM, err);
    else if (r < 0)
        fm_error_set_errno(err, r == -ESRCH ? FM_NOT_FOUND : FM_SYSTEM, -r, "writing to process %d",
                           (int)pid);
    return r < 0 ? err->status : 0;
}

/* Is it still the state of that thread? While the thread is held. */
static bool is_state_of(const struct fm_remote_call *call, fm_addr state, pid_t tid)
{
    struct fm_stack_threads threads = { 0 };
    bool found = false;
    if (fm_stack_threads(call->runtime, call->remote, &threads) == 0)
        for (size_t i = 0; i < threads.len; i++)
            found |= threads.data[i].at == state && threads.data[i].native_id == (uint64_t)tid;
    fm_vec_release(&threads);
    return found;
}

/* Ask it, or with NULL no longer. */
static bool ask_held(struct fm_remote_call *call, fm_addr state, pid_t tid, const char *path)
{
    struct fm_halt halt;
    if (fm_halt_stop(&halt, tid) < 0)
        return false;
    bool is_there = is_state_of(call, state, tid);
    if (is_there && path)
        is_there = ask(call, state, path) == 0;
    else if (is_there)
        call->taken += unask(call, state);
    fm_halt_end(&halt);
    return is_there;
}

void fm_remote_call_post_other(struct fm_remote_call *call, const char *path)
{
    struct fm_stack_threads threads = { 0 };
    struct fm_proc process;
    /* In a namespace of its own, its numbers of threads are not ours. */
    if (call->other || fm_process_read(&process, call->remote->pid) < 0 || process.in_namespace ||
        strlen(path) + 1 > call->path_size)
        return;
    if (fm_stack_threads(call->runtime, call->remote, &threads) == 0)
        for (size_t i = 0; i < threads.len && !call->other; i++) {
            const struct fm_stack_thread *t = &threads.data[i];
            pid_t tid = (pid_t)t->native_id;
            if (t->interp_id != 0 || t->at == call->main || tid <= 0 || !is_running(tid) ||
                !ask_held(call, t->at, tid, path))
                continue;
            call->other = t->at;
            call->other_tid = tid;
        }
    fm_vec_release(&threads);
}

void fm_remote_call_spare_other(struct fm_remote_call *call)
{
    if (call->other)
        ask_held(call, call->other, call->other_tid, NULL);
    call->other = 0;
}

int fm_remote_call_take_back(struct fm_remote_call *call)
{
    fm_remote_call_spare_other(call);
    return call->taken + unask(call, call->main);
}

/*
 * Events on CPython 3.11, which has no sys.monitoring.
 *
 * With C calls: the C-level profile function (PyEval_SetProfile) in every thread. It is the only
 * source of C calls in 3.11.
 *
 * Without C calls: the frame-evaluation hook (PEP 523), at a fifth of the cost. It makes every
 * Python call recurse in C, which a program that recurses 100,000 deep would not survive, so when a
 * thread has used a good part of its C stack, the agent changes over to profile functions, for
 * good. Calls entered under the hook may then end by a profile event; `depth` tells who closes a
 * call.
 *
 * Lines come from the trace function, which slows every instruction of a frame it is on for. So it
 * is on only in frames of chosen functions: the evaluation hook switches it with each frame.
 * Together with C calls there is no such hook, and the trace function sees, and passes over, other
 * frames' lines too. Exceptions come from it as well. CPython tells it of these whether a frame is
 * traced or not, so beside the evaluation hook they cost next to nothing: a frame in which one was
 * is traced from there to its end. With C calls they are heard of only if somebody waits for one
 * (--keep-on).
 *
 * A thread has one profile function and one trace function. Where the program sets its own
 * (sys.setprofile, sys.settrace), functions of ours call it, so that both are told
 * (program_tools.h). One that is written in C (cProfile, coverage) takes the place of ours: that
 * thread is lost to us then, and the recording says so.
 *
 * Threads: the GIL protects everything here, other threads' states included: a thread's state is
 * made without the GIL at the head of the interpreter's list, where we look once, and is taken out
 * of it with the GIL.
 */
#include "target/agent/functions.h"
#include "target/agent/hooks/hooks.h"
#include "target/agent/hooks/program_tools.h"
#include "target/agent/lines/lines.h"
#include "target/agent/regions/foreign.h"
#include "target/agent/regions/region_frames.h"
#include "target/agent/regions/regions.h"
#include "target/agent/trace/exceptions.h"
#include "target/agent/trace/trace.h"
#include "target/agent/trace/values.h"
#include "target/agent/trace/watches.h"

#if !FM_HAS_MONITORING

#include <pthread.h>
#include <string.h>

#include "target/agent/hooks/generators_3_11.h"

/* All collectors on this interpreter share one profile function and one evaluation hook. */
static struct {
    struct fm_collector *collectors[FM_SLOTS];
    int count;
    bool profiling;  /* the profile function is installed in the threads */
    bool evaluating; /* the evaluation hook is installed */
    bool generators; /* regions want to hear of them: profile functions stay */
    int lines;       /* collectors that need the trace function: for lines or exceptions */
    int exceptions;  /* … that take exceptions where these cost nothing */
    PyInterpreterState *interpreter;
    PyThreadState *newest_thread; /* head of the interpreter's list when last looked at */
} source;

/* When the last call ended that this thread told of, by slot. */
static __thread uint64_t left_ticks[FM_SLOTS] __attribute__((tls_model("initial-exec")));

/* ---- what happened ----------------------------------------------------------------------- */

/* Without --calls only functions with lines are. */
static bool is_recorded(struct fm_collector *c, struct fm_func *f, PyCodeObject *code)
{
    return !c->lines_on || fm_lines_of(c, f, code) || c->calls;
}

static void enter(struct fm_collector *c, struct fm_agent_thread *t, struct fm_func *f,
                  const void *key, const void *frame)
{
    if (c->trace) {
        if (!f->trace_word || !fm_trace_call(t, f, f->trace_word, key))
            fm_trace_enter(c, t, f, key, frame, FM_TRACE_CALLED);
        return;
    }
    if (fm_enter(c, t, f, key) && c->lines_on)
        *fm_line_frame_of(t) = (struct fm_line_frame){ 0 };
}

static void leave(struct fm_collector *c, struct fm_agent_thread *t, const void *key, uint64_t now,
                  bool raised, PyObject *value)
{
    if (c->trace) {
        if (raised || c->trace_min_ticks || !fm_trace_return(t, key, now))
            fm_trace_leave(c, t, key, NULL, now, raised ? FM_TRACE_UNWOUND : FM_TRACE_RETURNED,
                           value);
    } else if (c->lines_on)
        fm_leave_with_line(c, t, key, now);
    else
        fm_leave(c, t, key, now);
}

static void enter_frame(struct fm_collector *c, _PyInterpreterFrame *frame, bool thrown)
{
    PyCodeObject *code = frame->f_code;
    struct fm_agent_thread *t = fm_collector_thread(c);
    struct fm_func *f = fm_function_of_code(c, code);
    if (__builtin_expect(!t || !f, 0)) {
        fm_collector_lost_call(c);
        return;
    }
    if (!is_recorded(c, f, code))
        return;
    bool resumed = fm_is_generator(code) && fm_generator_is_resumed(frame);
    if (__builtin_expect(resumed && c->trace, 0))
        fm_trace_enter(c, t, f, code, frame, thrown ? FM_TRACE_THROWN : FM_TRACE_RESUMED);
    else if (__builtin_expect(resumed, 0))
        fm_resume(c, t, f, code, frame, 0);
    else
        enter(c, t, f, code, frame);
}

/* The call of a frame of the stack, without tags. */
static const void *open_code(const struct fm_collector *c, const struct fm_live_frame *open)
{
    uintptr_t tags = c->trace ? FM_TRACE_TAGS : FM_KEY_IN_REGION;
    return (const void *)((uintptr_t)open->key & ~tags);
}

/* Did the generator, which runs, go on without an event (generators_3_11.h)? Then a call that began after it is
 * the innermost, below C functions that it may have called. If none is open at all, it began before the recording. */
static bool went_on(const struct fm_collector *c, const struct fm_agent_thread *t,
                    const PyCodeObject *code)
{
    const struct fm_live_frame *open = t->top;
    if (t->beyond || t->trace.must_find)
        return false; /* not all that is open is known */
    while (open > t->base && fm_is_c_call(open))
        open--;
    if (open == t->base)
        return false;
    while (open > t->base && open_code(c, open) != code)
        open--;
    return open == t->base;
}

/* It did so right after whatever was heard of last on this thread. */
static __attribute__((noinline)) void go_on(struct fm_collector *c, _PyInterpreterFrame *frame)
{
    PyCodeObject *code = frame->f_code;
    struct fm_agent_thread *t = fm_current[c->slot];
    if (!t || open_code(c, t->top) == code || !went_on(c, t, code))
        return;
    struct fm_func *f = fm_function_of_code(c, code);
    if (!f || !is_recorded(c, f, code))
        return;
    uint64_t began = t->top->enter_ticks;
    if ((int64_t)(left_ticks[c->slot] - began) > 0)
        began = left_ticks[c->slot];
    if (c->trace)
        fm_trace_enter(c, t, f, code, frame, FM_TRACE_WENT_ON);
    else
        fm_resume(c, t, f, code, frame, c->timer ? 0 : began);
    if (source.generators)
        fm_regions_resume(frame);
}

static void leave_frame(struct fm_collector *c, _PyInterpreterFrame *frame, PyCodeObject *code,
                        uint64_t now, PyObject *value)
{
    struct fm_agent_thread *t = fm_collector_thread(c);
    struct fm_func *f = fm_function_of_code(c, code);
    if (!t || !f || !is_recorded(c, f, code))
        return;
    bool suspended = fm_is_generator(code) && fm_generator_is_suspended(frame);
    if (__builtin_expect(suspended && c->trace, 0))
        fm_trace_leave(c, t, code, frame, now, FM_TRACE_YIELDED, value);
    else if (__builtin_expect(suspended, 0))
        fm_yield(c, t, code, frame, now);
    else
        leave(c, t, code, now, !value, value);
}

/* ---- the profile function ---------------------------------------------------------------- */

static int on_profile(PyObject *self, PyFrameObject *frame, int what, PyObject *arg);
static int on_both(PyObject *self, PyFrameObject *frame, int what, PyObject *arg);
static bool has_trace_function(PyThreadState *thread);

static void update_tracing(PyThreadState *thread)
{
    bool any = thread->c_profilefunc || thread->c_tracefunc;
    thread->cframe->use_tracing = any && !thread->tracing ? 255 : 0;
}

/* What _PyEval_SetProfile and _PyEval_SetTrace do to a thread that has no such function, or ours,
 * which comes without an object; but for the audit event: the program would hear of it, could
 * forbid it, and its code could run in the middle of one of our loops over threads. */
static void give_profile_function(PyThreadState *thread, Py_tracefunc function)
{
    thread->c_profilefunc = function;
    update_tracing(thread);
}

static void give_trace_function(PyThreadState *thread, Py_tracefunc function)
{
    thread->c_tracefunc = function;
    update_tracing(thread);
}

/* A thread without a profile function gets ours. One with the program's Python function gets both;
 * one with another's keeps it. */
static void cover_thread(PyThreadState *thread)
{
    if (!thread->c_profilefunc)
        give_profile_function(thread, on_profile);
    else if (thread->c_profilefunc == fm_program_profile())
        give_profile_function(thread, on_both);
    else
        return;
    if (source.lines)
        has_trace_function(thread);
}

static void cover_threads(void)
{
    source.newest_thread = PyInterpreterState_ThreadHead(source.interpreter);
    for (PyThreadState *thread = source.newest_thread; thread; thread = PyThreadState_Next(thread))
        cover_thread(thread);
}

/* Is this the function by which cProfile takes the profile hook? */
static bool takes_the_hook(const PyMethodDef *def)
{
    static const PyMethodDef *enable;
    if (!enable && strcmp(def->ml_name, "enable") == 0 && def->ml_doc &&
        strstr(def->ml_doc, "subcalls"))
        enable = def;
    return def == enable;
}

static void on_c_event(struct fm_collector *c, int what, PyObject *arg, uint64_t now)
{
    if (!c->c_calls || !PyCFunction_Check(arg))
        return;
    const PyMethodDef *def = ((PyCFunctionObject *)arg)->m_ml;
    struct fm_agent_thread *t = fm_collector_thread(c);
    struct fm_func *f = fm_function_of_c(c, arg, def);
    if (__builtin_expect(!t || !f, 0)) {
        if (what == PyTrace_C_CALL)
            fm_collector_lost_call(c);
        return;
    }
    if (__builtin_expect(takes_the_hook(def), 0)) {
        if (what == PyTrace_C_CALL)
            c->store.header->lost[FM_LIVE_LOST_HOOK]++;
        return; /* its return will not be seen */
    }
    if (what == PyTrace_C_CALL)
        enter(c, t, f, def, NULL);
    else
        leave(c, t, def, now, what == PyTrace_C_EXCEPTION, NULL);
}

static void tell_regions(_PyInterpreterFrame *frame, int what)
{
    if (what == PyTrace_CALL && fm_is_generator(frame->f_code))
        fm_regions_resume(frame);
    else if (what == PyTrace_RETURN && fm_generator_is_suspended(frame))
        fm_regions_suspend(frame);
    if (!fm_foreign_count)
        return;
    if (what == PyTrace_CALL && !fm_generator_is_resumed(frame))
        fm_foreign_enter(frame->f_code, frame);
    else if (what == PyTrace_RETURN && !fm_generator_is_suspended(frame))
        fm_foreign_leave(frame->f_code, frame);
}

/* The generator that the event tells to be running, before it begins or ends something; NULL: none is. */
static _PyInterpreterFrame *generator_of(_PyInterpreterFrame *frame, int what)
{
    if (what == PyTrace_RETURN) /* at a YIELD_VALUE, maybe */
        return frame->owner == FRAME_OWNED_BY_GENERATOR ? frame : NULL;
    if (what == PyTrace_CALL)
        frame = frame->previous;
    return what <= PyTrace_C_CALL && fm_generator_runs(frame) ? frame : NULL;
}

static int on_profile(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    (void)self;
    if (source.generators && what == PyTrace_RETURN)
        tell_regions(frame->f_frame, what);
    bool begins = what == PyTrace_CALL || what == PyTrace_C_CALL;
    _PyInterpreterFrame *generator = generator_of(frame->f_frame, what);
    for (int i = 0; i < source.count; i++) {
        struct fm_collector *c = source.collectors[i];
        uint64_t now = begins ? 0 : fm_collector_now(c);
        if (generator)
            go_on(c, generator);
        if (what == PyTrace_CALL)
            enter_frame(c, frame->f_frame, !fm_generator_is_sent(frame->f_frame));
        else if (what == PyTrace_RETURN)
            leave_frame(c, frame->f_frame, frame->f_frame->f_code, now, arg);
        else
            on_c_event(c, what, arg, now);
        if (!begins)
            left_ticks[c->slot] = c->timer ? 0 : now;
    }
    if (source.generators && what == PyTrace_CALL) /* it is in them once it runs */
        tell_regions(frame->f_frame, what);
    if (what == PyTrace_C_RETURN &&
        PyInterpreterState_ThreadHead(source.interpreter) != source.newest_thread)
        cover_threads();
    return 0;
}

/* Ours, and the program's as early and as late as possible: what that takes is the caller's. If it
 * raises, it goes, and takes ours with it; a C call does not begin then, a frame does and ends. */
static int on_both(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    bool hidden = fm_program_hides(what, arg);
    if (what != PyTrace_CALL && what != PyTrace_C_CALL)
        on_profile(NULL, frame, what, arg);
    int rc = hidden ? 0 : fm_program_profile()(self, frame, what, arg);
    if (what == PyTrace_CALL || (what == PyTrace_C_CALL && rc == 0))
        on_profile(NULL, frame, what, arg);
    PyThreadState *thread = PyThreadState_Get();
    if (source.profiling && !thread->c_profilefunc)
        cover_thread(thread);
    return rc;
}

bool fm_hooks_others_listen(PyThreadState *thread)
{
    return thread->c_profilefunc && thread->c_profilefunc != on_profile;
}

void fm_hooks_profile_was_set(PyThreadState *thread)
{
    if (source.profiling)
        cover_thread(thread);
}

/* ---- the trace function ------------------------------------------------------------------ */

static bool hears_exceptions(const struct fm_collector *c)
{
    return c->trace && (c->trace_exceptions || !c->c_calls);
}

/* (type, value, traceback): the exception itself gets its traceback only when it is caught. */
static void on_exception(PyObject *arg)
{
    if (!PyTuple_Check(arg) || PyTuple_GET_SIZE(arg) != 3)
        return;
    PyObject *value = PyTuple_GET_ITEM(arg, 1), *traceback = PyTuple_GET_ITEM(arg, 2);
    if (PyTraceBack_Check(traceback) && ((PyTracebackObject *)traceback)->tb_next)
        return; /* it passes */
    for (int i = 0; i < source.count; i++) {
        struct fm_collector *c = source.collectors[i];
        struct fm_agent_thread *t = hears_exceptions(c) ? fm_collector_thread(c) : NULL;
        if (t)
            fm_trace_exception(c, t, value);
    }
}

/* --watch: variables at lines of a trace. */
static void watch_line(struct fm_collector *c, _PyInterpreterFrame *frame, int line)
{
    struct fm_agent_thread *t = fm_collector_thread(c);
    const struct fm_func *f = fm_function_of_code(c, frame->f_code);
    if (t && f && f->asked)
        fm_trace_watches_line(c, t, frame->f_code, frame, f->asked->watches, line);
}

static int on_trace(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    (void)self;
    if (what == PyTrace_EXCEPTION && arg)
        on_exception(arg);
    if (what != PyTrace_LINE)
        return 0;
    PyCodeObject *code = frame->f_frame->f_code;
    for (int i = 0; i < source.count; i++) {
        struct fm_collector *c = source.collectors[i];
        if (c->ask.watch[0])
            watch_line(c, frame->f_frame, frame->f_lineno);
        struct fm_agent_thread *t = c->lines_on ? fm_collector_thread(c) : NULL;
        if (!t || fm_frame_key(t->top) != (uintptr_t)code)
            continue;
        uint64_t now = fm_collector_now(c);
        struct fm_func *f = (struct fm_func *)(uintptr_t)t->top->func;
        if (f->lines)
            fm_line_event(c, t, f, frame->f_lineno, now);
    }
    return 0;
}

/* The program's, and ours. CPython has it called before all profile functions, which are not told
 * when it raises; and takes it away then. */
static int on_program_trace(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    PyThreadState *thread = PyThreadState_Get();
    int rc = fm_program_trace()(self, frame, what, arg);
    if (rc == 0)
        return on_trace(NULL, frame, what, arg);
    bool profiled = thread->c_profilefunc == on_profile || thread->c_profilefunc == on_both;
    if (profiled && (what == PyTrace_CALL || what == PyTrace_RETURN))
        on_profile(NULL, frame, what, arg);
    fm_hooks_trace_was_set(thread);
    return rc;
}

/* Does a thread tell us of lines? It does without a trace function, which is ours then, or with the
 * program's Python function, but not with one of somebody's that is written in C. */
static bool has_trace_function(PyThreadState *thread)
{
    if (__builtin_expect(thread->c_tracefunc == on_trace, 1) ||
        thread->c_tracefunc == on_program_trace)
        return true;
    if (thread->c_tracefunc && thread->c_tracefunc != fm_program_trace()) {
        for (int i = 0; i < source.count; i++)
            if (source.collectors[i]->store.header)
                source.collectors[i]->store.header->lost[FM_LIVE_LOST_HOOK]++;
        return false;
    }
    give_trace_function(thread, thread->c_tracefunc ? on_program_trace : on_trace);
    return true;
}

void fm_hooks_trace_was_set(PyThreadState *thread)
{
    if (thread->c_tracefunc || source.lines)
        has_trace_function(thread);
}

static bool has_lines(const struct fm_collector *c)
{
    return c->lines_on || c->ask.watch[0] || c->trace_exceptions;
}

/* Does some collector record lines of this code? */
static bool wants_lines(PyCodeObject *code)
{
    for (int i = 0; i < source.count; i++) {
        struct fm_collector *c = source.collectors[i];
        struct fm_func *f = c->lines_on || c->ask.watch[0] ? fm_function_of_code(c, code) : NULL;
        if (f && c->lines_on && fm_lines_of(c, f, code))
            return true;
        if (f && f->asked && f->asked->watches)
            return true;
    }
    return false;
}

/* Evaluate a frame with the trace function on or off, and leave the caller's as it was. */
static PyObject *evaluate(PyThreadState *thread, _PyInterpreterFrame *frame, int throwflag)
{
    bool wanted = source.lines && wants_lines(frame->f_code) && has_trace_function(thread);
    if (source.exceptions && (!thread->c_tracefunc || thread->c_tracefunc == fm_program_trace()))
        has_trace_function(thread);
    if (thread->c_tracefunc != on_trace || thread->c_profilefunc)
        return _PyEval_EvalFrameDefault(thread, frame, throwflag);
    _PyCFrame *caller = thread->cframe;
    uint8_t before = caller->use_tracing;
    caller->use_tracing = wanted && !thread->tracing ? 255 : 0;
    PyObject *result = _PyEval_EvalFrameDefault(thread, frame, throwflag);
    if (thread->c_tracefunc == on_trace && !thread->c_profilefunc)
        caller->use_tracing = before;
    return result;
}

/* ---- the frame-evaluation hook ----------------------------------------------------------- */

static PyObject *on_evaluate(PyThreadState *thread, _PyInterpreterFrame *frame, int throwflag);

/* How far down the C stack a thread may go under the hook: a quarter of it, at most 1 MiB. */
static uintptr_t lowest_stack_address(void)
{
    pthread_attr_t attr;
    void *low = NULL;
    size_t size = 0;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstack(&attr, &low, &size);
        pthread_attr_destroy(&attr);
    }
    size_t allowed = size ? size / 4 : 64 * 1024;
    if (allowed > 1024 * 1024)
        allowed = 1024 * 1024;
    return here - allowed;
}

static bool stack_is_deep(void)
{
    static __thread uintptr_t lowest __attribute__((tls_model("initial-exec")));
    if (__builtin_expect(!lowest, 0))
        lowest = lowest_stack_address();
    return (uintptr_t)__builtin_frame_address(0) < lowest;
}

static void use_profile_functions(void)
{
    source.profiling = true;
    if (source.evaluating)
        _PyInterpreterState_SetEvalFrameFunc(source.interpreter, _PyEval_EvalFrameDefault);
    source.evaluating = false;
    cover_threads();
}

/* The call that was made the `depth`-th open one on this thread has ended. */
static void leave_evaluated(struct fm_collector *c, ptrdiff_t depth, _PyInterpreterFrame *frame,
                            PyCodeObject *code, uint64_t now, PyObject *value)
{
    struct fm_agent_thread *t = fm_current[c->slot];
    if (!t || fm_thread_depth(t) < depth)
        return; /* a profile event has closed it already */
    leave_frame(c, frame, code, now, value);
}

static PyObject *on_evaluate(PyThreadState *thread, _PyInterpreterFrame *frame, int throwflag)
{
    PyCodeObject *code = frame->f_code;
    bool makes_generator = fm_is_generator(code) && frame->owner != FRAME_OWNED_BY_GENERATOR;
    if (makes_generator || thread->recursion_remaining <= 0 || thread->interp != source.interpreter)
        return _PyEval_EvalFrameDefault(thread, frame, throwflag);
    if (__builtin_expect(stack_is_deep(), 0)) {
        use_profile_functions(); /* the call below is seen by its own profile event */
        return _PyEval_EvalFrameDefault(thread, frame, throwflag);
    }
    ptrdiff_t depths[FM_SLOTS] = { 0 };
    int count = source.count;
    for (int i = 0; i < count; i++) {
        enter_frame(source.collectors[i], frame, throwflag || !fm_generator_waits(frame));
        struct fm_agent_thread *t = fm_current[source.collectors[i]->slot];
        depths[i] = t ? fm_thread_depth(t) : PTRDIFF_MAX;
    }
    PyObject *result = evaluate(thread, frame, throwflag);
    for (int i = 0; i < count && i < source.count; i++)
        leave_evaluated(source.collectors[i], depths[i], frame, code,
                        fm_collector_now(source.collectors[i]), result);
    return result;
}

/* ---- is the hook told of every call? ------------------------------------------------------ */

static unsigned probe_count;

static PyObject *on_probe(PyThreadState *thread, _PyInterpreterFrame *frame, int throwflag)
{
    probe_count++;
    return _PyEval_EvalFrameDefault(thread, frame, throwflag);
}

/* Before 3.11.4 a specialised subscription enters __getitem__ without asking the hook
 * (cpython#104405). Try it: a warm loop of 60 subscriptions must be 60 frames and those of the
 * code. */
static bool hook_sees_everything(void)
{
    static const char program[] = "class C:\n"
                                  "    def __getitem__(self, i): return i\n"
                                  "def loop(c):\n"
                                  "    for i in (0, 1, 2) * 20: c[i]\n"
                                  "loop(C())\n"
                                  "loop(C())\n";
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    PyObject *globals = PyDict_New();
    PyObject *code = globals ? Py_CompileString(program, FM_LIVE_OWN_FILE, Py_file_input) : NULL;
    probe_count = 0;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, on_probe);
    PyObject *done = code ? PyEval_EvalCode(code, globals, globals) : NULL;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, _PyEval_EvalFrameDefault);
    bool all =
        done && probe_count == 1 + 1 + 2 + 120; /* module, class body, loops, subscriptions */
    Py_XDECREF(done);
    Py_XDECREF(code);
    Py_XDECREF(globals);
    PyErr_Clear();
    return all;
}

/* Asked once: the interpreter does not change. */
static bool hook_is_exact(void)
{
    static int known = -1;
    if (known < 0)
        known = hook_sees_everything();
    return known;
}

/* ---- installing -------------------------------------------------------------------------- */

int fm_hooks_install(struct fm_collector *c)
{
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    if (source.count && source.interpreter != interpreter) {
        PyErr_SetString(PyExc_RuntimeError, "another interpreter is being profiled");
        return -1;
    }
    source.interpreter = interpreter;
    source.collectors[source.count++] = c;
    source.lines += has_lines(c);
    source.exceptions += hears_exceptions(c);
    if (c->c_calls || c->timer || c->trace_exceptions || c->trace_late || source.profiling ||
        (!source.evaluating && !hook_is_exact()) ||
        _PyInterpreterState_GetEvalFrameFunc(interpreter) != _PyEval_EvalFrameDefault) {
        use_profile_functions();
    } else if (!source.evaluating) {
        _PyInterpreterState_SetEvalFrameFunc(interpreter, on_evaluate);
        source.evaluating = true;
    }
    fm_program_watch();
    return 0;
}

bool fm_hooks_watch_generators(void)
{
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    if (source.generators || (source.count && source.interpreter != interpreter))
        return source.interpreter == interpreter;
    source.interpreter = interpreter;
    source.generators = true;
    use_profile_functions();
    fm_program_watch();
    return true;
}

int fm_hooks_mark(struct fm_collector *c, PyCodeObject *code)
{
    (void)c, (void)code; /* found by its lines when it is called */
    return 0;
}

int fm_hooks_remove(struct fm_collector *c)
{
    int kept = 0;
    for (int i = 0; i < source.count; i++) {
        if (source.collectors[i] != c) {
            source.collectors[kept++] = source.collectors[i];
        } else {
            source.lines -= has_lines(c);
            source.exceptions -= hears_exceptions(c);
        }
    }
    source.count = kept;
    if (kept || source.generators)
        return 0;
    if (source.evaluating)
        _PyInterpreterState_SetEvalFrameFunc(source.interpreter, _PyEval_EvalFrameDefault);
    PyThreadState *thread = PyInterpreterState_ThreadHead(source.interpreter);
    for (; thread; thread = PyThreadState_Next(thread)) {
        if (thread->c_profilefunc == on_profile)
            give_profile_function(thread, NULL);
        else if (thread->c_profilefunc == on_both)
            give_profile_function(thread, fm_program_profile());
        if (thread->c_tracefunc == on_trace)
            give_trace_function(thread, NULL);
    }
    source.evaluating = source.profiling = false;
    return 0;
}

#endif

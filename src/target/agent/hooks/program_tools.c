/* The program's own profile and trace functions; see program_tools.h. */
#include "target/agent/hooks/program_tools.h"

#include "target/agent/hooks/intercept.h"

/* Calls that began before it tell of their end because of us alone: in all threads from 3.12 on,
 * where instructions are the interpreter's; in this one on 3.11. */
#if FM_HAS_MONITORING
static uint64_t since_ticks;
#else
static __thread uint64_t since_ticks __attribute__((tls_model("initial-exec")));
#endif

/* The sys module that is looked after, which every interpreter has its own of, and one that is begun
 * anew has another. Held, so that no other comes to lie there. */
static PyObject *watched;
static Py_tracefunc profile_function, trace_function;

Py_tracefunc fm_program_profile(void)
{
    return profile_function;
}

Py_tracefunc fm_program_trace(void)
{
    return trace_function;
}

bool fm_program_hides(int what, PyObject *arg)
{
    if ((what != PyTrace_C_RETURN && what != PyTrace_C_EXCEPTION) || !PyCFunction_Check(arg))
        return false;
    uintptr_t key = (uintptr_t)((PyCFunctionObject *)arg)->m_ml;
    for (int slot = 0; slot < FM_SLOTS; slot++) {
        struct fm_collector *c = fm_collector_at(slot);
        struct fm_agent_thread *t = c && c->running && !c->timer ? fm_current[slot] : NULL;
        if (t && t->top->key == key && t->top->enter_ticks < since_ticks)
            return true;
    }
    return false;
}

/* In this thread, or in all of them. */
static void was_set(PyThreadState *thread, bool everywhere, void (*tell)(PyThreadState *thread))
{
    if (everywhere)
        thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    for (; thread; thread = everywhere ? PyThreadState_Next(thread) : NULL)
        tell(thread);
}

/* The C function is the same for every object; it is learned when it is first given. */
static PyObject *set_profile(PyCFunction original, PyObject *self, PyObject *object, bool all)
{
    if (self != watched)
        return original(self, object);
    PyThreadState *thread = PyThreadState_Get();
    if (!fm_hooks_others_listen(thread))
        since_ticks = fm_clock_ticks();
    PyObject *result = original(self, object);
    if (result && object != Py_None && !profile_function)
        profile_function = thread->c_profilefunc;
    if (result)
        was_set(thread, all, fm_hooks_profile_was_set);
    return result;
}

static PyObject *set_trace(PyCFunction original, PyObject *self, PyObject *object, bool all)
{
    PyObject *result = original(self, object);
    if (!result || self != watched)
        return result;
    PyThreadState *thread = PyThreadState_Get();
    if (object != Py_None && !trace_function)
        trace_function = thread->c_tracefunc;
    was_set(thread, all, fm_hooks_trace_was_set);
    return result;
}

static PyCFunction setprofile, setprofile_all, settrace, settrace_all;

static PyObject *on_setprofile(PyObject *self, PyObject *object)
{
    return set_profile(setprofile, self, object, false);
}

static PyObject *on_setprofile_all(PyObject *self, PyObject *object)
{
    return set_profile(setprofile_all, self, object, true);
}

static PyObject *on_settrace(PyObject *self, PyObject *object)
{
    return set_trace(settrace, self, object, false);
}

static PyObject *on_settrace_all(PyObject *self, PyObject *object)
{
    return set_trace(settrace_all, self, object, true);
}

static void intercept(const char *name, PyCFunction ours, PyCFunction *original)
{
    fm_intercept(PySys_GetObject(name), name, ours, original);
}

void fm_program_watch(void)
{
    PyObject *function = PySys_GetObject("setprofile");
    if (function && PyCFunction_CheckExact(function))
        Py_XSETREF(watched, Py_XNewRef(PyCFunction_GET_SELF(function)));
    intercept("setprofile", on_setprofile, &setprofile);
    intercept("_setprofileallthreads", on_setprofile_all, &setprofile_all);
    intercept("settrace", on_settrace, &settrace);
    intercept("_settraceallthreads", on_settrace_all, &settrace_all);
}

/* Generators and coroutines that are in a region; see region_frames.h. */
#define FM_PYTHON_FRAMES
#include "target/agent/python.h"

#include <stdbool.h>
#include <string.h>

#include "target/agent/regions/foreign.h"
#include "target/agent/regions/region_frames.h"
#include "target/agent/regions/regions.h"

/* ---- whose it is ------------------------------------------------------------------------- */

const void *fm_region_frames_plain[FM_PLAIN_CODES];

static bool is_generator(const _PyInterpreterFrame *frame)
{
    return frame->owner == FRAME_OWNED_BY_GENERATOR;
}

static bool is_of_contextlib(const _PyInterpreterFrame *frame)
{
    static const char file[] = "/contextlib.py";
    const Py_ssize_t len = sizeof file - 1;
    PyObject *name = fm_region_frames_code(frame)->co_filename;
    Py_ssize_t all = PyUnicode_GET_LENGTH(name);
    return PyUnicode_KIND(name) == PyUnicode_1BYTE_KIND && all >= len &&
           memcmp(PyUnicode_1BYTE_DATA(name) + all - len, file, (size_t)len) == 0;
}

/* The frame, or the first older one that is Python code; NULL if there is none. */
static const _PyInterpreterFrame *python_frame(const _PyInterpreterFrame *frame)
{
    while (frame && (unsigned char)frame->owner >= FM_OWNER_FOREIGN)
        frame = frame->previous;
    return frame;
}

static const _PyInterpreterFrame *owner(void)
{
    const _PyInterpreterFrame *frame = python_frame(fm_python_frame());
    while (frame) {
        const _PyInterpreterFrame *caller = python_frame(frame->previous);
        bool driven = is_generator(frame) && caller && is_of_contextlib(caller);
        if (!driven && !is_of_contextlib(frame))
            break;
        frame = caller;
    }
    return frame;
}

struct fm_region_place fm_region_frames_owner(void)
{
    return fm_region_frames_place(owner());
}

struct fm_region_place fm_region_frames_innermost(void)
{
    return fm_region_frames_place(python_frame(fm_python_own_frame()));
}

/* ---- hearing of it ----------------------------------------------------------------------- */

#if FM_HAS_MONITORING

static struct {
    int tool; /* −1: there is none to be had */
    long local, thrown;
    long calls; /* of code that is followed: 0 before there is some, −1: they cannot be heard of */
    bool asked;
    Py_ssize_t marked; /* code extra: events of this code are on */
    PyObject *monitoring;
} listening;

static PyObject *on_yield(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self, (void)args, (void)count;
    fm_regions_suspend(fm_python_frame());
    Py_RETURN_NONE;
}

static PyObject *on_resume(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self, (void)args, (void)count;
    fm_regions_resume(fm_python_frame());
    Py_RETURN_NONE;
}

/* Of code that is followed: the code is the first argument of each event. */
static PyObject *on_start(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count && PyCode_Check(args[0]))
        fm_foreign_enter((PyCodeObject *)args[0], fm_python_frame());
    Py_RETURN_NONE;
}

static PyObject *on_end(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count && PyCode_Check(args[0]))
        fm_foreign_leave((PyCodeObject *)args[0], fm_python_frame());
    Py_RETURN_NONE;
}

static PyMethodDef starts = { "on_start", (PyCFunction)(void (*)(void))on_start, METH_FASTCALL,
                              NULL };
static PyMethodDef ends = { "on_end", (PyCFunction)(void (*)(void))on_end, METH_FASTCALL, NULL };
static PyMethodDef yields = { "on_yield", (PyCFunction)(void (*)(void))on_yield, METH_FASTCALL,
                              NULL };
static PyMethodDef resumes = { "on_resume", (PyCFunction)(void (*)(void))on_resume, METH_FASTCALL,
                               NULL };

/* Register a callback for an event; its bit, or −1. */
static long listen_to(const char *event, PyMethodDef *definition)
{
    PyObject *events = PyObject_GetAttrString(listening.monitoring, "events");
    PyObject *bit = events ? PyObject_GetAttrString(events, event) : NULL;
    PyObject *function = bit ? PyCFunction_New(definition, NULL) : NULL;
    PyObject *old = function ? PyObject_CallMethod(listening.monitoring, "register_callback", "iOO",
                                                   listening.tool, bit, function)
                             : NULL;
    long value = old ? PyLong_AsLong(bit) : -1;
    Py_XDECREF(old);
    Py_XDECREF(function);
    Py_XDECREF(bit);
    Py_XDECREF(events);
    return value;
}

static int take_tool(void)
{
    for (int id = 5; id >= 0; id--) {
        PyObject *done =
            PyObject_CallMethod(listening.monitoring, "use_tool_id", "is", id, "fathom regions");
        Py_XDECREF(done);
        if (done)
            return id;
        PyErr_Clear();
    }
    return -1;
}

/* Throwing cannot be heard of by code, before 3.15: of all of it, then. */
static bool listen_at_all(void)
{
    if (listening.asked)
        return listening.tool >= 0;
    listening.asked = true;
    listening.monitoring = Py_XNewRef(PySys_GetObject("monitoring"));
    listening.marked = fm_python_code_extra_request(NULL);
    listening.tool = listening.monitoring && listening.marked >= 0 ? take_tool() : -1;
    if (listening.tool < 0)
        return false;
    long yield = listen_to("PY_YIELD", &yields), resume = listen_to("PY_RESUME", &resumes);
    long thrown = listen_to("PY_THROW", &resumes);
    PyObject *done =
        yield < 0 || resume < 0 || thrown < 0
            ? NULL
            : PyObject_CallMethod(listening.monitoring, "set_events", "il", listening.tool, thrown);
    Py_XDECREF(done);
    listening.local = yield | resume;
    listening.thrown = thrown;
    if (!done)
        listening.tool = -1;
    return done;
}

static bool listen_in(PyCodeObject *code, long events)
{
    PyObject *done = PyObject_CallMethod(listening.monitoring, "set_local_events", "iOl",
                                         listening.tool, code, events);
    Py_XDECREF(done);
    return done && fm_python_code_extra_set(code, listening.marked, &listening) == 0;
}

static bool watch(PyCodeObject *code)
{
    if (!listen_at_all())
        return false;
    return fm_python_code_extra(code, listening.marked) == &listening ||
           listen_in(code, listening.local);
}

/* Frames that an exception ends are told of for all code, too. */
static bool listen_to_calls(void)
{
    if (listening.calls)
        return listening.calls > 0;
    long start = listen_to("PY_START", &starts), end = listen_to("PY_RETURN", &ends);
    long unwind = listen_to("PY_UNWIND", &ends);
    PyObject *done = start < 0 || end < 0 || unwind < 0
                         ? NULL
                         : PyObject_CallMethod(listening.monitoring, "set_events", "il",
                                               listening.tool, listening.thrown | unwind);
    Py_XDECREF(done);
    listening.calls = done ? start | end : -1;
    return done;
}

bool fm_region_frames_follow(PyCodeObject *code)
{
    return listen_at_all() && listen_to_calls() &&
           listen_in(code, listening.local | listening.calls);
}

#else

static bool watch(PyCodeObject *code)
{
    (void)code;
    return fm_hooks_watch_generators();
}

bool fm_region_frames_follow(PyCodeObject *code)
{
    return watch(code);
}

#endif

const void *fm_region_frames_watch(void)
{
    const _PyInterpreterFrame *running = fm_python_frame(), *frame = owner();
    if (frame && frame == running && frame->owner == FRAME_OWNED_BY_THREAD) {
        const void *code = fm_region_frames_code(frame);
        fm_region_frames_plain[(uintptr_t)code >> 5 & (FM_PLAIN_CODES - 1)] = code;
    }
    if (!frame || !is_generator(frame))
        return NULL;
    struct fm_raised raised = fm_python_put_aside();
    bool watched = watch(fm_region_frames_code(frame));
    PyErr_Clear();
    fm_python_put_back(raised);
    return watched ? frame : NULL;
}

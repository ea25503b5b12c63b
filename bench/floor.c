/*
 * The cheapest receivers of the interpreter's events there can be, to learn what the events alone
 * cost. A receiver does nothing, or reads the time-stamp counter and stores 16 bytes.
 *
 * 3.12 and later: callback(clock) gives a callable for sys.monitoring, called by vectorcall.
 * 3.11: start(c_calls, clock) and stop(); with C calls a profile function of this thread, without
 * them the frame-evaluation hook, as Fathom does it.
 *
 * Built by bench/run in its cache folder. Threads: the GIL protects the ring.
 */
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>
#include <time.h>

#define RING 65536

static struct {
    uint64_t at;
    const void *what;
} ring[RING];
static uint32_t ring_next;

static inline void record(const void *what)
{
#if defined(__x86_64__)
    uint64_t now = __builtin_ia32_rdtsc();
#else
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    uint64_t now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
#endif
    uint32_t at = ring_next++ % RING;
    ring[at].at = now;
    ring[at].what = what;
}

#if PY_VERSION_HEX >= 0x030c0000

struct callback {
    PyObject_HEAD
    vectorcallfunc vectorcall;
};

static PyObject *on_event_empty(PyObject *self, PyObject *const *args, size_t nargs,
                                PyObject *names)
{
    (void)self, (void)args, (void)nargs, (void)names;
    Py_RETURN_NONE;
}

static PyObject *on_event_clock(PyObject *self, PyObject *const *args, size_t nargs,
                                PyObject *names)
{
    (void)self, (void)nargs, (void)names;
    record(args[0]);
    Py_RETURN_NONE;
}

static void callback_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef callback_members[] = {
    { "__vectorcalloffset__", T_PYSSIZET, offsetof(struct callback, vectorcall), READONLY, NULL },
    { NULL, 0, 0, 0, NULL },
};

static PyType_Slot callback_slots[] = {
    { Py_tp_dealloc, (void *)callback_dealloc },
    { Py_tp_call, (void *)PyVectorcall_Call },
    { Py_tp_members, callback_members },
    { 0, NULL },
};

static PyType_Spec callback_spec = {
    .name = "fathom_floor.callback",
    .basicsize = sizeof(struct callback),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = callback_slots,
};

static PyObject *new_callback(PyObject *module, PyObject *clock)
{
    static PyTypeObject *type;
    (void)module;
    if (!type && !(type = (PyTypeObject *)PyType_FromSpec(&callback_spec)))
        return NULL;
    struct callback *self = (struct callback *)type->tp_alloc(type, 0);
    if (self)
        self->vectorcall = PyObject_IsTrue(clock) ? on_event_clock : on_event_empty;
    return (PyObject *)self;
}

static PyMethodDef methods[] = {
    { "callback", new_callback, METH_O, NULL },
    { NULL, NULL, 0, NULL },
};

#else

static int on_profile_empty(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    (void)self, (void)frame, (void)what, (void)arg;
    return 0;
}

static int on_profile_clock(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    (void)self, (void)what, (void)arg;
    record(frame);
    return 0;
}

static PyObject *evaluate_empty(PyThreadState *ts, struct _PyInterpreterFrame *frame, int throwing)
{
    return _PyEval_EvalFrameDefault(ts, frame, throwing);
}

static PyObject *evaluate_clock(PyThreadState *ts, struct _PyInterpreterFrame *frame, int throwing)
{
    record(frame);
    PyObject *result = _PyEval_EvalFrameDefault(ts, frame, throwing);
    record(frame);
    return result;
}

static PyObject *start(PyObject *module, PyObject *args)
{
    (void)module;
    int c_calls, clock;
    if (!PyArg_ParseTuple(args, "pp", &c_calls, &clock))
        return NULL;
    if (c_calls)
        PyEval_SetProfile(clock ? on_profile_clock : on_profile_empty, NULL);
    else
        _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(),
                                             clock ? evaluate_clock : evaluate_empty);
    Py_RETURN_NONE;
}

static PyObject *stop(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    PyEval_SetProfile(NULL, NULL);
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), _PyEval_EvalFrameDefault);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    { "start", start, METH_VARARGS, NULL },
    { "stop", stop, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};

#endif

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "fathom_floor",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_fathom_floor(void)
{
    return PyModule_Create(&module_def);
}

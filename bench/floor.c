/*
 * The cheapest receivers of the interpreter's events there can be, to learn what the events alone
 * cost. A receiver does nothing (0), reads the time-stamp counter and stores 16 bytes (1), or only reads
 * the counter (2).
 *
 * 3.12 and later: callback(what) gives a callable for sys.monitoring, called by vectorcall.
 * 3.11: start(c_calls, what) and stop(); with C calls a profile function of this thread, without
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

static inline uint64_t read_clock(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
#endif
}

static inline void record(const void *what)
{
    uint32_t at = ring_next++ % RING;
    ring[at].at = read_clock();
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

static PyObject *on_event_read(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    (void)self, (void)args, (void)nargs, (void)names;
    read_clock();
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

static PyObject *new_callback(PyObject *module, PyObject *what)
{
    static const vectorcallfunc all[] = { on_event_empty, on_event_clock, on_event_read };
    static PyTypeObject *type;
    (void)module;
    if (!type && !(type = (PyTypeObject *)PyType_FromSpec(&callback_spec)))
        return NULL;
    long chosen = PyLong_AsLong(what);
    if (chosen < 0 || chosen > 2)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "0, 1 or 2");
    struct callback *self = (struct callback *)type->tp_alloc(type, 0);
    if (self)
        self->vectorcall = all[chosen];
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

static int on_profile_read(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    (void)self, (void)frame, (void)what, (void)arg;
    read_clock();
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

static PyObject *evaluate_read(PyThreadState *ts, struct _PyInterpreterFrame *frame, int throwing)
{
    read_clock();
    PyObject *result = _PyEval_EvalFrameDefault(ts, frame, throwing);
    read_clock();
    return result;
}

static PyObject *start(PyObject *module, PyObject *args)
{
    static const Py_tracefunc profiles[] = { on_profile_empty, on_profile_clock, on_profile_read };
    static const _PyFrameEvalFunction hooks[] = { evaluate_empty, evaluate_clock, evaluate_read };
    (void)module;
    int c_calls, what;
    if (!PyArg_ParseTuple(args, "pi", &c_calls, &what))
        return NULL;
    if (what < 0 || what > 2)
        return PyErr_Format(PyExc_ValueError, "0, 1 or 2");
    if (c_calls)
        PyEval_SetProfile(profiles[what], NULL);
    else
        _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), hooks[what]);
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

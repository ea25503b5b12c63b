/*
 * CPython as the agent needs it: the only header of the agent that compares versions.
 *
 * Everything else in this folder is written against the names defined here.
 */
#ifndef FM_AGENT_PYTHON_H
#define FM_AGENT_PYTHON_H

#define PY_SSIZE_T_CLEAN
#ifdef FM_PYTHON_FRAMES /* asked for by heap.c, which tells the heap library what frames look like */
#define Py_BUILD_CORE_MODULE 1
#endif
#include <Python.h>
#include <stdbool.h>
#include <string.h>

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x03100000
#error "the agent knows CPython 3.11 to 3.15"
#endif
#ifdef Py_GIL_DISABLED
#error "the agent relies on the GIL; free-threaded builds are not supported yet"
#endif

/* From 3.12 on, sys.monitoring (PEP 669) reports calls; before, the profile function and the
 * frame-evaluation hook (PEP 523) do. */
#define FM_HAS_MONITORING (PY_VERSION_HEX >= 0x030c0000)

/* Do instructions that cause no event take longer while we listen? All of them on 3.11 with a profile
 * or trace function; measured on 3.12 too, by a tenth; not from 3.13 on. */
#define FM_SLOWS_INSTRUCTIONS (PY_VERSION_HEX < 0x030d0000)

/* Does `with` bind both methods of its object each time, which costs two allocations? From 3.14 on it calls
 * method descriptors as they are. */
#define FM_WITH_BINDS (PY_VERSION_HEX < 0x030e0000)

/* The address of the running Python frame. For a generator it is part of the generator object, so
 * it names the generator from its start to its end. Never dereferenced. */
static inline const void *fm_python_frame(void)
{
#if PY_VERSION_HEX >= 0x030d0000
    return PyThreadState_GetUnchecked()->current_frame;
#else
    return _PyThreadState_UncheckedGet()->cframe->current_frame;
#endif
}

/* The same of a thread that need not have the GIL: its frames are its own. NULL: Python does not know it. */
static inline const void *fm_python_own_frame(void)
{
    const PyThreadState *state = PyGILState_GetThisThreadState();
#if PY_VERSION_HEX >= 0x030d0000
    return state ? state->current_frame : NULL;
#else
    return state ? state->cframe->current_frame : NULL;
#endif
}

/* Does this thread run Python now? Before 3.12 the one that runs is known, and which is ours. */
static inline bool fm_python_has_gil(void)
{
#if PY_VERSION_HEX >= 0x030d0000
    return PyThreadState_GetUnchecked() != NULL;
#elif PY_VERSION_HEX >= 0x030c0000
    return _PyThreadState_UncheckedGet() != NULL;
#else
    PyThreadState *ours = PyGILState_GetThisThreadState();
    return ours && _PyThreadState_UncheckedGet() == ours;
#endif
}

/* Numbers of a code object that the agent keeps beside it ("code extra"), read without a call. The
 * layout of this record is not public; fm_python_code_extra_works() proves it before it is used. */
struct fm_code_extra {
    Py_ssize_t size;
    void *slots[1];
};

static inline void *fm_python_code_extra(PyCodeObject *code, Py_ssize_t index)
{
    struct fm_code_extra *extra = code->co_extra;
    return extra && index < extra->size ? extra->slots[index] : NULL;
}

static inline Py_ssize_t fm_python_code_extra_request(freefunc free_it)
{
#if PY_VERSION_HEX >= 0x030c0000
    return PyUnstable_Eval_RequestCodeExtraIndex(free_it);
#else
    return _PyEval_RequestCodeExtraIndex(free_it);
#endif
}

/* CPython makes room for everybody who has asked for a slot, and frees what is in each with its
 * owner's function, NULL too: others would hear of code objects that they never marked, at the end
 * of the interpreter even after they are gone. So the record ends with our slot, unless others
 * wrote beyond it; CPython makes it longer when they do. */
static inline int fm_python_code_extra_set(PyCodeObject *code, Py_ssize_t index, void *value)
{
    struct fm_code_extra *extra = code->co_extra;
    Py_ssize_t needed = extra && extra->size > index ? extra->size : index + 1;
#if PY_VERSION_HEX >= 0x030c0000
    int rc = PyUnstable_Code_SetExtra((PyObject *)code, index, value);
#else
    int rc = _PyCode_SetExtra((PyObject *)code, index, value);
#endif
    extra = code->co_extra;
    if (rc == 0 && extra && extra->size > needed && extra->slots[index] == value)
        extra->size = needed;
    return rc;
}

static inline int fm_python_code_extra_works(PyCodeObject *code, Py_ssize_t index)
{
    int probe, ok;
    if (fm_python_code_extra_set(code, index, &probe) < 0)
        return 0;
    ok = fm_python_code_extra(code, index) == &probe;
    return fm_python_code_extra_set(code, index, NULL) == 0 && ok;
}

/* The raised exception, put aside while the agent calls Python's C API. */
#if PY_VERSION_HEX >= 0x030c0000
struct fm_raised {
    PyObject *value;
};
static inline struct fm_raised fm_python_put_aside(void)
{
    return (struct fm_raised){ PyErr_GetRaisedException() };
}
static inline void fm_python_put_back(struct fm_raised raised)
{
    PyErr_SetRaisedException(raised.value);
}
#else
struct fm_raised {
    PyObject *type, *value, *traceback;
};
static inline struct fm_raised fm_python_put_aside(void)
{
    struct fm_raised raised;
    PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
    return raised;
}
static inline void fm_python_put_back(struct fm_raised raised)
{
    PyErr_Restore(raised.type, raised.value, raised.traceback);
}
#endif

/* What a weak reference points to: a new reference, or NULL if it is gone. */
static inline PyObject *fm_python_weak_target(PyObject *reference)
{
    PyObject *target = NULL;
#if PY_VERSION_HEX >= 0x030d0000
    if (PyWeakref_GetRef(reference, &target) < 0)
        PyErr_Clear();
#else
    target = PyWeakref_GetObject(reference);
    target = target && target != Py_None ? Py_NewRef(target) : NULL;
#endif
    return target;
}

/* The dictionary of a type, borrowed for as long as the type lives; NULL if it has none. */
static inline PyObject *fm_python_type_dict(PyTypeObject *type)
{
#if PY_VERSION_HEX >= 0x030c0000
    PyObject *dict = PyType_GetDict(type);
    Py_XDECREF(dict); /* the type keeps it */
    return dict;
#else
    return type->tp_dict;
#endif
}

/* Can its characters be read? Before 3.12 a str may be one of wchar_t. */
static inline bool fm_python_str_is_ready(PyObject *str)
{
#if PY_VERSION_HEX >= 0x030c0000
    (void)str;
    return true;
#else
    return PyUnicode_IS_READY(str);
#endif
}

/* The length of an int, without its sign. */
static inline size_t fm_python_int_bits(PyObject *number)
{
#if PY_VERSION_HEX >= 0x030c0000
    const struct _PyLongValue *value = &((PyLongObject *)number)->long_value;
    size_t digits = value->lv_tag >> 3;
    const digit *digit_at = value->ob_digit;
#else
    size_t digits = (size_t)Py_ABS(Py_SIZE(number));
    const digit *digit_at = ((PyLongObject *)number)->ob_digit;
#endif
    unsigned top = digits ? digit_at[digits - 1] : 0;
    return top ? (digits - 1) * PyLong_SHIFT + 32 - (unsigned)__builtin_clz(top) : 0;
}

#ifdef FM_PYTHON_FRAMES
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe_structs.h>
#endif
#include <internal/pycore_frame.h>
#include <internal/pycore_gc.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#pragma GCC diagnostic pop

#if PY_VERSION_HEX >= 0x030d0000
#define FM_THREAD_FRAME offsetof(PyThreadState, current_frame)
#define FM_CFRAME_FRAME UINT32_MAX
#define FM_FRAME_INSTR  offsetof(_PyInterpreterFrame, instr_ptr)
#define FM_FRAME_CODE   offsetof(_PyInterpreterFrame, f_executable)
#else
#define FM_THREAD_FRAME offsetof(PyThreadState, cframe)
#define FM_CFRAME_FRAME offsetof(_PyCFrame, current_frame)
#define FM_FRAME_INSTR  offsetof(_PyInterpreterFrame, prev_instr)
#define FM_FRAME_CODE   offsetof(_PyInterpreterFrame, f_code)
#endif
#if PY_VERSION_HEX >= 0x030c0000
#define FM_THREAD_INTERPRETER offsetof(PyThreadState, interp)
#else
#define FM_THREAD_INTERPRETER UINT32_MAX
#endif
/* The n-th of the variables that a frame has in itself; borrowed, NULL if it is not bound. From 3.14 on there are
 * marks in the lowest bits, and numbers that are no objects. */
static inline PyObject *fm_python_frame_local(const void *frame, int n)
{
    uintptr_t bits;
    memcpy(&bits,
           (const char *)frame + offsetof(_PyInterpreterFrame, localsplus) +
               (size_t)n * sizeof bits,
           sizeof bits);
    return (bits & 3) == 3 ? NULL : (PyObject *)(bits & ~(uintptr_t)7);
}

/* Are the variables that inner functions share in cells yet? A frame makes them with its first instructions; the
 * hook of 3.11 comes before these. */
static inline bool fm_python_frame_has_cells(const void *frame)
{
#if PY_VERSION_HEX >= 0x030c0000
    (void)frame;
    return true;
#else
    const _PyInterpreterFrame *f = frame;
    return f->prev_instr >= _PyCode_CODE(f->f_code);
#endif
}

#define FM_OWNER_FOREIGN 3 /* 3.12 and later: frames of the C stack, of the interpreter itself */

static inline void *fm_python_current_thread(void)
{
#if PY_VERSION_HEX >= 0x030d0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

/* Hear of every new object, with its type; -1 if this Python cannot say, or somebody else listens. */
#define FM_HAS_TYPES (PY_VERSION_HEX >= 0x030d0000)
typedef void fm_python_new_object(const void *object, const void *type);
static inline int fm_python_trace_objects(fm_python_new_object *tell);
/* Did somebody else take that place since? CPython tells nobody who loses it, before 3.15. */
static inline bool fm_python_types_ended(void);
#if FM_HAS_TYPES
static fm_python_new_object *fm_python_tell;
static int fm_python_on_reference(PyObject *object, PyRefTracerEvent event, void *data)
{
    (void)data;
    if (event == PyRefTracer_CREATE)
        fm_python_tell(object, Py_TYPE(object));
    return 0;
}
static inline int fm_python_trace_objects(fm_python_new_object *tell)
{
    void *data;
    if (PyRefTracer_GetTracer(&data))
        return -1;
    fm_python_tell = tell;
    if (PyRefTracer_SetTracer(fm_python_on_reference, NULL) == 0)
        return 0;
    fm_python_tell = NULL;
    return -1;
}
static inline bool fm_python_types_ended(void)
{
    void *data;
    return fm_python_tell && PyRefTracer_GetTracer(&data) != fm_python_on_reference;
}
#else
static inline int fm_python_trace_objects(fm_python_new_object *tell)
{
    (void)tell;
    return -1;
}
static inline bool fm_python_types_ended(void)
{
    return false;
}
#endif

/* Attached or not. In a second interpreter the one that runs is not the one that the thread began with;
 * before 3.12 the running one may be another thread's. */
static inline void *fm_python_thread_of_this(void)
{
#if PY_VERSION_HEX >= 0x030c0000
    PyThreadState *running = fm_python_current_thread();
    if (running)
        return running;
#endif
    return PyGILState_GetThisThreadState();
}

/* Before 3.12 making an object may run the garbage collector, in the middle of an allocation. */
static inline int fm_python_gc_hold(PyThreadState *thread)
{
#if PY_VERSION_HEX < 0x030c0000
    int collecting = thread->interp->gc.collecting;
    thread->interp->gc.collecting = 1;
    return collecting;
#else
    (void)thread;
    return 0;
#endif
}

static inline void fm_python_gc_release(PyThreadState *thread, int collecting)
{
#if PY_VERSION_HEX < 0x030c0000
    thread->interp->gc.collecting = collecting;
#else
    (void)thread;
    (void)collecting;
#endif
}
#endif

#endif

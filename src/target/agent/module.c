/*
 * The Python face of the agent: the module fathom._agent with the class Collector. The package
 * python/fathom builds everything users see (Profile, profile) on it.
 */
#include "target/agent/bridge.h"
#include "target/agent/collector.h"
#include "target/agent/functions.h"
#include "target/agent/heap.h"
#include "target/agent/lines/decorator.h"
#include "target/agent/lines/line_memory.h"
#include "target/agent/lines/lines.h"
#include "target/agent/regions/region_calls.h"
#include "target/agent/regions/region_type.h"
#include "target/agent/start.h"
#include "target/agent/trace/late.h"

struct collector_object {
    PyObject_HEAD
    struct fm_collector *collector; /* NULL until first enabled, and when it gave its slot up */
    PyObject *saved;                /* [(snapshot, functions)] of earlier collectors */
    PyObject *timer;
    double timer_unit;
    int builtins, calls;
    PyObject *lines;  /* patterns as bytes, or NULL: no lines */
    PyObject *marked; /* what the last collector's `marked` was when it gave its slot up, or NULL */
};

static int collector_init(struct collector_object *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "timer", "timeunit", "builtins", "calls", "lines", NULL };
    PyObject *timer = NULL;
    const char *lines = NULL;
    double unit = 0.0;
    int builtins = 1, calls = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Odppz", names, &timer, &unit, &builtins,
                                     &calls, &lines))
        return -1;
    Py_XSETREF(self->lines, lines ? PyBytes_FromString(lines) : NULL);
    self->calls = calls;
    Py_XSETREF(self->saved, PyList_New(0));
    if (!self->saved)
        return -1;
    Py_XSETREF(self->timer, timer && timer != Py_None ? Py_NewRef(timer) : NULL);
    self->timer_unit = unit;
    self->builtins = builtins;
    return 0;
}

/* What the collector holds, as (snapshot, functions). */
static PyObject *recorded(struct fm_collector *c)
{
    PyObject *snapshot = fm_collector_snapshot(c);
    PyObject *functions = snapshot ? fm_functions_list(c) : NULL;
    PyObject *pair = functions ? PyTuple_Pack(2, snapshot, functions) : NULL;
    Py_XDECREF(snapshot);
    Py_XDECREF(functions);
    return pair;
}

static int give_up_slot(struct fm_collector *c)
{
    struct collector_object *self = c->owner;
    PyObject *pair = recorded(c);
    if (!pair || PyList_Append(self->saved, pair) < 0) {
        Py_XDECREF(pair);
        return -1;
    }
    Py_DECREF(pair);
    self->collector = NULL;
    Py_XSETREF(self->marked, c->marked);
    c->marked = NULL;
    fm_collector_free(c);
    return 0;
}

/* Mark again in a new collector what was marked in the last. */
static int mark_again(struct fm_collector *c, PyObject *marked)
{
    PyObject *code;
    for (Py_ssize_t at = 0; marked && PyDict_Next(marked, &at, NULL, &code);)
        if (fm_lines_mark(c, (PyCodeObject *)code) < 0)
            return -1;
    return 0;
}

/* The collector, made when first needed: a slot is taken only by those that record. */
static struct fm_collector *need_collector(struct collector_object *self)
{
    struct fm_options options = { .calls = self->calls,
                                  .lines = self->lines ? PyBytes_AS_STRING(self->lines) : NULL,
                                  .c_calls = self->builtins,
                                  .keep_code = true,
                                  .timer = self->timer,
                                  .timer_unit = self->timer_unit };
    if (self->collector)
        return self->collector;
    struct fm_collector *c = fm_collector_new(&options);
    if (!c || mark_again(c, self->marked) < 0) {
        fm_collector_free(c);
        return NULL;
    }
    c->owner = self;
    c->give_up = give_up_slot;
    self->collector = c;
    return c;
}

static PyObject *collector_enable(struct collector_object *self, PyObject *args)
{
    int builtins = self->builtins;
    if (!PyArg_ParseTuple(args, "|p", &builtins))
        return NULL;
    struct fm_collector *c = need_collector(self);
    if (!c)
        return NULL;
    if (!c->running) {
        self->builtins = builtins;
        c->c_calls = builtins && c->calls;
    }
    if (fm_collector_start(c) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *collector_disable(struct collector_object *self, PyObject *unused)
{
    (void)unused;
    if (self->collector && fm_collector_pause(self->collector) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *collector_clear(struct collector_object *self, PyObject *unused)
{
    (void)unused;
    if (self->collector && fm_collector_clear(self->collector) < 0)
        return NULL;
    if (PyList_SetSlice(self->saved, 0, PyList_GET_SIZE(self->saved), NULL) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *collector_mark_lines(struct collector_object *self, PyObject *object)
{
    if (!self->lines) {
        PyErr_SetString(PyExc_TypeError, "this collector was made without lines");
        return NULL;
    }
    struct fm_collector *c = need_collector(self);
    int marked = c ? fm_decorator_mark(c, object) : -1;
    return marked < 0 ? NULL : PyLong_FromLong(marked);
}

static PyObject *collector_snapshots(struct collector_object *self, PyObject *unused)
{
    (void)unused;
    PyObject *all = PyList_GetSlice(self->saved, 0, PyList_GET_SIZE(self->saved));
    PyObject *last = all && self->collector ? recorded(self->collector) : NULL;
    if (all && self->collector && (!last || PyList_Append(all, last) < 0))
        Py_CLEAR(all);
    Py_XDECREF(last);
    return all;
}

static void collector_dealloc(struct collector_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    fm_collector_free(self->collector);
    Py_XDECREF(self->timer);
    Py_XDECREF(self->saved);
    Py_XDECREF(self->lines);
    Py_XDECREF(self->marked);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyMethodDef collector_methods[] = {
    { "enable", (PyCFunction)collector_enable, METH_VARARGS, "Start recording." },
    { "disable", (PyCFunction)collector_disable, METH_NOARGS, "Stop recording." },
    { "clear", (PyCFunction)collector_clear, METH_NOARGS, "Forget what was recorded." },
    { "mark_lines", (PyCFunction)collector_mark_lines, METH_O,
      "Record the lines of the code behind this object; returns how many code objects." },
    { "snapshots", (PyCFunction)collector_snapshots, METH_NOARGS,
      "[(live store as bytes, {id: code object or name of each function in it}), …]" },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot collector_slots[] = {
    { Py_tp_doc, "Records every call of this process until disabled." },
    { Py_tp_init, (void *)collector_init },
    { Py_tp_new, (void *)PyType_GenericNew },
    { Py_tp_dealloc, (void *)collector_dealloc },
    { Py_tp_methods, collector_methods },
    { 0, NULL },
};

static PyType_Spec collector_spec = {
    .name = "fathom._agent.Collector",
    .basicsize = sizeof(struct collector_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = collector_slots,
};

static PyObject *module_convert(PyObject *module, PyObject *args)
{
    PyObject *snapshots;
    const char *format;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!s", &PyList_Type, &snapshots, &format))
        return NULL;
    return fm_bridge_convert(snapshots, format);
}

static PyObject *module_save(PyObject *module, PyObject *args)
{
    PyObject *snapshots, *path;
    int overwrite = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O&|p", &PyList_Type, &snapshots, PyUnicode_FSConverter, &path,
                          &overwrite))
        return NULL;
    int rc = fm_bridge_save(snapshots, PyBytes_AS_STRING(path), overwrite);
    Py_DECREF(path);
    if (rc < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Mark what is behind an object in the run's own collector, if it records that. */
static PyObject *mark_if(bool records, PyObject *object)
{
    if (records && fm_decorator_mark(fm_start_collector(), object) < 0)
        return NULL;
    return PyBool_FromLong(records);
}

static PyObject *module_mark_lines(PyObject *module, PyObject *object)
{
    struct fm_collector *c = fm_start_collector();
    (void)module;
    return mark_if(c && c->lines_on && !c->lines_of_memory, object);
}

static PyObject *module_mark_memory_lines(PyObject *module, PyObject *object)
{
    struct fm_collector *c = fm_start_collector();
    (void)module;
    bool records = c && (c->lines_on || c->lines_waiting) && !fm_line_memory_is_late();
    return mark_if(records && fm_line_memory_meter(), object);
}

static PyObject *module_memory_alive(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return fm_heap_alive(false);
}

static PyObject *module_memory_contexts(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return fm_heap_alive(true);
}

static PyObject *module_stretch_begin(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromLongLong(fm_heap_stretch_begin());
}

static PyObject *module_stretch_peak(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromLongLong(fm_heap_stretch_peak());
}

static PyObject *module_stretch_own_peak(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromLongLong(fm_heap_stretch_own_peak());
}

static PyObject *module_stretch_end(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromLongLong(fm_heap_stretch_end());
}

static PyObject *module_memory_begin(PyObject *module, PyObject *args)
{
    PyObject *folder;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &folder))
        return NULL;
    int rc = fm_heap_begin(PyBytes_AS_STRING(folder));
    Py_DECREF(folder);
    return rc < 0 ? NULL : PyBool_FromLong(rc == 0);
}

static PyObject *module_memory_over(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    fm_heap_over();
    Py_RETURN_NONE;
}

static PyObject *module_memory_save(PyObject *module, PyObject *args)
{
    PyObject *folder, *path;
    int overwrite;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&O&p", PyUnicode_FSConverter, &folder, PyUnicode_FSConverter,
                          &path, &overwrite))
        return NULL;
    int rc = fm_bridge_late(PyBytes_AS_STRING(folder), PyBytes_AS_STRING(path), overwrite);
    Py_DECREF(folder);
    Py_DECREF(path);
    if (rc < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* The trace of this process, or NULL. */
static struct fm_collector *trace_of_run(void)
{
    struct fm_collector *c = fm_start_collector();
    return c && c->trace ? c : NULL;
}

static PyObject *module_trace_start(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    struct fm_collector *c = trace_of_run();
    int rc = c ? fm_trace_go_on(c) : 0;
    return rc < 0 ? NULL : PyBool_FromLong(rc);
}

static PyObject *module_trace_stop(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    struct fm_collector *c = trace_of_run();
    int rc = c ? fm_trace_pause(c) : 0;
    return rc < 0 ? NULL : PyBool_FromLong(rc);
}

static PyObject *module_trace_begin(PyObject *module, PyObject *args)
{
    const char *config;
    (void)module;
    if (!PyArg_ParseTuple(args, "y", &config))
        return NULL;
    int rc = fm_start_attached(config);
    return rc < 0 ? NULL : PyBool_FromLong(rc == 0);
}

static PyObject *module_trace_over(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    fm_start_attached_over();
    Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
    { "trace_begin", module_trace_begin, METH_VARARGS,
      "trace_begin(config) -> bool: for `fathom attach --trace`; False: it is recorded already" },
    { "trace_over", module_trace_over, METH_NOARGS, "trace_over(): trace it no longer" },
    { "trace_start", module_trace_start, METH_NOARGS,
      "trace_start() -> bool: the trace of `fathom run --trace` begins or goes on; False: it runs "
      "already, or there is none" },
    { "trace_stop", module_trace_stop, METH_NOARGS,
      "trace_stop() -> bool: the trace stops; False: it does not run" },
    { "mark_lines", module_mark_lines, METH_O,
      "mark_lines(object) -> bool: is this process recorded by `fathom run --lines`?" },
    { "mark_memory_lines", module_mark_memory_lines, METH_O,
      "mark_memory_lines(object) -> bool: is this process recorded by `fathom run --memory`?" },
    { "memory_alive", module_memory_alive, METH_NOARGS,
      "memory_alive() -> what is alive in this process, marshalled; None if nothing records that" },
    { "memory_contexts", module_memory_contexts, METH_NOARGS,
      "memory_contexts() -> the same by calling context, and at the peak" },
    { "stretch_begin", module_stretch_begin, METH_NOARGS,
      "stretch_begin() -> bytes alive: the peak is measured anew; -1 if nothing records that" },
    { "stretch_peak", module_stretch_peak, METH_NOARGS, "stretch_peak() -> bytes: … so far" },
    { "stretch_own_peak", module_stretch_own_peak, METH_NOARGS,
      "stretch_own_peak() -> bytes: … of this thread alone, above its begin; -1: another began it" },
    { "stretch_end", module_stretch_end, METH_NOARGS,
      "stretch_end() -> bytes: … and now it is that of the process again" },
    { "memory_begin", module_memory_begin, METH_VARARGS,
      "memory_begin(folder) -> bool: record memory there; False: it is recorded already" },
    { "memory_over", module_memory_over, METH_NOARGS, "memory_over(): record it no longer" },
    { "memory_save", module_memory_save, METH_VARARGS, "memory_save(folder, path, overwrite)" },
    { "convert", module_convert, METH_VARARGS, "convert(snapshots, format) -> bytes" },
    { "save", module_save, METH_VARARGS, "save(snapshots, path, overwrite=False)" },
    { NULL, NULL, 0, NULL },
};

/* Takes the reference over. */
static int add_type(PyObject *module, const char *name, PyObject *type)
{
    int rc = type ? PyModule_AddObjectRef(module, name, type) : -1;
    Py_XDECREF(type);
    return rc;
}

static int module_exec(PyObject *module)
{
    PyObject *collector = PyType_FromModuleAndSpec(module, &collector_spec, NULL);
    if (add_type(module, "Collector", collector) < 0)
        return -1;
    if (add_type(module, "region", fm_region_type_new(module)) < 0)
        return -1;
    return fm_region_calls_add(module);
}

static PyModuleDef_Slot module_slots[] = {
    { Py_mod_exec, (void *)module_exec },
#ifdef Py_mod_multiple_interpreters
    { Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED },
#endif
    { 0, NULL },
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "fathom._agent",
    .m_doc = "The part of Fathom that runs inside the profiled process.",
    .m_methods = module_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__agent(void);
PyMODINIT_FUNC PyInit__agent(void)
{
    return PyModuleDef_Init(&module_definition);
}

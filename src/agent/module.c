/*
 * The Python face of the agent: the module fathom._agent with the class Collector. The package
 * python/fathom builds everything users see (Profile, profile) on it.
 */
#include "agent/bridge.h"
#include "agent/collector.h"
#include "agent/functions.h"
#include "agent/start.h"

struct collector_object {
    PyObject_HEAD
    struct fm_collector *collector; /* NULL until first enabled */
    PyObject *timer;
    double timer_unit;
    int builtins;
};

static int collector_init(struct collector_object *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "timer", "timeunit", "builtins", NULL };
    PyObject *timer = NULL;
    double unit = 0.0;
    int builtins = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Odp", names, &timer, &unit, &builtins))
        return -1;
    Py_XSETREF(self->timer, timer && timer != Py_None ? Py_NewRef(timer) : NULL);
    self->timer_unit = unit;
    self->builtins = builtins;
    return 0;
}

/* The collector, made when first needed: a slot is taken only by those that record. */
static struct fm_collector *need_collector(struct collector_object *self)
{
    struct fm_options options = { .c_calls = self->builtins,
                                  .keep_code = true,
                                  .timer = self->timer,
                                  .timer_unit = self->timer_unit };
    if (!self->collector)
        self->collector = fm_collector_new(&options);
    return self->collector;
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
        c->c_calls = builtins != 0;
    }
    if (fm_collector_start(c) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *collector_disable(struct collector_object *self, PyObject *unused)
{
    (void)unused;
    if (self->collector && fm_collector_stop(self->collector) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *collector_clear(struct collector_object *self, PyObject *unused)
{
    (void)unused;
    if (self->collector && fm_collector_clear(self->collector) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *collector_snapshot(struct collector_object *self, PyObject *unused)
{
    (void)unused;
    struct fm_collector *c = need_collector(self);
    return c ? fm_collector_snapshot(c) : NULL;
}

static PyObject *collector_functions(struct collector_object *self, PyObject *unused)
{
    (void)unused;
    return self->collector ? fm_functions_list(self->collector) : PyDict_New();
}

static PyObject *collector_running(struct collector_object *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(self->collector && self->collector->running);
}

static void collector_dealloc(struct collector_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    fm_collector_free(self->collector);
    Py_XDECREF(self->timer);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyMethodDef collector_methods[] = {
    { "enable", (PyCFunction)collector_enable, METH_VARARGS, "Start recording." },
    { "disable", (PyCFunction)collector_disable, METH_NOARGS, "Stop recording." },
    { "clear", (PyCFunction)collector_clear, METH_NOARGS, "Forget what was recorded." },
    { "snapshot", (PyCFunction)collector_snapshot, METH_NOARGS, "The live store as bytes." },
    { "functions", (PyCFunction)collector_functions, METH_NOARGS,
      "{id: code object or name} of the functions seen." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef collector_getset[] = {
    { "running", (getter)collector_running, NULL, "Is it recording?", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot collector_slots[] = {
    { Py_tp_doc, "Records every call of this process until disabled." },
    { Py_tp_init, (void *)collector_init },
    { Py_tp_new, (void *)PyType_GenericNew },
    { Py_tp_dealloc, (void *)collector_dealloc },
    { Py_tp_methods, collector_methods },
    { Py_tp_getset, collector_getset },
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
    PyObject *snapshot;
    const char *format;
    (void)module;
    if (!PyArg_ParseTuple(args, "Ss", &snapshot, &format))
        return NULL;
    return fm_bridge_convert(snapshot, format);
}

static PyObject *module_save(PyObject *module, PyObject *args)
{
    PyObject *snapshot, *path;
    int overwrite = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "SO&|p", &snapshot, PyUnicode_FSConverter, &path, &overwrite))
        return NULL;
    int rc = fm_bridge_save(snapshot, PyBytes_AS_STRING(path), overwrite);
    Py_DECREF(path);
    if (rc < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *module_under_run(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(fm_start_collector() != NULL);
}

static PyMethodDef module_methods[] = {
    { "convert", module_convert, METH_VARARGS, "convert(snapshot, format) -> bytes" },
    { "save", module_save, METH_VARARGS, "save(snapshot, path, overwrite=False)" },
    { "under_run", module_under_run, METH_NOARGS, "Is this process recorded by `fathom run`?" },
    { NULL, NULL, 0, NULL },
};

static int module_exec(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &collector_spec, NULL);
    if (!type)
        return -1;
    int rc = PyModule_AddObjectRef(module, "Collector", type);
    Py_DECREF(type);
    return rc;
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

/*
 * Functions of fathom._agent for regions; see region_calls.h.
 *
 * A token is an object of its own, so that it can be handed to any thread or task, and ends once: one that is
 * ended again, or in a child of fork, does nothing.
 */
#include "target/agent/regions/region_calls.h"

#include "target/agent/regions/regions.h"
#include "target/agent/regions/traced.h"
#include "target/agent/regions/visits.h"

/* ---- tokens ------------------------------------------------------------------------------ */

struct token_object {
    PyObject_HEAD
    struct fm_region_token token;
};

static PyTypeObject *token_type;

static void token_dealloc(struct token_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyType_Slot token_slots[] = {
    { Py_tp_doc, "What fathom.region_begin() gives, for fathom.region_end()." },
    { Py_tp_dealloc, (void *)token_dealloc },
    { 0, NULL },
};

static PyType_Spec token_spec = {
    .name = "fathom._agent.region_token",
    .basicsize = sizeof(struct token_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = token_slots,
};

/* The name, which is the first argument; NULL with an exception. */
static PyObject *name_of(const char *function, PyObject *const *args, Py_ssize_t count,
                         Py_ssize_t wanted)
{
    if (count != wanted)
        return PyErr_Format(PyExc_TypeError, "%s() takes %zd argument%s, not %zd", function, wanted,
                            wanted == 1 ? "" : "s", count);
    if (!PyUnicode_Check(args[0]))
        return PyErr_Format(PyExc_TypeError, "%s() argument 1 must be str, not %.200s", function,
                            Py_TYPE(args[0])->tp_name);
    return args[0];
}

/* Values are texts before the visit begins: what that takes is not in its time. */
static void open_token(struct token_object *self, PyObject *name, PyObject *values)
{
    self->token = fm_regions_open(name);
    uint32_t token = self->token.visit ? self->token.visit->trace : 0;
    if (token)
        fm_region_traced_values((struct fm_trace_valued){ FM_TRACE_OF_TOKEN, token }, values);
    Py_XDECREF(values);
}

static PyObject *region_begin(PyObject *module, PyObject *const *args, Py_ssize_t count,
                              PyObject *keywords)
{
    (void)module;
    PyObject *name = name_of("region_begin", args, count, 1);
    if (!name)
        return NULL;
    if (!fm_regions_recorded)
        Py_RETURN_NONE;
    struct token_object *self = PyObject_New(struct token_object, token_type);
    if (self)
        open_token(self, name, fm_region_values(args + 1, keywords));
    return (PyObject *)self;
}

static PyObject *region_end(PyObject *module, PyObject *token)
{
    (void)module;
    if (Py_IS_TYPE(token, token_type))
        fm_regions_close(((struct token_object *)token)->token);
    else if (token != Py_None)
        return PyErr_Format(PyExc_TypeError,
                            "region_end() takes what region_begin() gave, not %.200s",
                            Py_TYPE(token)->tp_name);
    Py_RETURN_NONE;
}

/* ---- counters and instants --------------------------------------------------------------- */

static PyObject *counter(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    PyObject *name = name_of("counter", args, count, 2);
    if (!name || !fm_regions_recorded)
        return name ? Py_NewRef(Py_None) : NULL;
    double value = PyFloat_AsDouble(args[1]);
    if (value != -1.0 || !PyErr_Occurred())
        fm_regions_counter(name, value);
    else if (PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear(); /* what is no number is an error to nobody while nothing records: nor now */
    else
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *instant(PyObject *module, PyObject *const *args, Py_ssize_t count,
                         PyObject *keywords)
{
    (void)module;
    PyObject *name = name_of("instant", args, count, 1);
    if (!name)
        return NULL;
    if (fm_regions_recorded) {
        PyObject *values = fm_region_values(args + 1, keywords);
        fm_regions_instant(name);
        fm_region_traced_values((struct fm_trace_valued){ FM_TRACE_OF_INSTANT, 0 }, values);
        Py_XDECREF(values);
    }
    Py_RETURN_NONE;
}

/* ---- counting without a run -------------------------------------------------------------- */

static PyObject *regions_count(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return fm_regions_count() < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *regions_join_run(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    fm_regions_join_run();
    Py_RETURN_NONE;
}

static PyObject *regions_counted(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return fm_regions_counted();
}

static PyMethodDef functions[] = {
    { "region_begin", (PyCFunction)(void (*)(void))region_begin, METH_FASTCALL | METH_KEYWORDS,
      "region_begin(name, **values) -> token: a region that may end in another thread or task" },
    { "region_end", region_end, METH_O, "region_end(token)" },
    { "counter", (PyCFunction)(void (*)(void))counter, METH_FASTCALL,
      "counter(name, value): a number that changes over time, such as the length of a queue" },
    { "instant", (PyCFunction)(void (*)(void))instant, METH_FASTCALL | METH_KEYWORDS,
      "instant(name, **values): something happened now" },
    { "regions_count", regions_count, METH_NOARGS,
      "regions_count(): count regions from now on, with or without a run" },
    { "regions_join_run", regions_join_run, METH_NOARGS,
      "regions_join_run(): tell the run that samples this process, if there is one" },
    { "regions_counted", regions_counted, METH_NOARGS,
      "regions_counted() -> [(around, name, entered, open, total, suspended, least, most), …]; None: "
      "nothing counts them" },
    { NULL, NULL, 0, NULL },
};

int fm_region_calls_add(PyObject *module)
{
    if (!token_type)
        token_type = (PyTypeObject *)PyType_FromSpec(&token_spec);
    return token_type ? PyModule_AddFunctions(module, functions) : -1;
}

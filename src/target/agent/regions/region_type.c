/*
 * fathom._agent.Region; see region_type.h.
 *
 * One object may be entered many times, in one thread or in several, and by itself: it keeps nothing
 * but its name. While nothing is recorded, entering and leaving are two calls that do nothing.
 */
#include "target/agent/regions/region_type.h"

#include "target/agent/regions/regions.h"

#define LONGEST_NAME 4096 /* bytes */

struct region_object {
    PyObject_HEAD
    PyObject *name; /* bytes, UTF-8 */
};

static PyObject *region_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "name", NULL };
    PyObject *text;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U:region", names, &text))
        return NULL;
    PyObject *name = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    if (!name)
        return NULL;
    struct region_object *self = (struct region_object *)type->tp_alloc(type, 0);
    if (self)
        self->name = name;
    else
        Py_DECREF(name);
    return (PyObject *)self;
}

static void region_dealloc(struct region_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(self->name);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyObject *region_enter(struct region_object *self, PyObject *unused)
{
    (void)unused;
    size_t len = (size_t)PyBytes_GET_SIZE(self->name);
    if (fm_regions_on())
        fm_regions_enter(self, PyBytes_AS_STRING(self->name),
                         len < LONGEST_NAME ? len : LONGEST_NAME);
    return Py_NewRef((PyObject *)self);
}

static PyObject *region_exit(struct region_object *self, PyObject *const *args, Py_ssize_t count)
{
    (void)args, (void)count;
    if (fm_regions_on())
        fm_regions_leave(self);
    Py_RETURN_FALSE;
}

static PyObject *region_name(struct region_object *self, void *unused)
{
    (void)unused;
    return PyUnicode_DecodeUTF8(PyBytes_AS_STRING(self->name), PyBytes_GET_SIZE(self->name), NULL);
}

static PyObject *region_repr(struct region_object *self)
{
    PyObject *name = region_name(self, NULL);
    PyObject *text = name ? PyUnicode_FromFormat("fathom.region(%R)", name) : NULL;
    Py_XDECREF(name);
    return text;
}

static PyObject *region_on(PyObject *type, PyObject *unused)
{
    (void)type, (void)unused;
    return PyBool_FromLong(fm_regions_on());
}

static PyObject *region_peak(PyObject *type, PyObject *unused)
{
    (void)type, (void)unused;
    return PyLong_FromLongLong(fm_regions_peak());
}

static PyMethodDef methods[] = {
    { "__enter__", (PyCFunction)region_enter, METH_NOARGS, "The region begins." },
    { "__exit__", (PyCFunction)(void (*)(void))region_exit, METH_FASTCALL, "The region ends." },
    { "recorded", region_on, METH_NOARGS | METH_STATIC, "Are regions recorded in this process?" },
    { "_peak", region_peak, METH_NOARGS | METH_STATIC,
      "Bytes that the innermost region of this thread stood above its begin, at most; -1: not known." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef properties[] = {
    { "name", (getter)region_name, NULL, "Its name.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_doc, "A named phase of the program, recorded by `fathom run` when it is entered." },
    { Py_tp_new, (void *)region_new },
    { Py_tp_dealloc, (void *)region_dealloc },
    { Py_tp_repr, (void *)region_repr },
    { Py_tp_methods, methods },
    { Py_tp_getset, properties },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "fathom._agent.Region",
    .basicsize = sizeof(struct region_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

PyObject *fm_region_type_new(PyObject *module)
{
    return PyType_FromModuleAndSpec(module, &spec, NULL);
}

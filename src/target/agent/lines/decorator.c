/* @profile: marks functions so that their lines are recorded; see decorator.h. */
#include "target/agent/lines/decorator.h"

#include "target/agent/lines/lines.h"
#include "target/agent/start.h"

#include <string.h>

#define MAX_DEPTH 20 /* of wrappers around wrappers */

static int mark_code(struct fm_collector *c, PyObject *code, int depth)
{
    PyObject *constants = ((PyCodeObject *)code)->co_consts;
    int marked = 1;
    if (fm_lines_mark(c, (PyCodeObject *)code) < 0)
        return -1;
    for (Py_ssize_t i = 0; depth && i < PyTuple_GET_SIZE(constants); i++) {
        PyObject *constant = PyTuple_GET_ITEM(constants, i);
        int more = PyCode_Check(constant) ? mark_code(c, constant, depth - 1) : 0;
        if (more < 0)
            return -1;
        marked += more;
    }
    return marked;
}

static int mark_object(struct fm_collector *c, PyObject *object, int depth);

/* Mark what is behind an attribute, if the object has it. */
static int mark_attribute(struct fm_collector *c, PyObject *object, const char *name, int depth)
{
    PyObject *inner = PyObject_GetAttrString(object, name);
    if (!inner) {
        PyErr_Clear();
        return 0;
    }
    int marked = inner != object && inner != Py_None ? mark_object(c, inner, depth) : 0;
    Py_DECREF(inner);
    return marked;
}

/* The functions in the body of a class. */
static int mark_class(struct fm_collector *c, PyObject *type, int depth)
{
    PyObject *dict = fm_python_type_dict((PyTypeObject *)type);
    PyObject *values = dict ? PyDict_Values(dict) : NULL;
    int marked = 0;
    for (Py_ssize_t i = 0; values && marked >= 0 && i < PyList_GET_SIZE(values); i++) {
        PyObject *value = PyList_GET_ITEM(values, i);
        /* Not what was merely stored there: a class attribute that is a class stays out. */
        int more = PyType_Check(value) ? 0 : mark_object(c, value, depth);
        marked = more < 0 ? -1 : marked + more;
    }
    Py_XDECREF(values);
    return marked;
}

/* A function, or what decorators made with functools.wraps were put around. */
static int mark_function(struct fm_collector *c, PyObject *function, int depth)
{
    PyObject *dict = ((PyFunctionObject *)function)->func_dict;
    PyObject *inner = dict ? PyDict_GetItemString(dict, "__wrapped__") : NULL;
    if (inner && PyFunction_Check(inner))
        return mark_object(c, inner, depth);
    return mark_code(c, PyFunction_GET_CODE(function), MAX_DEPTH);
}

/* The attribute of well-known wrappers that leads to a function; NULL for all other objects, which
 * are not asked: asking could run the program's code. */
static const char *inner_attribute(PyObject *object)
{
    static const struct {
        const char *type, *attribute;
    } known[] = {
        { "staticmethod", "__func__" },  { "classmethod", "__func__" },
        { "functools.partial", "func" }, { "partialmethod", "func" },
        { "cached_property", "func" },   { "functools._lru_cache_wrapper", "__wrapped__" },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(Py_TYPE(object)->tp_name, known[i].type) == 0)
            return known[i].attribute;
    return NULL;
}

static int mark_property(struct fm_collector *c, PyObject *property, int depth)
{
    static const char *const parts[] = { "fget", "fset", "fdel" };
    int marked = 0;
    for (size_t i = 0; marked >= 0 && i < 3; i++) {
        int more = mark_attribute(c, property, parts[i], depth);
        marked = more < 0 ? -1 : marked + more;
    }
    return marked;
}

static int mark_object(struct fm_collector *c, PyObject *object, int depth)
{
    if (depth == 0)
        return 0;
    if (PyCode_Check(object))
        return mark_code(c, object, MAX_DEPTH);
    if (PyFunction_Check(object))
        return mark_function(c, object, depth - 1);
    if (PyMethod_Check(object))
        return mark_object(c, PyMethod_GET_FUNCTION(object), depth - 1);
    if (PyType_Check(object))
        return mark_class(c, object, depth - 1);
    if (Py_TYPE(object) == &PyProperty_Type)
        return mark_property(c, object, depth - 1);
    const char *attribute = inner_attribute(object);
    return attribute ? mark_attribute(c, object, attribute, depth - 1) : 0;
}

int fm_decorator_mark(struct fm_collector *c, PyObject *object)
{
    return mark_object(c, object, MAX_DEPTH);
}

static PyObject *profile(PyObject *self, PyObject *object)
{
    struct fm_collector *c = fm_start_collector();
    (void)self;
    if (c && (c->lines_on || c->lines_waiting) && fm_decorator_mark(c, object) < 0)
        PyErr_Clear(); /* a decorator must not fail because of us */
    return Py_NewRef(object);
}

PyObject *fm_decorator_function(void)
{
    static PyMethodDef definition = {
        "profile", profile, METH_O,
        "Record the lines of this function (under `fathom run --lines`)."
    };
    return PyCFunction_New(&definition, NULL);
}

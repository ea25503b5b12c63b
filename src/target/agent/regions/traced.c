/* Regions in a trace; see traced.h. */
#include "target/agent/regions/traced.h"

#include <string.h>

#define MOST_VALUES  16
#define LONGEST_TEXT 200 /* bytes of a value */

uint32_t fm_region_traced_name(struct fm_region_name *name)
{
    uint32_t era = fm_trace_names_era();
    if (name && name->trace_era != era) {
        name->trace = fm_trace_name(name->text, name->len);
        name->trace_era = era;
    }
    return name ? name->trace : 0;
}

/* A new str; NULL with an exception. Types of the language itself only: no code of the program. */
static PyObject *text_of(PyObject *value)
{
    if (PyUnicode_CheckExact(value))
        return PyUnicode_Substring(value, 0, LONGEST_TEXT);
    if (PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyBool_Check(value) ||
        value == Py_None)
        return PyObject_Str(value);
    return PyUnicode_FromFormat("<%.150s>", Py_TYPE(value)->tp_name);
}

/* Append "key\0text\0". */
static int add_pair(PyObject *into, PyObject *key, PyObject *value)
{
    PyObject *text = text_of(value);
    PyObject *pair = text ? PyUnicode_FromFormat("%U%c%U%c", key, 0, text, 0) : NULL;
    PyObject *bytes = pair ? PyUnicode_AsEncodedString(pair, "utf-8", "backslashreplace") : NULL;
    int rc = -1;
    if (bytes) {
        Py_ssize_t at = PyByteArray_GET_SIZE(into);
        rc = PyByteArray_Resize(into, at + PyBytes_GET_SIZE(bytes));
        if (rc == 0)
            memcpy(PyByteArray_AS_STRING(into) + at, PyBytes_AS_STRING(bytes),
                   (size_t)PyBytes_GET_SIZE(bytes));
    }
    Py_XDECREF(bytes);
    Py_XDECREF(pair);
    Py_XDECREF(text);
    return rc;
}

PyObject *fm_region_values(PyObject *const *values, PyObject *keywords)
{
    if (!keywords || !PyTuple_GET_SIZE(keywords) || !fm_trace_on())
        return NULL;
    struct fm_raised raised = fm_python_put_aside();
    PyObject *all = PyByteArray_FromStringAndSize(NULL, 0);
    for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(keywords) && i < MOST_VALUES; i++)
        if (add_pair(all, PyTuple_GET_ITEM(keywords, i), values[i]) < 0)
            PyErr_Clear(); /* a number of too many digits, say: it is left out */
    PyErr_Clear();
    fm_python_put_back(raised);
    return all;
}

void fm_region_traced_values(struct fm_trace_valued of, PyObject *values)
{
    if (!values)
        return;
    const char *at = PyByteArray_AS_STRING(values), *end = at + PyByteArray_GET_SIZE(values);
    while (at < end) {
        const char *text = at + strlen(at) + 1;
        if (text >= end)
            return;
        fm_trace_value(of, fm_trace_name(at, strlen(at)), text, strlen(text));
        at = text + strlen(text) + 1;
    }
}

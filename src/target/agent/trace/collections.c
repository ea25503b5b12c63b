/* Garbage collections in a trace; see collections.h. */
#include "target/agent/trace/collections.h"

#include <string.h>

#include "target/agent/trace/trace.h"

static PyObject *callback;                               /* what is in the list, or NULL */
static PyObject *generation, *collected, *uncollectable; /* keys, kept for good */

static uint32_t number_at(PyObject *info, PyObject *key)
{
    PyObject *value = info && PyDict_CheckExact(info) ? PyDict_GetItemWithError(info, key) : NULL;
    long long number = value && PyLong_Check(value) ? PyLong_AsLongLong(value) : 0;
    if (PyErr_Occurred())
        PyErr_Clear();
    return number < 0 ? 0 : number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

/* phase, info */
static PyObject *on_collection(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    struct fm_collector *c = fm_trace_collector();
    struct fm_agent_thread *t = c && c->running ? fm_collector_thread(c) : NULL;
    if (!t || count < 2 || !PyUnicode_Check(args[0]))
        Py_RETURN_NONE;
    if (PyUnicode_CompareWithASCIIString(args[0], "start") == 0) {
        uint32_t number = number_at(args[1], generation);
        fm_trace_mark(c, t, FM_TRACE_GC_BEGIN, &number, 1);
    } else {
        uint32_t numbers[] = { number_at(args[1], collected), number_at(args[1], uncollectable) };
        fm_trace_mark(c, t, FM_TRACE_GC_END, numbers, 2);
    }
    Py_RETURN_NONE;
}

static PyMethodDef definition = { "fathom", (PyCFunction)(void (*)(void))on_collection,
                                  METH_FASTCALL, NULL };

/* gc.callbacks; new, or NULL with an exception. */
static PyObject *list_of_callbacks(void)
{
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    bool known = modules && PyDict_GetItemString(modules, "gc");
    PyObject *module = PyImport_ImportModule("gc");
    if (module && !known && PyDict_DelItemString(modules, "gc") < 0)
        PyErr_Clear();
    PyObject *list = module ? PyObject_GetAttrString(module, "callbacks") : NULL;
    Py_XDECREF(module);
    if (list && !PyList_Check(list))
        Py_CLEAR(list);
    return list;
}

static bool make_keys(void)
{
    if (!generation)
        generation = PyUnicode_InternFromString("generation");
    if (!collected)
        collected = PyUnicode_InternFromString("collected");
    if (!uncollectable)
        uncollectable = PyUnicode_InternFromString("uncollectable");
    return generation && collected && uncollectable;
}

void fm_trace_collections_watch(void)
{
    struct fm_raised raised = fm_python_put_aside();
    PyObject *list = make_keys() && !callback ? list_of_callbacks() : NULL;
    PyObject *function = list ? PyCFunction_New(&definition, NULL) : NULL;
    if (function && PyList_Append(list, function) == 0)
        callback = Py_NewRef(function);
    Py_XDECREF(function);
    Py_XDECREF(list);
    PyErr_Clear();
    fm_python_put_back(raised);
}

void fm_trace_collections_leave(void)
{
    struct fm_raised raised = fm_python_put_aside();
    PyObject *list = callback ? list_of_callbacks() : NULL;
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
        if (PyList_GET_ITEM(list, i) != callback)
            continue;
        PyList_SetSlice(list, i, i + 1, NULL);
        break;
    }
    Py_CLEAR(callback);
    Py_XDECREF(list);
    PyErr_Clear();
    fm_python_put_back(raised);
}

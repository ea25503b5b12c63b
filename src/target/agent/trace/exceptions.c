/* Exceptions in a trace; see exceptions.h. */
#include "target/agent/trace/exceptions.h"

#include <stdio.h>
#include <string.h>

#include "target/agent/trace/marks.h"
#include "target/agent/trace/trace.h"

#define NAMES 256 /* types whose names are at hand; a power of two */

/* A type that is gone may have left its place to another: so its name is looked at, too. */
static struct {
    const PyTypeObject *type;
    const char *text;
    uint32_t era, name;
} known[NAMES];

static bool is_new(PyObject *exception)
{
    PyObject *traceback = ((PyBaseExceptionObject *)exception)->traceback;
    return !traceback || !PyTraceBack_Check(traceback) ||
           !((PyTracebackObject *)traceback)->tb_next;
}

static bool is_told(PyTypeObject *type)
{
    return !PyType_IsSubtype(type, (PyTypeObject *)PyExc_StopIteration) &&
           !PyType_IsSubtype(type, (PyTypeObject *)PyExc_StopAsyncIteration) &&
           !PyType_IsSubtype(type, (PyTypeObject *)PyExc_GeneratorExit);
}

/* "module.Name", or "Name" of what is built in. */
static uint32_t find_name(PyTypeObject *type)
{
    char text[512];
    struct fm_raised raised = fm_python_put_aside();
    PyObject *dict = fm_python_type_dict(type);
    PyObject *module = dict ? PyDict_GetItemString(dict, "__module__") : NULL;
    const char *prefix = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL;
    PyErr_Clear();
    bool bare = !prefix || strcmp(prefix, "builtins") == 0 || strcmp(prefix, "__main__") == 0;
    snprintf(text, sizeof text, "%s%s%s", bare ? "" : prefix, bare ? "" : ".", type->tp_name);
    fm_python_put_back(raised);
    return fm_trace_name(text, strlen(text));
}

static uint32_t name_of(PyTypeObject *type)
{
    uint32_t era = fm_trace_names_era();
    size_t place = ((uintptr_t)type >> 5 ^ (uintptr_t)type >> 12) & (NAMES - 1);
    if (known[place].type != type || known[place].text != type->tp_name ||
        known[place].era != era) {
        uint32_t name = find_name(type);
        known[place].type = type;
        known[place].text = type->tp_name;
        known[place].era = era;
        known[place].name = name;
    }
    return known[place].name;
}

void fm_trace_exception(struct fm_collector *c, struct fm_agent_thread *t, PyObject *exception)
{
    if (!PyExceptionInstance_Check(exception) || !is_new(exception) || !is_told(Py_TYPE(exception)))
        return;
    uint32_t name = c == fm_trace_collector() ? name_of(Py_TYPE(exception)) : 0;
    if (name)
        fm_trace_mark(c, t, FM_TRACE_RAISE, &name, 1);
}

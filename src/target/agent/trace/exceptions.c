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

/* "module.Name", or "Name" of what is built in; how long it is, at most `size` − 1. */
static size_t put_name(char *out, size_t size, PyTypeObject *type)
{
    PyObject *dict = fm_python_type_dict(type);
    PyObject *module = dict ? PyDict_GetItemString(dict, "__module__") : NULL;
    const char *prefix = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL;
    PyErr_Clear();
    bool bare = !prefix || strcmp(prefix, "builtins") == 0 || strcmp(prefix, "__main__") == 0;
    int len = snprintf(out, size, "%s%s%s", bare ? "" : prefix, bare ? "" : ".", type->tp_name);
    return len < 0 ? 0 : (size_t)len < size ? (size_t)len : size - 1;
}

/* All that it is made from, so that who waits for an exception need not know each by name. Once for a name:
 * a new one has a higher number than those before. */
static void tell_ancestry(struct fm_collector *c, PyTypeObject *type, uint32_t name)
{
    static uint32_t era, told;
    char text[2048];
    size_t len = 0;
    PyObject *mro = type->tp_mro;
    if (era == c->era && name <= told)
        return;
    era = c->era;
    told = name;
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro) && len + 2 < sizeof text; i++) {
        if (len)
            text[len++] = ',';
        len += put_name(text + len, sizeof text - len, (PyTypeObject *)PyTuple_GET_ITEM(mro, i));
    }
    uint64_t number = name;
    struct fm_store_text texts[] = { { text, len } };
    fm_store_define(&c->store, FM_LIVE_DEF_EXCEPTION, &number, 1, texts, 1);
}

static uint32_t find_name(struct fm_collector *c, PyTypeObject *type)
{
    char text[512];
    struct fm_raised raised = fm_python_put_aside();
    uint32_t name = fm_trace_name(text, put_name(text, sizeof text, type));
    if (name)
        tell_ancestry(c, type, name);
    fm_python_put_back(raised);
    return name;
}

static uint32_t name_of(struct fm_collector *c, PyTypeObject *type)
{
    uint32_t era = fm_trace_names_era();
    size_t place = ((uintptr_t)type >> 5 ^ (uintptr_t)type >> 12) & (NAMES - 1);
    if (known[place].type != type || known[place].text != type->tp_name ||
        known[place].era != era) {
        uint32_t name = find_name(c, type);
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
    uint32_t name = c == fm_trace_collector() ? name_of(c, Py_TYPE(exception)) : 0;
    if (name)
        fm_trace_mark(c, t, FM_TRACE_RAISE, &name, 1);
}

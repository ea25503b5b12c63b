/* Imports in a trace; see imports.h. */
#include "target/agent/trace/imports.h"

#include <stdio.h>
#include <string.h>

#include "target/agent/trace/marks.h"

bool fm_trace_is_import(PyCodeObject *code)
{
    return PyUnicode_CompareWithASCIIString(code->co_name, "_find_and_load") == 0 &&
           PyUnicode_CompareWithASCIIString(code->co_filename, "<frozen importlib._bootstrap>") ==
               0;
}

void fm_trace_import_begins(struct fm_collector *c, struct fm_agent_thread *t, PyObject *name)
{
    char text[256] = "import ?";
    struct fm_raised raised = fm_python_put_aside();
    const char *utf8 = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (utf8 && strlen(utf8) < sizeof text - strlen("import "))
        snprintf(text, sizeof text, "import %s", utf8);
    PyErr_Clear();
    fm_python_put_back(raised);
    uint32_t number = fm_trace_name(text, strlen(text));
    if (number && fm_trace_room(c, t))
        fm_trace_put_escape(&t->trace, t->trace.last, FM_TRACE_REGION_BEGIN, &number, 1);
}

void fm_trace_import_ends(struct fm_collector *c, struct fm_agent_thread *t, uint64_t now)
{
    uint32_t innermost = 0;
    if (fm_trace_room(c, t))
        fm_trace_put_escape(&t->trace, now, FM_TRACE_REGION_END, &innermost, 1);
}

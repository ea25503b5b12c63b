/* Variables at lines; see watches.h. */
#define FM_PYTHON_FRAMES
#include "target/agent/trace/watches.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/agent/trace/marks.h"
#include "target/agent/trace/values.h"

#define WATCHES 32

/* Of the one trace that there is, read when it is first asked for. */
static struct {
    bool read;
    int count;
    char text[1024];
    struct {
        const char *file, *name;
        int line;
        PyObject *object; /* the name, interned */
        uint32_t era, number;
    } of[WATCHES];
} watches;

/* "FILE:LINE:NAME", from its end, for files may have colons in their names. */
static void take(char *text)
{
    char *name = strrchr(text, ':');
    if (!name || watches.count >= WATCHES)
        return;
    *name++ = '\0';
    char *line = strrchr(text, ':');
    if (!line)
        return;
    *line++ = '\0';
    PyObject *object = PyUnicode_InternFromString(name);
    if (!object)
        return PyErr_Clear();
    watches.of[watches.count].file = text;
    watches.of[watches.count].line = (int)strtol(line, NULL, 10);
    watches.of[watches.count].name = name;
    watches.of[watches.count++].object = object;
}

static void read_all(const char *text)
{
    char *rest;
    watches.read = true;
    snprintf(watches.text, sizeof watches.text, "%s", text);
    for (char *each = strtok_r(watches.text, ",", &rest); each; each = strtok_r(NULL, ",", &rest))
        take(each);
}

/* The path, its end or its last part. */
static bool is_of_file(const char *pattern, const char *file)
{
    char end[1024];
    const char *slash = strrchr(file, '/');
    int len = snprintf(end, sizeof end, "*/%s", pattern);
    return fnmatch(pattern, file, 0) == 0 || (slash && fnmatch(pattern, slash + 1, 0) == 0) ||
           (len > 0 && (size_t)len < sizeof end && fnmatch(end, file, 0) == 0);
}

uint32_t fm_trace_watches_of(const struct fm_collector *c, PyCodeObject *code)
{
    uint32_t bits = 0;
    if (!c->ask.watch[0])
        return 0;
    if (!watches.read)
        read_all(c->ask.watch);
    const char *file = PyUnicode_AsUTF8(code->co_filename);
    for (int i = 0; file && i < watches.count; i++)
        if (watches.of[i].line >= code->co_firstlineno && is_of_file(watches.of[i].file, file))
            bits |= 1u << i;
    PyErr_Clear();
    return bits;
}

/* ---- values ------------------------------------------------------------------------------ */

/* Of dictionaries of the language itself, and names that are there: no code of the program is asked. */
static PyObject *find_in(PyObject *dict, PyObject *name)
{
    PyObject *found = dict && PyDict_CheckExact(dict) ? PyDict_GetItemWithError(dict, name) : NULL;
    PyErr_Clear();
    return found;
}

/* Borrowed; NULL: it is not bound. A name that the function does not have is a global one. */
static PyObject *find_variable(PyCodeObject *code, const void *frame, PyObject *name)
{
    const _PyInterpreterFrame *f = frame;
    for (int i = 0; i < code->co_nlocalsplus; i++) {
        PyObject *each = PyTuple_GET_ITEM(code->co_localsplusnames, i);
        if (each != name && PyUnicode_Compare(each, name) != 0)
            continue;
        PyObject *value = fm_trace_variable(code, frame, i);
        if (value || code->co_flags & CO_OPTIMIZED)
            return value;
    }
    PyObject *found = find_in(f->f_locals, name);
    return found ? found : find_in(f->f_globals, name);
}

static uint32_t number_of(int i)
{
    char text[512];
    uint32_t era = fm_trace_names_era();
    const char *slash = strrchr(watches.of[i].file, '/');
    if (watches.of[i].era != era) {
        snprintf(text, sizeof text, "%.200s (%.200s:%d)", watches.of[i].name,
                 slash ? slash + 1 : watches.of[i].file, watches.of[i].line);
        watches.of[i].number = fm_trace_name(text, strlen(text));
        watches.of[i].era = era;
    }
    return watches.of[i].number;
}

static void tell(struct fm_collector *c, struct fm_agent_thread *t, int i, PyObject *value)
{
    struct fm_rendered text;
    double number;
    uint64_t bits;
    if (fm_render_number(value, &number)) {
        memcpy(&bits, &number, sizeof bits);
        uint32_t name = number_of(i);
        if (name && fm_trace_values_allow(c, 0))
            fm_trace_mark(c, t, FM_TRACE_COUNTER,
                          (uint32_t[]){ name, (uint32_t)bits, (uint32_t)(bits >> 32) }, 3);
        return;
    }
    fm_render(&text, value, c->ask.repr);
    uint32_t name = number_of(i);
    if (name && fm_trace_values_allow(c, text.len))
        fm_trace_mark_value(c, t, fm_clock_ticks(), name, FM_TRACE_OF_VARIABLE, 0, text.text,
                            text.len);
}

bool fm_trace_watches_line(struct fm_collector *c, struct fm_agent_thread *t, PyCodeObject *code,
                           const void *frame, uint32_t of_code, int line)
{
    bool any = false;
    struct fm_trace_look look = fm_trace_look_begins(c, c->ask.repr);
    struct fm_raised raised = fm_python_put_aside();
    for (int i = 0; i < watches.count; i++) {
        if (!(of_code >> i & 1) || watches.of[i].line != line)
            continue;
        any = true;
        tell(c, t, i, find_variable(code, frame, watches.of[i].object));
    }
    fm_python_put_back(raised);
    if (any)
        fm_trace_look_ends(c, look);
    return any;
}

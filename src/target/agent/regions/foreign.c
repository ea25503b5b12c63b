/* Regions of LSST and petsc4py; see foreign.h. */
#define FM_PYTHON_FRAMES
#include "target/agent/regions/foreign.h"

#include <errno.h>
#include <string.h>

#include "target/agent/regions/petsc_log.h"
#include "target/agent/regions/region_frames.h"
#include "target/agent/regions/regions.h"
#include "target/agent/trace/values.h"

#define FOLLOWED 16 /* codes at most: a program has two or three */
#define DEEPEST  4  /* functions in functions that are looked into */

enum foreign_kind {
    OF_FUNCTION, /* a region, named as the function that the variable holds */
    OF_TEXT,     /* a region, named by the text that the variable holds */
    OF_PETSC,    /* when it returns, petsc4py has been loaded */
};

struct foreign_code {
    const char *file, *name; /* the end of the code's file, and its own name */
    enum foreign_kind kind;
    const char *variable;
};

static const struct foreign_code known_codes[] = {
    { "/lsst/utils/timer.py", "timeMethod_wrapper", OF_FUNCTION, "func" },
    { "/lsst/utils/timer.py", "time_this", OF_TEXT, "msg" },
    { "/petsc4py/lib/__init__.py", "ImportPETSc", OF_PETSC, NULL },
};
#define KNOWN_CODES (sizeof known_codes / sizeof known_codes[0])

int fm_foreign_count;

static struct {
    struct {
        PyCodeObject *code; /* kept: its address says who calls */
        const struct foreign_code *what;
        int variable; /* −1: it has none of that name */
    } codes[FOLLOWED];
    PyInterpreterState *interpreter;
    bool hears;
} foreign;

/* ---- recognising ------------------------------------------------------------------------- */

static bool ends_with(PyObject *text, const char *end)
{
    Py_ssize_t all = PyUnicode_GET_LENGTH(text), len = (Py_ssize_t)strlen(end);
    Py_ssize_t from = all - len;
    for (Py_ssize_t i = 0; from >= 0 && i < len; i++)
        if (PyUnicode_READ_CHAR(text, from + i) != (unsigned char)end[i])
            return false;
    return from >= 0;
}

static int variable_of(const PyCodeObject *code, const char *name)
{
    PyObject *names = code->co_localsplusnames;
    for (Py_ssize_t i = 0; name && i < PyTuple_GET_SIZE(names); i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), name) == 0)
            return (int)i;
    return -1;
}

static void follow(PyCodeObject *code, const struct foreign_code *what)
{
    for (int i = 0; i < fm_foreign_count; i++)
        if (foreign.codes[i].code == code)
            return;
    if (fm_foreign_count == FOLLOWED || !fm_region_frames_follow(code))
        return;
    Py_INCREF(code);
    foreign.codes[fm_foreign_count].code = code;
    foreign.codes[fm_foreign_count].what = what;
    foreign.codes[fm_foreign_count].variable = variable_of(code, what->variable);
    fm_foreign_count++;
}

/* This code, and all that is written in it. */
static void recognise(PyCodeObject *code, int depth)
{
    for (size_t i = 0; i < KNOWN_CODES; i++)
        if (PyUnicode_CompareWithASCIIString(code->co_name, known_codes[i].name) == 0)
            follow(code, &known_codes[i]);
    for (Py_ssize_t i = 0; depth < DEEPEST && i < PyTuple_GET_SIZE(code->co_consts); i++) {
        PyObject *constant = PyTuple_GET_ITEM(code->co_consts, i);
        if (PyCode_Check(constant))
            recognise((PyCodeObject *)constant, depth + 1);
    }
}

static bool is_known_file(PyObject *file)
{
    for (size_t i = 0; i < KNOWN_CODES; i++)
        if (ends_with(file, known_codes[i].file))
            return true;
    return false;
}

/* Code of a module; what it raised is cleared. */
static void see_code(PyObject *code)
{
    if (PyCode_Check(code) && is_known_file(((PyCodeObject *)code)->co_filename))
        recognise((PyCodeObject *)code, 0);
    PyErr_Clear();
}

static bool is_ours(void)
{
    return foreign.interpreter && PyInterpreterState_Get() == foreign.interpreter;
}

void fm_foreign_see_exec(PyObject *args)
{
    if (!is_ours() || !args || !PyTuple_Check(args) || PyTuple_GET_SIZE(args) < 1)
        return;
    int saved_errno = errno;
    struct fm_raised raised = fm_python_put_aside();
    see_code(PyTuple_GET_ITEM(args, 0));
    fm_python_put_back(raised);
    errno = saved_errno;
}

static int on_audit(const char *event, PyObject *args, void *data)
{
    (void)data;
    if (event[0] == 'e' && strcmp(event, "exec") == 0)
        fm_foreign_see_exec(args);
    return 0;
}

/* ---- modules that are there -------------------------------------------------------------- */

/* A function of a module, decorated or not. */
static void see_function(const char *module_name, const char *name)
{
    PyObject *modules = PySys_GetObject("modules"); /* borrowed, and so is what it has */
    PyObject *module =
        modules && PyDict_Check(modules) ? PyDict_GetItemString(modules, module_name) : NULL;
    PyObject *dict = module && PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
    PyObject *function = dict ? PyDict_GetItemString(dict, name) : NULL;
    if (!function || !PyFunction_Check(function))
        return;
    see_code(PyFunction_GET_CODE(function));
    PyObject *own = ((PyFunctionObject *)function)->func_dict;
    PyObject *wrapped = own ? PyDict_GetItemString(own, "__wrapped__") : NULL;
    if (wrapped && PyFunction_Check(wrapped))
        see_code(PyFunction_GET_CODE(wrapped));
}

void fm_foreign_begin(bool hears)
{
    struct fm_raised raised = fm_python_put_aside();
    if (!foreign.interpreter)
        foreign.interpreter = PyInterpreterState_Get();
    if (is_ours()) {
        see_function("lsst.utils.timer", "timeMethod");
        see_function("lsst.utils.timer", "time_this");
        see_function("petsc4py.lib", "ImportPETSc");
        fm_petsc_log_hear();
        if (hears && !foreign.hears)
            foreign.hears = PySys_AddAuditHook(on_audit, NULL) == 0;
    }
    PyErr_Clear();
    fm_python_put_back(raised);
}

/* ---- calls ------------------------------------------------------------------------------- */

static int find(const PyCodeObject *code)
{
    int i = fm_foreign_count - 1;
    while (i >= 0 && foreign.codes[i].code != code)
        i--;
    return i;
}

/* Borrowed from the call; NULL if it has none. */
static PyObject *name_of(int n, const void *frame)
{
    int variable = foreign.codes[n].variable;
    PyObject *value =
        variable >= 0 ? fm_trace_variable(foreign.codes[n].code, frame, variable) : NULL;
    if (value && foreign.codes[n].what->kind == OF_FUNCTION)
        value = PyFunction_Check(value) ? ((PyFunctionObject *)value)->func_qualname : NULL;
    return value && PyUnicode_Check(value) ? value : foreign.codes[n].code->co_name;
}

void fm_foreign_enter(PyCodeObject *code, const void *frame)
{
    int n = find(code);
    struct fm_region_name *known = NULL;
    if (n >= 0 && foreign.codes[n].what->kind != OF_PETSC && fm_regions_recorded)
        fm_regions_enter(frame, name_of(n, frame), &known);
}

void fm_foreign_leave(PyCodeObject *code, const void *frame)
{
    int n = find(code);
    if (n < 0)
        return;
    if (foreign.codes[n].what->kind != OF_PETSC) {
        if (fm_regions_recorded)
            fm_regions_leave(frame);
        return;
    }
    struct fm_raised raised = fm_python_put_aside();
    fm_petsc_log_hear();
    PyErr_Clear();
    fm_python_put_back(raised);
}

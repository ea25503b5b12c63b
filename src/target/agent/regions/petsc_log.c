/* Events and stages of petsc4py; see petsc_log.h. */
#include "target/agent/regions/petsc_log.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "target/agent/python.h"
#include "target/agent/regions/regions.h"

/* A method takes two to four arguments, by its flags. All are pointers in registers, in the calling conventions that
 * there are agents for, so one function may stand for each kind: what it passes on too much is not looked at. */
typedef PyObject *petsc_method(PyObject *self, void *a, void *b, void *c);

enum petsc_slot { EVENT_BEGIN, EVENT_END, STAGE_PUSH, STAGE_POP, SLOTS };
static petsc_method *originals[SLOTS];

/* ---- what stands for them ---------------------------------------------------------------- */

/* The region is what PETSc's own begin and end stand around: what they take is not in it. */
static PyObject *begin(enum petsc_slot slot, PyObject *self, void *a, void *b, void *c)
{
    PyObject *result = originals[slot](self, a, b, c);
    if (!result || !fm_regions_recorded)
        return result;
    struct fm_region_name *known = NULL;
    PyObject *name = PyObject_GetAttrString(self, "name");
    if (name && PyUnicode_Check(name))
        fm_regions_enter(self, name, &known);
    Py_XDECREF(name);
    PyErr_Clear();
    return result;
}

static PyObject *end(enum petsc_slot slot, PyObject *self, void *a, void *b, void *c)
{
    if (fm_regions_recorded)
        fm_regions_leave(self);
    return originals[slot](self, a, b, c);
}

static PyObject *event_begin(PyObject *self, void *a, void *b, void *c)
{
    return begin(EVENT_BEGIN, self, a, b, c);
}

static PyObject *event_end(PyObject *self, void *a, void *b, void *c)
{
    return end(EVENT_END, self, a, b, c);
}

static PyObject *stage_push(PyObject *self, void *a, void *b, void *c)
{
    return begin(STAGE_PUSH, self, a, b, c);
}

static PyObject *stage_pop(PyObject *self, void *a, void *b, void *c)
{
    return end(STAGE_POP, self, a, b, c);
}

static const struct {
    const char *type, *method;
    petsc_method *stands_for;
} slots[SLOTS] = {
    [EVENT_BEGIN] = { "LogEvent", "begin", event_begin },
    [EVENT_END] = { "LogEvent", "end", event_end },
    [STAGE_PUSH] = { "LogStage", "push", stage_push },
    [STAGE_POP] = { "LogStage", "pop", stage_pop },
};

/* ---- putting it there -------------------------------------------------------------------- */

/* A function of Cython's begins as one of CPython's does, unless it was compiled for the limited API: then what
 * calls it lies elsewhere. */
static bool is_cython_function(PyObject *method)
{
    const PyTypeObject *type = Py_TYPE(method);
    return strstr(type->tp_name, "cython_function_or_method") &&
           type->tp_vectorcall_offset == offsetof(PyCFunctionObject, vectorcall) &&
           type->tp_basicsize >= (Py_ssize_t)sizeof(PyCFunctionObject);
}

static PyMethodDef *definition_of(PyObject *method)
{
    if (method && Py_IS_TYPE(method, &PyMethodDescr_Type))
        return ((PyMethodDescrObject *)method)->d_method;
    return method && is_cython_function(method) ? ((PyCFunctionObject *)method)->m_ml : NULL;
}

/* By the kernel, which refuses where the memory is not to be written. */
static bool write_pointer(void *to, petsc_method *function)
{
    struct iovec from = { .iov_base = &function, .iov_len = sizeof function };
    struct iovec there = { .iov_base = to, .iov_len = sizeof function };
    return process_vm_writev(getpid(), &from, 1, &there, 1, 0) == (ssize_t)sizeof function;
}

/* Returns false if the method is not one that can be heard of. */
static bool stand_in(PyObject *module_dict, enum petsc_slot slot)
{
    PyObject *type = PyDict_GetItemString(module_dict, slots[slot].type); /* borrowed */
    if (!type || !PyType_Check(type))
        return false;
    PyObject *dict = fm_python_type_dict((PyTypeObject *)type);
    PyObject *method = dict ? PyDict_GetItemString(dict, slots[slot].method) : NULL;
    PyMethodDef *definition = definition_of(method);
    if (!definition || definition->ml_flags & (METH_METHOD | METH_STATIC | METH_CLASS))
        return false;
    petsc_method *function = (petsc_method *)(void *)definition->ml_meth;
    if (function == slots[slot].stands_for)
        return true;
    originals[slot] = function;
    return write_pointer(&definition->ml_meth, slots[slot].stands_for);
}

void fm_petsc_log_hear(void)
{
    PyObject *modules = PySys_GetObject("modules"); /* borrowed, and so is what it has */
    PyObject *module =
        modules && PyDict_Check(modules) ? PyDict_GetItemString(modules, "petsc4py.PETSc") : NULL;
    PyObject *dict = module && PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
    /* Ends first: what cannot end does not begin. */
    if (dict && stand_in(dict, EVENT_END))
        stand_in(dict, EVENT_BEGIN);
    if (dict && stand_in(dict, STAGE_POP))
        stand_in(dict, STAGE_PUSH);
}

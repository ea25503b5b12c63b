/*
 * fathom.region; see region_type.h.
 *
 * What a `with` costs is the point here. Up to 3.13 the interpreter looks `__enter__` and `__exit__` up and
 * binds them: two objects made and thrown away, more than all the rest. So there both are descriptors
 * that hand out the region itself, whose call tells by the number of its arguments which one is meant: none enters,
 * three leave, one is a function to decorate. From 3.14 on plain methods are called unbound, and that
 * is better still. The object itself comes from a small stock of used ones.
 *
 * One object may be entered many times, in one thread or in several, and by itself: it keeps nothing
 * but its name and, in a trace, its values. While nothing is recorded, entering and leaving test a byte.
 */
#include "target/agent/regions/region_type.h"

#include <stddef.h>
#include <structmember.h>

#include "target/agent/regions/regions.h"
#include "target/agent/regions/traced.h"

#define STOCK        16   /* used objects that are kept */
#define LONGEST_KEPT 4096 /* characters of their names */

struct region_object {
    PyObject_HEAD
#if FM_WITH_BINDS
    vectorcallfunc call;
#endif
    PyObject *name;               /* str */
    struct fm_region_name *known; /* … as regions know it; NULL before it was first entered */
    PyObject *values;             /* what it was given by keyword, for a trace; or NULL */
};

/* Each keeps its name, and is of the one type: most are made again with the same name at once. */
static struct {
    struct region_object *objects[STOCK];
    int count;
    PyTypeObject *type; /* each interpreter has its own */
} stock;

/* ---- making one -------------------------------------------------------------------------- */

#if FM_WITH_BINDS
static PyObject *region_vectorcall(PyObject *object, PyObject *const *args, size_t flagged,
                                   PyObject *keywords);
#endif

/* What is seldom is apart: the usual way through the functions below then saves no registers. */
static __attribute__((noinline)) PyObject *make_new(PyTypeObject *type, PyObject *name)
{
    struct region_object *self = PyObject_New(struct region_object, type);
    if (!self)
        return NULL;
#if FM_WITH_BINDS
    self->call = region_vectorcall;
#endif
    self->name = Py_NewRef(name);
    self->known = NULL;
    self->values = NULL;
    return (PyObject *)self;
}

static __attribute__((noinline)) PyObject *rename_used(struct region_object *self, PyObject *name)
{
    PyObject *old = self->name;
    self->name = Py_NewRef(name);
    self->known = NULL;
    Py_DECREF(old);
    return (PyObject *)self;
}

static inline PyObject *make(PyTypeObject *type, PyObject *name)
{
    if (__builtin_expect(!stock.count || stock.type != type, 0))
        return make_new(type, name);
    struct region_object *self = stock.objects[--stock.count];
    Py_SET_REFCNT(self, 1);
    return __builtin_expect(self->name == name, 1) ? (PyObject *)self : rename_used(self, name);
}

static PyObject *refuse_name(PyObject *name)
{
    return PyErr_Format(PyExc_TypeError, "region() argument 1 must be str, not %.200s",
                        Py_TYPE(name)->tp_name);
}

static __attribute__((noinline)) PyObject *make_with_values(PyObject *type, PyObject *const *args,
                                                            PyObject *keywords)
{
    PyObject *self = make((PyTypeObject *)type, args[0]);
    if (self)
        ((struct region_object *)self)->values = fm_region_values(args + 1, keywords);
    return self;
}

static __attribute__((noinline)) PyObject *make_otherwise(PyObject *type, PyObject *const *args,
                                                          Py_ssize_t count, PyObject *keywords)
{
    if (count == 1)
        return refuse_name(args[0]);
    if (count == 0 && keywords)
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keywords); i++)
            if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, i), "name") == 0)
                return PyUnicode_Check(args[i]) ? make((PyTypeObject *)type, args[i])
                                                : refuse_name(args[i]);
    return PyErr_Format(PyExc_TypeError, "region() takes one name and keyword values (%zd given)",
                        count);
}

/* region("name", key=value, …), called by everybody who writes it so. */
static PyObject *region_make(PyObject *type, PyObject *const *args, size_t flagged,
                             PyObject *keywords)
{
    Py_ssize_t count = PyVectorcall_NARGS(flagged);
    if (__builtin_expect(count != 1 || !PyUnicode_Check(args[0]), 0))
        return make_otherwise(type, args, count, keywords);
    if (__builtin_expect(keywords && fm_trace_on(), 0))
        return make_with_values(type, args, keywords);
    return make((PyTypeObject *)type, args[0]);
}

static __attribute__((noinline)) void region_free(struct region_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject *name = self->name;
    Py_XDECREF(self->values);
    PyObject_Free(self);
    Py_DECREF(name);
    Py_DECREF(type);
}

static void region_dealloc(struct region_object *self)
{
    if (__builtin_expect(!stock.count, 0))
        stock.type = Py_TYPE(self);
    if (__builtin_expect(stock.count < STOCK && stock.type == Py_TYPE(self) && !self->values &&
                             PyUnicode_GET_LENGTH(self->name) <= LONGEST_KEPT,
                         1))
        stock.objects[stock.count++] = self;
    else
        region_free(self);
}

/* ---- entering and leaving ---------------------------------------------------------------- */

static __attribute__((noinline)) PyObject *enter_recorded(struct region_object *self)
{
    fm_regions_enter(self, self->name, &self->known);
    if (__builtin_expect(self->values != NULL, 0))
        fm_region_traced_values((struct fm_trace_valued){ FM_TRACE_OF_BEGIN, 0 }, self->values);
    return Py_NewRef((PyObject *)self);
}

static __attribute__((noinline)) PyObject *leave_recorded(struct region_object *self)
{
    fm_regions_leave(self);
    Py_RETURN_NONE;
}

static inline PyObject *enter(struct region_object *self)
{
    if (__builtin_expect(fm_regions_recorded, 0))
        return enter_recorded(self);
    return Py_NewRef((PyObject *)self);
}

static inline PyObject *leave(struct region_object *self)
{
    if (__builtin_expect(fm_regions_recorded, 0))
        return leave_recorded(self);
    Py_RETURN_NONE;
}

/* What stands around a function is Python's, and loaded when it is first needed. */
static __attribute__((noinline)) PyObject *decorate(PyObject *self, PyObject *function)
{
    PyObject *module = PyImport_ImportModule("fathom._regions");
    PyObject *decorated =
        module ? PyObject_CallMethod(module, "decorated", "OO", self, function) : NULL;
    Py_XDECREF(module);
    return decorated;
}

static __attribute__((noinline)) PyObject *wrong_call(void)
{
    PyErr_SetString(PyExc_TypeError, "a region is called with the function that it decorates");
    return NULL;
}

#if FM_WITH_BINDS

static PyObject *region_vectorcall(PyObject *object, PyObject *const *args, size_t flagged,
                                   PyObject *keywords)
{
    struct region_object *self = (struct region_object *)object;
    Py_ssize_t count = PyVectorcall_NARGS(flagged);
    if (__builtin_expect(keywords && PyTuple_GET_SIZE(keywords), 0))
        return wrong_call();
    if (count == 0)
        return enter(self);
    if (count == 3)
        return leave(self);
    return count == 1 ? decorate(object, args[0]) : wrong_call();
}

/* `__enter__` and `__exit__` as the type has them. */
struct half_object {
    PyObject_HEAD
    vectorcallfunc call;
    PyTypeObject *region;
    Py_ssize_t arguments; /* without the region */
};

/* region.__enter__(r), as contextlib.ExitStack calls it. */
static PyObject *half_vectorcall(PyObject *object, PyObject *const *args, size_t flagged,
                                 PyObject *keywords)
{
    struct half_object *self = (struct half_object *)object;
    Py_ssize_t count = PyVectorcall_NARGS(flagged);
    if (count != self->arguments + 1 || (keywords && PyTuple_GET_SIZE(keywords)) ||
        !Py_IS_TYPE(args[0], self->region)) {
        PyErr_SetString(PyExc_TypeError, "this is a method of fathom.region");
        return NULL;
    }
    struct region_object *region = (struct region_object *)args[0];
    return self->arguments ? leave(region) : enter(region);
}

static PyObject *half_get(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    return Py_NewRef(object ? object : self);
}

static void half_dealloc(struct half_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyMemberDef half_members[] = {
    { "__vectorcalloffset__", T_PYSSIZET, offsetof(struct half_object, call), READONLY, NULL },
    { NULL, 0, 0, 0, NULL },
};

static PyType_Slot half_slots[] = {
    { Py_tp_dealloc, (void *)half_dealloc },
    { Py_tp_descr_get, (void *)half_get },
    { Py_tp_call, (void *)PyVectorcall_Call },
    { Py_tp_members, half_members },
    { 0, NULL },
};

static PyType_Spec half_spec = {
    .name = "fathom._agent.region_method",
    .basicsize = sizeof(struct half_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = half_slots,
};

/* Put both halves into the region's type, which lives as long as they do. */
static int add_halves(PyObject *region)
{
    static const struct {
        const char *name;
        Py_ssize_t arguments;
    } halves[] = { { "__enter__", 0 }, { "__exit__", 3 } };
    PyObject *type = PyType_FromSpec(&half_spec),
             *dict = fm_python_type_dict((PyTypeObject *)region);
    int rc = type && dict ? 0 : -1;
    for (int i = 0; i < 2 && rc == 0; i++) {
        struct half_object *half = PyObject_New(struct half_object, (PyTypeObject *)type);
        if (!half)
            rc = -1;
        else {
            half->call = half_vectorcall;
            half->region = (PyTypeObject *)region;
            half->arguments = halves[i].arguments;
            rc = PyDict_SetItemString(dict, halves[i].name, (PyObject *)half);
            Py_DECREF(half);
        }
    }
    Py_XDECREF(type);
    PyType_Modified((PyTypeObject *)region);
    return rc;
}

#else

static PyObject *region_enter(struct region_object *self, PyObject *unused)
{
    (void)unused;
    return enter(self);
}

static PyObject *region_exit(struct region_object *self, PyObject *const *args, Py_ssize_t count)
{
    (void)args, (void)count;
    return leave(self);
}

static PyObject *region_call(PyObject *self, PyObject *args, PyObject *keywords)
{
    if (PyTuple_GET_SIZE(args) != 1 || (keywords && PyDict_GET_SIZE(keywords)))
        return wrong_call();
    return decorate(self, PyTuple_GET_ITEM(args, 0));
}

#endif

/* ---- the type ---------------------------------------------------------------------------- */

static PyObject *region_name(struct region_object *self, void *unused)
{
    (void)unused;
    return Py_NewRef(self->name);
}

static PyObject *region_repr(struct region_object *self)
{
    return PyUnicode_FromFormat("fathom.region(%R)", self->name);
}

static PyObject *region_on(PyObject *type, PyObject *unused)
{
    (void)type, (void)unused;
    return PyBool_FromLong(fm_regions_recorded);
}

static PyObject *region_peak(PyObject *type, PyObject *unused)
{
    (void)type, (void)unused;
    return PyLong_FromLongLong(fm_regions_peak());
}

PyMethodDef fm_region_methods[] = {
#if !FM_WITH_BINDS
    { "__enter__", (PyCFunction)region_enter, METH_NOARGS, "The region begins." },
    { "__exit__", (PyCFunction)(void (*)(void))region_exit, METH_FASTCALL, "The region ends." },
#endif
    { "recorded", region_on, METH_NOARGS | METH_STATIC, "Are regions recorded in this process?" },
    { "_peak", region_peak, METH_NOARGS | METH_STATIC,
      "Bytes that the innermost region of this thread stood above its begin, at most; -1: not known." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef properties[] = {
    { "name", (getter)region_name, NULL, "Its name.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

#if FM_WITH_BINDS
static PyMemberDef members[] = {
    { "__vectorcalloffset__", T_PYSSIZET, offsetof(struct region_object, call), READONLY, NULL },
    { NULL, 0, 0, 0, NULL },
};
#endif

static const char doc[] =
    "region(name, /, **values)\n--\n\n"
    "A named phase of the program: how often it was entered, how long it took, and its memory.\n\n"
    "    with fathom.region(\"assembly\"):\n        ...\n\n"
    "    @fathom.region(\"solve\")\n    def solve(): ...\n\n"
    "Regions nest, in each thread for itself. `fathom run` records them; otherwise nothing happens,\n"
    "unless FATHOM_SUMMARY asks for a table. Of functions of all kinds, generators and coroutines\n"
    "included, the time until they are done is in the region, and what they do to the heap.";

static PyType_Slot slots[] = {
    { Py_tp_doc, (void *)doc },
    { Py_tp_dealloc, (void *)region_dealloc },
    { Py_tp_repr, (void *)region_repr },
    { Py_tp_methods, fm_region_methods },
    { Py_tp_getset, properties },
#if FM_WITH_BINDS
    { Py_tp_members, members },
    { Py_tp_call, (void *)PyVectorcall_Call },
#else
    { Py_tp_call, (void *)region_call },
#endif
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "fathom.region",
    .basicsize = sizeof(struct region_object),
#if FM_WITH_BINDS
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION |
             Py_TPFLAGS_HAVE_VECTORCALL,
#else
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
#endif
    .slots = slots,
};

PyObject *fm_region_type_new(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    if (type)
        ((PyTypeObject *)type)->tp_vectorcall = region_make;
#if FM_WITH_BINDS
    if (type && add_halves(type) < 0)
        Py_CLEAR(type);
#endif
    return type;
}

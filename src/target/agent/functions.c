/* Functions as the collector knows them; see functions.h. */
#include "target/agent/functions.h"

#include <string.h>

#include "target/agent/lines/lines.h"
#include "target/agent/sources.h"
#include "target/agent/trace/trace.h"

/* Generated code (namedtuple, dataclass, eval in a loop) that differs only in its content: this
 * many functions of one name and place are told apart, further ones share a record. */
#define MAX_TWINS 1024

Py_ssize_t fm_code_index[FM_SLOTS] = { -1, -1, -1 };
Py_ssize_t fm_listen_index[FM_SLOTS] = { -1, -1, -1 };
struct fm_c_cache_entry fm_c_cache[FM_SLOTS][FM_C_CACHE];
struct fm_code_words fm_code_words = { PY_SSIZE_T_MAX, 1 };

/* Of each slot: every function, Python functions by identity, C functions by definition, and how
 * many different functions one label has. They live as long as the process. */
static struct {
    struct fm_func *all;
    struct fm_agent_table by_identity, by_definition, label_counts;
} slots[FM_SLOTS];

/* Stands in the C cache where nothing is cached, so that a lookup needs no NULL check. */
static struct fm_func no_function;

/* They lie behind the function: asked for right after it. */
static void prepare_words(Py_ssize_t functions)
{
    Py_ssize_t index = fm_python_code_extra_request(NULL);
    fm_code_words.index = index == functions + 1 ? index : PY_SSIZE_T_MAX;
}

int fm_functions_prepare(int slot)
{
    if (fm_code_index[slot] >= 0)
        return 0;
    PyCodeObject *probe = PyCode_NewEmpty("fathom", "probe", 1);
    if (!probe)
        return -1;
    Py_ssize_t index = fm_python_code_extra_request(NULL);
    bool ok = index >= 0 && fm_python_code_extra_works(probe, index);
    Py_DECREF(probe);
    if (!ok) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "this Python keeps code extras in an unknown way");
        return -1;
    }
    if (slot == FM_TRACE_SLOT && FM_HAS_MONITORING)
        prepare_words(index);
    for (size_t i = 0; i < FM_C_CACHE; i++)
        fm_c_cache[slot][i].func = &no_function;
    fm_listen_index[slot] = fm_python_code_extra_request(NULL);
    if (fm_listen_index[slot] < 0)
        return -1;
    fm_code_index[slot] = index;
    return 0;
}

void fm_functions_reset(struct fm_collector *c)
{
    for (struct fm_func *f = slots[c->slot].all; f; f = f->next) {
        f->id = f->trace_word = 0;
        if (f->lines)
            fm_lines_reset(f);
        if (!c->keep_code)
            Py_CLEAR(f->owned);
    }
    c->next_func = 1;
    if (c->slot == FM_TRACE_SLOT)
        fm_code_words.era++;
}

void fm_function_keep_word(PyCodeObject *code, const struct fm_func *f)
{
    uintptr_t known = (uintptr_t)fm_code_words.era << 32 | f->trace_word;
    Py_ssize_t index = fm_code_words.index;
    if (index == PY_SSIZE_T_MAX || fm_python_code_extra(code, index) == (void *)known)
        return;
    struct fm_raised raised = fm_python_put_aside();
    if (fm_python_code_extra_set(code, index, (void *)known) < 0)
        PyErr_Clear(); /* then its calls go the slow way */
    fm_python_put_back(raised);
}

uint64_t fm_functions_line_hits(const struct fm_collector *c)
{
    uint64_t hits = 0;
    for (struct fm_func *f = slots[c->slot].all; f; f = f->next)
        for (int i = 0; f->lines && i < f->lines->count; i++)
            if (f->lines->records[i])
                hits += f->lines->records[i]->hits;
    return hits;
}

void fm_functions_forget_choice(struct fm_collector *c)
{
    for (struct fm_func *f = slots[c->slot].all; f; f = f->next) {
        f->lines = NULL;
        f->lines_known = false;
        f->trace_choice = FM_TRACE_UNDECIDED;
        f->asked = NULL;
    }
}

static struct fm_func *new_func(struct fm_collector *c)
{
    struct fm_func *f = fm_agent_alloc(sizeof *f);
    if (!f)
        return NULL;
    f->next = slots[c->slot].all;
    slots[c->slot].all = f;
    return f;
}

/* ---- Python code ------------------------------------------------------------------------- */

static uint64_t hash_object(PyObject *object)
{
    Py_hash_t hash = object ? PyObject_Hash(object) : 0;
    if (hash == -1)
        PyErr_Clear();
    return fm_mix64((uint64_t)hash);
}

static uint64_t hash_label(PyCodeObject *code)
{
    uint64_t h = hash_object(code->co_filename);
    h = fm_mix64(h + hash_object(code->co_qualname));
    return fm_mix64(h + (uint64_t)code->co_firstlineno) | 1;
}

/* The content: what CPython's own hash of code covers, plus bytes and positions, because 3.11
 * leaves the former out and only the latter tells two lambdas on one line apart. */
static uint64_t hash_content(PyCodeObject *code, uint64_t label)
{
    uint64_t h = fm_mix64(label + hash_object((PyObject *)code));
    h = fm_mix64(h + hash_object(code->co_linetable));
    PyObject *bytes = PyCode_GetCode(code);
    h = fm_mix64(h + hash_object(bytes));
    Py_XDECREF(bytes);
    PyErr_Clear();
    return h | 1;
}

static uint32_t code_flags(PyCodeObject *code)
{
    uint32_t flags = 0;
    if (code->co_flags & CO_GENERATOR)
        flags |= FM_LIVE_FUNCTION_GENERATOR;
    if (code->co_flags & CO_COROUTINE)
        flags |= FM_LIVE_FUNCTION_COROUTINE;
    if (code->co_flags & CO_ASYNC_GENERATOR)
        flags |= FM_LIVE_FUNCTION_ASYNC_GENERATOR;
    return flags;
}

/* The record for this content, new or not; NULL without memory. */
static struct fm_func *find_or_make(struct fm_collector *c, PyCodeObject *code)
{
    uint64_t label = hash_label(code);
    uint64_t identity = hash_content(code, label);
    struct fm_func *f = fm_agent_table_find(&slots[c->slot].by_identity, identity);
    if (f)
        return f;
    uintptr_t twins = (uintptr_t)fm_agent_table_find(&slots[c->slot].label_counts, label);
    if (twins >= MAX_TWINS) {
        identity = label;
        f = fm_agent_table_find(&slots[c->slot].by_identity, identity);
        if (f)
            return f;
    }
    f = new_func(c);
    if (!f || !fm_agent_table_set(&slots[c->slot].by_identity, identity, f))
        return NULL;
    fm_agent_table_set(&slots[c->slot].label_counts, label, (void *)(twins + 1));
    f->flags = code_flags(code);
    return f;
}

struct fm_func *fm_function_of_new_code(struct fm_collector *c, PyCodeObject *code)
{
    uint64_t since = fm_clock_ticks();
    struct fm_raised raised = fm_python_put_aside();
    struct fm_func *f = find_or_make(c, code);
    if (f && fm_python_code_extra_set(code, fm_code_index[c->slot], f) < 0)
        PyErr_Clear();
    fm_python_put_back(raised);
    fm_collector_charge(c, since);
    return f;
}

/* The UTF-8 of a str; lone surrogates pass, as in marshal. `*ret_bytes` owns it if not NULL. */
static struct fm_store_text utf8(PyObject *str, PyObject **ret_bytes)
{
    Py_ssize_t len = 0;
    *ret_bytes = NULL;
    const char *text = str && PyUnicode_Check(str) ? PyUnicode_AsUTF8AndSize(str, &len) : NULL;
    if (!text && str && PyUnicode_Check(str)) {
        PyErr_Clear();
        *ret_bytes = PyUnicode_AsEncodedString(str, "utf-8", "surrogatepass");
        if (*ret_bytes) {
            text = PyBytes_AS_STRING(*ret_bytes);
            len = PyBytes_GET_SIZE(*ret_bytes);
        }
    }
    PyErr_Clear();
    return (struct fm_store_text){ text ? text : "", text ? (size_t)len : 0 };
}

static bool define_code(struct fm_collector *c, struct fm_func *f, PyCodeObject *code, uint32_t id)
{
    PyObject *owners[3];
    struct fm_store_text texts[3] = { utf8(code->co_name, &owners[0]),
                                      utf8(code->co_qualname, &owners[1]),
                                      utf8(code->co_filename, &owners[2]) };
    if (texts[1].len == texts[0].len && memcmp(texts[1].bytes, texts[0].bytes, texts[0].len) == 0)
        texts[1].len = 0;
    uint64_t numbers[3] = { id, f->flags, (uint64_t)(uint32_t)code->co_firstlineno };
    bool ok = fm_store_define(&c->store, FM_LIVE_DEF_FUNCTION, numbers, 3, texts, 3);
    if (ok)
        fm_sources_see_file(c, texts[2]);
    if (ok && c->keep_code)
        Py_XSETREF(f->owned, Py_NewRef((PyObject *)code));
    for (int i = 0; i < 3; i++)
        Py_XDECREF(owners[i]);
    return ok;
}

/* ---- C functions ------------------------------------------------------------------------- */

/* The method descriptor in the classes of `self` that is made from `def`: its repr names the class
 * that defines the method, even where a subclass overrides it in Python. Borrowed, or NULL. */
static PyObject *descriptor_of(PyObject *self, const PyMethodDef *def)
{
    PyObject *mro = Py_TYPE(self)->tp_mro;
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *dict = fm_python_type_dict((PyTypeObject *)PyTuple_GET_ITEM(mro, i));
        PyObject *found = dict ? PyDict_GetItemString(dict, def->ml_name) : NULL;
        if (!found)
            continue;
        if (Py_TYPE(found) == &PyMethodDescr_Type &&
            ((PyMethodDescrObject *)found)->d_method == def)
            return found;
        if (PyCFunction_Check(found) && ((PyCFunctionObject *)found)->m_ml == def)
            return found;
    }
    return NULL;
}

static PyObject *name_of_function(PyCFunctionObject *function)
{
    const char *name = function->m_ml->ml_name;
    PyObject *module = function->m_module;
    if (!function->m_self) {
        if (module && PyUnicode_Check(module) &&
            PyUnicode_CompareWithASCIIString(module, "builtins") != 0)
            return PyUnicode_FromFormat("<%U.%s>", module, name);
        return PyUnicode_FromFormat("<%s>", name);
    }
    PyObject *descriptor = descriptor_of(function->m_self, function->m_ml);
    if (descriptor)
        return PyObject_Repr(descriptor);
    if (module && PyUnicode_Check(module))
        return PyUnicode_FromFormat("<built-in method %U.%s>", module, name);
    return PyUnicode_FromFormat("<built-in method %s>", name);
}

/* The name of a C function, without the address that some reprs end in. NULL without memory. */
static char *c_name(PyObject *callable)
{
    PyObject *text = PyCFunction_Check(callable) ? name_of_function((PyCFunctionObject *)callable)
                                                 : PyObject_Repr(callable);
    Py_ssize_t len = 0;
    const char *name = text ? PyUnicode_AsUTF8AndSize(text, &len) : NULL;
    PyErr_Clear();
    if (!name) {
        name = "<built-in method ?>";
        len = (Py_ssize_t)strlen(name);
    }
    const char *address = strstr(name, " at 0x");
    Py_ssize_t kept = address ? address - name : len;
    char *copy = fm_agent_alloc((size_t)kept + 2);
    if (copy) {
        memcpy(copy, name, (size_t)kept);
        if (address)
            copy[kept] = '>';
    }
    Py_XDECREF(text);
    return copy;
}

static struct fm_func *make_c(struct fm_collector *c, PyObject *callable, const PyMethodDef *def)
{
    char *name = c_name(callable); /* first: what can be found must have one */
    struct fm_func *f = name ? new_func(c) : NULL;
    if (!f)
        return NULL;
    f->flags = FM_LIVE_FUNCTION_C;
    f->key = def;
    f->meth = (const void *)def->ml_meth;
    f->name = name;
    return fm_agent_table_set(&slots[c->slot].by_definition, (uint64_t)(uintptr_t)def, f) ? f
                                                                                          : NULL;
}

struct fm_func *fm_function_of_new_c(struct fm_collector *c, PyObject *callable,
                                     const PyMethodDef *def)
{
    struct fm_func *f =
        fm_agent_table_find(&slots[c->slot].by_definition, (uint64_t)(uintptr_t)def);
    if (!f || f->meth != (const void *)def->ml_meth) {
        uint64_t since = fm_clock_ticks();
        struct fm_raised raised = fm_python_put_aside();
        f = make_c(c, callable, def);
        fm_python_put_back(raised);
        fm_collector_charge(c, since);
    }
    if (f) {
        size_t place = ((uintptr_t)def >> 4 ^ (uintptr_t)def >> 13) & (FM_C_CACHE - 1);
        fm_c_cache[c->slot][place] = (struct fm_c_cache_entry){ def, f };
    }
    return f;
}

struct fm_func *fm_function_of_region(struct fm_collector *c, const char *name, size_t len)
{
    char *copy = fm_agent_alloc(len + 1);
    struct fm_func *f = copy ? new_func(c) : NULL;
    if (!f)
        return NULL;
    memcpy(copy, name, len);
    f->flags = FM_LIVE_FUNCTION_REGION;
    f->name = copy;
    f->lines_known = true;
    return f;
}

static bool define_c(struct fm_collector *c, struct fm_func *f, uint32_t id)
{
    struct fm_store_text texts[3] = { { f->name, strlen(f->name) }, { "", 0 }, { "", 0 } };
    uint64_t numbers[3] = { id, f->flags, 0 };
    if (c->keep_code && !f->owned)
        f->owned = PyUnicode_FromString(f->name);
    PyErr_Clear();
    return fm_store_define(&c->store, FM_LIVE_DEF_FUNCTION, numbers, 3, texts, 3);
}

/* ---- both -------------------------------------------------------------------------------- */

bool fm_function_define(struct fm_collector *c, struct fm_func *f, const void *key)
{
    struct fm_raised raised = fm_python_put_aside();
    uint32_t id = c->next_func;
    bool named = f->flags & (FM_LIVE_FUNCTION_C | FM_LIVE_FUNCTION_REGION);
    bool ok = named ? define_c(c, f, id) : define_code(c, f, (PyCodeObject *)key, id);
    fm_python_put_back(raised);
    if (ok) {
        f->id = id;
        c->next_func++;
    }
    return ok;
}

PyObject *fm_functions_list(struct fm_collector *c)
{
    PyObject *list = PyDict_New();
    for (struct fm_func *f = slots[c->slot].all; list && f; f = f->next) {
        if (!f->id || !f->owned)
            continue;
        PyObject *id = PyLong_FromUnsignedLong(f->id);
        if (!id || PyDict_SetItem(list, id, f->owned) < 0)
            Py_CLEAR(list);
        Py_XDECREF(id);
    }
    return list;
}

/* Objects as short texts; see render.h. */
#include "target/agent/trace/render.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ELLIPSIS   "…"
#define LEAST_TAIL 32  /* bytes kept for what follows a long text: its end and its length */
#define INT_BITS   512 /* longer ones are told by their length: decimal digits would take long */

/* ---- bytes ------------------------------------------------------------------------------- */

/* All of it, or nothing from here on. */
static bool add(struct fm_rendered *to, size_t keep, const char *bytes, size_t len)
{
    if (to->cut || to->len + len + keep + strlen(ELLIPSIS) > sizeof to->text) {
        to->cut = true;
        return false;
    }
    memcpy(to->text + to->len, bytes, len);
    to->len += len;
    return true;
}

static void add_text(struct fm_rendered *to, const char *text)
{
    add(to, 0, text, strlen(text));
}

/* A character of somebody's text: a quote or what is not printable by its number. */
static bool add_character(struct fm_rendered *to, size_t keep, Py_UCS4 c, Py_UCS4 quote)
{
    char bytes[16];
    int len;
    if (quote && (c == quote || c == '\\'))
        len = snprintf(bytes, sizeof bytes, "\\%c", (char)c);
    else if (c == '\n')
        len = snprintf(bytes, sizeof bytes, "\\n");
    else if (c < 0x20 || c == 0x7f || (c >= 0x80 && c < 0xa0))
        len = snprintf(bytes, sizeof bytes, "\\x%02x", (unsigned)c);
    else if (c < 0x80)
        len = snprintf(bytes, sizeof bytes, "%c", (char)c);
    else if ((c >= 0xd800 && c < 0xe000) || (c >= 0x200b && c < 0x2010) ||
             (c >= 0x2028 && c < 0x2030) || (c >= 0x2066 && c < 0x206a) || c == 0xfeff ||
             c == 0xfffe || c == 0xffff || c > 0x10ffff)
        len = snprintf(bytes, sizeof bytes, "\\u%04x", (unsigned)c);
    else if (c < 0x800)
        len = snprintf(bytes, sizeof bytes, "%c%c", (int)(0xc0 | c >> 6), (int)(0x80 | (c & 63)));
    else if (c < 0x10000)
        len = snprintf(bytes, sizeof bytes, "%c%c%c", (int)(0xe0 | c >> 12),
                       (int)(0x80 | (c >> 6 & 63)), (int)(0x80 | (c & 63)));
    else
        len = snprintf(bytes, sizeof bytes, "%c%c%c%c", (int)(0xf0 | c >> 18),
                       (int)(0x80 | (c >> 12 & 63)), (int)(0x80 | (c >> 6 & 63)),
                       (int)(0x80 | (c & 63)));
    return add(to, keep, bytes, (size_t)len);
}

/* Names of types are UTF-8 already. */
static void add_name(struct fm_rendered *to, const char *name)
{
    size_t len = strnlen(name, 120);
    while (len && len == 120 && ((unsigned char)name[len] & 0xc0) == 0x80)
        len--;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return add_text(to, "?");
    add(to, 0, name, len);
}

static void add_type(struct fm_rendered *to, PyObject *object)
{
    add_name(to, Py_TYPE(object)->tp_name);
}

/* ---- text -------------------------------------------------------------------------------- */

static void add_length(struct fm_rendered *to, Py_ssize_t length)
{
    char text[40];
    snprintf(text, sizeof text, " (%zd)", length);
    to->cut = false; /* it was kept room for */
    add_text(to, text);
}

static void add_str(struct fm_rendered *to, PyObject *str, bool quoted)
{
    Py_UCS4 quote = quoted ? '\'' : 0;
    if (to->cut)
        return;
    if (!fm_python_str_is_ready(str)) {
        add_type(to, str);
        return;
    }
    Py_ssize_t len = PyUnicode_GET_LENGTH(str), i = 0;
    if (quoted)
        add_text(to, "'");
    while (i < len && add_character(to, LEAST_TAIL, PyUnicode_READ_CHAR(str, i), quote))
        i++;
    to->cut = false;
    if (i < len)
        add_text(to, ELLIPSIS);
    if (quoted)
        add_text(to, "'");
    if (quoted && i < len)
        add_length(to, len);
}

static void add_bytes(struct fm_rendered *to, const char *prefix, const char *bytes, Py_ssize_t len)
{
    Py_ssize_t i = 0;
    if (to->cut)
        return;
    add_text(to, prefix);
    add_text(to, "'");
    for (; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        char hex[8];
        snprintf(hex, sizeof hex, "\\x%02x", c);
        if (c >= 0x80 ? !add(to, LEAST_TAIL, hex, strlen(hex))
                      : !add_character(to, LEAST_TAIL, c, '\''))
            break;
    }
    to->cut = false;
    add_text(to, i < len ? ELLIPSIS "'" : "'");
    if (i < len)
        add_length(to, len);
}

/* ---- numbers ----------------------------------------------------------------------------- */

static void add_int(struct fm_rendered *to, PyObject *number)
{
    char text[40];
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (!overflow) {
        snprintf(text, sizeof text, "%lld", value);
        add_text(to, text);
        return;
    }
    size_t bits = fm_python_int_bits(number);
    PyObject *decimal = bits <= INT_BITS ? PyLong_Type.tp_repr(number) : NULL;
    if (decimal) {
        add_str(to, decimal, false);
    } else {
        snprintf(text, sizeof text, "int of %zu bits", bits);
        add_text(to, text);
    }
    Py_XDECREF(decimal);
}

static void add_float(struct fm_rendered *to, double value)
{
    char *text = PyOS_double_to_string(value, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    add_text(to, text ? text : "float");
    PyMem_Free(text);
}

bool fm_render_number(PyObject *object, double *number)
{
    int overflow = 0;
    if (!object)
        return false;
    if (PyLong_Check(object))
        *number = (double)PyLong_AsLongLongAndOverflow(object, &overflow);
    else if (PyFloat_Check(object))
        *number = PyFloat_AS_DOUBLE(object);
    else
        return false;
    return !overflow && isfinite(*number);
}

/* ---- all of them ------------------------------------------------------------------------- */

/* How many there are in a container of the language, or of a type that inherits from one; −1: it is none. */
static Py_ssize_t length_of(PyObject *object)
{
    if (PyList_Check(object))
        return PyList_GET_SIZE(object);
    if (PyTuple_Check(object))
        return PyTuple_GET_SIZE(object);
    if (PyDict_Check(object))
        return ((PyDictObject *)object)->ma_used;
    if (PyAnySet_Check(object))
        return ((PySetObject *)object)->used;
    return -1;
}

/* What can be shown as it is. */
static bool add_plain(struct fm_rendered *to, PyObject *object)
{
    if (object == Py_None)
        add_text(to, "None");
    else if (PyBool_Check(object))
        add_text(to, object == Py_True ? "True" : "False");
    else if (PyLong_Check(object))
        add_int(to, object);
    else if (PyFloat_Check(object))
        add_float(to, PyFloat_AS_DOUBLE(object));
    else if (PyUnicode_Check(object))
        add_str(to, object, true);
    else if (PyBytes_Check(object))
        add_bytes(to, "b", PyBytes_AS_STRING(object), PyBytes_GET_SIZE(object));
    else if (PyByteArray_Check(object))
        add_bytes(to, "bytearray ", PyByteArray_AS_STRING(object), PyByteArray_GET_SIZE(object));
    else
        return false;
    return true;
}

static void add_by_type(struct fm_rendered *to, PyObject *object)
{
    char text[40];
    Py_ssize_t length = length_of(object);
    if (length >= 0) {
        add_type(to, object);
        snprintf(text, sizeof text, " of %zd", length);
        add_text(to, text);
    } else if (PyType_Check(object)) {
        add_text(to, "class ");
        add_name(to, ((PyTypeObject *)object)->tp_name);
    } else if (PyFunction_Check(object)) {
        add_text(to, "function ");
        add_str(to, ((PyFunctionObject *)object)->func_qualname, false);
    } else {
        add_text(to, "<");
        add_type(to, object);
        add_text(to, ">");
    }
}

/* Ctrl-C may be heard while repr() runs: it is the program's, and comes again. */
static void swallow(void)
{
    bool interrupted = PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    PyErr_Clear();
    if (interrupted)
        PyErr_SetInterrupt();
}

/* What the object says of itself; false if it does not, or this is asked for by one that does. */
static bool add_repr(struct fm_rendered *to, PyObject *object)
{
    static __thread bool asking __attribute__((tls_model("initial-exec")));
    if (asking)
        return false;
    asking = true;
    Py_INCREF(object);
    PyObject *text = PyObject_Repr(object);
    if (text)
        add_str(to, text, false);
    else
        swallow();
    Py_XDECREF(text);
    Py_DECREF(object);
    asking = false;
    return text != NULL;
}

static void add_object(struct fm_rendered *to, PyObject *object, bool repr)
{
    if (!object)
        add_text(to, "not bound");
    else if (!add_plain(to, object) && !(repr && add_repr(to, object)))
        add_by_type(to, object);
}

static void end(struct fm_rendered *to)
{
    if (to->cut) /* room is kept for it */
        memcpy(to->text + to->len, ELLIPSIS, strlen(ELLIPSIS)), to->len += strlen(ELLIPSIS);
}

void fm_render(struct fm_rendered *to, PyObject *object, bool repr)
{
    int saved_errno = errno;
    struct fm_raised raised = fm_python_put_aside();
    to->len = 0;
    to->cut = false;
    add_object(to, object, repr);
    end(to);
    PyErr_Clear();
    fm_python_put_back(raised);
    errno = saved_errno;
}

static void add_dict(struct fm_rendered *to, PyObject *dict, bool repr)
{
    Py_ssize_t at = 0;
    PyObject *key, *value;
    bool first = true;
    while (!to->cut && PyDict_Next(dict, &at, &key, &value)) {
        add_text(to, first ? "" : ", ");
        first = false;
        if (PyUnicode_Check(key))
            add_str(to, key, false);
        add_text(to, "=");
        add_object(to, value, repr);
    }
}

void fm_render_rest(struct fm_rendered *to, PyObject *object, bool repr)
{
    int saved_errno = errno;
    struct fm_raised raised = fm_python_put_aside();
    to->len = 0;
    to->cut = false;
    Py_XINCREF(object);
    if (object && PyTuple_CheckExact(object)) {
        add_text(to, "(");
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object) && !to->cut; i++) {
            add_text(to, i ? ", " : "");
            add_object(to, PyTuple_GET_ITEM(object, i), repr);
        }
        add_text(to, ")");
    } else if (object && PyDict_CheckExact(object)) {
        add_text(to, "{");
        add_dict(to, object, repr);
        add_text(to, "}");
    } else {
        add_object(to, object, repr);
    }
    Py_XDECREF(object);
    end(to);
    PyErr_Clear();
    fm_python_put_back(raised);
    errno = saved_errno;
}

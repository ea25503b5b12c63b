/* What the heap library must know of this Python; see heap.h. */
#define FM_PYTHON_FRAMES
#include "target/agent/python.h"

#include "target/agent/heap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/run_config.h"
#include "target/agent/bridge.h"
#include "target/agent/lines/line_memory.h"
#include "target/agent/threads.h"
#include "target/heap/layout.h"

/* ---- code objects, read without the GIL: all of these never change ---- */

static uint32_t put_utf8(char *out, Py_UCS4 c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* A str as UTF-8, cut to what there is room for. */
static uint32_t read_text(PyObject *text, char *out, size_t room)
{
    uint32_t used = 0;
    if (!text || !PyUnicode_Check(text))
        return 0;
    int kind = (int)PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(text) && used + 4 <= room; i++)
        used += put_utf8(out + used, PyUnicode_READ(kind, data, i));
    return used;
}

static void describe(const void *address, struct fm_heap_code *out)
{
    const PyCodeObject *code = address;
    out->flags = (uint32_t)code->co_flags;
    out->first_line = (uint32_t)code->co_firstlineno;
    out->name_bytes = read_text(code->co_name, out->name, sizeof out->name);
    out->qualname_bytes = read_text(code->co_qualname, out->qualname, sizeof out->qualname);
    out->file_bytes = read_text(code->co_filename, out->file, sizeof out->file);
    out->table = (const unsigned char *)PyBytes_AS_STRING(code->co_linetable);
    out->table_bytes = (uint32_t)PyBytes_GET_SIZE(code->co_linetable);
}

/* A type of a module is "module.name", as its repr has it; tp_name of a class in Python is not. */
static void describe_type(const void *address, struct fm_heap_code *out)
{
    const PyTypeObject *type = address;
    struct fm_raised raised = fm_python_put_aside();
    PyObject *dict =
        type->tp_flags & Py_TPFLAGS_HEAPTYPE ? fm_python_type_dict((PyTypeObject *)address) : NULL;
    PyObject *module = dict ? PyDict_GetItemString(dict, "__module__") : NULL; /* borrowed */
    *out = (struct fm_heap_code){ .table = (const unsigned char *)"" };
    if (module && PyUnicode_Check(module) &&
        PyUnicode_CompareWithASCIIString(module, "builtins") != 0) {
        out->name_bytes = read_text(module, out->name, sizeof out->name / 2);
        out->name[out->name_bytes++] = '.';
    }
    const char *name = strrchr(type->tp_name, '.');
    name = dict && name ? name + 1 : type->tp_name;
    size_t len = strnlen(name, sizeof out->name / 2 - 1);
    memcpy(out->name + out->name_bytes, name, len);
    out->name_bytes += (uint32_t)len;
    PyErr_Clear();
    fm_python_put_back(raised);
}

/* ---- frame objects ---- */

#define MOST_YOUNGER 16 /* frames: of a stack that hides its newest frame, none */

/* The frame objects of younger frames are made on the way to it. */
static void *frame_object_of(void *address, const void *frame)
{
    PyThreadState *thread = address;
    int collecting = fm_python_gc_hold(thread);
    struct fm_raised raised = fm_python_put_aside();
    PyFrameObject *object = PyThreadState_GetFrame(thread);
    for (int i = 0; object && (const void *)object->f_frame != frame; i++) {
        PyFrameObject *back = i < MOST_YOUNGER ? PyFrame_GetBack(object) : NULL;
        Py_DECREF(object);
        object = back;
    }
    PyErr_Clear();
    fm_python_put_back(raised);
    fm_python_gc_release(thread, collecting);
    return object;
}

static void give_up(void *object)
{
    Py_DECREF((PyObject *)object);
}

/* ---- names of threads ---- */

static const void *pointer_at(const void *object, uint32_t offset)
{
    const void *p;
    memcpy(&p, (const char *)object + offset, sizeof p);
    return p;
}

/* Since 3.14 the low bits of what a frame has are a tag. */
static const void *without_tag(const void *p)
{
    return (const char *)p - ((uintptr_t)p & 7);
}

static const _PyInterpreterFrame *oldest_frame(const PyThreadState *thread)
{
    const void *newest = pointer_at(thread, FM_THREAD_FRAME);
    const _PyInterpreterFrame *oldest = NULL;
    if (FM_CFRAME_FRAME != UINT32_MAX)
        newest = pointer_at(newest, FM_CFRAME_FRAME);
    for (const _PyInterpreterFrame *f = newest; f; f = f->previous)
        if ((unsigned char)f->owner < FM_OWNER_FOREIGN)
            oldest = f;
    return oldest;
}

/* What threading starts a thread with is Thread._bootstrap(self). */
static uint32_t thread_name(void *address, char *out, uint32_t room)
{
    const _PyInterpreterFrame *frame = oldest_frame(address);
    const PyCodeObject *code = frame ? without_tag(pointer_at(frame, FM_FRAME_CODE)) : NULL;
    PyObject *self = NULL;
    if (code && code->co_argcount == 1 &&
        PyUnicode_CompareWithASCIIString(code->co_name, "_bootstrap") == 0)
        self =
            (PyObject *)without_tag(pointer_at(frame, offsetof(_PyInterpreterFrame, localsplus)));
    if (!self)
        return 0;
    int collecting = fm_python_gc_hold(address);
    struct fm_raised raised = fm_python_put_aside();
    PyObject *name = fm_thread_name_of(self);
    uint32_t used = read_text(name, out, room);
    Py_XDECREF(name);
    PyErr_Clear();
    fm_python_put_back(raised);
    fm_python_gc_release(address, collecting);
    return used;
}

/* ---- memory of lines ---- */

static bool is_late; /* the recording began while the program ran */
static struct fm_heap_meter *(*meter_of_thread)(void);
static struct fm_heap_meter *(*meter_at)(struct fm_heap_meter *place);
static int64_t (*live_bytes)(void);

struct fm_heap_meter *fm_line_memory_meter(void)
{
    return meter_of_thread && live_bytes ? meter_of_thread() : NULL;
}

struct fm_heap_meter *fm_line_memory_meter_at(struct fm_heap_meter *place)
{
    return meter_at && live_bytes ? meter_at(place) : NULL;
}

int64_t fm_line_memory_live(void)
{
    return live_bytes();
}

bool fm_line_memory_is_late(void)
{
    return is_late;
}

static bool types_ended(void)
{
    return fm_python_types_ended();
}

static struct fm_heap_layout layout_of_this(void)
{
    return (struct fm_heap_layout){
        .bytes = sizeof(struct fm_heap_layout),
        .python_hex = PY_VERSION_HEX,
        .thread_frame = FM_THREAD_FRAME,
        .thread_interpreter = FM_THREAD_INTERPRETER,
        .cframe_frame = FM_CFRAME_FRAME,
        .frame_previous = offsetof(_PyInterpreterFrame, previous),
        .frame_instr = FM_FRAME_INSTR,
        .frame_code = FM_FRAME_CODE,
        .frame_owner = offsetof(_PyInterpreterFrame, owner),
        .owner_generator = FRAME_OWNED_BY_GENERATOR,
        .owner_foreign = FM_OWNER_FOREIGN,
        .object_frame = offsetof(PyFrameObject, f_frame),
        .gc_head = sizeof(PyGC_Head),
        .frame_object_bytes = (uint32_t)PyFrame_Type.tp_basicsize,
        .code_bytecode = offsetof(PyCodeObject, co_code_adaptive),
        .finalizing = (const void *const *)&_PyRuntime._finalizing,
        .current_thread = fm_python_current_thread,
        .thread_of_this = fm_python_thread_of_this,
        .frame_object_of = frame_object_of,
        .give_up = give_up,
        .describe = describe,
        .describe_type = describe_type,
        .thread_name = thread_name,
        .types_ended = types_ended,
    };
}

void fm_heap_introduce(void)
{
    int (*python)(const struct fm_heap_layout *) =
        (int (*)(const struct fm_heap_layout *))dlsym(RTLD_DEFAULT, "fathom_heap_python");
    struct fm_heap_layout layout = layout_of_this();
    int wanted = python ? python(&layout) : -1;
    if (wanted < 0)
        return;
    fm_python_new_object *object =
        (fm_python_new_object *)dlsym(RTLD_DEFAULT, "fathom_heap_object");
    void (*no_types)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "fathom_heap_no_types");
    if (wanted && object && no_types && fm_python_trace_objects(object) < 0) {
        PyErr_Clear();
        no_types();
    }
    meter_of_thread = (struct fm_heap_meter * (*)(void)) dlsym(RTLD_DEFAULT, "fathom_heap_meter");
    meter_at = (struct fm_heap_meter * (*)(struct fm_heap_meter *))
        dlsym(RTLD_DEFAULT, "fathom_heap_meter_at");
    live_bytes = (int64_t(*)(void))dlsym(RTLD_DEFAULT, "fathom_heap_live");
}

/* ---- while the program runs ---- */

static void *late; /* the library, if it was loaded by fm_heap_begin() */

static void *symbol(const char *name)
{
    return dlsym(late ? late : RTLD_DEFAULT, name);
}

PyObject *fm_heap_alive(bool contexts)
{
    const char *(*store)(void) = (const char *(*)(void))symbol("fathom_heap_store");
    int (*own)(int) = (int (*)(int))symbol("fathom_heap_own");
    const char *path = store && own ? store() : NULL;
    if (!path)
        Py_RETURN_NONE;
    int before = own(1);
    PyObject *alive = fm_bridge_alive(path, contexts);
    own(before);
    return alive;
}

static int64_t stretch(const char *function)
{
    int64_t (*call)(void) = (int64_t(*)(void))symbol(function);
    return call ? call() : -1;
}

/* What the thread did that began the stretch, as if it were a line. In a run a region around it knows that, too, and
 * lines that are open only when it begins do not disturb that. */
static struct {
    struct fm_line_memory at;
    pthread_t thread;
    bool open;
} own;

int64_t fm_heap_stretch_begin(void)
{
    int64_t live = stretch("fathom_heap_stretch_begin");
    struct fm_heap_meter *meter = live >= 0 ? fm_line_memory_meter() : NULL;
    own.open = meter;
    own.thread = pthread_self();
    fm_line_memory_open(meter, &own.at);
    return live;
}

int64_t fm_heap_stretch_peak(void)
{
    return stretch("fathom_heap_stretch_peak");
}

/* The meter may lie elsewhere by now. */
static struct fm_heap_meter *own_meter(void)
{
    return own.open && pthread_equal(own.thread, pthread_self()) ? fm_line_memory_meter() : NULL;
}

int64_t fm_heap_stretch_own_peak(void)
{
    const struct fm_heap_meter *meter = own_meter();
    return meter ? meter->high - (int64_t)(own.at.allocated - own.at.freed) : -1;
}

int64_t fm_heap_stretch_end(void)
{
    fm_line_memory_close(own_meter(), &own.at, NULL, false);
    own.open = false;
    return stretch("fathom_heap_stretch_end");
}

/* The heap library beside this one, without giving its functions to anybody else. */
static int load_heap(void)
{
    char path[4096] = "";
    if (late || dlsym(RTLD_DEFAULT, "fathom_heap_begin"))
        return 0;
    if (fm_bridge_find("libfathom_heap.so", path, sizeof path) == 0)
        late = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (late)
        return 0;
    const char *why = dlerror();
    PyErr_Format(PyExc_ImportError, "fathom: cannot load its heap library: %s", why ? why : path);
    return -1;
}

int fm_heap_begin(const char *folder)
{
    char config[4096];
    struct fm_heap_layout layout = layout_of_this();
    int len = snprintf(config, sizeof config, "memory=all%cfolder=%s", FM_RUN_SEPARATOR, folder);
    if (load_heap() < 0)
        return -1;
    int (*begin)(const char *, const struct fm_heap_layout *) =
        (int (*)(const char *, const struct fm_heap_layout *))symbol("fathom_heap_begin");
    int rc = begin && len > 0 && (size_t)len < sizeof config ? begin(config, &layout) : -1;
    if (rc == 0) { /* regions have no memory then: they are a run's, which records none */
        is_late = true;
        meter_of_thread = (struct fm_heap_meter * (*)(void)) symbol("fathom_heap_meter");
        live_bytes = (int64_t(*)(void))symbol("fathom_heap_live");
    }
    if (rc < 0)
        PyErr_Format(PyExc_OSError, "fathom: memory cannot be recorded in %s", folder);
    return rc;
}

void fm_heap_over(void)
{
    void (*over)(void) = (void (*)(void))symbol("fathom_heap_over");
    if (over)
        over();
}

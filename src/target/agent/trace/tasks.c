/* asyncio's tasks in a trace; see tasks.h. */
#include "target/agent/trace/tasks.h"

#include <string.h>

#include "target/agent/trace/marks.h"

#define NAME_LOOKS 2 /* at the begin of its first steps */

struct fm_agent_task {
    uint32_t number; /* in the trace */
    bool begun, ended;
    bool found;    /* at its first step, while the create_task that makes it has not returned */
    uint8_t looks; /* at its name, which it may get after it was made */
    uint32_t name;
    const void *coroutine;       /* its own, as frame; NULL: not seen yet */
    const void *step;            /* the one that its step began in */
    struct fm_agent_task *outer; /* whose step this one's is in, or NULL */
};

static struct {
    uint32_t era, count;
    struct fm_agent_table by_address; /* → struct fm_agent_task, never freed */
    PyObject *current, *loop; /* _asyncio.current_task, _get_running_loop; NULL: not there yet */
    PyObject *module, *key;   /* asyncio.tasks, the name of its dictionary of tasks that run */
} tasks;

#define DRIVEN                                                                                     \
    (FM_LIVE_FUNCTION_GENERATOR | FM_LIVE_FUNCTION_COROUTINE | FM_LIVE_FUNCTION_ASYNC_GENERATOR)

uint8_t fm_trace_role_of(PyCodeObject *code, uint32_t flags)
{
    static const char loop[] = "asyncio/base_events.py";
    if (flags & FM_LIVE_FUNCTION_COROUTINE)
        return FM_TRACE_COROUTINE;
    if (PyUnicode_CompareWithASCIIString(code->co_name, "create_task") != 0)
        return FM_TRACE_ANY;
    const char *file = PyUnicode_AsUTF8(code->co_filename);
    size_t len = file ? strlen(file) : 0;
    PyErr_Clear();
    bool makes = len >= sizeof loop - 1 && strcmp(file + len - (sizeof loop - 1), loop) == 0;
    return makes ? FM_TRACE_MAKES_TASKS : FM_TRACE_ANY;
}

/* ---- asking asyncio ---------------------------------------------------------------------- */

/* A module that was imported, borrowed; or NULL. */
static PyObject *imported(const char *name)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *module = modules ? PyDict_GetItemString(modules, name) : NULL;
    return module && PyModule_Check(module) ? module : NULL;
}

/* What a function of asyncio's accelerator returns, which runs no code of the program: an address, or NULL. `*known`
 * is the function once it is there. */
static PyObject *ask(PyObject **known, const char *name)
{
    PyObject *module = *known ? NULL : imported("_asyncio");
    PyObject *function = module ? PyDict_GetItemString(PyModule_GetDict(module), name) : NULL;
    if (function && PyCFunction_Check(function))
        *known = Py_NewRef(function);
    PyObject *found = *known ? PyObject_CallNoArgs(*known) : NULL;
    PyErr_Clear();     /* there is no loop */
    Py_XDECREF(found); /* it runs: it stays */
    return found != Py_None ? found : NULL;
}

/* asyncio.tasks has tasks that are written in Python, and before 3.12 all of them, in a dictionary by loop. */
static PyObject *listed_task(void)
{
    if (!tasks.key)
        tasks.key = PyUnicode_InternFromString("_current_tasks");
    if (!tasks.module)
        tasks.module = Py_XNewRef(imported("asyncio.tasks"));
    PyObject *dict = tasks.module && tasks.key ? PyModule_GetDict(tasks.module) : NULL;
    PyObject *running = dict ? PyDict_GetItemWithError(dict, tasks.key) : NULL;
    if (!running || !PyDict_CheckExact(running) || !PyDict_GET_SIZE(running))
        return NULL;
    PyObject *loop = ask(&tasks.loop, "_get_running_loop");
    if (!loop || Py_TYPE(loop)->tp_hash != PyBaseObject_Type.tp_hash)
        return NULL; /* a hash of its own would be code of the program */
    PyObject *task = PyDict_GetItemWithError(running, loop);
    return task != Py_None ? task : NULL;
}

/* What the task's type has by that name, borrowed; or NULL. */
static PyObject *find_in_type(PyObject *task, const char *name)
{
    PyObject *mro = Py_TYPE(task)->tp_mro, *found = NULL;
    for (Py_ssize_t i = 0; !found && mro && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *dict = fm_python_type_dict((PyTypeObject *)PyTuple_GET_ITEM(mro, i));
        found = dict ? PyDict_GetItemString(dict, name) : NULL;
    }
    return found;
}

/* The name, if that can be had without running the program's code: by the method of asyncio's accelerator, or from
 * the attribute that tasks written in Python keep it in. */
static PyObject *ask_name(PyObject *task)
{
    PyObject *method = find_in_type(task, "get_name");
    if (method && Py_TYPE(method) == &PyMethodDescr_Type)
        return PyObject_CallOneArg(method, task);
    if (!method || !PyFunction_Check(method) || find_in_type(task, "_name"))
        return NULL;
    PyObject *key = PyUnicode_FromString("_name");
    PyObject *name = key ? PyObject_GenericGetAttr(task, key) : NULL;
    Py_XDECREF(key);
    return name;
}

/* Its name as a number of the trace, or 0. */
static uint32_t name_of(PyObject *task)
{
    struct fm_raised raised = fm_python_put_aside();
    uint32_t number = 0;
    PyObject *name = ask_name(task);
    Py_ssize_t len = 0;
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &len) : NULL;
    if (text)
        number = fm_trace_name(text, (size_t)len);
    Py_XDECREF(name);
    PyErr_Clear();
    fm_python_put_back(raised);
    return number;
}

/* ---- tasks ------------------------------------------------------------------------------- */

/* What is known is of another store: that of the parent, after a fork. */
static void forget(const struct fm_collector *c)
{
    if (tasks.era == c->era)
        return;
    fm_agent_table_release(&tasks.by_address);
    tasks.era = c->era;
    tasks.count = 0;
}

/* Numbers go on. */
void fm_trace_tasks_forget(void)
{
    fm_agent_table_release(&tasks.by_address);
}

static struct fm_agent_task *find(PyObject *task)
{
    return fm_agent_table_find(&tasks.by_address, (uint64_t)(uintptr_t)task);
}

/* A task that is new, at this address; NULL without memory. */
static struct fm_agent_task *begin(struct fm_collector *c, struct fm_agent_thread *t,
                                   PyObject *address)
{
    struct fm_agent_task *task = find(address);
    if (!task) {
        task = fm_agent_alloc(sizeof *task);
        if (!task || !fm_agent_table_set(&tasks.by_address, (uint64_t)(uintptr_t)address, task))
            return NULL;
    }
    *task = (struct fm_agent_task){ .number = ++tasks.count, .name = name_of(address) };
    uint32_t creator = t->trace.task ? t->trace.task->number : 0;
    fm_trace_mark(c, t, FM_TRACE_TASK_NEW, (uint32_t[]){ task->number, task->name, creator }, 3);
    return task;
}

static void mark_one(struct fm_collector *c, struct fm_agent_thread *t, enum fm_trace_escape kind,
                     const struct fm_agent_task *task)
{
    uint32_t number = task ? task->number : 0;
    fm_trace_mark(c, t, kind, &number, 1);
}

static void look_at_name(struct fm_collector *c, struct fm_agent_thread *t,
                         struct fm_agent_task *task, PyObject *address)
{
    uint32_t name = name_of(address);
    task->looks++;
    if (!name || name == task->name)
        return;
    fm_trace_mark(c, t, FM_TRACE_TASK_NAME, (uint32_t[]){ task->number, name }, 2);
    task->name = name;
}

/* Is the step that begins one of the task that runs already? A coroutine of its own may be driven by
 * hand, by a function that it called. */
static bool is_running(const struct fm_agent_thread *t, const struct fm_agent_task *task)
{
    const struct fm_agent_task *running = t->trace.task;
    while (running && running != task)
        running = running->outer;
    return running != NULL;
}

/* The task that runs on this thread: an address, or NULL. From 3.14 on the accelerator knows its own tasks alone: one
 * that is written in Python may have begun inside of such a task (eager). */
static PyObject *current_task(const struct fm_agent_thread *t)
{
    struct fm_raised raised = fm_python_put_aside();
    PyObject *task = ask(&tasks.current, "current_task");
    const struct fm_agent_task *known = task ? find(task) : NULL;
    if (!task || (known && is_running(t, known))) {
        PyObject *listed = listed_task();
        task = listed ? listed : task;
    }
    PyErr_Clear();
    fm_python_put_back(raised);
    return task;
}

/* Does the step begin within a create_task, and not in a step of another task that began in it? */
static bool is_being_made(const struct fm_agent_thread *t)
{
    const struct fm_live_frame *frame = t->top;
    while (frame > t->base && !(frame->key & FM_TRACE_STEP))
        frame--;
    const struct fm_func *f =
        frame > t->base ? (const struct fm_func *)(uintptr_t)frame->func : NULL;
    return f && f->trace_role == FM_TRACE_MAKES_TASKS;
}

unsigned fm_trace_task_enters(struct fm_collector *c, struct fm_agent_thread *t,
                              const struct fm_func *f, const void *frame, enum fm_trace_begin how)
{
    if (c != fm_trace_collector())
        return 0;
    if (f->trace_role == FM_TRACE_MAKES_TASKS)
        return FM_TRACE_STEP;
    const struct fm_func *caller = (const struct fm_func *)(uintptr_t)t->top->func;
    if (t->top > t->base && caller && (caller->flags & DRIVEN))
        return 0; /* awaited by another */
    forget(c);
    PyObject *address = current_task(t);
    if (!address)
        return 0;
    struct fm_agent_task *task = find(address);
    if (task && is_running(t, task))
        return 0;
    bool known = task && !task->ended && !(how == FM_TRACE_CALLED && task->begun);
    if (!known) {
        task = begin(c, t, address);
        if (!task)
            return 0;
        task->found = is_being_made(t);
    } else if (task->looks < NAME_LOOKS) {
        look_at_name(c, t, task, address);
    }
    bool first = known && !task->begun; /* cancelled before it began: thrown into its own */
    task->begun = true;
    task->step = frame;
    if (!task->coroutine && (first || how == FM_TRACE_CALLED || how == FM_TRACE_RESUMED))
        task->coroutine = frame;
    task->outer = t->trace.task;
    t->trace.task = task;
    mark_one(c, t, FM_TRACE_TASK_STEP, task);
    return FM_TRACE_STEP;
}

/* A loop's create_task has returned one: it is new, but for those that have begun within. */
static void made(struct fm_collector *c, struct fm_agent_thread *t, PyObject *address)
{
    forget(c);
    struct fm_agent_task *task = find(address);
    if (task && task->found)
        task->found = false;
    else
        begin(c, t, address);
}

/* Is it asyncio's, or made from that? */
static bool is_cancellation(const PyTypeObject *type)
{
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *each = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        PyObject *dict = fm_python_type_dict(each);
        PyObject *module = dict && strcmp(each->tp_name, "CancelledError") == 0
                               ? PyDict_GetItemString(dict, "__module__")
                               : NULL;
        if (module && PyUnicode_Check(module) &&
            PyUnicode_CompareWithASCIIString(module, "asyncio.exceptions") == 0)
            return true;
    }
    return false;
}

/* An exception is at hand from 3.12 on, and raised still where a frame was evaluated by us. */
static enum fm_trace_task_end end_of(PyObject *value, enum fm_trace_end how)
{
    if (how == FM_TRACE_RETURNED)
        return FM_TRACE_TASK_RETURNED;
    PyObject *type = value ? (PyObject *)Py_TYPE(value) : PyErr_Occurred();
    if (!type || !PyType_Check(type))
        return FM_TRACE_TASK_FAILED;
    struct fm_raised raised = fm_python_put_aside();
    bool cancelled = is_cancellation((PyTypeObject *)type);
    fm_python_put_back(raised);
    return cancelled ? FM_TRACE_TASK_CANCELLED : FM_TRACE_TASK_RAISED;
}

void fm_trace_task_leaves(struct fm_collector *c, struct fm_agent_thread *t,
                          const struct fm_func *f, PyObject *value, enum fm_trace_end how)
{
    if (f->trace_role == FM_TRACE_MAKES_TASKS) {
        if (value && value != Py_None && how == FM_TRACE_RETURNED)
            made(c, t, value);
        return;
    }
    struct fm_agent_task *task = t->trace.task;
    if (!task)
        return;
    if (how == FM_TRACE_YIELDED) {
        const struct fm_agent_task *other = value ? find(value) : NULL;
        fm_trace_mark(c, t, FM_TRACE_TASK_AWAITS,
                      (uint32_t[]){ task->number, other && !other->ended ? other->number : 0 }, 2);
    } else if (task->step == task->coroutine) {
        task->ended = true;
        fm_trace_mark(c, t, FM_TRACE_TASK_DONE, (uint32_t[]){ task->number, end_of(value, how) },
                      2);
    }
    t->trace.task = task->outer;
    task->outer = NULL;
    mark_one(c, t, FM_TRACE_TASK_STEP, t->trace.task);
}

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
    PyObject *current;                /* _asyncio.current_task, or NULL: not imported yet */
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

/* The function of asyncio's accelerator, which runs no code of the program; NULL until it is there. */
static PyObject *current_task_function(void)
{
    if (tasks.current)
        return tasks.current;
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed, as the rest */
    PyObject *module = modules ? PyDict_GetItemString(modules, "_asyncio") : NULL;
    PyObject *dict = module && PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
    PyObject *function = dict ? PyDict_GetItemString(dict, "current_task") : NULL;
    if (function && PyCFunction_Check(function))
        tasks.current = Py_NewRef(function);
    return tasks.current;
}

/* The task that runs on this thread: an address, or NULL. */
static PyObject *current_task(void)
{
    struct fm_raised raised = fm_python_put_aside();
    PyObject *function = current_task_function();
    PyObject *task = function ? PyObject_CallNoArgs(function) : NULL;
    PyErr_Clear(); /* there is no loop */
    fm_python_put_back(raised);
    if (task)
        Py_DECREF(task); /* it runs: it stays */
    return task != Py_None ? task : NULL;
}

/* Its name as a number of the trace, if that can be had without running the program's code; else 0. */
static uint32_t name_of(PyObject *task)
{
    struct fm_raised raised = fm_python_put_aside();
    uint32_t number = 0;
    PyObject *mro = Py_TYPE(task)->tp_mro, *found = NULL;
    for (Py_ssize_t i = 0; !found && mro && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *dict = fm_python_type_dict((PyTypeObject *)PyTuple_GET_ITEM(mro, i));
        found = dict ? PyDict_GetItemString(dict, "get_name") : NULL;
    }
    PyObject *name =
        found && Py_TYPE(found) == &PyMethodDescr_Type ? PyObject_CallOneArg(found, task) : NULL;
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
    PyObject *address = current_task();
    if (!address)
        return 0;
    forget(c);
    struct fm_agent_task *task = find(address);
    if (task && is_running(t, task))
        return 0;
    if (!task || task->ended || (how == FM_TRACE_CALLED && task->begun)) {
        task = begin(c, t, address);
        if (!task)
            return 0;
        task->found = is_being_made(t);
    } else if (task->looks < NAME_LOOKS) {
        look_at_name(c, t, task, address);
    }
    task->begun = true;
    task->step = frame;
    if (!task->coroutine && how != FM_TRACE_THROWN)
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
        mark_one(c, t, FM_TRACE_TASK_DONE, task);
    }
    t->trace.task = task->outer;
    task->outer = NULL;
    mark_one(c, t, FM_TRACE_TASK_STEP, t->trace.task);
}

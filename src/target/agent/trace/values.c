/* Values in a trace; see values.h. */
#define FM_PYTHON_FRAMES
#include "target/agent/trace/values.h"

#include <string.h>

#include "target/agent/lines/choose.h"
#include "target/agent/trace/imports.h"
#include "target/agent/trace/marks.h"
#include "target/agent/trace/watches.h"

#define SECOND_BYTES (1u << 20)
#define RECORD_BYTES 16u    /* what a value takes beside its text */
#define LONG_LOOKS   10000u /* so many in a second, 0.1 ms each: not of values alone */
#define IN_CELL      0x40   /* of co_localspluskinds: shared with inner functions … */
#define FREE         0x80   /* … or with outer ones */

/* ---- what is asked of a function --------------------------------------------------------- */

static int arguments_of(const PyCodeObject *code)
{
    int count = code->co_argcount + code->co_kwonlyargcount;
    count += (code->co_flags & CO_VARARGS) != 0;
    count += (code->co_flags & CO_VARKEYWORDS) != 0;
    return count < FM_TRACE_ARGUMENTS ? count : FM_TRACE_ARGUMENTS;
}

static bool is_chosen(const char *patterns, PyCodeObject *code)
{
    return patterns[0] && fm_choose(patterns, code) != FM_CHOSEN_NOT;
}

void fm_trace_ask_of(const struct fm_collector *c, struct fm_func *f, PyCodeObject *code)
{
    struct fm_trace_asked asked = { .args = is_chosen(c->ask.args, code),
                                    .results = is_chosen(c->ask.returns, code),
                                    .imports = fm_trace_is_import(code),
                                    .watches = fm_trace_watches_of(c, code) };
    f->asked = NULL;
    if (!asked.args && !asked.results && !asked.imports && !asked.watches)
        return;
    f->asked = fm_agent_alloc(sizeof asked);
    if (f->asked)
        *f->asked = asked;
}

/* Names are numbers of the store, so they are looked up again in a child. */
static void name_arguments(struct fm_trace_asked *asked, PyCodeObject *code)
{
    uint32_t era = fm_trace_names_era();
    if (asked->era == era)
        return;
    asked->era = era;
    asked->count = arguments_of(code);
    struct fm_raised raised = fm_python_put_aside();
    for (int i = 0; i < asked->count; i++) {
        Py_ssize_t len = 0;
        PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
        const char *text = PyUnicode_AsUTF8AndSize(name, &len);
        asked->names[i] = text ? fm_trace_name(text, (size_t)len) : 0;
    }
    PyErr_Clear();
    fm_python_put_back(raised);
}

/* ---- bounds ------------------------------------------------------------------------------ */

bool fm_trace_values_allow(struct fm_collector *c, size_t bytes)
{
    static uint64_t since; /* when this second began */
    static size_t used;
    uint64_t now = fm_clock_ticks();
    if (now - since >= c->ask.second_ticks) {
        since = now;
        used = 0;
    }
    used += bytes + RECORD_BYTES;
    if (used <= SECOND_BYTES)
        return true;
    if (c->store.header)
        c->store.header->lost[FM_LIVE_LOST_VALUES]++;
    return false;
}

/* ---- what it takes ----------------------------------------------------------------------- */

static uint64_t waited_ticks(const struct fm_collector *c)
{
    return c->trace_chunks.header ? c->trace_chunks.header->waited_ticks : 0;
}

struct fm_trace_look fm_trace_look_begins(const struct fm_collector *c, bool repr)
{
    return (struct fm_trace_look){
        .since = fm_clock_ticks(),
        .cpu_ns = repr ? fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) : 0,
        .repr = repr,
        .waited = waited_ticks(c),
    };
}

/* So much of it the thread was on a processor; the clock of that is a system call. */
static uint64_t cpu_ticks(const struct fm_collector *c, uint64_t since_ns)
{
    uint64_t ns = fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - since_ns;
    return (uint64_t)((double)ns * (double)c->ask.second_ticks / 1e9);
}

/* Without repr() a look takes microseconds. One that took longer was interrupted, by others who use the
 * processor: it counts as those before it did on average. */
static uint64_t own_part(const struct fm_collector *c, uint64_t took)
{
    static uint64_t looks, sum;
    if (took > c->ask.second_ticks / LONG_LOOKS)
        return looks ? sum / looks : 0;
    looks++;
    sum += took;
    return took;
}

void fm_trace_look_ends(struct fm_collector *c, struct fm_trace_look look)
{
    uint64_t took = fm_elapsed(look.since, fm_clock_ticks());
    uint64_t waited = waited_ticks(c) - look.waited;
    took = waited < took ? took - waited : 0;
    uint64_t on_cpu = look.repr ? cpu_ticks(c, look.cpu_ns) : own_part(c, took);
    if (c->store.header)
        c->store.header->own_ticks += took < on_cpu ? took : on_cpu;
}

/* ---- arguments --------------------------------------------------------------------------- */

PyObject *fm_trace_variable(PyCodeObject *code, const void *frame, int n)
{
    PyObject *value = fm_python_frame_local(frame, n);
    int kind = (unsigned char)PyBytes_AS_STRING(code->co_localspluskinds)[n];
    bool shared = kind & FREE || (kind & IN_CELL && fm_python_frame_has_cells(frame));
    return shared && value && PyCell_Check(value) ? PyCell_GET(value) : value;
}

void fm_trace_arguments_look(struct fm_collector *c, const struct fm_func *f, PyCodeObject *code,
                             const void *frame, struct fm_trace_arguments *to)
{
    to->count = f->asked->args ? arguments_of(code) : 0;
    if (!to->count)
        return;
    struct fm_trace_look look = fm_trace_look_begins(c, c->ask.repr);
    int plain = code->co_argcount + code->co_kwonlyargcount;
    for (int i = 0; i < to->count; i++)
        (i < plain ? fm_render : fm_render_rest)(&to->texts[i], fm_trace_variable(code, frame, i),
                                                 c->ask.repr);
    fm_trace_look_ends(c, look);
}

void fm_trace_arguments_tell(struct fm_collector *c, struct fm_agent_thread *t, struct fm_func *f,
                             PyCodeObject *code, const struct fm_trace_arguments *arguments)
{
    uint64_t begin = t->trace.last;
    if (!arguments->count)
        return;
    struct fm_trace_look look = fm_trace_look_begins(c, false);
    name_arguments(f->asked, code);
    for (int i = 0; i < arguments->count && i < f->asked->count; i++) {
        const struct fm_rendered *text = &arguments->texts[i];
        if (f->asked->names[i] && fm_trace_values_allow(c, text->len))
            fm_trace_mark_value(c, t, begin, f->asked->names[i], FM_TRACE_OF_BEGIN, 0, text->text,
                                text->len);
    }
    fm_trace_look_ends(c, look);
}

/* ---- results ----------------------------------------------------------------------------- */

#define DRIVEN (FM_LIVE_FUNCTION_COROUTINE | FM_LIVE_FUNCTION_ASYNC_GENERATOR)

void fm_trace_result_tell(struct fm_collector *c, struct fm_agent_thread *t,
                          const struct fm_func *f, PyObject *value, uint64_t now,
                          enum fm_trace_end how)
{
    static uint32_t era, returned, yielded;
    struct fm_rendered text;
    /* What a coroutine yields is for its loop. */
    if (!value || how == FM_TRACE_UNWOUND || (how == FM_TRACE_YIELDED && (f->flags & DRIVEN)))
        return;
    struct fm_trace_look look = fm_trace_look_begins(c, c->ask.repr);
    fm_render(&text, value, c->ask.repr);
    if (era != fm_trace_names_era()) {
        era = fm_trace_names_era();
        returned = fm_trace_name("return", strlen("return"));
        yielded = fm_trace_name("yield", strlen("yield"));
    }
    uint32_t name = how == FM_TRACE_YIELDED ? yielded : returned;
    if (name && fm_trace_values_allow(c, text.len))
        fm_trace_mark_value(c, t, now, name, FM_TRACE_OF_END, 0, text.text, text.len);
    fm_trace_look_ends(c, look);
}

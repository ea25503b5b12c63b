/* What profiling costs this program; see calibrate.h. */
#include "target/agent/calibrate.h"

#define FUNCTIONS 20
#define REPEATS   20
#define EVENTS    (FUNCTIONS * REPEATS)
#define ROUNDS    4

/* Calls as programs make them: different functions in turn, each with a line or two of work,
 * because on 3.11 a profile function also slows the instructions between calls. */
static const char loops[] =
    "callees = [eval(f'lambda a, b={i}: a + b if a > b else a - b') for i in range(20)]\n"
    "def python_call(n):\n"
    "    for _ in n:\n"
    "        for f in callees: f(1)\n"
    "methods = [c.__sizeof__ for c in ((), '', b'', {}, [], {1}, 1.5, 2, 3j, range(3))] * 2\n"
    "def c_call(n):\n"
    "    for _ in n:\n"
    "        for f in methods: f()\n"
    "def generator():\n"
    "    for i in range(19): yield i\n"
    "def resume(n):\n"
    "    for _ in n:\n"
    "        for x in generator(): x\n"
    "def line(n):\n"
    "    for _ in n:\n"
    "        a = 1\n"
    "        b = a + 1\n"
    "        c = a < b\n"
    "        if c:\n"
    "            a = b\n";

static PyObject *compile_loops(void)
{
    PyObject *globals = PyDict_New();
    PyObject *code = globals ? Py_CompileString(loops, "<fathom>", Py_file_input) : NULL;
    PyObject *done = code ? PyEval_EvalCode(code, globals, globals) : NULL;
    if (!done)
        Py_CLEAR(globals);
    Py_XDECREF(done);
    Py_XDECREF(code);
    return globals;
}

/* The shortest of a few runs of one loop, in ticks; 0 on failure. */
static uint64_t time_loop(PyObject *globals, const char *name, PyObject *range)
{
    PyObject *function = PyDict_GetItemString(globals, name);
    uint64_t best = UINT64_MAX;
    for (int i = 0; function && i < ROUNDS; i++) {
        uint64_t before = fm_clock_ticks();
        PyObject *done = PyObject_CallOneArg(function, range);
        uint64_t ticks = fm_clock_ticks() - before;
        if (!done) {
            PyErr_Clear();
            return 0;
        }
        Py_DECREF(done);
        if (ticks < best)
            best = ticks;
    }
    return function ? best : 0;
}

enum loop { PYTHON_CALL, C_CALL, RESUME, LINE, LOOP_COUNT };

static void time_all(PyObject *globals, PyObject *range, uint64_t ret_ticks[LOOP_COUNT])
{
    static const char *const names[LOOP_COUNT] = { "python_call", "c_call", "resume", "line" };
    for (int i = 0; i < LOOP_COUNT; i++)
        ret_ticks[i] = time_loop(globals, names[i], range);
}

static uint64_t per_event(uint64_t with, uint64_t without, unsigned events)
{
    return with > without ? (with - without) * 256 / events : 0;
}

static uint64_t without_lines(uint64_t cost, uint64_t lines)
{
    return cost > lines ? cost - lines : 0;
}

/* The differences between a run with the collector on and one with it off. */
static void measure(struct fm_collector *c, PyObject *globals, PyObject *range,
                    struct fm_calibration *cost)
{
    uint64_t with[LOOP_COUNT] = { 0 }, without[LOOP_COUNT] = { 0 };
    time_all(globals, range, without);
    if (fm_collector_start(c) < 0)
        return;
    time_all(globals, range, with);
    cost->python_call = per_event(with[PYTHON_CALL], without[PYTHON_CALL], EVENTS);
    cost->resume = per_event(with[RESUME], without[RESUME], EVENTS);
    if (c->c_calls)
        cost->c_call = per_event(with[C_CALL], without[C_CALL], EVENTS);
    if (!c->lines_on)
        return;
    /* The loops above have lines of their own: two per call and resume, one per C call. */
    cost->line = per_event(with[LINE], without[LINE], REPEATS * 6);
    cost->python_call = without_lines(cost->python_call, 2 * cost->line);
    cost->resume = without_lines(cost->resume, 2 * cost->line);
    cost->c_call = without_lines(cost->c_call, cost->line);
}

struct fm_calibration fm_calibrate(const struct fm_options *wanted)
{
    struct fm_calibration cost = { 0 };
    struct fm_options options = { .calls = wanted->calls, .c_calls = wanted->c_calls };
    if (wanted->lines)
        options.lines = "all";
    PyObject *globals = compile_loops();
    PyObject *range =
        globals ? PyObject_CallFunction((PyObject *)&PyRange_Type, "i", REPEATS) : NULL;
    struct fm_collector *c = range ? fm_collector_new(&options) : NULL;
    if (c)
        measure(c, globals, range, &cost);
    fm_collector_free(c);
    Py_XDECREF(range);
    Py_XDECREF(globals);
    PyErr_Clear();
    return cost;
}

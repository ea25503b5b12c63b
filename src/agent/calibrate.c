/* What profiling costs this program; see calibrate.h. */
#include "agent/calibrate.h"

#define FUNCTIONS 20
#define REPEATS 20
#define EVENTS (FUNCTIONS * REPEATS)
#define ROUNDS 4

/* Calls as programs make them: different functions in turn, each with a line or two of work, because
 * on 3.11 a profile function also slows the instructions between calls. */
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
    "        for x in generator(): x\n";

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

static void time_all(PyObject *globals, PyObject *range, uint64_t ret_ticks[3])
{
    ret_ticks[0] = time_loop(globals, "python_call", range);
    ret_ticks[1] = time_loop(globals, "c_call", range);
    ret_ticks[2] = time_loop(globals, "resume", range);
}

static uint64_t per_event(uint64_t with, uint64_t without)
{
    return with > without ? (with - without) * 256 / EVENTS : 0;
}

struct fm_cost fm_calibrate(bool c_calls)
{
    struct fm_cost cost = { 0 };
    uint64_t with[3] = { 0 }, without[3] = { 0 };
    struct fm_options options = { .c_calls = c_calls };
    PyObject *globals = compile_loops();
    PyObject *range = globals ? PyObject_CallFunction((PyObject *)&PyRange_Type, "i", REPEATS) : NULL;
    struct fm_collector *c = range ? fm_collector_new(&options) : NULL;
    if (c) {
        time_all(globals, range, without);
        if (fm_collector_start(c) == 0) {
            time_all(globals, range, with);
            cost.python_call = per_event(with[0], without[0]);
            cost.c_call = c_calls ? per_event(with[1], without[1]) : 0;
            cost.resume = per_event(with[2], without[2]);
        }
    }
    fm_collector_free(c);
    Py_XDECREF(range);
    Py_XDECREF(globals);
    PyErr_Clear();
    return cost;
}

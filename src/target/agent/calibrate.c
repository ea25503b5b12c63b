/* What profiling costs this program; see calibrate.h. */
#include "target/agent/calibrate.h"

#include "target/agent/functions.h"

#define FUNCTIONS 20
#define REPEATS   10
#define EVENTS    (FUNCTIONS * REPEATS)

#define TURNS      3
#define ROUNDS_MIN 2
#define ROUNDS_MAX 6
#define AGREE      32 /* to a 32nd */

#define NOISE_PERMILLE 60

/* Instructions on one line and without an event. */
#define PLAIN "a + b; x = c[a]; a < x; b * b; y = a if x else b; x - a; (a, y); "

/* Calls as programs make them: different functions in turn, each with a line or two of work,
 * because on 3.11 a profile function also slows the instructions between calls; generators that
 * draw from others, so that they take turns. */
static const char loops[] =
    "callees = [eval(f'lambda a, b={i}: a + b if a > b else a - b') for i in range(20)]\n"
    "def python_call(n):\n"
    "    for _ in n:\n"
    "        for f in callees: f(1)\n"
    "methods = [c.__sizeof__ for c in ((), '', b'', {}, [], {1}, 1.5, 2, 3j, range(3))] * 2\n"
    "def c_call(n):\n"
    "    for _ in n:\n"
    "        for f in methods: f()\n"
    "def inner():\n"
    "    for i in range(9): yield i\n"
    "def generator():\n"
    "    for x in inner(): yield x\n"
    "def resume(n):\n"
    "    for _ in n:\n"
    "        for x in generator(): x\n"
    "def line(n):\n"
    "    for _ in n:\n"
    "        a = 1\n"
    "        b = a + 1\n"
    "        c = a < b\n"
    "        if c:\n"
    "            a = b\n"
    "def plain(n):\n"
    "    a, b, c = 1, 2.5, [3, 4]\n"
    "    for _ in n:\n"
    "        " PLAIN PLAIN PLAIN PLAIN "\n";

static PyObject *compile_loops(void)
{
    PyObject *globals = PyDict_New();
    PyObject *code = globals ? Py_CompileString(loops, FM_LIVE_OWN_FILE, Py_file_input) : NULL;
    PyObject *done = code ? PyEval_EvalCode(code, globals, globals) : NULL;
    if (!done)
        Py_CLEAR(globals);
    Py_XDECREF(done);
    Py_XDECREF(code);
    return globals;
}

/* The shortest of some runs of one loop, in ticks; 0 on failure. Done when the two shortest agree:
 * two runs on a machine at rest, more where others take the processor. */
static uint64_t time_loop(PyObject *globals, const char *name, PyObject *range, unsigned *rounds)
{
    PyObject *function = PyDict_GetItemString(globals, name);
    uint64_t best = UINT64_MAX, next = UINT64_MAX;
    *rounds = 0;
    while (function && *rounds < ROUNDS_MAX &&
           (*rounds < ROUNDS_MIN || next - best > best / AGREE)) {
        uint64_t before = fm_clock_ticks();
        PyObject *done = PyObject_CallOneArg(function, range);
        uint64_t ticks = fm_clock_ticks() - before;
        if (!done) {
            PyErr_Clear();
            return 0;
        }
        Py_DECREF(done);
        next = ticks < best ? best : ticks < next ? ticks : next;
        best = ticks < best ? ticks : best;
        ++*rounds;
    }
    return function ? best : 0;
}

enum loop { PYTHON_CALL, C_CALL, RESUME, LINE, PLAIN_CODE, LOOP_COUNT };

static const char *const names[LOOP_COUNT] = { "python_call", "c_call", "resume", "line", "plain" };

/* What one run of each loop takes. */
struct calibration_times {
    uint64_t ticks[LOOP_COUNT];
    uint64_t lines[LOOP_COUNT]; /* that were recorded: not every line of a loop is an event */
};

/* Time all loops; the shortest times so far stay. */
static void time_all(PyObject *globals, PyObject *range, const struct fm_collector *c,
                     struct calibration_times *times)
{
    for (int i = 0; i < LOOP_COUNT; i++) {
        uint64_t before = c ? fm_functions_line_hits(c) : 0;
        unsigned rounds;
        uint64_t ticks = time_loop(globals, names[i], range, &rounds);
        if (!times->ticks[i] || ticks < times->ticks[i])
            times->ticks[i] = ticks;
        if (c && rounds)
            times->lines[i] = (fm_functions_line_hits(c) - before) / rounds;
    }
}

/* Ticks that a loop takes more with the collector on than off, without its lines. */
static uint64_t added(const struct calibration_times *with, const struct calibration_times *without,
                      enum loop loop, uint64_t line_256)
{
    uint64_t least = without->ticks[loop] + with->lines[loop] * line_256 / 256;
    return with->ticks[loop] > least ? with->ticks[loop] - least : 0;
}

#if FM_SLOWS_INSTRUCTIONS
/* How much longer instructions take that cause no event. Less than the noise is nothing, and what
 * seems more is looked at again: somebody else may have had the processor. */
static uint64_t slow_permille(struct calibration_times *with,
                              const struct calibration_times *without, uint64_t line_256,
                              PyObject *globals, PyObject *range)
{
    uint64_t plain = without->ticks[PLAIN_CODE], permille = 0;
    for (int look = 0; plain && look < 3; look++) {
        permille = added(with, without, PLAIN_CODE, line_256) * 1000 / plain;
        if (permille < NOISE_PERMILLE)
            return 0;
        unsigned rounds;
        uint64_t again = time_loop(globals, names[PLAIN_CODE], range, &rounds);
        if (again && again < with->ticks[PLAIN_CODE])
            with->ticks[PLAIN_CODE] = again;
    }
    return permille;
}
#endif

/* The differences between a run with the collector on and one with it off. */
static void measure(struct fm_collector *c, PyObject *globals, PyObject *range,
                    struct fm_calibration *cost)
{
    struct calibration_times without = { 0 }, with = { 0 };
    /* In turns: what else runs on the machine changes the speed of all code for a while. */
    for (int turn = 0; turn < TURNS; turn++) {
        if (turn && fm_collector_stop(c) < 0)
            return;
        time_all(globals, range, NULL, &without);
        if (fm_collector_start(c) < 0)
            return;
        time_all(globals, range, c, &with);
    }
    if (with.lines[LINE])
        cost->line = added(&with, &without, LINE, 0) * 256 / with.lines[LINE];
    cost->python_call = added(&with, &without, PYTHON_CALL, cost->line) * 256 / EVENTS;
    cost->resume = added(&with, &without, RESUME, cost->line) * 256 / EVENTS;
    if (c->c_calls)
        cost->c_call = added(&with, &without, C_CALL, cost->line) * 256 / EVENTS;
#if FM_SLOWS_INSTRUCTIONS
    cost->slow_permille = slow_permille(&with, &without, cost->line, globals, range);
#endif
}

struct fm_calibration fm_calibrate(const struct fm_options *wanted)
{
    struct fm_calibration cost = { 0 };
    struct fm_options options = { .calls = wanted->calls,
                                  .c_calls = wanted->c_calls,
                                  .trace = wanted->trace };
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

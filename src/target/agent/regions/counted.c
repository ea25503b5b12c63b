/*
 * What regions have so far, for the program itself (fathom.summary, fathom.timing).
 *
 * Numbers are those of the store that they are kept in anyway; of what is open, the time until now counts, as
 * it does for who reads the store of a process that ended. Ticks become seconds by two readings of both
 * clocks: when the store began, and now.
 */
#include "target/agent/regions/region_calls.h"

#include "target/agent/collector.h"
#include "target/agent/regions/regions.h"
#include "target/agent/regions/visits.h"

struct counting {
    double seconds_per_tick;
    uint64_t now;
    uint64_t *open_ticks, *open, *suspended_ticks; /* by id */
    size_t count;
};

static void add_open(struct counting *counting, const struct fm_live_visit *visit)
{
    if ((visit->state != FM_LIVE_VISIT_RUNS && visit->state != FM_LIVE_VISIT_WAITS) ||
        visit->region > counting->count)
        return;
    uint64_t suspended = visit->suspended_ticks;
    if (visit->state == FM_LIVE_VISIT_WAITS)
        suspended += fm_elapsed(visit->since_ticks, counting->now);
    counting->open[visit->region]++;
    counting->open_ticks[visit->region] += fm_elapsed(visit->begin_ticks, counting->now);
    counting->suspended_ticks[visit->region] += suspended;
}

static void find_open(struct counting *counting, const struct fm_store *store)
{
    for (uint32_t i = 0; i < store->chunk_count; i++) {
        const struct fm_live_chunk *chunk = store->chunks[i];
        const struct fm_live_visit *visits = (const void *)(chunk + 1);
        for (size_t n = 0; chunk->kind == FM_LIVE_VISITS && n < chunk->used / sizeof *visits; n++)
            add_open(counting, &visits[n]);
    }
}

static PyObject *row(const struct counting *counting, const struct fm_region_record *record)
{
    const struct fm_live_region *live = record->live;
    uint32_t id = live->id;
    double unit = counting->seconds_per_tick;
    return Py_BuildValue(
        "(ns#KKdddd)", record->around ? (Py_ssize_t)record->around->live->id - 1 : (Py_ssize_t)-1,
        record->name->text, (Py_ssize_t)record->name->len, (unsigned long long)live->entered,
        (unsigned long long)counting->open[id],
        (double)(live->total_ticks + counting->open_ticks[id]) * unit,
        (double)(live->suspended_ticks + counting->suspended_ticks[id]) * unit,
        live->ended ? (double)live->min_ticks * unit : 0.0, (double)live->max_ticks * unit);
}

static PyObject *rows(const struct counting *counting, const struct fm_region_record *first)
{
    PyObject *list = PyList_New(0);
    size_t left = counting->count;
    for (const struct fm_region_record *record = first; list && record && left--;
         record = record->next) {
        PyObject *tuple = row(counting, record);
        if (!tuple || PyList_Append(list, tuple) < 0)
            Py_CLEAR(list);
        Py_XDECREF(tuple);
    }
    return list;
}

static double tick_seconds(const struct fm_live_header *header, struct fm_clock_pair now)
{
    uint64_t ticks = now.ticks - header->start_ticks;
    return ticks ? (double)(now.ns - header->start_ns) / 1e9 / (double)ticks : 0.0;
}

PyObject *fm_regions_counted(void)
{
    const struct fm_collector *c = fm_regions_collector();
    if (!c)
        Py_RETURN_NONE;
    const struct fm_region_record *first = c->forked ? NULL : fm_regions_first();
    if (!first || !c->store.header)
        return PyList_New(0);
    struct fm_clock_pair now = fm_clock_pair_now();
    struct counting counting = { .seconds_per_tick = tick_seconds(c->store.header, now),
                                 .now = now.ticks };
    for (const struct fm_region_record *record = first; record; record = record->next)
        counting.count++;
    uint64_t *numbers = PyMem_RawCalloc(3 * (counting.count + 1), sizeof *numbers);
    if (!numbers)
        return PyErr_NoMemory();
    counting.open = numbers;
    counting.open_ticks = numbers + counting.count + 1;
    counting.suspended_ticks = numbers + 2 * (counting.count + 1);
    find_open(&counting, &c->store);
    PyObject *list = rows(&counting, first);
    PyMem_RawFree(numbers);
    return list;
}

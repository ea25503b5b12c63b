/*
 * Marks of a timeline for the page; see timeline.h.
 *
 * A million exceptions are no million things to draw: marks of one kind, lane and name that begin within one
 * cell are one row, which says how many there were and how far they reach. Of a counter such a row has the
 * last value, the lowest and the highest, so that peaks stay. Steps of two tasks are
 * two rows.
 */
#include "timeline.h"

#include <string.h>

#include "base/memory.h"
#include "json.h"
#include "record/model/trace/timeline.h"

#define MAX_MARKS 20000u

struct row {
    uint64_t begin_ns, end_ns, cell;
    uint32_t kind, lane, name, func;
    double count, value, lowest, highest, other;
};

struct gathering {
    uint64_t cell_ns;
    struct fm_map last; /* by kind, lane and name: the row that was added last */
    FM_VEC(struct row) rows;
    bool more;
};

static double value_of(const struct fm_mark *mark)
{
    double value;
    if (mark->kind != FM_MARK_COUNTER)
        return (double)mark->value;
    memcpy(&value, &mark->value, sizeof value);
    return value == value && value < 1e300 && value > -1e300 ? value : 0;
}

/* Equal keys of different marks only put two rows together, which their fields then prevent. */
static uint64_t key_of(const struct fm_mark *mark)
{
    uint64_t who = mark->kind == FM_MARK_TASK ? mark->value << 20 : 0;
    return ((uint64_t)mark->kind << 58) ^ ((uint64_t)mark->lane << 34) ^ mark->name ^ who;
}

static bool gather(void *context, const struct fm_mark *mark)
{
    struct gathering *g = context;
    double value = value_of(mark);
    bool is_new;
    uint32_t *last = fm_map_at(&g->last, key_of(mark), (uint32_t)g->rows.len, &is_new);
    struct row *row = is_new ? NULL : &g->rows.data[*last];
    uint64_t cell = mark->begin_ns / g->cell_ns;
    if (row && row->cell == cell && row->kind == mark->kind && row->lane == mark->lane &&
        row->name == mark->name && (mark->kind != FM_MARK_TASK || row->value == value)) {
        row->end_ns = mark->end_ns > row->end_ns ? mark->end_ns : row->end_ns;
        row->count++;
        row->value = mark->kind == FM_MARK_LOST ? row->value + value : value;
        row->lowest = value < row->lowest ? value : row->lowest;
        row->highest = value > row->highest ? value : row->highest;
        row->func = row->func == mark->func ? mark->func : FM_NONE;
        return true;
    }
    if (g->rows.len >= MAX_MARKS) {
        g->more = true;
        return false;
    }
    *last = (uint32_t)g->rows.len;
    fm_vec_push(&g->rows, ((struct row){ mark->begin_ns, mark->end_ns, cell, mark->kind, mark->lane,
                                         mark->name, mark->func, 1, value, value, value,
                                         (double)mark->other }));
    return true;
}

static void put_rows(struct fm_engine *e, const struct fm_recording *r, const struct gathering *g)
{
    struct fm_result *out = &e->results[0];
    struct fm_map names = { 0 };
    fm_result_begin(out, (uint32_t)g->rows.len);
    double *begin = fm_result_f64(out), *end = fm_result_f64(out);
    uint32_t *kind = fm_result_u32(out), *lane = fm_result_u32(out);
    uint32_t *name = fm_result_u32(out), *func = fm_result_u32(out);
    double *count = fm_result_f64(out), *value = fm_result_f64(out);
    double *lowest = fm_result_f64(out), *highest = fm_result_f64(out);
    double *other = fm_result_f64(out);
    fm_buffer_clear(&e->text);
    fm_buffer_add_char(&e->text, '[');
    for (size_t i = 0; i < g->rows.len; i++) {
        const struct row *row = &g->rows.data[i];
        bool is_new;
        begin[i] = (double)row->begin_ns;
        end[i] = (double)row->end_ns;
        kind[i] = row->kind;
        lane[i] = row->lane;
        func[i] = row->func == FM_NONE ? FM_NONE : fm_recording_function(r, row->func);
        count[i] = row->count;
        value[i] = row->value;
        lowest[i] = row->lowest;
        highest[i] = row->highest;
        other[i] = row->other;
        name[i] = *fm_map_at(&names, row->name, (uint32_t)names.len, &is_new);
        if (!is_new)
            continue;
        json_next(&e->text);
        json_text(&e->text, fm_strings_get(r->p->strings, row->name),
                  fm_strings_len(r->p->strings, row->name));
    }
    json_close(&e->text, ']');
    out->scalars[0] = g->more;
    fm_map_release(&names);
}

int fm_engine_timeline_marks(struct fm_engine *e, int recording, double from_ns, double to_ns,
                             double cell_ns)
{
    struct fm_recording *r;
    struct fm_timeline *t = fm_engine_timeline_of(e, recording, &r);
    if (!t)
        return -1;
    struct gathering g = { .cell_ns = fm_timeline_instant(cell_ns < 1 ? 1 : cell_ns) };
    int status = fm_timeline_marks(t, FM_NONE, fm_timeline_instant(from_ns),
                                   fm_timeline_instant(to_ns), gather, &g, &e->err);
    if (status >= 0)
        put_rows(e, r, &g);
    fm_map_release(&g.last);
    fm_vec_release(&g.rows);
    return status < 0 ? -1 : 0;
}

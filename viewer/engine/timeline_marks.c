/*
 * Marks of a timeline for the page; see timeline.h.
 *
 * A million exceptions are no million things to draw: marks of one kind and lane that begin within one
 * cell are one row, which says how many there were and how far they reach. Of a counter such a row has
 * the last value, the lowest and the highest, so that peaks stay; steps of two tasks are two rows, but
 * for tasks whose whole life is shorter than a cell, and what is longer than a cell is a row by itself.
 *
 * Where there are still too many rows, cells become longer until they fit: nothing is left out at the
 * end of the time that was asked for. All marks are gone through once, for an overview with short
 * cells; whoever looks from far away gets rows made of that. Where the overview itself had to have longer cells, an
 * answer over most of the run, which has room for fewer rows, would have to as well, and is made of it, too.
 */
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "json.h"
#include "record/model/trace/lanes/timeline.h"

#define OVERVIEW_CELLS 8192u
#define OVERVIEW_ROWS  100000u
#define ANSWER_ROWS    20000u
#define MOST_AWAITS    2000u /* more than that are no arrows that could be told apart */
#define COARSER        4u    /* an overview with cells so much longer still does */

enum group { GROUP_MARKS, GROUP_TASKS, GROUP_AWAITS, GROUPS };

struct mark_row {
    uint64_t begin_ns, end_ns, cell;
    uint32_t kind, lane, name, func;
    double count, value, lowest, highest, other;
};

struct mark_rows {
    uint64_t cell_ns;
    size_t most;
    bool more;          /* some find no room however long cells are */
    struct fm_map last; /* by key: the row that was added last */
    FM_VEC(struct mark_row) rows;
};

/* Tasks of a process with consecutive numbers, as most of them have: a lookup for each mark is one in a table. */
struct life_run {
    uint32_t process, first, count;
    size_t at; /* in life_ns */
};

struct fm_mark_overview {
    struct mark_rows groups[GROUPS];
    uint64_t asked_ns;             /* cells that it was to have */
    FM_VEC(struct life_run) lives; /* by process and number */
    FM_VEC(uint64_t) life_ns;      /* how long each lived */
};

struct gathering {
    struct fm_timeline *t;
    const struct fm_mark_overview *overview;
    struct mark_rows groups[GROUPS];
    bool wanted[GROUPS];
};

static enum group group_of(enum fm_mark_kind kind)
{
    return kind == FM_MARK_TASK ? GROUP_TASKS : kind == FM_MARK_AWAIT ? GROUP_AWAITS : GROUP_MARKS;
}

static double value_of(const struct fm_mark *mark)
{
    double value;
    if (mark->kind != FM_MARK_COUNTER)
        return (double)mark->value;
    memcpy(&value, &mark->value, sizeof value);
    return value == value && value < 1e300 && value > -1e300 ? value : 0;
}

/* ---- tasks ---- */

static bool add_life(void *context, const struct fm_traced_task *task)
{
    struct fm_mark_overview *o = context;
    struct life_run *last = o->lives.len ? &o->lives.data[o->lives.len - 1] : NULL;
    uint64_t ns = task->done_ns == UINT64_MAX ? UINT64_MAX : task->done_ns - task->created_ns;
    struct life_run fresh = { task->process, task->number, 1, o->life_ns.len };
    if (last && last->process == task->process && task->number - last->first == last->count)
        last->count++;
    else
        fm_vec_push(&o->lives, fresh);
    fm_vec_push(&o->life_ns, ns);
    return true;
}

static int compare_lives(const void *a, const void *b)
{
    const struct life_run *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* How long a task lived; NULL: it is not known. */
static const uint64_t *life_of(const struct fm_mark_overview *o, uint32_t process, uint32_t number)
{
    size_t low = 0, high = o->lives.len;
    while (low < high) { /* the first run that begins behind it */
        size_t middle = low + (high - low) / 2;
        const struct life_run *run = &o->lives.data[middle];
        if (run->process < process || (run->process == process && run->first <= number))
            low = middle + 1;
        else
            high = middle;
    }
    const struct life_run *run = low ? &o->lives.data[low - 1] : NULL;
    bool found = run && run->process == process && number - run->first < run->count;
    return found ? &o->life_ns.data[run->at + (number - run->first)] : NULL;
}

static bool is_brief(const struct gathering *g, const struct mark_row *row, uint64_t cell_ns)
{
    if (!row->value)
        return true;
    const struct fm_lane *lane = fm_timeline_lane(g->t, row->lane);
    const uint64_t *life_ns = life_of(g->overview, lane->process, (uint32_t)row->value);
    return life_ns && *life_ns < cell_ns;
}

/* ---- rows ---- */

/* Which marks can be one row; 0: none with this one. Equal keys of different marks cost a row at most. */
static uint64_t key_of(const struct gathering *g, struct mark_row *row, uint64_t cell_ns)
{
    uint64_t key = fm_mix64((uint64_t)row->kind << 40 | row->lane);
    switch (row->kind) {
    case FM_MARK_TASK:
        if (is_brief(g, row, cell_ns))
            row->value = row->lowest = row->highest = 0;
        return fm_mix64(key + (uint64_t)row->value + 1);
    case FM_MARK_COUNTER:
        return fm_mix64(key + row->name);
    case FM_MARK_AWAIT:
        return fm_mix64(fm_mix64(key + (uint64_t)row->value) + (uint64_t)row->other);
    case FM_MARK_FORK:
        return fm_mix64(key + (uint64_t)row->value);
    default:
        return row->end_ns - row->begin_ns >= cell_ns ? 0 : key;
    }
}

static bool can_join(const struct mark_row *a, const struct mark_row *b)
{
    return a->cell == b->cell && a->kind == b->kind && a->lane == b->lane &&
           (a->kind != FM_MARK_TASK || a->value == b->value) &&
           (a->kind != FM_MARK_COUNTER || a->name == b->name);
}

static void join(struct mark_row *into, const struct mark_row *row)
{
    into->end_ns = row->end_ns > into->end_ns ? row->end_ns : into->end_ns;
    into->count += row->count;
    into->lowest = row->lowest < into->lowest ? row->lowest : into->lowest;
    into->highest = row->highest > into->highest ? row->highest : into->highest;
    into->func = into->func == row->func ? row->func : FM_NONE;
    into->name = into->name == row->name ? row->name : 0;
    if (into->kind == FM_MARK_LOST)
        into->value += row->value;
    else
        into->value = into->kind == FM_MARK_COLLECTION ? into->highest : row->value;
    if (into->kind == FM_MARK_COLLECTION)
        into->other += row->other;
}

static void add_row(struct gathering *g, struct mark_rows *rows, struct mark_row row);

/* Let cells be longer, so that there is room again. */
static void coarsen(struct gathering *g, struct mark_rows *rows)
{
    struct mark_rows old = *rows;
    uint64_t cell_ns = old.cell_ns;
    rows->last = (struct fm_map){ 0 };
    rows->rows.data = NULL;
    rows->rows.len = rows->rows.cap = 0;
    rows->cell_ns = cell_ns * 2;
    for (size_t i = 0; i < old.rows.len; i++)
        add_row(g, rows, old.rows.data[i]);
    fm_map_release(&old.last);
    fm_vec_release(&old.rows);
}

static void add_row(struct gathering *g, struct mark_rows *rows, struct mark_row row)
{
    bool is_new = true;
    row.cell = row.begin_ns / rows->cell_ns;
    uint64_t key = key_of(g, &row, rows->cell_ns);
    uint32_t *last = key ? fm_map_at(&rows->last, key, (uint32_t)rows->rows.len, &is_new) : NULL;
    if (last && !is_new && can_join(&rows->rows.data[*last], &row)) {
        join(&rows->rows.data[*last], &row);
        return;
    }
    if (rows->rows.len >= rows->most) { /* they were made longer as often as it helps */
        rows->more = true;
        return;
    }
    if (last)
        *last = (uint32_t)rows->rows.len;
    fm_vec_push(&rows->rows, row);
}

static void add(struct gathering *g, struct mark_rows *rows, struct mark_row row)
{
    uint64_t longest = fm_timeline_length_ns(g->t) * 2;
    while (rows->rows.len >= rows->most && rows->cell_ns <= longest) {
        size_t before = rows->rows.len;
        coarsen(g, rows);
        if (rows->rows.len < before - before / 4)
            break;
    }
    add_row(g, rows, row);
}

static bool gather(void *context, const struct fm_mark *mark)
{
    struct gathering *g = context;
    enum group group = group_of(mark->kind);
    double value = value_of(mark);
    struct mark_row row = { mark->begin_ns, mark->end_ns, 0,          mark->kind,
                            mark->lane,     mark->name,   mark->func, 1,
                            value,          value,        value,      (double)mark->other };
    /* Values are of spans and of other marks: timeline_values.c */
    if (g->wanted[group] && mark->kind != FM_MARK_VALUE && mark->kind != FM_MARK_RESULT)
        add(g, &g->groups[group], row);
    return true;
}

static void release_rows(struct mark_rows groups[GROUPS])
{
    for (int i = 0; i < GROUPS; i++) {
        fm_map_release(&groups[i].last);
        fm_vec_release(&groups[i].rows);
    }
}

/* ---- the overview ---- */

static int make_overview(struct fm_recording *r, struct fm_timeline *t, struct fm_error *err)
{
    if (r->overview)
        return FM_OK;
    struct fm_mark_overview *o = fm_calloc(1, sizeof *o);
    struct gathering g = { .t = t, .overview = o, .wanted = { true, true, true } };
    uint64_t cell_ns = fm_timeline_length_ns(t) / OVERVIEW_CELLS + 1;
    for (int i = 0; i < GROUPS; i++)
        g.groups[i].cell_ns = cell_ns;
    g.groups[GROUP_MARKS].most = g.groups[GROUP_TASKS].most = OVERVIEW_ROWS;
    g.groups[GROUP_AWAITS].most = MOST_AWAITS;
    o->asked_ns = cell_ns;
    int status = fm_timeline_tasks(t, add_life, o, err);
    if (o->lives.len)
        qsort(o->lives.data, o->lives.len, sizeof *o->lives.data, compare_lives);
    if (!status)
        status = fm_timeline_marks(t, FM_NONE, 0, UINT64_MAX, gather, &g, err);
    memcpy(o->groups, g.groups, sizeof o->groups);
    r->overview = o;
    return status;
}

void fm_mark_overview_free(struct fm_mark_overview *o)
{
    if (!o)
        return;
    release_rows(o->groups);
    fm_vec_release(&o->lives);
    fm_vec_release(&o->life_ns);
    free(o);
}

static void take_overview(struct gathering *g, enum group group, uint64_t from_ns, uint64_t to_ns)
{
    const struct mark_rows *from = &g->overview->groups[group];
    for (size_t i = 0; i < from->rows.len; i++) {
        const struct mark_row *row = &from->rows.data[i];
        if (row->begin_ns > to_ns)
            break;
        if (row->end_ns >= from_ns)
            add(g, &g->groups[group], *row);
    }
    g->groups[group].more |= from->more;
    g->wanted[group] = false;
}

/* Is the overview as good as another look at all marks of that time? */
static bool suffices(const struct gathering *g, enum group group, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t length_ns = fm_timeline_length_ns(g->t), cell_ns = g->overview->groups[group].cell_ns;
    uint64_t end_ns = to_ns < length_ns ? to_ns : length_ns;
    if (g->groups[group].cell_ns * COARSER >= cell_ns)
        return true;
    return cell_ns > g->overview->asked_ns && from_ns < end_ns && end_ns - from_ns >= length_ns / 2;
}

/* ---- the answer ---- */

struct mark_columns {
    double *begin, *end, *count, *value, *lowest, *highest, *other;
    uint32_t *kind, *lane, *name, *func;
};

static struct mark_columns begin_columns(struct fm_result *out, size_t rows)
{
    struct mark_columns c;
    fm_result_begin(out, (uint32_t)rows);
    c.begin = fm_result_f64(out);
    c.end = fm_result_f64(out);
    c.kind = fm_result_u32(out);
    c.lane = fm_result_u32(out);
    c.name = fm_result_u32(out);
    c.func = fm_result_u32(out);
    c.count = fm_result_f64(out);
    c.value = fm_result_f64(out);
    c.lowest = fm_result_f64(out);
    c.highest = fm_result_f64(out);
    c.other = fm_result_f64(out);
    return c;
}

static void put_row(struct fm_engine *e, const struct fm_recording *r, const struct mark_columns *c,
                    size_t at, const struct mark_row *row, struct fm_map *names)
{
    bool is_new;
    c->begin[at] = (double)row->begin_ns;
    c->end[at] = (double)row->end_ns;
    c->kind[at] = row->kind;
    c->lane[at] = row->lane;
    c->func[at] = row->func == FM_NONE ? FM_NONE : fm_recording_function(r, row->func);
    c->count[at] = row->count;
    c->value[at] = row->value;
    c->lowest[at] = row->lowest;
    c->highest[at] = row->highest;
    c->other[at] = row->other;
    c->name[at] = *fm_map_at(names, row->name, (uint32_t)names->len, &is_new);
    if (!is_new)
        return;
    json_next(&e->text);
    json_text(&e->text, fm_strings_get(r->p->strings, row->name),
              fm_strings_len(r->p->strings, row->name));
}

static void put_rows(struct fm_engine *e, const struct fm_recording *r, const struct gathering *g)
{
    struct fm_result *out = &e->results[0];
    struct fm_map names = { 0 };
    size_t rows = 0, at = 0;
    for (int i = 0; i < GROUPS; i++)
        rows += g->groups[i].rows.len;
    struct mark_columns c = begin_columns(out, rows);
    fm_buffer_clear(&e->text);
    fm_buffer_add_char(&e->text, '[');
    for (int i = 0; i < GROUPS; i++) {
        out->scalars[0] += g->groups[i].more && i != GROUP_AWAITS;
        for (size_t k = 0; k < g->groups[i].rows.len; k++)
            put_row(e, r, &c, at++, &g->groups[i].rows.data[k], &names);
    }
    json_close(&e->text, ']');
    fm_map_release(&names);
}

int fm_engine_timeline_marks(struct fm_engine *e, int recording, double from_ns, double to_ns,
                             double cell_ns)
{
    struct fm_recording *r;
    struct fm_timeline *t = fm_engine_timeline_of(e, recording, &r);
    uint64_t from = fm_timeline_instant(from_ns), to = fm_timeline_instant(to_ns);
    if (!t || make_overview(r, t, &e->err) < 0)
        return -1;
    struct gathering g = { .t = t, .overview = r->overview };
    for (int i = 0; i < GROUPS; i++) {
        g.groups[i].cell_ns = fm_timeline_instant(cell_ns < 1 ? 1 : cell_ns);
        g.groups[i].most = i == GROUP_AWAITS ? MOST_AWAITS : ANSWER_ROWS;
        g.wanted[i] = true;
        if (suffices(&g, (enum group)i, from, to))
            take_overview(&g, (enum group)i, from, to);
    }
    bool far = !g.wanted[GROUP_MARKS] && !g.wanted[GROUP_TASKS];
    int status = far ? FM_OK : fm_timeline_marks(t, FM_NONE, from, to, gather, &g, &e->err);
    if (g.groups[GROUP_AWAITS].more)
        g.groups[GROUP_AWAITS].rows.len = 0;
    if (status >= 0)
        put_rows(e, r, &g);
    release_rows(g.groups);
    return status < 0 ? -1 : 0;
}

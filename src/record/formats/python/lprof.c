/*
 * .lprof, the format of line_profiler and kernprof: a pickled LineStats object with
 *
 *     timings  {(file, first line, function): [(line, hits, time), ...], ...}
 *     unit     seconds that one `time` stands for: 1e-6 up to version 3, 1e-9 since version 4
 *
 * The class is _line_profiler.LineStats in versions 1 and 2, line_profiler._line_profiler.LineStats
 * through 5.0.0, line_profiler.line_profiler.LineStats since. The second is what we write: every
 * version since 3 loads it. `time` includes callees.
 *
 * In the model: rows without a process, functions that are marked (somebody asked for each of
 * them), and lines.unit_s. A function is called by its qualified name since Python 3.11.
 */
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "record/formats/format.h"
#include "record/formats/python/pickle.h"

static const char *const classes[] = {
    "line_profiler._line_profiler.LineStats",
    "line_profiler.line_profiler.LineStats",
    "_line_profiler.LineStats",
    NULL,
};

struct lprof_loader {
    struct fm_pickle *pickle;
    struct fm_profile *p;
    double unit_s;
    int64_t whole_ns; /* the unit as whole nanoseconds, or 0 */
    size_t rows_max;  /* what the file can hold: values may be shared */
    struct fm_error *err;
};

/* Any pickle: what is not line_profiler's is refused by name, which says more than "no format". */
static bool recognise(const void *bytes, size_t len)
{
    static const char *const starts[] = { "ccopy_reg\n_reconstructor\n",
                                          "ccopyreg\n_reconstructor\n", "cline_profiler",
                                          "c_line_profiler" };
    const uint8_t *b = bytes;
    for (size_t i = 0; i < FM_COUNT(starts); i++)
        if (len >= strlen(starts[i]) && memcmp(bytes, starts[i], strlen(starts[i])) == 0)
            return true;
    return len >= 2 && b[0] == 0x80 && b[1] >= 2 && b[1] < 32;
}

/* ---- reading ---- */

static bool take_line_number(const struct fm_pickle_value *v, uint32_t *line)
{
    if (v->type != FM_PICKLE_INT || v->integer < 0 || v->integer >= UINT32_MAX)
        return false;
    *line = (uint32_t)v->integer;
    return true;
}

/* Whole units stay exact as far as 64 bits go. */
static bool take_time(const struct lprof_loader *l, const struct fm_pickle_value *v, int64_t *ns)
{
    if (v->type == FM_PICKLE_INT && l->whole_ns)
        return !__builtin_mul_overflow(v->integer, l->whole_ns, ns);
    double time = v->type == FM_PICKLE_INT ? (double)v->integer : v->real;
    if (v->type != FM_PICKLE_INT && v->type != FM_PICKLE_FLOAT)
        return false;
    time *= l->unit_s * 1e9;
    if (!(fabs(time) < 9e18))
        return false;
    *ns = llround(time);
    return true;
}

static int load_line(struct lprof_loader *l, uint32_t func, const struct fm_pickle_value *entry)
{
    size_t count;
    uint32_t line;
    int64_t ns;
    const struct fm_pickle_value *v = fm_pickle_items(l->pickle, entry, &count);
    if ((entry->type != FM_PICKLE_TUPLE && entry->type != FM_PICKLE_LIST) || count != 3)
        return fm_error_set(l->err, FM_DAMAGED, "a line is not (line, hits, time)");
    if (!take_line_number(&v[0], &line))
        return fm_error_set(l->err, FM_DAMAGED, "a line number is none");
    if (v[1].type != FM_PICKLE_INT || v[1].integer < 0)
        return fm_error_set(l->err, FM_DAMAGED, "line %u: a number of hits is none", line);
    if (!take_time(l, &v[2], &ns))
        return fm_error_set(l->err, FM_DAMAGED, "line %u: a time is none", line);
    if (l->p->lines.rows.len >= l->rows_max)
        return fm_error_set(l->err, FM_DAMAGED, "more lines than the file can hold");
    struct fm_line *row = fm_lines_add(&l->p->lines, FM_NONE, func, line, false);
    row->hits = v[1].integer;
    row->total_ns = ns;
    return 0;
}

/* The function of a key. Of a qualified name the part behind the last dot is the name. */
static int load_key(struct lprof_loader *l, const struct fm_pickle_value *key, uint32_t *func)
{
    size_t count;
    struct fm_function f = { .kind = FM_FUNCTION_PYTHON };
    const struct fm_pickle_value *v = fm_pickle_items(l->pickle, key, &count);
    if (key->type != FM_PICKLE_TUPLE || count != 3 || v[0].type != FM_PICKLE_TEXT ||
        !take_line_number(&v[1], &f.line) || v[2].type != FM_PICKLE_TEXT)
        return fm_error_set(l->err, FM_DAMAGED, "a key is not (file, first line, function)");
    const char *name = v[2].text, *dot = memrchr(name, '.', v[2].bytes);
    size_t skip = dot && (size_t)(dot + 1 - name) < v[2].bytes ? (size_t)(dot + 1 - name) : 0;
    f.file = fm_strings_add(l->p->strings, v[0].text, v[0].bytes);
    f.qualname = fm_strings_add(l->p->strings, name, v[2].bytes);
    f.name = fm_strings_add(l->p->strings, name + skip, v[2].bytes - skip);
    size_t before = l->p->functions.len;
    *func = fm_profile_function(l->p, &f);
    if (*func < before)
        return fm_error_set(l->err, FM_DAMAGED, "the function comes twice");
    fm_lines_mark(&l->p->lines, *func);
    return 0;
}

static int load_function(struct lprof_loader *l, const struct fm_pickle_value *key,
                         const struct fm_pickle_value *lines)
{
    size_t count;
    uint32_t func = FM_NONE;
    const struct fm_pickle_value *entries = fm_pickle_items(l->pickle, lines, &count);
    if (load_key(l, key, &func) < 0)
        return l->err->status;
    if (lines->type != FM_PICKLE_LIST && lines->type != FM_PICKLE_TUPLE)
        return fm_error_set(l->err, FM_DAMAGED, "a function's lines are no list");
    for (size_t i = 0; i < count; i++)
        if (load_line(l, func, &entries[i]) < 0)
            return fm_error_context(l->err, "entry %zu", i + 1);
    return 0;
}

static int load_unit(struct lprof_loader *l, const struct fm_pickle_value *unit)
{
    if (unit->type == FM_PICKLE_FLOAT)
        l->unit_s = unit->real;
    else if (unit->type == FM_PICKLE_INT)
        l->unit_s = (double)unit->integer;
    if (!(l->unit_s > 0 && l->unit_s <= 1e9))
        return fm_error_set(l->err, FM_DAMAGED, "the timer unit is none");
    double ns = l->unit_s * 1e9;
    if (ns >= 0.5 && fabs(ns - round(ns)) < ns * 1e-12)
        l->whole_ns = (int64_t)llround(ns);
    l->p->lines.unit_s = l->unit_s;
    return 0;
}

static int load_stats(struct lprof_loader *l)
{
    size_t count;
    const struct fm_pickle_value *root = fm_pickle_root(l->pickle);
    if (root->type != FM_PICKLE_OBJECT)
        return fm_error_set(l->err, FM_NOT_RECORDING,
                            "a pickle of something else than line_profiler's LineStats is in no "
                            "format that Fathom reads");
    const struct fm_pickle_value *object = fm_pickle_items(l->pickle, root, &count);
    const struct fm_pickle_value *timings = fm_pickle_find(l->pickle, &object[1], "timings");
    const struct fm_pickle_value *unit = fm_pickle_find(l->pickle, &object[1], "unit");
    if (!timings || timings->type != FM_PICKLE_DICT || !unit)
        return fm_error_set(l->err, FM_DAMAGED, "LineStats without timings or unit");
    if (load_unit(l, unit) < 0)
        return l->err->status;
    const struct fm_pickle_value *items = fm_pickle_items(l->pickle, timings, &count);
    for (size_t i = 0; i < count; i += 2)
        if (load_function(l, &items[i], &items[i + 1]) < 0)
            return fm_error_context(l->err, "function %zu", i / 2 + 1);
    fm_lines_sort(&l->p->lines);
    return 0;
}

static struct fm_profile *load(const void *bytes, size_t len, const char *name,
                               struct fm_error *err)
{
    struct lprof_loader l = { .err = err, .rows_max = len };
    l.pickle = fm_pickle_open(bytes, len, classes, err);
    if (!l.pickle) {
        fm_error_context(err, "reading %s", name);
        return NULL;
    }
    l.p = fm_profile_new();
    int status = load_stats(&l);
    fm_pickle_free(l.pickle);
    if (status < 0) {
        fm_error_context(err, "reading %s", name);
        fm_profile_free(l.p);
        return NULL;
    }
    return l.p;
}

/* ---- writing ---- */

/* Functions with the same file, line and qualified name share one key there: they get one place.
 * A function without rows has its place if it was asked for. */
struct places {
    FM_VEC(uint32_t) functions; /* by place: the first function there */
    struct fm_map labels, place_of;
};

static uint32_t place_at(struct places *places, const struct fm_profile *p, uint32_t func)
{
    const struct fm_function *f = &p->functions.data[func];
    uint64_t names = fm_map_pair(f->file, f->qualname);
    uint32_t pair = *fm_map_at(&places->labels, names, (uint32_t)places->labels.len, NULL);
    bool is_new;
    uint32_t fresh = (uint32_t)places->functions.len;
    uint32_t place = *fm_map_at(&places->place_of, fm_map_pair(pair, f->line), fresh, &is_new);
    if (is_new)
        fm_vec_push(&places->functions, func);
    return place;
}

static void put_key(const struct fm_profile *p, uint32_t func, struct fm_buffer *out)
{
    const struct fm_function *f = &p->functions.data[func];
    fm_pickle_put_text(out, fm_profile_text(p, f->file), fm_strings_len(p->strings, f->file));
    fm_pickle_put_int(out, f->line);
    fm_pickle_put_text(out, fm_profile_text(p, f->qualname),
                       fm_strings_len(p->strings, f->qualname));
    fm_buffer_add_char(out, (char)FM_PICKLE_OP_TUPLE3);
}

/* `table` is in order of place, then line. */
static void put_timings(const struct fm_profile *p, const struct places *places,
                        const struct fm_lines *table, struct fm_buffer *out)
{
    size_t at = 0;
    fm_buffer_add_char(out, FM_PICKLE_OP_EMPTY_DICT);
    fm_buffer_add_char(out, FM_PICKLE_OP_MARK);
    for (uint32_t place = 0; place < places->functions.len; place++) {
        put_key(p, places->functions.data[place], out);
        fm_buffer_add_char(out, FM_PICKLE_OP_EMPTY_LIST);
        fm_buffer_add_char(out, FM_PICKLE_OP_MARK);
        for (; at < table->rows.len && table->rows.data[at].func == place; at++) {
            const struct fm_line *row = &table->rows.data[at];
            fm_pickle_put_int(out, row->line);
            fm_pickle_put_int(out, row->hits);
            fm_pickle_put_int(out, row->total_ns);
            fm_buffer_add_char(out, (char)FM_PICKLE_OP_TUPLE3);
        }
        fm_buffer_add_char(out, FM_PICKLE_OP_APPENDS);
    }
    fm_buffer_add_char(out, FM_PICKLE_OP_SETITEMS);
}

static void put_stats(const struct fm_profile *p, const struct places *places,
                      const struct fm_lines *table, struct fm_buffer *out)
{
    fm_pickle_put_start(out);
    fm_buffer_add_char(out, FM_PICKLE_OP_GLOBAL);
    fm_buffer_add_text(out, "line_profiler._line_profiler\nLineStats\n");
    fm_buffer_add_char(out, FM_PICKLE_OP_EMPTY_TUPLE);
    fm_buffer_add_char(out, (char)FM_PICKLE_OP_NEWOBJ);
    fm_buffer_add_char(out, FM_PICKLE_OP_EMPTY_DICT);
    fm_buffer_add_char(out, FM_PICKLE_OP_MARK);
    fm_pickle_put_text(out, "timings", 7);
    put_timings(p, places, table, out);
    fm_pickle_put_text(out, "unit", 4);
    fm_pickle_put_float(out, 1e-9);
    fm_buffer_add_char(out, FM_PICKLE_OP_SETITEMS);
    fm_buffer_add_char(out, FM_PICKLE_OP_BUILD);
    fm_buffer_add_char(out, FM_PICKLE_OP_STOP);
}

static int save(const struct fm_profile *p, struct fm_buffer *out, struct fm_error *err)
{
    struct places places = { .labels = { 0 } };
    struct fm_lines table = { 0 };
    if (!p->lines.rows.len && !p->lines.marked.len && !(p->lines.unit_s > 0))
        return fm_error_set(err, FM_UNSUPPORTED,
                            "there are no lines in it (fathom run --lines records them)");
    for (size_t i = 0; i < p->lines.rows.len; i++) {
        const struct fm_line *row = &p->lines.rows.data[i];
        int64_t hits = row->hits > 0 ? row->hits : row->samples;
        if (hits <= 0) /* line_profiler divides by them */
            continue;
        uint32_t place = place_at(&places, p, row->func);
        struct fm_line *copy = fm_lines_add(&table, FM_NONE, place, row->line, false);
        copy->hits = hits;
        copy->total_ns = row->total_ns;
    }
    for (size_t i = 0; i < p->lines.marked.len; i++)
        place_at(&places, p, p->lines.marked.data[i]);
    fm_lines_sort(&table);
    put_stats(p, &places, &table, out);
    fm_lines_release(&table);
    fm_vec_release(&places.functions);
    fm_map_release(&places.labels);
    fm_map_release(&places.place_of);
    return 0;
}

static const char *const suffixes[] = { ".lprof", NULL };

const struct fm_format fm_format_lprof = {
    .name = "lprof",
    .title = "line_profiler's .lprof",
    .suffixes = suffixes,
    .recognise = recognise,
    .load = load,
    .save = save,
};

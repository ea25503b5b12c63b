/*
 * What a callgrind file says, made into a profile; see callgrind_table.h.
 *
 * The file has own costs and calls with what they took; the total of a function is what the calls
 * of it took, not counting those it makes of itself, or, if nobody calls it, its own cost and what
 * its calls took. That is what callgrind_annotate shows. Where functions call each other in a
 * circle and the file does not tell levels apart, it counts some time twice, there as here.
 */
#include "record/formats/callgrind/callgrind_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/formats/callgrind/callgrind.h"
#include "record/model/derive/flat.h"

uint32_t fm_callgrind_function_at(struct fm_callgrind_table *t, uint32_t object, uint32_t file,
                                  uint32_t name)
{
    bool is_new;
    uint32_t pair = *fm_map_at(&t->pairs, fm_map_pair(file, name), (uint32_t)t->pairs.len, NULL);
    uint32_t fresh = (uint32_t)t->functions.len;
    uint32_t func = *fm_map_at(&t->function_index, fm_map_pair(pair, object), fresh, &is_new);
    if (is_new) {
        struct fm_callgrind_function f = { object, file, name, FM_NONE, FM_NONE, 0 };
        fm_vec_push(&t->functions, f);
    }
    return func;
}

static struct fm_line *line_at(struct fm_callgrind_table *t, uint32_t func, uint32_t line)
{
    bool is_new;
    uint32_t fresh = (uint32_t)t->lines.rows.len;
    uint32_t row = *fm_map_at(&t->line_index, fm_map_pair(func, line), fresh, &is_new);
    return is_new ? fm_lines_add(&t->lines, FM_NONE, func, line, false) : &t->lines.rows.data[row];
}

void fm_callgrind_add_cost(struct fm_callgrind_table *t, uint32_t func, uint32_t line, int64_t cost,
                           int64_t hits)
{
    struct fm_callgrind_function *f = &t->functions.data[func];
    f->self = fm_sum(f->self, cost);
    if (line == FM_NONE || (!cost && !hits))
        return;
    if (line < f->lowest_line)
        f->lowest_line = line;
    struct fm_line *row = line_at(t, func, line);
    row->self_ns = fm_sum(row->self_ns, cost);
    row->total_ns = fm_sum(row->total_ns, cost);
    row->hits = fm_sum(row->hits, hits);
}

void fm_callgrind_add_calls(struct fm_callgrind_table *t, uint32_t caller, uint32_t line,
                            uint32_t callee, uint32_t callee_line, int64_t calls, int64_t total)
{
    bool is_new;
    struct fm_callgrind_function *f = &t->functions.data[callee];
    uint32_t fresh = (uint32_t)t->calls.len;
    uint32_t at = *fm_map_at(&t->call_index, fm_map_pair(caller, callee), fresh, &is_new);
    if (is_new)
        fm_vec_push(&t->calls, ((struct fm_callgrind_call){ .caller = caller, .callee = callee }));
    t->calls.data[at].calls = fm_sum(t->calls.data[at].calls, calls);
    t->calls.data[at].total = fm_sum(t->calls.data[at].total, total);
    if (callee_line < f->first_line)
        f->first_line = callee_line;
    if (line == FM_NONE || caller == callee)
        return;
    struct fm_line *row = line_at(t, caller, line);
    row->total_ns = fm_sum(row->total_ns, total);
}

/* ---- levels ---- */

struct settled {
    uint32_t *base; /* by function of the file: the function at its first level */
    uint32_t *func; /* by function of the file at its first level: that of the profile */
    uint32_t *row;  /* … and its row */
    size_t count;   /* functions of the file */
};

/* The length of a name without "'2", or all of it. */
static size_t name_without_level(const char *name, size_t len)
{
    for (;;) {
        size_t end = len;
        while (end && name[end - 1] >= '0' && name[end - 1] <= '9')
            end--;
        if (end == len || end < 2 || name[end - 1] != '\'')
            return len;
        len = end - 1;
    }
}

/* May add functions: a level whose first one the file does not mention. */
static void find_bases(struct fm_callgrind_table *t, struct settled *s)
{
    size_t mentioned = t->functions.len;
    s->base = fm_malloc((mentioned * 2 + 1) * sizeof *s->base);
    for (uint32_t i = 0; i < mentioned; i++) {
        struct fm_callgrind_function f = t->functions.data[i];
        const char *name = fm_profile_text(t->p, f.name);
        size_t len = fm_strings_len(t->p->strings, f.name),
               short_len = name_without_level(name, len);
        s->base[i] = i;
        if (short_len == len)
            continue;
        uint32_t short_name = fm_strings_add(t->p->strings, name, short_len);
        s->base[i] = fm_callgrind_function_at(t, f.object, f.file, short_name);
        s->base[s->base[i]] = s->base[i];
    }
    s->count = t->functions.len;
    for (size_t i = 0; i < s->count; i++) {
        struct fm_callgrind_function *f = &t->functions.data[i];
        struct fm_callgrind_function *base = &t->functions.data[s->base[i]];
        if (f->first_line < base->first_line)
            base->first_line = f->first_line;
        if (f->lowest_line < base->lowest_line)
            base->lowest_line = f->lowest_line;
    }
}

/* ---- functions ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), n = strlen(end);
    return len >= n && strcmp(text + len - n, end) == 0;
}

/* pprofile's NAME:FIRSTLINE. */
static void split_pprofile_name(struct fm_profile *p, uint32_t *name, uint32_t *line)
{
    const char *text = fm_profile_text(p, *name), *colon = strrchr(text, ':');
    if (!colon || colon == text || !colon[1] || strlen(colon + 1) > 9 ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return;
    *line = (uint32_t)strtoul(colon + 1, NULL, 10);
    *name = fm_strings_add(p->strings, text, (size_t)(colon - text));
}

static uint32_t make_function(struct fm_callgrind_table *t, const struct fm_callgrind_function *f)
{
    const char *file = fm_profile_text(t->p, f->file);
    struct fm_function function = { .kind = FM_FUNCTION_NATIVE, .file = f->file };
    uint32_t name = f->name, line = f->first_line != FM_NONE ? f->first_line : f->lowest_line;
    if (t->pprofile)
        split_pprofile_name(t->p, &name, &line);
    function.line = line == FM_NONE ? 0 : line;
    if (strcmp(file, FM_CALLGRIND_NO_FILE) == 0) {
        function.kind = FM_FUNCTION_C;
        function.file = function.line = 0;
    } else if (strcmp(file, "???") == 0) {
        function.file = function.line = 0;
    } else if (t->pprofile || ends_with(file, ".py") || file[0] == '<') {
        function.kind = FM_FUNCTION_PYTHON;
    }
    const char *text = fm_profile_text(t->p, name);
    const char *dot = function.kind == FM_FUNCTION_PYTHON ? strrchr(text, '.') : NULL;
    function.qualname = name;
    function.name = dot && dot[1] ? fm_profile_string(t->p, dot + 1) : name;
    /* The same function of two objects is two functions. */
    return fm_profile_function_distinct(t->p, &function);
}

static void make_functions(struct fm_callgrind_table *t, struct settled *s)
{
    struct fm_flat *flat = t->p->flat;
    s->func = fm_malloc((s->count + 1) * sizeof *s->func);
    s->row = fm_malloc((s->count + 1) * sizeof *s->row);
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->base[i] != i)
            continue;
        s->func[i] = make_function(t, &t->functions.data[i]);
        s->row[i] = (uint32_t)flat->rows.len;
        fm_vec_push(&flat->rows, ((struct fm_flat_row){ .func = s->func[i] }));
    }
    for (uint32_t i = 0; i < s->count; i++) {
        struct fm_flat_row *row = &flat->rows.data[s->row[s->base[i]]];
        row->self_ns = fm_sum(row->self_ns, t->functions.data[i].self);
    }
}

/* ---- calls ---- */

static void total_functions(struct fm_callgrind_table *t, const struct settled *s)
{
    struct fm_flat *flat = t->p->flat;
    fm_autofree int64_t *made = fm_calloc(s->count + 1, sizeof *made);
    fm_autofree bool *called = fm_calloc(s->count + 1, sizeof *called);
    for (size_t i = 0; i < t->calls.len; i++) {
        const struct fm_callgrind_call *c = &t->calls.data[i];
        struct fm_flat_row *callee = &flat->rows.data[s->row[s->base[c->callee]]];
        callee->calls = fm_sum(callee->calls, c->calls);
        if (c->caller == c->callee)
            continue;
        if (s->base[c->caller] == c->caller)
            made[c->caller] = fm_sum(made[c->caller], c->total);
        if (s->base[c->callee] != c->callee)
            continue;
        called[c->callee] = true;
        callee->primitive = fm_sum(callee->primitive, c->calls);
        callee->total_ns = fm_sum(callee->total_ns, c->total);
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->base[i] != i)
            continue;
        struct fm_flat_row *row = &flat->rows.data[s->row[i]];
        if (!called[i])
            row->total_ns = fm_sum(t->functions.data[i].self, made[i]);
        if (row->total_ns < row->self_ns)
            row->total_ns = row->self_ns;
    }
}

static int edge_order(const void *left, const void *right)
{
    const struct fm_flat_edge *a = left, *b = right;
    if (a->callee != b->callee)
        return a->callee < b->callee ? -1 : 1;
    return a->caller < b->caller ? -1 : a->caller > b->caller;
}

/* Levels are combined: of a call below itself only the outer one has its time counted. */
static void make_edges(struct fm_callgrind_table *t, const struct settled *s)
{
    struct fm_flat *flat = t->p->flat;
    struct fm_map index = { 0 };
    for (size_t i = 0; i < t->calls.len; i++) {
        const struct fm_callgrind_call *c = &t->calls.data[i];
        uint32_t caller = s->row[s->base[c->caller]], callee = s->row[s->base[c->callee]];
        bool outer = s->base[c->caller] == c->caller, first = s->base[c->callee] == c->callee;
        bool is_new;
        uint32_t at =
            *fm_map_at(&index, fm_map_pair(caller, callee), (uint32_t)flat->edges.len, &is_new);
        if (is_new)
            fm_vec_push(&flat->edges,
                        ((struct fm_flat_edge){ .caller = caller, .callee = callee }));
        struct fm_flat_edge *edge = &flat->edges.data[at];
        edge->calls = fm_sum(edge->calls, c->calls);
        if (outer || first) {
            edge->primitive = fm_sum(edge->primitive, c->calls);
            edge->total_ns = fm_sum(edge->total_ns, c->total);
        }
    }
    if (flat->edges.len)
        qsort(flat->edges.data, flat->edges.len, sizeof *flat->edges.data, edge_order);
    fm_map_release(&index);
}

/* The time below a level of recursion is part of what its first level has. */
static void make_lines(struct fm_callgrind_table *t, const struct settled *s)
{
    for (size_t i = 0; !t->no_lines && i < t->lines.rows.len; i++) {
        struct fm_line *row = &t->lines.rows.data[i];
        if (s->base[row->func] != row->func)
            row->total_ns = 0;
        struct fm_line *copy =
            fm_lines_add(&t->p->lines, FM_NONE, s->func[s->base[row->func]], row->line, false);
        fm_lines_combine(&t->p->lines, copy, &t->lines, row);
    }
    fm_lines_sort(&t->p->lines);
}

void fm_callgrind_settle(struct fm_callgrind_table *t)
{
    struct settled s = { 0 };
    t->p->flat = fm_calloc(1, sizeof *t->p->flat);
    find_bases(t, &s);
    make_functions(t, &s);
    total_functions(t, &s);
    make_edges(t, &s);
    make_lines(t, &s);
    free(s.base);
    free(s.func);
    free(s.row);
}

void fm_callgrind_table_release(struct fm_callgrind_table *t)
{
    fm_vec_release(&t->functions);
    fm_vec_release(&t->calls);
    fm_lines_release(&t->lines);
    fm_map_release(&t->pairs);
    fm_map_release(&t->function_index);
    fm_map_release(&t->call_index);
    fm_map_release(&t->line_index);
}

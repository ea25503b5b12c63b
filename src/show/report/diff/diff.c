/* Two recordings compared; see diff.h. */
#include "show/report/diff/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "show/report/diff/diff_lines.h"
#include "show/report/metric.h"
#include "show/report/number.h"

const struct fm_diff_key fm_diff_keys[FM_DIFF_KEYS] = {
#define X(name, json, title, metric, total, memory)                                                \
    { name, json, title, FM_METRIC_##metric, total, memory },
    FM_DIFF_LIST(X)
#undef X
};

int fm_diff_key_named(const char *name)
{
    int key = 0;
    while (key < FM_DIFF_KEYS && strcmp(fm_diff_keys[key].name, name) != 0)
        key++;
    return key;
}

/* Calls are nowhere if both were sampled; what was allocated is not in every file of others. */
int fm_diff_next_key(const struct fm_diff *d, int key)
{
    for (; key < FM_DIFF_KEYS; key++)
        if (fm_diff_keys[key].memory == d->memory &&
            (key == d->key || d->all[FM_BEFORE][key] || d->all[FM_NOW][key]))
            break;
    return key;
}

/* ---- names ---- */

/* Lines are functions here, and the first of a function is that function itself. */
static void name_lines(struct fm_diff *d, const struct fm_pairs *pairs)
{
    fm_diff_lines lines[FM_SIDES] = { 0 };
    for (int side = 0; side < FM_SIDES; side++) {
        const struct fm_profile *p = d->side[side].p;
        const struct fm_flat *flat = d->side[side].flat;
        for (uint32_t f = 0; f < p->functions.len; f++)
            d->name[side][f] = pairs->of[side][d->origin[side][f]];
        for (size_t i = 0; i < flat->rows.len; i++) {
            uint32_t f = flat->rows.data[i].func;
            fm_vec_push(&lines[side], ((struct fm_diff_line){ d->origin[side][f], d->name[side][f],
                                                              p->functions.data[f].line, f, 0 }));
        }
    }
    d->names = pairs->count + fm_diff_match_lines(d, lines);
    for (int side = 0; side < FM_SIDES; side++) {
        for (size_t i = 0; i < lines[side].len; i++)
            d->name[side][lines[side].data[i].tag] = pairs->count + lines[side].data[i].number;
        fm_vec_release(&lines[side]);
    }
}

static void name_functions(struct fm_diff *d, const struct fm_pairs *pairs)
{
    for (int side = 0; side < FM_SIDES; side++)
        d->name[side] = fm_malloc((d->side[side].p->functions.len + 1) * sizeof *d->name[side]);
    if (d->origin[FM_BEFORE]) {
        name_lines(d, pairs);
        return;
    }
    for (int side = 0; side < FM_SIDES; side++)
        memcpy(d->name[side], pairs->of[side],
               d->side[side].p->functions.len * sizeof *d->name[side]);
    d->names = pairs->count;
}

/* ---- sums ---- */

static void add_up(struct fm_diff *d, int side)
{
    const struct fm_report *r = &d->side[side];
    int64_t *all = d->all[side];
    struct fm_flat_total total = fm_flat_total(r->flat);
    if (!d->memory) {
        all[FM_DIFF_SELF] = all[FM_DIFF_TOTAL] = d->time_ns[side];
        all[FM_DIFF_CALLS] = total.calls;
    }
    if (d->lines) {
        all[FM_DIFF_SELF] = all[FM_DIFF_CALLS] = 0;
        for (size_t i = 0; i < r->p->lines.rows.len; i++) {
            const struct fm_line *line = &r->p->lines.rows.data[i];
            all[FM_DIFF_SELF] = fm_sum(all[FM_DIFF_SELF], line->self_ns);
            all[FM_DIFF_CALLS] = fm_sum(all[FM_DIFF_CALLS], line->hits);
        }
        /* Of nothing but lines it is not known which of them are below others: then all count, of both. */
        bool unknown = !d->time_ns[FM_BEFORE] || !d->time_ns[FM_NOW];
        all[FM_DIFF_TOTAL] = unknown ? 0 : d->time_ns[side];
        for (size_t i = 0; i < r->p->lines.rows.len && unknown; i++)
            all[FM_DIFF_TOTAL] = fm_sum(all[FM_DIFF_TOTAL], r->p->lines.rows.data[i].total_ns);
    }
    for (int key = FM_DIFF_PEAK; d->memory && key < FM_DIFF_KEYS; key++)
        for (uint32_t i = 0; i < r->p->nodes.len; i++)
            all[key] = fm_sum(all[key], fm_profile_value(r->p, fm_diff_keys[key].metric, i));
}

int64_t fm_diff_scaled(const struct fm_diff *d, int side, int64_t number)
{
    if (side == FM_NOW || d->scale == 1)
        return number;
    double scaled = round((double)number * d->scale);
    return scaled < 9e18 ? (int64_t)scaled : INT64_MAX;
}

/* ---- rows ---- */

static struct fm_diff_row *row_at(struct fm_diff *d, struct fm_map *index, uint64_t key)
{
    bool is_new;
    uint32_t at = *fm_map_at(index, key, (uint32_t)d->rows.len, &is_new);
    if (is_new)
        fm_vec_push(&d->rows, ((struct fm_diff_row){ .row = { FM_NONE, FM_NONE } }));
    return &d->rows.data[at];
}

static void add_functions(struct fm_diff *d, int side, struct fm_map *index)
{
    const struct fm_flat *flat = d->side[side].flat;
    for (uint32_t i = 0; i < flat->rows.len; i++) {
        const struct fm_flat_row *f = &flat->rows.data[i];
        struct fm_diff_row *row = row_at(d, index, d->name[side][f->func]);
        row->row[side] = i;
        for (int key = 0; key < FM_DIFF_KEYS; key++) {
            const struct fm_diff_key *k = &fm_diff_keys[key];
            row->numbers[side][key] = k->total ? f->total[k->metric] : f->self[k->metric];
        }
    }
}

/* A line of several processes is one. */
static void find_lines(const struct fm_diff *d, int side, struct fm_map *known,
                       fm_diff_lines *lines)
{
    const struct fm_profile *p = d->side[side].p;
    for (size_t i = 0; i < p->lines.rows.len; i++) {
        const struct fm_line *line = &p->lines.rows.data[i];
        bool is_new;
        uint32_t tag = (uint32_t)lines->len;
        fm_map_at(known, fm_map_pair(line->func, line->line), tag, &is_new);
        if (is_new)
            fm_vec_push(lines, ((struct fm_diff_line){ line->func, d->name[side][line->func],
                                                       line->line, tag, 0 }));
    }
}

static void add_line(int side, const struct fm_line *line, uint32_t row_of, struct fm_diff_row *row)
{
    int64_t *numbers = row->numbers[side];
    row->row[side] = row_of;
    row->line = line->line;
    numbers[FM_DIFF_SELF] = fm_sum(numbers[FM_DIFF_SELF], line->self_ns);
    numbers[FM_DIFF_TOTAL] = fm_sum(numbers[FM_DIFF_TOTAL], line->total_ns);
    numbers[FM_DIFF_CALLS] = fm_sum(numbers[FM_DIFF_CALLS], line->hits);
}

static void add_lines(struct fm_diff *d, struct fm_map *index)
{
    fm_diff_lines lines[FM_SIDES] = { 0 };
    struct fm_map known[FM_SIDES] = { 0 };
    for (int side = 0; side < FM_SIDES; side++)
        find_lines(d, side, &known[side], &lines[side]);
    fm_diff_match_lines(d, lines);
    for (int side = 0; side < FM_SIDES; side++) {
        const struct fm_profile *p = d->side[side].p;
        const struct fm_flat *flat = d->side[side].flat;
        fm_autofree uint32_t *row_of = fm_malloc((p->functions.len + 1) * sizeof *row_of);
        fm_autofree uint32_t *number = fm_malloc((lines[side].len + 1) * sizeof *number);
        memset(row_of, 0xff, (p->functions.len + 1) * sizeof *row_of); /* FM_NONE */
        for (uint32_t i = 0; i < flat->rows.len; i++)
            row_of[flat->rows.data[i].func] = i;
        for (size_t i = 0; i < lines[side].len; i++)
            number[lines[side].data[i].tag] = lines[side].data[i].number;
        for (size_t i = 0; i < p->lines.rows.len; i++) {
            const struct fm_line *line = &p->lines.rows.data[i];
            const uint32_t *tag = fm_map_find(&known[side], fm_map_pair(line->func, line->line));
            if (row_of[line->func] != FM_NONE)
                add_line(side, line, row_of[line->func], row_at(d, index, number[*tag]));
        }
        fm_map_release(&known[side]);
        fm_vec_release(&lines[side]);
    }
}

static void scale_rows(struct fm_diff *d)
{
    for (size_t i = 0; i < d->rows.len && d->scale != 1; i++)
        for (int key = 0; key < FM_DIFF_KEYS; key++)
            d->rows.data[i].numbers[FM_BEFORE][key] =
                fm_diff_scaled(d, FM_BEFORE, d->rows.data[i].numbers[FM_BEFORE][key]);
}

/* What has nothing of any number on either side is no row. */
static void drop_empty(struct fm_diff *d)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->rows.len; i++) {
        const struct fm_diff_row *row = &d->rows.data[i];
        bool any = false;
        for (int key = fm_diff_next_key(d, 0); key < FM_DIFF_KEYS;
             key = fm_diff_next_key(d, key + 1))
            any = any || row->numbers[FM_BEFORE][key] || row->numbers[FM_NOW][key];
        if (any)
            d->rows.data[kept++] = *row;
    }
    d->rows.len = kept;
}

static void count_rows(struct fm_diff *d)
{
    for (size_t i = 0; i < d->rows.len; i++) {
        const struct fm_diff_row *row = &d->rows.data[i];
        int64_t change = fm_diff_change(row, d->key);
        d->fresh += row->row[FM_BEFORE] == FM_NONE;
        d->gone += row->row[FM_NOW] == FM_NONE;
        d->grew += change > 0 && row->row[FM_BEFORE] != FM_NONE;
        d->shrank += change < 0 && row->row[FM_NOW] != FM_NONE;
    }
}

/* ---- their order ---- */

static double ratio_of(const struct fm_diff_row *row, int key)
{
    double before = (double)row->numbers[FM_BEFORE][key], now = (double)row->numbers[FM_NOW][key];
    return before > 0 ? now / before : now > 0 ? INFINITY : 1;
}

static double rank_of(const struct fm_diff *d, const struct fm_diff_row *row)
{
    switch (d->order) {
    case FM_DIFF_BY_GROWTH:
        return (double)fm_diff_change(row, d->key);
    case FM_DIFF_BY_RATIO:
        return ratio_of(row, d->key);
    case FM_DIFF_BY_BEFORE:
        return (double)row->numbers[FM_BEFORE][d->key];
    case FM_DIFF_BY_NOW:
        return (double)row->numbers[FM_NOW][d->key];
    case FM_DIFF_BY_NAME:
        return 0;
    default:
        return fabs((double)fm_diff_change(row, d->key));
    }
}

/* Of equal ones those with more stand first, and then names decide, so the order is always the same. */
static int compare_rows(const void *a, const void *b, void *data)
{
    struct fm_diff *d = data;
    const struct fm_diff_row *x = a, *y = b;
    double first = rank_of(d, x), second = rank_of(d, y);
    if (first != second)
        return first > second ? -1 : 1;
    int64_t more = x->numbers[FM_NOW][d->key], less = y->numbers[FM_NOW][d->key];
    if (d->order != FM_DIFF_BY_NAME && more != less)
        return more > less ? -1 : 1;
    int order = strcmp(fm_diff_function(d, x), fm_diff_function(d, y));
    if (!order) {
        fm_autobuffer left = FM_BUFFER_INIT, right = FM_BUFFER_INIT;
        order = strcmp(fm_diff_place(d, x, &left), fm_diff_place(d, y, &right));
    }
    return order;
}

void fm_diff_init(struct fm_diff *d, const struct fm_pairs *pairs, bool normalize)
{
    struct fm_map index = { 0 };
    name_functions(d, pairs);
    for (int side = 0; side < FM_SIDES; side++) {
        add_up(d, side);
        if (!d->lines)
            add_functions(d, side, &index);
    }
    if (d->lines)
        add_lines(d, &index);
    fm_map_release(&index);
    d->scale = 1;
    if (normalize && d->all[FM_BEFORE][d->key] > 0 && d->all[FM_NOW][d->key] > 0)
        d->scale = (double)d->all[FM_NOW][d->key] / (double)d->all[FM_BEFORE][d->key];
    scale_rows(d);
    drop_empty(d);
    count_rows(d);
    if (d->rows.len)
        qsort_r(d->rows.data, d->rows.len, sizeof *d->rows.data, compare_rows, d);
}

void fm_diff_release(struct fm_diff *d)
{
    fm_vec_release(&d->rows);
    free(d->name[FM_BEFORE]);
    free(d->name[FM_NOW]);
}

/* ---- for people ---- */

char *fm_diff_number(char *out, enum fm_unit unit, int64_t change)
{
    char number[FM_NUMBER_BYTES];
    out[0] = '\0';
    if (change)
        snprintf(out, FM_NUMBER_BYTES, "%c%s", change > 0 ? '+' : '-',
                 fm_number_of(number, unit, change > 0 ? change : -change));
    return out;
}

char *fm_diff_ratio(char *out, int64_t before, int64_t now)
{
    out[0] = '\0';
    if (before == now)
        return out;
    if (before <= 0 || now <= 0)
        snprintf(out, FM_NUMBER_BYTES, "%s", before <= 0 ? "new" : "gone");
    else if ((double)now / (double)before < 1000)
        snprintf(out, FM_NUMBER_BYTES, "%.2f×", (double)now / (double)before);
    else
        snprintf(out, FM_NUMBER_BYTES, "%.0f×", (double)now / (double)before);
    return out;
}

enum fm_color fm_diff_color(int64_t change)
{
    return change > 0 ? FM_COLOR_WORSE : change < 0 ? FM_COLOR_BETTER : FM_COLOR_DIM;
}

static int side_of(const struct fm_diff_row *row)
{
    return row->row[FM_NOW] != FM_NONE ? FM_NOW : FM_BEFORE;
}

const char *fm_diff_function(struct fm_diff *d, const struct fm_diff_row *row)
{
    int side = side_of(row);
    return fm_names_function(d->side[side].names, row->row[side]);
}

const char *fm_diff_place(struct fm_diff *d, const struct fm_diff_row *row, struct fm_buffer *own)
{
    int side = side_of(row);
    if (!d->lines)
        return fm_names_place(d->side[side].names, row->row[side]);
    fm_buffer_clear(own);
    fm_buffer_addf(own, "%s:%u", fm_names_file(d->side[side].names, row->row[side]), row->line);
    return fm_buffer_text(own);
}

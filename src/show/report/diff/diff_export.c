/* The comparison of two recordings for programs: JSON and CSV. Times are nanoseconds in both, memory is bytes: what
 * was, what is, and the difference of every number, whatever it is sorted by. */
#include <string.h>

#include "show/report/csv_text.h"
#include "show/report/diff/diff.h"
#include "show/report/json_text.h"
#include "show/report/number.h"

static int side_of(const struct fm_diff_row *row)
{
    return row->row[FM_NOW] != FM_NONE ? FM_NOW : FM_BEFORE;
}

static uint32_t function_of(const struct fm_diff *d, const struct fm_diff_row *row, int side)
{
    return d->side[side].flat->rows.data[row->row[side]].func;
}

static size_t shown(const struct fm_diff *d)
{
    return d->rows_max < 0 || (size_t)d->rows_max > d->rows.len ? d->rows.len : (size_t)d->rows_max;
}

static const char *const parts[] = { "before_", "now_", "change_" };

/* The third of each is the difference. */
static int64_t part_of(const int64_t numbers[FM_SIDES], int part)
{
    return part < FM_SIDES ? numbers[part] : numbers[FM_NOW] - numbers[FM_BEFORE];
}

/* ---- JSON ---- */

static void add_numbers(struct fm_buffer *out, const char *name, const int64_t numbers[FM_SIDES])
{
    for (int part = 0; part < 3; part++) {
        char key[64];
        snprintf(key, sizeof key, "%s%s", parts[part], name);
        fm_json_add_member(out, key, part_of(numbers, part));
    }
}

static void add_row_numbers(struct fm_buffer *out, const struct fm_diff *d,
                            const struct fm_diff_row *row)
{
    for (int key = fm_diff_next_key(d, 0); key < FM_DIFF_KEYS; key = fm_diff_next_key(d, key + 1))
        add_numbers(out, fm_diff_keys[key].json,
                    (int64_t[]){ row->numbers[FM_BEFORE][key], row->numbers[FM_NOW][key] });
}

static void add_names(struct fm_buffer *out, const struct fm_diff *d, const struct fm_diff_row *row)
{
    int side = side_of(row);
    fm_json_add_function(out, d->side[side].p, function_of(d, row, side));
    if (row->row[FM_BEFORE] != FM_NONE && row->row[FM_NOW] != FM_NONE)
        fm_json_add_member(
            out, "before_line",
            d->side[FM_BEFORE].p->functions.data[function_of(d, row, FM_BEFORE)].line);
    if (d->lines)
        fm_json_add_member(out, "at_line", row->line);
}

struct diff_json {
    struct fm_diff *d;
    struct fm_buffer *out;
    bool more;
};

static void add_step(const struct fm_diff_step *step, void *data)
{
    struct diff_json *page = data;
    struct fm_buffer *out = page->out;
    const struct fm_diff_key *key = &fm_diff_keys[page->d->key];
    char name[64];
    if (step->hidden)
        return;
    fm_buffer_addf(out, "%s\n  {", page->more ? "," : "");
    page->more = true;
    fm_json_add_member(out, "depth", step->depth);
    if (step->row)
        add_names(out, page->d, step->row);
    snprintf(name, sizeof name, "%s", key->total ? key->json : fm_diff_keys[page->d->key + 1].json);
    add_numbers(out, name, step->total);
    snprintf(name, sizeof name, "%s", key->total ? fm_diff_keys[page->d->key - 1].json : key->json);
    add_numbers(out, name, step->self);
    if (!page->d->memory)
        add_numbers(out, "calls", step->calls);
    fm_buffer_add_char(out, '}');
}

static void add_head(struct fm_buffer *out, const struct fm_diff *d)
{
    fm_buffer_add_text(out, "{");
    fm_json_add_text_member(out, "fathom", FATHOM_VERSION);
    for (int side = 0; side < FM_SIDES; side++) {
        const char *command = fm_profile_fact_get(d->side[side].p, "command");
        fm_json_add_text_member(out, side ? "now" : "before", d->side[side].files[0]);
        if (command)
            fm_json_add_text_member(out, side ? "now_command" : "before_command", command);
        if (d->timed)
            fm_json_add_member(out, side ? "now_at_ns" : "before_at_ns",
                               (int64_t)d->shown[side].shown_ns);
    }
    fm_json_add_text_member(out, "of", d->memory ? "memory" : "time");
    fm_json_add_text_member(out, "sorted_by", fm_diff_keys[d->key].name);
    char number[FM_NUMBER_BYTES];
    fm_json_add_key(out, "scale");
    fm_buffer_add_text(out, fm_number_repr(number, d->scale));
    for (int key = fm_diff_next_key(d, 0); key < FM_DIFF_KEYS; key = fm_diff_next_key(d, key + 1))
        if (!fm_diff_keys[key].total)
            add_numbers(out, fm_diff_keys[key].json,
                        (int64_t[]){ fm_diff_scaled(d, FM_BEFORE, d->all[FM_BEFORE][key]),
                                     d->all[FM_NOW][key] });
}

void fm_diff_print_json(struct fm_diff *d, bool tree)
{
    fm_autobuffer out = FM_BUFFER_INIT;
    struct diff_json page = { d, &out, false };
    add_head(&out, d);
    fm_buffer_addf(&out, ",\n \"%s\": [",
                   tree                               ? "tree"
                   : d->lines || d->origin[FM_BEFORE] ? "lines"
                                                      : "functions");
    if (tree)
        fm_diff_walk(d, add_step, &page);
    for (size_t i = 0; i < shown(d) && !tree; i++) {
        fm_buffer_addf(&out, "%s\n  {", i ? "," : "");
        add_names(&out, d, &d->rows.data[i]);
        add_row_numbers(&out, d, &d->rows.data[i]);
        fm_buffer_add_char(&out, '}');
    }
    fm_buffer_add_text(&out, "]}\n");
    fwrite(out.data, 1, out.len, d->out);
}

/* ---- CSV ---- */

static void put_numbers(FILE *out, const int64_t numbers[FM_SIDES])
{
    for (int part = 0; part < 3; part++)
        fprintf(out, ",%lld", (long long)part_of(numbers, part));
}

static void put_titles(FILE *out, const char *name)
{
    for (int part = 0; part < 3; part++)
        fprintf(out, ",%s%s", parts[part], name);
}

static void put_function(const struct fm_diff *d, const struct fm_diff_row *row)
{
    int side = side_of(row);
    struct fm_report r = d->side[side];
    r.out = d->out;
    fm_csv_put_function(&r, function_of(d, row, side));
    if (d->lines)
        fprintf(d->out, ",%u", row->line);
}

static void put_step(const struct fm_diff_step *step, void *data)
{
    const struct fm_diff *d = data;
    if (step->hidden)
        return;
    fprintf(d->out, "%d,", step->depth);
    if (step->row)
        put_function(d, step->row);
    else
        fputs(",,", d->out);
    put_numbers(d->out, step->total);
    put_numbers(d->out, step->self);
    fputs("\r\n", d->out);
}

void fm_diff_print_csv(struct fm_diff *d, bool tree)
{
    if (tree) {
        fputs("depth,function,file,line", d->out);
        put_titles(d->out, "total");
        put_titles(d->out, "self");
        fputs("\r\n", d->out);
        fm_diff_walk(d, put_step, d);
        return;
    }
    fprintf(d->out, "function,file,line%s", d->lines ? ",at_line" : "");
    for (int key = fm_diff_next_key(d, 0); key < FM_DIFF_KEYS; key = fm_diff_next_key(d, key + 1))
        put_titles(d->out, fm_diff_keys[key].json);
    fputs("\r\n", d->out);
    for (size_t i = 0; i < shown(d); i++) {
        const struct fm_diff_row *row = &d->rows.data[i];
        put_function(d, row);
        for (int key = fm_diff_next_key(d, 0); key < FM_DIFF_KEYS;
             key = fm_diff_next_key(d, key + 1))
            put_numbers(d->out,
                        (int64_t[]){ row->numbers[FM_BEFORE][key], row->numbers[FM_NOW][key] });
        fputs("\r\n", d->out);
    }
}

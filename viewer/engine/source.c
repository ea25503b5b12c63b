/* The lines of a file with their numbers, and its text; see engine.h. */
#include <string.h>

#include "engine.h"

#define NO_SOURCE 3

static bool is_file(const struct fm_profile *p, uint32_t string, const char *file, size_t len)
{
    return fm_strings_len(p->strings, string) == len &&
           memcmp(fm_strings_get(p->strings, string), file, len) == 0;
}

static int by_line(const void *left, const void *right)
{
    const struct fm_line *a = *(const struct fm_line *const *)left,
                         *b = *(const struct fm_line *const *)right;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->func < b->func ? -1 : a->func > b->func;
}

static void fill_lines(struct fm_engine *e, const struct fm_recording *r,
                       const struct fm_line **rows, uint32_t count)
{
    struct fm_result *out = &e->results[0];
    fm_result_begin(out, count);
    uint32_t *line = fm_result_u32(out), *func = fm_result_u32(out);
    double *number[6];
    for (int k = 0; k < 6; k++)
        number[k] = fm_result_f64(out);
    double *states = fm_result_f64_wide(out, FM_STATE_COUNT);
    for (uint32_t i = 0; i < count; i++) {
        const struct fm_line *row = rows[i];
        const int64_t numbers[6] = { row->hits,   row->total_ns, row->self_ns,
                                     row->min_ns, row->max_ns,   row->samples };
        line[i] = row->line;
        func[i] = r->func_of[row->func];
        for (int k = 0; k < 6; k++)
            number[k][i] = (double)numbers[k];
        for (int s = 0; s < FM_STATE_COUNT; s++) {
            states[(size_t)i * FM_STATE_COUNT + (size_t)s] = (double)row->state_ns[s];
            if (row->state_ns[s])
                out->scalars[2] = 1;
        }
    }
}

static void fill_functions(struct fm_engine *e, const struct fm_recording *r, const bool *here)
{
    const struct fm_profile *p = r->p;
    struct fm_result *out = &e->results[1];
    uint32_t count = 0;
    for (size_t f = 0; f < p->functions.len; f++)
        count += here[f];
    fm_result_begin(out, count);
    uint32_t *ids = fm_result_u32(out), *lines = fm_result_u32(out);
    for (size_t f = 0, i = 0; f < p->functions.len; f++) {
        if (!here[f])
            continue;
        ids[i] = r->func_of[f];
        /* In the table of functions stands the line of the recording that was opened first. */
        lines[i++] = p->functions.data[f].line;
    }
}

static void fill_spots(struct fm_engine *e, const struct fm_recording *r, const bool *here,
                       uint32_t process)
{
    FM_VEC(const struct fm_spot *) spots = { 0 };
    for (size_t i = 0; i < r->p->samples.spots.len && spots.len < FM_ENGINE_ROWS; i++) {
        const struct fm_spot *spot = &r->p->samples.spots.data[i];
        if (here[spot->func] && (process == FM_NONE || spot->process == process))
            fm_vec_push(&spots, spot);
    }
    struct fm_result *out = &e->results[2];
    fm_result_begin(out, (uint32_t)spots.len);
    uint32_t *place[5];
    for (int k = 0; k < 5; k++)
        place[k] = fm_result_u32(out);
    double *samples = fm_result_f64(out), *ns = fm_result_f64(out);
    for (size_t i = 0; i < spots.len; i++) {
        const struct fm_spot *spot = spots.data[i];
        const uint32_t where[5] = { r->func_of[spot->func], spot->line, spot->end_line,
                                    spot->column, spot->end_column };
        for (int k = 0; k < 5; k++)
            place[k][i] = where[k];
        samples[i] = (double)spot->samples;
        ns[i] = (double)spot->ns;
    }
    fm_vec_release(&spots);
}

static void fill_text(struct fm_engine *e, const struct fm_profile *p, const char *file, size_t len)
{
    struct fm_result *out = &e->results[0];
    fm_buffer_clear(&e->text);
    out->scalars[0] = NO_SOURCE;
    for (size_t i = 0; i < p->sources.len; i++) {
        const struct fm_source *source = &p->sources.data[i];
        if (!is_file(p, source->file, file, len))
            continue;
        out->scalars[0] = source->state;
        if (source->text) {
            out->scalars[1] = 1;
            fm_buffer_add(&e->text, fm_strings_get(p->strings, source->text),
                          fm_strings_len(p->strings, source->text));
            return;
        }
    }
}

int fm_engine_source(struct fm_engine *e, int recording, const char *file, size_t len,
                     uint32_t process)
{
    struct fm_recording *r = fm_engine_recording(e, recording);
    if (!r)
        return -1;
    const struct fm_profile *p = r->p;
    struct fm_lines lines = fm_lines_combined(p, process);
    fm_autofree bool *here = fm_calloc(p->functions.len, sizeof *here);
    FM_VEC(const struct fm_line *) rows = { 0 };
    for (size_t f = 0; f < p->functions.len; f++)
        here[f] = p->functions.data[f].kind != FM_FUNCTION_ROOT &&
                  is_file(p, p->functions.data[f].file, file, len);
    for (size_t i = 0; i < lines.rows.len && rows.len < FM_ENGINE_ROWS; i++)
        if (here[lines.rows.data[i].func])
            fm_vec_push(&rows, &lines.rows.data[i]);
    if (rows.len)
        qsort(rows.data, rows.len, sizeof *rows.data, by_line);
    fill_lines(e, r, rows.data, (uint32_t)rows.len);
    fill_functions(e, r, here);
    fill_spots(e, r, here, process);
    fill_text(e, p, file, len);
    fm_vec_release(&rows);
    fm_lines_release(&lines);
    return 0;
}

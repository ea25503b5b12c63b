/*
 * Whole files annotated, in pprofile's layout: every line of a file has the same six fields, so
 * that grep, sort and awk can work on it. See annotated.h for what the numbers are.
 */
#include <string.h>

#include "base/clean.h"
#include "show/report/lines/annotated.h"
#include "show/report/samples/sampling.h"

/* A line of one function, on its way to its file. */
struct annotated_piece {
    const char *name;
    uint32_t file;
    const struct fm_text *text;
    const char *why;
    const struct fm_line *row;
};

static int compare(const void *left, const void *right)
{
    const struct annotated_piece *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    if (order)
        return order;
    int64_t x = a->text ? (int64_t)a->text->source : -1,
            y = b->text ? (int64_t)b->text->source : -1;
    if (x != y)
        return x < y ? -1 : 1;
    return a->row->line < b->row->line ? -1 : a->row->line > b->row->line;
}

static void add_piece(struct fm_annotation *a, const struct annotated_piece *piece)
{
    struct fm_annotated *file = a->files.len ? &a->files.data[a->files.len - 1] : NULL;
    if (!file || file->file != piece->file || file->text != piece->text) {
        fm_vec_push(&a->files, ((struct fm_annotated){ piece->file, piece->text, piece->why, 0,
                                                       a->lines.len, 0 }));
        file = &a->files.data[a->files.len - 1];
    }
    if (!file->n || a->lines.data[a->lines.len - 1].line != piece->row->line) {
        fm_vec_push(&a->lines, ((struct fm_annotated_line){ .line = piece->row->line }));
        file->n++;
    }
    struct fm_annotated_line *line = &a->lines.data[a->lines.len - 1];
    line->hits = fm_sum(line->hits, piece->row->hits);
    line->self_ns = fm_sum(line->self_ns, piece->row->self_ns);
    line->samples = fm_sum(line->samples, piece->row->samples);
    for (int s = 0; s < FM_STATE_COUNT; s++)
        line->state_ns[s] = fm_sum(line->state_ns[s], piece->row->state_ns[s]);
    file->self_ns = fm_sum(file->self_ns, piece->row->self_ns);
}

void fm_annotation_init(struct fm_annotation *a, const struct fm_report *r)
{
    FM_VEC(struct annotated_piece) pieces = { 0 };
    memset(a, 0, sizeof *a);
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        const struct fm_linetable *table = &r->lines->all.data[r->selection.rows.data[i]];
        struct annotated_piece piece = { .file = r->p->functions.data[table->func].file };
        piece.name = fm_profile_text(r->p, piece.file);
        piece.text = fm_texts_find(r->lines->texts, table->func, &piece.why);
        for (size_t k = 0; k < table->n; k++) {
            piece.row = &table->rows[k];
            fm_vec_push(&pieces, piece);
        }
    }
    if (pieces.len)
        qsort(pieces.data, pieces.len, sizeof *pieces.data, compare);
    for (size_t i = 0; i < pieces.len; i++)
        add_piece(a, &pieces.data[i]);
    fm_vec_release(&pieces);
}

void fm_annotation_release(struct fm_annotation *a)
{
    fm_vec_release(&a->files);
    fm_vec_release(&a->lines);
}

static void print_line(const struct fm_report *r, const struct fm_scale *scale, uint32_t number,
                       const struct fm_annotated_line *line, const char *text)
{
    double time = line ? (double)line->self_ns : 0, program = (double)r->lines->program_ns;
    int64_t hits = line ? line->hits : 0;
    if (r->lines->sampled) {
        char states[FM_NUMBER_BYTES] = "";
        fprintf(r->out, "%6u|%10lld|%13g|%-13s|%6.2f%%|%s\n", number,
                (long long)(line ? line->samples : 0), time / scale->unit_ns,
                line ? fm_states_write_bar(states, line->state_ns) : "",
                program > 0 ? time / program * 100 : 0, text);
        return;
    }
    fprintf(r->out, "%6u|%10lld|%13g|%13g|%6.2f%%|%s\n", number, (long long)hits,
            time / scale->unit_ns, hits > 0 ? time / scale->unit_ns / (double)hits : 0,
            program > 0 ? time / program * 100 : 0, text);
}

/* Every line of the text; lines that it does not have, too. */
static void print_lines(const struct fm_report *r, const struct fm_annotation *a,
                        const struct fm_annotated *file, const struct fm_scale *scale)
{
    fm_autobuffer shown = FM_BUFFER_INIT;
    const struct fm_annotated_line *line = a->lines.data + file->first, *end = line + file->n;
    uint32_t count = file->text ? fm_text_count(file->text) : 0;
    for (; line < end && line->line == 0; line++)
        print_line(r, scale, 0, line, "");
    for (uint32_t n = 1; n <= count; n++) {
        bool has = line < end && line->line == n;
        fm_buffer_clear(&shown);
        fm_text_show(file->text, n, &shown);
        print_line(r, scale, n, has ? line : NULL, fm_buffer_text(&shown));
        line += has;
    }
    for (; line < end; line++)
        print_line(r, scale, line->line, line, "");
}

static void print_file(const struct fm_report *r, const struct fm_annotation *a,
                       const struct fm_annotated *file, const struct fm_scale *scale)
{
    double program = (double)r->lines->program_ns, time = (double)file->self_ns;
    fputs("File: ", r->out);
    fm_clean_put(r->out, fm_profile_text(r->p, file->file));
    fprintf(r->out, "\nFile duration: %g%s (%.2f%%)\n", time / scale->unit_ns, scale->unit,
            program > 0 ? time / program * 100 : 0);
    if (!file->text)
        fprintf(r->out, "No source is shown: %s\n", file->why);
    fputs(r->lines->sampled ? "Line #|   Samples|         Time|States       |      %|Source code\n"
                            : "Line #|      Hits|         Time| Time per hit|      %|Source code\n",
          r->out);
    fputs("------+----------+-------------+-------------+-------+-----------\n", r->out);
    print_lines(r, a, file, scale);
}

void fm_report_annotate(const struct fm_report *r)
{
    struct fm_annotation a;
    enum fm_time_unit unit = r->view.unit == FM_TIME_AUTO ? FM_TIME_S : r->view.unit;
    struct fm_scale scale = fm_scale_for(unit, 0);
    fm_annotation_init(&a, r);
    for (size_t i = 0; i < a.files.len; i++) {
        if (i)
            fputc('\n', r->out);
        print_file(r, &a, &a.files.data[i], &scale);
    }
    fm_annotation_release(&a);
}

/*
 * Reports of lines as JSON: functions with their lines, the hottest lines, or files with all lines
 * that ran. Numbers that a recording does not hold (those of another tool's file) are left out.
 */
#include "show/report/json_text.h"
#include "show/report/lines/annotated.h"
#include "show/report/lines/hotlines.h"

static void begin(struct fm_buffer *out, const char *indent)
{
    bool first = out->data[out->len - 1] == '[';
    fm_buffer_addf(out, "%s\n%s{", first ? "" : ",", indent);
}

static void add_numbers(struct fm_buffer *out, const struct fm_report *r, const struct fm_line *row)
{
    fm_json_add_member(out, "hits", row->hits);
    fm_json_add_member(out, "total_ns", row->total_ns);
    if (!r->lines->detailed)
        return;
    fm_json_add_member(out, "self_ns", row->self_ns);
    if (r->lines->sampled || r->lines->beside) {
        fm_json_add_member(out, "samples", row->samples);
        fm_json_add_states(out, "states_ns", row->state_ns);
    }
    fm_json_add_member(out, "min_ns", row->min_ns);
    fm_json_add_member(out, "max_ns", row->max_ns);
    if (row->histogram != FM_NONE) {
        fm_json_add_member(out, "p50_ns", fm_lines_quantile_ns(&r->lines->combined, row, 0.5));
        fm_json_add_member(out, "p99_ns", fm_lines_quantile_ns(&r->lines->combined, row, 0.99));
    }
    fm_json_add_member(out, "suspended_ns", row->suspended_ns);
    if (row->memory) {
        fm_json_add_member(out, "heap_bytes", row->heap_after);
        fm_json_add_member(out, "heap_most_bytes", row->heap_most);
        fm_json_add_member(out, "allocated_bytes", row->allocated);
        fm_json_add_member(out, "freed_bytes", row->freed);
        fm_json_add_member(out, "transient_bytes", row->above_most);
    }
}

static void add_source(struct fm_buffer *out, const struct fm_text *text, uint32_t line)
{
    fm_autobuffer shown = FM_BUFFER_INIT;
    if (!text || line < 1 || line > fm_text_count(text))
        return;
    fm_text_show(text, line, &shown);
    fm_json_add_text_member(out, "source", fm_buffer_text(&shown));
}

static void add_table(struct fm_buffer *out, const struct fm_report *r, uint32_t index)
{
    const struct fm_linetable *table = &r->lines->all.data[index];
    const char *why;
    const struct fm_text *text = fm_texts_find(r->lines->texts, table->func, &why);
    begin(out, "  ");
    fm_json_add_function(out, r->p, table->func);
    fm_json_add_key(out, "marked");
    fm_buffer_add_text(out, table->marked ? "true" : "false");
    fm_json_add_member(out, "hits", table->hits);
    fm_json_add_member(out, "total_ns", table->time_ns);
    if (r->lines->detailed)
        fm_json_add_member(out, "self_ns", table->self_ns);
    if (r->lines->sampled || r->lines->beside)
        fm_json_add_member(out, "samples", table->samples);
    if (!r->view.summarize) {
        if (!text)
            fm_json_add_text_member(out, "no_source", why);
        fm_json_add_key(out, "lines");
        fm_buffer_add_char(out, '[');
        for (size_t i = 0; i < table->n; i++) {
            begin(out, "   ");
            fm_json_add_member(out, "line", table->rows[i].line);
            add_numbers(out, r, &table->rows[i]);
            add_source(out, text, table->rows[i].line);
            fm_buffer_add_char(out, '}');
        }
        fm_buffer_add_char(out, ']');
    }
    fm_buffer_add_char(out, '}');
}

static void add_hot(struct fm_buffer *out, const struct fm_report *r)
{
    struct fm_hotlines hot;
    fm_hotlines_init(&hot, r);
    for (size_t i = 0; i < hot.all.len; i++) {
        const struct fm_hotline *line = &hot.all.data[i];
        const char *why;
        begin(out, "  ");
        fm_json_add_text_member(out, "file",
                                fm_profile_text(r->p, r->p->functions.data[line->row->func].file));
        fm_json_add_member(out, "line", line->row->line);
        add_numbers(out, r, line->row);
        add_source(out, fm_texts_find(r->lines->texts, line->row->func, &why), line->row->line);
        fm_json_add_key(out, "function");
        fm_buffer_add_char(out, '{');
        fm_json_add_function(out, r->p, line->row->func);
        fm_buffer_add_text(out, "}}");
    }
    fm_hotlines_release(&hot);
}

static void add_files(struct fm_buffer *out, const struct fm_report *r)
{
    struct fm_annotation a;
    fm_annotation_init(&a, r);
    for (size_t i = 0; i < a.files.len; i++) {
        const struct fm_annotated *file = &a.files.data[i];
        begin(out, "  ");
        fm_json_add_text_member(out, "file", fm_profile_text(r->p, file->file));
        fm_json_add_member(out, "self_ns", file->self_ns);
        if (!file->text)
            fm_json_add_text_member(out, "no_source", file->why);
        fm_json_add_key(out, "lines");
        fm_buffer_add_char(out, '[');
        for (size_t k = 0; k < file->n; k++) {
            const struct fm_annotated_line *line = &a.lines.data[file->first + k];
            begin(out, "   ");
            fm_json_add_member(out, "line", line->line);
            fm_json_add_member(out, "hits", line->hits);
            fm_json_add_member(out, "self_ns", line->self_ns);
            if (r->lines->sampled || r->lines->beside) {
                fm_json_add_member(out, "samples", line->samples);
                fm_json_add_states(out, "states_ns", line->state_ns);
            }
            add_source(out, file->text, line->line);
            fm_buffer_add_char(out, '}');
        }
        fm_buffer_add_text(out, "]}");
    }
    fm_annotation_release(&a);
}

void fm_json_add_lines(struct fm_buffer *out, const struct fm_report *r, enum fm_part part)
{
    if (part == FM_PART_HOT)
        add_hot(out, r);
    else if (part == FM_PART_ANNOTATE)
        add_files(out, r);
    for (size_t i = 0; part == FM_PART_LINES && i < r->selection.rows.len; i++)
        add_table(out, r, r->selection.rows.data[i]);
}

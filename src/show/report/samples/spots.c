/*
 * The hottest expressions: where samples fell inside a line. Each has a line of numbers, then its
 * source with the expression underlined. A Python that keeps no columns (before 3.11) has whole
 * lines here.
 */
#include <string.h>

#include "base/clean.h"
#include "show/report/samples/places.h"
#include "show/report/samples/sampling.h"

#define INDENT 8

static void put(const struct fm_report *r, enum fm_color color, const char *text)
{
    fm_color_begin(&r->style, r->out, color);
    fm_clean_put(r->out, text);
    fm_color_end(&r->style, r->out, color);
}

static void print_head(const struct fm_report *r, const struct fm_place *place,
                       const struct fm_places *places, const struct fm_sampling *sampling)
{
    char percent[FM_NUMBER_BYTES], error[FM_NUMBER_BYTES], time[FM_NUMBER_BYTES];
    char count[FM_NUMBER_BYTES];
    fm_autobuffer where = FM_BUFFER_INIT, head = FM_BUFFER_INIT;
    double part = (double)place->ns, whole = (double)places->all_ns;
    fm_number_percent(percent, part, whole);
    fm_color_begin(&r->style, r->out, fm_color_heat(part, whole));
    fprintf(r->out, "%5s %%", *percent ? percent : "0");
    fm_color_end(&r->style, r->out, fm_color_heat(part, whole));
    fm_sampling_write_error(error, sampling, place->samples, places->all_samples);
    fm_buffer_addf(&head, " ± %s  %s  %s sample%s  ", error, fm_number_time(time, place->ns),
                   fm_number_count(count, place->samples), place->samples == 1 ? "" : "s");
    put(r, FM_COLOR_DIM, head.data);
    const char *name = fm_names_function(r->names, place->row);
    fm_buffer_addf(&where, "  %s:%u", fm_names_file(r->names, place->row), place->spot.line);
    put(r, FM_COLOR_NAME, name);
    put(r, FM_COLOR_DIM, where.data);
    fputc('\n', r->out);
}

static void print_source(const struct fm_report *r, const struct fm_text *text,
                         const struct fm_spot *spot)
{
    fm_autobuffer shown = FM_BUFFER_INIT;
    size_t len;
    fm_text_show(text, spot->line, &shown);
    const char *source = fm_buffer_text(&shown);
    size_t blank = strspn(source, " "), room = SIZE_MAX;
    if (r->style.width > INDENT)
        room = (size_t)r->style.width - INDENT;
    size_t width = fm_text_width(source + blank, strlen(source + blank));
    fprintf(r->out, "%*s%s\n", INDENT, "", source + blank);
    if (!spot->column || width > room) /* a line that wraps cannot be underlined */
        return;
    fm_text_line(text, spot->line, &len);
    /* An expression over several lines is underlined to the end of its first. */
    size_t end = spot->end_line == spot->line && spot->end_column ? spot->end_column - 1 : len;
    size_t from = fm_text_columns(text, spot->line, spot->column - 1);
    size_t to = fm_text_columns(text, spot->line, end < len ? end : len);
    to = to < blank + width ? to : blank + width;
    from = from > blank ? from : blank;
    if (to <= from)
        return;
    fprintf(r->out, "%*s", (int)(INDENT + from - blank), "");
    fm_color_begin(&r->style, r->out, FM_COLOR_HEAT4);
    for (size_t i = from; i < to; i++)
        fputc('^', r->out);
    fm_color_end(&r->style, r->out, FM_COLOR_HEAT4);
    fputc('\n', r->out);
}

void fm_report_spots(const struct fm_report *r)
{
    struct fm_places places;
    struct fm_texts *texts = NULL;
    struct fm_sampling sampling = fm_sampling_of(r->p, &r->scope);
    char a[FM_NUMBER_BYTES], b[FM_NUMBER_BYTES];
    fm_places_init(&places, r, FM_PART_SPOTS);
    if (!places.of)
        fputs("No expressions were recorded.\n", r->out);
    for (size_t i = 0; i < places.all.len; i++) {
        const struct fm_place *place = &places.all.data[i];
        const struct fm_text *text = fm_place_text(r, &texts, place);
        print_head(r, place, &places, &sampling);
        if (text && place->spot.line >= 1 && place->spot.line <= fm_text_count(text))
            print_source(r, text, &place->spot);
    }
    if (places.all.len < places.of) {
        fm_color_begin(&r->style, r->out, FM_COLOR_DIM);
        fprintf(r->out, "\n%s of %s expressions", fm_number_count(a, (int64_t)places.all.len),
                fm_number_count(b, (int64_t)places.of));
        fm_color_end(&r->style, r->out, FM_COLOR_DIM);
        fputc('\n', r->out);
    }
    fm_texts_free(texts);
    fm_places_release(&places);
}

/* Reports of samples as CSV, and what all CSV is written with; see csv_text.h. */
#include <string.h>

#include "base/clean.h"
#include "show/report/branch.h"
#include "show/report/csv_text.h"
#include "show/report/metric.h"
#include "show/report/samples/places.h"
#include "show/report/samples/sampling.h"

/* Would a spreadsheet compute the cell? Excel also takes the wide forms of these characters. */
static bool begins_formula(const char *text)
{
    static const char *const wide[] = { "＝", "＋", "－", "＠" };
    for (size_t i = 0; i < FM_COUNT(wide); i++)
        if (strncmp(text, wide[i], strlen(wide[i])) == 0)
            return true;
    return *text && strchr("=+-@\t\r", *text);
}

void fm_csv_put_text(const struct fm_report *r, const char *text)
{
    fm_autobuffer clean = FM_BUFFER_INIT;
    bool formula = begins_formula(text);
    fm_clean_add(&clean, text, strlen(text));
    const char *s = fm_buffer_text(&clean);
    if (!formula && !strpbrk(s, ",;\"")) {
        fputs(s, r->out);
        return;
    }
    fputs(formula ? "\"'" : "\"", r->out);
    for (; *s; s++) {
        if (*s == '"')
            fputc('"', r->out);
        fputc(*s, r->out);
    }
    fputc('"', r->out);
}

void fm_csv_put_seconds(const struct fm_report *r, int64_t ns)
{
    uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    fprintf(r->out, ",%s%llu.%09llu", ns < 0 ? "-" : "", (unsigned long long)(size / 1000000000),
            (unsigned long long)(size % 1000000000));
}

void fm_csv_put_function(const struct fm_report *r, uint32_t func)
{
    const struct fm_function *f = &r->p->functions.data[func];
    fm_csv_put_text(r, fm_profile_text(r->p, f->qualname ? f->qualname : f->name));
    fputc(',', r->out);
    fm_csv_put_text(r, fm_profile_text(r->p, f->file));
    fprintf(r->out, ",%u", f->line);
}

void fm_csv_put_state_titles(const struct fm_report *r)
{
    for (int s = 0; s < FM_STATE_COUNT; s++)
        fprintf(r->out, ",%s_s", fm_state_name((enum fm_state)s));
}

void fm_csv_put_states(const struct fm_report *r, const int64_t state_ns[FM_STATE_COUNT])
{
    for (int s = 0; s < FM_STATE_COUNT; s++)
        fm_csv_put_seconds(r, state_ns[s]);
}

/* ---- functions and their callers ---- */

void fm_csv_put_sampled(const struct fm_report *r)
{
    struct fm_sampling sampling = fm_sampling_of(r->p, &r->scope);
    int64_t all = 0;
    for (size_t i = 0; i < r->flat->rows.len; i++)
        all = fm_sum(all, r->flat->rows.data[i].samples);
    fputs("function,file,line,samples,total_samples,self_error,self_s,total_s", r->out);
    fm_csv_put_metric_titles(r->out, r->flat->columns, true);
    fm_csv_put_state_titles(r);
    fputs("\r\n", r->out);
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        const struct fm_flat_row *f = &r->flat->rows.data[r->selection.rows.data[i]];
        fm_csv_put_function(r, f->func);
        fprintf(r->out, ",%lld,%lld,%.6f", (long long)f->samples, (long long)f->total_samples,
                fm_sampling_error_of(&sampling, f->samples, all));
        fm_csv_put_seconds(r, f->self_ns);
        fm_csv_put_seconds(r, f->total_ns);
        fm_csv_put_metrics(r->out, r->p, r->flat->columns, f->self, f->total);
        fm_csv_put_states(r, f->state_ns);
        fputs("\r\n", r->out);
    }
}

/* ---- states ---- */

static void put_state_row(const struct fm_report *r, int64_t samples,
                          const int64_t state_ns[FM_STATE_COUNT])
{
    fprintf(r->out, ",%lld", (long long)samples);
    fm_csv_put_seconds(r, fm_states_sum(state_ns));
    fm_csv_put_states(r, state_ns);
    fputs("\r\n", r->out);
}

void fm_csv_put_state_table(const struct fm_report *r)
{
    const struct fm_profile *p = r->p;
    fm_autofree struct fm_thread_states *states = fm_thread_states_new(p);
    fputs("of,process,thread,name,file,line,samples,time_s", r->out);
    fm_csv_put_state_titles(r);
    fputs("\r\n", r->out);
    for (uint32_t i = 0; i < p->threads.len; i++) {
        const struct fm_thread *t = &p->threads.data[i];
        if (!fm_branches_shows(p, &r->scope, i))
            continue;
        fprintf(r->out, "thread,%u,%u,", p->processes.data[t->process].pid, t->tid);
        fm_csv_put_text(r, fm_profile_text(p, t->name));
        fputs(",,", r->out);
        put_state_row(r, states[i].samples, states[i].state_ns);
    }
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        const struct fm_flat_row *f = &r->flat->rows.data[r->selection.rows.data[i]];
        fputs("function,,,", r->out);
        fm_csv_put_function(r, f->func);
        put_state_row(r, f->samples, f->state_ns);
    }
}

/* ---- spots and waits ---- */

void fm_csv_put_source(const struct fm_report *r, const struct fm_text *text, uint32_t line)
{
    fm_autobuffer shown = FM_BUFFER_INIT;
    if (text && line >= 1 && line <= fm_text_count(text))
        fm_text_show(text, line, &shown);
    fputc(',', r->out);
    fm_csv_put_text(r, fm_buffer_text(&shown));
}

void fm_csv_put_places(const struct fm_report *r, enum fm_part part)
{
    struct fm_places places;
    struct fm_texts *texts = NULL;
    bool waits = part == FM_PART_WAITS;
    fm_places_init(&places, r, part);
    fputs(waits ? "state,detail,function,file,first_line,line,samples,time_s\r\n"
                : "function,file,first_line,line,end_line,column,end_column,samples,time_s,source"
                  "\r\n",
          r->out);
    for (size_t i = 0; i < places.all.len; i++) {
        const struct fm_place *place = &places.all.data[i];
        const struct fm_spot *spot = &place->spot;
        if (waits) {
            fprintf(r->out, "%s,", fm_state_name((enum fm_state)place->wait.state));
            fm_csv_put_text(r, fm_profile_text(r->p, place->wait.detail));
            fputc(',', r->out);
        }
        fm_csv_put_function(r, r->flat->rows.data[place->row].func);
        if (waits)
            fprintf(r->out, ",%u", place->wait.line);
        else
            fprintf(r->out, ",%u,%u,%u,%u", spot->line, spot->end_line, spot->column,
                    spot->end_column);
        fprintf(r->out, ",%lld", (long long)place->samples);
        fm_csv_put_seconds(r, place->ns);
        if (!waits)
            fm_csv_put_source(r, fm_place_text(r, &texts, place), spot->line);
        fputs("\r\n", r->out);
    }
    fm_texts_free(texts);
    fm_places_release(&places);
}

/*
 * The source of functions as it ran, from the recording: works where the files are not.
 */
#include "base/clean.h"
#include "show/report/report.h"
#include "show/report/text.h"

static void print_function(const struct fm_report *r, struct fm_texts *texts, uint32_t func)
{
    const struct fm_function *f = &r->p->functions.data[func];
    const char *why;
    const struct fm_text *text = fm_texts_find(texts, func, &why);
    fm_autobuffer shown = FM_BUFFER_INIT;
    bool is_open;
    fm_clean_say(r->out, "%s  %s:%u", fm_profile_text(r->p, f->qualname),
                 fm_profile_text(r->p, f->file), f->line);
    if (!text) {
        fprintf(r->out, "        (%s)\n\n", why);
        return;
    }
    uint32_t last = fm_text_function_end(r->p, text, func, &is_open);
    for (uint32_t n = f->line ? f->line : 1; n <= last; n++) {
        fm_buffer_clear(&shown);
        fm_text_show(text, n, &shown);
        fprintf(r->out, "%6u  %s\n", n, fm_buffer_text(&shown));
    }
    fputc('\n', r->out);
}

void fm_report_source(const struct fm_report *r)
{
    struct fm_texts *texts = fm_texts_new(r->p);
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        uint32_t func = r->flat->rows.data[r->selection.rows.data[i]].func;
        if (r->p->functions.data[func].kind == FM_FUNCTION_PYTHON)
            print_function(r, texts, func);
    }
    fm_texts_free(texts);
}

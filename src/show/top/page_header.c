/*
 * The lines above the table: the process, the sampler and its error, the threads and what is shown,
 * and how all their time divides into states. See page.h.
 */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "show/report/number.h"
#include "show/report/samples/sampling.h"
#include "show/top/page_parts.h"
#include "show/top/screen.h"

#define BAR_MAX 48

/* Parts of `width` cells that each state gets: rounded so that they add up. */
static void share_cells(const int64_t *state_ns, int width, int *cells)
{
    double whole = 0, reached = 0;
    int given = 0;
    for (int s = 0; s < FM_STATE_COUNT; s++)
        whole += (double)state_ns[s];
    for (int s = 0; s < FM_STATE_COUNT; s++) {
        reached += (double)state_ns[s];
        int until = whole > 0 ? (int)(reached / whole * width + 0.5) : 0;
        cells[s] = until - given;
        given = until;
    }
}

void fm_page_draw_bar(int row, int column, int width, const int64_t *state_ns, bool selected)
{
    int cells[FM_STATE_COUNT];
    share_cells(state_ns, width, cells);
    for (int s = 0; s < FM_STATE_COUNT; s++) {
        char text[BAR_MAX + 1];
        int n = cells[s] < BAR_MAX ? cells[s] : BAR_MAX;
        memset(text, fm_state_info((enum fm_state)s)->letter, (size_t)n);
        text[n] = '\0';
        fm_screen_put(row, column, n, selected ? FM_LOOK_SELECTED : fm_look_of_state(s), text);
        column += n;
    }
}

static void draw_states(const struct fm_top_model *model, const struct fm_page_layout *l, int row)
{
    int64_t part[FM_STATE_COUNT], whole = 0;
    char text[FM_STATE_COUNT][32];
    int width = 0, column = 0;
    for (int s = 0; s < FM_STATE_COUNT; s++) {
        part[s] = model->now.state_ns[s] - model->before.state_ns[s];
        part[s] = part[s] > 0 ? part[s] : 0;
        whole += part[s];
    }
    for (int s = 0; s < FM_STATE_COUNT; s++) {
        double percent = whole ? (double)part[s] * 100 / (double)whole : 0;
        text[s][0] = '\0';
        if (part[s] > 0)
            snprintf(text[s], sizeof text[s], "%s %s%.0f%%", fm_state_word(s),
                     percent < 0.5 ? "<" : "", percent < 0.5 ? 1.0 : percent);
        width += *text[s] ? (int)strlen(text[s]) + 2 : 0;
    }
    int bar = l->columns - width - 3;
    if (bar >= 8 && whole) {
        bar = bar < BAR_MAX ? bar : BAR_MAX;
        fm_screen_put(row, 0, 1, FM_LOOK_DIM, "[");
        fm_page_draw_bar(row, 1, bar, part, false);
        fm_screen_put(row, bar + 1, 1, FM_LOOK_DIM, "]");
        column = bar + 3;
    }
    for (int s = 0; s < FM_STATE_COUNT; s++)
        if (*text[s])
            column += fm_screen_put(row, column, 32, fm_look_of_state(s), text[s]) + 2;
}

/* A command without the folder of its program, which would hide the rest. */
static const char *without_folder(const char *command)
{
    const char *end = command + strcspn(command, " "), *at = end;
    while (at > command && at[-1] != '/')
        at--;
    return at < end ? at : command;
}

void fm_page_draw_subject(const struct fm_page_subject *subject, const struct fm_page_layout *l)
{
    char left[96], right[64];
    uint64_t s = subject->watched_ns / 1000000000;
    snprintf(right, sizeof right, " %s %llu:%02llu:%02llu",
             subject->ended ? "ended after" : "watching", (unsigned long long)s / 3600,
             (unsigned long long)s / 60 % 60, (unsigned long long)s % 60);
    snprintf(left, sizeof left, "%s %d", subject->verb, (int)subject->pid);
    int width = (int)strlen(right), column = fm_screen_put(0, 0, l->columns, FM_LOOK_BOLD, left);
    if (*subject->version && l->columns >= 60) {
        snprintf(left, sizeof left, "  Python %.20s", subject->version);
        column += fm_screen_put(0, column, l->columns - column, FM_LOOK_PLAIN, left);
    }
    fm_screen_put(0, column + 2, l->columns - column - width - 3, FM_LOOK_NAME,
                  without_folder(subject->command));
    fm_screen_put(0, l->columns - width, width, subject->ended ? FM_LOOK_WARNING : FM_LOOK_PLAIN,
                  right);
}

static double per_second(uint64_t count, uint64_t ns)
{
    return ns ? (double)count * 1e9 / (double)ns : 0;
}

static void add_share(struct fm_buffer *line, const char *name, uint64_t part, uint64_t whole)
{
    char percent[FM_NUMBER_BYTES];
    fm_number_percent(percent, (double)part, (double)whole);
    fm_buffer_addf(line, "  %s %s%%", name, *percent ? percent : "0");
}

static void draw_sampler(const struct fm_top_view *view, const struct fm_top_status *status,
                         const struct fm_page_layout *l)
{
    const struct fm_sampler_stats *now = &status->now, *before = &status->before;
    uint64_t span = now->now_ns - before->now_ns;
    fm_autobuffer line = FM_BUFFER_INIT;
    char count[FM_NUMBER_BYTES];
    fm_buffer_addf(&line, "%.*f", status->rate_hz > 0 && status->rate_hz < 100 ? 1 : 0,
                   per_second(now->rounds - before->rounds, span));
    if (status->rate_hz > 0)
        fm_buffer_addf(&line, " of %g Hz", status->rate_hz);
    else
        fm_buffer_add_text(&line, " Hz");
    double whole = now->samples ? 1 - (double)now->partial / (double)now->samples : 0;
    fm_buffer_addf(&line, " %s  %s samples %s%.1f%%", status->mode,
                   fm_number_count(count, (int64_t)now->samples),
                   fm_screen_has_unicode() ? "±" : "+-",
                   fm_top_table_error_percent(&view->table, whole));
    add_share(&line, "lost", now->lost, now->samples + now->lost);
    add_share(&line, "partial", now->partial, now->samples);
    fm_buffer_addf(&line, "  own cpu %.1f%%", per_second(now->cpu_ns - before->cpu_ns, span) / 1e7);
    bool bad = now->lost * 200 > now->samples; /* more than half a percent */
    fm_screen_put(1, 0, l->columns, bad ? FM_LOOK_WARNING : FM_LOOK_PLAIN, fm_buffer_text(&line));
}

/* On average over the interval: how many threads were in these states? */
static double threads_in(const struct fm_top_model *model, unsigned states)
{
    uint64_t span = model->now_ns - model->before_ns;
    int64_t ns = 0;
    for (int s = 0; s < FM_STATE_COUNT; s++)
        if (states >> s & 1 && model->now.state_ns[s] > model->before.state_ns[s])
            ns += model->now.state_ns[s] - model->before.state_ns[s];
    return span ? (double)ns / (double)span : 0;
}

static void draw_threads(const struct fm_top_view *view, const struct fm_top_model *model,
                         const struct fm_top_status *status, const struct fm_page_layout *l)
{
    fm_autobuffer left = FM_BUFFER_INIT;
    fm_autobuffer right = FM_BUFFER_INIT;
    const struct fm_top_query *q = &view->query;
    /* When all have ended, how many there were. */
    uint32_t threads = status->now.threads ? status->now.threads : status->before.threads;
    fm_buffer_addf(&left, "%u thread%s", threads, threads == 1 ? "" : "s");
    if (model->processes > 1)
        fm_buffer_addf(&left, " of %u processes", model->processes);
    fm_buffer_addf(&left, ": %.1f running, %.1f wait for the GIL",
                   threads_in(model, fm_states_running()), threads_in(model, 1u << FM_STATE_GIL));
    if (view->paused)
        fm_buffer_add_text(&right, "PAUSED  ");
    if (q->thread != FM_NONE && !q->lines) {
        fm_top_thread_label(model, q->thread, &right);
        fm_buffer_add_text(&right, ", ");
    }
    if (q->states != FM_TOP_ALL_STATES)
        fm_buffer_addf(&right, "%s, ", fm_top_states_label(q->states));
    if (q->since_start)
        fm_buffer_add_text(&right, "all time");
    else
        fm_buffer_addf(&right, "last %.1f s", (double)(model->now_ns - model->before_ns) / 1e9);
    int width = fm_fit_width(fm_buffer_text(&right));
    width = width < l->columns * 2 / 3 ? width : l->columns * 2 / 3;
    bool special = view->paused || q->thread != FM_NONE || q->states != FM_TOP_ALL_STATES;
    fm_screen_put(2, 0, l->columns - width - 2, FM_LOOK_PLAIN, fm_buffer_text(&left));
    fm_screen_put(2, l->columns - width, width, special ? FM_LOOK_BOLD : FM_LOOK_PLAIN,
                  fm_buffer_text(&right));
}

void fm_page_draw_header(const struct fm_top_view *view, const struct fm_top_model *model,
                         const struct fm_top_status *status, const struct fm_page_layout *l)
{
    struct fm_page_subject subject = {
        .verb = "fathom top",
        .pid = status->pid,
        .version = fm_strings_get(model->strings, model->version),
        .command = fm_strings_get(model->strings, model->command),
        .watched_ns = status->now.now_ns - status->start_ns,
        .ended = view->ended,
    };
    fm_page_draw_subject(&subject, l);
    if (l->header >= 2)
        draw_sampler(view, status, l);
    if (l->header >= 4) {
        draw_threads(view, model, status, l);
        draw_states(model, l, 3);
    }
}

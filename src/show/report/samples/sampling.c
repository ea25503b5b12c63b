/* What reports of samples share; see sampling.h. */
#include "show/report/samples/sampling.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define Z 1.959963984540054 /* of the normal distribution: 95 % lie within ± this */

/* ---- how many ---- */

static bool in_scope(const struct fm_profile *p, const struct fm_flat_scope *scope,
                     uint32_t process)
{
    if (scope->thread != FM_NONE)
        return p->threads.data[scope->thread].process == process;
    return scope->process == FM_NONE || scope->process == process;
}

static int64_t samples_of(const struct fm_profile *p, const struct fm_flat_scope *scope)
{
    int64_t sum = 0;
    for (uint32_t i = 0; p->columns[FM_METRIC_SAMPLES].data && i < p->nodes.len; i++) {
        uint32_t thread = p->nodes.data[i].thread;
        if (scope->thread == FM_NONE ? in_scope(p, scope, p->threads.data[thread].process)
                                     : scope->thread == thread)
            sum = fm_sum(sum, fm_profile_value(p, FM_METRIC_SAMPLES, i));
    }
    return sum;
}

static int64_t clamp(uint64_t value)
{
    return value < INT64_MAX ? (int64_t)value : INT64_MAX;
}

/* For how long each process was watched: the time of its longest thread, and no longer than it ran.
 * Beside calls, the time of a thread is theirs, which begin later; its states have that of the
 * samples. */
static int64_t watched_ns(const struct fm_profile *p, uint32_t process,
                          const struct fm_thread_states *states)
{
    const struct fm_process *q = &p->processes.data[process];
    int64_t most_ns = 0;
    for (size_t i = 0; i < p->threads.len; i++) {
        const struct fm_thread *thread = &p->threads.data[i];
        int64_t ns = fm_states_sum(states[i].state_ns);
        ns = q->calls && ns ? ns : fm_profile_value(p, FM_METRIC_TOTAL, thread->root);
        if (thread->process == process && ns > most_ns)
            most_ns = ns;
    }
    if (q->start_ns && q->end_ns > q->start_ns && (uint64_t)most_ns > q->end_ns - q->start_ns)
        most_ns = clamp(q->end_ns - q->start_ns);
    return most_ns;
}

int64_t fm_runs_wall_ns(const struct fm_profile *p, const struct fm_flat_scope *scope, bool sampled)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->processes.len;) {
        uint64_t first = UINT64_MAX, last = 0;
        uint32_t run = p->processes.data[i].run;
        for (; i < p->processes.len && p->processes.data[i].run == run; i++) {
            const struct fm_process *process = &p->processes.data[i];
            if ((sampled && !process->sampled) || !process->start_ns || !in_scope(p, scope, i))
                continue;
            first = process->start_ns < first ? process->start_ns : first;
            last = process->end_ns > last ? process->end_ns : last;
        }
        sum = last > first ? fm_sum(sum, clamp(last - first)) : sum;
    }
    return sum;
}

static void add_process(struct fm_sampling *s, const struct fm_process *process)
{
    double hz = process->sample_interval_ns ? 1e9 / (double)process->sample_interval_ns : 0;
    if (s->any && (s->asked_hz != hz || s->mode != process->sample_mode))
        s->mixed = true;
    s->any = true;
    s->asked_hz = hz;
    s->mode = (enum fm_sample_mode)process->sample_mode;
    s->rounds = fm_sum(s->rounds, clamp(process->sample_rounds));
    s->cpu_ns = fm_sum(s->cpu_ns, clamp(process->sampler_cpu_ns));
    s->partial = fm_sum(s->partial, clamp(process->samples_partial));
    s->lost = fm_sum(s->lost, clamp(process->samples_lost));
}

/* `kept` samples of the processes are known, of which some may not be shown. */
static void tell_whole(struct fm_sampling *s, int64_t kept)
{
    kept = kept > s->samples ? kept : s->samples; /* other tools' recordings do not say */
    s->partial_share = kept > 0 ? fmin((double)s->partial / (double)kept, 1) : 0;
    s->lost_share = s->lost > 0 ? (double)s->lost / ((double)kept + (double)s->lost) : 0;
    s->whole = llround((double)s->samples * (1 - s->partial_share));
    if (s->of_thread)
        s->partial = s->lost = 0;
}

struct fm_sampling fm_sampling_of(const struct fm_profile *p, const struct fm_flat_scope *scope)
{
    struct fm_sampling s = { .of_thread = scope->thread != FM_NONE };
    int64_t watched = 0, kept = 0;
    fm_autofree struct fm_thread_states *states = fm_thread_states_new(p);
    for (uint32_t i = 0; i < p->processes.len; i++) {
        if (!p->processes.data[i].sampled || !in_scope(p, scope, i))
            continue;
        add_process(&s, &p->processes.data[i]);
        kept = fm_sum(kept, clamp(p->processes.data[i].samples));
        watched = fm_sum(watched, watched_ns(p, i, states));
    }
    if (!s.any)
        return s;
    s.samples = samples_of(p, scope);
    tell_whole(&s, kept);
    s.span_ns = fm_runs_wall_ns(p, scope, true);
    /* Other modes leave threads out that were not running, and their time. */
    if (watched > 0 && s.mode == FM_SAMPLE_WALL)
        s.reached_hz = (double)s.rounds * 1e9 / (double)watched;
    return s;
}

const char *fm_sample_mode_name(enum fm_sample_mode mode)
{
    return mode == FM_SAMPLE_CPU ? "CPU" : mode == FM_SAMPLE_GIL ? "GIL" : "wall";
}

/* ---- how far off ---- */

/* Of the share p of n samples. */
static double error_of_share(double p, double n)
{
    double z2 = Z * Z;
    p = p < 0 ? 0 : p > 1 ? 1 : p;
    double middle = (p + z2 / (2 * n)) / (1 + z2 / n);
    double half = Z * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n);
    return fmax(middle + half - p, p - (middle - half));
}

double fm_sampling_error(int64_t part, int64_t whole)
{
    return whole > 0 ? error_of_share((double)part / (double)whole, (double)whole) : 1;
}

double fm_sampling_error_of(const struct fm_sampling *s, int64_t part, int64_t all)
{
    double n = (double)all * (1 - s->partial_share);
    return all > 0 && n > 0 ? error_of_share((double)part / (double)all, n) : 1;
}

double fm_sampling_error_max(int64_t whole)
{
    return whole > 0 ? Z / (2 * sqrt((double)whole + Z * Z)) : 1;
}

char *fm_sampling_write_error(char *out, const struct fm_sampling *s, int64_t part, int64_t all)
{
    double percent = fm_sampling_error_of(s, part, all) * 100;
    if (percent < 0.05)
        snprintf(out, FM_NUMBER_BYTES, "<0.1");
    else
        snprintf(out, FM_NUMBER_BYTES, "%.1f", percent);
    return out;
}

static void add_hz(struct fm_buffer *out, double hz)
{
    char count[FM_NUMBER_BYTES];
    if (hz >= 10)
        fm_buffer_add_text(out, fm_number_count(count, llround(hz)));
    else
        fm_buffer_addf(out, "%.3g", hz);
}

static void add_rate(const struct fm_sampling *s, struct fm_buffer *out)
{
    if (s->mixed) {
        fm_buffer_add_text(out, " at several rates");
        return;
    }
    if (!s->asked_hz) {
        fm_buffer_add_text(out, " as fast as it went");
        if (s->reached_hz > 0) {
            fm_buffer_add_text(out, ", ");
            add_hz(out, s->reached_hz);
            fm_buffer_add_text(out, " Hz");
        }
    } else {
        fm_buffer_add_text(out, " at ");
        /* A sampler that could not keep up must say so. */
        if (s->reached_hz > 0 && s->reached_hz < s->asked_hz * 0.9) {
            add_hz(out, s->reached_hz);
            fm_buffer_add_text(out, " of ");
        }
        add_hz(out, s->asked_hz);
        fm_buffer_add_text(out, " Hz");
    }
    fm_buffer_addf(out, " (%s)", fm_sample_mode_name(s->mode));
}

/* ", 123 partial (1.0 %)"; of a thread only the share is known. */
static void add_count(const struct fm_sampling *s, struct fm_buffer *out, int64_t n, double share,
                      const char *what)
{
    char number[FM_NUMBER_BYTES], percent[FM_NUMBER_BYTES];
    fm_number_percent(percent, share, 1);
    if (s->of_thread)
        fm_buffer_addf(out, ", %s %% %s", *percent ? percent : "0", what);
    else if (n)
        fm_buffer_addf(out, ", %s %s (%s %%)", fm_number_count(number, n), what, percent);
    else
        fm_buffer_addf(out, ", 0 %s", what);
}

void fm_sampling_describe(const struct fm_sampling *s, struct fm_buffer *out)
{
    char number[FM_NUMBER_BYTES];
    fm_buffer_addf(out, "%s sample%s", fm_number_count(number, s->samples),
                   s->samples == 1 ? "" : "s");
    add_rate(s, out);
    add_count(s, out, s->partial, s->partial_share, "partial");
    add_count(s, out, s->lost, s->lost_share, "lost");
    if (s->of_thread)
        fm_buffer_add_text(out, " in its process");
}

/* Of all that was to be seen: more, and what is said of the rest is not said of the whole. */
#define LOST_PERCENT 2

void fm_sampling_describe_error(const struct fm_sampling *s, const char *what,
                                struct fm_buffer *out)
{
    char number[FM_NUMBER_BYTES];
    if (s->whole <= 0) {
        fm_buffer_addf(out,
                       s->samples ? "none was seen whole: %s are not to be trusted"
                                  : "there are no %s to tell",
                       what);
        return;
    }
    fm_buffer_add_text(out, what);
    if (s->whole < s->samples)
        fm_buffer_addf(out, " of the %s seen whole", fm_number_count(number, s->whole));
    else if (s->lost * 100 > LOST_PERCENT * (s->samples + s->lost))
        fm_buffer_add_text(out, " of what was not lost");
    fm_buffer_addf(out, " are right within ± %.1f %% (95 %%)",
                   fmax(fm_sampling_error_max(s->whole) * 100, 0.1));
}

void fm_sampling_describe_cost(const struct fm_sampling *s, struct fm_buffer *out)
{
    char number[FM_NUMBER_BYTES];
    fm_buffer_addf(out, "Fathom watched from outside and took %s of processor time",
                   fm_number_time(number, s->cpu_ns));
    if (s->span_ns >= s->cpu_ns && s->span_ns > 0) /* else it is not known how long it watched */
        fm_buffer_addf(out, " (%s %% of one)",
                       fm_number_percent(number, (double)s->cpu_ns, (double)s->span_ns));
}

/* ---- states ---- */

void fm_states_add(int64_t to[FM_STATE_COUNT], const int64_t state_ns[FM_STATE_COUNT])
{
    for (int s = 0; s < FM_STATE_COUNT; s++)
        to[s] = fm_sum(to[s], state_ns[s]);
}

int64_t fm_states_sum(const int64_t state_ns[FM_STATE_COUNT])
{
    int64_t sum = 0;
    for (int s = 0; s < FM_STATE_COUNT; s++)
        sum = fm_sum(sum, state_ns[s]);
    return sum;
}

/* States from the largest share to the smallest; of equal ones the first stays first. */
static void order_of(const int64_t state_ns[FM_STATE_COUNT], int order[FM_STATE_COUNT])
{
    for (int s = 0; s < FM_STATE_COUNT; s++) {
        int at = s;
        for (; at > 0 && state_ns[order[at - 1]] < state_ns[s]; at--)
            order[at] = order[at - 1];
        order[at] = s;
    }
}

char *fm_states_write(char *out, const int64_t state_ns[FM_STATE_COUNT])
{
    int order[FM_STATE_COUNT];
    double sum = (double)fm_states_sum(state_ns);
    size_t len = 0;
    out[0] = '\0';
    order_of(state_ns, order);
    for (int i = 0; i < 3 && sum > 0; i++) {
        double percent = (double)state_ns[order[i]] / sum * 100;
        if (percent < 0.5)
            break;
        len += (size_t)snprintf(out + len, FM_NUMBER_BYTES - len, "%s%s %.0f", i ? " · " : "",
                                fm_state_word((enum fm_state)order[i]), fmin(percent, 100));
        if (len >= FM_NUMBER_BYTES)
            break;
    }
    return out;
}

/* Cells by largest remainder, so that they are always eight and no state has one too many. */
char *fm_states_write_bar(char *out, const int64_t state_ns[FM_STATE_COUNT])
{
    double sum = (double)fm_states_sum(state_ns), rest[FM_STATE_COUNT];
    int cells[FM_STATE_COUNT], used = 0;
    size_t len = 0;
    out[0] = '\0';
    if (!(sum > 0))
        return out;
    for (int s = 0; s < FM_STATE_COUNT; s++) {
        double exact = fmax((double)state_ns[s], 0) / sum * FM_STATES_CELLS;
        cells[s] = (int)fmin(exact, FM_STATES_CELLS - used);
        rest[s] = exact - cells[s];
        used += cells[s];
    }
    for (; used < FM_STATES_CELLS; used++) {
        int most = 0;
        for (int s = 1; s < FM_STATE_COUNT; s++)
            most = rest[s] > rest[most] ? s : most;
        cells[most]++;
        rest[most] -= 1;
    }
    for (int s = 0; s < FM_STATE_COUNT; s++)
        for (int i = 0; i < cells[s]; i++)
            out[len++] = fm_state_info((enum fm_state)s)->letter;
    out[len] = '\0';
    return out;
}

void fm_states_print_legend(const struct fm_style *style, FILE *out,
                            const int64_t state_ns[FM_STATE_COUNT])
{
    const char *between = "\nstates: ";
    if (!fm_states_as_bar(style) || fm_states_sum(state_ns) <= 0)
        return;
    fm_color_begin(style, out, FM_COLOR_DIM);
    for (int s = 0; s < FM_STATE_COUNT; s++) {
        if (state_ns[s] <= 0)
            continue;
        const struct fm_state_info *state = fm_state_info((enum fm_state)s);
        fprintf(out, "%s%c %s", between, state->letter, state->label);
        between = ", ";
    }
    fm_color_end(style, out, FM_COLOR_DIM);
    fputc('\n', out);
}

void fm_states_cell(struct fm_table *t, const int64_t state_ns[FM_STATE_COUNT])
{
    char text[FM_NUMBER_BYTES];
    fm_table_cell(t, FM_COLOR_STATES,
                  fm_states_as_bar(&t->style) ? fm_states_write_bar(text, state_ns)
                                              : fm_states_write(text, state_ns));
}

void fm_states_of_node(const struct fm_profile *p, uint32_t node, int64_t state_ns[FM_STATE_COUNT])
{
    for (int s = 0; s < FM_STATE_COUNT; s++)
        state_ns[s] = fm_profile_value(p, fm_metric_of_state((enum fm_state)s), node);
}

struct fm_thread_states *fm_thread_states_new(const struct fm_profile *p)
{
    struct fm_thread_states *all = fm_calloc(p->threads.len, sizeof *all);
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        struct fm_thread_states *t = &all[p->nodes.data[i].thread];
        t->samples = fm_sum(t->samples, fm_profile_value(p, FM_METRIC_SAMPLES, i));
        for (int s = 0; s < FM_STATE_COUNT; s++)
            t->state_ns[s] = fm_sum(t->state_ns[s],
                                    fm_profile_value(p, fm_metric_of_state((enum fm_state)s), i));
    }
    return all;
}

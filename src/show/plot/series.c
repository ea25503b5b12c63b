/* Which lines a plot has; see plot.h. */
#include <math.h>
#include <string.h>

#include "base/clean.h"
#include "base/memory.h"
#include "show/plot/plot.h"
#include "show/report/number.h"

#define PROCESSES_MAX 7 /* lines of their own; more cannot be told apart */

void fm_plot_init(struct fm_plot *plot, const struct fm_plot_options *options)
{
    *plot = (struct fm_plot){ .options = *options };
}

void fm_plot_release(struct fm_plot *plot)
{
    for (size_t i = 0; i < plot->lines.len; i++) {
        free(plot->lines.data[i].label);
        fm_vec_release(&plot->lines.data[i].points);
    }
    for (size_t i = 0; i < plot->marks.len; i++)
        free(plot->marks.data[i].label);
    fm_vec_release(&plot->lines);
    fm_vec_release(&plot->marks);
    free(plot->title);
    *plot = (struct fm_plot){ 0 };
}

static int64_t value_of(const struct fm_memory_point *point, enum fm_plot_kind kind)
{
    switch (kind) {
    case FM_PLOT_HEAP:
        return point->heap;
    case FM_PLOT_SHARE:
        return point->pss;
    case FM_PLOT_LIMIT:
        return point->limit;
    default:
        return point->rss;
    }
}

/* ---- one recording ---- */

struct plot_source {
    const struct fm_profile *p;
    const char *name;
    uint64_t start_ns;
    uint32_t run;     /* of a merged recording; FM_NONE: it has one */
    uint32_t program; /* the process that was looked at first */
    bool summed;      /* there is a curve of the whole run */
};

/* Is the process of the run? Curves of whole runs do not say which, so merged ones are left out. */
static bool is_of(const struct plot_source *s, uint32_t process)
{
    const struct fm_profile *p = s->p;
    return s->run == FM_NONE ||
           (process < p->processes.len && p->processes.data[process].run == s->run);
}

static struct fm_plot_line *add_line(struct fm_plot *plot, const struct plot_source *s,
                                     enum fm_plot_kind kind, uint32_t process)
{
    struct fm_plot_line line = { .kind = kind, .run = plot->runs };
    for (size_t i = 0; i < s->p->memory.points.len; i++) {
        const struct fm_memory_point *point = &s->p->memory.points.data[i];
        int64_t value = value_of(point, kind);
        if (point->process == process && value >= 0)
            fm_vec_push(&line.points,
                        ((struct fm_plot_point){ (double)(point->at_ns - s->start_ns) / 1e9,
                                                 (double)value }));
    }
    if (!line.points.len)
        return NULL;
    fm_vec_push(&plot->lines, line);
    return &plot->lines.data[plot->lines.len - 1];
}

static void name_line(struct fm_plot_line *line, const struct plot_source *s, const char *what)
{
    struct fm_buffer label = FM_BUFFER_INIT;
    if (s->name) {
        fm_clean_add(&label, s->name, strlen(s->name));
        fm_buffer_add_text(&label, ": ");
    }
    if (s->run != FM_NONE)
        fm_buffer_addf(&label, "run %u: ", s->run + 1);
    fm_clean_add(&label, what, strlen(what));
    line->label = fm_buffer_detach(&label);
}

static void name_process(struct fm_plot_line *line, const struct plot_source *s, uint32_t process)
{
    const struct fm_process *owner = &s->p->processes.data[process];
    const char *command = fm_profile_text(s->p, owner->command);
    struct fm_buffer text = FM_BUFFER_INIT;
    /* The last part of the program's path, and a little of its arguments. */
    size_t word = strcspn(command, " ");
    size_t from = word;
    while (from > 0 && command[from - 1] != '/')
        from--;
    if (owner->pid)
        fm_buffer_addf(&text, "process %u%s%.40s", owner->pid, command[from] ? " " : "",
                       command + from);
    else
        fm_buffer_add_text(&text, "the program itself");
    name_line(line, s, fm_buffer_text(&text));
    fm_buffer_release(&text);
}

struct plot_event {
    uint64_t at_ns;
    uint32_t process;
    int64_t value;
    bool ends; /* the last look at that process */
};

static int compare_events(const void *a, const void *b)
{
    const struct plot_event *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return x->process < y->process ? -1 : x->process > y->process;
}

/* A recording without a curve of the run: what was last known of each process, added up. */
static struct fm_plot_line *add_sum(struct fm_plot *plot, const struct plot_source *s)
{
    FM_VEC(struct plot_event) events = { 0 };
    const struct fm_memory *memory = &s->p->memory;
    for (size_t i = 0; i < memory->points.len; i++) {
        const struct fm_memory_point *point = &memory->points.data[i];
        bool ends = i + 1 == memory->points.len || point[1].process != point->process;
        if (point->rss >= 0 && point->process < s->p->processes.len && is_of(s, point->process))
            fm_vec_push(&events, ((struct plot_event){ point->at_ns, point->process, point->rss,
                                                       ends && point->process != s->program }));
    }
    if (events.len)
        qsort(events.data, events.len, sizeof *events.data, compare_events);
    fm_autofree int64_t *last = fm_calloc(s->p->processes.len + 1, sizeof *last);
    struct fm_plot_line line = { .kind = FM_PLOT_RESIDENT, .run = plot->runs };
    int64_t sum = 0;
    for (size_t i = 0; i < events.len; i++) {
        const struct plot_event *e = &events.data[i];
        sum = fm_sum(sum, e->value - last[e->process]);
        last[e->process] = e->value;
        fm_vec_push(&line.points, ((struct fm_plot_point){ (double)(e->at_ns - s->start_ns) / 1e9,
                                                           (double)sum }));
        if (e->ends) {
            sum -= e->value;
            last[e->process] = 0;
        }
    }
    fm_vec_release(&events);
    if (!line.points.len)
        return NULL;
    fm_vec_push(&plot->lines, line);
    return &plot->lines.data[plot->lines.len - 1];
}

struct plot_process {
    uint32_t process;
    int64_t highest;
};

static int compare_processes(const void *a, const void *b)
{
    const struct plot_process *x = a, *y = b;
    if (x->highest != y->highest)
        return x->highest < y->highest ? 1 : -1;
    return x->process < y->process ? -1 : 1;
}

/* Each process for itself, the largest first; the program itself only if `with_program`. */
static void add_processes(struct fm_plot *plot, const struct plot_source *s, bool with_program)
{
    size_t n = s->p->processes.len;
    fm_autofree struct plot_process *order = fm_calloc(n + 1, sizeof *order);
    for (uint32_t i = 0; i < n; i++)
        order[i] = (struct plot_process){ i, -1 };
    for (size_t i = 0; i < s->p->memory.points.len; i++) {
        const struct fm_memory_point *point = &s->p->memory.points.data[i];
        if (point->process < n && is_of(s, point->process) &&
            point->rss > order[point->process].highest)
            order[point->process].highest = point->rss;
    }
    qsort(order, n, sizeof *order, compare_processes);
    uint32_t colour = 2; /* behind those of resident memory and heap */
    for (size_t i = 0; i < n && i < PROCESSES_MAX && order[i].highest >= 0; i++) {
        struct fm_plot_line *line = NULL;
        if (with_program || order[i].process != s->program)
            line = add_line(plot, s, FM_PLOT_PROCESS, order[i].process);
        if (line) {
            line->colour = colour++;
            name_process(line, s, order[i].process);
        }
    }
}

static size_t count_processes(const struct plot_source *s)
{
    fm_autofree bool *seen = fm_calloc(s->p->processes.len + 1, sizeof *seen);
    size_t count = 0;
    for (size_t i = 0; i < s->p->memory.points.len; i++) {
        uint32_t process = s->p->memory.points.data[i].process;
        if (process >= s->p->processes.len || seen[process] || !is_of(s, process))
            continue;
        seen[process] = true;
        count++;
    }
    return count;
}

static void add_marks(struct fm_plot *plot, const struct plot_source *s)
{
    for (size_t i = 0; i < s->p->memory.marks.len && plot->options.marks; i++) {
        const struct fm_memory_mark *from = &s->p->memory.marks.data[i];
        const char *name = fm_profile_text(s->p, from->name);
        if (!is_of(s, from->process))
            continue;
        struct fm_plot_mark mark = { .run = plot->runs,
                                     .level = from->level == FM_MARK_NO_LEVEL ? 0 : from->level,
                                     .x = ((double)from->begin_ns - (double)s->start_ns) / 1e9,
                                     .x2 = ((double)from->end_ns - (double)s->start_ns) / 1e9,
                                     .y = (double)from->begin_bytes,
                                     .y2 = (double)from->end_bytes };
        struct fm_buffer label = FM_BUFFER_INIT;
        fm_clean_add(&label, name, strlen(name));
        fm_buffer_addf(&label, " %.3f s", mark.x2 - mark.x);
        mark.label = fm_buffer_detach(&label);
        fm_vec_push(&plot->marks, mark);
    }
}

static struct plot_source look_through(const struct fm_profile *p, const char *name, uint32_t run)
{
    struct plot_source s = { p, name, UINT64_MAX, run, FM_NONE, false };
    for (size_t i = 0; i < p->memory.points.len; i++) {
        const struct fm_memory_point *point = &p->memory.points.data[i];
        if (!is_of(&s, point->process))
            continue;
        s.summed = s.summed || point->process == FM_NONE;
        if (point->at_ns < s.start_ns || (point->at_ns == s.start_ns && s.program == FM_NONE)) {
            s.start_ns = point->at_ns;
            s.program = point->process;
        }
    }
    return s;
}

static void add_run(struct fm_plot *plot, const struct fm_profile *p, const char *name,
                    uint32_t run)
{
    struct plot_source s = look_through(p, name, run);
    bool one = plot->options.children == FM_PLOT_NONE || s.program == FM_NONE;
    bool several = count_processes(&s) > 1;
    size_t before = plot->lines.len;
    uint32_t of_run = s.summed && !(one && s.program != FM_NONE) ? FM_NONE : s.program;
    static const struct {
        enum fm_plot_kind kind;
        const char *what, *what_in_all;
    } kinds[] = {
        { FM_PLOT_RESIDENT, "resident", "resident, all processes" },
        { FM_PLOT_SHARE, "resident, shared memory once", "resident, shared memory once" },
        { FM_PLOT_HEAP, "allocated", "allocated, all processes" },
        { FM_PLOT_HEAP, "allocated, estimated", "allocated, all processes, estimated" },
    };
    int other = fm_profile_has_estimates(p) ? 2 : 3; /* of the last two */
    for (int i = 0; i < (int)FM_COUNT(kinds); i++) {
        if (i == other)
            continue;
        bool add_up = kinds[i].kind == FM_PLOT_RESIDENT && !s.summed && several &&
                      plot->options.children == FM_PLOT_SUM;
        struct fm_plot_line *line =
            add_up ? add_sum(plot, &s) : add_line(plot, &s, kinds[i].kind, of_run);
        if (!line)
            continue;
        bool all = several && !one && (of_run == FM_NONE || add_up);
        line->colour = kinds[i].kind == FM_PLOT_HEAP ? 1 : kinds[i].kind == FM_PLOT_SHARE ? 8 : 0;
        name_line(line, &s, all ? kinds[i].what_in_all : kinds[i].what);
    }
    if (plot->options.children == FM_PLOT_EACH && several)
        add_processes(plot, &s, of_run == FM_NONE);
    struct fm_plot_line *limit = run == FM_NONE ? add_line(plot, &s, FM_PLOT_LIMIT, FM_NONE) : NULL;
    if (limit)
        name_line(limit, &s, "limit");
    add_marks(plot, &s);
    if (plot->lines.len > before)
        plot->runs++;
}

int fm_plot_add(struct fm_plot *plot, const struct fm_profile *p, const char *name,
                struct fm_error *err)
{
    size_t before = plot->lines.len;
    uint32_t runs = fm_profile_runs(p);
    if (runs < 2)
        add_run(plot, p, name, FM_NONE);
    for (uint32_t run = 0; run < runs && runs > 1; run++)
        add_run(plot, p, name, run);
    if (plot->lines.len > before)
        return 0;
    return fm_error_set(err, FM_UNSUPPORTED,
                        "there is no memory over time in it: record it with `fathom run "
                        "--memory` or `--rss`");
}

/* ---- all of them ---- */

static bool is_shown(const struct fm_plot *plot, double x)
{
    return !plot->options.windowed || (x >= plot->options.from && x <= plot->options.to);
}

/* The straight line nearest to the points that are shown, by least squares. */
static void fit_slope(const struct fm_plot *plot, struct fm_plot_line *line)
{
    double n = 0, mean_x = 0, mean_y = 0, xx = 0, xy = 0;
    for (size_t i = 0; i < line->points.len; i++) {
        const struct fm_plot_point *point = &line->points.data[i];
        if (!is_shown(plot, point->x))
            continue;
        n++;
        double dx = point->x - mean_x;
        mean_x += dx / n;
        mean_y += (point->y - mean_y) / n;
        xx += dx * (point->x - mean_x);
        xy += dx * (point->y - mean_y);
    }
    line->has_slope = n > 1 && xx > 0;
    if (!line->has_slope)
        return;
    line->slope = xy / xx;
    line->offset = mean_y - line->slope * mean_x;
    struct fm_buffer label = FM_BUFFER_INIT;
    fm_buffer_addf(&label, "%s, slope %.5f MiB/s", line->label, line->slope / 1048576);
    free(line->label);
    line->label = fm_buffer_detach(&label);
}

/* A limit that is far above everything would press the curves to the ground: its label tells it. */
static void judge_limits(struct fm_plot *plot)
{
    size_t kept = 0;
    for (size_t i = 0; i < plot->lines.len; i++) {
        struct fm_plot_line *line = &plot->lines.data[i];
        if (line->kind != FM_PLOT_LIMIT || line->peak_y <= 2 * plot->y_max) {
            plot->lines.data[kept++] = *line;
            continue;
        }
        free(line->label);
        fm_vec_release(&line->points);
    }
    plot->lines.len = kept;
    for (size_t i = 0; i < kept; i++) {
        const struct fm_plot_line *line = &plot->lines.data[i];
        if (line->kind == FM_PLOT_LIMIT && line->peak_y > plot->y_max)
            plot->y_max = line->peak_y;
    }
}

int fm_plot_finish(struct fm_plot *plot, struct fm_error *err)
{
    bool any = false;
    for (size_t i = 0; i < plot->lines.len; i++) {
        struct fm_plot_line *line = &plot->lines.data[i];
        if (plot->runs > 1) /* one colour for each run */
            line->colour = line->run;
        line->peak_y = -1;
        for (size_t k = 0; k < line->points.len; k++) {
            const struct fm_plot_point *point = &line->points.data[k];
            if (!is_shown(plot, point->x))
                continue;
            plot->x_min = any ? fmin(plot->x_min, point->x) : point->x;
            plot->x_max = any ? fmax(plot->x_max, point->x) : point->x;
            any = true;
            if (point->y > line->peak_y) {
                line->peak_x = point->x;
                line->peak_y = point->y;
            }
        }
        if (line->kind != FM_PLOT_LIMIT)
            plot->y_max = fmax(plot->y_max, line->peak_y);
    }
    if (!any)
        return fm_error_set(err, FM_UNSUPPORTED, "nothing was looked at in that window of time");
    judge_limits(plot);
    for (size_t i = 0; i < plot->lines.len && plot->options.slope; i++)
        if (plot->lines.data[i].kind != FM_PLOT_LIMIT)
            fit_slope(plot, &plot->lines.data[i]);
    if (plot->options.windowed) {
        plot->x_min = plot->options.from;
        plot->x_max =
            fmin(plot->options.to, plot->x_max > plot->x_min ? plot->options.to : plot->x_max);
    }
    if (plot->x_max <= plot->x_min)
        plot->x_max = plot->x_min + 1e-3;
    plot->y_max = plot->y_max > 0 ? plot->y_max : 1;
    return 0;
}

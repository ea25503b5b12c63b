/* From counts to a profile; see gather.h. */
#include "watch/sampler/gather.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "record/model/tree.h"
#include "watch/sampler/account.h"
#include "watch/sampler/target.h"

#define LATE_LEAST   50u /* looks of which a share says something */
#define LATE_PERCENT 10u /* of them that may be late without a word */

/* Where an instruction stands, and whose it is; decoded once. */
struct code_place {
    uint32_t func;
    struct fm_position at;
};

struct gather {
    struct fm_profile *p;
    const struct fm_target *t;
    const struct fm_account *a;
    uint32_t process;
    FM_VEC(uint32_t) threads;   /* place in the account → thread of the profile, or FM_NONE */
    FM_VEC(uint32_t) functions; /* number of a code → function */
    FM_VEC(uint32_t) regions;   /* number of a region → function */
    FM_VEC(struct code_place) places;
    struct fm_map place_of; /* (code, offset) → place */
    struct fm_tree tree;
    struct fm_map lines; /* (function, line) → row in `rows` */
    FM_VEC(struct fm_line) rows;
    FM_VEC(uint32_t) nodes; /* row of the tally → node */
    FM_VEC(uint32_t) seen;  /* rows counted for the stack at hand: recursion counts once */
};

static uint32_t function_flags(uint32_t code_flags)
{
    return (code_flags & 0x20 ? FM_FUNCTION_GENERATOR : 0u) |
           (code_flags & 0x80 ? FM_FUNCTION_COROUTINE : 0u) |
           (code_flags & 0x200 ? FM_FUNCTION_ASYNC_GENERATOR : 0u);
}

static void add_functions(struct gather *g)
{
    for (size_t i = 0; i < g->a->codes.len; i++) {
        const struct fm_code *code = &g->a->codes.data[i]->code;
        struct fm_function f = { .kind = FM_FUNCTION_PYTHON,
                                 .flags = (uint8_t)function_flags(code->flags),
                                 .line = code->first_line,
                                 .name = fm_profile_string(g->p, code->name),
                                 .qualname = fm_profile_string(g->p, code->qualname),
                                 .file = fm_profile_string(g->p, code->file) };
        fm_vec_push(&g->functions, fm_profile_function(g->p, &f));
    }
}

static void add_regions(struct gather *g)
{
    for (size_t i = 0; i < g->a->regions.len; i++) {
        uint32_t name =
            fm_profile_string(g->p, fm_strings_get(g->a->details, g->a->regions.data[i]));
        struct fm_function f = { .kind = FM_FUNCTION_REGION, .name = name, .qualname = name };
        fm_vec_push(&g->regions, fm_profile_function(g->p, &f));
    }
}

static uint32_t function_of(const struct gather *g, const struct fm_raw_frame *frame)
{
    return fm_raw_is_region(frame) ? g->regions.data[fm_raw_region_number(frame)]
                                   : g->functions.data[frame->code];
}

static const struct code_place *place_of(struct gather *g, const struct fm_raw_frame *frame)
{
    bool is_new;
    uint32_t *at = fm_map_at(&g->place_of, fm_map_pair(frame->code, (uint32_t)frame->offset),
                             (uint32_t)g->places.len, &is_new);
    if (is_new) {
        struct code_place place = { g->functions.data[frame->code],
                                    fm_code_position(&g->a->codes.data[frame->code]->code,
                                                     &g->t->runtime.layout, frame->offset) };
        fm_vec_push(&g->places, place);
    }
    return &g->places.data[*at];
}

static uint32_t thread_of(struct gather *g, uint32_t place)
{
    const struct fm_account_thread *th = &g->a->threads.data[place];
    if (g->threads.data[place] != FM_NONE)
        return g->threads.data[place];
    char name[160];
    const char *own = th->name;
    if (th->folded) {
        snprintf(name, sizeof name, "%s × %u, ended", own, th->folded);
        own = name;
    } else if (th->tasks) {
        snprintf(name, sizeof name, FM_TASKS_THREAD "%s", *own ? own : "?");
        own = name;
    }
    struct fm_thread thread = { .process = g->process,
                                .tid = th->tid,
                                .name = fm_profile_string(g->p, own),
                                .start_ns = th->start_ns,
                                .end_ns = th->end_ns,
                                .cpu_ns = th->cpu_ns };
    g->threads.data[place] = fm_profile_thread(g->p, &thread);
    return g->threads.data[place];
}

static uint32_t node_of(struct gather *g, const struct fm_tally_row *row)
{
    uint32_t thread = thread_of(g, row->thread); /* may move the threads */
    uint32_t node = g->p->threads.data[thread].root;
    for (uint32_t i = row->n; i-- > 0;) {
        const struct fm_raw_frame *frame = &g->a->tally.frames.data[row->first + i];
        node = fm_tree_child(&g->tree, node, function_of(g, frame));
    }
    return node;
}

static uint32_t line_row(struct gather *g, const struct code_place *place)
{
    bool is_new;
    uint32_t *at = fm_map_at(&g->lines, fm_map_pair(place->func, place->at.line),
                             (uint32_t)g->rows.len, &is_new);
    uint32_t row = *at;
    if (is_new) {
        struct fm_line line = {
            .process = g->process, .func = place->func, .line = place->at.line, .histogram = FM_NONE
        };
        fm_vec_push(&g->rows, line);
    }
    return row;
}

static bool is_first(struct gather *g, uint32_t row)
{
    for (size_t i = 0; i < g->seen.len; i++) {
        if (g->seen.data[i] == row)
            return false;
    }
    fm_vec_push(&g->seen, row);
    return true;
}

/* The first frame that is no region. */
static uint32_t newest_call(const struct gather *g, const struct fm_tally_row *row)
{
    uint32_t i = 0;
    while (i < row->n && fm_raw_is_region(&g->a->tally.frames.data[row->first + i]))
        i++;
    return i;
}

/* The lines of a stack: the newest has the sample, all have the time below them. */
static void add_lines(struct gather *g, const struct fm_tally_row *row, int64_t samples, int64_t ns)
{
    const struct fm_raw_frame *frames = g->a->tally.frames.data + row->first;
    uint32_t newest = newest_call(g, row);
    g->seen.len = 0;
    for (uint32_t i = newest; i < row->n; i++) {
        if (fm_raw_is_region(&frames[i]))
            continue;
        const struct code_place *place = place_of(g, &frames[i]);
        uint32_t at = line_row(g, place);
        struct fm_line *line = &g->rows.data[at];
        if (i == newest) {
            line->samples += samples;
            line->self_ns += ns;
            for (int k = 0; k < FM_STATE_COUNT; k++)
                line->state_ns[k] += (int64_t)row->ns[k];
        }
        if (g->seen.len > 256 || is_first(g, at))
            line->total_ns += ns;
    }
}

static void add_spot(struct gather *g, const struct fm_tally_row *row, int64_t samples, int64_t ns)
{
    const struct code_place *place =
        place_of(g, &g->a->tally.frames.data[row->first + newest_call(g, row)]);
    struct fm_spot spot = { .process = g->process,
                            .func = place->func,
                            .line = place->at.line,
                            .end_line = place->at.end_line,
                            .column = place->at.column,
                            .end_column = place->at.end_column,
                            .samples = samples,
                            .ns = ns };
    if (place->at.column)
        fm_vec_push(&g->p->samples.spots, spot);
}

static void add_row(struct gather *g, const struct fm_tally_row *row)
{
    uint32_t node = node_of(g, row);
    int64_t samples = 0, ns = 0;
    fm_vec_push(&g->nodes, node);
    for (int k = 0; k < FM_STATE_COUNT; k++) {
        if (row->samples[k])
            fm_profile_add(g->p, fm_metric_of_state((enum fm_state)k), node, (int64_t)row->ns[k]);
        samples += (int64_t)row->samples[k];
        ns += (int64_t)row->ns[k];
    }
    fm_profile_add(g->p, FM_METRIC_SAMPLES, node, samples);
    fm_profile_add(g->p, FM_METRIC_TOTAL, node, ns); /* of itself; add_callees() completes it */
    if (row->n) {
        add_lines(g, row, samples, ns);
        add_spot(g, row, samples, ns);
    }
}

/* When what was seen. */
static void add_order(struct gather *g)
{
    const struct fm_account_order *from = &g->a->order;
    struct fm_sample_order *to = &g->p->order;
    for (size_t i = 0; i < from->lanes.len; i++) {
        const struct fm_account_lane *own = &from->lanes.data[i];
        struct fm_order_lane lane = { .thread = thread_of(g, own->place),
                                      .first_round = own->first_round,
                                      .rounds = own->rounds,
                                      .grain = from->grain ? from->grain : 1,
                                      .first = (uint32_t)to->items.len,
                                      .n = (uint32_t)own->items.len };
        for (size_t k = 0; k < own->items.len; k++) {
            struct fm_order_item item = own->items.data[k];
            if (item.node != FM_ORDER_UNSEEN)
                item.node = g->nodes.data[item.node];
            fm_vec_push(&to->items, item);
        }
        if (own->items.len)
            fm_vec_push(&to->lanes, lane);
    }
    if (!from->lanes.len)
        return;
    struct fm_order_clock *clock = fm_sample_order_clock(to, g->process);
    for (size_t i = 0; i < from->times.len; i++)
        fm_vec_push(&clock->times, from->times.data[i]);
}

static void add_wait(struct gather *g, const struct fm_tally_wait *wait)
{
    const struct code_place *place = place_of(g, &wait->where);
    struct fm_wait out = { .process = g->process,
                           .func = place->func,
                           .line = place->at.line,
                           .state = wait->state,
                           .samples = (int64_t)wait->samples,
                           .ns = (int64_t)wait->ns };
    if (wait->detail == FM_TALLY_HOLDER) {
        const struct code_place *held = place_of(g, &wait->held_at);
        fm_autobuffer text = FM_BUFFER_INIT;
        const struct fm_function *f = &g->p->functions.data[held->func];
        const char *holder = g->a->threads.data[wait->holder].name;
        fm_buffer_addf(&text, "held by %s in %s (%s:%u)", *holder ? holder : "?",
                       fm_profile_text(g->p, f->qualname), fm_profile_text(g->p, f->file),
                       held->at.line);
        out.detail = fm_profile_string(g->p, fm_buffer_text(&text));
    } else {
        out.detail = fm_profile_string(g->p, fm_strings_get(g->a->details, wait->detail));
    }
    if (out.samples)
        fm_vec_push(&g->p->samples.waits, out);
}

static uint32_t add_process(struct gather *g, const struct fm_gather_settings *settings,
                            double share)
{
    const struct fm_target *t = g->t;
    const struct fm_account *a = g->a;
    char version[32];
    uint64_t now_ns = fm_clock_ns();
    uint32_t hex = t->runtime.version_hex;
    int len = snprintf(version, sizeof version, "%u.%u", hex >> 24, hex >> 16 & 255);
    if (hex & 0xffff) /* 3.9 and 3.10 do not tell while they start */
        snprintf(version + len, sizeof version - (size_t)len, ".%u", hex >> 8 & 255);
    struct fm_process process = {
        .pid = (uint32_t)t->pid,
        .parent_pid = (uint32_t)t->parent,
        .exe = fm_profile_string(g->p, t->exe ? t->exe : ""),
        .command = fm_profile_string(g->p, t->command ? t->command : ""),
        .cwd = fm_profile_string(g->p, t->cwd ? t->cwd : ""),
        .version = fm_profile_string(g->p, version),
        .start_real_ns = fm_clock_read_ns(CLOCK_REALTIME) - (now_ns - t->start_ns),
        .start_ns = t->start_ns,
        .end_ns = a->end_ns ? a->end_ns : a->last_round_ns,
        .exit_status = a->exit_status,
        .profiled = true,
        .sampled = true,
        .sample_mode = (uint8_t)settings->mode,
        .sample_interval_ns = settings->interval_ns,
        .sample_rounds = a->counts.rounds,
        .samples = a->counts.samples,
        .samples_partial = a->counts.partial,
        .samples_lost = a->counts.lost,
        .sampler_cpu_ns = (uint64_t)((double)settings->cpu_ns * share),
    };
    return fm_profile_process(g->p, &process);
}

static void add_refusal(struct fm_buffer *text, const char *what, int refused)
{
    if (refused)
        fm_buffer_addf(text, " (%s: %s)", what,
                       refused == ETIME ? "this kernel lets others wake too late"
                                        : strerror(refused));
}

/* Stacks that are not proven to be of one instant, or for which the program was stopped: that must
 * be known. */
static void note_way(struct gather *g)
{
    static const char best_effort[] =
        "; looks that moved are lost, some of the others mix two instants";
    fm_autobuffer text = FM_BUFFER_INIT;
    const struct fm_account *a = g->a;
    if (a->way == FM_WAY_STOP)
        fm_buffer_add_text(&text,
                           "each running thread was stopped for each look, some 10 µs, by ptrace");
    else if (a->way == FM_WAY_PLAIN && a->seat_refused)
        fm_buffer_add_text(
            &text, "best effort: the program could not be held still while its stacks were read");
    else if (a->way == FM_WAY_PLAIN)
        fm_buffer_add_text(
            &text,
            "best effort: above 2,000 looks a second the program runs while its stacks are read");
    else if (a->stop_refused)
        fm_buffer_add_text(
            &text, "threads were not stopped, but kept from running by sitting on their processor");
    else
        return;
    add_refusal(&text, "sitting on their processor", a->seat_refused);
    add_refusal(&text, "ptrace", a->stop_refused);
    fm_buffer_add_text(&text, a->way == FM_WAY_PLAIN ? best_effort : "");
    fm_profile_note(g->p, g->process, "sampling", 1, fm_buffer_text(&text));
}

/* A look that comes late comes when a processor is free. */
static void note_lateness(struct gather *g)
{
    const struct fm_target_counts *c = &g->a->counts;
    fm_autobuffer text = FM_BUFFER_INIT;
    if (g->a->outruns_us)
        fm_profile_note(
            g->p, g->process, "sampling", 1,
            "a thread of real-time priority cannot be seen while it runs: shares are wrong");
    if (c->rounds < LATE_LEAST || c->looks_late * 100 < LATE_PERCENT * c->rounds)
        return;
    fm_buffer_addf(
        &text,
        "%.0f %% of the looks came more than 0.2 ms late, as the machine was busy: what waits or sleeps "
        "may be overstated",
        100.0 * (double)c->looks_late / (double)c->rounds);
    fm_profile_note(g->p, g->process, "sampling", 1, fm_buffer_text(&text));
}

static void gather_target(struct fm_profile *p, const struct fm_gather_source *source,
                          const struct fm_gather_settings *settings, double share)
{
    struct gather g = { .p = p, .t = source->target, .a = source->account, .tree = { .p = p } };
    g.process = add_process(&g, settings, share);
    for (size_t i = 0; i < g.a->threads.len; i++)
        fm_vec_push(&g.threads, FM_NONE);
    add_functions(&g);
    add_regions(&g);
    for (size_t i = 0; i < g.a->tally.rows.len; i++)
        add_row(&g, &g.a->tally.rows.data[i]);
    add_order(&g);
    note_way(&g);
    note_lateness(&g);
    for (size_t i = 0; i < g.a->tally.waits.len; i++)
        add_wait(&g, &g.a->tally.waits.data[i]);
    for (size_t i = 0; i < g.rows.len; i++) {
        const struct fm_line *row = &g.rows.data[i];
        struct fm_line *line = fm_lines_add(&p->lines, row->process, row->func, row->line, false);
        *line = *row;
    }
    fm_vec_release(&g.threads);
    fm_vec_release(&g.functions);
    fm_vec_release(&g.regions);
    fm_vec_release(&g.places);
    fm_vec_release(&g.rows);
    fm_vec_release(&g.nodes);
    fm_vec_release(&g.seen);
    fm_map_release(&g.place_of);
    fm_tree_release(&g.tree);
    fm_map_release(&g.lines);
}

/* Each node's time so far is its own; add that of its callees. */
static void add_callees(struct fm_profile *p)
{
    int64_t *total = p->columns[FM_METRIC_TOTAL].data;
    for (size_t i = p->nodes.len; total && i-- > 0;) {
        uint32_t parent = p->nodes.data[i].parent;
        if (parent != FM_NONE)
            total[parent] = fm_sum(total[parent], total[i]);
    }
}

/* Did the process execute another program, as which it is watched on? */
static bool went_on(const struct fm_gather_source *sources, size_t n, size_t i)
{
    const struct fm_target *t = sources[i].target;
    for (size_t k = i + 1; k < n; k++) {
        if (sources[k].target->pid == t->pid && sources[k].target->start_ticks == t->start_ticks)
            return true;
    }
    return false;
}

/* A process may be taken for a Python only because it was a copy of its parent, up to the moment when
 * it executed its own program: then what counts is what comes after. */
static bool is_prelude(const struct fm_gather_source *sources, size_t n, size_t i)
{
    const struct fm_account *a = sources[i].account;
    return a->gone && !a->counts.samples && !a->counts.lost && went_on(sources, n, i);
}

/* The timeline takes a stated room in the recording, however long and busy the run was. */
static void fit_order(struct fm_profile *p)
{
    uint64_t begin_ns = UINT64_MAX, end_ns = 0;
    for (size_t i = 0; i < p->order.clocks.len; i++) {
        const struct fm_order_clock *clock = &p->order.clocks.data[i];
        if (!clock->times.len)
            continue;
        uint64_t last_ns = clock->times.data[clock->times.len - 1].ns;
        begin_ns = clock->times.data[0].ns < begin_ns ? clock->times.data[0].ns : begin_ns;
        end_ns = last_ns > end_ns ? last_ns : end_ns;
    }
    if (begin_ns > end_ns)
        return;
    uint64_t minutes = (end_ns - begin_ns) / 60000000000u;
    uint64_t bytes = FM_GATHER_MINUTE_BYTES * (minutes ? minutes : 1);
    fm_sample_order_fit(&p->order, bytes < FM_GATHER_MOST_BYTES ? bytes : FM_GATHER_MOST_BYTES);
}

struct fm_profile *fm_gather(const struct fm_gather_source *sources, size_t n,
                             const struct fm_gather_settings *settings)
{
    struct fm_profile *p = fm_profile_new();
    uint64_t samples = 0;
    for (size_t i = 0; i < n; i++)
        samples += sources[i].account->counts.samples + 1;
    for (size_t i = 0; i < n; i++) {
        if (is_prelude(sources, n, i))
            continue;
        gather_target(p, &sources[i], settings,
                      (double)(sources[i].account->counts.samples + 1) / (double)samples);
        if (went_on(sources, n, i)) /* the end is the last program's */
            p->processes.data[p->processes.len - 1].exit_status = -1;
    }
    add_callees(p);
    fit_order(p);
    fm_lines_sort(&p->lines);
    fm_samples_sort(&p->samples);
    return p;
}

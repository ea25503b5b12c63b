/*
 * Writes speedscope's JSON; speedscope_read.c reads it.
 *
 * One profile of type "sampled" per thread, each stack once, its weight being the time of its leaf
 * in nanoseconds; frames are the functions, with their first lines, or where contexts are lines (memory)
 * these. The format has one number per
 * stack. Samples and calls are written beside it as "counts" and "calls", which speedscope ignores
 * and Fathom reads.
 */
#include "record/formats/stacks/speedscope.h"

#include <string.h>

#include "base/memory.h"
#include "record/formats/format.h"
#include "record/formats/json.h"
#include "record/formats/stacks/stacks.h"

#define OUTPUT_MAX ((size_t)4 << 30)

struct speedscope_saver {
    const struct fm_profile *p;
    struct fm_own own;
    struct fm_buffer *out;
    struct fm_map frame_of;  /* (function, line): its frame */
    FM_VEC(uint32_t) frames; /* the first node of each */
    uint32_t *first, *next;  /* by thread, by node: the nodes with something, FM_NONE at the end */
    uint32_t *path;
    const int64_t *column; /* of the metric being written */
    struct fm_error *err;
};

static void put_string(struct speedscope_saver *s, uint32_t string)
{
    fm_json_put_string(s->out, s->p, string);
}

/* ---- frames ---- */

static uint64_t frame_key(const struct speedscope_saver *s, uint32_t node)
{
    return fm_map_pair(s->p->nodes.data[node].func, s->p->nodes.data[node].line);
}

static void number_frames(struct speedscope_saver *s)
{
    const struct fm_profile *p = s->p;
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        bool is_new;
        if (p->nodes.data[i].parent == FM_NONE)
            continue;
        fm_map_at(&s->frame_of, frame_key(s, i), (uint32_t)s->frames.len, &is_new);
        if (is_new)
            fm_vec_push(&s->frames, i);
    }
}

static void put_frames(struct speedscope_saver *s)
{
    for (size_t i = 0; i < s->frames.len; i++) {
        uint32_t node = s->frames.data[i], line = fm_own_line(s->p, node);
        const struct fm_function *f = &s->p->functions.data[s->p->nodes.data[node].func];
        fm_buffer_add_text(s->out, i ? ",\n{\"name\":" : "\n{\"name\":");
        put_string(s, f->qualname);
        if (fm_strings_len(s->p->strings, f->file)) {
            fm_buffer_add_text(s->out, ",\"file\":");
            put_string(s, f->file);
        }
        if (line)
            fm_buffer_addf(s->out, ",\"line\":%u", line);
        fm_buffer_add_char(s->out, '}');
    }
}

/* ---- profiles ---- */

static void list_nodes(struct speedscope_saver *s)
{
    const struct fm_profile *p = s->p;
    s->first = fm_malloc((p->threads.len + 1) * sizeof *s->first);
    s->next = fm_malloc((p->nodes.len + 1) * sizeof *s->next);
    memset(s->first, 0xff, (p->threads.len + 1) * sizeof *s->first);
    for (size_t i = p->nodes.len; i-- > 0;) {
        uint32_t thread = p->nodes.data[i].thread;
        if (!fm_own_has(&s->own, p, (uint32_t)i))
            continue;
        s->next[i] = s->first[thread];
        s->first[thread] = (uint32_t)i;
    }
}

static int put_stacks(struct speedscope_saver *s, uint32_t thread)
{
    fm_buffer_add_text(s->out, "\"samples\":[");
    for (uint32_t i = s->first[thread]; i != FM_NONE; i = s->next[i]) {
        size_t n = fm_own_path(s->p, i, s->path);
        fm_buffer_add_text(s->out, i == s->first[thread] ? "[" : ",\n[");
        for (size_t k = 0; k < n; k++)
            fm_buffer_addf(s->out, k ? ",%u" : "%u",
                           *fm_map_find(&s->frame_of, frame_key(s, s->path[k])));
        fm_buffer_add_char(s->out, ']');
        if (s->out->len > OUTPUT_MAX)
            return fm_error_set(s->err, FM_UNSUPPORTED,
                                "the stacks are so deep that they would take more than 4 GB");
    }
    fm_buffer_add_char(s->out, ']');
    return 0;
}

/* One number for each stack. */
static void put_numbers(struct speedscope_saver *s, const char *key, uint32_t thread,
                        int64_t (*number)(const struct speedscope_saver *s, uint32_t node))
{
    fm_buffer_addf(s->out, ",\n\"%s\":[", key);
    for (uint32_t i = s->first[thread]; i != FM_NONE; i = s->next[i])
        fm_buffer_addf(s->out, i == s->first[thread] ? "%lld" : ",%lld", (long long)number(s, i));
    fm_buffer_add_char(s->out, ']');
}

static int64_t weight_of(const struct speedscope_saver *s, uint32_t node)
{
    return s->own.ns[node];
}

static int64_t samples_of(const struct speedscope_saver *s, uint32_t node)
{
    return fm_profile_value(s->p, FM_METRIC_SAMPLES, node);
}

static int64_t calls_of(const struct speedscope_saver *s, uint32_t node)
{
    return fm_sum(fm_profile_value(s->p, FM_METRIC_CALLS, node),
                  fm_profile_value(s->p, FM_METRIC_RESUMES, node));
}

static int64_t column_of(const struct speedscope_saver *s, uint32_t node)
{
    return s->column[node];
}

/* As py-spy names them. */
static void put_name(struct speedscope_saver *s, uint32_t thread)
{
    const struct fm_thread *t = &s->p->threads.data[thread];
    fm_autobuffer name = FM_BUFFER_INIT;
    if (s->own.processes > 1)
        fm_buffer_addf(&name, "Process %u ", s->p->processes.data[t->process].pid);
    fm_buffer_addf(&name, "Thread %u \"%s\"", t->tid, fm_profile_text(s->p, t->name));
    fm_json_put_text(s->out, name.data, name.len);
}

static int put_profile(struct speedscope_saver *s, uint32_t thread)
{
    static const char *const units[] = { "bytes", "none" };
    const char *unit = !s->own.unit ? "nanoseconds" : units[strcmp(s->own.unit, "bytes") != 0];
    int64_t sum = 0;
    for (uint32_t i = s->first[thread]; i != FM_NONE; i = s->next[i])
        sum = fm_sum(sum, s->own.ns[i]);
    fm_buffer_add_text(s->out, "{\"type\":\"sampled\",\"name\":");
    put_name(s, thread);
    fm_buffer_addf(s->out, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%lld,\n", unit,
                   (long long)sum);
    if (put_stacks(s, thread) < 0)
        return s->err->status;
    put_numbers(s, "weights", thread, weight_of);
    if (s->own.samples)
        put_numbers(s, "counts", thread, samples_of);
    if (s->own.calls)
        put_numbers(s, "calls", thread, calls_of);
    for (int m = 0; m < FM_METRIC_COUNT; m++) {
        s->column = s->own.column[m];
        if (s->column)
            put_numbers(s, fm_metric_name((enum fm_metric)m), thread, column_of);
    }
    fm_buffer_add_char(s->out, '}');
    return 0;
}

static int put_all(struct speedscope_saver *s)
{
    const char *command = fm_profile_fact_get(s->p, "command");
    const char *metric = fm_profile_fact_get(s->p, "metric");
    bool any = false;
    fm_buffer_add_text(s->out,
                       "{\"$schema\":\"" FM_SPEEDSCOPE_SCHEMA
                       "\",\n\"exporter\":\"" FM_SPEEDSCOPE_EXPORTER " " FATHOM_VERSION "\",\n");
    if (command) {
        fm_buffer_add_text(s->out, "\"name\":");
        fm_json_put_text(s->out, command, strlen(command));
        fm_buffer_add_text(s->out, ",\n");
    }
    if (metric) {
        fm_buffer_add_text(s->out, "\"" FM_SPEEDSCOPE_METRIC "\":");
        fm_json_put_text(s->out, metric, strlen(metric));
        fm_buffer_add_text(s->out, ",\n");
    }
    fm_buffer_add_text(s->out, "\"shared\":{\"frames\":[");
    put_frames(s);
    fm_buffer_add_text(s->out, "]},\n\"profiles\":[");
    for (uint32_t i = 0; i < s->p->threads.len; i++) {
        if (s->first[i] == FM_NONE)
            continue;
        if (any)
            fm_buffer_add_text(s->out, ",\n");
        any = true;
        if (put_profile(s, i) < 0)
            return s->err->status;
    }
    fm_buffer_add_text(s->out, "]}\n");
    return any ? 0
               : fm_error_set(s->err, FM_UNSUPPORTED,
                              "the recording holds nothing that speedscope could show");
}

static int save(const struct fm_profile *p, struct fm_buffer *out, struct fm_error *err)
{
    struct speedscope_saver s = { .p = p, .out = out, .err = err };
    int status = fm_own_init(&s.own, p, err);
    if (status == 0) {
        s.path = fm_malloc((p->nodes.len + 1) * sizeof *s.path);
        number_frames(&s);
        list_nodes(&s);
        status = put_all(&s);
    }
    fm_own_release(&s.own);
    fm_vec_release(&s.frames);
    fm_map_release(&s.frame_of);
    free(s.first);
    free(s.next);
    free(s.path);
    return status;
}

static const char *const suffixes[] = { ".speedscope.json", ".speedscope", NULL };

const struct fm_format fm_format_speedscope = {
    .name = "speedscope",
    .title = "speedscope's JSON",
    .suffixes = suffixes,
    .recognise = fm_speedscope_recognise,
    .load = fm_speedscope_load,
    .save = save,
};

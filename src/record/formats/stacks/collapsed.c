/*
 * Writes collapsed stacks, the text that flamegraph.pl, inferno and speedscope read, one stack a
 * line from the root to the leaf; collapsed_read.c reads it:
 *
 *     main (app.py:3);work (app.py:9) 17
 *
 * A frame is written as py-spy does, with the first line of the function, or where contexts are lines
 * (memory) with the line itself. Several processes or
 * threads are frames at the root, as py-spy's too. A stack without a function has a frame that says
 * so. There are no lines of any other kind: speedscope recognises the format by every line ending
 * in a number.
 *
 * The number is samples if the recording has them and no calls, else microseconds of the function's
 * own time, or its number as it is where that is no time. What rounding takes from one stack it gives to the next of the thread, so sums are
 * right.
 */
#include "record/formats/stacks/collapsed.h"

#include <string.h>

#include "base/clean.h"
#include "base/memory.h"
#include "record/formats/format.h"
#include "record/formats/stacks/stacks.h"

/* The format has no place for more, and no reader for so much. */
#define OUTPUT_MAX ((size_t)4 << 30)

/* A frame may hold neither the separator nor the end of the line, and readers want UTF-8. */
static void put_text(struct fm_buffer *out, const char *text)
{
    size_t start = out->len;
    fm_clean_add(out, text, strlen(text));
    for (size_t i = start; i < out->len; i++)
        if (out->data[i] == ';')
            out->data[i] = ':';
}

static void put_frame(struct fm_buffer *out, const struct fm_profile *p, uint32_t node)
{
    const struct fm_function *f = &p->functions.data[p->nodes.data[node].func];
    uint32_t line = fm_own_line(p, node);
    const char *name = fm_profile_text(p, f->qualname), *file = fm_profile_text(p, f->file);
    put_text(out, *name ? name : "?");
    if (!*file)
        return;
    fm_buffer_add_text(out, " (");
    put_text(out, file);
    if (line)
        fm_buffer_addf(out, ":%u", line);
    fm_buffer_add_char(out, ')');
}

static void put_roots(struct fm_buffer *out, const struct fm_profile *p, const struct fm_own *own,
                      uint32_t thread)
{
    const struct fm_thread *t = &p->threads.data[thread];
    const struct fm_process *process = &p->processes.data[t->process];
    if (own->processes > 1) {
        fm_buffer_addf(out, "process %u:\"", process->pid);
        put_text(out, fm_profile_text(p, process->command));
        fm_buffer_add_text(out, "\";");
    }
    if (own->threads > 1) {
        const char *name = fm_profile_text(p, t->name);
        fm_buffer_addf(out, "thread (%u)%s", t->tid, *name ? ": " : "");
        put_text(out, name);
        fm_buffer_add_char(out, ';');
    }
}

static int64_t whole_us(int64_t ns, int64_t *rest_ns)
{
    if (!ns)
        return 0;
    ns = fm_sum(ns, *rest_ns);
    int64_t us = fm_sum(ns, 500) / 1000;
    *rest_ns = ns - us * 1000;
    return us;
}

static int put_stacks(struct fm_buffer *out, const struct fm_profile *p, const struct fm_own *own,
                      struct fm_error *err)
{
    fm_autofree uint32_t *path = fm_malloc((p->nodes.len + 1) * sizeof *path);
    fm_autofree int64_t *rest_ns = fm_calloc(p->threads.len + 1, sizeof *rest_ns);
    bool samples = own->samples && !own->calls;
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        uint32_t thread = p->nodes.data[i].thread;
        int64_t value = samples     ? fm_profile_value(p, FM_METRIC_SAMPLES, i)
                        : own->unit ? own->ns[i]
                                    : whole_us(own->ns[i], &rest_ns[thread]);
        if (value <= 0)
            continue;
        size_t n = fm_own_path(p, i, path);
        put_roots(out, p, own, thread);
        if (n == 0)
            fm_buffer_add_text(out, FM_COLLAPSED_NO_FRAME);
        for (size_t k = 0; k < n; k++) {
            if (k > 0)
                fm_buffer_add_char(out, ';');
            put_frame(out, p, path[k]);
        }
        fm_buffer_addf(out, " %lld\n", (long long)value);
        if (out->len > OUTPUT_MAX)
            return fm_error_set(err, FM_UNSUPPORTED,
                                "the stacks are so deep that they would take more than 4 GB");
    }
    return 0;
}

static int save(const struct fm_profile *p, struct fm_buffer *out, struct fm_error *err)
{
    struct fm_own own;
    int status = fm_own_init(&own, p, err);
    if (status == 0)
        status = put_stacks(out, p, &own, err);
    fm_own_release(&own);
    return status;
}

static const char *const suffixes[] = { ".collapsed", ".folded", NULL };

const struct fm_format fm_format_collapsed = {
    .name = "collapsed",
    .title = "collapsed stacks, for flame graphs",
    .suffixes = suffixes,
    .recognise = fm_collapsed_recognise,
    .load = fm_collapsed_load,
    .save = save,
};

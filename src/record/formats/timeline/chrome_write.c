/*
 * Writes a timeline as Chrome's trace events; chrome_read.c reads them.
 *
 * Calls are B and E, in the order of time: X would be shorter, but of two calls with equal times nobody could tell which
 * one is inside. Names are "f (file:line)", as viztracer's. Times are microseconds since the timeline began, with three
 * digits, so that readers that take them for doubles keep every nanosecond; when that was is in "otherData". What does
 * not nest (tasks, regions that overlap, losses) is b and e with numbers of their own.
 */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "record/formats/json.h"
#include "record/formats/timeline/chrome.h"
#include "record/formats/timeline/export.h"

struct chrome_writer {
    const struct fm_profile *p;
    const struct fm_export_from *from;
    struct fm_export_file file;
    struct fm_map people;  /* (pid, tid): how often it was used */
    bool *named;           /* by process */
    uint32_t pid, tid;     /* of the lane */
    uint64_t asynchronous; /* numbers given */
    bool any;
    bool arrows;  /* calls at both ends of arrows are there for sure */
    bool arrives; /* one, at the next call */
};

/* ---- pieces ---- */

static struct fm_buffer *begin_event(struct chrome_writer *w, const char *kind)
{
    struct fm_buffer *out = &w->file.bytes;
    fm_buffer_add_text(out, w->any ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
    fm_buffer_add_text(out, kind);
    fm_buffer_addf(out, "\",\"pid\":%u,\"tid\":%u", w->pid, w->tid);
    w->any = true;
    return out;
}

static void end_event(struct chrome_writer *w)
{
    fm_buffer_add_char(&w->file.bytes, '}');
    fm_export_flush_often(&w->file);
}

static void put_ts(struct chrome_writer *w, uint64_t at_ns)
{
    fm_buffer_add_text(&w->file.bytes, ",\"ts\":");
    fm_json_put_ns(&w->file.bytes, (int64_t)(at_ns & INT64_MAX), 3);
}

static void put_words(struct chrome_writer *w, const char *category, const char *name, size_t len)
{
    fm_buffer_addf(&w->file.bytes, ",\"cat\":\"%s\",\"name\":", category);
    fm_json_put_text(&w->file.bytes, name, len);
}

/* ---- who ---- */

/* Threads are known by their numbers, of 32 bits; one that was used again gets another that is free. */
static uint32_t free_tid(struct chrome_writer *w, uint32_t pid, uint32_t tid)
{
    bool is_new;
    uint32_t try = tid;
    for (fm_map_at(&w->people, fm_map_pair(pid, try), 0, &is_new); !is_new;)
        fm_map_at(&w->people, fm_map_pair(pid, try = try >= 1u << 30 ? try + 1 : (1u << 30) + try),
                  0, &is_new);
    return try;
}

static void put_metadata(struct chrome_writer *w, const char *what, const char *name, size_t len)
{
    struct fm_buffer *out = begin_event(w, "M");
    fm_buffer_addf(out, ",\"name\":\"%s\",\"args\":{\"name\":", what);
    fm_json_put_text(out, name, len);
    fm_buffer_add_char(out, '}');
    end_event(w);
}

static void put_rank(struct chrome_writer *w, const char *what, size_t rank)
{
    fm_buffer_addf(begin_event(w, "M"), ",\"name\":\"%s\",\"args\":{\"sort_index\":%zu}", what,
                   rank);
    end_event(w);
}

/* An arrow from a fork to the first call of the child: from call to call, or readers complain. */
static void put_arrow(struct chrome_writer *w, const char *kind, uint32_t child, uint64_t at_ns)
{
    fm_buffer_addf(begin_event(w, kind), ",\"id\":\"%u\",\"bp\":\"e\"", child);
    put_ts(w, at_ns);
    put_words(w, "process", "fork", 4);
    end_event(w);
}

static void begin_lane(void *context, size_t lane)
{
    struct chrome_writer *w = context;
    const struct fm_lane *l = w->from->lane(w->from->context, lane);
    const struct fm_process *process = &w->p->processes.data[l->process];
    const struct fm_thread *thread = &w->p->threads.data[l->thread];
    fm_autobuffer name = FM_BUFFER_INIT;
    w->pid = process->pid;
    w->tid = free_tid(w, process->pid, thread->tid);
    if (!w->named[l->process]) {
        w->named[l->process] = true;
        if (fm_strings_len(w->p->strings, process->command))
            put_metadata(w, "process_name", fm_profile_text(w->p, process->command),
                         fm_strings_len(w->p->strings, process->command));
        put_rank(w, "process_sort_index", l->process);
    }
    fm_buffer_add(&name, fm_profile_text(w->p, thread->name),
                  fm_strings_len(w->p->strings, thread->name));
    if (!name.len)
        fm_buffer_addf(&name, "Thread %u", thread->tid);
    if (l->kind == FM_LANE_SAMPLED)
        fm_buffer_add_text(&name, " (sampled)");
    put_metadata(w, "thread_name", fm_buffer_text(&name), name.len);
    put_rank(w, "thread_sort_index", lane);
    bool first = lane == 0 || w->from->lane(w->from->context, lane - 1)->process != l->process;
    w->arrives = w->arrows && process->forked && first;
}

/* ---- calls ---- */

/* Values, and a word that is true of it. */
static void put_args(struct chrome_writer *w, const struct fm_export_values *values,
                     const char *word)
{
    struct fm_buffer *out = &w->file.bytes;
    const struct fm_export_value *value;
    bool first = true;
    if (word)
        fm_buffer_addf(out, ",\"args\":{\"%s\":true", word);
    for (size_t at = 0; (value = fm_export_value_next(values, &at));) {
        fm_buffer_add_text(out, first && !word ? ",\"args\":{" : ",");
        first = false;
        fm_json_put_text(out, fm_profile_text(w->p, value->name),
                         fm_strings_len(w->p->strings, value->name));
        fm_buffer_add_char(out, ':');
        fm_json_put_text(out, values->texts + value->text_at, value->text_len);
    }
    if (word || !first)
        fm_buffer_add_char(out, '}');
}

static void begin_span(void *context, const struct fm_time_span *span, uint64_t at_ns,
                       const struct fm_export_values *values)
{
    struct chrome_writer *w = context;
    fm_autobuffer name = FM_BUFFER_INIT;
    begin_event(w, "B");
    put_ts(w, at_ns);
    if (span->func < w->p->functions.len) {
        const struct fm_function *f = &w->p->functions.data[span->func];
        fm_buffer_add(&name, fm_profile_text(w->p, f->qualname),
                      fm_strings_len(w->p->strings, f->qualname));
        if (fm_strings_len(w->p->strings, f->file))
            fm_buffer_addf(&name, " (%s:%u)", fm_profile_text(w->p, f->file), f->line);
    }
    put_words(w, fm_export_category(w->p, span), fm_buffer_text(&name), name.len);
    put_args(w, values, fm_export_begin_word(span));
    end_event(w);
    if (w->arrives)
        put_arrow(w, "f", w->pid, at_ns);
    w->arrives = false;
}

static void end_span(void *context, const struct fm_time_span *span, uint64_t at_ns,
                     const struct fm_export_values *values)
{
    struct chrome_writer *w = context;
    begin_event(w, "E");
    put_ts(w, at_ns);
    put_args(w, values, fm_export_end_word(span));
    end_event(w);
}

/* ---- marks ---- */

static void put_instant(struct chrome_writer *w, const struct fm_mark *mark, const char *category,
                        const char *name, size_t len, const struct fm_export_values *values)
{
    fm_buffer_add_text(begin_event(w, "i"), ",\"s\":\"t\"");
    put_ts(w, mark->begin_ns);
    put_words(w, category, name, len);
    if (mark->kind == FM_MARK_COLLECTION)
        fm_buffer_addf(&w->file.bytes,
                       ",\"args\":{\"generation\":%" PRIu64 ",\"collected\":%" PRIu64 "}",
                       mark->value, mark->other);
    if (mark->kind == FM_MARK_FORK)
        fm_buffer_addf(&w->file.bytes, ",\"args\":{\"child\":%" PRIu64 "}", mark->value);
    if (mark->text) {
        fm_buffer_add_text(&w->file.bytes, ",\"args\":{\"value\":");
        fm_json_put_text(&w->file.bytes, mark->text, mark->text_len);
        fm_buffer_add_char(&w->file.bytes, '}');
    }
    put_args(w, values, NULL);
    end_event(w);
    if (mark->kind == FM_MARK_FORK && w->arrows)
        put_arrow(w, "s", (uint32_t)mark->value, mark->begin_ns);
}

/* b and e belong together by category and number. */
static void put_stretch(struct chrome_writer *w, const struct fm_mark *mark, uint64_t number,
                        const char *category, const char *name, size_t len,
                        const struct fm_export_values *values)
{
    fm_buffer_addf(begin_event(w, "b"), ",\"id2\":{\"local\":\"%" PRIu64 "\"}", number);
    put_ts(w, mark->begin_ns);
    put_words(w, category, name, len);
    if (mark->kind == FM_MARK_LOST)
        fm_buffer_addf(&w->file.bytes, ",\"args\":{\"events\":%" PRIu64 "}", mark->value);
    put_args(w, values, NULL);
    end_event(w);
    fm_buffer_addf(begin_event(w, "e"), ",\"id2\":{\"local\":\"%" PRIu64 "\"}", number);
    put_ts(w, mark->end_ns);
    put_words(w, category, name, len);
    end_event(w);
}

static void put_counter(struct chrome_writer *w, const struct fm_mark *mark, const char *name,
                        size_t len)
{
    double value;
    memcpy(&value, &mark->value, sizeof value);
    if (value - value != 0) /* JSON has no such number */
        return;
    begin_event(w, "C");
    put_ts(w, mark->begin_ns);
    put_words(w, "counter", name, len);
    fm_buffer_addf(&w->file.bytes, ",\"args\":{\"value\":%.17g}", value);
    end_event(w);
}

static void put_mark(void *context, const struct fm_mark *mark,
                     const struct fm_export_values *values)
{
    struct chrome_writer *w = context;
    const char *name = fm_profile_text(w->p, mark->name);
    size_t len = fm_strings_len(w->p->strings, mark->name);
    switch (mark->kind) {
    case FM_MARK_EXCEPTION:
        put_instant(w, mark, "exception", name, len, values);
        break;
    case FM_MARK_INSTANT:
        put_instant(w, mark, "instant", name, len, values);
        break;
    case FM_MARK_VARIABLE:
        put_instant(w, mark, "variable", name, len, values);
        break;
    case FM_MARK_FORK:
        put_instant(w, mark, "process", "fork", 4, values);
        break;
    case FM_MARK_CLOCK:
        put_instant(w, mark, "clock", "the clock jumped", 16, values);
        break;
    case FM_MARK_COUNTER:
        put_counter(w, mark, name, len);
        break;
    case FM_MARK_TASK: /* all steps of a task have its number */
        put_stretch(w, mark, mark->value, "task", name, len, values);
        break;
    case FM_MARK_COLLECTION:
        put_instant(w, mark, "gc", "generation", 10, values);
        break;
    case FM_MARK_REGION:
        put_stretch(w, mark, ++w->asynchronous, "region", name, len, values);
        break;
    case FM_MARK_LOST:
        put_stretch(w, mark, ++w->asynchronous, "lost", "events lost", 11, values);
        break;
    case FM_MARK_WAITED:
        put_stretch(w, mark, ++w->asynchronous, "lost", "waited for room", 15, values);
        break;
    default: /* of what begins here, not of the time line */
        break;
    }
}

/* ---- the file ---- */

static void start(void *context)
{
    struct chrome_writer *w = context;
    struct fm_buffer *out = &w->file.bytes;
    const char *command = fm_profile_fact_get(w->p, "command");
    uint64_t real_ns = 0;
    for (size_t i = 0; i < w->p->processes.len && !real_ns; i++) {
        const struct fm_process *process = &w->p->processes.data[i];
        if (process->start_real_ns && process->start_ns)
            real_ns = process->start_real_ns + w->from->start_ns - process->start_ns;
    }
    fm_buffer_add_text(
        out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"writer\":\"fathom " FATHOM_VERSION
             "\",\"command\":");
    fm_json_put_text(out, command ? command : "", command ? strlen(command) : 0);
    /* As text, for it has more digits than a double. */
    fm_buffer_addf(out, ",\"monotonic_ns\":\"%" PRIu64 "\",\"realtime_ns\":\"%" PRIu64 "\"},\n",
                   w->from->start_ns, real_ns);
    if (real_ns)
        fm_buffer_addf(out, "\"baseTimeNanoseconds\":%" PRIu64 ",\n", real_ns);
    fm_buffer_add_text(out, "\"traceEvents\":[");
}

static void finish(void *context)
{
    struct chrome_writer *w = context;
    fm_buffer_add_text(&w->file.bytes, "\n]}\n");
    fm_export_flush(&w->file);
}

int fm_chrome_write(const struct fm_profile *p, const struct fm_export_from *from,
                    const struct fm_save_choice *choice, int fd, struct fm_error *err)
{
    struct chrome_writer w = { .p = p, .from = from, .file = { .fd = fd, .err = err } };
    struct fm_export_writer writer = { .context = &w,
                                       .start = start,
                                       .lane = begin_lane,
                                       .begin = begin_span,
                                       .end = end_span,
                                       .mark = put_mark,
                                       .finish = finish };
    w.named = fm_calloc(p->processes.len + 1, sizeof *w.named);
    w.arrows = !choice->min_ns && !choice->max_depth;
    int status = fm_export_run(from, choice, &writer, &w.file, err);
    free(w.named);
    fm_map_release(&w.people);
    fm_buffer_release(&w.file.bytes);
    return status;
}

int fm_chrome_save(const struct fm_profile *p, const struct fm_save_choice *choice, int fd,
                   struct fm_error *err)
{
    return fm_export_save(p, choice, fd, fm_chrome_write, err);
}

/* A timeline on its way into a foreign format; see export.h. */
#include "record/formats/timeline/export.h"

#include "base/memory.h"
#include "base/output.h"
#include "base/runs.h"

#define TEXTS_MOST ((size_t)64 << 20)

void fm_export_flush(struct fm_export_file *file)
{
    if (!file->status && file->bytes.len)
        file->status = fm_output_put(file->fd, file->bytes.data, file->bytes.len, file->err);
    fm_buffer_clear(&file->bytes);
}

const char *fm_export_category(const struct fm_profile *p, const struct fm_time_span *span)
{
    static const char *const kinds[] = { [FM_FUNCTION_PYTHON] = "python",
                                         [FM_FUNCTION_C] = "c",
                                         [FM_FUNCTION_NATIVE] = "native",
                                         [FM_FUNCTION_REGION] = "region",
                                         [FM_FUNCTION_ROOT] = "native" };
    if (span->flags & FM_SPAN_COLLECTION)
        return "gc";
    if (span->flags & FM_SPAN_REGION)
        return "region";
    return span->func < p->functions.len ? kinds[p->functions.data[span->func].kind % 5] : "native";
}

const char *fm_export_begin_word(const struct fm_time_span *span)
{
    return span->flags & FM_SPAN_BEGAN_BEFORE ? "began before" : NULL;
}

const char *fm_export_end_word(const struct fm_time_span *span)
{
    if (span->flags & FM_SPAN_UNWOUND)
        return "raised";
    return span->flags & (FM_SPAN_OPEN | FM_SPAN_CUT) ? "still open" : NULL;
}

/* ---- what was asked for ---- */

/* Spans that are open on a lane. Those that were told come first: who is inside is shorter. */
struct export_values {
    FM_VEC(struct fm_export_value) list; /* by time; of tokens by their key */
};

struct export_walk {
    const struct fm_save_choice *choice;
    const struct fm_export_writer *writer; /* NULL: only count */
    const struct fm_export_file *file;
    FM_VEC(struct fm_time_span) open;
    size_t told;
    uint64_t last_ns; /* times never go back, whatever the file says */
    uint64_t spans;
    struct export_values begins, ends; /* of the lane; instants are among the begins */
    struct fm_buffer texts;
    struct export_values tokens; /* of all lanes */
    struct fm_buffer token_texts;
    uint32_t process; /* of the lane */
};

/* ---- values ---- */

static bool is_of_token(const struct fm_mark *mark)
{
    return mark->kind == FM_MARK_VALUE && !mark->other && mark->value;
}

/* Tokens are numbers of a process, of 32 bits. */
static uint64_t token_key(uint32_t process, uint64_t token)
{
    return (uint64_t)process << 32 | (uint32_t)token;
}

static bool add_value(struct export_values *to, struct fm_buffer *texts, const struct fm_mark *mark,
                      uint64_t at_ns)
{
    struct fm_export_value value = { at_ns, mark->other, mark->name, (uint32_t)mark->text_len,
                                     texts->len };
    if (texts->len + mark->text_len > TEXTS_MOST)
        return false;
    fm_buffer_add(texts, mark->text, mark->text_len);
    fm_vec_push(&to->list, value);
    return true;
}

static bool keep_value(void *context, const struct fm_mark *mark)
{
    struct export_walk *w = context;
    struct export_values *to = mark->kind == FM_MARK_VALUE ? &w->begins : &w->ends;
    if ((mark->kind != FM_MARK_VALUE && mark->kind != FM_MARK_RESULT) || is_of_token(mark))
        return true;
    return add_value(to, &w->texts, mark, mark->begin_ns);
}

static bool keep_token_value(void *context, const struct fm_mark *mark)
{
    struct export_walk *w = context;
    return !is_of_token(mark) ||
           add_value(&w->tokens, &w->token_texts, mark, token_key(w->process, mark->value));
}

static int compare_keys(const void *a, const void *b)
{
    const struct fm_export_value *x = a, *y = b;
    return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

/* Values of a region are on the lane where it began, which may come after that where it ended. */
static int keep_tokens(struct export_walk *w, const struct fm_export_from *from,
                       struct fm_error *err)
{
    int status = 0;
    for (size_t i = 0; i < from->lanes && status == 0; i++) {
        w->process = from->lane(from->context, i)->process;
        status =
            from->marks(from->context, (uint32_t)i, 0, w->choice->to_ns, keep_token_value, w, err);
    }
    /* Those of one token stay in the order in which they were told. */
    fm_sort_runs(w->tokens.list.data, w->tokens.list.len, sizeof *w->tokens.list.data,
                 compare_keys);
    return status;
}

/* Those of one instant (or token); a span takes those of its depth + 1, a mark those of 0. */
static struct fm_export_values values_at(const struct export_values *from,
                                         const struct fm_buffer *texts, uint64_t at_ns,
                                         uint64_t depth)
{
    size_t low = 0, high = from->list.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (from->list.data[middle].at_ns < at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (high = low; high < from->list.len && from->list.data[high].at_ns == at_ns;)
        high++;
    return (struct fm_export_values){ high > low ? from->list.data + low : NULL, high - low, depth,
                                      (const char *)texts->data };
}

static struct fm_export_values values_of_mark(const struct export_walk *w,
                                              const struct fm_mark *mark)
{
    if (mark->kind == FM_MARK_INSTANT)
        return values_at(&w->begins, &w->texts, mark->begin_ns, 0);
    if (mark->kind == FM_MARK_REGION && mark->value)
        return values_at(&w->tokens, &w->token_texts, token_key(w->process, mark->value), 0);
    return (struct fm_export_values){ 0 };
}

const struct fm_export_value *fm_export_value_next(const struct fm_export_values *values,
                                                   size_t *at)
{
    while (*at < values->count) {
        const struct fm_export_value *value = &values->list[(*at)++];
        if (value->depth == values->depth)
            return value;
    }
    return NULL;
}

static uint64_t in_range(struct export_walk *w, uint64_t ns)
{
    const struct fm_save_choice *choice = w->choice;
    ns = ns < choice->from_ns ? choice->from_ns : ns > choice->to_ns ? choice->to_ns : ns;
    w->last_ns = ns > w->last_ns ? ns : w->last_ns;
    return w->last_ns;
}

/* Tell of spans that are long enough by now. */
static void tell_begins(struct export_walk *w, uint64_t now_ns)
{
    while (w->told < w->open.len) {
        struct fm_time_span *span = &w->open.data[w->told];
        bool deep = w->choice->max_depth && span->depth >= w->choice->max_depth;
        uint64_t age = now_ns > span->begin_ns ? now_ns - span->begin_ns : 0;
        if (deep || age < w->choice->min_ns)
            return;
        w->told++;
        w->spans++;
        if (span->begin_ns < w->choice->from_ns)
            span->flags |= FM_SPAN_BEGAN_BEFORE;
        if (w->writer) {
            struct fm_export_values values =
                values_at(&w->begins, &w->texts, span->begin_ns, span->depth + 1ull);
            w->writer->begin(w->writer->context, span, in_range(w, span->begin_ns), &values);
        }
    }
}

static bool take_event(void *context, const struct fm_lane_event *event)
{
    struct export_walk *w = context;
    tell_begins(w, event->at_ns);
    if (!event->ends) {
        fm_vec_push(&w->open, event->span);
        tell_begins(w, event->at_ns);
    } else if (w->open.len) {
        w->open.len--;
        if (w->told > w->open.len) {
            w->told = w->open.len;
            struct fm_export_values values =
                values_at(&w->ends, &w->texts, event->at_ns, event->span.depth + 1ull);
            if (w->writer)
                w->writer->end(w->writer->context, &event->span, in_range(w, event->at_ns),
                               &values);
        }
    }
    return !w->file || !w->file->status;
}

static bool take_mark(void *context, const struct fm_mark *mark)
{
    struct export_walk *w = context;
    struct fm_export_values values = values_of_mark(w, mark);
    w->writer->mark(w->writer->context, mark, &values);
    return !w->file->status;
}

static int walk_lane(struct export_walk *w, const struct fm_export_from *from, size_t lane,
                     struct fm_error *err)
{
    w->open.len = w->told = 0;
    w->last_ns = 0;
    return from->events(from->context, lane, w->choice->from_ns, w->choice->to_ns, take_event, w,
                        err);
}

int fm_export_count(const struct fm_export_from *from, const struct fm_save_choice *choice,
                    uint64_t *spans, struct fm_error *err)
{
    struct export_walk w = { .choice = choice };
    int status = 0;
    for (size_t i = 0; i < from->lanes && status == 0; i++)
        status = walk_lane(&w, from, i, err);
    fm_vec_release(&w.open);
    *spans = w.spans;
    return status;
}

int fm_export_run(const struct fm_export_from *from, const struct fm_save_choice *choice,
                  const struct fm_export_writer *writer, const struct fm_export_file *file,
                  struct fm_error *err)
{
    struct export_walk w = { .choice = choice, .writer = writer, .file = file };
    int status = keep_tokens(&w, from, err);
    writer->start(writer->context);
    for (size_t i = 0; i < from->lanes && status == 0 && !file->status; i++) {
        writer->lane(writer->context, i);
        w.process = from->lane(from->context, i)->process;
        w.begins.list.len = w.ends.list.len = 0;
        fm_buffer_clear(&w.texts);
        status = from->marks(from->context, (uint32_t)i, 0, choice->to_ns, keep_value, &w, err);
        if (status == 0)
            status = walk_lane(&w, from, i, err);
        if (status == 0 && !file->status)
            status = from->marks(from->context, (uint32_t)i, choice->from_ns, choice->to_ns,
                                 take_mark, &w, err);
    }
    if (status == 0 && !file->status)
        writer->finish(writer->context);
    fm_vec_release(&w.open);
    fm_vec_release(&w.begins.list);
    fm_vec_release(&w.ends.list);
    fm_vec_release(&w.tokens.list);
    fm_buffer_release(&w.texts);
    fm_buffer_release(&w.token_texts);
    return status ? status : file->status;
}

/* ---- the timeline of a recording ---- */

static const struct fm_lane *timeline_lane(void *context, size_t lane)
{
    return fm_timeline_lane(context, lane);
}

static int timeline_events(void *context, size_t lane, uint64_t from_ns, uint64_t to_ns,
                           fm_lane_event_fn *each, void *each_context, struct fm_error *err)
{
    return fm_timeline_events(context, lane, from_ns, to_ns, each, each_context, err);
}

static int timeline_marks(void *context, uint32_t lane, uint64_t from_ns, uint64_t to_ns,
                          fm_mark_fn *each, void *each_context, struct fm_error *err)
{
    return fm_timeline_marks(context, lane, from_ns, to_ns, each, each_context, err);
}

static int save_timeline(const struct fm_profile *p, struct fm_timeline *t,
                         const struct fm_save_choice *asked, int fd, fm_export_fn *write,
                         struct fm_error *err)
{
    struct fm_export_from from = { .context = t,
                                   .start_ns = fm_timeline_start_ns(t),
                                   .length_ns = fm_timeline_length_ns(t),
                                   .lanes = fm_timeline_lanes(t),
                                   .lane = timeline_lane,
                                   .events = timeline_events,
                                   .marks = timeline_marks };
    struct fm_save_choice choice = *asked;
    uint64_t spans;
    if (!choice.to_ns || choice.to_ns > from.length_ns)
        choice.to_ns = from.length_ns;
    if (choice.from_ns > choice.to_ns)
        return fm_error_set(err, FM_BAD_QUERY,
                            "the timeline has %.3f s, and so nothing from %.3f s on",
                            (double)from.length_ns / 1e9, (double)choice.from_ns / 1e9);
    int status = fm_export_count(&from, &choice, &spans, err);
    if (status == 0 && choice.say_spans)
        choice.say_spans(spans);
    return status ? status : write(p, &from, &choice, fd, err);
}

int fm_export_save(const struct fm_profile *p, const struct fm_save_choice *choice, int fd,
                   fm_export_fn *write, struct fm_error *err)
{
    struct fm_error own = FM_ERROR_INIT;
    err = err ? err : &own;
    struct fm_timeline *t = fm_timeline_open(p, err);
    if (!t && err->status)
        return err->status;
    if (!t)
        return fm_error_set(err, FM_UNSUPPORTED,
                            "the recording has no timeline: `fathom run` keeps that of samples, "
                            "`fathom run --trace` that of every call");
    int status = save_timeline(p, t, choice, fd, write, err);
    fm_timeline_free(t);
    return status;
}

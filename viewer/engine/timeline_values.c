/* Values of a span, of a mark, and of variables, for the page; see timeline.h. */
#include "timeline.h"

#include "json.h"
#include "record/model/trace/lanes/timeline.h"

#define MOST_VALUES 64

struct value_list {
    struct fm_engine *e;
    const struct fm_recording *r;
    bool variables;
    int count;
};

static bool take(void *context, const struct fm_mark *mark)
{
    struct value_list *list = context;
    struct fm_buffer *text = &list->e->text;
    if (list->variables != (mark->kind == FM_MARK_VARIABLE))
        return true;
    json_next(text);
    json_text(text, fm_strings_get(list->r->p->strings, mark->name),
              fm_strings_len(list->r->p->strings, mark->name));
    json_next(text);
    json_text(text, mark->text, mark->text_len);
    return ++list->count < MOST_VALUES;
}

int fm_engine_timeline_values(struct fm_engine *e, int recording, uint32_t lane, double begin_ns,
                              double end_ns, uint32_t depth)
{
    struct value_list list = { .e = e, .variables = depth == FM_NONE };
    struct fm_recording *r;
    struct fm_timeline *t = fm_engine_timeline_of(e, recording, &r);
    if (!t)
        return -1;
    list.r = r;
    struct fm_time_span span = { .begin_ns = fm_timeline_instant(begin_ns),
                                 .end_ns = fm_timeline_instant(end_ns),
                                 .depth = depth };
    fm_buffer_clear(&e->text);
    fm_buffer_add_char(&e->text, '[');
    int status = list.variables
                     ? fm_timeline_marks(t, lane, span.begin_ns, span.end_ns, take, &list, &e->err)
                     : fm_timeline_values(t, lane, &span, take, &list, &e->err);
    json_close(&e->text, ']');
    return status < 0 ? -1 : 0;
}

int fm_engine_timeline_mark_values(struct fm_engine *e, int recording, uint32_t lane, uint32_t kind,
                                   double begin_ns, double value)
{
    struct value_list list = { .e = e };
    struct fm_recording *r;
    struct fm_timeline *t = fm_engine_timeline_of(e, recording, &r);
    if (!t)
        return -1;
    list.r = r;
    struct fm_mark mark = { .begin_ns = fm_timeline_instant(begin_ns),
                            .kind = kind < FM_MARK_KINDS ? (enum fm_mark_kind)kind : FM_MARK_KINDS,
                            .lane = lane,
                            .value = value > 0 && value <= UINT32_MAX ? (uint64_t)value : 0 };
    fm_buffer_clear(&e->text);
    fm_buffer_add_char(&e->text, '[');
    int status = fm_timeline_mark_values(t, &mark, take, &list, &e->err);
    json_close(&e->text, ']');
    return status < 0 ? -1 : 0;
}

/* Marks of a traced lane; see lanes.h, trace_marks.h. */
#include "record/model/trace/lanes/lanes.h"

static bool tell(struct fm_timeline *t, size_t lane, const struct fm_trace_marks *marks,
                 const struct fm_trace_mark *mark, fm_mark_fn *each, void *context)
{
    uint32_t trace = t->traced.data[lane].trace;
    struct fm_trace_clock *clock = fm_timeline_clock(t, trace);
    struct fm_mark told = { .begin_ns = fm_trace_clock_ns(clock, mark->begin),
                            .end_ns = fm_trace_clock_ns(clock, mark->end),
                            .kind = (enum fm_mark_kind)mark->kind,
                            .lane = (uint32_t)lane,
                            .name = fm_timeline_name(t, trace, mark->name),
                            .func = FM_NONE,
                            .value = mark->value,
                            .other = mark->other };
    if (mark->subject)
        told.func = fm_timeline_function(t, trace, mark->subject - 1);
    if (told.kind == FM_MARK_VALUE || told.kind == FM_MARK_RESULT ||
        told.kind == FM_MARK_VARIABLE) {
        told.text = mark->text_len ? (const char *)marks->texts.data + mark->text_at : "";
        told.text_len = mark->text_len;
    }
    if (told.kind == FM_MARK_TASK)
        told.name = fm_timeline_task_name(t, trace, (uint32_t)mark->value);
    return each(context, &told);
}

int fm_traced_marks(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                    fm_mark_fn *each, void *context, struct fm_error *err)
{
    (void)err;
    const struct fm_traced_lane *traced = &t->traced.data[lane];
    const struct fm_trace_clock *clock = fm_timeline_clock(t, traced->trace);
    uint64_t from = from_ns ? fm_trace_clock_ticks(clock, from_ns - 1) + 1 : 0;
    uint64_t to = fm_trace_clock_ticks(clock, to_ns);
    struct fm_trace_marks marks = { 0 };
    bool wanted = true;
    for (size_t i = 0; i < traced->marks.list.len && wanted; i++) {
        const struct fm_lane_block *block = &traced->marks.list.data[i];
        struct fm_mark_facts facts;
        if (block->end < from || block->begin > to)
            continue;
        const struct fm_kept_body *body = fm_timeline_body(t, traced->trace, block->block);
        if (!body)
            continue;
        struct fm_cursor head = fm_cursor_over(body->head.data, body->head.len);
        fm_trace_marks_clear(&marks);
        if (!fm_mark_facts(&facts, &head) || !fm_trace_marks_read(&facts, &body->body, &marks)) {
            t->damaged++;
            continue;
        }
        for (size_t k = 0; k < marks.list.len && wanted; k++) {
            const struct fm_trace_mark *mark = &marks.list.data[k];
            if (mark->end >= from && mark->begin <= to && mark->kind < FM_MARK_KINDS)
                wanted = tell(t, lane, &marks, mark, each, context);
        }
    }
    fm_trace_marks_release(&marks);
    return FM_OK;
}

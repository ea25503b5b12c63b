/* Tasks of asyncio, and which process made which, for the page; see timeline.h. */
#include "timeline.h"

#include "base/memory.h"
#include "json.h"
#include "record/model/trace/lanes/timeline.h"

struct task_list {
    FM_VEC(struct fm_traced_task) tasks;
    bool more;
};

struct flow_list {
    FM_VEC(struct fm_flow) flows;
};

static bool keep_task(void *context, const struct fm_traced_task *task)
{
    struct task_list *list = context;
    list->more = list->tasks.len >= FM_ENGINE_ROWS;
    if (!list->more)
        fm_vec_push(&list->tasks, *task);
    return !list->more;
}

static bool keep_flow(void *context, const struct fm_flow *flow)
{
    struct flow_list *list = context;
    if (list->flows.len < FM_ENGINE_ROWS)
        fm_vec_push(&list->flows, *flow);
    return true;
}

static void put_tasks(struct fm_engine *e, const struct fm_recording *r, uint64_t length_ns,
                      const struct task_list *list)
{
    struct fm_result *out = &e->results[0];
    struct fm_map names = { 0 };
    fm_result_begin(out, (uint32_t)list->tasks.len);
    uint32_t *process = fm_result_u32(out), *lane = fm_result_u32(out);
    uint32_t *number = fm_result_u32(out), *name = fm_result_u32(out);
    uint32_t *creator = fm_result_u32(out);
    double *created = fm_result_f64(out), *done = fm_result_f64(out);
    fm_buffer_clear(&e->text);
    fm_buffer_add_char(&e->text, '[');
    for (size_t i = 0; i < list->tasks.len; i++) {
        const struct fm_traced_task *task = &list->tasks.data[i];
        bool is_new;
        process[i] = task->process;
        lane[i] = task->lane;
        number[i] = task->number;
        creator[i] = task->creator;
        created[i] = (double)task->created_ns;
        done[i] = (double)(task->done_ns < length_ns ? task->done_ns : length_ns);
        name[i] = *fm_map_at(&names, task->name, (uint32_t)names.len, &is_new);
        if (!is_new)
            continue;
        json_next(&e->text);
        json_text(&e->text, fm_strings_get(r->p->strings, task->name),
                  fm_strings_len(r->p->strings, task->name));
    }
    json_close(&e->text, ']');
    out->scalars[0] = list->more;
    fm_map_release(&names);
}

static void put_flows(struct fm_result *out, const struct flow_list *list)
{
    fm_result_begin(out, (uint32_t)list->flows.len);
    uint32_t *from_lane = fm_result_u32(out), *to_lane = fm_result_u32(out);
    double *from = fm_result_f64(out), *to = fm_result_f64(out);
    for (size_t i = 0; i < list->flows.len; i++) {
        from_lane[i] = list->flows.data[i].from_lane;
        to_lane[i] = list->flows.data[i].to_lane;
        from[i] = (double)list->flows.data[i].from_ns;
        to[i] = (double)list->flows.data[i].to_ns;
    }
}

int fm_engine_timeline_tasks(struct fm_engine *e, int recording)
{
    struct fm_recording *r;
    struct fm_timeline *t = fm_engine_timeline_of(e, recording, &r);
    struct task_list tasks = { 0 };
    struct flow_list flows = { 0 };
    if (!t)
        return -1;
    int status = fm_timeline_tasks(t, keep_task, &tasks, &e->err);
    if (!status)
        status = fm_timeline_flows(t, keep_flow, &flows, &e->err);
    if (!status) {
        put_tasks(e, r, fm_timeline_length_ns(t), &tasks);
        put_flows(&e->results[1], &flows);
    }
    fm_vec_release(&tasks.tasks);
    fm_vec_release(&flows.flows);
    return status < 0 ? -1 : 0;
}

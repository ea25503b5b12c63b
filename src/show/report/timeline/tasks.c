/*
 * Tasks of asyncio, from when they were made to their end (model/trace/lanes/timeline.h): how long they took, what of
 * that they ran, and the longest of them. A request of a service is such a task, or most of one.
 */
#include <stdlib.h>

#include "show/report/csv_text.h"
#include "show/report/json_text.h"
#include "show/report/number.h"
#include "show/report/timeline/timeline.h"

#define MOST_TASKS 1000u

/* Tasks of one coroutine: a run of the list, which is in that order. */
struct task_group {
    size_t first, count;
    uint64_t ran_ns, took_ns, half_ns, longest_ns;
};

struct tasks_report {
    struct fm_task_lives lives; /* by coroutine, longest first */
    FM_VEC(struct task_group) groups;
    FM_VEC(const struct fm_task_life *) longest; /* of all */
};

/* ---- finding ---- */

static uint64_t took_ns(const struct fm_task_life *life)
{
    return life->end_ns - life->begin_ns;
}

static int by_coroutine(const void *a, const void *b)
{
    const struct fm_task_life *x = a, *y = b;
    if (x->func != y->func)
        return x->func < y->func ? -1 : 1;
    if (took_ns(x) != took_ns(y))
        return took_ns(x) > took_ns(y) ? -1 : 1;
    if (x->task.process != y->task.process)
        return x->task.process < y->task.process ? -1 : 1;
    return x->task.number < y->task.number ? -1 : x->task.number > y->task.number;
}

static int by_number(const void *a, const void *b)
{
    const struct task_group *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

/* Those of the functions that were asked for. */
static void keep_chosen(const struct fm_report *r, struct fm_task_lives *lives)
{
    size_t kept = 0;
    if (r->selection.rows.len == r->flat->rows.len)
        return;
    bool *chosen = fm_calloc(r->p->functions.len + 1, sizeof *chosen);
    for (size_t i = 0; i < r->selection.rows.len; i++)
        chosen[r->flat->rows.data[r->selection.rows.data[i]].func] = true;
    for (size_t i = 0; i < lives->list.len; i++) {
        const struct fm_task_life life = lives->list.data[i];
        if (life.func != FM_NONE && chosen[life.func])
            lives->list.data[kept++] = life;
    }
    lives->list.len = kept;
    free(chosen);
}

static void group(struct tasks_report *found)
{
    const struct fm_task_life *list = found->lives.list.data;
    for (size_t i = 0, end; i < found->lives.list.len; i = end) {
        struct task_group g = { .first = i, .longest_ns = took_ns(&list[i]) };
        for (end = i; end < found->lives.list.len && list[end].func == list[i].func; end++) {
            g.ran_ns += list[end].ran_ns;
            g.took_ns += took_ns(&list[end]);
        }
        g.count = end - i;
        g.half_ns = took_ns(&list[i + g.count / 2]);
        fm_vec_push(&found->groups, g);
    }
    if (found->groups.len)
        qsort(found->groups.data, found->groups.len, sizeof *found->groups.data, by_number);
}

static int by_length(const void *a, const void *b)
{
    const struct fm_task_life *x = *(const struct fm_task_life *const *)a;
    const struct fm_task_life *y = *(const struct fm_task_life *const *)b;
    if (took_ns(x) != took_ns(y))
        return took_ns(x) > took_ns(y) ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void choose_longest(const struct fm_report *r, struct tasks_report *found)
{
    size_t most =
        r->rows_max < 0 || r->rows_max > (int)MOST_TASKS ? MOST_TASKS : (size_t)r->rows_max;
    for (size_t i = 0; i < found->lives.list.len; i++)
        fm_vec_push(&found->longest, &found->lives.list.data[i]);
    if (found->longest.len)
        qsort(found->longest.data, found->longest.len, sizeof *found->longest.data, by_length);
    found->longest.len = found->longest.len < most ? found->longest.len : most;
}

static int find(const struct fm_report *r, struct tasks_report *found, struct fm_error *err)
{
    *found = (struct tasks_report){ 0 };
    int status =
        fm_timeline_task_lives(r->timeline, r->range.from_ns, r->range.to_ns, &found->lives, err);
    keep_chosen(r, &found->lives);
    if (found->lives.list.len)
        qsort(found->lives.list.data, found->lives.list.len, sizeof *found->lives.list.data,
              by_coroutine);
    group(found);
    choose_longest(r, found);
    return status;
}

static void release(struct tasks_report *found)
{
    fm_vec_release(&found->lives.list);
    fm_vec_release(&found->groups);
    fm_vec_release(&found->longest);
}

/* ---- for people ---- */

static const char *coroutine_of(const struct fm_report *r, uint32_t func)
{
    return func == FM_NONE ? "<not seen running>"
                           : fm_profile_text(r->p, r->p->functions.data[func].qualname);
}

static void put_time(struct fm_table *t, enum fm_color color, uint64_t ns)
{
    char text[FM_NUMBER_BYTES];
    fm_table_cell(t, color, fm_number_time(text, (int64_t)ns));
}

static void put_count(struct fm_table *t, uint64_t count)
{
    char text[FM_NUMBER_BYTES];
    fm_table_cell(t, FM_COLOR_NONE, fm_number_count(text, (int64_t)count));
}

static const char *end_of(const struct fm_task_life *life)
{
    static const char *const words[FM_TASK_ENDS] = {
        [FM_TASK_UNKNOWN] = "done",
        [FM_TASK_RETURNED] = "done",
        [FM_TASK_RAISED] = "raised",
        [FM_TASK_CANCELLED] = "cancelled",
        [FM_TASK_FAILED] = "raised or cancelled",
    };
    if (life->task.done_ns == UINT64_MAX)
        return "open";
    return words[life->task.ended < FM_TASK_ENDS ? life->task.ended : 0];
}

static void put_groups(const struct fm_report *r, const struct tasks_report *found)
{
    struct fm_table t;
    fm_table_init(&t, r->style);
    fm_table_column(&t, "tasks", FM_TABLE_RIGHT);
    fm_table_column(&t, "half took up to", FM_TABLE_RIGHT);
    fm_table_column(&t, "longest", FM_TABLE_RIGHT);
    fm_table_column(&t, "ran", FM_TABLE_RIGHT);
    fm_table_column(&t, "waited", FM_TABLE_RIGHT);
    fm_table_column(&t, "coroutine", FM_TABLE_FLEXIBLE);
    for (size_t i = 0; i < found->groups.len; i++) {
        const struct task_group *g = &found->groups.data[i];
        uint32_t func = found->lives.list.data[g->first].func;
        put_count(&t, g->count);
        put_time(&t, FM_COLOR_NONE, g->half_ns);
        put_time(&t, FM_COLOR_BOLD, g->longest_ns);
        put_time(&t, FM_COLOR_NONE, g->ran_ns);
        put_time(&t, FM_COLOR_NONE, g->took_ns > g->ran_ns ? g->took_ns - g->ran_ns : 0);
        fm_table_cell(&t, FM_COLOR_NAME, coroutine_of(r, func));
    }
    fm_table_print(&t, r->out);
    fm_table_release(&t);
}

static void put_longest(const struct fm_report *r, const struct tasks_report *found)
{
    struct fm_table t;
    char text[FM_NUMBER_BYTES];
    fm_table_init(&t, r->style);
    fm_table_column(&t, "took", FM_TABLE_RIGHT);
    fm_table_column(&t, "from", FM_TABLE_RIGHT);
    fm_table_column(&t, "ran", FM_TABLE_RIGHT);
    fm_table_column(&t, "steps", FM_TABLE_RIGHT);
    fm_table_column(&t, "longest step", FM_TABLE_RIGHT);
    fm_table_column(&t, "ended", FM_TABLE_LEFT);
    fm_table_column(&t, "task · coroutine", FM_TABLE_FLEXIBLE);
    for (size_t i = 0; i < found->longest.len; i++) {
        const struct fm_task_life *life = found->longest.data[i];
        put_time(&t, FM_COLOR_BOLD, took_ns(life));
        snprintf(text, sizeof text, "%.6f s", (double)life->begin_ns / 1e9);
        fm_table_cell(&t, FM_COLOR_NONE, text);
        put_time(&t, FM_COLOR_NONE, life->ran_ns);
        put_count(&t, life->steps);
        put_time(&t, FM_COLOR_NONE, life->longest_step_ns);
        fm_table_cell(&t, FM_COLOR_DIM, end_of(life));
        fm_table_cell_pair(&t, FM_COLOR_NAME, fm_profile_text(r->p, life->task.name),
                           coroutine_of(r, life->func));
    }
    fm_table_print(&t, r->out);
    fm_table_release(&t);
}

int fm_report_tasks(const struct fm_report *r, struct fm_error *err)
{
    struct tasks_report found;
    int status = find(r, &found, err);
    if (status == 0) {
        fm_report_header(r);
        if (!found.lives.list.len) {
            fputs("no tasks of asyncio in this time\n", r->out);
        } else {
            put_groups(r, &found);
            fputc('\n', r->out);
            put_longest(r, &found);
        }
    }
    release(&found);
    return status;
}

/* ---- for programs ---- */

static void add_life(struct fm_buffer *out, const struct fm_report *r,
                     const struct fm_task_life *life)
{
    fm_buffer_add_text(out, "\n  {");
    fm_json_add_text_member(out, "task", fm_profile_text(r->p, life->task.name));
    fm_json_add_member(out, "pid", r->p->processes.data[life->task.process].pid);
    fm_json_add_member(out, "number", life->task.number);
    fm_json_add_member(out, "made_by", life->task.creator);
    fm_json_add_member(out, "begin_ns", (int64_t)life->begin_ns);
    fm_json_add_member(out, "end_ns", (int64_t)life->end_ns);
    fm_json_add_member(out, "done", life->task.done_ns != UINT64_MAX);
    fm_json_add_text_member(out, "ended", end_of(life));
    fm_json_add_member(out, "took_ns", (int64_t)took_ns(life));
    fm_json_add_member(out, "ran_ns", (int64_t)life->ran_ns);
    fm_json_add_member(out, "steps", (int64_t)life->steps);
    fm_json_add_member(out, "longest_step_ns", (int64_t)life->longest_step_ns);
    fm_json_add_member(out, "longest_step_at_ns", (int64_t)life->longest_step_at_ns);
    if (life->func != FM_NONE)
        fm_json_add_function(out, r->p, life->func);
    fm_buffer_add_char(out, '}');
}

int fm_report_tasks_json(const struct fm_report *r, struct fm_error *err)
{
    struct tasks_report found;
    fm_autobuffer out = FM_BUFFER_INIT;
    int status = find(r, &found, err);
    fm_json_add_subject(&out, r);
    fm_json_add_member(&out, "task_count", (int64_t)found.lives.list.len);
    fm_json_add_key(&out, "tasks");
    fm_buffer_add_char(&out, '[');
    for (size_t i = 0; i < found.longest.len; i++) {
        if (i)
            fm_buffer_add_char(&out, ',');
        add_life(&out, r, found.longest.data[i]);
    }
    fm_buffer_add_text(&out, "]}\n");
    if (status == 0)
        fwrite(out.data, 1, out.len, r->out);
    release(&found);
    return status;
}

int fm_report_tasks_csv(const struct fm_report *r, struct fm_error *err)
{
    struct tasks_report found;
    int status = find(r, &found, err);
    fputs("task,number,steps,begin_s,took_s,ran_s,longest_step_s,function,file,line,ended\n",
          r->out);
    for (size_t i = 0; i < found.longest.len && status == 0; i++) {
        const struct fm_task_life *life = found.longest.data[i];
        fm_csv_put_text(r, fm_profile_text(r->p, life->task.name));
        fprintf(r->out, ",%u,%llu", life->task.number, (unsigned long long)life->steps);
        fm_csv_put_seconds(r, (int64_t)life->begin_ns);
        fm_csv_put_seconds(r, (int64_t)took_ns(life));
        fm_csv_put_seconds(r, (int64_t)life->ran_ns);
        fm_csv_put_seconds(r, (int64_t)life->longest_step_ns);
        fputc(',', r->out);
        if (life->func != FM_NONE)
            fm_csv_put_function(r, life->func);
        else
            fputs(",,", r->out);
        fprintf(r->out, ",%s\n", end_of(life));
    }
    release(&found);
    return status;
}

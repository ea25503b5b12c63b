/*
 * How long tasks of asyncio took from the moment they were made to their end, and how much of that they ran;
 * see timeline.h.
 *
 * Steps are marks, and which coroutine a task runs is what begins first in a step of it: one walk along
 * each lane that has steps.
 */
#include <stdlib.h>

#include "base/map.h"
#include "record/model/trace/lanes/lanes.h"

#define GRID_NS                                                                                    \
    32u /* marks are exact, spans begin up to so much earlier: pack_blocks.c, set_grid */

struct task_step {
    uint64_t begin_ns;
    uint32_t life; /* in the list */
    uint32_t lane;
};

struct life_search {
    struct fm_timeline *t;
    struct fm_task_lives *lives;
    struct fm_map known; /* (process, number) → index in the list */
    FM_VEC(struct task_step) steps;
    size_t next; /* step of the walk */
    uint32_t lane;
};

static bool add_life(void *context, const struct fm_traced_task *task)
{
    struct life_search *s = context;
    uint64_t end_ns = task->done_ns == UINT64_MAX ? fm_timeline_length_ns(s->t) : task->done_ns;
    struct fm_task_life life = {
        .task = *task, .begin_ns = task->created_ns, .end_ns = end_ns, .func = FM_NONE
    };
    *fm_map_at(&s->known, fm_map_pair(task->process, task->number), 0, NULL) =
        (uint32_t)s->lives->list.len;
    fm_vec_push(&s->lives->list, life);
    return true;
}

static bool add_step(void *context, const struct fm_mark *mark)
{
    struct life_search *s = context;
    if (mark->kind != FM_MARK_TASK)
        return true;
    uint32_t process = fm_timeline_lane(s->t, mark->lane)->process;
    const uint32_t *at = fm_map_find(&s->known, fm_map_pair(process, (uint32_t)mark->value));
    if (!at)
        return true;
    struct fm_task_life *life = &s->lives->list.data[*at];
    uint64_t ns = mark->end_ns - mark->begin_ns;
    if (!life->steps && (!life->begin_ns || life->begin_ns > mark->begin_ns))
        life->begin_ns = mark->begin_ns; /* nobody saw it being made */
    life->end_ns = life->end_ns > mark->end_ns ? life->end_ns : mark->end_ns;
    life->steps++;
    life->ran_ns += ns;
    if (ns >= life->longest_step_ns) {
        life->longest_step_ns = ns;
        life->longest_step_at_ns = mark->begin_ns;
    }
    fm_vec_push(&s->steps, ((struct task_step){ mark->begin_ns, *at, mark->lane }));
    return true;
}

static int by_lane_and_time(const void *a, const void *b)
{
    const struct task_step *x = a, *y = b;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

static bool is_coroutine(const struct fm_profile *p, uint32_t func)
{
    return p->functions.data[func].flags & (FM_FUNCTION_COROUTINE | FM_FUNCTION_GENERATOR);
}

/* Spans come in the order of their begin: the first coroutine at or after that of a step is the task's. */
static bool name_step(void *context, const struct fm_lane_event *event)
{
    struct life_search *s = context;
    if (event->ends || !is_coroutine(s->t->p, event->span.func))
        return true;
    uint64_t at_ns = event->span.begin_ns + GRID_NS;
    while (s->next + 1 < s->steps.len && s->steps.data[s->next + 1].lane == s->lane &&
           s->steps.data[s->next + 1].begin_ns <= at_ns)
        s->next++; /* a step in which nothing was seen */
    const struct task_step *step = &s->steps.data[s->next];
    if (step->begin_ns > at_ns)
        return true;
    if (s->lives->list.data[step->life].func == FM_NONE)
        s->lives->list.data[step->life].func = event->span.func;
    s->next++;
    return s->next < s->steps.len && s->steps.data[s->next].lane == s->lane;
}

static int name_all(struct life_search *s, struct fm_error *err)
{
    int status = 0;
    if (s->steps.len)
        qsort(s->steps.data, s->steps.len, sizeof *s->steps.data, by_lane_and_time);
    for (size_t i = 0; i < s->steps.len && status == 0;) {
        s->next = i;
        s->lane = s->steps.data[i].lane;
        status = fm_timeline_events(s->t, s->lane, s->steps.data[i].begin_ns, UINT64_MAX, name_step,
                                    s, err);
        while (i < s->steps.len && s->steps.data[i].lane == s->lane)
            i++;
    }
    return status;
}

/* Those that were there in the range, each with all of its life. */
static void keep_range(struct fm_task_lives *lives, uint64_t from_ns, uint64_t to_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < lives->list.len; i++) {
        const struct fm_task_life life = lives->list.data[i];
        if (life.begin_ns < to_ns && life.end_ns >= from_ns)
            lives->list.data[kept++] = life;
    }
    lives->list.len = kept;
}

int fm_timeline_task_lives(struct fm_timeline *t, uint64_t from_ns, uint64_t to_ns,
                           struct fm_task_lives *into, struct fm_error *err)
{
    struct life_search s = { .t = t, .lives = into };
    int status = fm_timeline_tasks(t, add_life, &s, err);
    if (status == 0)
        status = fm_timeline_marks(t, FM_NONE, 0, UINT64_MAX, add_step, &s, err);
    if (status == 0)
        status = name_all(&s, err);
    keep_range(into, from_ns, to_ns);
    fm_map_release(&s.known);
    fm_vec_release(&s.steps);
    return status;
}

/*
 * Where processes come from: flows from a parent to its child; see timeline.h.
 *
 * A child knows its parent's pid and when it began. The thread that made it is the one with the mark of a
 * fork closest before, else the parent's first.
 */
#include "record/model/trace/lanes/lanes.h"

struct fork_search {
    uint64_t before_ns, at_ns;
    uint32_t pid, lane;
    bool named; /* the mark names the child */
};

static bool take_mark(void *context, const struct fm_mark *mark)
{
    struct fork_search *search = context;
    bool named = mark->value && mark->value == search->pid;
    if (mark->kind != FM_MARK_FORK || (mark->value && !named) || (search->named && !named))
        return true;
    if (!named && mark->begin_ns > search->before_ns)
        return true;
    search->named = search->named || named;
    search->at_ns = mark->begin_ns;
    search->lane = mark->lane;
    return true;
}

/* The first lane of a process; FM_NONE: it has none. */
static uint32_t first_lane(const struct fm_timeline *t, uint32_t process)
{
    uint32_t first = FM_NONE;
    for (size_t i = 0; i < t->lanes.len; i++)
        if (t->lanes.data[i].process == process &&
            (first == FM_NONE || t->lanes.data[i].begin_ns < t->lanes.data[first].begin_ns))
            first = (uint32_t)i;
    return first;
}

/* Of several processes with that pid the one that was there when the child began. */
static uint32_t parent_of(const struct fm_profile *p, uint32_t child)
{
    const struct fm_process *of = &p->processes.data[child];
    uint32_t parent = FM_NONE;
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct fm_process *process = &p->processes.data[i];
        if (i != child && process->pid == of->parent_pid && process->run == of->run &&
            process->start_ns <= of->start_ns &&
            (parent == FM_NONE || process->start_ns > p->processes.data[parent].start_ns))
            parent = i;
    }
    return parent;
}

int fm_timeline_flows(struct fm_timeline *t, fm_flow_fn *each, void *context, struct fm_error *err)
{
    for (uint32_t child = 0; child < t->p->processes.len; child++) {
        uint32_t parent = parent_of(t->p, child), to = first_lane(t, child);
        uint32_t from = parent == FM_NONE ? FM_NONE : first_lane(t, parent);
        if (from == FM_NONE || to == FM_NONE)
            continue;
        uint64_t begin = t->lanes.data[to].begin_ns;
        struct fork_search search = { begin, begin, t->p->processes.data[child].pid, from, false };
        for (uint32_t lane = 0; lane < t->traced.len; lane++) {
            int status = FM_OK;
            if (t->lanes.data[lane].process == parent)
                status = fm_timeline_marks(t, lane, 0, UINT64_MAX, take_mark, &search, err);
            if (status)
                return status;
        }
        struct fm_flow flow = { search.lane, to, search.at_ns, begin };
        if (!each(context, &flow))
            break;
    }
    return FM_OK;
}

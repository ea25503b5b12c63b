/* Sampled lanes as lanes of a timeline; see sampled.h, lanes.h. */
#include "record/model/trace/lanes/lanes.h"
#include "record/model/trace/lanes/sampled.h"

void fm_sampled_find(struct fm_timeline *t)
{
    t->sampled = fm_sampled_open(t->p);
    for (size_t i = 0; t->sampled && i < fm_sampled_lanes(t->sampled); i++)
        fm_vec_push(&t->lanes, *fm_sampled_lane(t->sampled, i));
}

static size_t number_of(const struct fm_timeline *t, size_t lane)
{
    return lane - t->traced.len;
}

static int tell_events(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                       fm_lane_event_fn *each, void *context, struct fm_error *err)
{
    (void)err;
    fm_sampled_events(t->sampled, number_of(t, lane), from_ns, to_ns, each, context);
    return 0;
}

static int tell_cells(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                      uint64_t cell_ns, struct fm_cells *into, struct fm_error *err)
{
    (void)err;
    fm_sampled_cells(t->sampled, number_of(t, lane), from_ns, to_ns, cell_ns, into);
    return 0;
}

/* Samples see nothing that is no call. */
static int tell_marks(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                      fm_mark_fn *each, void *context, struct fm_error *err)
{
    (void)t, (void)lane, (void)from_ns, (void)to_ns, (void)each, (void)context, (void)err;
    return 0;
}

const struct fm_lane_ops fm_sampled_ops = { tell_events, tell_cells, tell_marks };

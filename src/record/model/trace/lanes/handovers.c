/*
 * Whose turn it was: hand-overs of the interpreter between the threads of a process; see timeline.h.
 *
 * In a Python with a global lock every event happens under it. So where two neighbouring events of a
 * process are of different threads, the lock went from one to the other in between; and since the last event of a
 * thread before its turn it may have waited, or have been somewhere without the lock.
 */
#include <stdlib.h>

#include "record/model/trace/lanes/lanes.h"

#define EVENTS_MAX 4000000u /* that are held in memory */

/* A turn as it is gathered: events of a lane without another's between them are not yet known, so all of
 * them are kept. */
struct turn_event {
    uint64_t at_ns;
    uint32_t lane;
};

struct turn_events {
    FM_VEC(struct turn_event) list;
    uint32_t lane;
    uint64_t from_ns;
    bool full;
};

static bool keep_event(void *context, const struct fm_lane_event *event)
{
    struct turn_events *events = context;
    bool inside = event->at_ns >= events->from_ns;
    if (inside && !(event->ends && event->span.flags & FM_SPAN_CUT))
        fm_vec_push(&events->list, ((struct turn_event){ event->at_ns, events->lane }));
    events->full = events->list.len >= EVENTS_MAX;
    return !events->full;
}

static int compare_events(const void *a, const void *b)
{
    const struct turn_event *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return x->lane < y->lane ? -1 : x->lane > y->lane;
}

static void tell(const struct turn_events *events, size_t lanes, fm_handover_fn *each,
                 void *context)
{
    size_t *next = fm_calloc(lanes, sizeof *next); /* by lane: the event after its last; 0: none */
    for (size_t i = 0; i < events->list.len; i++) {
        const struct turn_event *event = &events->list.data[i];
        const struct turn_event *before = i ? event - 1 : event;
        if (before->lane != event->lane) {
            struct fm_handover handover = { .from_lane = before->lane,
                                            .to_lane = event->lane,
                                            .after_ns = before->at_ns,
                                            .before_ns = event->at_ns,
                                            .idle_since_ns = UINT64_MAX,
                                            .taken_ns =
                                                events->list.data[next[event->lane]].at_ns };
            if (next[event->lane])
                handover.idle_since_ns = events->list.data[next[event->lane] - 1].at_ns;
            if (!each(context, &handover))
                break;
        }
        next[event->lane] = i + 1;
    }
    free(next);
}

int fm_timeline_handovers(struct fm_timeline *t, uint32_t process, uint64_t from_ns, uint64_t to_ns,
                          fm_handover_fn *each, void *context, struct fm_error *err)
{
    struct turn_events events = { .from_ns = from_ns };
    int status = FM_OK;
    for (size_t lane = 0; lane < t->traced.len && !status && !events.full; lane++) {
        events.lane = (uint32_t)lane;
        if (t->lanes.data[lane].process == process)
            status = fm_timeline_events(t, lane, from_ns, to_ns, keep_event, &events, err);
    }
    if (!status && events.full)
        status = fm_error_set(err, FM_OVER_LIMIT,
                              "hand-overs are found in at most %u events: ask for a shorter time",
                              EVENTS_MAX);
    if (!status && events.list.len) {
        qsort(events.list.data, events.list.len, sizeof *events.list.data, compare_events);
        tell(&events, t->lanes.len, each, context);
    }
    fm_vec_release(&events.list);
    return status;
}

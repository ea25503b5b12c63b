/*
 * Whose turn it was: hand-overs of the interpreter between the threads of a process; see timeline.h.
 *
 * In a Python with a global lock every event happens under it. So where two neighbouring events of a
 * process are of different threads, the lock went from one to the other in between; and since the last event of a
 * thread before its turn it may have waited, or have been somewhere without the lock.
 *
 * Events of all lanes are put in order in pieces of time that fit into memory. From one piece to the next little
 * is kept: of each lane when it was last heard of, and where it was then.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "base/runs.h"
#include "record/model/trace/lanes/lanes.h"

#define EVENTS_MAX   4000000u /* that are held in memory */
#define EVENTS_USUAL 1000000u /* in a piece, if they are spread evenly */

struct open_code {
    uint32_t func, depth; /* of what is open innermost, regions aside; func FM_NONE: nothing is */
};

struct turn_event {
    uint64_t at_ns;
    uint32_t lane;
    struct open_code after; /* where the thread was from then on */
    uint32_t unused;
};

/* What is known of a lane so far. */
struct lane_turn {
    bool heard;
    uint64_t last_ns;  /* its last event */
    uint64_t taken_ns; /* the first event of another behind it */
    struct open_code place;
};

struct turn_search {
    struct fm_timeline *t;
    uint32_t process;
    fm_handover_fn *each;
    void *context;
    /* of all pieces */
    struct lane_turn *lanes;
    struct turn_event before;
    bool any, stopped;
    uint64_t first_ns; /* the first event of all */
    /* of one */
    FM_VEC(struct turn_event) events;
    FM_VEC(struct open_code) open; /* on the lane that is gone through */
    uint32_t lane;
    uint64_t from_ns;
    bool full;
};

/* ---- gathering ---- */

static struct open_code place_of(const struct turn_search *s)
{
    return s->open.len ? s->open.data[s->open.len - 1] : (struct open_code){ FM_NONE, 0 };
}

static void follow(struct turn_search *s, const struct fm_lane_event *event)
{
    const struct fm_time_span *span = &event->span;
    if (s->open.len > span->depth)
        s->open.len = span->depth;
    if (event->ends)
        return;
    struct open_code outer = place_of(s), own = { span->func, span->depth };
    fm_vec_push(&s->open, span->flags & FM_SPAN_REGION ? outer : own);
}

static bool keep_event(void *context, const struct fm_lane_event *event)
{
    struct turn_search *s = context;
    follow(s, event);
    if (event->at_ns < s->from_ns) {
        if (!s->lanes[s->lane].heard)
            s->lanes[s->lane].place = place_of(s); /* open when the search begins */
        return true;
    }
    if (!(event->ends && event->span.flags & (FM_SPAN_CUT | FM_SPAN_OPEN)))
        fm_vec_push(&s->events, ((struct turn_event){ event->at_ns, s->lane, place_of(s), 0 }));
    s->full = s->events.len >= EVENTS_MAX;
    return !s->full;
}

static int compare_events(const void *a, const void *b)
{
    const struct turn_event *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return x->lane < y->lane ? -1 : x->lane > y->lane;
}

/* ---- telling ---- */

static void tell(struct turn_search *s, const struct turn_event *event)
{
    const struct lane_turn *own = &s->lanes[event->lane];
    struct fm_handover handover = { .from_lane = s->before.lane,
                                    .to_lane = event->lane,
                                    .after_ns = s->before.at_ns,
                                    .before_ns = event->at_ns,
                                    .idle_since_ns = own->heard ? own->last_ns : UINT64_MAX,
                                    .taken_ns = own->heard ? own->taken_ns : s->first_ns,
                                    .func = own->place.func,
                                    .depth = own->place.depth };
    s->stopped = !s->each(s->context, &handover);
}

static void take(struct turn_search *s, const struct turn_event *event)
{
    struct lane_turn *own = &s->lanes[event->lane];
    if (!s->any)
        s->first_ns = event->at_ns;
    if (s->any && s->before.lane != event->lane) {
        s->lanes[s->before.lane].taken_ns = event->at_ns;
        tell(s, event);
    }
    own->heard = s->any = true;
    own->last_ns = event->at_ns;
    own->place = event->after;
    s->before = *event;
}

/* All of the time between two instants; where there is too much of it, one half after the other. */
static int search(struct turn_search *s, uint64_t from_ns, uint64_t to_ns, struct fm_error *err)
{
    int status = FM_OK;
    s->events.len = 0;
    s->full = false;
    s->from_ns = from_ns;
    for (size_t lane = 0; lane < s->t->traced.len && !status && !s->full; lane++) {
        s->lane = (uint32_t)lane;
        s->open.len = 0;
        if (s->t->lanes.data[lane].process == s->process)
            status = fm_timeline_events(s->t, lane, from_ns, to_ns, keep_event, s, err);
    }
    if (s->full && to_ns - from_ns < 2)
        return fm_error_set(err, FM_OVER_LIMIT, "more than %u events in a nanosecond", EVENTS_MAX);
    if (s->full) {
        uint64_t middle_ns = from_ns + (to_ns - from_ns) / 2;
        status = search(s, from_ns, middle_ns, err);
        return status || s->stopped ? status : search(s, middle_ns, to_ns, err);
    }
    fm_sort_runs(s->events.data, s->events.len, sizeof *s->events.data, compare_events);
    for (size_t i = 0; i < s->events.len && !s->stopped; i++)
        take(s, &s->events.data[i]);
    return status;
}

/* How long pieces are, if what happens is spread evenly. */
static uint64_t piece_ns(const struct fm_timeline *t, uint32_t process)
{
    double events = 0;
    for (size_t lane = 0; lane < t->traced.len; lane++)
        if (t->lanes.data[lane].process == process)
            events += (double)t->lanes.data[lane].events;
    double share = events > EVENTS_USUAL ? EVENTS_USUAL / events : 1;
    return (uint64_t)((double)t->length_ns * share) + 1;
}

int fm_timeline_handovers(struct fm_timeline *t, uint32_t process, uint64_t from_ns, uint64_t to_ns,
                          fm_handover_fn *each, void *context, struct fm_error *err)
{
    struct turn_search s = { .t = t, .process = process, .each = each, .context = context };
    uint64_t piece = piece_ns(t, process);
    int status = FM_OK;
    s.lanes = fm_calloc(t->lanes.len + 1, sizeof *s.lanes);
    for (size_t i = 0; i < t->lanes.len; i++)
        s.lanes[i].place.func = FM_NONE;
    to_ns = to_ns < t->length_ns ? to_ns : t->length_ns + 1; /* the last instant is of it, too */
    for (uint64_t at = from_ns, next; at < to_ns && !status && !s.stopped; at = next) {
        next = to_ns - at > piece ? at + piece : to_ns;
        status = search(&s, at, next, err);
    }
    free(s.lanes);
    fm_vec_release(&s.events);
    fm_vec_release(&s.open);
    return status;
}

/* ---- sums ---- */

struct wait_sums {
    const struct fm_profile *p;
    struct fm_gil_wait *waits; /* by lane */
    uint64_t from_ns;
};

static bool add_wait(void *context, const struct fm_handover *handover)
{
    struct wait_sums *sums = context;
    struct fm_gil_wait *wait = &sums->waits[handover->to_lane];
    wait->turns++;
    if (!fm_handover_is_wait(sums->p, handover))
        return true;
    uint64_t idle_ns =
        handover->idle_since_ns == UINT64_MAX ? sums->from_ns : handover->idle_since_ns;
    uint64_t most_ns = handover->before_ns - idle_ns;
    wait->waits++;
    wait->most_ns += most_ns;
    if (handover->after_ns > handover->taken_ns)
        wait->least_ns += handover->after_ns - handover->taken_ns;
    if (most_ns > wait->longest_ns) {
        wait->longest_ns = most_ns;
        wait->longest_at_ns = idle_ns;
    }
    return true;
}

static bool is_first_of_process(const struct fm_timeline *t, size_t lane)
{
    for (size_t i = 0; i < lane; i++)
        if (t->lanes.data[i].process == t->lanes.data[lane].process)
            return false;
    return true;
}

int fm_timeline_gil_waits(struct fm_timeline *t, uint64_t from_ns, uint64_t to_ns,
                          struct fm_gil_waits *into, struct fm_error *err)
{
    int status = FM_OK;
    into->list.len = 0;
    for (size_t lane = 0; lane < t->traced.len; lane++) {
        uint32_t process = t->lanes.data[lane].process;
        struct fm_gil_wait wait = { .known = t->p->processes.data[process].c_calls };
        fm_vec_push(&into->list, wait);
    }
    struct wait_sums sums = { t->p, into->list.data, from_ns };
    for (size_t lane = 0; lane < t->traced.len && !status; lane++)
        if (into->list.data[lane].known && is_first_of_process(t, lane))
            status = fm_timeline_handovers(t, t->lanes.data[lane].process, from_ns, to_ns, add_wait,
                                           &sums, err);
    return status;
}

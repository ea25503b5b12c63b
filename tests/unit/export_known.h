/*
 * A timeline that is known to the nanosecond, for tests of what is written of timelines. Times in ns since it began, which is
 * 5,000,000,000 of the machine's clock.
 *
 *     lane 0, process 7, thread 8 "main"       main 100 … 2000
 *                                                ├ Box.f 200 … 1000, in it Box.f 200 … 700, in it len 300 … 300
 *                                                └ phase (a region) 1000 … 1500, in it len 1200 … 1210
 *                                              late 1999 … 2000 is not there, but open: tail 3000 … 4000 (the end)
 *       marks: ValueError raised at 650, "here" at 1100, level = 1.5 at 400 and -2 at 900, "job" 500 … 900 and
 *       600 … 1200 (they overlap), a collection 1600 … 1700 of generation 2, task 1 "T" 100 … 200 and 300 … 400,
 *       task 2 "T" 200 … 300, 3 events lost 2500 … 2600, fork of 9 at 1800
 *     lane 1, process 7, thread 8 again "twin" main 0 … 50
 *     lane 2, process 9, thread 9, forked      Box.f 1850 … 1900
 */
#ifndef FM_TESTS_EXPORT_KNOWN_H
#define FM_TESTS_EXPORT_KNOWN_H

#include <string.h>

#include "record/formats/timeline/export.h"

#define KNOWN_START  5000000000u
#define KNOWN_LENGTH 4000u

enum known_function { KNOWN_MAIN, KNOWN_F, KNOWN_LEN, KNOWN_PHASE, KNOWN_TAIL, KNOWN_FUNCTIONS };

struct known {
    struct fm_profile *p;
    uint32_t func[KNOWN_FUNCTIONS];
    struct fm_lane lanes[3];
};

static inline uint32_t known_function(struct fm_profile *p, uint8_t kind, const char *name,
                                      const char *file, uint32_t line)
{
    struct fm_function f = { .kind = kind, .line = line };
    f.name = f.qualname = fm_profile_string(p, name);
    f.file = fm_profile_string(p, file);
    return fm_profile_function(p, &f);
}

static inline void known_init(struct known *k)
{
    struct fm_profile *p = k->p = fm_profile_new();
    uint32_t command = fm_profile_string(p, "python3 app.py");
    fm_profile_fact(p, "command", "python3 app.py");
    fm_profile_process(p, &(struct fm_process){ .pid = 7,
                                                .command = command,
                                                .start_ns = KNOWN_START - 1000,
                                                .start_real_ns = 1700000000000000000u });
    fm_profile_process(p, &(struct fm_process){ .pid = 9, .command = command, .forked = true });
    fm_profile_thread(p, &(struct fm_thread){ .tid = 8, .name = fm_profile_string(p, "main") });
    fm_profile_thread(p, &(struct fm_thread){ .tid = 8, .name = fm_profile_string(p, "twin") });
    fm_profile_thread(p, &(struct fm_thread){ .process = 1, .tid = 9 });
    k->func[KNOWN_MAIN] = known_function(p, FM_FUNCTION_PYTHON, "main", "/srv/app.py", 3);
    k->func[KNOWN_F] = known_function(p, FM_FUNCTION_PYTHON, "Box.f", "/srv/app.py", 12);
    k->func[KNOWN_LEN] = known_function(p, FM_FUNCTION_C, "<built-in function len>", "", 0);
    k->func[KNOWN_PHASE] = known_function(p, FM_FUNCTION_REGION, "ph\"ase \xc3\xa9", "", 0);
    k->func[KNOWN_TAIL] = known_function(p, FM_FUNCTION_PYTHON, "tail", "/srv/b.py", 7);
    k->lanes[0] = (struct fm_lane){ .end_ns = KNOWN_LENGTH, .depth = 4, .events = 15 };
    k->lanes[1] = (struct fm_lane){ .thread = 1, .end_ns = 50, .depth = 1, .events = 2 };
    k->lanes[2] = (struct fm_lane){
        .process = 1, .thread = 2, .begin_ns = 1850, .end_ns = 1900, .depth = 1, .events = 2
    };
}

static inline const struct fm_lane *known_lane(void *context, size_t lane)
{
    return &((struct known *)context)->lanes[lane];
}

struct known_edge {
    uint16_t at_ns, begin_ns;
    bool ends;
    uint8_t function, depth;
    uint8_t flags;
};

/* As a timeline tells it (timeline.h), of all of it. */
static inline int known_events(void *context, size_t lane, uint64_t from_ns, uint64_t to_ns,
                               fm_lane_event_fn *each, void *each_context, struct fm_error *err)
{
    static const struct known_edge first[] = {
        { 100, 100, false, KNOWN_MAIN, 0, 0 },
        { 200, 200, false, KNOWN_F, 1, 0 },
        { 200, 200, false, KNOWN_F, 2, 0 },
        { 300, 300, false, KNOWN_LEN, 3, 0 },
        { 300, 300, true, KNOWN_LEN, 3, 0 },
        { 700, 200, true, KNOWN_F, 2, FM_SPAN_UNWOUND },
        { 1000, 200, true, KNOWN_F, 1, 0 },
        { 1000, 1000, false, KNOWN_PHASE, 1, FM_SPAN_REGION },
        { 1200, 1200, false, KNOWN_LEN, 2, 0 },
        { 1210, 1200, true, KNOWN_LEN, 2, 0 },
        { 1500, 1000, true, KNOWN_PHASE, 1, FM_SPAN_REGION },
        { 2000, 100, true, KNOWN_MAIN, 0, 0 },
        { 3000, 3000, false, KNOWN_TAIL, 0, 0 },
        { 4000, 3000, true, KNOWN_TAIL, 0, FM_SPAN_OPEN },
    };
    static const struct known_edge second[] = { { 0, 0, false, KNOWN_MAIN, 0, 0 },
                                                { 50, 0, true, KNOWN_MAIN, 0, 0 } };
    static const struct known_edge third[] = { { 1850, 1850, false, KNOWN_F, 0, 0 },
                                               { 1900, 1850, true, KNOWN_F, 0, 0 } };
    const struct known_edge *edges = lane == 0 ? first : lane == 1 ? second : third;
    size_t n = lane == 0 ? FM_COUNT(first) : 2;
    struct known *k = context;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        struct fm_lane_event e = { .at_ns = edges[i].at_ns, .ends = edges[i].ends };
        e.span.func = k->func[edges[i].function];
        e.span.begin_ns = edges[i].begin_ns;
        e.span.end_ns = edges[i].at_ns;
        e.span.depth = edges[i].depth;
        e.span.flags = edges[i].flags;
        if (from_ns == 0 && to_ns >= KNOWN_LENGTH && !each(each_context, &e))
            break;
    }
    return 0;
}

static inline uint64_t known_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline int known_marks(void *context, uint32_t lane, uint64_t from_ns, uint64_t to_ns,
                              fm_mark_fn *each, void *each_context, struct fm_error *err)
{
    struct known *k = context;
    struct fm_profile *p = k->p;
    uint32_t job = fm_profile_string(p, "job"), task = fm_profile_string(p, "T");
    uint32_t level = fm_profile_string(p, "level");
    const struct fm_mark marks[] = {
        { 100, 200, FM_MARK_TASK, 0, task, FM_NONE, 1, 0 },
        { 200, 300, FM_MARK_TASK, 0, task, FM_NONE, 2, 0 },
        { 300, 400, FM_MARK_TASK, 0, task, FM_NONE, 1, 0 },
        { 400, 400, FM_MARK_COUNTER, 0, level, FM_NONE, known_bits(1.5), 0 },
        { 500, 900, FM_MARK_REGION, 0, job, FM_NONE, 0, 0 },
        { 600, 1200, FM_MARK_REGION, 0, job, FM_NONE, 0, 0 },
        { 650, 650, FM_MARK_EXCEPTION, 0, fm_profile_string(p, "ValueError"), k->func[KNOWN_F], 0,
          0 },
        { 900, 900, FM_MARK_COUNTER, 0, level, FM_NONE, known_bits(-2), 0 },
        { 1100, 1100, FM_MARK_INSTANT, 0, fm_profile_string(p, "here"), FM_NONE, 0, 0 },
        { 1600, 1700, FM_MARK_COLLECTION, 0, 0, FM_NONE, 2, 31 },
        { 1800, 1800, FM_MARK_FORK, 0, 0, FM_NONE, 9, 0 },
        { 2500, 2600, FM_MARK_LOST, 0, 0, FM_NONE, 3, 0 },
    };
    (void)from_ns;
    (void)to_ns;
    (void)err;
    for (size_t i = 0; lane == 0 && i < FM_COUNT(marks); i++)
        if (!each(each_context, &marks[i]))
            break;
    return 0;
}

static inline struct fm_export_from known_from(struct known *k)
{
    return (struct fm_export_from){ .context = k,
                                    .start_ns = KNOWN_START,
                                    .length_ns = KNOWN_LENGTH,
                                    .lanes = 3,
                                    .lane = known_lane,
                                    .events = known_events,
                                    .marks = known_marks };
}

#endif

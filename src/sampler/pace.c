/* When the next round is due at the highest rate; see pace.h. */
#include "sampler/pace.h"

#define STEP        0.02    /* by how much of itself an estimate is moved by a round */
#define MOST        0.85    /* of the time */
#define UNEVEN      2.5     /* times what is usual */
#define SHORT_NS    12000.0 /* what hardly any function is shorter than, and a look need not be more even than */
#define LONGEST_NS  200000.0
#define MAX_WEIGHT  10.0    /* of a round */

/* Move an estimate of what a part of the rounds do not exceed: in the long run as much up as down. */
static void follow(double *estimate, double ns, double part, double weight)
{
    double step = STEP * weight * (ns > *estimate ? part : part - 1);
    *estimate *= 1 + (step > -0.5 ? step : -0.5);
}

uint64_t fm_pace_next(struct fm_pace *pace, uint64_t cost_ns, uint64_t now_ns, uint64_t chance)
{
    double took_ns = (double)cost_ns + 1;
    if (pace->usual_ns <= 0)
        pace->usual_ns = pace->long_ns = took_ns;
    double weight = took_ns / pace->usual_ns;
    follow(&pace->usual_ns, took_ns, 0.5, 1);
    follow(&pace->long_ns, took_ns, MOST, weight < MAX_WEIGHT ? weight : MAX_WEIGHT);
    if (pace->long_ns < SHORT_NS || pace->long_ns < UNEVEN * pace->usual_ns)
        return now_ns;
    double distance_ns = pace->long_ns < LONGEST_NS ? pace->long_ns : LONGEST_NS;
    distance_ns *= 1 + (double)(chance % 1024) / 4096;
    /* From when it was due, not from when it began: that may have been late because of the one before. */
    uint64_t due_ns = pace->due_ns + (uint64_t)distance_ns;
    pace->due_ns = due_ns > now_ns ? due_ns : now_ns + chance % ((uint64_t)distance_ns + 1);
    return pace->due_ns;
}

/* The stretch of time that a report is of; see report_range.h. */
#include "commands/report/report_range.h"

#include <math.h>

#include "commands/inputs.h"
#include "record/model/trace/lanes/timeline.h"

bool fm_report_range_is_asked(const struct fm_report_options *o)
{
    return o->from_said || o->to_said || fm_part_is_of_timeline(o->part);
}

int fm_report_range_check(const struct fm_report_options *o, struct fm_error *err)
{
    bool of_timeline = fm_part_is_of_timeline(o->part);
    if (!fm_report_range_is_asked(o))
        return 0;
    if (o->memory)
        return fm_error_set(err, FM_USAGE,
                            of_timeline
                                ? "the timeline is one of time, and does not go with --memory"
                                : "--from and --to are of time; of memory there is --at 1s..2s");
    if (fm_part_is_of_lines(o->part) || o->part == FM_PART_WAITS || o->part == FM_PART_SPOTS ||
        o->part == FM_PART_REGIONS)
        return fm_error_set(
            err, FM_USAGE,
            "lines, waits, expressions and regions are recorded without their times, "
            "so --from and --to do not go with them");
    if (of_timeline && o->states)
        return fm_error_set(err, FM_USAGE,
                            "--cpu and --state do not go with a report of the timeline");
    return 0;
}

static uint64_t instant_ns(const struct fm_moment *m, uint64_t length_ns)
{
    double ns = m->percent ? (double)length_ns * m->value / 100 : m->value;
    return ns < 9e18 ? (uint64_t)llround(ns) : UINT64_MAX / 2;
}

static int find_range(const struct fm_report_options *o, const struct fm_timeline *t,
                      struct fm_report_range *range, struct fm_error *err)
{
    uint64_t length_ns = fm_timeline_length_ns(t);
    *range = (struct fm_report_range){ .asked = o->from_said || o->to_said,
                                       .to_ns = length_ns,
                                       .length_ns = length_ns };
    if (o->from_said)
        range->from_ns = instant_ns(&o->from, length_ns);
    if (o->to_said)
        range->to_ns = instant_ns(&o->to, length_ns);
    if (range->from_ns >= length_ns)
        return fm_error_set(err, FM_UNSUPPORTED,
                            "%s goes from 0 to %.3fs, and what was asked for lies behind",
                            o->files[0], floor((double)length_ns / 1e6) / 1e3);
    range->to_ns = range->to_ns < length_ns ? range->to_ns : length_ns;
    if (range->from_ns >= range->to_ns)
        return fm_error_set(err, FM_USAGE, "--from %.6gs is not before --to %.6gs",
                            (double)range->from_ns / 1e9, (double)range->to_ns / 1e9);
    return 0;
}

static bool has_traced_lanes(const struct fm_timeline *t)
{
    for (size_t i = 0; i < fm_timeline_lanes(t); i++)
        if (fm_timeline_lane(t, i)->kind == FM_LANE_TRACED)
            return true;
    return false;
}

static int fail_without_timeline(const struct fm_profile *p, const struct fm_report_options *o,
                                 struct fm_error *err)
{
    const char *lack = fm_inputs_lack(p);
    return fm_error_set(err, FM_UNSUPPORTED, "%s has no timeline: %s", o->files[0],
                        lack ? lack
                             : "it was recorded with --no-timeline, neither sampled nor traced, or "
                               "by a version that kept none");
}

int fm_report_range_open(const struct fm_report_options *o, struct fm_profile **p,
                         struct fm_timeline **t, struct fm_report_range *range,
                         struct fm_error *err)
{
    *t = fm_timeline_open(*p, err);
    if (!*t && err->status)
        return err->status;
    if (!*t || !fm_timeline_length_ns(*t))
        return fail_without_timeline(*p, o, err);
    if (find_range(o, *t, range, err) < 0)
        return err->status;
    if (o->part != FM_PART_TIMELINE && fm_part_is_of_timeline(o->part) && !has_traced_lanes(*t))
        return fm_error_set(err, FM_UNSUPPORTED,
                            "%s was sampled, so single calls are not known: `fathom run --trace` "
                            "records each",
                            o->files[0]);
    if (fm_part_is_of_timeline(o->part))
        return 0;
    struct fm_profile *part = fm_timeline_profile(*t, range->from_ns, range->to_ns, err);
    fm_timeline_free(*t);
    *t = NULL;
    if (!part)
        return err->status;
    fm_profile_free(*p);
    *p = part;
    return 0;
}

/* What goes together on the command line of `fathom report`, and what follows from what was left open; see report_options.h. */
#include "commands/report/report_options.h"

#include "commands/report/report_range.h"

/* ---- what goes together ---- */

int fm_report_options_take_memory(struct fm_report_options *o, struct fm_error *err)
{
    o->memory = true;
    if (o->states || o->part == FM_PART_SOURCE || o->part == FM_PART_ANNOTATE ||
        fm_part_is_of_samples(o->part))
        return fm_error_set(err, FM_USAGE,
                            "--source, --annotate, --states, --waits, --spots, --cpu and --state "
                            "are of time, and do not go with --memory");
    if (o->of_lines)
        return fm_error_set(err, FM_USAGE, "%s is of time, and does not go with --memory",
                            o->of_lines);
    if (o->layout == FM_LAYOUT_PSTATS)
        return fm_error_set(err, FM_USAGE, "pstats knows no memory: --pstats does not go with it");
    return 0;
}

int fm_report_options_check(struct fm_report_options *o, struct fm_error *err)
{
    if (o->part == FM_PART_REGIONS && (o->thread >= 0 || o->edits.len))
        return fm_error_set(
            err, FM_USAGE,
            "regions are recorded for all threads of a process together, and beside "
            "calling contexts: --thread, --fold, --filter and --root do not go with "
            "them");
    if (fm_instant_of(fm_query_metric(&o->query)) != FM_INSTANTS)
        o->memory = true; /* who sorts by memory asks for it */
    if (fm_report_range_check(o, err) < 0)
        return err->status;
    if (o->memory)
        return fm_report_options_take_memory(o, err);
    if (o->of_lines && !o->part_said) { /* who asks for columns of lines asks for lines */
        o->part = FM_PART_LINES;
        o->part_said = true;
    }
    bool lines = fm_part_is_of_lines(o->part);
    if (o->of_lines && !lines)
        return fm_error_set(err, FM_USAGE, "%s goes with --lines, --hot or --annotate",
                            o->of_lines);
    if (lines && o->edits.len)
        return fm_error_set(err, FM_USAGE,
                            "--fold, --filter and --root reshape calling contexts, and lines have "
                            "none");
    if (lines && o->thread >= 0)
        return fm_error_set(err, FM_USAGE,
                            "the lines of all threads of a process are recorded together, so "
                            "--thread does not go with them");
    if ((o->part == FM_PART_WAITS || o->part == FM_PART_SPOTS) && o->thread >= 0)
        return fm_error_set(err, FM_USAGE,
                            "the places of all threads of a process are recorded together, so "
                            "--thread does not go with --waits or --spots");
    if (o->part == FM_PART_SPOTS && o->states)
        return fm_error_set(
            err, FM_USAGE,
            "expressions are recorded without their states, so --cpu and --state do "
            "not go with --spots");
    if (o->layout == FM_LAYOUT_PSTATS && o->part > FM_PART_CALLEES)
        return fm_error_set(err, FM_USAGE,
                            "pstats has no such report: --pstats goes with the functions, "
                            "--callers or --callees");
    if (o->layout != FM_LAYOUT_TABLE && o->part == FM_PART_SOURCE)
        return fm_error_set(err, FM_USAGE, "--source is plain text: it takes no --json or --csv");
    return 0;
}

/* ---- what was left open ---- */

/* The instant, if it was not said, is the one that is sorted by; of statistics it is all of them. */
static enum fm_instant default_instant(const struct fm_report_options *o)
{
    enum fm_instant sorted = fm_instant_of(fm_query_metric(&o->query));
    bool parts = o->part == FM_PART_THREADS || o->part == FM_PART_PROCESSES;
    if (sorted != FM_INSTANTS)
        return sorted;
    if (o->part == FM_PART_STATS)
        return FM_AT_ALL;
    return o->together && !parts ? FM_AT_TOGETHER : FM_AT_PEAK;
}

static int settle_memory(struct fm_report_options *o, struct fm_error *err)
{
    bool edges = o->part == FM_PART_CALLERS || o->part == FM_PART_CALLEES;
    if (!o->at_said)
        o->at = default_instant(o);
    if (!o->at_said && o->at == FM_AT_TIME)
        return fm_error_set(err, FM_USAGE, "say which time you sort by: --at 2.5s, or --at 50%%");
    if (!o->sorted && fm_query_sort(&o->query, edges ? "total" : "self", err) < 0)
        return err->status;
    fm_query_settle_metrics(&o->query, fm_instants[o->at].bytes, fm_instants[o->at].blocks);
    return 0;
}

static int settle_sort(struct fm_report_options *o, struct fm_error *err)
{
    bool edges = o->part == FM_PART_CALLERS || o->part == FM_PART_CALLEES;
    if (o->memory)
        return settle_memory(o, err);
    if (fm_part_is_of_lines(o->part))
        fm_query_settle_time(&o->query);
    if (o->sorted || o->layout == FM_LAYOUT_PSTATS)
        return 0;
    return fm_query_sort(&o->query, edges || o->part == FM_PART_LINES ? "total" : "self", err);
}

/* A number of rows is meant for what is shown: places, not the functions they are in. */
static void settle_rows(struct fm_report_options *o, int usual)
{
    size_t kept = 0;
    o->rows_max = !o->limited && o->layout == FM_LAYOUT_TABLE ? usual : -1;
    for (size_t i = 0; i < o->query.restrictions.len; i++) {
        struct fm_restriction r = o->query.restrictions.data[i];
        int count = r.count < INT32_MAX ? (int)r.count : INT32_MAX;
        if (r.kind != FM_RESTRICT_COUNT)
            o->query.restrictions.data[kept++] = r;
        else if (o->rows_max < 0 || count < o->rows_max)
            o->rows_max = count;
    }
    o->query.restrictions.len = kept;
}

int fm_report_options_settle(struct fm_report_options *o, bool marked, struct fm_error *err)
{
    bool edges = o->part == FM_PART_CALLERS || o->part == FM_PART_CALLEES;
    bool ten = edges || (o->part == FM_PART_LINES && !o->memory);
    bool all = o->part == FM_PART_HOT || o->part == FM_PART_ANNOTATE ||
               (o->part == FM_PART_LINES && !o->memory && (marked || o->view.summarize));
    o->query.qualified = o->layout != FM_LAYOUT_PSTATS;
    if (settle_sort(o, err) < 0)
        return err->status;
    if (o->memory && o->part == FM_PART_HOT) { /* its number is that of the lines */
        all = false;
        o->limited = true;
        if (o->view.hot_max >= 0)
            fm_query_limit(&o->query, o->view.hot_max);
    }
    if (o->part == FM_PART_STATS)
        settle_rows(o, 5);
    else if (o->part == FM_PART_WAITS || o->part == FM_PART_SPOTS)
        settle_rows(o, 20);
    else if (fm_part_is_of_timeline(o->part))
        settle_rows(o, o->part == FM_PART_TIMELINE ? 40 : 10);
    else if (!o->limited && o->layout == FM_LAYOUT_TABLE && !o->function && !all)
        fm_query_limit(&o->query, ten ? 10 : 20);
    if (o->layout != FM_LAYOUT_TABLE && o->edges_max == -2)
        o->edges_max = -1;
    if (o->edges_max == -2)
        o->edges_max = 10;
    if (o->min_percent < 0)
        o->min_percent = o->layout == FM_LAYOUT_TABLE ? 1 : 0;
    return 0;
}

/* Another metric in the place of time; see weigh.h. */
#include "record/model/derive/weigh.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"

static bool can_weigh(enum fm_metric metric)
{
    return fm_metric_is_sum(metric) && fm_metric_info(metric)->place != FM_PLACE_ERROR;
}

static int no_such_metric(const char *name, struct fm_error *err)
{
    fm_autobuffer names = FM_BUFFER_INIT;
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        if (can_weigh((enum fm_metric)m))
            fm_buffer_addf(&names, "%s%s", names.len ? ", " : "",
                           fm_metric_name((enum fm_metric)m));
    return fm_error_set(err, FM_USAGE, "there is no metric \"%s\" to weigh by; there are %s", name,
                        fm_buffer_text(&names));
}

static int nothing_of(const char *name, struct fm_error *err)
{
    return fm_error_set(err, FM_UNSUPPORTED, "nothing of \"%s\" was recorded in any call", name);
}

/* With callees, also where it is of entries alone. Caller frees. */
static int64_t *totals_new(const struct fm_profile *p, enum fm_metric metric)
{
    int64_t *totals = fm_profile_totals_new(p, metric);
    const int64_t *resumes =
        metric == FM_METRIC_CALLS ? p->columns[FM_METRIC_RESUMES].data : NULL; /* entries, too */
    for (size_t i = 0; resumes && i < p->nodes.len; i++)
        totals[i] = fm_sum(totals[i], resumes[i]);
    for (size_t i = p->nodes.len; fm_metric_info(metric)->scope == FM_OF_ENTRIES && i-- > 0;) {
        uint32_t parent = p->nodes.data[i].parent;
        if (parent != FM_NONE)
            totals[parent] = fm_sum(totals[parent], totals[i]);
    }
    return totals;
}

static void forget_column(struct fm_profile *p, enum fm_metric metric)
{
    free(p->columns[metric].data);
    p->columns[metric].data = NULL;
}

static void forget_times(struct fm_profile *p)
{
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        if (m != FM_METRIC_CALLS && m != FM_METRIC_RESUMES &&
            !fm_metric_is_memory((enum fm_metric)m))
            forget_column(p, (enum fm_metric)m);
    fm_lines_release(&p->lines);
    p->lines = (struct fm_lines){ 0 };
    fm_samples_release(&p->samples);
    p->samples = (struct fm_samples){ 0 };
    for (size_t i = 0; i < p->processes.len; i++)
        p->processes.data[i].sampled = false;
}

int fm_profile_weigh(struct fm_profile *p, const char *name, struct fm_error *err)
{
    enum fm_metric metric = fm_metric_named(name);
    if (metric == FM_METRIC_COUNT || !can_weigh(metric))
        return no_such_metric(name, err);
    const struct fm_metric_info *info = fm_metric_info(metric);
    if (metric == FM_METRIC_TOTAL)
        return 0;
    if (!p->columns[metric].data)
        return nothing_of(name, err);
    if (info->place == FM_PLACE_STATE)
        return fm_samples_keep_states(p, 1u << (metric - FM_METRIC_STATES)) ? 0
                                                                            : nothing_of(name, err);
    fm_autofree int64_t *totals = totals_new(p, metric);
    if (fm_metric_is_memory(metric)) {
        forget_column(p, FM_METRIC_CALLS);
        forget_column(p, FM_METRIC_RESUMES);
    }
    forget_times(p);
    for (uint32_t i = 0; i < p->nodes.len; i++)
        fm_profile_add(p, FM_METRIC_TOTAL, i, totals[i]);
    if (info->unit != FM_UNIT_NS)
        fm_profile_fact(p, "unit", info->unit == FM_UNIT_BYTES ? fm_unit_name(info->unit) : name);
    if (fm_metric_is_memory(metric))
        fm_profile_fact(p, "metric", name);
    return 0;
}

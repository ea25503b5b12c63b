/*
 * What was alive at an instant of a run, or at two of them; see engine.h.
 *
 * The model adds the slices of a history up into two columns (model/history.h). Those of the later instant
 * stay with the profile, those of the earlier one with the recording: a view that compares a recording with
 * itself has the one after and the other before, and all that shows differences of two recordings shows what
 * changed between two instants. No number is below zero.
 */
#include <stdlib.h>

#include "view.h"

static void take_away(struct fm_recording *r)
{
    for (int k = 0; k < FM_MOMENT_COLUMNS; k++) {
        free(r->p->columns[FM_METRIC_THEN + k].data);
        r->p->columns[FM_METRIC_THEN + k].data = NULL;
        free(r->earlier[k].data);
        r->earlier[k].data = NULL;
    }
}

/* Looks at accounts that change meanwhile, or a damaged file, may say less than nothing. */
static void cut_below_zero(const struct fm_profile *p)
{
    for (int k = 0; k < FM_MOMENT_COLUMNS; k++) {
        int64_t *data = p->columns[FM_METRIC_THEN + k].data;
        for (size_t i = 0; data && i < p->nodes.len; i++)
            data[i] = data[i] > 0 ? data[i] : 0;
    }
}

void fm_recording_swap_moments(struct fm_recording *r)
{
    for (int k = 0; k < FM_MOMENT_COLUMNS; k++) {
        struct fm_column later = r->p->columns[FM_METRIC_THEN + k];
        r->p->columns[FM_METRIC_THEN + k] = r->earlier[k];
        r->earlier[k] = later;
    }
}

/* Let the profile have what was alive `ns` after the run began. */
static bool show(struct fm_recording *r, double ns, struct fm_shown *ret)
{
    struct fm_shown none;
    struct fm_moment moment = { .value = ns };
    bool is_there = fm_history_show(r->p, NULL, &moment, &none, ret);
    cut_below_zero(r->p);
    return is_there;
}

int fm_engine_moment(struct fm_engine *e, int recording, double from_ns, double to_ns)
{
    struct fm_recording *r = fm_engine_recording(e, recording);
    struct fm_shown from = { 0 }, to = { 0 };
    if (!r)
        return -1;
    take_away(r);
    for (int i = 0; i < FM_ENGINE_VIEWS; i++)
        if (e->views[i] && fm_view_uses(e->views[i], r))
            fm_view_forget_moments(e->views[i]);
    bool from_there = from_ns >= 0 && show(r, from_ns, &from);
    fm_recording_swap_moments(r);
    bool to_there = to_ns >= 0 && show(r, to_ns, &to);
    struct fm_result *out = &e->results[0];
    fm_result_begin(out, 0);
    out->scalars[0] = from_there ? from.shown_ns : -1;
    out->scalars[1] = from.processes;
    out->scalars[2] = to_there ? to.shown_ns : -1;
    out->scalars[3] = to.processes;
    return 0;
}

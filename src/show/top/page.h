/*
 * The picture of `fathom top`: header, table, lists, help, the line at the bottom. It draws what
 * view and model say and decides nothing but what fits.
 */
#ifndef FM_TOP_PAGE_H
#define FM_TOP_PAGE_H

#include <sys/types.h>

#include "show/top/view.h"
#include "watch/sampler/sampler.h"

struct fm_top_status {
    pid_t pid;
    uint64_t start_ns;                   /* of watching */
    double rate_hz;                      /* asked for; 0: as fast as it goes */
    const char *mode;                    /* "wall", "cpu", "gil" */
    struct fm_sampler_stats now, before; /* at the last two refreshes */
};

/* Draw everything; sets view->page. */
void fm_page_draw(struct fm_top_view *view, const struct fm_top_model *model,
                  const struct fm_top_status *status);

#endif

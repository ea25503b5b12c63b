/* What the files of the page share: where things are, and the bar of states. */
#ifndef FM_TOP_PAGE_PARTS_H
#define FM_TOP_PAGE_PARTS_H

#include "show/top/page.h"

struct fm_page_layout {
    int columns, rows;
    int header, table;                          /* lines of the header; first row of the table */
    int self_time, total_time, states, samples; /* widths, 0: left out */
    int name;                                   /* where it begins */
};

/* Letters of the states, each as often as its part of the time; `selected` takes their colours. */
void fm_page_draw_bar(int row, int column, int width, const int64_t *state_ns, bool selected);

void fm_page_draw_header(const struct fm_top_view *view, const struct fm_top_model *model,
                         const struct fm_top_status *status, const struct fm_page_layout *l);

#endif

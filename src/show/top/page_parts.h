/* What the files of the page share: where things are, and the bar of states. */
#ifndef FM_TOP_PAGE_PARTS_H
#define FM_TOP_PAGE_PARTS_H

#include "show/top/keys.h"
#include "show/top/page.h"
#include "show/top/screen.h"

struct fm_page_layout {
    int columns, rows;
    int header, table;                          /* lines of the header; first row of the table */
    int self_time, total_time, states, samples; /* widths, 0: left out */
    int name;                                   /* where it begins */
};

/* Letters of the states, each as often as its part of the time; `selected` takes their colours. */
void fm_page_draw_bar(int row, int column, int width, const int64_t *state_ns, bool selected);

/* Is there room for a picture? If not, that is said instead. */
bool fm_page_fits(const struct fm_page_layout *l);

/* How hot a share is. */
enum fm_look fm_page_heat(double part, double whole);

/* What fits of two texts side by side: the first is cut, but not below half of the room. */
int fm_page_first_width(int first, int second, int room);

/* The first line: "fathom top PID", what is known of it, its command, and how long that was. */
struct fm_page_subject {
    const char *verb; /* "fathom top" */
    pid_t pid;
    const char *version, *command; /* of the Python: "" if not known */
    uint64_t watched_ns;
    bool ended;
};
void fm_page_draw_subject(const struct fm_page_subject *subject, const struct fm_page_layout *l);

/* A page of keys, and those of the line at the bottom. */
void fm_page_draw_help(const char *title, const struct fm_top_key *keys, size_t count,
                       const struct fm_page_layout *l);
void fm_page_draw_keys(const struct fm_top_key *keys, size_t count, const struct fm_page_layout *l);

void fm_page_draw_header(const struct fm_top_view *view, const struct fm_top_model *model,
                         const struct fm_top_status *status, const struct fm_page_layout *l);

#endif

/*
 * What the user of `fathom top` looks at: which table, which row, what is being typed. Keys go in,
 * and come out as changes of this state, or as a wish that the verb has to fulfil.
 *
 * Plain C without a terminal, so it can be tested without one. Threads: none.
 */
#ifndef FM_TOP_VIEW_H
#define FM_TOP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "show/top/keys.h"
#include "show/top/model.h"

enum fm_top_mode {
    FM_TOP_MODE_TABLE,
    FM_TOP_MODE_HELP,
    FM_TOP_MODE_THREADS, /* choosing from `items` */
    FM_TOP_MODE_STATES,
    FM_TOP_MODE_SEARCH, /* typing into `input` */
    FM_TOP_MODE_FILE,
    FM_TOP_MODE_REPLACE, /* the file in `input` exists: yes or no? */
};

enum fm_top_wish {
    FM_TOP_WISH_NONE,
    FM_TOP_WISH_QUIT,
    FM_TOP_WISH_WRITE,   /* the recording, to the file in `input`, which must not exist */
    FM_TOP_WISH_REPLACE, /* … which may */
    FM_TOP_WISH_REDRAW,
    FM_TOP_WISH_REFRESH, /* take in what was gathered now */
};

struct fm_top_item {
    uint32_t value;
    char *text;
};

struct fm_top_view {
    struct fm_top_query query;
    struct fm_map toggled;
    struct fm_top_table table;
    size_t selected, first; /* rows; first: the one on top of the page */
    size_t page;            /* rows of a page, set by who draws */
    uint64_t key;           /* of the selected row; it is followed unless it is the first */
    enum fm_top_mode mode;
    FM_VEC(struct fm_top_item) items;
    size_t item, first_item; /* also the first line of the help */
    struct fm_buffer input;
    struct fm_buffer search;
    size_t origin;    /* where a search began */
    const char *file; /* proposed name of a recording */
    char message[512];
    bool is_warning;
    bool paused, ended;
};

void fm_top_view_init(struct fm_top_view *view, const char *file);
void fm_top_view_release(struct fm_top_view *view);

/* Make the table anew from the model; the selected row stays selected wherever it went. */
void fm_top_view_refresh(struct fm_top_view *view, const struct fm_top_model *model);

/* The page got another size, or the selection moved: show the selected row. */
void fm_top_view_scroll(struct fm_top_view *view);

enum fm_top_wish fm_top_view_key(struct fm_top_view *view, const struct fm_top_model *model,
                                 uint32_t key);

/* The sentence at the bottom, until the next key. */
void fm_top_view_say(struct fm_top_view *view, bool is_warning, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The file in `input` exists: ask. */
void fm_top_view_ask_replace(struct fm_top_view *view);

/* "MainThread", "Thread-1 (worker)", or its number; with the process if there are several. */
void fm_top_thread_label(const struct fm_top_model *model, uint32_t thread, struct fm_buffer *out);

/* "all states", "running", "waiting for the GIL". */
const char *fm_top_states_label(unsigned states);

#endif

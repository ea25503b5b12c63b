/*
 * What `fathom top --memory` shows: lines or functions with what is alive of their blocks, and how that
 * changes; and what keys make of it.
 *
 * Model. Each profile that is taken in is of the same process a little later (model/live/live_heap.h). Rows
 * are known by their content, so that what a row had before is known, and the selected one stays
 * selected. Sums are of everything, rows or not.
 *
 * Plain C without a live process and without a terminal. Threads: none.
 */
#ifndef FM_TOP_MEMORY_H
#define FM_TOP_MEMORY_H

#include "base/map.h"
#include "base/strings.h"
#include "record/model/profile.h"
#include "show/top/keys.h"

/*   action    as FM_TOP_KEY_LIST has it */
/* clang-format off */
#define FM_MEMORY_KEY_LIST(X)                                                                      \
    X(HELP, 'h', '?', "h ?", "help", "this page")                                                  \
    X(QUIT, 'q', FM_KEY_CONTROL('c'), "q Ctrl-C", "quit", "quit")                                  \
    X(LIVE, 's', 0, "s", "live", "sort by what is alive of the line's own blocks")                 \
    X(TOTAL, 't', 0, "t", "total", "sort by that with callees")                                    \
    X(GROWTH, 'd', 0, "d", "growth", "sort by how fast it grows")                                  \
    X(MADE, 'i', 0, "i", "new", "sort by how fast it allocates")                                   \
    X(BLOCKS, 'b', 0, "b", "", "sort by the number of blocks")                                     \
    X(PEAK, 'm', 0, "m", "", "sort by what it had at the peak of the process")                     \
    X(NAME, 'a', 0, "a", "", "sort by name")                                                       \
    X(REVERSE, 'r', 0, "r", "", "reverse the order")                                               \
    X(LINES, 'l', 0, "l", "lines", "lines; again: functions")                                      \
    X(FUNCTIONS, 'f', 0, "f", "", "functions")                                                     \
    X(PAUSE, ' ', 0, "space", "pause", "hold the screen; again: go on")                            \
    FM_MOVE_KEY_LIST(X)
/* clang-format on */

enum fm_memory_action {
    FM_MEMORY_NOTHING,
#define X(name, a, b, shown, word, help) FM_MEMORY_##name,
    FM_MEMORY_KEY_LIST(X)
#undef X
};

extern const struct fm_top_key fm_memory_keys[];
extern const unsigned fm_memory_keys_count;

struct fm_memory_alive {
    int64_t live, blocks, total, peak, allocated;
};

struct fm_memory_row {
    uint32_t key;        /* string id of its content: the same row has the same in every table */
    uint32_t name, file; /* string ids */
    uint32_t line;
    struct fm_memory_alive now;
    int64_t growth, made; /* bytes alive and bytes allocated since the profile before */
};

struct fm_memory_top {
    struct fm_strings *strings;
    FM_VEC(struct fm_memory_row) rows;
    struct fm_map before; /* by key: number in `old` */
    FM_VEC(struct fm_memory_alive) old;
    struct fm_memory_alive all, all_before;
    int64_t peak_blocks, own_bytes;
    bool python;             /* blocks of Python's allocators one by one */
    int64_t sample_bytes;    /* 0: every block; else numbers are estimates */
    uint64_t now_ns, old_ns; /* old 0: there was none */
    bool lines;              /* instead of functions */
    enum fm_memory_action sort;
    bool reverse, paused, ended, help;
    size_t selected, first, page;
    uint32_t followed; /* key of the selected row, unless that is the first */
};

enum fm_memory_wish {
    FM_MEMORY_WISH_NONE,
    FM_MEMORY_WISH_QUIT,
    FM_MEMORY_WISH_REFRESH, /* take in what there is now */
    FM_MEMORY_WISH_REDRAW,
};

void fm_memory_top_init(struct fm_memory_top *top);
void fm_memory_top_release(struct fm_memory_top *top);

/* Take in the process as it was at `now_ns`; the profile is used up, but not freed. */
void fm_memory_top_take(struct fm_memory_top *top, struct fm_profile *p, uint64_t now_ns);

enum fm_memory_wish fm_memory_top_key(struct fm_memory_top *top, uint32_t key);

/* The page got another size, or the selection moved: show the selected row. */
void fm_memory_top_scroll(struct fm_memory_top *top);

/* Bytes per second; 0 while there is only one profile. */
double fm_memory_top_per_second(const struct fm_memory_top *top, int64_t bytes);

#endif

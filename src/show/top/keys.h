/*
 * The keys of `fathom top`: one list, from which the help page and the line at the bottom are made.
 * Keys are characters, or one of those below; the screen translates from its library.
 */
#ifndef FM_TOP_KEYS_H
#define FM_TOP_KEYS_H

#include <stdbool.h>
#include <stdint.h>

enum fm_key {
    FM_KEY_NONE = 0,
    FM_KEY_ENTER = '\r',
    FM_KEY_ESCAPE = 27,
    FM_KEY_BACKSPACE = 127,
    FM_KEY_UP = 0x110000, /* above all characters */
    FM_KEY_DOWN,
    FM_KEY_LEFT,
    FM_KEY_RIGHT,
    FM_KEY_PAGE_UP,
    FM_KEY_PAGE_DOWN,
    FM_KEY_HOME,
    FM_KEY_END,
};

#define FM_KEY_CONTROL(letter) ((letter)&0x1f)

/*   action    a key, another, as shown: in one word for the line at the bottom ("": not there),
 *             and in a sentence for the help page */
/* clang-format off */
#define FM_MOVE_KEY_LIST(X)                                                                        \
    X(UP, FM_KEY_UP, 'k', "Up k", "", "one row up")                                                \
    X(DOWN, FM_KEY_DOWN, 'j', "Down j", "", "one row down")                                        \
    X(PAGE_UP, FM_KEY_PAGE_UP, FM_KEY_CONTROL('b'), "PgUp Ctrl-B", "", "one page up")              \
    X(PAGE_DOWN, FM_KEY_PAGE_DOWN, FM_KEY_CONTROL('f'), "PgDn Ctrl-F", "", "one page down")        \
    X(HOME, FM_KEY_HOME, 'g', "Home g", "", "the first row, and stay there")                       \
    X(END, FM_KEY_END, 'G', "End G", "", "the last row")                                           \
    X(REDRAW, FM_KEY_CONTROL('l'), 0, "Ctrl-L", "", "draw everything anew")

#define FM_TOP_KEY_LIST(X)                                                                         \
    X(HELP, 'h', '?', "h ?", "help", "this page")                                                  \
    X(QUIT, 'q', FM_KEY_CONTROL('c'), "q Ctrl-C", "quit", "quit; with -o, write it first")         \
    X(SELF, 's', 0, "s", "self", "sort by self time")                                              \
    X(TOTAL, 't', 0, "t", "", "sort by total time, callees included")                              \
    X(SAMPLES, 'm', 0, "m", "", "sort by samples since the start")                                 \
    X(NAME, 'a', 0, "a", "", "sort by name")                                                       \
    X(PLACE, 'p', 0, "p", "", "sort by file and line")                                             \
    X(REVERSE, 'r', 0, "r", "", "reverse the order")                                               \
    X(LINES, 'l', 0, "l", "lines", "lines; again: functions")                                      \
    X(FUNCTIONS, 'f', 0, "f", "", "functions")                                                     \
    X(SPAN, 'c', 0, "c", "", "shares since the start; again: interval")                            \
    X(THREAD, 'T', 0, "T", "thread", "one thread only, from a list")                               \
    X(STATE, 'S', 0, "S", "state", "some states only, from a list")                                \
    X(PAUSE, ' ', 0, "space", "pause", "hold the screen; sampling goes on")                        \
    X(SEARCH, '/', 0, "/", "find", "search names and files as you type")                           \
    X(NEXT, 'n', 0, "n", "", "the next one found")                                                 \
    X(PREVIOUS, 'N', 0, "N", "", "the one found before")                                           \
    X(TOGGLE, FM_KEY_ENTER, '\n', "Enter", "", "callers of a function, waits of a line; fold")     \
    X(OPEN, FM_KEY_RIGHT, 0, "Right", "", "show them")                                             \
    X(CLOSE, FM_KEY_LEFT, 0, "Left", "", "fold them, or go to what they call")                     \
    X(WRITE, 'w', 0, "w", "write", "write the recording so far to a file")                         \
    FM_MOVE_KEY_LIST(X)
/* clang-format on */

enum fm_top_action {
    FM_TOP_NOTHING,
#define X(name, a, b, shown, word, help) FM_TOP_##name,
    FM_TOP_KEY_LIST(X)
#undef X
};

struct fm_top_key {
    int action; /* enum fm_top_action, or of another list (memory.h) */
    uint32_t keys[2];
    const char *shown, *word, *help;
};

extern const struct fm_top_key fm_top_keys[];
extern const unsigned fm_top_keys_count;

enum fm_top_action fm_top_action_of(uint32_t key);

#endif

/*
 * What a thread was doing at the instant of a sample: one list for the sampler, the recording, the
 * reports, the screen of `top` and the page. A state is one line here; its metric (model/metrics.h)
 * and its column, colour and letter everywhere follow from it.
 *
 * The order is that of the file format and of every table; add at the end only. Letters and words
 * tell states apart on a narrow page, so they differ (a test sees to it).
 */
#ifndef FM_MODEL_STATES_H
#define FM_MODEL_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Colours of a terminal, by the numbers that ANSI and curses share; one that is no colour. */
enum fm_ansi {
    FM_ANSI_RED = 1,
    FM_ANSI_GREEN = 2,
    FM_ANSI_YELLOW = 3,
    FM_ANSI_BLUE = 4,
    FM_ANSI_MAGENTA = 5,
    FM_ANSI_CYAN = 6,
    FM_ANSI_DIM = 8,
};

/* The colours of the page were searched for: they can be told apart on a light and on a dark page,
 * also by protan and deutan eyes. */
/*    name     in files   word   letter label      for people                   runs   terminal, page: light, dark */
/* clang-format off */
#define FM_STATE_LIST(X) \
    X(PYTHON,  "python",  "py",    'p', "Python",  "running Python",             true,  GREEN,   0x2b58d4, 0x4075dd) \
    X(C,       "c",       "C",     'C', "C code",  "running C",                  true,  BLUE,    0x28b87f, 0x38c789) \
    X(GIL,     "gil",     "gil",   'g', "GIL",     "waiting for the GIL",        false, RED,     0xa32f29, 0xcf493f) \
    X(LOCK,    "lock",    "lock",  'l', "lock",    "waiting for a lock",         false, MAGENTA, 0xdea935, 0xd7ae3c) \
    X(DISK,    "disk",    "disk",  'd', "disk",    "reading or writing files",   false, YELLOW,  0x5f469b, 0x7851a4) \
    X(NETWORK, "network", "net",   'n', "network", "waiting for the network",    false, CYAN,    0xde7cc4, 0xeeb4e1) \
    X(SLEEP,   "sleep",   "sleep", 's', "sleep",   "sleeping",                   false, DIM,     0xc3cad2, 0x535b64) \
    X(OTHER,   "other",   "other", 'o', "other",   "waiting for something else", false, DIM,     0x6f7883, 0x98a1ab)
/* clang-format on */

enum fm_state {
#define X(name, ...) FM_STATE_##name,
    FM_STATE_LIST(X)
#undef X
        FM_STATE_COUNT
};

/* Sets of states are bits of an unsigned. */
_Static_assert(FM_STATE_COUNT < 32, "a bit for every state");

struct fm_state_info {
    const char *name;     /* in files, and for programs */
    const char *word;     /* where there is little room */
    char letter;          /* where there is none */
    const char *label;    /* what the letter stands for */
    const char *title;    /* for people */
    bool runs;            /* the thread was on a processor, or ready to be */
    enum fm_ansi ansi;    /* on a terminal */
    uint32_t light, dark; /* on a page: 0xrrggbb */
};

const struct fm_state_info *fm_state_info(enum fm_state state);

static inline const char *fm_state_name(enum fm_state state)
{
    return fm_state_info(state)->name;
}

static inline const char *fm_state_title(enum fm_state state)
{
    return fm_state_info(state)->title;
}

/* "py", "C", "gil", … */
static inline const char *fm_state_word(enum fm_state state)
{
    return fm_state_info(state)->word;
}

/* Those in which a thread runs, a bit each. */
unsigned fm_states_running(void);

static inline bool fm_state_is_running(enum fm_state state)
{
    return fm_state_info(state)->runs;
}

#endif

/*
 * What a thread was doing at the instant of a sample: one list for the sampler, the recording and
 * the reports. The order is that of the file format and of every table; add at the end only.
 */
#ifndef FM_MODEL_STATES_H
#define FM_MODEL_STATES_H

/*        name       short      for people */
/* clang-format off */
#define FM_STATE_LIST(X)                                                                           \
    X(PYTHON,   "python",  "running Python")                                                       \
    X(C,        "c",       "running C")                                                            \
    X(GIL,      "gil",     "waiting for the GIL")                                                  \
    X(LOCK,     "lock",    "waiting for a lock")                                                   \
    X(DISK,     "disk",    "reading or writing files")                                             \
    X(NETWORK,  "network", "waiting for the network")                                              \
    X(SLEEP,    "sleep",   "sleeping")                                                             \
    X(OTHER,    "other",   "waiting for something else")
/* clang-format on */

enum fm_state {
#define X(name, text, title) FM_STATE_##name,
    FM_STATE_LIST(X)
#undef X
        FM_STATE_COUNT
};

static inline const char *fm_state_name(enum fm_state state)
{
    static const char *const names[] = {
#define X(name, text, title) text,
        FM_STATE_LIST(X)
#undef X
    };
    return (unsigned)state < FM_STATE_COUNT ? names[state] : "?";
}

static inline const char *fm_state_title(enum fm_state state)
{
    static const char *const titles[] = {
#define X(name, text, title) title,
        FM_STATE_LIST(X)
#undef X
    };
    return (unsigned)state < FM_STATE_COUNT ? titles[state] : "?";
}

/* Was the thread on a processor, or ready to be? */
static inline int fm_state_is_running(enum fm_state state)
{
    return state == FM_STATE_PYTHON || state == FM_STATE_C;
}

#endif

/*
 * When to save a recording that still grows, so that a kill of Fathom costs little and saving costs
 * little as well: after the first second, then each time twice as long, up to a minute; and never
 * so often that saving, which takes the longer the larger the recording is, would take more than a
 * hundredth of the time.
 */
#ifndef FM_COMMANDS_SAVE_TIMES_H
#define FM_COMMANDS_SAVE_TIMES_H

#include <stdint.h>

#define FM_SAVE_FIRST_NS 1000000000u
#define FM_SAVE_MOST_NS  60000000000u
#define FM_SAVE_SHARE    100

struct fm_save_times {
    uint64_t next_ns; /* when it is due */
    uint64_t wait_ns; /* from the last time to then */
};

static inline void fm_save_times_begin(struct fm_save_times *t, uint64_t now_ns)
{
    t->wait_ns = FM_SAVE_FIRST_NS;
    t->next_ns = now_ns + t->wait_ns;
}

/* It was saved, or could not be, from `begin_ns` to `end_ns`. */
static inline void fm_save_times_done(struct fm_save_times *t, uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t least_ns = (end_ns - begin_ns) * FM_SAVE_SHARE;
    t->wait_ns = t->wait_ns < FM_SAVE_MOST_NS / 2 ? t->wait_ns * 2 : FM_SAVE_MOST_NS;
    t->next_ns = begin_ns + (least_ns > t->wait_ns ? least_ns : t->wait_ns);
}

#endif

/*
 * One look at one thread: from addresses to a stack, with the proof that all of it is of one
 * instant.
 *
 * A thread that runs changes its frames many times while it is read, and no rule can tell
 * afterwards: addresses are used again within microseconds, so a mix of instants looks like a
 * stack. So a look is only made while the thread cannot change its frames, for one of these
 * reasons, and thrown away if that did not hold to its end:
 *
 *   blocked    the kernel has not given it a processor since (the caller counts that)
 *   gil        another thread holds the GIL, and has held it all the time (a counter tells)
 *   displaced  we sit on its processor (os/still/seat.h)
 *   stopped    it is stopped (os/still/halt.h)
 *   plain      none: what the thread state names is the same before and after, which proves
 *              little. The best that can be had above 2,000 looks a second, or where everything
 *              else is refused; always said.
 *
 * One look reads the pages that the last looks needed, then whatever the climb finds missing
 * (climb.h), then compares the code objects whose turn it is (codes.h). All of it happens between
 * the two ends of the proof.
 */
#ifndef FM_SAMPLER_LOOK_H
#define FM_SAMPLER_LOOK_H

#include "watch/os/remote/snapshot.h"
#include "watch/os/still/seat.h"
#include "watch/sampler/climb.h"
#include "watch/sampler/codes.h"
#include "watch/sampler/open_regions.h"

/* Where the stack of a thread is found, and where it was. */
struct fm_looked {
    fm_addr thread, interp; /* states */
    fm_addr cpu_word;       /* where the kernel names the thread's processor; 0: ask `stat_fd` */
    int stat_fd;            /* /proc/PID/task/TID/stat; −1: none */
    fm_addr cframe;         /* 3.11, 3.12: the innermost evaluation at the last look */
    struct fm_snapshot_hints hints;
    struct fm_open_place regions; /* where its open regions are */
};

struct fm_looker {
    const struct fm_remote *remote;
    const struct fm_layout *layout;
    struct fm_codes *codes;
    struct fm_seat *seat;
    const struct fm_open_regions *regions;
    bool counts_deaths; /* there is one interpreter, and it counts its dead code objects */
    /* The last look. */
    struct fm_snapshot snapshot;
    struct fm_climb climb;    /* the stack: climb.frames */
    struct fm_live_open open; /* the regions that the thread is in, at most as many as there are */
    uint64_t read_ns;         /* when it was read */
    int cpu;                  /* where the thread is; −1: not known */
};

enum fm_look_result {
    FM_LOOK_WHOLE,
    FM_LOOK_CUT,   /* deeper than is read: the newest frames */
    FM_LOOK_MOVED, /* the thread ran meanwhile: there is no stack. `cpu` says where it is */
    FM_LOOK_NO,    /* at this instant the thread has no stack (climb.h, rule 6) */
    FM_LOOK_GONE,  /* this is no thread state any more */
};

/* clang-format off */
#define FM_PROOF_LIST(X)                                                                           \
    X(BLOCKED, "blocked")                                                                          \
    X(GIL, "gil")                                                                                  \
    X(DISPLACED, "displaced")                                                                      \
    X(STOPPED, "stopped")                                                                          \
    X(PLAIN, "plain")
/* clang-format on */

enum fm_proof {
#define X(name, text) FM_PROOF_##name,
    FM_PROOF_LIST(X)
#undef X
        FM_PROOF_COUNT
};

/* The part of a GIL that tells who holds it, and how often that changed. */
#define FM_LOOK_GIL_BYTES 64

struct fm_look_gil {
    fm_addr at;
    uint8_t before[FM_LOOK_GIL_BYTES];
};

/* The stack of the thread as it stands; with FM_PROOF_BLOCKED and FM_PROOF_STOPPED the caller
 * vouches for it. `gil` is that of the thread's interpreter as it was read, held by another one;
 * only for FM_PROOF_GIL. */
enum fm_look_result fm_look(struct fm_looker *k, struct fm_looked *who, enum fm_proof proof,
                            const struct fm_look_gil *gil, uint64_t now_ns);

/* Anything else that belongs to the thread, under the same proof: `read` gets its memory as of this
 * instant. Pages that it needs again and again are known by `hints`. FM_LOOK_WHOLE, or why what it
 * read is not to be believed. */
enum fm_look_result fm_look_beside(struct fm_looker *k, struct fm_looked *who, enum fm_proof proof,
                                   const struct fm_look_gil *gil, struct fm_snapshot_hints *hints,
                                   void (*read)(void *data, const struct fm_remote *remote),
                                   void *data);

void fm_looker_release(struct fm_looker *k);

#endif

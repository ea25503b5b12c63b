/*
 * What was counted of one target, all in all, kept by whoever makes profiles of it.
 *
 * Model. The thread that samples counts into a tally of its own. From time to time the tally is
 * taken away, with the sampler's lock held for some microseconds (fm_account_take), and then
 * added to the account without the lock (fm_account_settle): however much there is to add and to
 * show, sampling goes on.
 *
 * An account keeps what is known of ended threads small: a server that makes a thread for each
 * request would otherwise fill memory with records and stacks of threads, each seen once. When
 * there are FM_ACCOUNT_THREADS more ended threads than last time, all of them are put together by
 * name, numbers left out: "Thread-12 (work)" and "Thread-13 (work)" become one record, "Thread-…
 * (work)", that knows for how many it stands. Equal stacks become one row. Nothing that was counted
 * is lost; what can no longer be told is which of these threads it was.
 */
#ifndef FM_SAMPLER_ACCOUNT_H
#define FM_SAMPLER_ACCOUNT_H

#include "watch/sampler/account_order.h"
#include "watch/sampler/target.h"

#define FM_ACCOUNT_THREADS 1000u /* that ended, each with a record of its own */
#define FM_ACCOUNT_NAMES   200u  /* of folded records; the rest is "other threads" */

struct fm_account_thread {
    uint32_t number; /* of the watched thread; of the first one, if the record stands for several */
    uint32_t tid;
    uint32_t folded; /* how many ended threads this record stands for; 0: one thread */
    bool tasks;      /* the record stands for the asyncio tasks of the thread with that name */
    bool final;      /* the thread ended, and nothing more will come of it */
    uint64_t start_ns, end_ns, cpu_ns;
    char *name; /* "" if none is known */
};

struct fm_account {
    struct fm_tally tally; /* numbers of threads are places in `threads` */
    struct fm_tally taken; /* not added yet; numbers of threads are the target's */
    FM_VEC(struct fm_account_thread) threads;
    struct fm_account_order order;
    struct fm_map place_of;     /* number of a watched thread → place */
    size_t ended_kept;          /* records of ended threads after the last folding */
    struct fm_strings *details; /* texts of waits */
    FM_VEC(uint32_t) detail_of; /* the target's number of a text → that of `details` */
    FM_VEC(const struct fm_known_code *)
    codes;                    /* the target's, by number; code objects live as long as the target */
    FM_VEC(uint32_t) regions; /* the target's, by number: their names in `details` */
    struct fm_target_counts counts;
    enum fm_way way; /* … and the error numbers for which others are not taken */
    int seat_refused, stop_refused;
    bool outruns_us;
    uint64_t end_ns, last_round_ns;
    bool gone;
    int32_t exit_status; /* as a shell shows it; −1: not known, or the process runs */
};

struct fm_account *fm_account_new(void);
void fm_account_free(struct fm_account *a);

/* Take over what the target has counted. Whoever calls holds the sampler's lock. */
void fm_account_take(struct fm_account *a, struct fm_target *t);
/* Add to the account what was taken. */
void fm_account_settle(struct fm_account *a);

#endif

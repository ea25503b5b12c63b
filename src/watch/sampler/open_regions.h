/*
 * The regions that the threads of a process are in (fathom.region), at the instant of a look: read from the process's live
 * store in the run's folder, where each thread that is in regions has a record of them (capture/live.h).
 *
 * A thread's record is read while the thread cannot run (look.h), so that it is of the same instant as its frames.
 * Each region names the frame of the call that is in it; so it has its place among the frames of a stack, above
 * that of its call and below what the call calls (fm_open_regions_weave). One whose call has ended is left out.
 *
 * Nothing in the store is trusted (store/live_file.h). A process that has executed another program has another store, with a
 * higher number; the last one counts.
 *
 * Threads: belongs to the thread that samples. Names never change, and their list only grows.
 */
#ifndef FM_SAMPLER_OPEN_REGIONS_H
#define FM_SAMPLER_OPEN_REGIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "record/capture/live.h"
#include "watch/sampler/climb.h"
#include "watch/store/live_file.h"

/* Where the record of a thread is. */
struct fm_open_place {
    uint64_t at;   /* in its file; 0: it has none */
    uint32_t file; /* of the store */
    uint32_t tid;
    uint32_t listing; /* of the records in which it was looked for */
};

struct fm_open_regions {
    char *folder; /* of the run; NULL: there is none */
    pid_t pid;
    struct fm_live_file
        files[FM_LIVE_FILES]; /* of the store; the first is not open: there is none yet */
    uint32_t number;          /* of the next store of the process */
    uint64_t next_ns;
    uint32_t opens;   /* the store's count when the records were listed */
    uint32_t listing; /* how often they were */
    FM_VEC(struct fm_open_place) places;
    FM_VEC(uint32_t) numbers; /* id of a region in the store → 1 + its number here; 0: not known */
    FM_VEC(char *) names;     /* by number */
};

/* `folder` may be NULL: then nothing is ever found. */
void fm_open_regions_init(struct fm_open_regions *r, const char *folder, pid_t pid);
void fm_open_regions_release(struct fm_open_regions *r);

/* The process has ended: nothing more is read. Names stay. */
void fm_open_regions_close(struct fm_open_regions *r);

/* A round begins: is there a store, are there new records? */
void fm_open_regions_refresh(struct fm_open_regions *r, uint64_t now_ns);

/* Find the record of a thread, if the records were listed anew since that was last done. */
void fm_open_regions_place(const struct fm_open_regions *r, uint32_t tid,
                           struct fm_open_place *place);

/* What the thread is in; false: nothing, or that cannot be told. */
bool fm_open_regions_read(const struct fm_open_regions *r, const struct fm_open_place *place,
                          struct fm_live_open *ret);

/* The frames of a stack, newest first, with the regions among them. */
struct fm_woven {
    FM_VEC(struct fm_raw_frame) frames;
};
void fm_open_regions_weave(struct fm_open_regions *r, const struct fm_live_open *open,
                           const struct fm_climb *climb, struct fm_woven *ret);

#endif

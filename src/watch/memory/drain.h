/*
 * Reads the ring of events of a process (capture/live_events.h) and makes slices of them
 * (model/history.h): one for each microsecond in which something happened, with what had changed in it.
 *
 * The ring is read and written by position, not mapped: a program of the run may cut it short.
 * Nothing in it is trusted.
 */
#ifndef FM_WATCH_MEMORY_DRAIN_H
#define FM_WATCH_MEMORY_DRAIN_H

#include <stdbool.h>

#include "record/capture/live_events.h"
#include "record/model/history.h"

#define FM_DRAIN_EVENTS 8192u /* that are read at once */

struct fm_drain {
    int fd; /* −1: there is no ring */
    uint64_t tail;
    uint64_t start_ns; /* of the store, from which events count */
    uint64_t us;       /* of the changes that wait */
    FM_VEC(struct fm_history_change) changes;
    struct fm_event events[FM_DRAIN_EVENTS];
};

void fm_drain_init(struct fm_drain *d);
void fm_drain_release(struct fm_drain *d);

/* Open the ring at `path`; it may not be there yet. */
bool fm_drain_open(struct fm_drain *d, const char *path, uint64_t start_ns);

/* Add up to FM_DRAIN_EVENTS events to the slices; false if there was none. If the process has ended, what is
 * half-written is passed over, and the slices are whole. */
bool fm_drain_read(struct fm_drain *d, struct fm_slices *into, bool ended);

/* Let the process know how far it was read, once that is kept. */
void fm_drain_done(struct fm_drain *d);

/* Nobody reads any more. */
void fm_drain_close(struct fm_drain *d);

#endif

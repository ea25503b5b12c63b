/*
 * The regions of a live store: what ended visits left, and what those had that were open when the process
 * ended. As everywhere in a live store, each record is copied once and nothing is trusted.
 */
#ifndef FM_MODEL_LIVE_REGIONS_H
#define FM_MODEL_LIVE_REGIONS_H

#include "base/varint.h"
#include "record/model/live/live_loader.h"

/* A definition of one: its kind has been read. */
void fm_live_define_region(struct fm_live_loader *l, struct fm_cursor *c);

/* All records, when the end of the process is known. */
void fm_live_read_regions(struct fm_live_loader *l);

/* ---- time, by live.c ---- */

int64_t fm_live_ticks_ns(const struct fm_live_loader *l, uint64_t ticks);
uint64_t fm_live_instant_ns(const struct fm_live_loader *l, uint64_t ticks);

#endif

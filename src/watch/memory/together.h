/*
 * The launcher's part of what all processes of a run have together (capture/live_heap.h): it makes the
 * file that they tell of themselves in, and takes out what those had that were killed.
 *
 * The file is read and written, not mapped: a program of the run may cut it short.
 */
#ifndef FM_WATCH_MEMORY_TOGETHER_H
#define FM_WATCH_MEMORY_TOGETHER_H

#include <stdbool.h>
#include <stdint.h>

/* Make it in the folder of a run; `limit` is what all may have, 0: as much as they like. 0, or -1 with
 * errno; then only the peaks of each process are known, and there is no limit. */
int fm_together_make(const char *folder, int64_t limit);

/* Has the run passed its limit? Who did, and what all had then. */
bool fm_together_passed(const char *folder, uint32_t *ret_pid, int64_t *ret_sum);

/* The process of an open store has ended. If it did not say so, it has nothing any more. */
void fm_together_bury(const char *folder, int store);

#endif

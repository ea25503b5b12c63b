/*
 * Takes slices of the accounts of a process while it runs: which of them have more alive, or less, than
 * at the slice before (model/history.h). The process pays nothing: the accounts lie in its heap store,
 * and a slice is a read of them.
 *
 * Slices are written into the folder of the run as they are taken (capture/live_slices.h), so a
 * launcher that is killed loses none. There are at most FM_SLICES_MAX, of at most FM_SLICES_BYTES or
 * what the accounts themselves need: beyond that each two become one, and they are taken half as often
 * from then on. So a run of any length has a file of some hundred KB.
 *
 * The accounts are read one after the other, while the program goes on: a slice is of the instant at
 * which its reading began, within the time that took (a microsecond for some hundred accounts).
 */
#ifndef FM_WATCH_MEMORY_SLICER_H
#define FM_WATCH_MEMORY_SLICER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FM_SLICES_MAX        1024u
#define FM_SLICES_BYTES      (512u << 10)
#define FM_SLICE_INTERVAL_NS 10000000u

struct fm_slicer;

/* Of the store PID.N.heap in the folder of the run. */
struct fm_slicer *fm_slicer_new(const char *folder, pid_t pid, unsigned number);
void fm_slicer_free(struct fm_slicer *s); /* NULL: nothing */

/* Is it time for the next slice? */
bool fm_slicer_is_due(const struct fm_slicer *s, uint64_t now_ns); /* NULL: never */

/* Take it; `store` is the open store. */
void fm_slicer_take(struct fm_slicer *s, int store, uint64_t now_ns);

/* Write all of it to the file of slices, or false. */
bool fm_slices_write(int fd, const void *bytes, size_t len);

#endif

/*
 * How much of a process is in memory.
 *
 * Resident memory is one short file of /proc with a kept descriptor, 1.5 µs however large the process is, and goes
 * with the process over exec. Shares of what is shared, and what is swapped out, need a walk through
 * all its page tables, under the lock that its page faults wait for: 14 ms for each GB in use. Whoever
 * asks for that counts its time.
 */
#ifndef FM_WATCH_MEMORY_RESIDENT_H
#define FM_WATCH_MEMORY_RESIDENT_H

#include <stdint.h>
#include <sys/types.h>

/* A descriptor for fm_resident_read(); −1 if there is no such process. */
int fm_resident_open(pid_t pid);

/* Bytes in memory, and (if asked for) those of the program's code, by which one sees that it
 * executed another. −1 if the process has ended. */
int64_t fm_resident_read(int fd, int64_t *ret_code);

/* Proportional share and swap, bytes; −1 each if not known. */
void fm_resident_shares(pid_t pid, int64_t *ret_pss, int64_t *ret_swap);

#endif

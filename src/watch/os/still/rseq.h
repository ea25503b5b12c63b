/*
 * On which processor another process's thread last ran, from a word that the kernel keeps in the
 * thread's own memory.
 *
 * The C library (glibc since 2.35) registers a "restartable sequence" area for each thread; the
 * kernel writes the processor's number there before the thread executes anything on it. So if the
 * word names processor N, the thread has executed nothing elsewhere since it last executed
 * something on N. It is read together with everything else, without a system call of its own.
 */
#ifndef FM_OS_RSEQ_H
#define FM_OS_RSEQ_H

#include <stdbool.h>

#include "watch/os/remote/remote.h"

/* How far behind a thread's pthread_t the word lies (an int: the processor, negative if not
 * registered). False if this process has none, or this machine's C library keeps it elsewhere. */
bool fm_rseq_find(const struct fm_remote *remote, int64_t *ret_distance);

#endif

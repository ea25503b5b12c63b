/*
 * A child of fork has a copy of all records, which are the truth about its heap, but the accounts that
 * they name are the parent's, in memory that both see. So the child touches nothing before it has a
 * store of its own, which it makes at its first event: a child that executes at once needs none. What
 * it was born with is one account there; blocks that it makes have new ones.
 *
 * While a thread forks all others are outside of events, and wait if one begins (`fm_heap.here` is 0):
 * what the child gets is as it would be between two events, and no lock in it is held by nobody.
 *
 * A child of which pthread_atfork does not tell (clone, _Fork, or fork in a signal handler that came in
 * the middle of our work) records nothing: its locks may be held by nobody. It is known by a page that
 * the kernel empties in children, where `fm_heap.here` is.
 */
#ifndef FM_HEAP_FORK_H
#define FM_HEAP_FORK_H

#include <stdbool.h>

/* From now on this process records. */
void fm_fork_init(void);

/* An event where `here` is 0: false if it is not to be recorded. Waits if somebody forks. */
bool fm_fork_arrive(void);
void fm_fork_wait(void);

/* The same for other ends: all others are outside of events until they are let go. Quiet: nothing more is
 * recorded; only events that were open already go on as if it were. Busy must be set. False: somebody is still
 * inside. */
bool fm_fork_stop_others(void);
void fm_fork_let_others_go(bool quiet);
bool fm_fork_is_quiet(void);

#endif

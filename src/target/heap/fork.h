/*
 * A child of fork has a copy of all records, which are the truth about its heap, but the accounts that
 * they name are the parent's, in memory that both see. So the child touches nothing before it has a
 * store of its own, which it makes at its first event: a child that executes at once needs none. What
 * it was born with is one account there; blocks that it makes have new ones.
 *
 * Locks are held by the thread that forks while it does, so they are free in the child.
 */
#ifndef FM_HEAP_FORK_H
#define FM_HEAP_FORK_H

void fm_fork_init(void);

/* The first event in a child. Busy is set. */
void fm_fork_begin_child(void);

#endif

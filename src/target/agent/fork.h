/*
 * fork: the child records into a store of its own.
 *
 * The parent's store is shared memory, so the child must not touch it. Before the fork the calls
 * open on the forking thread are remembered in private memory; in the child the collector only lets
 * go of the store, because most children exec at once. The first event in the child opens a new
 * store and reopens the remembered calls in it, with no call counted and time from that moment.
 * A collector in private memory simply goes on in the child with its copy.
 */
#ifndef FM_AGENT_FORK_H
#define FM_AGENT_FORK_H

#include "target/agent/collector.h"

/* The first three with the lock held, by a thread that need not have the GIL; the others with the
 * GIL. */
void fm_fork_remember(struct fm_collector *c,
                      const struct fm_agent_thread *t); /* before, in the parent */
void fm_fork_forget(struct fm_collector *c);            /* after, in the parent */
bool fm_fork_abandon(struct fm_collector *c); /* in the child: true if the store was let go */
void fm_fork_begin(struct fm_collector *c);   /* in the child, at its first event */
void fm_fork_reopen_calls(struct fm_collector *c, struct fm_agent_thread *t);

#endif

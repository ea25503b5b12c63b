/*
 * Regions as nodes of the tree of calls: with --calls and --lines a region is a context below the function
 * that entered it, and what that calls meanwhile is below the region.
 *
 * The open call of the function stands, while it is in a region, for the region's context: its frame names that
 * as its node, so what it calls finds its parent there, and neither calls nor lines cost more. The frame's key
 * has a tag meanwhile (FM_KEY_IN_REGION), so that a call which ends or waits in a region does so by the slow path, which
 * first puts the frame's own node back. Regions that a function leaves open end with it in the tree; those
 * that a C function leaves open (push and pop, called from Python) go on in its caller.
 *
 * Entries and times are those of the region, exact, and recursion is as that of functions: a region below itself
 * is a node, too. Regions of threads without the GIL, and those with tokens, are in no tree. In a trace
 * the tree is made of the spans (record/model/trace).
 *
 * Threads: the GIL.
 */
#ifndef FM_AGENT_REGION_NODES_H
#define FM_AGENT_REGION_NODES_H

#include "target/agent/collector.h"
#include "target/agent/regions/visits.h"

/* The visit begins: `code` is that of the function which has it in its `with`; NULL: whatever runs. */
void fm_region_node_enter(struct fm_collector *c, struct fm_region_visit *v, const void *code);

/* The generator that is in it goes on. */
void fm_region_node_resume(struct fm_collector *c, struct fm_region_visit *v, const void *code);

/* It ends, or waits; it has a node. */
void fm_region_node_leave(struct fm_region_visit *v, uint64_t now, bool has_gil);

/* For the slow paths of calls, of the innermost call: its regions end with it in the tree; or they are taken out, and
 * go on in the call that is the innermost then. */
void fm_region_nodes_close(struct fm_agent_thread *t, uint64_t now);
struct fm_region_visit *fm_region_nodes_take(struct fm_agent_thread *t, uint64_t now);
void fm_region_nodes_go_on(struct fm_collector *c, struct fm_agent_thread *t,
                           struct fm_region_visit *taken);

/* Are there nodes of regions at all? */
static inline bool fm_region_nodes_on(const struct fm_collector *c)
{
    return c->running && !c->trace && !c->timer;
}

#endif

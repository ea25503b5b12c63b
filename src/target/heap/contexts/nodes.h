/*
 * The nodes of a thread's contexts, and the accounts of nodes. A thread finds and makes its own nodes
 * alone; only their numbers come from one place (store.h).
 */
#ifndef FM_HEAP_NODES_H
#define FM_HEAP_NODES_H

#include "target/heap/store.h"

/* The node of an instruction below `parent`, new or not; 0 if there is no room. */
uint32_t fm_nodes_child(struct fm_heap_self *self, uint32_t parent, uint32_t code, uint32_t offset);

uint32_t fm_nodes_account_new(uint32_t node, int world);

/* What a node has allocated in a world; 0 if there is no room. Only the thread of the node makes one;
 * the node of what came before all code, which is everybody's, has both from the start. */
static inline uint32_t fm_nodes_account(uint32_t node, int world)
{
    uint32_t account = fm_heap.nodes[node].account[world];
    return FM_LIKELY(account) ? account : fm_nodes_account_new(node, world);
}

#endif

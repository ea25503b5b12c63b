/* Nodes of contexts; see nodes.h. */
#include "target/heap/contexts/nodes.h"

#define FIRST_ROOM 512

static size_t hash(uint32_t parent, uint32_t code, uint32_t offset)
{
    uint64_t h = ((uint64_t)parent << 32 | code) * 0x9e3779b97f4a7c15u;
    return (size_t)((h ^ offset * 0xd6e8feb8u) * 0x9e3779b97f4a7c15u >> 24);
}

static uint32_t *find(const struct fm_heap_self *self, uint32_t parent, uint32_t code,
                      uint32_t offset)
{
    size_t mask = self->child_room - 1, i = hash(parent, code, offset) & mask;
    for (; self->children[i]; i = (i + 1) & mask) {
        const struct fm_heap_node *node = &fm_heap.nodes[self->children[i]];
        if (node->parent == parent && node->code == code && node->offset == offset)
            break;
    }
    return &self->children[i];
}

static bool make_room(struct fm_heap_self *self)
{
    if (self->child_count + 1 <= self->child_room / 2)
        return true;
    uint32_t room = self->child_room ? self->child_room * 2 : FIRST_ROOM;
    uint32_t *old = self->children, old_room = self->child_room;
    uint32_t *children = fm_heap_map(room * sizeof *children);
    if (!children)
        return false;
    self->children = children;
    self->child_room = room;
    for (uint32_t i = 0; i < old_room; i++) {
        const struct fm_heap_node *node = &fm_heap.nodes[old[i]];
        if (old[i])
            *find(self, node->parent, node->code, node->offset) = old[i];
    }
    if (old_room)
        fm_heap_unmap(old, old_room * sizeof *old);
    return true;
}

uint32_t fm_nodes_child(struct fm_heap_self *self, uint32_t parent, uint32_t code, uint32_t offset)
{
    if (!make_room(self))
        return 0;
    uint32_t *place = find(self, parent, code, offset);
    if (*place)
        return *place;
    uint32_t node = fm_heap_store_node(parent, code, offset, self->number);
    if (node) {
        *place = node;
        self->child_count++;
    }
    return node;
}

uint32_t fm_nodes_account_new(uint32_t node, int world)
{
    uint32_t account = fm_heap_store_account(node, fm_heap.nodes[node].thread);
    fm_heap.nodes[node].account[world] = account;
    return account;
}

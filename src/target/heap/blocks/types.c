/* Types of objects; see types.h. */
#include "target/heap/blocks/types.h"

#include "target/heap/account/account.h"
#include "target/heap/contexts/context.h"
#include "target/heap/contexts/nodes.h"
#include "target/heap/worlds/event.h"
#include "target/heap/worlds/python_world.h"

#define MOST_HEAD 64 /* bytes that may lie between the block and the object */

static void move_to_type(struct fm_heap_self *self, const struct fm_heap_last *last,
                         const void *type)
{
    uint32_t node = fm_heap.accounts[last->account].node;
    uint32_t typed = fm_context_of_type(self, node, type);
    uint32_t account = typed ? fm_nodes_account(typed, FM_HEAP_WORLD_PYTHON) : 0;
    if (account && fm_python_world_move(last->block, last->account, account))
        fm_account_move(fm_heap.header, &fm_heap.accounts[last->account],
                        &fm_heap.accounts[account], last->bytes);
}

void fm_types_block(struct fm_heap_self *self, const struct fm_heap_last *block)
{
    if (self->last.block && !(fm_heap.header->flags & FM_HEAP_TYPES_END) && fm_heap.has_layout &&
        fm_heap.layout.types_ended())
        fm_heap.header->flags |= FM_HEAP_TYPES_END;
    self->last = *block;
}

void fm_types_object(const char *object, const void *type)
{
    if (!fm_heap_self || !fm_heap_self->last.block || !fm_heap.has_layout)
        return;
    struct fm_heap_self *self = fm_event_enter();
    if (!self)
        return;
    struct fm_heap_last last = self->last;
    self->last.block = NULL;
    if (last.block && object >= last.block && object - last.block <= MOST_HEAD)
        move_to_type(self, &last, type);
    fm_event_leave(self);
}

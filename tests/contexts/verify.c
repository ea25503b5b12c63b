/*
 * The heap library's contexts with a check: every event's node is compared with one that is found by a
 * walk over all frames, without anchors, guesses or steps. A difference ends the program by SIGABRT.
 * Stands in the place of context.c; see test_contexts.py.
 */
#define fm_context_account   unchecked_account
#define fm_context_account_c unchecked_account_c
#include "target/heap/contexts/context.c"
#undef fm_context_account
#undef fm_context_account_c

#include <stdio.h>
#include <stdlib.h>

static unsigned long events, short_walks;

/* Oldest first, by recursion: as deep as the program is. */
static uint32_t node_by_walk(struct fm_heap_self *self, const void *f)
{
    const struct fm_heap_layout *l = &fm_heap.layout;
    while (f && owner_of(f) >= l->owner_foreign)
        f = pointer_at(f, l->frame_previous);
    if (!f)
        return self->root;
    uint32_t parent = node_by_walk(self, pointer_at(f, l->frame_previous));
    const char *code = (const char *)((uintptr_t)pointer_at(f, l->frame_code) & ~(uintptr_t)7);
    const char *instr = pointer_at(f, l->frame_instr);
    return fm_nodes_child(self, parent, fm_codes_number(code, FM_HEAP_DEF_CODE),
                          (uint32_t)(instr - (code + l->code_bytecode)));
}

uint32_t fm_context_account(struct fm_heap_self *self, int world, void *thread,
                            enum fm_context_holds holds);
uint32_t fm_context_account(struct fm_heap_self *self, int world, void *thread,
                            enum fm_context_holds holds)
{
    uint32_t account = unchecked_account(self, world, thread, holds);
    if (!account || !thread)
        return account;
    uint32_t found = fm_heap.accounts[account].node,
             right = node_by_walk(self, newest_frame(thread));
    __atomic_add_fetch(&events, 1, __ATOMIC_RELAXED);
    if (self->anchor_count)
        __atomic_add_fetch(&short_walks, 1, __ATOMIC_RELAXED);
    if (found != right) {
        dprintf(2, "context %u, but the frames are %u: event %lu, %u anchors\n", found, right,
                events, self->anchor_count);
        abort();
    }
    return account;
}

uint32_t fm_context_account_c(struct fm_heap_self *self);
uint32_t fm_context_account_c(struct fm_heap_self *self)
{
    void *thread = fm_heap.has_layout ? thread_of_this() : NULL;
    return fm_context_account(self, FM_HEAP_WORLD_C, thread, FM_CONTEXT_NO_GIL);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("VERIFIED");
    FILE *out = path && events ? fopen(path, "ae") : NULL;
    if (!out)
        return;
    fprintf(out, "%lu %lu\n", events, short_walks);
    fclose(out);
}

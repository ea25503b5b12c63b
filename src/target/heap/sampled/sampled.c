/* Sampled blocks; see sampled.h. */
#include "target/heap/sampled/sampled.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "target/heap/account/account.h"
#include "target/heap/contexts/context.h"
#include "target/heap/contexts/nodes.h"
#include "target/heap/sampled/sampled_account.h"
#include "target/heap/worlds/event.h"

#define STRETCHES_PER_SAMPLE 64 /* so few frees look for a record in vain */
#define LEAST_SHIFT          4
#define FULL                 255 /* of a stretch: it stays so */
#define SAMPLES_LEFT_OUT     64  /* when there is no memory for what a thread needs */

FM_HEAP_TLS struct fm_sampled_thread fm_sampled_here;
uint8_t fm_sampled_stretches[FM_SAMPLED_STRETCHES];
uint32_t fm_sampled_shift = LEAST_SHIFT;

static struct {
    struct fm_heap_blocks blocks; /* records: half A's account, halves and dice as slack, birth */
    fm_heap_lock lock;
    uint64_t seed;
    uint64_t variance_at_fork[FM_HEAP_WORLDS];
    uint64_t child_seed;
} sampled;

void fm_sampled_init(uint64_t sample_bytes, uint64_t seed)
{
    const void *random = (const void *)getauxval(AT_RANDOM); /* NOLINT: sixteen bytes */
    fm_heap.sample_bytes = sample_bytes;
    while (((uint64_t)2 << fm_sampled_shift) * STRETCHES_PER_SAMPLE <= sample_bytes)
        fm_sampled_shift++;
    sampled.seed = seed;
    if (!seed && random)
        memcpy(&sampled.seed, random, sizeof sampled.seed);
    if (!seed)
        sampled.seed += (uint64_t)getpid();
}

/* ---- records ---- */

static void stretch_add(const void *block)
{
    uint8_t *count = fm_sampled_stretch(block);
    if (*count != FULL)
        __atomic_store_n(count, *count + 1, __ATOMIC_RELAXED);
}

/* It stays so, also behind the end of the block. */
void fm_sampled_watch(const void *block)
{
    fm_heap_lock_take(&sampled.lock);
    stretch_add(block);
    fm_heap_lock_give(&sampled.lock);
}

static void stretch_subtract(const void *block)
{
    uint8_t *count = fm_sampled_stretch(block);
    if (*count != FULL)
        __atomic_store_n(count, *count - 1, __ATOMIC_RELAXED);
}

/* The account of a half that goes with another of its node. */
static struct fm_sampled_account account_of(uint32_t number, int half)
{
    uint32_t mine = number <= fm_heap.inherited
                        ? fm_heap.inherited_account[half]
                        : fm_heap.nodes[fm_heap.accounts[number].node].account[half];
    mine = mine ? mine : number; /* there was no room for it */
    return (struct fm_sampled_account){ fm_heap.header, &fm_heap.accounts[mine],
                                        &fm_heap.errors[mine], half };
}

static void count_size(int half, uint64_t bytes, struct fm_sampled_weight w, enum fm_heap_kind kind)
{
    struct fm_heap_counters *c = &fm_heap.header->worlds[half];
    c->sizes[fm_heap_size_bucket(bytes)] += (uint64_t)w.blocks;
    c->kind_blocks[kind] += (uint64_t)w.blocks;
    c->kind_bytes[kind] += (uint64_t)w.bytes;
}

/* What a block is in one of the halves; false: its record does not name that one. */
static bool is_in_half(const struct fm_heap_block *block, int half,
                       struct fm_sampled_account *ret_account, struct fm_sampled_weight *ret_weight)
{
    uint32_t drawn = fm_record_slack(block->record);
    if (!(drawn >> half & 1))
        return false;
    *ret_account = account_of(fm_record_account(block->record), half);
    *ret_weight = fm_sampled_weigh(block->bytes, fm_heap.sample_bytes, half, drawn >> 2);
    return true;
}

/* With the lock. */
static void count_begin(const struct fm_heap_block *block, enum fm_heap_kind kind)
{
    struct fm_sampled_account account;
    struct fm_sampled_weight w;
    for (int half = 0; half < FM_HEAP_WORLDS; half++) {
        if (!is_in_half(block, half, &account, &w))
            continue;
        fm_sampled_begin(&account, w);
        count_size(half, block->bytes, w, kind);
    }
}

static void count_end(const struct fm_heap_self *self, const struct fm_heap_block *block)
{
    struct fm_sampled_account account;
    struct fm_sampled_weight w;
    uint32_t age = fm_sampled_here.made - fm_record_birth(block->record);
    fm_sampled_fall(fm_heap.header);
    for (int half = 0; half < FM_HEAP_WORLDS; half++) {
        if (!is_in_half(block, half, &account, &w))
            continue;
        fm_sampled_end(&account, w);
        if (account.account->thread != self->number)
            continue;
        fm_heap.header->worlds[half].lives[fm_heap_life_bucket(age)] += (uint64_t)w.blocks;
        if (age <= FM_HEAP_TEMPORARY)
            fm_sampled_was_temporary(&account, w);
    }
}

static void put(struct fm_heap_self *self, struct fm_heap_block block, enum fm_heap_kind kind)
{
    struct fm_heap_block old;
    fm_heap_lock_take(&sampled.lock);
    bool ok = fm_blocks_put(&sampled.blocks, block.address, block.record, block.bytes, &old);
    if (ok) {
        stretch_add((const void *)block.address); /* NOLINT */
        count_begin(&block, kind);
    }
    if (ok && old.record) {                            /* it ended behind our back */
        stretch_subtract((const void *)block.address); /* NOLINT */
        count_end(self, &old);
    }
    fm_heap_lock_give(&sampled.lock);
    if (!ok)
        fm_heap_count_lost(FM_HEAP_LOST_BLOCKS);
}

/* ---- blocks that begin ---- */

static int64_t draw(struct fm_sampled_thread *here)
{
    return (int64_t)fm_chance_distance(&here->random, fm_heap.sample_bytes);
}

/* The first block of a thread, or of a child. */
static void arm(struct fm_sampled_thread *here, const struct fm_heap_self *self)
{
    uint64_t mixed = sampled.seed + self->number;
    here->random = fm_chance_next(&mixed);
    here->made = self->allocations;
    here->armed = 1;
    here->left = draw(here);
}

static bool is_python(enum fm_heap_kind kind)
{
    return kind == FM_HEAP_KIND_OBJECT || kind == FM_HEAP_KIND_MEMORY;
}

static void *running_thread(void)
{
    return fm_heap.has_layout ? fm_heap.layout.current_thread() : NULL;
}

/* An account of the context, and with it those of both halves. */
static uint32_t account_here(struct fm_heap_self *self, enum fm_heap_kind kind)
{
    uint32_t any = is_python(kind) ? fm_context_account(self, 0, running_thread(), FM_CONTEXT_GIL)
                                   : fm_context_account_c(self);
    uint32_t node = any ? fm_heap.accounts[any].node : 0;
    return node && fm_nodes_account(node, 1) ? fm_nodes_account(node, 0) : 0;
}

static void begins(struct fm_heap_self *self, void *block, uint64_t before, size_t bytes,
                   enum fm_heap_kind kind)
{
    struct fm_sampled_thread *here = &fm_sampled_here;
    uint32_t account = account_here(self, kind);
    uint32_t halves = fm_sampled_halves(&here->random, before, bytes, fm_heap.sample_bytes);
    uint32_t dice = (uint32_t)(fm_chance_next(&here->random) % FM_SAMPLED_DICE);
    here->left = draw(here);
    self->allocations = here->made;
    if (!account) {
        fm_heap_count_lost(FM_HEAP_LOST_BLOCKS);
        return;
    }
    uint64_t record = fm_record(account, halves | dice << 2, here->made);
    put(self, (struct fm_heap_block){ (uintptr_t)block, record, bytes }, kind);
}

void fm_sampled_passed(void *block, size_t bytes, enum fm_heap_kind kind)
{
    struct fm_sampled_thread *here = &fm_sampled_here;
    int saved_errno = errno;
    struct fm_heap_self *self = fm_event_enter();
    if (!self) {
        here->left = (int64_t)fm_heap.sample_bytes * SAMPLES_LEFT_OUT;
        return;
    }
    if (!here->armed) {
        arm(here, self);
        here->made++;
        here->left -= (int64_t)bytes;
    }
    if (here->left < 0)
        begins(self, block, (uint64_t)(here->left + (int64_t)bytes), bytes, kind);
    fm_event_leave(self);
    errno = saved_errno;
}

void fm_sampled_refused(size_t bytes, enum fm_heap_kind kind)
{
    int saved_errno = errno;
    struct fm_heap_self *self = bytes ? fm_event_enter() : NULL;
    if (!self)
        return;
    if (is_python(kind))
        fm_context_refused(self, bytes, running_thread(), FM_CONTEXT_GIL);
    else
        fm_context_refused_c(self, bytes);
    fm_event_leave(self);
    errno = saved_errno;
}

/* ---- blocks that end ---- */

struct fm_heap_block fm_sampled_take(const void *block)
{
    int saved_errno = errno;
    struct fm_heap_block found = { 0, 0, 0 };
    struct fm_heap_self *self = fm_event_enter();
    if (!self)
        return found;
    fm_heap_lock_take(&sampled.lock);
    found = fm_blocks_take(&sampled.blocks, (uintptr_t)block);
    if (found.record)
        stretch_subtract(block);
    fm_heap_lock_give(&sampled.lock);
    fm_event_leave(self);
    errno = saved_errno;
    return found;
}

void fm_sampled_put_back(const struct fm_heap_block *taken)
{
    struct fm_heap_block old;
    struct fm_heap_self *self = fm_event_enter();
    if (!self)
        return;
    fm_heap_lock_take(&sampled.lock);
    if (fm_blocks_put(&sampled.blocks, taken->address, taken->record, taken->bytes, &old))
        stretch_add((const void *)taken->address); /* NOLINT */
    fm_heap_lock_give(&sampled.lock);
    fm_event_leave(self);
}

void fm_sampled_ended(const struct fm_heap_block *taken)
{
    struct fm_heap_self *self = fm_event_enter();
    if (!self)
        return;
    fm_heap_lock_take(&sampled.lock);
    count_end(self, taken);
    fm_heap_lock_give(&sampled.lock);
    fm_event_leave(self);
}

void fm_sampled_ends(const void *block)
{
    struct fm_heap_block found = fm_sampled_take(block);
    if (found.record)
        fm_sampled_ended(&found);
}

void *fm_sampled_realloc(fm_c_world_resize *resize, const void *data, void *old, size_t bytes)
{
    struct fm_heap_block taken = { 0, 0, 0 };
    if (!fm_heap_busy && old && fm_sampled_may_know(old))
        taken = fm_sampled_take(old);
    int busy = fm_sampled_enter();
    void *block = resize(data, old, bytes);
    if (taken.record) {
        int saved_errno = errno;
        fm_heap_busy = busy;
        if (block || !bytes)
            fm_sampled_ended(&taken);
        else
            fm_sampled_put_back(&taken);
        errno = saved_errno;
    }
    return fm_sampled_leave(busy, block, bytes, FM_HEAP_KIND_REALLOC);
}

/* ---- mappings ---- */

/* Certain: half of it for each half, the block for one. */
static struct fm_sampled_weight weight_of_mapping(uint64_t bytes, int32_t blocks, int half)
{
    return (struct fm_sampled_weight){ (int64_t)((bytes + (uint64_t)half) / 2), half ? blocks : 0,
                                       0 };
}

void fm_sampled_mapped(uint32_t account, uint64_t bytes)
{
    fm_nodes_account(fm_heap.accounts[account].node, 0);
    fm_heap_lock_take(&sampled.lock);
    for (int half = 0; half < FM_HEAP_WORLDS; half++) {
        struct fm_sampled_account a = account_of(account, half);
        struct fm_sampled_weight w = weight_of_mapping(bytes, 1, half);
        fm_sampled_begin(&a, w);
        count_size(half, bytes, w, FM_HEAP_KIND_MMAP);
    }
    fm_heap_lock_give(&sampled.lock);
}

void fm_sampled_unmapped(uint32_t account, uint64_t bytes, int32_t blocks)
{
    fm_heap_lock_take(&sampled.lock);
    fm_sampled_fall(fm_heap.header);
    for (int half = 0; half < FM_HEAP_WORLDS; half++) {
        struct fm_sampled_account a = account_of(account, half);
        fm_sampled_end(&a, weight_of_mapping(bytes, blocks, half));
    }
    fm_heap_lock_give(&sampled.lock);
}

/* ---- fork ---- */

void fm_sampled_hold(void)
{
    fm_heap_lock_take(&sampled.lock);
    if (!fm_heap.sample_bytes || !fm_heap.header || fm_heap.forked)
        return;
    sampled.child_seed = sampled.seed ^ fm_chance_next(&fm_sampled_here.random);
    for (int i = 0; i < FM_HEAP_WORLDS; i++)
        sampled.variance_at_fork[i] = fm_heap.header->halves[i].variance;
}

void fm_sampled_release(void)
{
    fm_heap_lock_give(&sampled.lock);
}

void fm_sampled_in_child(void)
{
    sampled.seed = sampled.child_seed;
    fm_sampled_here.armed = 0;
    fm_sampled_here.left = 0;
}

void fm_sampled_inherit(void)
{
    struct fm_heap_header *h = fm_heap.header;
    for (int i = 0; i < FM_HEAP_WORLDS; i++) {
        struct fm_heap_error *error = &fm_heap.errors[fm_heap.inherited_account[i]];
        error->live = error->at = h->halves[i].variance = sampled.variance_at_fork[i];
        h->halves[i].peak = h->worlds[i].live;
    }
}

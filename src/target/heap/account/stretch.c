/* Stretches of the program; see stretch.h. */
#include "target/heap/account/stretch.h"

#include "target/heap/account/account.h"
#include "target/heap/worlds/event.h"

struct aside {
    int64_t at;
    int64_t at_blocks;
};

static struct {
    struct aside *accounts; /* by number; NULL: no stretch is open */
    uint64_t count;
    int64_t peak, peak_blocks;
} aside;

static void put_aside(struct fm_heap_header *h, uint32_t number)
{
    const struct fm_heap_account *a = &fm_heap.accounts[number];
    bool now = __atomic_load_n(&h->rising, __ATOMIC_RELAXED) ||
               __atomic_load_n(&a->epoch, __ATOMIC_RELAXED) != fm_heap_epoch(h);
    aside.accounts[number] =
        (struct aside){ now ? __atomic_load_n(&a->live, __ATOMIC_RELAXED) : a->at,
                        now ? __atomic_load_n(&a->live_blocks, __ATOMIC_RELAXED) : a->at_blocks };
}

static bool begin(struct fm_heap_header *h)
{
    uint64_t count = h->used[FM_HEAP_ACCOUNTS];
    aside.accounts = fm_heap_map((count + 1) * sizeof *aside.accounts);
    if (!aside.accounts)
        return false;
    aside.count = count;
    aside.peak = h->earlier_peak = __atomic_load_n(&h->peak, __ATOMIC_RELAXED);
    aside.peak_blocks = h->peak_blocks;
    for (uint64_t i = 0; i < count; i++)
        put_aside(h, (uint32_t)i);
    __atomic_store_n(&h->peak, fm_heap_live(h), __ATOMIC_RELAXED);
    __atomic_store_n(&h->rising, 1, __ATOMIC_RELAXED); /* the highest is now */
    return true;
}

/* What was before was higher: it is the peak again. */
static void put_back(struct fm_heap_header *h)
{
    uint64_t count = h->used[FM_HEAP_ACCOUNTS];
    __atomic_store_n(&h->peak, aside.peak, __ATOMIC_RELAXED);
    __atomic_store_n(&h->rising, 0, __ATOMIC_RELAXED);
    h->peak_blocks = aside.peak_blocks;
    for (uint64_t i = 0; i < count; i++) {
        struct aside old = i < aside.count ? aside.accounts[i] : (struct aside){ 0 };
        fm_heap.accounts[i].at = old.at;
        fm_heap.accounts[i].at_blocks = (int32_t)old.at_blocks;
        __atomic_store_n(&fm_heap.accounts[i].epoch, fm_heap_epoch(h), __ATOMIC_RELEASE);
    }
}

void fm_stretch_forget(void)
{
    aside.accounts = NULL; /* its memory is left to the process */
}

/* The agent, with the GIL: a stretch begins. What is alive now; −1 if not every block is recorded, a stretch is open
 * already, or there is no memory for it. */
FM_HEAP_EXPORT int64_t fathom_heap_stretch_begin(void)
{
    struct fm_heap_self *self = fm_heap.sample_bytes ? NULL : fm_event_enter();
    if (!self)
        return -1;
    bool begun = !aside.accounts && begin(fm_heap.header);
    int64_t live = fm_heap_live(fm_heap.header);
    fm_event_leave(self);
    return begun ? live : -1;
}

/* … and ends. Its peak; −1 if none is open. */
FM_HEAP_EXPORT int64_t fathom_heap_stretch_end(void)
{
    struct fm_heap_self *self = fm_event_enter();
    int64_t peak = -1;
    if (self && aside.accounts) {
        peak = __atomic_load_n(&fm_heap.header->peak, __ATOMIC_RELAXED);
        if (aside.peak > peak)
            put_back(fm_heap.header);
        fm_heap.header->earlier_peak = 0;
        fm_heap_unmap(aside.accounts, (aside.count + 1) * sizeof *aside.accounts);
        aside.accounts = NULL;
    }
    if (self)
        fm_event_leave(self);
    return peak;
}

/* Its peak so far; −1 if none is open. */
FM_HEAP_EXPORT int64_t fathom_heap_stretch_peak(void)
{
    return aside.accounts && fm_heap.header && !fm_heap.forked
               ? __atomic_load_n(&fm_heap.header->peak, __ATOMIC_RELAXED)
               : -1;
}

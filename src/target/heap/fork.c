/* Children; see fork.h. */
#include "target/heap/fork.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/heap/account/account.h"
#include "target/heap/account/stretch.h"
#include "target/heap/account/together.h"
#include "target/heap/blocks/ranges.h"
#include "target/heap/contexts/codes.h"
#include "target/heap/contexts/nodes.h"
#include "target/heap/contexts/threads.h"
#include "target/heap/sampled/sampled.h"
#include "target/heap/worlds/alone.h"
#include "target/heap/worlds/mappings.h"
#include "target/heap/worlds/python_world.h"

/* What is alive when a process forks; its header is the parent's afterwards. */
static struct {
    int64_t live[FM_HEAP_WORLDS], blocks[FM_HEAP_WORLDS];
    int64_t python_large, mapped;
} at_fork;

static fm_heap_lock forking;

/* By the thread that forks, if it is not in the middle of our work: then it may have the locks. */
static FM_HEAP_TLS bool holds;

static void hold_all(void)
{
    fm_alone_hold();
    fm_python_world_hold();
    fm_codes_hold();
    fm_mappings_hold();
    fm_sampled_hold();
    fm_ranges_hold();
    fm_heap_store_hold();
}

static void release_all(void)
{
    fm_heap_store_release();
    fm_ranges_release();
    fm_sampled_release();
    fm_mappings_release();
    fm_codes_release();
    fm_python_world_release();
    fm_alone_release();
}

static void before(void)
{
    holds = !fm_heap_busy && fm_heap.header;
    if (!holds)
        return;
    fm_heap_busy = 1;
    fm_heap_lock_take(&forking);
    __atomic_store_n(fm_heap.here, 0, __ATOMIC_RELEASE);
    fm_threads_await(NULL);
    hold_all();
    for (int i = 0; i < FM_HEAP_WORLDS && !fm_heap.forked; i++) {
        at_fork.live[i] = fm_heap.header->worlds[i].live;
        at_fork.blocks[i] = fm_heap.header->worlds[i].live_blocks;
    }
    at_fork.python_large = fm_heap.header->python_large;
    at_fork.mapped = fm_heap.header->mapped;
}

static void release(void)
{
    if (!holds)
        return;
    holds = false;
    release_all();
    __atomic_store_n(fm_heap.here, !fm_heap.forked && !fm_heap.quiet, __ATOMIC_RELEASE);
    fm_heap_lock_give(&forking);
    fm_heap_busy = 0;
}

static void in_child(void)
{
    /* What an interrupted event still counts, it counts in the parent's store: the header stays. */
    fm_heap.here[FM_HEAP_OPEN] = fm_heap.here[FM_HEAP_HERE] = 0;
    fm_heap.forked = holds && !fm_heap.quiet;
    if (fm_heap_self)
        fm_threads_meter_at(fm_heap_self, NULL); /* where it was may be the parent's */
    fm_sampled_in_child();
    release();
}

bool fm_fork_stop_others(void)
{
    fm_heap_lock_take(&forking);
    __atomic_store_n(fm_heap.here, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&fm_heap.quiet, false, __ATOMIC_SEQ_CST);
    /* Who was outside once stays outside, though it may say that it is inside before it sees why not. */
    bool begun = fm_threads_await_beginning();
    return fm_threads_await(NULL) && begun;
}

void fm_fork_let_others_go(bool quiet)
{
    __atomic_store_n(&fm_heap.quiet, quiet, __ATOMIC_SEQ_CST);
    fm_heap.here[FM_HEAP_HERE] = 1;
    __atomic_store_n(fm_heap.here, !quiet, __ATOMIC_SEQ_CST);
    fm_heap_lock_give(&forking);
}

bool fm_fork_is_quiet(void)
{
    return __atomic_load_n(&fm_heap.quiet, __ATOMIC_ACQUIRE);
}

void fm_fork_wait(void)
{
    fm_heap_lock_take(&forking);
    fm_heap_lock_give(&forking);
}

/* Without such a page (Linux before 4.14) children that nobody tells of count in the parent's store. */
void fm_fork_init(void)
{
    static uint32_t plain[2];
    static bool begun;
    if (begun)
        return; /* of another recording; who began this one lets others go */
    begun = true;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint32_t *here = fm_heap_map(page);
    fm_heap.here = here && madvise(here, page, MADV_WIPEONFORK) == 0 ? here : plain;
    fm_heap.here[FM_HEAP_OPEN] = fm_heap.here[FM_HEAP_HERE] = 1;
    pthread_atfork(before, release, in_child);
}

/* All that is alive, under a root of its own. */
static bool begin_inherited(void)
{
    struct fm_heap_header *h = fm_heap.header;
    uint32_t node = fm_heap_store_node(0, 0, 0, UINT32_MAX); /* nobody's: ages mean nothing */
    fm_heap.before = node;
    for (int i = 0; i < FM_HEAP_WORLDS && node; i++) {
        uint32_t number = fm_nodes_account_new(node, i);
        if (!number)
            return false;
        h->worlds[i].live = at_fork.live[i];
        h->worlds[i].live_blocks = at_fork.blocks[i];
        struct fm_heap_account *a = &fm_heap.accounts[number];
        a->at = a->live = at_fork.live[i];
        a->at_blocks = a->live_blocks = (int32_t)at_fork.blocks[i];
        fm_heap.inherited_account[i] = number;
        h->peak += at_fork.live[i];
    }
    h->python_large = at_fork.python_large;
    h->mapped = at_fork.mapped;
    fm_heap_own_retell();
    fm_ranges_retell();
    fm_heap.inherited = h->inherited;
    if (fm_heap.sample_bytes && node)
        fm_sampled_inherit();
    fm_together_join();
    return node != 0;
}

static void begin_child(void)
{
    int saved_errno = errno;
    fm_heap.forked = false;
    fm_heap.events = NULL;
    if (fm_heap_store_reopen() == 0) {
        fm_events_open();
        fm_heap.header->flags |= fm_heap.python ? FM_HEAP_PYTHON : 0;
        fm_codes_reset();
        if (begin_inherited()) {
            fm_threads_reset();
            fm_stretch_forget();
            fm_heap_store_ready();
            fm_heap.here[FM_HEAP_OPEN] = fm_heap.here[FM_HEAP_HERE] = 1;
        }
    }
    if (!fm_heap.here[FM_HEAP_OPEN])
        fm_heap.header = NULL;
    errno = saved_errno;
}

bool fm_fork_arrive(void)
{
    if (!fm_heap.header || fm_fork_is_quiet())
        return false;
    fm_heap_busy = 1;
    if (fm_heap.forked)
        begin_child();
    else if (!fm_heap_is_here())
        fm_heap.header = NULL; /* a child that nobody told of */
    else
        fm_fork_wait();
    fm_heap_busy = 0;
    return fm_heap.header;
}

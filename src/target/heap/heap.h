/*
 * The heap library: every allocation of a program, with the Python code that asked for it.
 *
 * It stands first in LD_PRELOAD, and is there only with `fathom run --memory`. Model:
 *
 *   event    a block begins or ends. The outermost layer counts: PyObject_Malloc (hooked by
 *            PyMem_SetAllocator) hides the malloc below it, and malloc hides mmap. So each block is
 *            counted once, at the layer that its owner knows.
 *   context  the instructions of all Python frames of the thread, as a node of a tree (context.h).
 *   account  what one context has allocated (capture/live_heap.h), and how much of it was alive at
 *            the peak: exact, without a list of events.
 *   record   which account a living block belongs to, and its size: pools.h for small blocks of
 *            Python, blocks.h for all others.
 *
 * Two worlds. Python's allocators are called with the GIL held: their records, accounts and counters
 * are plain. malloc and mmap are called by anybody: theirs have an owner, or are atomic or behind small
 * locks (alone.h). A block belongs to the world that it was made in, and is given back there.
 *
 * Manners
 *   1. The real function is called whatever happens here; its result and errno are what the program
 *      sees. Nothing here allocates by a function that is hooked.
 *   2. `busy` of a thread is set while we work: what is called meanwhile, by the layers below or by a
 *      signal handler, is passed on and not counted.
 *   3. The record of a block goes before the block does: another thread may be given its address at
 *      once.
 *   4. Blocks that are not known (made before us, or behind our back) are passed on and counted.
 *   5. After a fork nothing shared is touched before the child has a store of its own, and never in a
 *      child of which nobody told us (fork.h).
 */
#ifndef FM_HEAP_HEAP_H
#define FM_HEAP_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/capture/live_heap.h"
#include "target/heap/layout.h"

#define FM_HEAP_EXPORT __attribute__((visibility("default")))
#define FM_LIKELY(x)   __builtin_expect(!!(x), 1)
#define FM_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* A frame of the stack that the last context was found for, oldest first. */
struct fm_heap_step {
    const void *frame;
    const void *instr;
    uint32_t node;
};

/* A frame that lives, as its frame object proves: all older ones are as they were (context.h). */
struct fm_heap_anchor {
    uint32_t step;      /* its number in the steps */
    uint32_t served;    /* how often it spared a walk … */
    uint32_t worth;     /* … and how often it must, to be worth its price */
    const char *object; /* the frame object */
};

#define FM_HEAP_ANCHORS 12
#define FM_HEAP_GUESSES 1024 /* a power of two */

/* The node of an instruction below a node, as it was found last time. */
struct fm_heap_guess {
    const void *instr;
    uint32_t parent, node;
    uint32_t era;
};

/* The block of Python's that a thread allocated last, for types.h. */
struct fm_heap_last {
    const char *block; /* NULL: none, or it has its type */
    uint64_t bytes;
    uint32_t account;
};

/* A thread, as long as it lives; then another takes the record over. Its own, but for `tid`, for
 * `inside`, which others read, and for `anchors`, which whoever frees a frame object takes away with
 * the GIL held. */
struct fm_heap_self {
    struct fm_heap_meter
        *meter; /* its own, or where the agent wants it: see fathom_heap_meter_at() */
    struct fm_heap_meter own_meter;
    struct fm_heap_last last;
    uint32_t inside;                   /* an event: see event.h */
    uint32_t shared_events, by_itself; /* in a C world without an owner: see alone.h */
    uint32_t number;                   /* in the store */
    uint32_t tid;
    int *errno_at;                 /* &errno: asking for it is a call */
    struct fm_heap_thread *record; /* in the store */
    uint32_t name_in, name_tries;  /* frees until it is asked for its name; 0: never */
    const void *thread;            /* the Python thread state of its last event that had the GIL */
    uint32_t root;                 /* node of what is allocated without Python code */
    uint32_t allocations;          /* counts up, around */
    uint32_t era;                  /* fm_heap.era as of the steps: no code in them has died since */
    const void *walked;            /* the thread state whose stack the steps are */
    struct fm_heap_step *steps, *fresh; /* the stack as it was, and room to see what it is */
    uint32_t depth, room;
    uint32_t anchor_count;
    struct fm_heap_anchor anchors[FM_HEAP_ANCHORS]; /* older frames first */
    bool wants_anchor;                              /* a walk without the GIL was long */
    uint32_t lasting; /* so many frames have been on the stack for `seen` events */
    uint32_t seen, patience;
    const void *top; /* the newest frame of a stack that was the same for `top_seen` events */
    uint32_t top_seen;
    uint32_t *children; /* nodes by parent, code and offset: an open table */
    uint32_t child_count, child_room;
    struct fm_heap_self *next;
    struct fm_heap_guess guesses[FM_HEAP_GUESSES];
};

/* Everything, but for tables of records. Written by the constructor and, where it says so, later. */
struct fm_heap_state {
    struct fm_heap_header *header; /* NULL: nothing is recorded */
    uint32_t *here;                /* never NULL; 0: not in this process, or not now: fork.h */
    struct fm_heap_self *owner;    /* of the C world; NULL: nobody. See alone.h */
    bool python;                   /* Python's allocators, too, not only C's */
    bool forked;                   /* in a child that has no store of its own yet */
    bool quiet;                    /* a recording is over, in this very process: see late.c */
    uint32_t round;                /* … and how many there were before this one */
    bool parallel;                 /* several GILs: the Python world takes a lock, too */
    bool has_layout;
    bool types;      /* of objects are recorded */
    bool scarce;     /* memory is: the store lies on disk, if there is one */
    uint32_t before; /* node of what was allocated before the program's first code */
    uint32_t era;    /* grows when a code object that is in a context dies; relaxed atomic */
    /* Of a forked child: of all blocks that it was born with, by world, and the last of the numbers
     * that those blocks' accounts had. */
    uint32_t inherited_account[FM_HEAP_WORLDS], inherited;
    const void *interpreter; /* the first one's, as a thread state names it */
    struct fm_heap_layout layout;
    struct fm_heap_node *nodes;       /* by number */
    struct fm_heap_account *accounts; /* by number */
    struct fm_heap_share *shares;     /* by number of the account */
    struct fm_heap_error *errors;     /* the same: of sampled blocks */
    uint64_t sample_bytes;            /* 0: every block; else see sampled.h */
    struct fm_heap_run *run;          /* never NULL: see together.h */
    bool every;                       /* event is told to the launcher (events.h) … */
    struct fm_events_header *events;  /* … here; NULL: not */
    char folder[512], more[512];
};

extern struct fm_heap_state fm_heap;

/* The words of fm_heap.here: whether events may begin, which is not so while somebody forks; and whether
 * this process records, which is not so in a child before it has a store of its own. */
enum { FM_HEAP_OPEN, FM_HEAP_HERE };

static inline bool fm_heap_is_here(void)
{
    return __atomic_load_n(&fm_heap.here[FM_HEAP_HERE], __ATOMIC_RELAXED) &&
           !__atomic_load_n(&fm_heap.quiet, __ATOMIC_RELAXED);
}

/* Of this thread; NULL until its first event. `fm_heap_busy`: see manners. */
#define FM_HEAP_TLS __thread __attribute__((tls_model("initial-exec")))
extern FM_HEAP_TLS struct fm_heap_self *fm_heap_self;
extern FM_HEAP_TLS int fm_heap_busy;

/* The system call itself: the function of that name is hooked. MAP_FAILED if it fails. */
void *fm_heap_mmap(void *address, size_t bytes, int protection, int flags, int fd, long at);

/* Memory of our own, zeroed, page-wise; NULL if there is none. Never from a hooked function. */
void *fm_heap_map(size_t bytes); /* counted as Fathom's own until it is given back */
void fm_heap_unmap(void *memory, size_t bytes);

/* Room for twice as many: `*room` of so many bytes each, 0 at first, of which `used` are kept. NULL, and
 * nothing changed, if there is no memory. */
void *fm_heap_enlarged(void *array, size_t used, size_t *room, size_t each_bytes);

/* In a child: where that is, in its own store. */
void fm_heap_own_retell(void);

/* A lock for rare work; never held while the program's code runs. */
typedef struct {
    int held;
} fm_heap_lock;
void fm_heap_lock_take_slowly(fm_heap_lock *lock);

/* Let others go on: for an instant, or for some microseconds. A thread whom the system prefers (SCHED_FIFO)
 * only sleeps for those it waits for. */
void fm_heap_nap(bool instant);

static inline void fm_heap_lock_take(fm_heap_lock *lock)
{
    if (FM_UNLIKELY(__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE)))
        fm_heap_lock_take_slowly(lock);
}

static inline void fm_heap_lock_give(fm_heap_lock *lock)
{
    __atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}

static inline void fm_heap_count_lost(enum fm_heap_lost what)
{
    __atomic_add_fetch(&fm_heap.header->lost[what], 1, __ATOMIC_RELAXED);
}

#endif

/*
 * The calls collector: the exact calling-context tree of every thread, kept as events arrive.
 *
 * Model. A collector owns a live store (store.h). Each thread has a stack of open calls; entering a
 * function finds or makes the node "this function under that caller" and pushes it with the time,
 * leaving pops it and adds the elapsed ticks. Self times, primitive calls, callers and callees all
 * follow from the tree and are computed by the reader, so nothing of that is kept here.
 *
 * Invariants
 *   1. A thread's stack[0] is its root and never popped; `top` points at the innermost open call.
 *   2. A node's `last_child` is one of its children, or &fm_no_child, whose func matches nothing.
 *   3. Function ids are never 0 in a node that is not a root; a function whose id is 0 has not been
 *      defined in the current store, so the comparison with `last_child` fails and the slow path
 * runs.
 *   4. A node's `next_hint` leads to a sibling or to itself: programs call the children of a node
 * in the same order again and again, so the two guesses spare most lookups in the table.
 *   5. A call for which no context is to be had is pushed all the same, with the collector's
 * `nowhere`, which is in no store: so every exit finds its entry.
 *   6. When a thread's stack can no longer grow, its last place holds a lid: a frame that no return
 * matches. Calls above it are only counted (`beyond`), until as many have returned; then the lid
 * goes. So a call without a frame never closes another's, and the hot path does not know of it.
 *   7. The time is read last on entry and first on exit: what the agent does in between is charged
 *      to the caller, never to the function measured.
 *
 * Threads. Every event arrives with the GIL held, and every function here is called with it unless
 * it says otherwise. Without the GIL come: a thread that ends, one that forks, one that exits or
 * executes (threads.c, start.c). They hold the agent's lock (threads.h) and touch what is marked so
 * below, and nothing else; who has the GIL takes that lock too before touching these. `slot`
 * numbers the collectors that may run side by side (a program may profile itself under `fathom
 * run`); a stopped collector keeps its slot until another one needs it.
 */
#ifndef FM_AGENT_COLLECTOR_H
#define FM_AGENT_COLLECTOR_H

#include "base/clock.h"
#include "target/agent/lines/line_memory.h"
#include "target/agent/python.h"
#include "target/agent/store.h"
#include "target/agent/table.h"
#include "target/agent/trace/chunks.h"

#define FM_KEY_IN_REGION 1u /* tag of a frame's key: see regions/region_nodes.h */

#define FM_SLOTS 3 /* collectors that may run at the same time */

/* A function as one collector knows it: Python code by content, C functions by definition. Never
 * freed. The GIL. */
struct fm_func {
    uint32_t id;      /* in the current store; 0: not defined there yet */
    uint32_t flags;   /* enum fm_live_function_flags */
    const void *key;  /* C: the PyMethodDef */
    const void *meth; /* C: its function, to notice a definition whose memory was used again */
    PyObject *owned;  /* what getstats() shows: code object or name; NULL if not asked to keep it */
    char *name;       /* C: its name, to define it again after a fork */
    struct fm_func_lines *lines;  /* NULL: its lines are not recorded; see lines.h */
    bool lines_known;             /* … which has been decided */
    uint8_t trace_choice;         /* enum fm_trace_choice */
    uint8_t trace_role;           /* enum fm_trace_role */
    struct fm_trace_asked *asked; /* NULL: no values of it are wanted; see trace/values.h */
    uint32_t trace_word;          /* CALL and id, as a trace has them; 0: not as simple as that */
    struct fm_func *next;         /* all functions of the slot */
};

/* Is a function in the trace? */
enum fm_trace_choice { FM_TRACE_UNDECIDED = 0, FM_TRACE_SHOWN, FM_TRACE_NOT_SHOWN };

/* What part has it in the life of asyncio's tasks? Others than the first go the slow way. */
enum fm_trace_role { FM_TRACE_ANY = 0, FM_TRACE_COROUTINE, FM_TRACE_MAKES_TASKS };

struct fm_collector;

/* Never freed: a record goes from thread to thread. */
struct fm_agent_thread {
    /* The calls open on the thread. Its own with the GIL; whoever closes all calls of all threads
     * has the GIL and the lock; a thread that forks reads its own with the lock. */
    struct fm_live_frame *top;
    struct fm_trace_writer
        trace; /* in trace mode; see trace/trace.h. Behind `top`: one cache line */
    struct fm_live_frame *base, *limit; /* limit: one past the last usable frame */
    uint64_t beyond;                    /* calls on top of the lid; 0: there is no lid */
    uint32_t stack;                     /* the number of the chunk that base[] lies in */
    struct fm_line_frame *lines;        /* beside base[0…]; NULL unless lines are recorded */
    size_t lines_cap;
    struct fm_heap_meter *meter; /* of the heap library; NULL: memory of lines is not recorded */
    struct fm_heap_meter last_meter; /* … as it was when the thread ended */
    struct fm_region_visit *regions; /* that have a node on the stack; regions/region_nodes.h */
    struct fm_agent_table abroad;    /* line record → activations counted here, see lines.h */
    uintptr_t abroad_open;           /* their sum */
    /* The lock, from here on. */
    struct fm_live_thread *live; /* what it points at: `depth` and `name` as the calls above */
    struct fm_collector *collector;
    struct fm_agent_thread **current; /* the thread's fm_current[slot], to unhook it from outside */
    clockid_t cpu_clock;
    uint64_t cpu_look_ticks;      /* when the CPU clock was last read */
    struct fm_agent_thread *next; /* in the one list of its collector that it is in */
};

/* A generator between yield and resume. The GIL. */
struct fm_pause {
    const void *frame;
    uint64_t func;             /* as in the thread's frames */
    struct fm_live_node *node; /* NULL while it runs */
    struct fm_live_line *line; /* on which it waits, or NULL */
    int last_line;
    uint64_t since_ticks;
};

/* Which values a trace has; "": none. See trace/values.h. */
struct fm_trace_ask {
    char args[1024], returns[1024]; /* patterns of functions */
    char watch[1024];               /* FILE:LINE:NAME, separated by commas */
    bool repr;                      /* objects are asked for their repr() */
    uint64_t second_ticks;
};

struct fm_options {
    const char *folder, *more_folder; /* NULL: private memory */
    bool calls; /* every call; without it only calls of functions with lines */
    bool c_calls;
    const char *lines;     /* NULL: no lines; else patterns, see choose.h ("": only marked ones) */
    bool keep_code;        /* hold code objects so that getstats() can show them */
    bool lines_split;      /* physical lines, not statements */
    bool lines_wait;       /* no patterns, and no events before a function is marked */
    bool trace;            /* tell of every call instead of keeping a tree; see trace/trace.h */
    bool trace_drop;       /* … and drop what there is no room for, instead of waiting */
    uint32_t trace_depth;  /* 0, or the depth beyond which calls are hidden */
    uint64_t trace_min_ns; /* calls that are shorter are hidden */
    bool trace_late;       /* the program may run already when it begins; see trace/late.h */
    bool trace_exceptions; /* somebody waits for one, whatever they cost (3.11) */
    const char *trace_include, *trace_exclude; /* NULL, or patterns */
    struct fm_trace_ask ask;
    bool redact;     /* no arguments of command lines, no text of generated code */
    PyObject *timer; /* NULL, or a callable instead of the clock; `timer_unit` as in cProfile */
    double timer_unit;
};

/* Calls that were open when the process forked, to be open in the child's own store too. */
struct fm_inherited {
    struct fm_func *func;
    const void *key;
};

/* The GIL protects it; the lock too where it says so. */
struct fm_collector {
    int slot;
    bool running;     /* recording */
    bool hooked;      /* receiving events; a paused collector does, and passes them over */
    bool in_timer;    /* the program's timer is running: nothing may be taken away under it */
    bool forked;      /* in a child that has not begun its own store yet. Lock */
    bool begins_anew; /* … which it does though the store is in private memory */
    bool calls, c_calls, keep_code, redact;
    bool lines_on, lines_split;
    bool lines_waiting;   /* for the first function that is marked: no events before */
    bool lines_of_memory; /* … which was marked for what it does to the heap, not for its time */
    char lines_patterns[1024];
    PyObject *marked; /* {address: code object} whose lines were asked for one by one, or NULL */
    PyObject *timer;
    double timer_unit;
    char folder[512], more_folder[512];
    bool trace, trace_drop, trace_exceptions, trace_late;
    bool trace_attached;      /* it began when asked from outside: see start.h */
    uint8_t trace_own_frames; /* … by so many frames of Fathom's own, the newest of that thread */
    uint32_t trace_depth;
    uint64_t trace_min_ticks;
    char trace_include[1024], trace_exclude[1024];
    struct fm_trace_ask ask;
    struct fm_trace_chunks trace_chunks; /* lock, as the store */
    struct fm_store store;               /* lock: its header, see store.h */
    struct fm_agent_table children;      /* (parent id, func id) → struct fm_live_node */
    struct fm_agent_table pauses;        /* frame address → struct fm_pause */
    struct fm_pause *last_pause;
    uint32_t era; /* of the store: another one is another era */
    uint32_t next_func;
    uint32_t node_limit;
    struct fm_live_node *overflow_root;
    struct fm_live_node *spare_root; /* of a thread for which no record was to be had, or NULL */
    struct fm_live_node nowhere;
    /* Lock: threads that run, those that ended with calls open, records of no thread. */
    struct fm_agent_thread *threads, *ended_threads, *free_threads;
    uint32_t thread_count;
    struct fm_inherited *inherited; /* lock, from before a fork to after it */
    size_t inherited_len, inherited_cap;
    struct fm_hooks *hooks; /* what the event source keeps; see hooks.h */
    /* Another collector needs the slot while this one is stopped: save what is recorded and free
     * it. 0, or −1 with an exception. NULL: the slot is not given up. */
    int (*give_up)(struct fm_collector *c);
    void *owner; /* for give_up */
};

extern const struct fm_live_node fm_no_child;

/* The current thread in each slot: read by the thread itself, with the GIL or the lock; written with
 * both, or by the thread when it ends, with the lock. Initial-exec: one instruction to read, and no allocation by the
 * dynamic linker in the middle of an event. */
extern __thread struct fm_agent_thread *fm_current[FM_SLOTS]
    __attribute__((tls_model("initial-exec")));

/* NULL with a Python exception, or a collector that does not run yet. */
struct fm_collector *fm_collector_new(const struct fm_options *options);
void fm_collector_free(struct fm_collector *c); /* stops it first */

/* Start and stop listening; 0, or −1 with a Python exception set. Stopping closes all open calls.
 */
int fm_collector_start(struct fm_collector *c);
int fm_collector_stop(struct fm_collector *c);

/* Stop recording but keep receiving, so that starting again costs little: for profilers that are
 * switched on and off with every call of a function. Only collectors of marked lines can do that;
 * for others it is the same as stopping. */
int fm_collector_pause(struct fm_collector *c);

/* After fm_collector_forget(): begin a new store, as these options say. 0, or −1 with an exception. */
int fm_collector_begin_again(struct fm_collector *c, const struct fm_options *options);

/* Forget everything recorded; open calls stay open from now on. */
int fm_collector_clear(struct fm_collector *c);

/* Close the store and forget everything that points into it; open a new one, −1 with errno. */
void fm_collector_forget(struct fm_collector *c);
int fm_collector_open(struct fm_collector *c);

/* The whole live store as one run of bytes (a Python bytes object), as its file would be. */
PyObject *fm_collector_snapshot(struct fm_collector *c);

/* Note that recording ends now, unless it goes on: clocks and CPU times. */
void fm_collector_mark_end(struct fm_collector *c);

/* The same from any thread, without the GIL, when this process is about to end: only if the store
 * is its own, and not if the lock is not to be had (a signal handler may have come between). */
void fm_collector_mark_end_of_process(struct fm_collector *c);

/* The collector in a slot, or NULL. The GIL or the lock. */
struct fm_collector *fm_collector_at(int slot);

/* Slow paths of the events below. */
/* The context of `f` under `parent`, made if need be; never NULL. */
struct fm_live_node *fm_collector_child(struct fm_collector *c, struct fm_agent_thread *t,
                                        struct fm_live_node *parent, struct fm_func *f,
                                        const void *key);
void fm_collector_leave_unmatched(struct fm_collector *c, struct fm_agent_thread *t,
                                  const void *key, uint64_t now);
uint64_t fm_collector_timer(struct fm_collector *c);

/* A call begins that cannot be counted: there is no memory for it. */
void fm_collector_lost_call(struct fm_collector *c);

/* threads.c: a thread's first event; more room for its open calls. If there is none, the call is
 * one beyond the lid. */
struct fm_agent_thread *fm_thread_attach(struct fm_collector *c);
bool fm_thread_grow(struct fm_collector *c, struct fm_agent_thread *t);

/* What the end of that call will name. */
static inline uintptr_t fm_frame_key(const struct fm_live_frame *frame)
{
    return (uintptr_t)frame->key & ~(uintptr_t)FM_KEY_IN_REGION;
}

/* How many calls are open on a thread. */
static inline ptrdiff_t fm_thread_depth(const struct fm_agent_thread *t)
{
    return t->top - t->base + (ptrdiff_t)t->beyond;
}

/* Slow paths account for themselves: the time from `since` on was the agent's. */
static inline void fm_collector_charge(struct fm_collector *c, uint64_t since)
{
    if (c->store.header)
        c->store.header->own_ticks += fm_clock_ticks() - since;
}

static inline uint64_t fm_collector_now(struct fm_collector *c)
{
    return __builtin_expect(c->timer == NULL, 1) ? fm_clock_ticks() : fm_collector_timer(c);
}

static inline struct fm_agent_thread *fm_collector_thread(struct fm_collector *c)
{
    struct fm_agent_thread *t = fm_current[c->slot];
    if (__builtin_expect(t != NULL, 1))
        return t;
    return c->running ? fm_thread_attach(c) : NULL; /* paused: nobody is attached */
}

/* Push a call of `f`; `key` is what the matching exit will name. Returns its node, or NULL. The
 * caller completes it with fm_opened(). */
static inline struct fm_live_node *fm_push(struct fm_collector *c, struct fm_agent_thread *t,
                                           struct fm_func *f, const void *key)
{
    if (__builtin_expect(t->top + 1 >= t->limit, 0) && !fm_thread_grow(c, t))
        return NULL;
    struct fm_live_node *parent = (struct fm_live_node *)(uintptr_t)t->top->node;
    struct fm_live_node *node = (struct fm_live_node *)(uintptr_t)parent->last_child;
    if (__builtin_expect(node->func != f->id, 0)) {
        node += node->next_hint;
        if (node->func == f->id)
            parent->last_child = (uintptr_t)node;
        else
            node = fm_collector_child(c, t, parent, f, key);
    }
    struct fm_live_frame *frame = ++t->top;
    frame->node = (uintptr_t)node;
    frame->key = (uintptr_t)key;
    frame->func = (uintptr_t)f;
    return node;
}

/* The pushed call begins now. Last, it is counted in the thread's record: a reader of a dead
 * process sees whole frames only. */
static inline void fm_opened(struct fm_agent_thread *t, uint64_t now)
{
    t->top->enter_ticks = now;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    t->live->depth++;
}

static inline bool fm_enter(struct fm_collector *c, struct fm_agent_thread *t, struct fm_func *f,
                            const void *key)
{
    struct fm_live_node *node = fm_push(c, t, f, key);
    if (!node)
        return false;
    node->calls++;
    fm_opened(t, fm_collector_now(c));
    return true;
}

/* Clocks of different cores may disagree, and a program's own timer may go backwards. */
static inline uint64_t fm_elapsed(uint64_t since, uint64_t now)
{
    return (int64_t)(now - since) > 0 ? now - since : 0;
}

/* Close the innermost call, whatever it is. */
static inline void fm_pop(struct fm_agent_thread *t, uint64_t now)
{
    struct fm_live_frame *frame = t->top;
    struct fm_live_node *node = (struct fm_live_node *)(uintptr_t)frame->node;
    uint64_t ticks = fm_elapsed(frame->enter_ticks, now);
    node->total_ticks += ticks;
    if (ticks < node->min_ticks)
        node->min_ticks = ticks;
    if (ticks > node->max_ticks)
        node->max_ticks = ticks;
    t->top = frame - 1;
    t->live->depth--;
}

static inline void fm_leave(struct fm_collector *c, struct fm_agent_thread *t, const void *key,
                            uint64_t now)
{
    if (__builtin_expect(t->top->key == (uintptr_t)key, 1))
        fm_pop(t, now);
    else
        fm_collector_leave_unmatched(c, t, key, now);
}

/* The pause of a generator, known by its frame: NULL if it never waited; or one made for it, NULL
 * without memory. */
struct fm_pause *fm_pause_find(struct fm_collector *c, const void *frame);
struct fm_pause *fm_pause_find_or_make(struct fm_collector *c, const void *frame);

/* A generator or coroutine gives up control, and takes it again, at `began` or (0) now. `frame` names it
 * meanwhile. */
void fm_yield(struct fm_collector *c, struct fm_agent_thread *t, const void *key, const void *frame,
              uint64_t now);
void fm_resume(struct fm_collector *c, struct fm_agent_thread *t, struct fm_func *f,
               const void *key, const void *frame, uint64_t began);

#endif

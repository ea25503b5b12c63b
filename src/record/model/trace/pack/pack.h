/*
 * Packs the trace of one process (capture/live_trace.h): chunks of words go in as the launcher empties
 * them, payloads of blocks come out, and a tree of calls grows that is as exact as that of `--calls`.
 *
 * Function, name and thread numbers in payloads and tree are the process's own; whoever puts payloads
 * into a recording adds tables that say what they are there (model/trace/traces.h). A payload begins
 * with a u32, the number of the trace in the file, low byte first: 0 as it comes from here, set by who
 * copies it.
 *
 * Memory is bounded: open calls, a stretch of events per thread, and the tree, which has a limit.
 * Nothing in a chunk is trusted. Threads: a packer belongs to one thread at a time.
 */
#ifndef FM_MODEL_TRACE_PACK_H
#define FM_MODEL_TRACE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/varint.h"

struct fm_trace_pack;

/* Takes a payload of a block of that type (capture/format.h: TRACE_EVENTS, TRACE_LEVELS, TRACE_MARKS,
 * TRACE_TASKS …); it is the packer's and gone afterwards. */
typedef void fm_trace_sink(void *context, uint16_t type, const void *payload, size_t bytes);

/* `shift` is that of the trace's header. */
struct fm_trace_pack *fm_trace_pack_new(uint32_t shift, fm_trace_sink *sink, void *context);
void fm_trace_pack_free(struct fm_trace_pack *pack);

/* One instant on both clocks, in any order. Tell the two of the live store's header (start, later) right
 * at the beginning: they say how long a tick is. Those of chunks need not be told again. */
void fm_trace_pack_clock(struct fm_trace_pack *pack, uint64_t ticks, uint64_t ns);

/* Functions from 1 to `functions` are defined, names from 1 to `names`: words with others are not
 * believed. Unlimited until it is told; tell before giving what a killed process left. */
void fm_trace_pack_defined(struct fm_trace_pack *pack, uint32_t functions, uint32_t names);

/* What a chunk of a thread holds: up to `count` words, ending at the first that is 0. `ticks` and `ns`
 * are those of the chunk. Chunks of one thread come in their order. */
void fm_trace_pack_chunk(struct fm_trace_pack *pack, uint32_t thread, uint32_t tid, uint64_t ticks,
                         uint64_t ns, const uint16_t *words, size_t count);

/* Behind its last chunk the thread lost so many events, the last of them at `ticks`, and told nobody. */
void fm_trace_pack_lost(struct fm_trace_pack *pack, uint32_t thread, uint32_t tid, uint64_t ticks,
                        uint64_t events);

/* The thread ended with the chunk that came last. */
void fm_trace_pack_thread_end(struct fm_trace_pack *pack, uint32_t thread);

/* Emit all that waits, so that what was emitted is all that was given. Packing goes on afterwards. */
void fm_trace_pack_flush(struct fm_trace_pack *pack);

/* Only what happens from that instant on is told (CLOCK_MONOTONIC; the clock is to be known by then), in
 * blocks and tree: calls that are open then begin there, count for nobody, and have the time that follows.
 * Before anything is given, by words or payloads. */
void fm_trace_pack_cut(struct fm_trace_pack *pack, uint64_t from_ns);

/* Words that come later are not taken: of threads that go on while they are read, what is told ends at one
 * instant. */
void fm_trace_pack_until(struct fm_trace_pack *pack, uint64_t ticks);

/* A payload that an earlier packer emitted, of a launcher that was killed or goes on: it is emitted again as
 * far as it is to be told, its calls are added to the tree, and what is open at its end is open here.
 * False: it makes no sense. */
bool fm_trace_pack_reopen(struct fm_trace_pack *pack, uint16_t type, const void *payload,
                          size_t bytes);

/* What the next packer has to know besides payloads, to go on where this one is: added to `into`. Right
 * behind a flush, when all that it tells of is emitted. */
void fm_trace_pack_tell_state(const struct fm_trace_pack *pack, struct fm_buffer *into);

/* … and here it is, behind all payloads. Nothing in it is trusted. False: it makes no sense. */
bool fm_trace_pack_take_state(struct fm_trace_pack *pack, struct fm_cursor *state);

/* The process ended then (0: not known, the last instant of any thread): calls that are open end, in
 * tree and payloads. Flushes. Nothing may be given afterwards. */
void fm_trace_pack_end(struct fm_trace_pack *pack, uint64_t end_ticks);

/* ---- what is known so far ---- */

/* A function under its caller. Parents come before their children; that of a root is UINT32_MAX. */
#define FM_TRACE_NODE_REGION 0x80000000u /* beyond ids of functions */

struct fm_trace_node {
    uint32_t parent;
    uint32_t func;   /* local id; 0 of a root; FM_TRACE_NODE_REGION + name: of a region */
    uint32_t thread; /* index into the threads below; UINT32_MAX: of nobody, with all below it */
    uint32_t last_child, next; /* guesses, the packer's own */
    uint64_t calls, resumes;
    uint64_t total_ticks, suspended_ticks;
    uint64_t min_ticks, max_ticks; /* of an entry; 0: none ended */
};

struct fm_trace_thread {
    uint32_t thread, tid; /* as in the chunks; thread 0: nothing of it is told */
    uint32_t root;        /* node */
    uint32_t depth;       /* the most that was open at once */
    uint64_t first_ticks, last_ticks;
    uint64_t events; /* that begin or end something */
    uint64_t lost;   /* that were dropped */
};

const struct fm_trace_node *fm_trace_pack_nodes(const struct fm_trace_pack *pack, size_t *count);
const struct fm_trace_thread *fm_trace_pack_threads(const struct fm_trace_pack *pack,
                                                    size_t *count);

/* Has the thread not ended, as far as is known? */
bool fm_trace_pack_goes_on(const struct fm_trace_pack *pack, uint32_t thread);

/* Calls that are in the node of a caller, because the tree was full; words that made no sense. */
uint64_t fm_trace_pack_lost_nodes(const struct fm_trace_pack *pack);
uint64_t fm_trace_pack_broken(const struct fm_trace_pack *pack);

/* Which names were those of regions that nest, by number; [0]: were there collections. */
const uint8_t *fm_trace_pack_region_names(const struct fm_trace_pack *pack, size_t *count);

/* Ticks as time, by the clock pairs so far: an instant (CLOCK_MONOTONIC), a length. */
uint64_t fm_trace_pack_instant_ns(const struct fm_trace_pack *pack, uint64_t ticks);
uint64_t fm_trace_pack_length_ns(const struct fm_trace_pack *pack, uint64_t ticks);

/* The open calls are to be in the tree, as if they ended at `ticks`: of a process that still runs. Adds
 * to `nodes`, an array of as many as there are. */
void fm_trace_pack_credit_open(const struct fm_trace_pack *pack, struct fm_trace_node *nodes,
                               uint64_t ticks);

#endif

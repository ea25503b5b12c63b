/*
 * Events of a heap store: what the process tells the launcher of each block that begins or ends, with
 * `fathom run --memory=events`.
 *
 * A ring in memory that both map or read, the file PID.N.events in the run's folder. The process
 * writes at `head`, the launcher has read up to `tail`; both only grow, and a slot is their number
 * modulo FM_EVENTS_SLOTS. Who writes takes a number first and fills the slot then: the slot is whole
 * when its lap bit is that of the number, so nobody has to clear it. When the ring is full the process
 * waits. `closed`: nobody reads any more, what happens is counted as lost.
 *
 * A record is two words, the second written last:
 *
 *     when   µs since the store began (44 bits) · kind (2 bits) · bits 40 to 57 of the bytes
 *     what   lap (1 bit) · account (23 bits) · bits 0 to 39 of the bytes
 */
#ifndef FM_CAPTURE_LIVE_EVENTS_H
#define FM_CAPTURE_LIVE_EVENTS_H

#include <stdint.h>

#define FM_EVENTS_MAGIC   "FATHOMEV"
#define FM_EVENTS_VERSION 1
#define FM_EVENTS_SUFFIX  ".events"
#define FM_EVENTS_SLOTS   (1u << 18) /* a power of two */

enum fm_event_kind {
    FM_EVENT_BEGIN,  /* a block */
    FM_EVENT_END,    /* a block */
    FM_EVENT_SHRINK, /* so many bytes of a block, which goes on */
};

struct fm_event {
    uint64_t when, what;
};

struct fm_events_header {
    char magic[8];
    uint32_t version;
    uint32_t reserved;
    _Alignas(64) uint64_t head;
    _Alignas(64) uint64_t tail;
    uint64_t closed;
    _Alignas(64) uint64_t lost; /* events since it was closed */
    uint64_t waits;             /* how often the process waited for room */
};

#define FM_EVENTS_AT    4096u /* where the slots begin in the file */
#define FM_EVENTS_BYTES (FM_EVENTS_AT + FM_EVENTS_SLOTS * sizeof(struct fm_event))

_Static_assert(sizeof(struct fm_events_header) <= FM_EVENTS_AT, "it fits");

static inline uint64_t fm_events_lap(uint64_t number)
{
    return ~(number / FM_EVENTS_SLOTS) & 1; /* not that of an empty file, in the first one */
}

static inline struct fm_event fm_event_make(uint64_t number, uint64_t us, enum fm_event_kind kind,
                                            uint32_t account, uint64_t bytes)
{
    return (struct fm_event){ us << 20 | (uint64_t)kind << 18 | (bytes >> 40 & 0x3ffff),
                              fm_events_lap(number) << 63 | (uint64_t)(account & 0x7fffff) << 40 |
                                  (bytes & 0xffffffffff) };
}

static inline uint64_t fm_event_bytes(const struct fm_event *e)
{
    return (e->when & 0x3ffff) << 40 | (e->what & 0xffffffffff);
}

static inline uint32_t fm_event_account(const struct fm_event *e)
{
    return (uint32_t)(e->what >> 40) & 0x7fffff;
}

#endif

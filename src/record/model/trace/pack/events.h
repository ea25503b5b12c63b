/*
 * Events of a lane as a recording has them: a number each, and what is open between them.
 *
 * A begin says what begins (a function or name, local to the process) and how; an end ends the innermost
 * that is open, whatever it is. docs/format.md, "Traces".
 */
#ifndef FM_MODEL_TRACE_EVENTS_H
#define FM_MODEL_TRACE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Ends. */
enum fm_event_end {
    FM_EVENT_RETURN = 0,
    FM_EVENT_YIELD = 1,
    FM_EVENT_UNWIND = 2,
    FM_EVENT_CLOSE = 3, /* nobody heard how */
    FM_EVENT_REGION_END = 4,
    FM_EVENT_GC_END = 5,
    FM_EVENT_BEGINS = 8, /* from here on: a begin, 8 + 4 · id + enum fm_event_begin */
};

enum fm_event_begin {
    FM_EVENT_CALL = 0,
    FM_EVENT_RESUME = 1, /* with an extra: units that the generator had waited */
    FM_EVENT_OTHER = 2,  /* id: 2 · name: a region; 2 · generation + 1: a collection */
    FM_EVENT_OPEN = 3,   /* began before, by an extra: ticks ago */
};

/* Ids are below this, so that a code fits 32 bits. */
#define FM_EVENT_ID_MAX ((1u << 29) - 4)

static inline uint32_t fm_event_begin(uint32_t id, enum fm_event_begin how)
{
    return FM_EVENT_BEGINS + 4 * id + how;
}

static inline bool fm_event_begins(uint32_t code)
{
    return code >= FM_EVENT_BEGINS;
}

static inline uint32_t fm_event_id(uint32_t code)
{
    return (code - FM_EVENT_BEGINS) >> 2;
}

static inline enum fm_event_begin fm_event_how(uint32_t code)
{
    return (enum fm_event_begin)((code - FM_EVENT_BEGINS) & 3);
}

static inline bool fm_event_is_call(uint32_t code) /* … of a begin: of a function */
{
    return fm_event_how(code) != FM_EVENT_OTHER;
}

/* What is open, or was. Subjects are what spans are of: a call and its resumes have the same. */
static inline uint32_t fm_event_subject(uint32_t code)
{
    uint32_t id = fm_event_id(code);
    return fm_event_is_call(code) ? id * 2 : id * 2 + 1;
}

struct fm_open_frame {
    uint64_t begin; /* ticks */
    uint32_t code;  /* of its begin */
};

#define FM_TRACE_DEPTH_MAX 1000000u /* frames: deeper ones are only counted */

#endif

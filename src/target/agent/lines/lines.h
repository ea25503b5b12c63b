/*
 * The lines collector: times of the lines of chosen functions, exact.
 *
 * Model. Lines ride on the calls collector: the open call of a chosen function has, beside its
 * frame on the thread's stack, a line frame saying which line is open and since when. A LINE event
 * closes the open line and opens another at the same instant, the end of the call closes the last:
 * so the line times of a call add up to its time, to the tick. What callees on the stack take is
 * gathered in the line frame, so self times add up to the function's self time as well.
 *
 * A statement that spans several lines is one line, its first: the source tells which lines belong
 * together (base/statements.h). Events inside it change nothing; when it comes back to its first
 * line at its end, as calls over several lines do, that is no new visit either.
 *
 * Invariants
 *   1. t->lines[i] belongs to t->base[i]; it is reset when the frame is pushed.
 *   2. A record's `active` counts the line frames of one thread, its `owner`, in which it is open;
 * a thread that comes to a line while another is on it counts in a table of its own (`abroad`).
 *   3. Records and maps belong to a function (struct fm_func) and live as long as the store.
 *
 * Threads: the GIL protects everything here. A line's record is shared by all threads, so even a
 * thread that ends does not close its own lines without the GIL (threads.c).
 */
#ifndef FM_AGENT_LINES_H
#define FM_AGENT_LINES_H

#include "target/agent/collector.h"
#include "target/agent/lines/line_memory.h"

struct fm_func_lines {
    int first, count;    /* lines first … first + count − 1 */
    uint16_t *statement; /* by line − first: offset of the first line of its statement */
    struct fm_live_line **records; /* by offset of a first line; NULL until hit */
    bool marked;                   /* chosen by name or decorator */
    bool defined;                  /* in the current store */
};

struct fm_line_frame {
    struct fm_live_line *line; /* open, or NULL */
    uint64_t since;
    uint64_t callees; /* ticks that recorded callees took since then */
    struct fm_line_memory memory;
    int last;    /* the line number of the last event */
    bool abroad; /* counted in the thread's own table */
};

/* The lines of a function if they are chosen, else NULL; looked up once per code and collector. */
struct fm_func_lines *fm_lines_of(struct fm_collector *c, struct fm_func *f, PyCodeObject *code);

/* Mark a code object: its lines are chosen whatever the patterns say. −1 with an exception. */
int fm_lines_mark(struct fm_collector *c, PyCodeObject *code);

/* Forget the records: a new store begins. */
void fm_lines_reset(struct fm_func *f);

/* Room for line frames beside the thread's stack; false without memory. */
bool fm_lines_make_room(struct fm_agent_thread *t, uint32_t frames);

struct fm_live_line *fm_lines_record(struct fm_collector *c, struct fm_func *f, int offset);

/* Keep the histogram's shape when a bucket is full. */
void fm_lines_halve(struct fm_live_line *line);

/* Count an activation of a line that another thread is on; how many this thread has now. */
uintptr_t fm_lines_abroad(struct fm_agent_thread *t, const struct fm_live_line *line, int change);

/* One activation fewer; was it the outermost? */
static inline bool fm_line_ends(struct fm_agent_thread *t, struct fm_line_frame *lf)
{
    if (__builtin_expect(lf->abroad, 0))
        return fm_lines_abroad(t, lf->line, -1) == 0;
    return --lf->line->active == 0;
}

static inline void fm_line_close(struct fm_agent_thread *t, struct fm_line_frame *lf, uint64_t now)
{
    struct fm_live_line *line = lf->line;
    if (!line)
        return;
    uint64_t ticks = fm_elapsed(lf->since, now);
    line->self_ticks += fm_elapsed(lf->callees, ticks);
    bool outermost = fm_line_ends(t, lf);
    if (outermost)
        line->total_ticks += ticks;
    fm_line_memory_close(t->meter, &lf->memory, line, outermost);
    if (ticks < line->min_ticks)
        line->min_ticks = ticks;
    if (ticks > line->max_ticks)
        line->max_ticks = ticks;
    uint32_t *bucket = &line->buckets[fm_live_line_bucket(ticks)];
    if (__builtin_expect(++*bucket == UINT32_MAX, 0))
        fm_lines_halve(line);
    lf->line = NULL;
}

static inline void fm_line_open(struct fm_agent_thread *t, struct fm_line_frame *lf,
                                struct fm_live_line *line, uint64_t since)
{
    uint32_t me = t->live->tid;
    lf->abroad =
        (line->active && line->owner != me) || (t->abroad_open && fm_lines_abroad(t, line, 0));
    if (__builtin_expect(lf->abroad, 0)) {
        fm_lines_abroad(t, line, 1);
    } else {
        line->owner = me;
        line->active++;
    }
    lf->line = line;
    lf->since = since;
    lf->callees = 0;
    fm_line_memory_open(t->meter, &lf->memory);
}

/* The line on which a generator waited goes on: no new hit. */
static inline void fm_line_resume(struct fm_agent_thread *t, struct fm_line_frame *lf,
                                  const struct fm_pause *pause, uint64_t now)
{
    fm_line_open(t, lf, pause->line, now);
    lf->last = pause->last_line;
}

static inline struct fm_line_frame *fm_line_frame_of(struct fm_agent_thread *t)
{
    return &t->lines[t->top - t->base];
}

/* The innermost call ends at `now`: close its line and charge its caller's. Before fm_leave(). */
static inline void fm_line_leave(struct fm_agent_thread *t, uint64_t now)
{
    struct fm_line_frame *lf = fm_line_frame_of(t);
    fm_line_close(t, lf, now);
    if (t->top > t->base)
        lf[-1].callees += fm_elapsed(t->top->enter_ticks, now);
}

/* fm_leave() for calls that may have an open line. */
static inline void fm_leave_with_line(struct fm_collector *c, struct fm_agent_thread *t,
                                      const void *key, uint64_t now)
{
    if (__builtin_expect(t->top->key == (uintptr_t)key, 1))
        fm_line_leave(t, now);
    fm_leave(c, t, key, now);
}

/* A line of the innermost call, which is one of `f`, begins at `now`. */
static inline void fm_line_event(struct fm_collector *c, struct fm_agent_thread *t,
                                 struct fm_func *f, int number, uint64_t now)
{
    struct fm_func_lines *map = f->lines;
    int offset = number - map->first;
    if (__builtin_expect(offset < 0 || offset >= map->count, 0))
        return;
    int first = map->statement[offset];
    struct fm_line_frame *lf = fm_line_frame_of(t);
    struct fm_live_line *line = map->records[first];
    if (__builtin_expect(line == NULL, 0) && !(line = fm_lines_record(c, f, first)))
        return;
    /* Still inside the statement: on another line of it, or back on its first. */
    bool inside = lf->line == line && (offset != first || lf->last != number);
    lf->last = number;
    if (inside)
        return;
    uint64_t since = lf->line ? now : t->top->enter_ticks;
    uint64_t callees = lf->line ? 0 : lf->callees;
    fm_line_close(t, lf, now);
    fm_line_open(t, lf, line, since);
    lf->callees = callees;
    line->hits++;
}

#endif

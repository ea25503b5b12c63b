/*
 * The chunks of a process's trace: the file PID.N.trace, mapped (record/capture/live_trace.h).
 *
 * The file has its full length at once but room for few chunks: more are added, up to all, only while
 * the launcher does not keep up. The room is allocated before a chunk is used, so that a full file
 * system refuses here and is never a SIGBUS. Without a file the chunks are private memory, and what is
 * handed over is gone: to measure what tracing costs.
 *
 * Threads: with the GIL or the lock of threads.h; taking and waiting with the GIL.
 */
#ifndef FM_AGENT_TRACE_CHUNKS_H
#define FM_AGENT_TRACE_CHUNKS_H

#include "target/agent/trace/writer.h"

struct fm_trace_chunks {
    struct fm_trace_header *header; /* NULL: there is no trace */
    char path[512];                 /* "" for private memory */
    uint32_t most;                  /* chunks that there may be */
    bool given_up;                  /* nobody empties them: do not wait */
    uint64_t start_ticks, start_ns;
};

/* `live` is the path of the live store beside which it lies, or NULL. 0, or −1 with errno. */
int fm_trace_chunks_open(struct fm_trace_chunks *chunks, const char *live, bool drops);
void fm_trace_chunks_close(struct fm_trace_chunks *chunks);

/* Give the writer a free chunk; false if there is none just now. */
bool fm_trace_chunks_take(struct fm_trace_chunks *chunks, struct fm_trace_writer *w);

/* The writer's chunk is the launcher's from now on; `last` if the thread ends with it. */
void fm_trace_chunks_hand_over(struct fm_trace_chunks *chunks, struct fm_trace_writer *w,
                               bool last);

/* Does the launcher have something to empty? */
bool fm_trace_chunks_any_full(const struct fm_trace_chunks *chunks);

/* Wait until one may be free. False if nobody will free any, which is remembered. */
bool fm_trace_chunks_wait(struct fm_trace_chunks *chunks);

#endif

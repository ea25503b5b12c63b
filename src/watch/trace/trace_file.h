/*
 * The trace of a process as the launcher sees it (capture/live_trace.h): PID.N.trace in the run's folder.
 *
 * It is read and written by position, not mapped: a program of the run may cut it short. Its first page
 * is mapped as well, but only the kernel looks at it, which must wake threads that wait there. Nothing in
 * it is trusted. Threads: it belongs to one at a time.
 */
#ifndef FM_WATCH_TRACE_FILE_H
#define FM_WATCH_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/capture/live_trace.h"

struct fm_trace_file {
    int fd;     /* −1: it is not open */
    void *page; /* NULL: nobody can be woken */
    uint32_t shift;
    uint32_t freed;  /* chunks so far */
    uint32_t handed; /* when the descriptors were last read */
    uint32_t count;  /* descriptors that were read */
    struct fm_trace_chunk chunks[FM_TRACE_CHUNKS];
};

/* Open the trace at `path`; false while it is not there, or not ready. `writes`: chunks will be freed. */
bool fm_trace_file_open(struct fm_trace_file *file, const char *path, bool writes);
void fm_trace_file_close(struct fm_trace_file *file);

/* Was something handed over since the descriptors were read? */
bool fm_trace_file_has_news(const struct fm_trace_file *file);

/* Read the descriptors, into `chunks`. */
bool fm_trace_file_look(struct fm_trace_file *file);

/* The words of a chunk; returns how many there are before the first 0 (at most FM_TRACE_CHUNK_BYTES / 2). */
size_t fm_trace_file_read(const struct fm_trace_file *file, uint32_t chunk, uint16_t *words);

/* Is there anything in it? */
bool fm_trace_file_begins(const struct fm_trace_file *file, uint32_t chunk);

/* The same of a chunk that its thread may be filling at this moment: no record is taken in half. */
size_t fm_trace_file_read_filling(const struct fm_trace_file *file, uint32_t chunk,
                                  uint16_t *words);

/* What was added to a chunk that is being filled since `from`: puts it there, returns where it ends. Nothing, if
 * it is not any more the chunk that `chunks` has. */
size_t fm_trace_file_peek(const struct fm_trace_file *file, uint32_t chunk, size_t from,
                          uint16_t *words);

/* Set a chunk to zero and let the process have it again; false if it cannot be written. */
bool fm_trace_file_free(struct fm_trace_file *file, uint32_t chunk);

/* Nobody empties chunks any more; those who wait go on. */
void fm_trace_file_end(struct fm_trace_file *file);

/* The header as it is now; false if it cannot be read. */
bool fm_trace_file_header(const struct fm_trace_file *file, struct fm_trace_header *header);

#endif

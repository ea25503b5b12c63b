/*
 * The live store of one collector: memory that outlives the process (see capture/live.h).
 *
 * Owns the mapped chunks and hands out records from them: nodes, threads, stacks, definitions.
 * Records never move and are never freed before the whole store is. With no folder given, the same
 * chunks lie in private memory, for a profile that the program itself starts and stops.
 *
 * Threads: all calls are made with the GIL held, but for records and definitions of regions that C code enters: a lock
 * of the store's own stands around each record that is handed out. Opening and closing also hold the agent's lock
 * (threads.h), so that whoever has that lock, without the GIL, may look at `header` and what it
 * points at; at nothing else.
 * Failure: a record that cannot be had is NULL; the caller counts what it drops. Nothing here calls
 * malloc, prints, or raises.
 */
#ifndef FM_AGENT_STORE_H
#define FM_AGENT_STORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/varint.h"
#include "record/capture/live.h"

#define FM_STORE_CHUNKS 4096

struct fm_store {
    struct fm_live_header *header; /* NULL while the store is closed */
    /* No descriptor is held: the program may close it, or find it where it expects none. The file
     * is opened by name whenever it grows. */
    char path[512];   /* "" for private memory */
    uint32_t refused; /* requests to pass over before trying again: memory was not to be had */
    bool full;        /* the first file's file system is: new chunks go to the second file */
    uint64_t file_bytes, more_bytes;
    char more_path[512]; /* where the second file will lie, "" if nowhere */
    /* Every chunk, in order, and the one of each kind that is being filled. */
    struct fm_live_chunk *chunks[FM_STORE_CHUNKS];
    uint32_t chunk_count;
    struct fm_live_chunk *open[FM_LIVE_KIND_COUNT];
    uint32_t next_node, next_thread, next_stack;
    pthread_mutex_t lock; /* while a record is handed out */
};

/* Open a new store: `folder`/PID.N.live, overflowing to `more_folder`; NULL for private memory. */
int fm_store_open(struct fm_store *store, const char *folder, const char *more_folder);

/* Unmap everything. The files stay: somebody will read them. */
void fm_store_close(struct fm_store *store);

struct fm_live_node *fm_store_node(struct fm_store *store, uint32_t parent, uint32_t func);
struct fm_live_thread *fm_store_thread(struct fm_store *store, uint32_t *ret_id);
struct fm_live_line *fm_store_line(struct fm_store *store, uint32_t func, uint32_t line);
struct fm_live_resumed *fm_store_resumed(struct fm_store *store, uint32_t node);

/* A zeroed record of `kind`, `bytes` long. Those of one kind have one length. */
void *fm_store_record(struct fm_store *store, enum fm_live_kind kind, uint32_t bytes);

/* Room for `frames` open calls; `*ret_number` names it in the thread's record. */
struct fm_live_frame *fm_store_stack(struct fm_store *store, uint32_t frames, uint32_t *ret_number);

/* A definition made of a kind, numbers, then texts (NULL text: empty). Returns false if dropped. */
struct fm_store_text {
    const char *bytes;
    size_t len;
};
bool fm_store_define(struct fm_store *store, uint64_t kind, const uint64_t *numbers,
                     size_t number_count, const struct fm_store_text *texts, size_t text_count);

bool fm_store_info(struct fm_store *store, const char *key, const char *value);

#endif

/*
 * One file of a live store (capture/live.h) while its process fills it: which chunks there are, and what was defined since the
 * last look.
 *
 * It is read by position, not mapped: a program of the run may cut it short. Nothing in it is trusted. A store has up to
 * FM_LIVE_FILES of them, told apart by `which`: the store, where it goes on in the run's second folder, and where it goes on if the run has one
 * folder alone. A file may be closed and opened again between two looks; what was found stays known.
 *
 * Threads: belongs to one at a time.
 */
#ifndef FM_STORE_LIVE_FILE_H
#define FM_STORE_LIVE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/varint.h"
#include "base/vec.h"
#include "record/capture/live.h"

#define FM_LIVE_FILES 3u

struct fm_live_part {
    uint64_t at;
    uint32_t kind, bytes; /* as in its head */
    uint32_t done;        /* of its payload: definitions that were read */
};

struct fm_live_file {
    char *path;
    int fd;       /* −1: it is not open */
    uint64_t end; /* chunks before it are known */
    FM_VEC(struct fm_live_part) pieces;
};

void fm_live_file_init(struct fm_live_file *file, const char *folder, int pid, unsigned number,
                       unsigned which);
void fm_live_file_release(struct fm_live_file *file);

/* Open it unless it is open already; false while there is none. */
bool fm_live_file_open(struct fm_live_file *file);
void fm_live_file_close(struct fm_live_file *file);

bool fm_live_file_read(const struct fm_live_file *file, void *into, size_t len, uint64_t at);

/* Find the chunks that came since. */
void fm_live_file_find(struct fm_live_file *file);

/* How much of a chunk's payload is in use. */
uint32_t fm_live_file_used(const struct fm_live_file *file, const struct fm_live_part *piece);

/* Give what was defined since the last call: its kind (enum fm_live_def), and a cursor over its fields. */
typedef void fm_live_define(void *context, uint64_t kind, struct fm_cursor *fields);
void fm_live_file_definitions(struct fm_live_file *file, fm_live_define *define, void *context);

/* A string of a definition, cut after FM_LIVE_TEXT_MAX bytes; NULL if there is none. The caller frees it. */
#define FM_LIVE_TEXT_MAX 4096u
char *fm_live_text(struct fm_cursor *fields);

#endif

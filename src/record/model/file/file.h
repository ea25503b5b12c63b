/*
 * A profile to and from a .fathom file.
 *
 * Loading reads the file once, front to back, and of it what is asked for. What a cut-off or damaged file still holds is loaded,
 * and a note of kind "cut-off" or "damaged" says what is missing; only a file without a readable
 * header, or of a newer major version, is an error. If the recording's run never finished (the
 * launcher was killed), the fact "live" names the folder with the processes' live stores; loading
 * does not follow it (commands do, by model/live/live.h).
 */
#ifndef FM_MODEL_FILE_H
#define FM_MODEL_FILE_H

#include "base/error.h"
#include "record/model/profile.h"

/* Is this the beginning of a .fathom file? */
bool fm_file_recognise(const void *bytes, size_t len);

/* What large recordings can be asked for without. */
enum fm_file_part {
    FM_FILE_TEXTS = 1,     /* source text */
    FM_FILE_HISTORIES = 2, /* memory over time */
    FM_FILE_ALL = 3,
};

/* Load from bytes in memory. `name` is for messages. If it has traces, the bytes must outlive it. */
struct fm_profile *fm_file_load(const void *bytes, size_t len, const char *name,
                                struct fm_error *err);

/* Load from an open file of `len` bytes, reading the blocks that hold `parts`. */
struct fm_profile *fm_file_load_fd(int fd, uint64_t len, const char *name, unsigned parts,
                                   struct fm_error *err);

/* Append the whole profile to an open file. */
int fm_file_save(const struct fm_profile *p, int fd, struct fm_error *err);

/* The same with blocks as they are, for a reader without zstd: the viewer's engine in a browser. */
int fm_file_save_plain(const struct fm_profile *p, int fd, struct fm_error *err);

/* The same of the .fathom file of `len` bytes behind `from`, block by block, without decoding it. False
 * if there is more to do than that, and `to` is to be thrown away: the file is damaged or cut off, its
 * run never finished, it came from another tool and may lack its sources, or it cannot be read or
 * written. Payloads of traces stay packed. Of those with single calls that are not kept, and of fine levels of
 * detail that can be fetched, only the head is copied (model/trace/traces.h: they are away). */
struct fm_plain_choice {
    bool (*keeps)(void *context, uint64_t at); /* by the place of the payload; NULL: all are */
    void *context;
    bool elsewhere;    /* the others can be fetched by their place in `from` */
    uint64_t left_out; /* bytes that were not copied */
};
bool fm_file_copy_plain(int from, uint64_t len, int to, struct fm_plain_choice *choice);

/* How many bytes of single calls a file has. */
uint64_t fm_file_events_bytes(int from, uint64_t len);

#endif

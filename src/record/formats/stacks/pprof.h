/*
 * pprof's profile.proto: pprof.c writes it, pprof_read.c reads it, pprof_gzip.c packs and unpacks.
 */
#ifndef FM_FORMATS_PPROF_H
#define FM_FORMATS_PPROF_H

#include "base/buffer.h"
#include "base/error.h"
#include "record/model/profile.h"

/* The first comment of a file that Fathom wrote begins so; the second is the command. */
#define FM_PPROF_MARK "fathom "

/* The last comment of one of memory: when its blocks were in use. */
#define FM_PPROF_AT_PEAK "in use at the peak"
#define FM_PPROF_AT_END  "in use at the end"

/* Types of values of memory, as Go has them; behind the first two those in use. */
#define FM_PPROF_ALLOC_BLOCKS "alloc_objects"
#define FM_PPROF_ALLOC_BYTES  "alloc_space"
#define FM_PPROF_INUSE_BLOCKS "inuse_objects"
#define FM_PPROF_INUSE_BYTES  "inuse_space"

/* Keys of labels. */
#define FM_PPROF_PID     "pid"
#define FM_PPROF_TID     "tid"
#define FM_PPROF_THREAD  "thread"
#define FM_PPROF_COMMAND "command"
#define FM_PPROF_STATE   "state"

bool fm_pprof_recognise(const void *bytes, size_t len);
struct fm_profile *fm_pprof_load(const void *bytes, size_t len, const char *name,
                                 struct fm_error *err);

bool fm_gzip_recognise(const void *bytes, size_t len);
int fm_gzip_pack(const void *bytes, size_t len, struct fm_buffer *out, struct fm_error *err);
/* Unpacks at most what an honest file can hold (FM_DAMAGED if there is more); with `limit`, no more
 * than that many bytes, and then it is no error if there are more. */
int fm_gzip_unpack(const void *bytes, size_t len, size_t limit, struct fm_buffer *out,
                   struct fm_error *err);

#endif

/*
 * Appends to a .fathom file: what is new gets a number, once, and goes into the file with the next
 * blocks.
 *
 * Strings, functions, processes, threads and contexts are numbered in the order in which they are
 * first given, and whatever refers to them uses these numbers. Rows gather per kind of block until one
 * kind is full; then all of them are written, in an order in which nothing is named before it is
 * defined. So after every block, and wherever the file is cut off, it is a valid recording of what was
 * given until then. fm_recorder_flush() writes what there is: whoever records for long calls it as often
 * as he can bear to lose.
 *
 * Memory: one block of each kind, and what is needed to know a string, function or context again; this
 * grows with the structure of the program, not with the length of the recording. Contexts of a
 * profile that is appended as a whole are not kept.
 *
 * A finished profile is one use of it (fm_recorder_profile; file.h), many profiles one after the other
 * are another (`fathom merge`).
 *
 * Failures to write are kept, and told once: by fm_recorder_flush or fm_recorder_end.
 * Threads: a recorder belongs to one thread at a time.
 */
#ifndef FM_MODEL_RECORDER_H
#define FM_MODEL_RECORDER_H

#include "base/error.h"
#include "record/model/profile.h"

struct fm_recorder;

/* Begins the file. `compress` is false for a reader without zstd. `fd` stays the caller's. */
struct fm_recorder *fm_recorder_new(int fd, bool compress);
void fm_recorder_free(struct fm_recorder *r);

/* Could something not be written? What is given from then on goes nowhere. */
bool fm_recorder_failed(const struct fm_recorder *r);

/* Write what was given so far. 0 or FM_CANNOT_WRITE. */
int fm_recorder_flush(struct fm_recorder *r, struct fm_error *err);

/* Write the rest, and that nothing is missing. Nothing may be given afterwards. */
int fm_recorder_end(struct fm_recorder *r, struct fm_error *err);

/* ---- definitions: each returns the number in the file ---- */

uint32_t fm_recorder_string(struct fm_recorder *r, const void *bytes, size_t len);
uint32_t fm_recorder_text(struct fm_recorder *r, const char *text);

/* In what follows, string ids are numbers of the file. */
uint32_t fm_recorder_function(struct fm_recorder *r, const struct fm_function *f);
uint32_t fm_recorder_process(struct fm_recorder *r, const struct fm_process *process);

/* A thread, and the root of its tree: every thread gets one, once. */
uint32_t fm_recorder_thread(struct fm_recorder *r, const struct fm_thread *thread);
uint32_t fm_recorder_root(struct fm_recorder *r, uint32_t thread);

/* The context of `func` called from `parent`: the one that is known, or a new one. */
uint32_t fm_recorder_context(struct fm_recorder *r, uint32_t parent, uint32_t func);

/* ---- what was measured ---- */

/* Combine `value` with what the context has; it may be one that was written long ago. */
void fm_recorder_value(struct fm_recorder *r, enum fm_metric metric, uint32_t context,
                       int64_t value);

/* A fact about the recording; of two with one key the first stays. */
void fm_recorder_fact(struct fm_recorder *r, const char *key, const char *value);

/* Append a profile as a whole: its processes, threads and trees beside those that are there, functions
 * and source text that are known only once. */
void fm_recorder_profile(struct fm_recorder *r, const struct fm_profile *p);

#endif

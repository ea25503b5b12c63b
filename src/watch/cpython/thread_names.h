/*
 * The names that a Python program gave its threads: threading._active, a dict from thread identifiers to
 * Thread objects, each with its _name.
 */
#ifndef FM_CPYTHON_THREAD_NAMES_H
#define FM_CPYTHON_THREAD_NAMES_H

#include "watch/cpython/object.h"

#define FM_THREAD_NAME_BYTES 96

struct fm_thread_name {
    uint64_t ident; /* threading.get_ident() */
    char text[FM_THREAD_NAME_BYTES];
};

struct fm_thread_names {
    FM_VEC(struct fm_thread_name) list;
};

/* Append the names known to the interpreter whose state is at `interp`. A program that never imported
 * threading has none. */
void fm_thread_names_read(struct fm_thread_names *names, const struct fm_heap *heap,
                          fm_addr interp);
void fm_thread_names_release(struct fm_thread_names *names);

#endif

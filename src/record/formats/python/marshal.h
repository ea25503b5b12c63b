/*
 * The part of Python's marshal format that profiles are written in: None, booleans, numbers, text,
 * bytes, tuples, lists and dicts, with the back references of versions 3 and up (FLAG_REF) and the
 * interned-string references of Python 2.
 *
 * Reading goes through one outermost dict, key by value, so that a large file is never in memory as
 * a whole. Each key and each value comes as a tree of plain values, unless the reader goes into it
 * and takes the items one by one, which needs no memory. Nothing in the input is trusted: a length is believed only as far as bytes are there, nesting is limited, and a value may
 * not contain itself. Memory grows with the bytes actually read, never with a number found in them.
 * A referenced value is shared, not copied, so a small file cannot unfold into a large tree here;
 * whoever walks it must bound the walk all the same.
 *
 * Writing uses what every Python from 2.7 on reads (version 2, no references). Text goes out as
 * interned strings, so that a reader keeps each name once.
 *
 * Code objects occur too: `python -m profile` names its own outermost entry by the code it ran. Of
 * one, the file, name and first line are kept. What else code may hold (sets, complex numbers,
 * slices, …) is read past and given as FM_MARSHAL_OTHER.
 */
#ifndef FM_FORMATS_MARSHAL_H
#define FM_FORMATS_MARSHAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum fm_marshal_type {
    FM_MARSHAL_NONE,
    FM_MARSHAL_BOOL, /* integer is 0 or 1 */
    FM_MARSHAL_INT,
    FM_MARSHAL_HUGE, /* an integer of more than 64 bits: real is its nearest value */
    FM_MARSHAL_FLOAT,
    FM_MARSHAL_TEXT,  /* UTF-8, where lone surrogates may occur */
    FM_MARSHAL_TUPLE, /* count items */
    FM_MARSHAL_LIST,
    FM_MARSHAL_DICT,  /* count items: keys and values in turn */
    FM_MARSHAL_CODE,  /* 3 items: file, name, first line */
    FM_MARSHAL_OTHER, /* something no profile needs */
    FM_MARSHAL_END,   /* internal: the end of a dict */
};

struct fm_marshal_value {
    uint32_t type;
    uint32_t count; /* of items */
    union {
        int64_t integer;
        double real;
        size_t first; /* number of the first item; of a text: which one it is in the file */
    };
};

struct fm_marshal;

/* A reader over `bytes`, which must outlive it. Failures go to `err`, which must not be NULL. */
struct fm_marshal *fm_marshal_open(const void *bytes, size_t len, struct fm_error *err);
void fm_marshal_free(struct fm_marshal *m);

/* Enter the outermost value, which must be a dict: 0, or negative. */
int fm_marshal_enter(struct fm_marshal *m);

/* The next key of the dict that was entered last: 1; 0 at its end; negative on a failure. What
 * follows the end of the outermost one is ignored, as Python does. */
int fm_marshal_next(struct fm_marshal *m, struct fm_marshal_value *v);

/* The next `count` values, where no dict may end: 0, or negative. */
int fm_marshal_values(struct fm_marshal *m, struct fm_marshal_value *v, size_t count);

/* The quick way: if the next value is a tuple of `count` items, or a dict, that is written out here
 * and that nothing refers to, go into it, so that its items are the next values. False: it is
 * anything else, and nothing was read; fm_marshal_values gives it as a tree. */
bool fm_marshal_tuple_enter(struct fm_marshal *m, uint8_t count);
bool fm_marshal_dict_enter(struct fm_marshal *m);

/* Nothing of what was read so far is needed any more, unless the file refers to it again. */
void fm_marshal_forget(struct fm_marshal *m);

/* The items of a tuple, list, dict or code: `v->count` of them; NULL if it has none. */
const struct fm_marshal_value *fm_marshal_items(const struct fm_marshal *m,
                                                const struct fm_marshal_value *v);

/* The bytes of a text: `*len` of them, not NUL-terminated. Texts are numbered (`v->first`) in
 * the order in which they are written out in the file; a reference has the number of what it refers
 * to, so a reader may remember what it made of each. */
const char *fm_marshal_text(const struct fm_marshal *m, const struct fm_marshal_value *v,
                            size_t *len);

/* An int, bool or float as a double; false if it is something else. */
bool fm_marshal_real(const struct fm_marshal_value *v, double *real);

bool fm_marshal_text_is(const struct fm_marshal *m, const struct fm_marshal_value *v,
                        const char *text);

void fm_marshal_put_text(struct fm_buffer *out, const char *text, size_t len);
void fm_marshal_put_int(struct fm_buffer *out, int64_t value);
void fm_marshal_put_float(struct fm_buffer *out, double value);
void fm_marshal_put_tuple(struct fm_buffer *out, uint32_t count); /* then `count` values */
void fm_marshal_put_dict(struct fm_buffer *out);                  /* then keys and values, then */
void fm_marshal_put_dict_end(struct fm_buffer *out);

#endif

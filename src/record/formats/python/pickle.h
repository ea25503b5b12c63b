/*
 * The part of Python's pickle format (protocols 0 to 5) that plain data is written in: None,
 * booleans, numbers, text, bytes, tuples, lists, dicts, and objects of classes that the caller
 * names.
 *
 * A pickle is a program that builds values, and in Python it may call anything. Here it can call
 * nothing: a class or function is only a name, an object is only its class's name with the values
 * it was given, and a pickle that asks for any other is refused by that name. Every instruction
 * that plain data does not need is refused too.
 *
 * Nothing in the input is trusted: a length is believed only as far as bytes are there; each
 * instruction adds a bounded number of values, so memory grows with the bytes read. Nothing
 * recurses. Values may be shared and may even contain themselves: whoever walks them must bound the
 * walk.
 */
#ifndef FM_FORMATS_PICKLE_H
#define FM_FORMATS_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum fm_pickle_type {
    FM_PICKLE_NONE,
    FM_PICKLE_BOOL, /* integer is 0 or 1 */
    FM_PICKLE_INT,
    FM_PICKLE_FLOAT,
    FM_PICKLE_TEXT, /* UTF-8, where lone surrogates may occur; Python 2's str as it is */
    FM_PICKLE_BYTES,
    FM_PICKLE_GLOBAL, /* text is "module.name" */
    FM_PICKLE_TUPLE,
    FM_PICKLE_LIST,
    FM_PICKLE_DICT,   /* items: keys and values in turn, in the order of the file */
    FM_PICKLE_OBJECT, /* 2 items: the arguments it was made with (a tuple), its state or None */
};

struct fm_pickle_value {
    uint32_t type;
    uint32_t bytes; /* of a text */
    union {
        int64_t integer;
        double real;
        const char *text; /* not NUL-terminated */
        size_t container; /* internal: which one */
    };
};

struct fm_pickle;

/* Decode a pickle; `bytes` must outlive it. Objects may be of these classes ("module.name",
 * NULL-terminated). NULL on failure: FM_NOT_RECORDING if it asks for another class or function,
 * FM_DAMAGED otherwise. `err` must not be NULL. */
struct fm_pickle *fm_pickle_open(const void *bytes, size_t len, const char *const *classes,
                                 struct fm_error *err);
void fm_pickle_free(struct fm_pickle *p);

const struct fm_pickle_value *fm_pickle_root(const struct fm_pickle *p);

/* The items of a tuple, list, dict or object; NULL if it is something else or has none. */
const struct fm_pickle_value *fm_pickle_items(const struct fm_pickle *p,
                                              const struct fm_pickle_value *v, size_t *count);

/* The value of a text key in a dict, or NULL. */
const struct fm_pickle_value *fm_pickle_find(const struct fm_pickle *p,
                                             const struct fm_pickle_value *dict, const char *key);

/* Writing, by protocol 2, which every Python since 2.3 reads. */
void fm_pickle_put_start(struct fm_buffer *out);
void fm_pickle_put_text(struct fm_buffer *out, const char *text, size_t len);
void fm_pickle_put_int(struct fm_buffer *out, int64_t value);
void fm_pickle_put_float(struct fm_buffer *out, double value);

/* The instructions that a writer needs by name. */
enum fm_pickle_op {
    FM_PICKLE_OP_MARK = '(',
    FM_PICKLE_OP_EMPTY_TUPLE = ')',
    FM_PICKLE_OP_EMPTY_LIST = ']',
    FM_PICKLE_OP_EMPTY_DICT = '}',
    FM_PICKLE_OP_TUPLE3 = 0x87,
    FM_PICKLE_OP_APPENDS = 'e',  /* what lies above the mark, to the list below it */
    FM_PICKLE_OP_SETITEMS = 'u', /* … to the dict below it */
    FM_PICKLE_OP_GLOBAL = 'c',   /* module and name, a line each */
    FM_PICKLE_OP_NEWOBJ = 0x81,
    FM_PICKLE_OP_BUILD = 'b',
    FM_PICKLE_OP_STOP = '.',
};

#endif

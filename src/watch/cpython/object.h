/*
 * Python objects of the target, as far as one needs to find things in them: types and their names,
 * attributes of instances, items of dicts, lists, tuples and sets, numbers and text.
 *
 * Nothing here is trusted. Each read is checked, each length bounded, no pointer is followed more
 * than once per step; what does not look like what was expected is reported as absent. A running
 * program may change an object between two reads: then an answer may be stale or absent, never out
 * of bounds.
 *
 * What CPython does not tell in its debug offsets (where a type keeps its cached keys, say) stands
 * in one table per version in object.c.
 */
#ifndef FM_CPYTHON_OBJECT_H
#define FM_CPYTHON_OBJECT_H

#include "base/buffer.h"
#include "base/vec.h"
#include "watch/cpython/layout.h"

/* Whose objects. */
struct fm_heap {
    const struct fm_remote *remote;
    const struct fm_layout *layout;
};

struct fm_addrs {
    fm_addr *data;
    size_t len, cap;
};

struct fm_item {
    fm_addr key, value;
};

struct fm_items {
    struct fm_item *data;
    size_t len, cap;
};

/* tp_flags that are the same in all versions. */
enum {
    FM_TYPE_HEAP = 1u << 9,
    FM_TYPE_LONG = 1u << 24,
    FM_TYPE_LIST = 1u << 25,
    FM_TYPE_TUPLE = 1u << 26,
    FM_TYPE_BYTES = 1u << 27,
    FM_TYPE_STR = 1u << 28,
    FM_TYPE_DICT = 1u << 29,
    FM_TYPE_TYPE = 1u << 31,
};

/* No container is read further than this. */
#define FM_OBJECT_MAX_ITEMS (1u << 20)

/* The C string at `at`, cut at `cap`; false if it cannot be read. */
bool fm_heap_text(const struct fm_heap *t, fm_addr at, char *into, size_t cap);

/* The type of the object at `at`; 0 if there is no object there. */
fm_addr fm_object_type(const struct fm_heap *t, fm_addr at);

/* tp_flags of a type; 0 if unreadable. */
uint64_t fm_type_flags(const struct fm_heap *t, fm_addr type);

/* tp_name: "int", "_thread.lock", "Worker". False if it is not printable ASCII of a sane length or
 * UTF-8. */
bool fm_type_name(const struct fm_heap *t, fm_addr type, char *into, size_t cap);

/* Is the object at `at` of a type whose tp_name is `name`? */
bool fm_object_is(const struct fm_heap *t, fm_addr at, const char *name);

/* The text of a str, cut at `cap` with "…"; false if it is none. */
bool fm_object_text(const struct fm_heap *t, fm_addr at, char *into, size_t cap);

/* The value of an int that fits; false if it is none. */
bool fm_object_int(const struct fm_heap *t, fm_addr at, int64_t *ret);

/* An attribute in the instance's own __dict__, however its version keeps it; 0 if absent. */
fm_addr fm_object_attribute(const struct fm_heap *t, fm_addr at, const char *name);

/* All of them, at most `max`. */
void fm_object_attributes(const struct fm_heap *t, fm_addr at, size_t max, struct fm_items *items);

/* The value under the str `key` in the dict at `dict`; 0 if absent. */
fm_addr fm_dict_find(const struct fm_heap *t, fm_addr dict, const char *key);

/* Append up to `max` items of a dict, in its order. */
void fm_dict_items(const struct fm_heap *t, fm_addr dict, size_t max, struct fm_items *items);

/* Append up to `max` members of a set or frozenset, in the order of its table. */
void fm_set_items(const struct fm_heap *t, fm_addr set, size_t max, struct fm_addrs *items);

/* Append up to `max` elements of a list or tuple. Returns how many it has in all, or −1. */
int64_t fm_sequence_items(const struct fm_heap *t, fm_addr at, size_t max, struct fm_addrs *items);

/* How many a dict or set says it holds; −1 if that cannot be. */
int64_t fm_dict_count(const struct fm_heap *t, fm_addr dict);
int64_t fm_set_count(const struct fm_heap *t, fm_addr set);

/* A module of the interpreter whose state is at `interp`, from sys.modules; 0 if not imported. */
fm_addr fm_module_find(const struct fm_heap *t, fm_addr interp, const char *name);

/* The value of a name in a module; 0 if absent. */
fm_addr fm_module_attribute(const struct fm_heap *t, fm_addr module, const char *name);

/* The object of a slot of a frame or stack, without the tags that 3.14+ keeps there; 0 if the slot
 * is empty or holds a bare number. */
fm_addr fm_slot_object(const struct fm_heap *t, uint64_t slot);

#endif

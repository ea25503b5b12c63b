/*
 * Functions as the collector knows them.
 *
 * Python code is known by its content, not by its address: code compiled again from the same text
 * is the same function, two lambdas on one line are two. The record hangs on the code object itself
 * (code extra), so finding it costs two loads, and it disappears with the code object: nothing is
 * kept alive and an address used again cannot be mistaken.
 *
 * C functions are known by their method definition, as in cProfile, and are named as cProfile names
 * them, except that no address appears in a name.
 *
 * Threads: the GIL protects everything here.
 */
#ifndef FM_AGENT_FUNCTIONS_H
#define FM_AGENT_FUNCTIONS_H

#include "target/agent/collector.h"

#define FM_C_CACHE 512 /* entries; a power of two */

struct fm_c_cache_entry {
    const PyMethodDef *def;
    struct fm_func *func;
};

extern Py_ssize_t fm_code_index[FM_SLOTS];   /* code extra: the struct fm_func */
extern Py_ssize_t fm_listen_index[FM_SLOTS]; /* code extra: whose lines are listened to */

/* Of the trace, code extra as well, behind its struct fm_func: the era and the word by which a call of this code is
 * told. So the hot path need not look at the function: with a few hundred of them that is a miss of the cache. */
struct fm_code_words {
    Py_ssize_t index; /* PY_SSIZE_T_MAX: there are none */
    uint32_t era;     /* words of others are of another store */
};
extern struct fm_code_words fm_code_words __attribute__((visibility("hidden")));
extern struct fm_c_cache_entry fm_c_cache[FM_SLOTS][FM_C_CACHE];

/* Get the slot ready for use in this interpreter; −1 with an exception. */
int fm_functions_prepare(int slot);

/* Forget which functions are defined: a new store begins (also: after a fork). */
void fm_functions_reset(struct fm_collector *c);

/* Forget which functions' lines were chosen: another collector uses the slot. */
void fm_functions_forget_choice(struct fm_collector *c);

/* How often lines of all of them began. */
uint64_t fm_functions_line_hits(const struct fm_collector *c);

/* Define the function in the current store if it is not. False if there is no room. */
struct fm_func *fm_function_of_new_code(struct fm_collector *c, PyCodeObject *code);
struct fm_func *fm_function_of_new_c(struct fm_collector *c, PyObject *callable,
                                     const PyMethodDef *def);

/* A region of that name, as a function; NULL without memory. Each call makes another. */
struct fm_func *fm_function_of_region(struct fm_collector *c, const char *name, size_t len);

/* Called when a function of id 0 is about to become a node. */
bool fm_function_define(struct fm_collector *c, struct fm_func *f, const void *key);

/* The list of (id, code object or name) of all functions defined, for getstats(). */
PyObject *fm_functions_list(struct fm_collector *c);

static inline struct fm_func *fm_function_of_code(struct fm_collector *c, PyCodeObject *code)
{
    struct fm_func *f = fm_python_code_extra(code, fm_code_index[c->slot]);
    return __builtin_expect(f != NULL, 1) ? f : fm_function_of_new_code(c, code);
}

/* The function of the trace whose code this is, and its word; false if it is to be looked up. */
static inline bool fm_function_has_word(const PyCodeObject *code, const struct fm_func **ret_func,
                                        uint32_t *ret_word)
{
    const struct fm_code_extra *extra = code->co_extra;
    Py_ssize_t index = fm_code_words.index;
    if (__builtin_expect(!extra || index >= extra->size, 0))
        return false;
    uint64_t known = (uintptr_t)extra->slots[index];
    *ret_func = extra->slots[index - 1];
    *ret_word = (uint32_t)known;
    return __builtin_expect(known >> 32 == fm_code_words.era, 1);
}

/* Keep the function's word, which it has, with its code. */
void fm_function_keep_word(PyCodeObject *code, const struct fm_func *f);

/* The function, if it is in the cache of the slot; else NULL. */
static inline struct fm_func *fm_function_in_cache(int slot, const PyMethodDef *def)
{
    struct fm_c_cache_entry *entry =
        &fm_c_cache[slot][((uintptr_t)def >> 4 ^ (uintptr_t)def >> 13) & (FM_C_CACHE - 1)];
    bool known = entry->def == def && entry->func->meth == (const void *)def->ml_meth;
    return __builtin_expect(known, 1) ? entry->func : NULL;
}

static inline struct fm_func *fm_function_of_c(struct fm_collector *c, PyObject *callable,
                                               const PyMethodDef *def)
{
    struct fm_func *f = fm_function_in_cache(c->slot, def);
    return __builtin_expect(f != NULL, 1) ? f : fm_function_of_new_c(c, callable, def);
}

#endif

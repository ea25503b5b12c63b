/*
 * Shared libraries that few verbs need. They are loaded when first used: so the others start at once, and work on
 * machines that lack them. Loading all of Graphviz and of an HTTP server took half the time of a short command.
 *
 * Who uses one lists its functions once:
 *
 *     #define FUNCTIONS(X) X(gvContext) X(gvLayout)
 *     static struct { FUNCTIONS(FM_LIBRARY_POINTER) } graphviz;
 *     static const char *const names[] = { FUNCTIONS(FM_LIBRARY_NAME) };
 *     fm_library_load(&graphviz, FM_COUNT(names), names, "libgvc.so.6", …)
 *
 * Headers are those of the library as it was built against, so it must be of that very version (soname).
 */
#ifndef FM_BASE_LIBRARY_H
#define FM_BASE_LIBRARY_H

#include <stddef.h>

#include "base/error.h"

#define FM_LIBRARY_POINTER(function) __typeof__(&function) function;
#define FM_LIBRARY_NAME(function)    #function,

/* Load it and set the `n` pointers at `pointers`. `what` and `package` are for the sentence if it is not there. */
int fm_library_load(void *pointers, size_t n, const char *const *names, const char *soname,
                    const char *what, const char *package, struct fm_error *err);

#endif

/*
 * Reshaping trees: each function here builds a new profile and leaves the old one as it is.
 *
 * fold    removes matching functions from every path and gives their callees, and their own time,
 *         to their callers: a decorator's wrapper disappears, its time stays attributed. What has
 *         no caller left gives its own time to the root of its thread.
 * filter  keeps only paths that contain a matching function. Callers above a match keep their
 *         calls, but of their time only what remains below them; their shortest and longest entry
 *         are unknown then.
 * root    makes the outermost calls of matching functions the roots.
 * merge   puts profiles side by side: processes, threads and trees stay apart, functions are
 *         combined.
 *
 * After folding, equal siblings are combined, so a tree never has two children of one function. A
 * profile that came without a tree keeps its table as it is. Lines, spots and waits stay with the
 * functions that remain; merging adds up lines that came without processes. Samples and states,
 * being of a node alone, move as its own time does.
 */
#ifndef FM_MODEL_EDIT_H
#define FM_MODEL_EDIT_H

#include "record/model/profile.h"

/* Does function `func` match? `data` is the caller's. */
typedef bool fm_function_match(const struct fm_profile *p, uint32_t func, void *data);

struct fm_profile *fm_profile_fold(const struct fm_profile *p, fm_function_match *match,
                                   void *data);
struct fm_profile *fm_profile_filter(const struct fm_profile *p, fm_function_match *match,
                                     void *data);
struct fm_profile *fm_profile_root(const struct fm_profile *p, fm_function_match *match,
                                   void *data);

/* Add everything in `from` to `into`: processes, threads and trees side by side, functions combined.
 * Ready-made tables are added up. */
void fm_profile_merge(struct fm_profile *into, const struct fm_profile *from);

/* A glob (with * ? […]) against name, qualname, "file:qualname" or file; a pattern without glob
 * characters must equal the name or the qualname. */
bool fm_function_glob(const struct fm_profile *p, uint32_t func, void *pattern);

#endif

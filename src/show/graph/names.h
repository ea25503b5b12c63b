/*
 * What functions are called in a call graph: "module:line:name", as gprof2dot writes it, with the
 * qualified name where the recording has one. Builtins stand without a place, a package's
 * __init__ or __main__ with the name of the package, and code without a file, like
 * <frozen importlib._bootstrap>, with the whole of what is there instead.
 */
#ifndef FM_GRAPH_NAMES_H
#define FM_GRAPH_NAMES_H

#include "base/buffer.h"
#include "record/model/profile.h"

/* Append the name, as recorded: it may hold any bytes. */
void fm_graph_name(struct fm_buffer *out, const struct fm_profile *p, uint32_t func);

/* Append file and line as recorded: "/a/b.py:12"; nothing if neither is known. */
void fm_graph_name_place(struct fm_buffer *out, const struct fm_profile *p, uint32_t func);

/* Append what two recordings of one program have in common about a function: no folder, no line. */
void fm_graph_name_key(struct fm_buffer *out, const struct fm_profile *p, uint32_t func);

/* Does the glob match the name here, the one gprof2dot gives, the name or the qualified name? */
bool fm_graph_name_matches(const struct fm_profile *p, uint32_t func, const char *glob);

/* Take parameters, template parameters and a final "const" out of the name in `name`. What stands
 * in angles by itself, like <lambda> or <locals>, stays. */
void fm_graph_name_strip(struct fm_buffer *name);

#endif

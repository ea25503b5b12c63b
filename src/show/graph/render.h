/*
 * Pictures of dot texts, by Graphviz's library.
 *
 * Threads: one at a time; Graphviz keeps state of its own. What its plug-ins write to the standard
 * error is kept away from there and becomes part of the error if they fail.
 */
#ifndef FM_GRAPH_RENDER_H
#define FM_GRAPH_RENDER_H

#include "base/buffer.h"
#include "base/error.h"

enum fm_graph_format { FM_GRAPH_DOT, FM_GRAPH_SVG, FM_GRAPH_PNG, FM_GRAPH_PDF };

/* The format of that name, or of a path by its end ("gv" is dot); negative if there is none. */
int fm_graph_format_named(const char *name);
int fm_graph_format_of_path(const char *path);

/* Append the picture of the dot text. FM_UNSUPPORTED if the plug-in for the format is missing. */
int fm_graph_render(const char *dot, enum fm_graph_format format, struct fm_buffer *out,
                    struct fm_error *err);

#endif

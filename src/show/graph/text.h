/*
 * Names in the dot language. A name may hold any bytes; in a picture it must appear as text:
 * nothing in it is an escape of Graphviz, an entity, a tag, a change of the direction of writing or
 * the end of the string. What cannot be shown stands as Python would write it: \n, \x1b, \u202e.
 */
#ifndef FM_GRAPH_TEXT_H
#define FM_GRAPH_TEXT_H

#include "base/buffer.h"

enum fm_graph_text_kind {
    FM_GRAPH_LABEL,
    FM_GRAPH_TOOLTIP, /* Graphviz resolves escapes in tooltips twice: first \n, then \N */
};

/* Append at most `max` characters of the text, without quotes around; what is left out is marked by
 * an ellipsis. */
void fm_graph_text(struct fm_buffer *out, const char *text, size_t len, size_t max,
                   enum fm_graph_text_kind kind);

/* A label in lines of about `columns` characters, broken where a name has a joint. */
void fm_graph_text_wrap(struct fm_buffer *out, const char *text, size_t len, size_t max,
                        size_t columns);

#endif

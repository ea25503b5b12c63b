/*
 * A call graph in the dot language, with the looks of gprof2dot: boxes and arrows by their weight
 * in colour, width and size of letters; labels of name, total share, (self share), calls.
 *
 * Nodes are numbered; names stand in labels and tooltips alone, as text (graph/text.h).
 */
#ifndef FM_GRAPH_DOT_H
#define FM_GRAPH_DOT_H

#include "base/buffer.h"
#include "show/graph/graph.h"
#include "show/graph/theme.h"

/* What may stand below a function's name, in this order, a bit each. */
enum fm_graph_measurement {
    FM_GRAPH_TOTAL_SHARE = 1,
    FM_GRAPH_SELF_SHARE = 2,
    FM_GRAPH_TOTAL_TIME = 4,
    FM_GRAPH_SELF_TIME = 8,
};

struct fm_graph_look {
    const struct fm_theme *theme;
    double skew;           /* of the colours; 1: none */
    unsigned measurements; /* enum fm_graph_measurement */
    bool by_self;          /* colour functions by their own time */
    bool strip, wrap;
    bool samples;       /* how many samples ended in a function */
    bool edge_tooltips; /* for pictures; they double the size of a dot file */
    const char *title;  /* of what the picture is; NULL: of the whole recording */
    const char *remark; /* something its reader must know; or NULL */
    /* Of a comparison. */
    double tolerance; /* a smaller change of the share is none */
    bool only_slower, only_faster;
};

void fm_graph_write_dot(const struct fm_graph *g, const struct fm_graph_look *look,
                        struct fm_buffer *out);

#endif

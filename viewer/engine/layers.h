/*
 * Positions for a graph of a few hundred boxes: layers from top to bottom, few crossings, straight
 * lines.
 *
 * The classical four steps: edges against the flow are turned round (a depth-first walk finds
 * them); each box gets the layer of the longest path that leads to it; long edges get a stand-in in
 * every layer they pass, and layers are sorted by the average place of neighbours, to and fro; at
 * last boxes move as near to their neighbours as their distance allows. Same input, same picture.
 */
#ifndef FM_ENGINE_LAYERS_H
#define FM_ENGINE_LAYERS_H

#include "base/vec.h"
#include <stdint.h>

struct fm_layers_edge {
    uint32_t from, to;
    double weight;
    uint32_t first_point, points; /* result */
};

struct fm_layers_point {
    double x, y;
};

struct fm_layers {
    uint32_t nodes, edges;
    struct fm_layers_edge *edge; /* given */
    uint32_t *layer;             /* result, by node, as are x and y; caller allocates */
    double *x, *y;
    FM_VEC(struct fm_layers_point) points; /* result; caller releases */
    double width, height;
};

/* Nodes are given in order of importance: the first ones are placed first. */
void fm_layers_place(struct fm_layers *g);

#endif

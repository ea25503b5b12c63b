/* Positions for a graph; see layers.h. */
#include "layers.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define SWEEPS    12
#define MAX_CELLS 50000u /* boxes and stand-ins; edges that would need more go straight */
#define BOX_GAP   1.2    /* from centre to centre */
#define LINE_GAP  0.4
#define LAYER_GAP 2.0

/* A box, or the stand-in of an edge in a layer it passes. */
struct cell {
    uint32_t layer, place; /* place within the layer */
    double x, wish, weight;
    bool box;
};

/* A piece of an edge, from one layer to the next. */
struct link {
    uint32_t upper, lower;
    double weight;
};

struct layers_work {
    struct fm_layers *g;
    bool *turned;        /* by edge: drawn upwards */
    uint32_t *first_out; /* edges by their upper end */
    uint32_t *out;
    FM_VEC(struct cell) cells; /* the boxes first */
    FM_VEC(struct link) links;
    uint32_t *first_cell; /* by edge: its first stand-in */
    uint32_t layers;
    uint32_t *row, *row_start;                   /* cells by layer, in order */
    uint32_t *up_start, *up, *down_start, *down; /* links by lower and by upper cell */
};

/* ---- which way ---- */

static void index_edges(struct layers_work *w)
{
    const struct fm_layers *g = w->g;
    w->first_out = fm_calloc(g->nodes + 1, sizeof *w->first_out);
    w->out = fm_calloc(g->edges, sizeof *w->out);
    for (uint32_t i = 0; i < g->edges; i++)
        w->first_out[g->edge[i].from + 1]++;
    for (uint32_t i = 0; i < g->nodes; i++)
        w->first_out[i + 1] += w->first_out[i];
    fm_autofree uint32_t *next = fm_calloc(g->nodes, sizeof *next);
    for (uint32_t i = 0; i < g->edges; i++)
        w->out[w->first_out[g->edge[i].from] + next[g->edge[i].from]++] = i;
}

/* Walk down from `start`; an edge to a node on the way there goes against the flow. */
static void walk_from(struct layers_work *w, uint32_t start, uint8_t *state, uint32_t *stack,
                      uint32_t *next)
{
    enum { UNSEEN, ON_PATH, DONE };
    uint32_t depth = 0;
    if (state[start] != UNSEEN)
        return;
    stack[depth++] = start;
    state[start] = ON_PATH;
    while (depth) {
        uint32_t node = stack[depth - 1];
        if (w->first_out[node] + next[node] == w->first_out[node + 1]) {
            state[node] = DONE;
            depth--;
            continue;
        }
        uint32_t edge = w->out[w->first_out[node] + next[node]++];
        uint32_t to = w->g->edge[edge].to;
        if (state[to] == ON_PATH) {
            w->turned[edge] = true;
        } else if (state[to] == UNSEEN) {
            state[to] = ON_PATH;
            stack[depth++] = to;
        }
    }
}

static void break_cycles(struct layers_work *w)
{
    const struct fm_layers *g = w->g;
    fm_autofree uint8_t *state = fm_calloc(g->nodes, 1);
    fm_autofree uint8_t *called = fm_calloc(g->nodes, 1);
    fm_autofree uint32_t *stack = fm_calloc(g->nodes + 1, sizeof *stack);
    fm_autofree uint32_t *next = fm_calloc(g->nodes, sizeof *next);
    for (uint32_t i = 0; i < g->edges; i++)
        if (g->edge[i].from != g->edge[i].to)
            called[g->edge[i].to] = 1;
    for (uint32_t i = 0; i < g->nodes; i++)
        if (!called[i])
            walk_from(w, i, state, stack, next);
    for (uint32_t i = 0; i < g->nodes; i++)
        walk_from(w, i, state, stack, next);
}

static uint32_t upper_of(const struct layers_work *w, uint32_t edge)
{
    return w->turned[edge] ? w->g->edge[edge].to : w->g->edge[edge].from;
}

static uint32_t lower_of(const struct layers_work *w, uint32_t edge)
{
    return w->turned[edge] ? w->g->edge[edge].from : w->g->edge[edge].to;
}

/* ---- layers ---- */

/* The longest path to each node: those without upper neighbours are done first. */
static void find_layers(struct layers_work *w)
{
    struct fm_layers *g = w->g;
    fm_autofree uint32_t *waiting = fm_calloc(g->nodes, sizeof *waiting);
    fm_autofree uint32_t *queue = fm_calloc(g->nodes + 1, sizeof *queue);
    fm_autofree uint32_t *head = fm_malloc((g->nodes + 1) * sizeof *head);
    fm_autofree uint32_t *chain = fm_malloc((g->edges + 1) * sizeof *chain);
    uint32_t len = 0;
    memset(head, 0xff, (g->nodes + 1) * sizeof *head);
    for (uint32_t i = g->edges; i-- > 0;) {
        if (g->edge[i].from == g->edge[i].to)
            continue;
        waiting[lower_of(w, i)]++;
        chain[i] = head[upper_of(w, i)];
        head[upper_of(w, i)] = i;
    }
    for (uint32_t i = 0; i < g->nodes; i++) {
        g->layer[i] = 0;
        if (!waiting[i])
            queue[len++] = i;
    }
    for (uint32_t at = 0; at < len; at++) {
        for (uint32_t i = head[queue[at]]; i != UINT32_MAX; i = chain[i]) {
            uint32_t lower = lower_of(w, i), layer = g->layer[queue[at]] + 1;
            if (g->layer[lower] < layer)
                g->layer[lower] = layer;
            if (--waiting[lower] == 0)
                queue[len++] = lower;
        }
    }
    for (uint32_t i = 0; i < g->nodes; i++)
        if (g->layer[i] + 1 > w->layers)
            w->layers = g->layer[i] + 1;
}

static void make_cells(struct layers_work *w)
{
    struct fm_layers *g = w->g;
    for (uint32_t i = 0; i < g->nodes; i++)
        fm_vec_push(&w->cells, ((struct cell){ .layer = g->layer[i], .box = true }));
    w->first_cell = fm_malloc((g->edges + 1) * sizeof *w->first_cell);
    for (uint32_t i = 0; i < g->edges; i++) {
        uint32_t upper = upper_of(w, i), lower = lower_of(w, i), from = upper;
        w->first_cell[i] = UINT32_MAX;
        if (upper == lower)
            continue;
        uint32_t long_by = g->layer[lower] - g->layer[upper] - 1;
        if (w->cells.len + long_by > MAX_CELLS)
            continue;
        if (long_by)
            w->first_cell[i] = (uint32_t)w->cells.len;
        for (uint32_t k = 1; k <= long_by; k++) {
            uint32_t cell = (uint32_t)w->cells.len;
            fm_vec_push(&w->cells, ((struct cell){ .layer = g->layer[upper] + k }));
            fm_vec_push(&w->links, ((struct link){ from, cell, g->edge[i].weight }));
            from = cell;
        }
        fm_vec_push(&w->links, ((struct link){ from, lower, g->edge[i].weight }));
    }
}

/* ---- order within layers ---- */

static uint32_t *starts_new(const struct layers_work *w, bool by_upper)
{
    uint32_t *start = fm_calloc(w->cells.len + 1, sizeof *start);
    for (size_t i = 0; i < w->links.len; i++)
        start[(by_upper ? w->links.data[i].upper : w->links.data[i].lower) + 1]++;
    for (size_t i = 0; i < w->cells.len; i++)
        start[i + 1] += start[i];
    return start;
}

static uint32_t *links_new(const struct layers_work *w, const uint32_t *start, bool by_upper)
{
    uint32_t *links = fm_calloc(w->links.len, sizeof *links);
    fm_autofree uint32_t *next = fm_calloc(w->cells.len, sizeof *next);
    for (size_t i = 0; i < w->links.len; i++) {
        uint32_t cell = by_upper ? w->links.data[i].upper : w->links.data[i].lower;
        links[start[cell] + next[cell]++] = (uint32_t)i;
    }
    return links;
}

static void fill_rows(struct layers_work *w)
{
    w->row_start = fm_calloc(w->layers + 1, sizeof *w->row_start);
    w->row = fm_calloc(w->cells.len, sizeof *w->row);
    for (size_t i = 0; i < w->cells.len; i++)
        w->row_start[w->cells.data[i].layer + 1]++;
    for (uint32_t i = 0; i < w->layers; i++)
        w->row_start[i + 1] += w->row_start[i];
    fm_autofree uint32_t *next = fm_calloc(w->layers, sizeof *next);
    for (uint32_t i = 0; i < w->cells.len; i++) {
        struct cell *cell = &w->cells.data[i];
        cell->place = next[cell->layer]++;
        w->row[w->row_start[cell->layer] + cell->place] = i;
    }
}

struct seat {
    double wish;
    uint32_t place, cell;
};

static int by_wish(const void *left, const void *right)
{
    const struct seat *a = left, *b = right;
    if (a->wish != b->wish)
        return a->wish < b->wish ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* The average place of a cell's neighbours above or below; its own if it has none. */
static double average_place(const struct layers_work *w, uint32_t cell, bool above, bool by_x)
{
    const uint32_t *start = above ? w->up_start : w->down_start;
    const uint32_t *links = above ? w->up : w->down;
    double sum = 0, weight = 0;
    for (uint32_t i = start[cell]; i < start[cell + 1]; i++) {
        const struct link *link = &w->links.data[links[i]];
        const struct cell *other = &w->cells.data[above ? link->upper : link->lower];
        double w_link = by_x ? 1 + link->weight : 1;
        sum += w_link * (by_x ? other->x : (double)other->place);
        weight += w_link;
    }
    const struct cell *own = &w->cells.data[cell];
    return weight > 0 ? sum / weight : by_x ? own->x : (double)own->place;
}

static void sort_row(struct layers_work *w, uint32_t layer, bool above, struct seat *seats)
{
    uint32_t begin = w->row_start[layer], count = w->row_start[layer + 1] - begin;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t cell = w->row[begin + i];
        seats[i] = (struct seat){ average_place(w, cell, above, false), i, cell };
    }
    if (count)
        qsort(seats, count, sizeof *seats, by_wish);
    for (uint32_t i = 0; i < count; i++) {
        w->row[begin + i] = seats[i].cell;
        w->cells.data[seats[i].cell].place = i;
    }
}

static void sort_rows(struct layers_work *w)
{
    fm_autofree struct seat *seats = fm_calloc(w->cells.len, sizeof *seats);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        bool down = sweep % 2 == 0;
        for (uint32_t i = 1; i < w->layers; i++)
            sort_row(w, down ? i : w->layers - 1 - i, down, seats);
    }
}

/* ---- positions ---- */

static double gap(const struct cell *a, const struct cell *b)
{
    double half_a = a->box ? BOX_GAP / 2 : LINE_GAP / 2;
    double half_b = b->box ? BOX_GAP / 2 : LINE_GAP / 2;
    return half_a + half_b;
}

struct pool {
    double sum, weight;
    uint32_t count;
};

/* As near to the wishes as order and distances allow, in the sense of least squares: neighbours
 * that would overlap move as one ("pool adjacent violators"). `offset` takes the distances out. */
static void place_row(struct layers_work *w, uint32_t layer, struct pool *pools, double *offset)
{
    uint32_t begin = w->row_start[layer], count = w->row_start[layer + 1] - begin, used = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct cell *cell = &w->cells.data[w->row[begin + i]];
        offset[i] = i ? offset[i - 1] + gap(&w->cells.data[w->row[begin + i - 1]], cell) : 0;
        pools[used++] = (struct pool){ (cell->wish - offset[i]) * cell->weight, cell->weight, 1 };
        while (used > 1 && pools[used - 2].sum / pools[used - 2].weight >
                               pools[used - 1].sum / pools[used - 1].weight) {
            pools[used - 2].sum += pools[used - 1].sum;
            pools[used - 2].weight += pools[used - 1].weight;
            pools[used - 2].count += pools[used - 1].count;
            used--;
        }
    }
    for (uint32_t p = 0, i = 0; p < used; p++)
        for (uint32_t k = 0; k < pools[p].count; k++, i++)
            w->cells.data[w->row[begin + i]].x = pools[p].sum / pools[p].weight + offset[i];
}

static void wish_row(struct layers_work *w, uint32_t layer, int how)
{
    for (uint32_t i = w->row_start[layer]; i < w->row_start[layer + 1]; i++) {
        uint32_t id = w->row[i];
        struct cell *cell = &w->cells.data[id];
        double above = average_place(w, id, true, true), below = average_place(w, id, false, true);
        cell->wish = how == 0 ? above : how == 1 ? below : (above + below) / 2;
        /* Stand-ins pull harder: long edges become straight. */
        cell->weight = cell->box ? 1 : 2;
    }
}

static void place_cells(struct layers_work *w)
{
    fm_autofree struct pool *pools = fm_calloc(w->cells.len, sizeof *pools);
    fm_autofree double *offset = fm_calloc(w->cells.len, sizeof *offset);
    for (uint32_t layer = 0; layer < w->layers; layer++) {
        double x = 0;
        for (uint32_t i = w->row_start[layer]; i < w->row_start[layer + 1]; i++) {
            struct cell *cell = &w->cells.data[w->row[i]];
            if (i > w->row_start[layer])
                x += gap(&w->cells.data[w->row[i - 1]], cell);
            cell->x = x;
        }
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        bool down = sweep % 2 == 0;
        int how = sweep >= SWEEPS - 2 ? 2 : down ? 0 : 1;
        for (uint32_t i = 0; i < w->layers; i++) {
            uint32_t layer = down ? i : w->layers - 1 - i;
            wish_row(w, layer, how);
            place_row(w, layer, pools, offset);
        }
    }
}

static void push_point(struct layers_work *w, double x, double y)
{
    fm_vec_push(&w->g->points, ((struct fm_layers_point){ x, y }));
}

static double y_of(uint32_t layer)
{
    return 0.5 + layer * LAYER_GAP;
}

/* A line begins at the bottom of a box and ends at the top of one; a call of itself is a loop. */
static void edge_points(struct layers_work *w, uint32_t i)
{
    struct fm_layers *g = w->g;
    struct fm_layers_edge *edge = &g->edge[i];
    uint32_t upper = upper_of(w, i), lower = lower_of(w, i);
    edge->first_point = (uint32_t)g->points.len;
    if (upper == lower) {
        double x = g->x[upper], y = g->y[upper];
        push_point(w, x + 0.3, y + 0.5);
        push_point(w, x + 0.65, y + 0.4);
        push_point(w, x + 0.65, y - 0.4);
        push_point(w, x + 0.3, y - 0.5);
        edge->points = 4;
        return;
    }
    uint32_t between = w->first_cell[i] == UINT32_MAX ? 0 : g->layer[lower] - g->layer[upper] - 1;
    if (!w->turned[i]) {
        push_point(w, g->x[upper], g->y[upper] + 0.5);
        for (uint32_t k = 0; k < between; k++)
            push_point(w, w->cells.data[w->first_cell[i] + k].x, y_of(g->layer[upper] + 1 + k));
        push_point(w, g->x[lower], g->y[lower] - 0.5);
    } else {
        push_point(w, g->x[lower], g->y[lower] - 0.5);
        for (uint32_t k = between; k-- > 0;)
            push_point(w, w->cells.data[w->first_cell[i] + k].x, y_of(g->layer[upper] + 1 + k));
        push_point(w, g->x[upper], g->y[upper] + 0.5);
    }
    edge->points = between + 2;
}

static void give_out(struct layers_work *w)
{
    struct fm_layers *g = w->g;
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < w->cells.len; i++) {
        least = fmin(least, w->cells.data[i].x);
        most = fmax(most, w->cells.data[i].x);
    }
    for (size_t i = 0; i < w->cells.len; i++)
        w->cells.data[i].x += 0.7 - least;
    for (uint32_t i = 0; i < g->nodes; i++) {
        g->x[i] = w->cells.data[i].x;
        g->y[i] = y_of(g->layer[i]);
    }
    g->width = g->nodes ? most - least + 1.4 : 0;
    g->height = g->nodes ? y_of(w->layers - 1) + 0.5 : 0;
    for (uint32_t i = 0; i < g->edges; i++)
        edge_points(w, i);
}

void fm_layers_place(struct fm_layers *g)
{
    struct layers_work w = { .g = g };
    w.turned = fm_calloc(g->edges, sizeof *w.turned);
    index_edges(&w);
    break_cycles(&w);
    find_layers(&w);
    make_cells(&w);
    fill_rows(&w);
    w.up_start = starts_new(&w, false);
    w.up = links_new(&w, w.up_start, false);
    w.down_start = starts_new(&w, true);
    w.down = links_new(&w, w.down_start, true);
    sort_rows(&w);
    place_cells(&w);
    give_out(&w);
    free(w.turned);
    free(w.first_out);
    free(w.out);
    free(w.first_cell);
    free(w.row);
    free(w.row_start);
    free(w.up_start);
    free(w.up);
    free(w.down_start);
    free(w.down);
    fm_vec_release(&w.cells);
    fm_vec_release(&w.links);
}

/* The phases of lanes; see phases.h. */
#include "show/report/timeline/phases.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "record/model/tree.h"

#define DEEPEST 256u /* frames of a path that are looked at */
#define MOST    0.4  /* of a column, for a function to be part of its path */
#define SAME    0.95 /* of the columns of a path: who has so many is not told apart from it */
#define LEAST   0.02 /* of all columns, for a name of its own */

/* A function below its caller, in the paths of columns. */
struct path_node {
    uint32_t parent, func;
    uint32_t child, sibling; /* its first callee, its caller's next one; 0: none */
    uint64_t columns;        /* through it */
    bool named;              /* its columns have its name, unless a callee has one */
    uint32_t name;           /* … */
};

struct phase_search {
    struct fm_phases *ph;
    struct fm_map children;         /* (parent, function) → node */
    FM_VEC(struct path_node) nodes; /* 0: all */
    uint64_t all;                   /* columns with anything */
};

/* What is open at one depth of each column of a lane. */
struct depth_row {
    float *covered;
    uint32_t *func;
    uint8_t *state;
};

/* --- columns ---------------------------------------------------------------------------------- */

static void add_cell(const struct fm_phases *ph, struct depth_row *row, const struct fm_cell *cell)
{
    double column_ns = (double)(ph->to_ns - ph->from_ns) / ph->columns;
    uint64_t begin_ns = cell->begin_ns > ph->from_ns ? cell->begin_ns : ph->from_ns;
    uint64_t end_ns = cell->end_ns < ph->to_ns ? cell->end_ns : ph->to_ns;
    if (end_ns <= begin_ns)
        return;
    uint32_t first = (uint32_t)((double)(begin_ns - ph->from_ns) / column_ns);
    for (uint32_t i = first; i < ph->columns; i++) {
        double left = (double)ph->from_ns + column_ns * i, right = left + column_ns;
        if (left >= (double)end_ns)
            break;
        left = left > (double)begin_ns ? left : (double)begin_ns;
        right = right < (double)end_ns ? right : (double)end_ns;
        float covered = (float)((right - left) / column_ns * cell->covered / 255);
        if (covered <= row->covered[i])
            continue;
        row->covered[i] = covered;
        row->func[i] = cell->func;
        row->state[i] = (uint8_t)cell->state;
    }
}

struct loss_search {
    const struct fm_phases *ph;
    struct fm_phase_column *columns;
};

/* A call that was open while something was lost began long before: the marks know when it was. */
static bool add_loss(void *context, const struct fm_mark *mark)
{
    const struct loss_search *s = context;
    const struct fm_phases *ph = s->ph;
    double column_ns = (double)(ph->to_ns - ph->from_ns) / ph->columns;
    if (mark->kind != FM_MARK_LOST || mark->end_ns < ph->from_ns || mark->begin_ns > ph->to_ns)
        return true;
    uint64_t begin_ns = mark->begin_ns > ph->from_ns ? mark->begin_ns : ph->from_ns;
    uint32_t first = (uint32_t)((double)(begin_ns - ph->from_ns) / column_ns);
    for (uint32_t i = first; i < ph->columns; i++) {
        if (i > first && (double)ph->from_ns + column_ns * i >= (double)mark->end_ns)
            break;
        s->columns[i].lost = 1;
    }
    return true;
}

static uint32_t child_of(struct phase_search *s, uint32_t parent, uint32_t func)
{
    bool is_new;
    uint32_t node = fm_tree_at(&s->children, parent, func, (uint32_t)s->nodes.len, &is_new);
    if (!is_new)
        return node;
    fm_vec_push(&s->nodes,
                ((struct path_node){
                    .parent = parent, .func = func, .sibling = s->nodes.data[parent].child }));
    s->nodes.data[parent].child = node;
    return node;
}

static void clear_row(struct depth_row *row, uint32_t columns)
{
    for (uint32_t i = 0; i < columns; i++)
        row->covered[i] = 0;
}

/* Add the paths of a lane's columns; `leaf` is by column the last node, FM_NONE where nothing is open. */
static void add_paths(struct phase_search *s, const struct fm_cells *cells, bool sampled,
                      struct fm_phase_lane *lane, uint32_t *leaf)
{
    uint32_t columns = s->ph->columns;
    struct depth_row row = { fm_calloc(columns, sizeof(float)),
                             fm_calloc(columns, sizeof(uint32_t)), fm_calloc(columns, 1) };
    size_t at = 0;
    for (uint32_t i = 0; i < columns; i++)
        leaf[i] = 0;
    for (uint32_t depth = 0; depth < DEEPEST && at < cells->cells.len; depth++) {
        clear_row(&row, columns);
        for (; at < cells->cells.len && cells->cells.data[at].depth == depth; at++)
            add_cell(s->ph, &row, &cells->cells.data[at]);
        for (uint32_t i = 0; i < columns; i++) {
            struct fm_phase_column *column = &lane->columns[i];
            if (row.covered[i] < MOST || leaf[i] == FM_NONE) {
                leaf[i] = depth ? leaf[i] : FM_NONE;
                row.covered[i] = 0;
                continue;
            }
            leaf[i] = child_of(s, leaf[i], row.func[i]);
            column->state = sampled ? row.state[i] : FM_PHASES_NO_STATE;
        }
    }
    free(row.covered);
    free(row.func);
    free(row.state);
}

static void count_paths(struct phase_search *s, const uint32_t *leaf)
{
    for (uint32_t i = 0; i < s->ph->columns; i++) {
        if (leaf[i] == FM_NONE || !leaf[i])
            continue;
        s->all++;
        for (uint32_t node = leaf[i]; node != FM_NONE; node = s->nodes.data[node].parent)
            s->nodes.data[node].columns++;
    }
}

/* --- names ------------------------------------------------------------------------------------ */

/* The callee that is as good as the node itself; FM_NONE if there is none. */
static uint32_t only_child(const struct phase_search *s, uint32_t node)
{
    double least = SAME * (double)s->nodes.data[node].columns;
    for (uint32_t i = s->nodes.data[node].child; i; i = s->nodes.data[i].sibling)
        if ((double)s->nodes.data[i].columns >= least)
            return i;
    return FM_NONE;
}

static bool is_worth_a_name(const struct phase_search *s, uint32_t node)
{
    return (double)s->nodes.data[node].columns >= LEAST * (double)s->all;
}

static uint32_t count_children(const struct phase_search *s, uint32_t node)
{
    uint32_t n = 0;
    for (uint32_t i = s->nodes.data[node].child; i; i = s->nodes.data[i].sibling)
        n += is_worth_a_name(s, i);
    return n;
}

/* The last of the nodes below this one that are as good as itself. */
static uint32_t chain_end(const struct phase_search *s, uint32_t node)
{
    for (uint32_t next; (next = only_child(s, node)) != FM_NONE;)
        node = next;
    return node;
}

/* Let the callees of a node have names of their own. What has none keeps that of the node; of the whole,
 * that of the innermost function it is in. */
static void split(struct phase_search *s, uint32_t node, uint32_t end)
{
    for (uint32_t i = end; i != FM_NONE; i = s->nodes.data[i].parent) {
        struct path_node *at = &s->nodes.data[i];
        at->named = true;
        at->name = node ? s->nodes.data[node].func : at->func;
        if (i == node)
            break;
    }
    for (uint32_t i = s->nodes.data[end].child; i; i = s->nodes.data[i].sibling) {
        s->nodes.data[i].named = is_worth_a_name(s, i);
        s->nodes.data[i].name = s->nodes.data[i].func;
    }
}

struct phase_split {
    uint32_t node, end;
};

/* What has most columns of all that can be split. */
static bool find_candidate(const struct phase_search *s, const bool *done, struct phase_split *ret)
{
    uint64_t most = 0;
    bool found = false;
    for (uint32_t i = 0; i < s->nodes.len; i++) {
        const struct path_node *node = &s->nodes.data[i];
        if (done[i] || (i && !node->named) || node->columns <= most)
            continue;
        uint32_t end = chain_end(s, i);
        if (count_children(s, end) < 2)
            continue;
        most = node->columns;
        *ret = (struct phase_split){ i, end };
        found = true;
    }
    return found;
}

static void choose_names(struct phase_search *s)
{
    fm_autofree bool *done = fm_calloc(s->nodes.len, sizeof *done);
    uint32_t names = 0;
    struct phase_split c;
    while (names < FM_PHASES_MOST && find_candidate(s, done, &c)) {
        for (uint32_t i = c.end; i != FM_NONE && !done[i]; i = s->nodes.data[i].parent) {
            done[i] = true;
            if (i == c.node)
                break;
        }
        split(s, c.node, c.end);
        names += count_children(s, c.end);
    }
    if (!names) /* one path all along */
        split(s, 0, chain_end(s, 0));
}

/* That of the innermost with a name, or the outermost function. */
static uint32_t name_of(const struct phase_search *s, uint32_t leaf)
{
    uint32_t name = FM_NONE;
    for (uint32_t node = leaf; node != FM_NONE && node; node = s->nodes.data[node].parent) {
        name = s->nodes.data[node].func;
        if (s->nodes.data[node].named)
            return s->nodes.data[node].name;
    }
    return name;
}

static int by_columns(const void *a, const void *b)
{
    const struct fm_phase_name *one = a, *two = b;
    if (one->columns != two->columns)
        return one->columns > two->columns ? -1 : 1;
    return one->func < two->func ? -1 : one->func > two->func;
}

static void name_columns(struct phase_search *s, const uint32_t *leaves)
{
    struct fm_map places = { 0 };
    struct fm_phases *ph = s->ph;
    for (size_t i = 0; i < ph->lanes.len; i++)
        for (uint32_t k = 0; k < ph->columns; k++) {
            struct fm_phase_column *column = &ph->lanes.data[i].columns[k];
            bool is_new;
            column->func = name_of(s, leaves[i * ph->columns + k]);
            if (column->func == FM_NONE)
                continue;
            uint32_t place = *fm_map_at(&places, column->func, (uint32_t)ph->names.len, &is_new);
            if (is_new)
                fm_vec_push(&ph->names, ((struct fm_phase_name){ column->func, 0 }));
            ph->names.data[place].columns++;
        }
    if (ph->names.len)
        qsort(ph->names.data, ph->names.len, sizeof *ph->names.data, by_columns);
    fm_map_release(&places);
}

/* --- all of it -------------------------------------------------------------------------------- */

static bool is_in(const struct fm_flat_scope *scope, const struct fm_lane *lane)
{
    return (scope->process == FM_NONE || scope->process == lane->process) &&
           (scope->thread == FM_NONE || scope->thread == lane->thread);
}

int fm_phases_find(struct fm_phases *ph, struct fm_timeline *t, const struct fm_flat_scope *scope,
                   struct fm_error *err)
{
    struct phase_search s = { .ph = ph };
    struct fm_cells cells = { 0 };
    FM_VEC(uint32_t) leaves = { 0 };
    uint64_t cell_ns = (ph->to_ns - ph->from_ns) / ph->columns;
    int status = 0;
    fm_vec_push(&s.nodes, ((struct path_node){ .parent = FM_NONE, .func = FM_NONE }));
    for (size_t i = 0; i < fm_timeline_lanes(t) && status == 0; i++) {
        const struct fm_lane *lane = fm_timeline_lane(t, i);
        if (!is_in(scope, lane) || lane->begin_ns >= ph->to_ns || lane->end_ns <= ph->from_ns)
            continue;
        struct fm_phase_lane own = { (uint32_t)i, fm_calloc(ph->columns, sizeof *own.columns) };
        fm_vec_push(&ph->lanes, own);
        fm_vec_reserve(&leaves, leaves.len + ph->columns);
        cells.cells.len = 0;
        status =
            fm_timeline_cells(t, i, ph->from_ns, ph->to_ns, cell_ns ? cell_ns : 1, &cells, err);
        struct loss_search losses = { ph, own.columns };
        if (status == 0 && lane->lost)
            status =
                fm_timeline_marks(t, (uint32_t)i, ph->from_ns, ph->to_ns, add_loss, &losses, err);
        add_paths(&s, &cells, lane->kind == FM_LANE_SAMPLED, &own, leaves.data + leaves.len);
        count_paths(&s, leaves.data + leaves.len);
        leaves.len += ph->columns;
    }
    choose_names(&s);
    name_columns(&s, leaves.data);
    fm_cells_release(&cells);
    fm_vec_release(&leaves);
    fm_vec_release(&s.nodes);
    fm_map_release(&s.children);
    return status;
}

void fm_phases_release(struct fm_phases *ph)
{
    for (size_t i = 0; i < ph->lanes.len; i++)
        free(ph->lanes.data[i].columns);
    fm_vec_release(&ph->lanes);
    fm_vec_release(&ph->names);
}

size_t fm_phases_name(const struct fm_phases *ph, uint32_t func)
{
    size_t i = 0;
    while (i < ph->names.len && ph->names.data[i].func != func)
        i++;
    return i;
}

/* Writing call graphs in the dot language; see dot.h. */
#include "show/graph/dot.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "show/graph/names.h"
#include "show/graph/numbers.h"
#include "show/graph/text.h"
#include "show/report/metric.h"
#include "show/report/number.h"

#define FONT          "Arial,Helvetica,sans-serif"
#define LABEL_CHARS   100  /* a box must not be wider than a page */
#define TOOLTIP_CHARS 1500 /* of a name, and of a path */
#define WRAP_COLUMNS  32
#define CHANGE_MIN    0.00005 /* of a share: smaller ones would be written as 0.00% */
/* From here on a perfect layout would take minutes: a good one has to do, then straight lines. */
#define LARGE_NODES 500
#define LARGE_EDGES 2000
/* About what a node and an edge take. */
#define NODE_BYTES 320
#define EDGE_BYTES 170

enum size_kind { SIZE_FONT, SIZE_PEN, SIZE_ARROW, SIZE_KINDS };

struct size {
    double value;
    char text[16];
    size_t len; /* 0: nothing is kept */
};

struct dot_writer {
    const struct fm_graph *g;
    const struct fm_graph_look *look;
    struct fm_buffer *out;
    struct fm_buffer name; /* at hand */
    double self_max;       /* the largest share of self time that is shown */
    double change_max;     /* the largest change that is shown */
    struct size sizes[SIZE_KINDS];
};

/* ---- small parts ---- */

static inline __attribute__((always_inline)) void add(struct dot_writer *w, const char *text)
{
    fm_put(w->out, text, strlen(text));
}

static void add_count(struct dot_writer *w, int64_t value)
{
    fm_put_count(w->out, value);
}

static void add_percent(struct dot_writer *w, double share)
{
    fm_put_hundredths(w->out, share * 100);
    add(w, "%");
}

static void add_colour(struct dot_writer *w, const char *attribute, struct fm_rgb c)
{
    static const char hex[] = "0123456789abcdef";
    char text[7] = { '#',           hex[c.r >> 4], hex[c.r & 15], hex[c.g >> 4],
                     hex[c.g & 15], hex[c.b >> 4], hex[c.b & 15] };
    add(w, attribute);
    add(w, "=\"");
    fm_put(w->out, text, sizeof text);
    add(w, "\"");
}

/* Sizes are mostly the smallest there is, so the last of each kind is kept as text. */
static void add_size(struct dot_writer *w, const char *attribute, enum size_kind kind, double value)
{
    struct size *last = &w->sizes[kind];
    add(w, attribute);
    add(w, "=\"");
    if (last->len && last->value == value) {
        fm_put(w->out, last->text, last->len);
    } else {
        size_t start = w->out->len;
        fm_put_hundredths(w->out, value);
        last->value = value;
        last->len = w->out->len - start < sizeof last->text ? w->out->len - start : 0;
        memcpy(last->text, w->out->data + start, last->len);
    }
    add(w, "\"");
}

static void spell(struct dot_writer *w, const struct fm_graph_node *node)
{
    fm_buffer_clear(&w->name);
    fm_graph_name(&w->name, node->p, node->func);
    if (w->look->strip)
        fm_graph_name_strip(&w->name);
}

static void add_label_name(struct dot_writer *w, const struct fm_graph_node *node)
{
    spell(w, node);
    if (w->look->wrap)
        fm_graph_text_wrap(w->out, fm_buffer_text(&w->name), w->name.len, LABEL_CHARS,
                           WRAP_COLUMNS);
    else
        fm_graph_text(w->out, fm_buffer_text(&w->name), w->name.len, LABEL_CHARS, FM_GRAPH_LABEL);
}

static void add_tooltip_name(struct dot_writer *w, const struct fm_graph_node *node)
{
    spell(w, node);
    fm_graph_text(w->out, fm_buffer_text(&w->name), w->name.len, TOOLTIP_CHARS, FM_GRAPH_TOOLTIP);
}

static void add_weight(struct dot_writer *w, int64_t ns)
{
    char text[FM_NUMBER_BYTES];
    add(w, fm_number_of(text, w->g->unit, ns));
}

static const char *call_unit(const struct dot_writer *w)
{
    return w->g->calls_are_samples ? " samples" : "×";
}

/* ---- comparisons ---- */

static bool is_comparison(const struct dot_writer *w)
{
    return w->g->sides > 1;
}

/* What of a change is shown: 0 if it is below the tolerance or of the kind not asked for. */
static double shown_change(const struct dot_writer *w, double first, double second)
{
    double change = second - first;
    if (fabs(change) < w->look->tolerance || fabs(change) < CHANGE_MIN ||
        (change > 0 && w->look->only_faster) || (change < 0 && w->look->only_slower))
        return 0;
    return change;
}

static double node_change(const struct dot_writer *w, const struct fm_graph_node *node)
{
    return shown_change(w, fm_graph_total(w->g, node, 0), fm_graph_total(w->g, node, 1));
}

static double edge_change(const struct dot_writer *w, const struct fm_graph_edge *edge)
{
    return shown_change(w, fm_graph_edge_total(w->g, edge, 0), fm_graph_edge_total(w->g, edge, 1));
}

/* A small change must be told from none at all. */
static double change_weight(const struct dot_writer *w, double change)
{
    if (change == 0 || w->change_max <= 0)
        return 0;
    double weight = 0.15 + 0.85 * fabs(change) / w->change_max;
    return change > 0 ? weight : -weight;
}

static void add_change(struct dot_writer *w, double first, double second)
{
    double change = shown_change(w, first, second);
    add_percent(w, first);
    if (change != 0) {
        add(w, change > 0 ? " +" : " −");
        add_percent(w, fabs(change));
    }
}

static void add_both_calls(struct dot_writer *w, const bool *on, int64_t first, int64_t second)
{
    if (first <= 0 && second <= 0)
        return;
    add(w, "\\n");
    if (on[0]) {
        add_count(w, first);
        add(w, call_unit(w));
    }
    if (on[0] && on[1] && first == second)
        return;
    if (on[0] && on[1])
        add(w, " / ");
    if (on[1]) {
        add_count(w, second);
        add(w, call_unit(w));
    }
}

static void add_presence(struct dot_writer *w, const bool *on)
{
    if (!on[0] || !on[1])
        add(w, on[0] ? "\\ngone" : "\\nnew");
}

/* ---- nodes ---- */

static void add_measurements(struct dot_writer *w, const struct fm_graph_node *node)
{
    const struct fm_graph *g = w->g;
    unsigned which = w->look->measurements;
    bool both = is_comparison(w), timed = g->self_sum_ns[0] > 0 || g->self_sum_ns[1] > 0;
    if (timed && which & FM_GRAPH_TOTAL_SHARE) {
        add(w, "\\n");
        if (both)
            add_change(w, fm_graph_total(g, node, 0), fm_graph_total(g, node, 1));
        else
            add_percent(w, fm_graph_total(g, node, 0));
    }
    if (timed && which & FM_GRAPH_SELF_SHARE) {
        add(w, "\\n(");
        if (both)
            add_change(w, fm_graph_self(g, node, 0), fm_graph_self(g, node, 1));
        else
            add_percent(w, fm_graph_self(g, node, 0));
        add(w, ")");
    }
    for (int self = 0; self < 2; self++) {
        if (!(which & (self ? FM_GRAPH_SELF_TIME : FM_GRAPH_TOTAL_TIME)))
            continue;
        add(w, self ? "\\n(" : "\\n");
        for (int i = 0; i < g->sides; i++) {
            add(w, i ? " / " : "");
            add_weight(w, self ? node->side[i].self_ns : node->side[i].total_ns);
        }
        add(w, self ? ")" : "");
    }
}

static void add_node_label(struct dot_writer *w, const struct fm_graph_node *node)
{
    add(w, "label=\"");
    add_label_name(w, node);
    add_measurements(w, node);
    if (is_comparison(w)) {
        add_presence(w, node->on);
        add_both_calls(w, node->on, node->side[0].calls, node->side[1].calls);
    } else {
        if (w->look->samples && node->side[0].samples) {
            add(w, "\\n");
            add_count(w, node->side[0].samples);
            add(w, node->side[0].samples == 1 ? " sample" : " samples");
        }
        if (node->side[0].calls > 0) {
            add(w, "\\n");
            add_count(w, node->side[0].calls);
            add(w, call_unit(w));
        }
    }
    add(w, "\"");
}

static void add_node_tooltip(struct dot_writer *w, const struct fm_graph_node *node)
{
    add(w, ", tooltip=\"");
    add_tooltip_name(w, node);
    fm_buffer_clear(&w->name);
    fm_graph_name_place(&w->name, node->p, node->func);
    if (w->name.len) {
        add(w, "\\n");
        fm_graph_text(w->out, fm_buffer_text(&w->name), w->name.len, TOOLTIP_CHARS,
                      FM_GRAPH_TOOLTIP);
    }
    for (int i = 0; i < w->g->sides; i++) {
        if (!node->on[i])
            continue;
        add(w, is_comparison(w) ? (i ? "\\nsecond: total " : "\\nfirst: total ") : "\\ntotal ");
        add_weight(w, node->side[i].total_ns);
        add(w, ", self ");
        add_weight(w, node->side[i].self_ns);
    }
    add(w, "\"");
}

static double node_weight(const struct dot_writer *w, const struct fm_graph_node *node)
{
    if (w->look->by_self && w->self_max > 0)
        return fm_graph_self(w->g, node, 0) / w->self_max;
    return fm_graph_weight(w->g, node);
}

static bool is_two_hued(const struct dot_writer *w)
{
    return is_comparison(w) && !w->look->theme->colourless;
}

static void add_node_colours(struct dot_writer *w, const struct fm_graph_node *node, double weight)
{
    const struct fm_theme *theme = w->look->theme;
    if (is_two_hued(w)) {
        double change = change_weight(w, node_change(w, node));
        add_colour(w, "color", fm_theme_change(change));
        add_colour(w, ", fontcolor", fm_theme_text(fm_theme_change(change)));
        return;
    }
    struct fm_rgb colour = fm_theme_colour(theme, weight, w->look->skew);
    add_colour(w, "color", colour);
    add_colour(w, ", fontcolor", theme->filled ? fm_theme_text(colour) : colour);
}

static void write_node(struct dot_writer *w, uint32_t number)
{
    const struct fm_graph_node *node = &w->g->nodes.data[number];
    double weight = node_weight(w, node);
    add(w, "\t");
    add_count(w, number);
    add(w, " [");
    add_node_colours(w, node, weight);
    add_size(w, ", fontsize", SIZE_FONT, fm_theme_font(w->look->theme, weight));
    add(w, ", ");
    add_node_label(w, node);
    add_node_tooltip(w, node);
    add(w, "];\n");
}

/* ---- edges ---- */

static void add_edge_label(struct dot_writer *w, const struct fm_graph_edge *edge)
{
    const struct fm_graph *g = w->g;
    add(w, ", label=\"");
    if (is_comparison(w)) {
        add_change(w, fm_graph_edge_total(g, edge, 0), fm_graph_edge_total(g, edge, 1));
        add_presence(w, edge->on);
        add_both_calls(w, edge->on, edge->calls[0], edge->calls[1]);
    } else {
        if (g->self_sum_ns[0] > 0)
            add_percent(w, fm_graph_edge_total(g, edge, 0));
        if (edge->calls[0] > 0) {
            add(w, g->self_sum_ns[0] > 0 ? "\\n" : "");
            add_count(w, edge->calls[0]);
            add(w, call_unit(w));
        }
    }
    add(w, "\"");
}

static void add_edge_tooltip(struct dot_writer *w, const struct fm_graph_edge *edge)
{
    add(w, ", tooltip=\"");
    add_tooltip_name(w, &w->g->nodes.data[edge->caller]);
    add(w, " → ");
    add_tooltip_name(w, &w->g->nodes.data[edge->callee]);
    add(w, "\\n");
    for (int i = 0; i < w->g->sides; i++) {
        add(w, i ? " / " : "");
        add_weight(w, edge->total_ns[i]);
    }
    add(w, "\"");
}

static void write_edge(struct dot_writer *w, const struct fm_graph_edge *edge)
{
    const struct fm_theme *theme = w->look->theme;
    double weight = fm_graph_edge_weight(w->g, edge);
    struct fm_rgb colour = is_two_hued(w)
                               ? fm_theme_change_line(change_weight(w, edge_change(w, edge)))
                               : fm_theme_colour(theme, weight, w->look->skew);
    add(w, "\t");
    add_count(w, edge->caller);
    add(w, " -> ");
    add_count(w, edge->callee);
    add_size(w, " [arrowsize", SIZE_ARROW, fm_theme_arrow(theme, weight));
    add_colour(w, ", color", colour);
    add_colour(w, ", fontcolor", colour);
    add_size(w, ", fontsize", SIZE_FONT, fm_theme_font(theme, weight));
    add_edge_label(w, edge);
    add_size(w, ", labeldistance", SIZE_PEN, fm_theme_pen(theme, weight));
    add_size(w, ", penwidth", SIZE_PEN, fm_theme_pen(theme, weight));
    if (w->look->edge_tooltips)
        add_edge_tooltip(w, edge);
    add(w, "];\n");
}

/* ---- the whole ---- */

static void add_caption_line(struct dot_writer *w, const char *text)
{
    fm_graph_text(w->out, text, strlen(text), TOOLTIP_CHARS, FM_GRAPH_LABEL);
    add(w, "\\l");
}

/* What is shown, of how much, and what was left out: below the picture. */
static void add_caption(struct dot_writer *w)
{
    const struct fm_graph *g = w->g;
    struct fm_graph_count kept = fm_graph_count(g);
    char shown[FM_NUMBER_BYTES], all[FM_NUMBER_BYTES];
    if (w->look->title)
        add_caption_line(w, w->look->title);
    fm_number_count(shown, (int64_t)kept.nodes);
    fm_number_count(all, (int64_t)g->nodes.len);
    if (kept.nodes == g->nodes.len)
        fm_buffer_addf(w->out, "%s functions, ", shown);
    else
        fm_buffer_addf(w->out, "%s of %s functions, ", shown, all);
    for (int i = 0; i < g->sides; i++) {
        add(w, i ? " → " : "");
        add_weight(w, g->self_sum_ns[i]);
    }
    add(w, "\\l");
    if (is_two_hued(w))
        add(w, "red: slower in the second recording, blue: faster\\l");
    if (w->look->remark)
        add_caption_line(w, w->look->remark);
}

static void write_start(struct dot_writer *w)
{
    bool filled = w->look->theme->filled || is_two_hued(w);
    struct fm_graph_count kept = fm_graph_count(w->g);
    add(w, "digraph calls {\n\ttooltip=\" \"\n"
           "\tgraph [fontcolor=\"#666666\", fontname=\"" FONT "\", fontsize=10, label=\"");
    add_caption(w);
    add(w, "\", labeljust=l, labelloc=b, nodesep=0.125, ranksep=0.25");
    if (kept.nodes > LARGE_NODES)
        add(w, ", mclimit=0.2, nslimit=0.5, nslimit1=2");
    if (kept.edges > LARGE_EDGES)
        add(w, ", splines=line");
    add(w, "];\n");
    add(w, "\tnode [fontcolor=");
    add(w, filled ? "white" : "black");
    add(w, ", fontname=\"" FONT "\", height=0, shape=box, style=");
    add(w, filled ? "filled" : "solid");
    add(w, ", width=0];\n\tedge [fontname=\"" FONT "\"];\n");
}

static void find_largest(struct dot_writer *w)
{
    const struct fm_graph *g = w->g;
    for (size_t i = 0; i < g->nodes.len; i++) {
        const struct fm_graph_node *node = &g->nodes.data[i];
        if (!node->kept)
            continue;
        w->self_max = fmax(w->self_max, fm_graph_self(g, node, 0));
        if (is_comparison(w))
            w->change_max = fmax(w->change_max, fabs(node_change(w, node)));
    }
    for (size_t i = 0; is_comparison(w) && i < g->edges.len; i++)
        if (g->edges.data[i].kept)
            w->change_max = fmax(w->change_max, fabs(edge_change(w, &g->edges.data[i])));
}

struct ranked {
    double weight;
    uint32_t node;
};

static int by_weight(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* The kept nodes, heaviest first. Graphviz starts at the first node of a cycle, so what calls all
 * else comes to stand on top. */
static struct ranked *rank_nodes(const struct fm_graph *g, size_t count)
{
    struct ranked *order = fm_malloc((count + 1) * sizeof *order);
    size_t n = 0;
    for (uint32_t i = 0; i < g->nodes.len; i++)
        if (g->nodes.data[i].kept)
            order[n++] = (struct ranked){ fm_graph_weight(g, &g->nodes.data[i]), i };
    qsort(order, n, sizeof *order, by_weight);
    return order;
}

void fm_graph_write_dot(const struct fm_graph *g, const struct fm_graph_look *look,
                        struct fm_buffer *out)
{
    struct dot_writer w = { .g = g, .look = look, .out = out };
    struct fm_graph_count kept = fm_graph_count(g);
    fm_autofree struct ranked *order = rank_nodes(g, kept.nodes);
    fm_buffer_reserve(out, kept.nodes * NODE_BYTES + kept.edges * EDGE_BYTES);
    find_largest(&w);
    write_start(&w);
    for (size_t i = 0; i < kept.nodes; i++)
        write_node(&w, order[i].node);
    for (size_t i = 0; i < kept.nodes; i++) {
        uint32_t node = order[i].node;
        for (uint32_t e = g->edge_start[node]; e < g->edge_start[node + 1]; e++)
            if (g->edges.data[e].kept)
                write_edge(&w, &g->edges.data[e]);
    }
    add(&w, "}\n");
    out->data[out->len] = '\0';
    fm_buffer_release(&w.name);
}

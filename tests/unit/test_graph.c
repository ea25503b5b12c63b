/* The call graph against numbers worked out by hand: shares, pruning, comparisons; and names as
 * text in the dot language. */
#include "fixture.h"

#include <math.h>

#include "base/buffer.h"
#include "show/graph/dot.h"
#include "show/graph/graph.h"
#include "show/graph/names.h"
#include "show/graph/text.h"

/* main 100 → a 60 → b 20, main → b 30, b → b 10 (within the 20 of a → b). */
static struct fm_profile *sample(void)
{
    struct fm_profile *p = fm_profile_new();
    uint32_t top = fx_node(p, fx_thread(p, 7), "main", 1, 100);
    uint32_t a = fx_node(p, top, "a", 2, 60);
    fx_node(p, fx_node(p, a, "b", 4, 20), "b", 5, 10);
    fx_node(p, top, "b", 1, 30);
    return p;
}

static struct fm_graph_node *node_named(struct fm_graph *g, const char *name)
{
    for (size_t i = 0; i < g->nodes.len; i++) {
        struct fm_graph_node *node = &g->nodes.data[i];
        if (strcmp(fm_profile_text(node->p, node->p->functions.data[node->func].name), name) == 0)
            return node;
    }
    fail_msg("no node %s", name);
    return NULL;
}

static struct fm_graph_edge *edge_named(struct fm_graph *g, const char *caller, const char *callee)
{
    uint32_t from = (uint32_t)(node_named(g, caller) - g->nodes.data);
    uint32_t to = (uint32_t)(node_named(g, callee) - g->nodes.data);
    for (uint32_t e = g->edge_start[from]; e < g->edge_start[from + 1]; e++) {
        assert_int_equal(g->edges.data[e].caller, from);
        if (g->edges.data[e].callee == to)
            return &g->edges.data[e];
    }
    fail_msg("no edge %s → %s", caller, callee);
    return NULL;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

static void test_shares(void **state)
{
    (void)state;
    struct fm_profile *p = sample();
    struct fm_flat *flat = fm_flat_new(p, NULL);
    struct fm_graph *g = fm_graph_new(p, flat);
    assert_int_equal(g->nodes.len, 3);
    assert_int_equal(g->edges.len, 4);
    assert_true(is_near(fm_graph_total(g, node_named(g, "main"), 0), 1));
    assert_true(is_near(fm_graph_self(g, node_named(g, "main"), 0), 0.10));
    assert_true(is_near(fm_graph_total(g, node_named(g, "b"), 0), 0.50));
    assert_true(is_near(fm_graph_self(g, node_named(g, "b"), 0), 0.50));
    assert_true(is_near(fm_graph_edge_total(g, edge_named(g, "main", "b"), 0), 0.30));
    assert_true(is_near(fm_graph_edge_total(g, edge_named(g, "a", "b"), 0), 0.20));
    assert_true(is_near(fm_graph_edge_total(g, edge_named(g, "b", "b"), 0), 0.10));
    assert_int_equal(edge_named(g, "b", "b")->calls[0], 5);
    fm_graph_free(g);
    fm_flat_free(flat);
    fm_profile_free(p);
}

/* Prune with the filter; which of main, a, b are left, as letters, and how many edges. */
static int pruned(const struct fm_graph_filter *filter, const char *names, size_t edges)
{
    struct fm_profile *p = sample();
    struct fm_flat *flat = fm_flat_new(p, NULL);
    struct fm_graph *g = fm_graph_new(p, flat);
    struct fm_error err = FM_ERROR_INIT;
    int status = fm_graph_prune(g, filter, &err);
    if (names) {
        assert_int_equal(status, 0);
        assert_int_equal(node_named(g, "main")->kept, strchr(names, 'm') != NULL);
        assert_int_equal(node_named(g, "a")->kept, strchr(names, 'a') != NULL);
        assert_int_equal(node_named(g, "b")->kept, strchr(names, 'b') != NULL);
        assert_int_equal(fm_graph_count(g).edges, edges);
    }
    fm_graph_free(g);
    fm_flat_free(flat);
    fm_profile_free(p);
    return status;
}

static void test_pruning(void **state)
{
    (void)state;
    struct fm_graph_filter f = { .depth = -1 };
    pruned(&f, "mab", 4);
    pruned(&(struct fm_graph_filter){ .node_min = 0.55, .depth = -1 }, "ma", 1);
    pruned(&(struct fm_graph_filter){ .edge_min = 0.25, .depth = -1 }, "mab", 2);
    pruned(&(struct fm_graph_filter){ .root = "a", .depth = -1 }, "ab", 2);
    pruned(&(struct fm_graph_filter){ .root = "a", .depth = 0 }, "a", 0);
    pruned(&(struct fm_graph_filter){ .leaf = "a", .depth = -1 }, "ma", 1);
    pruned(&(struct fm_graph_filter){ .leaf = "b", .depth = 1 }, "mab", 4);
    pruned(&(struct fm_graph_filter){ .root = "a", .leaf = "b", .depth = -1 }, "ab", 2);
    assert_int_equal(pruned(&(struct fm_graph_filter){ .root = "x", .depth = -1 }, NULL, 0),
                     FM_UNSUPPORTED);
    assert_int_equal(
        pruned(&(struct fm_graph_filter){ .node_min = 0.55, .leaf = "b", .depth = -1 }, NULL, 0),
        FM_BAD_QUERY);
}

static void test_comparison(void **state)
{
    (void)state;
    struct fm_profile *first = sample(), *second = fm_profile_new();
    uint32_t top = fx_node(second, fx_thread(second, 9), "main", 1, 150);
    fx_node(second, top, "c", 1, 30);
    fx_node(second, top, "b", 2, 90);
    struct fm_flat *flats[] = { fm_flat_new(first, NULL), fm_flat_new(second, NULL) };
    const struct fm_profile *const p[] = { first, second };
    const struct fm_flat *const flat[] = { flats[0], flats[1] };
    struct fm_graph *g = fm_graph_compare(p, flat, FM_GRAPH_BY_TIME);
    assert_int_equal(g->nodes.len, 4);
    assert_true(is_near(fm_graph_total(g, node_named(g, "main"), 1), 1.5));
    assert_true(is_near(fm_graph_total(g, node_named(g, "b"), 0), 0.5));
    assert_true(is_near(fm_graph_total(g, node_named(g, "b"), 1), 0.9));
    assert_true(is_near(fm_graph_weight(g, node_named(g, "b")), 0.9));
    assert_true(node_named(g, "a")->on[0] && !node_named(g, "a")->on[1]);
    assert_true(!node_named(g, "c")->on[0] && node_named(g, "c")->on[1]);
    assert_int_equal(edge_named(g, "main", "b")->calls[1], 2);
    fm_graph_free(g);
    g = fm_graph_compare(p, flat, FM_GRAPH_BY_SHARE);
    assert_true(is_near(fm_graph_total(g, node_named(g, "b"), 1), 0.6));
    fm_graph_free(g);
    fm_flat_free(flats[0]);
    fm_flat_free(flats[1]);
    fm_profile_free(first);
    fm_profile_free(second);
}

static void expect_text(const char *text, size_t len, size_t max, enum fm_graph_text_kind kind,
                        const char *expected)
{
    fm_autobuffer out = FM_BUFFER_INIT;
    fm_graph_text(&out, text, len, max, kind);
    assert_string_equal(fm_buffer_text(&out), expected);
}

#define LABEL(text, expected) expect_text(text, sizeof text - 1, 100, FM_GRAPH_LABEL, expected)

static void test_text(void **state)
{
    (void)state;
    LABEL("plain <b> 'x'", "plain <b> 'x'");
    LABEL("a\"b", "a\\\"b");
    LABEL("\\N", "\\\\N");
    LABEL("a\nb\tc\rd", "a\\\\nb\\\\tc\\\\rd");
    LABEL("a\0b\x7f", "a\\\\x00b\\\\x7f");
    LABEL("\xff\xc3", "\\\\xff\\\\xc3");
    LABEL("é\xe2\x80\xae", "é\\\\u202e");
    LABEL("\xed\xa0\x80", "\\\\ud800");
    LABEL("\xf0\x9f\x8e\x89 \xf0\x9f\xbf\xbe", "🎉 \\\\U0001fffe");
    LABEL("&lt; & &; &#x3c; &a", "&amp;lt; & &; &amp;#x3c; &a");
    expect_text("\\N\"", 3, 100, FM_GRAPH_TOOLTIP, "\\\\\\\\N\\\"");
    expect_text("abcdef", 6, 6, FM_GRAPH_LABEL, "abcdef");
    expect_text("abcdefg", 7, 6, FM_GRAPH_LABEL, "abcde…");
    expect_text("éééé", 8, 4, FM_GRAPH_LABEL, "éééé");
    expect_text("ééééé", 10, 4, FM_GRAPH_LABEL, "ééé…");
    expect_text("", 0, 4, FM_GRAPH_LABEL, "");
}

static void test_wrap(void **state)
{
    (void)state;
    fm_autobuffer out = FM_BUFFER_INIT;
    fm_graph_text_wrap(&out, "module:12:a_long_name", 21, 100, 12);
    assert_string_equal(fm_buffer_text(&out), "module:12:a_\\nlong_name");
    fm_buffer_clear(&out);
    fm_graph_text_wrap(&out, "aaa.bbb.ccc.ddd", 15, 10, 8);
    assert_string_equal(fm_buffer_text(&out), "aaa.bbb.\\nc…");
}

static void expect_stripped(const char *name, const char *expected)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    fm_buffer_add_text(&text, name);
    fm_graph_name_strip(&text);
    assert_string_equal(fm_buffer_text(&text), expected);
}

static void test_strip(void **state)
{
    (void)state;
    expect_stripped("f(a, b(c))", "f");
    expect_stripped("A::f(int) const", "A::f");
    expect_stripped("std::map<int, std::less<int>>::at(int const&) const", "std::map::at");
    expect_stripped("<lambda>", "<lambda>");
    expect_stripped("f.<locals>.<listcomp>", "f.<locals>.<listcomp>");
    expect_stripped("f((x", "f((x");
    expect_stripped("", "");
}

static void expect_name(const char *file, uint32_t line, const char *name, const char *expected)
{
    struct fm_profile *p = fm_profile_new();
    uint32_t text = fm_profile_string(p, name);
    struct fm_function f = { .kind = *file ? FM_FUNCTION_PYTHON : FM_FUNCTION_C,
                             .line = line,
                             .name = text,
                             .qualname = text,
                             .file = fm_profile_string(p, file) };
    fm_autobuffer out = FM_BUFFER_INIT;
    fm_graph_name(&out, p, fm_profile_function(p, &f));
    assert_string_equal(fm_buffer_text(&out), expected);
    fm_profile_free(p);
}

static void test_names(void **state)
{
    (void)state;
    expect_name("/a/b.py", 3, "f", "b:3:f");
    expect_name("b", 3, "f", "b:3:f");
    expect_name("/lib/json/__init__.py", 3, "loads", "json.__init__:3:loads");
    expect_name("__init__.py", 3, "f", "__init__:3:f");
    expect_name("/__init__.py", 3, "f", "__init__:3:f");
    expect_name("<frozen importlib._bootstrap>", 7, "f", "<frozen importlib._bootstrap>:7:f");
    expect_name("/a/.hidden", 1, "f", ".hidden:1:f");
    expect_name("/a/b.tar.gz", 0, "f", "b.tar:f");
    expect_name("", 0, "<built-in method x>", "<built-in method x>");
}

/* The colours of gprof2dot's rule, worked out by hand: weight 0 is hsl(240°, 80 %, 25 %) = (0.05,
 * 0.05, 0.45), weight 1 is pure red, weight ½ is hsl(120°, 90 %, 37.5 %) = (0.0375, 0.7125,
 * 0.0375). */
static void test_colours(void **state)
{
    (void)state;
    const struct fm_theme *theme = fm_theme_named("color");
    struct fm_rgb low = fm_theme_colour(theme, 0, 1), high = fm_theme_colour(theme, 7, 1);
    struct fm_rgb middle = fm_theme_colour(theme, 0.5, 1);
    assert_true(low.r == 13 && low.g == 13 && low.b == 115);
    assert_true(high.r == 255 && high.g == 0 && high.b == 0);
    assert_true(middle.r == 10 && middle.g == 182 && middle.b == 10);
    assert_true(is_near(fm_theme_pen(theme, 0.5), 2) && is_near(fm_theme_pen(theme, 0.01), 0.5));
    assert_true(is_near(fm_theme_arrow(theme, 1), 1));
    assert_true(is_near(fm_theme_font(fm_theme_named("bw"), 1), 24));
    assert_null(fm_theme_named("mud"));
    for (const char *const *name = fm_theme_names(); *name; name++)
        assert_non_null(fm_theme_named(*name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),     cmocka_unit_test(test_pruning),
        cmocka_unit_test(test_comparison), cmocka_unit_test(test_text),
        cmocka_unit_test(test_wrap),       cmocka_unit_test(test_strip),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_colours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

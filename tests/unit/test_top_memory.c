/* What `fathom top --memory` shows, without a terminal: rows and their growth against numbers worked
 * out by hand, and what keys do. */
#include "fixture.h"

#include "show/top/memory.h"

#define SECOND 1000000000ull

struct numbers {
    int64_t live, blocks, peak, allocated;
};

static void have(struct fm_profile *p, uint32_t node, struct numbers n)
{
    fm_profile_add(p, FM_METRIC_LEAKED, node, n.live);
    fm_profile_add(p, FM_METRIC_LEAKED_BLOCKS, node, n.blocks);
    fm_profile_add(p, FM_METRIC_PEAK, node, n.peak);
    fm_profile_add(p, FM_METRIC_PEAK_BLOCKS, node, n.blocks);
    fm_profile_add(p, FM_METRIC_ALLOCATED, node, n.allocated);
}

/*
 * main:10 → load:21 (live 1000 | 4000, in 1 | 4 blocks)
 *         → load:22 (live 300, allocated 300 | 9300)
 *         → load:22 → load:21 (live 50): recursion
 * and 7 bytes of the thread itself.
 */
static struct fm_profile *profile(int round)
{
    struct fm_profile *p = fm_profile_new();
    struct fm_process process = { .pid = 7, .exit_status = -1, .memory = true };
    process.memory_python = true;
    process.memory_own_bytes = 99;
    fm_profile_process(p, &process);
    struct fm_thread thread = { .process = 0, .tid = 7 };
    uint32_t number = fm_profile_thread(p, &thread), root = p->threads.data[number].root;
    if (round == 2) /* ids of a profile are its own */
        fx_function(p, "another");
    uint32_t main = fm_profile_node_at(p, root, fx_function(p, "main"), 10);
    uint32_t first = fm_profile_node_at(p, main, fx_function(p, "load"), 21);
    uint32_t second = fm_profile_node_at(p, main, fx_function(p, "load"), 22);
    uint32_t below = fm_profile_node_at(p, second, fx_function(p, "load"), 21);
    have(p, root, (struct numbers){ 7, 1, 7, 7 });
    if (round == 1)
        have(p, first, (struct numbers){ 1000, 1, 1000, 1000 });
    else
        have(p, first, (struct numbers){ 4000, 4, 5000, 5000 });
    have(p, second, (struct numbers){ 300, 3, 300, round == 1 ? 300 : 9300 });
    have(p, below, (struct numbers){ 50, 1, 50, 50 });
    return p;
}

static void take(struct fm_memory_top *top, int round)
{
    struct fm_profile *p = profile(round);
    fm_memory_top_take(top, p, (uint64_t)round * 2 * SECOND);
    fm_profile_free(p);
}

static const struct fm_memory_row *row_of(const struct fm_memory_top *top, const char *name,
                                          uint32_t line)
{
    for (size_t i = 0; i < top->rows.len; i++) {
        const struct fm_memory_row *row = &top->rows.data[i];
        if (strcmp(fm_strings_get(top->strings, row->name), name) == 0 &&
            (!line || row->line == line))
            return row;
    }
    fail_msg("%s:%u is not there", name, line);
    return NULL;
}

static void test_functions(void **state)
{
    (void)state;
    struct fm_memory_top top;
    fm_memory_top_init(&top);
    take(&top, 1);
    assert_int_equal(top.all.live, 1357);
    assert_int_equal(top.all.blocks, 6);
    assert_int_equal(top.own_bytes, 99);
    assert_true(top.python);
    assert_int_equal(top.rows.len, 3); /* load, the thread's own, main with callees alone */
    const struct fm_memory_row *load = row_of(&top, "load", 0), *main = row_of(&top, "main", 0);
    assert_int_equal(load->now.live, 1350);
    assert_int_equal(load->now.total, 1350); /* recursion counts once */
    assert_int_equal(load->growth, 0);       /* nothing is known of before */
    assert_int_equal(main->now.live, 0);
    assert_int_equal(main->now.total, 1350);
    assert_int_equal(row_of(&top, "<in no Python function>", 0)->now.live, 7);
    take(&top, 2);
    load = row_of(&top, "load", 0);
    assert_int_equal(load->now.live, 4350);
    assert_int_equal(load->growth, 3000);
    assert_int_equal(load->made, 4000 + 9000);
    assert_true(fm_memory_top_per_second(&top, load->growth) == 1500.0);
    assert_int_equal(top.all.live - top.all_before.live, 3000);
    assert_int_equal(top.all.peak, 5357);
    fm_memory_top_release(&top);
}

static void test_lines(void **state)
{
    (void)state;
    struct fm_memory_top top;
    fm_memory_top_init(&top);
    take(&top, 1);
    assert_int_equal(fm_memory_top_key(&top, 'l'), FM_MEMORY_WISH_REFRESH);
    take(&top, 1);
    assert_int_equal(row_of(&top, "load", 21)->now.live, 1050);
    assert_int_equal(row_of(&top, "load", 22)->now.total, 350);
    assert_int_equal(row_of(&top, "load", 21)->growth, 0); /* functions are no lines */
    assert_int_equal(fm_memory_top_key(&top, 'l'), FM_MEMORY_WISH_REFRESH);
    assert_false(top.lines);
    assert_int_equal(fm_memory_top_key(&top, 'f'), FM_MEMORY_WISH_NONE);
    fm_memory_top_release(&top);
}

static const char *first(const struct fm_memory_top *top)
{
    return fm_strings_get(top->strings, top->rows.data[0].name);
}

static void test_order(void **state)
{
    (void)state;
    struct fm_memory_top top;
    fm_memory_top_init(&top);
    top.lines = true;
    take(&top, 1);
    take(&top, 2);
    assert_int_equal(top.rows.data[0].line, 21);
    fm_memory_top_key(&top, 'i');
    assert_int_equal(top.rows.data[0].line, 22); /* 9000 against 4000 */
    fm_memory_top_key(&top, 't');
    assert_string_equal(first(&top), "main");
    fm_memory_top_key(&top, 'a');
    assert_string_equal(first(&top), "<in no Python function>");
    fm_memory_top_key(&top, 'r');
    assert_string_equal(first(&top), "main");
    fm_memory_top_release(&top);
}

static void test_the_selected_row_is_followed(void **state)
{
    (void)state;
    struct fm_memory_top top;
    fm_memory_top_init(&top);
    top.lines = true;
    top.page = 2;
    take(&top, 1);
    fm_memory_top_key(&top, 'j');
    uint32_t key = top.rows.data[top.selected].key;
    fm_memory_top_key(&top, 'r');
    take(&top, 2);
    assert_int_equal(top.rows.data[top.selected].key, key);
    fm_memory_top_key(&top, 'G');
    assert_int_equal(top.selected, top.rows.len - 1);
    assert_int_equal(top.first, top.rows.len - 2);
    fm_memory_top_key(&top, 'g');
    assert_int_equal(top.selected, 0);
    assert_int_equal(fm_memory_top_key(&top, ' '), FM_MEMORY_WISH_NONE);
    assert_true(top.paused);
    assert_int_equal(fm_memory_top_key(&top, ' '), FM_MEMORY_WISH_REFRESH);
    fm_memory_top_key(&top, 'h');
    assert_true(top.help);
    assert_int_equal(fm_memory_top_key(&top, 'x'), FM_MEMORY_WISH_NONE);
    assert_false(top.help);
    assert_int_equal(fm_memory_top_key(&top, 'q'), FM_MEMORY_WISH_QUIT);
    fm_memory_top_release(&top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_the_selected_row_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

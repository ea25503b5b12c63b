/* What `fathom top` shows, without a terminal: the tables against numbers worked out by hand, what
 * keys do, and that nothing of the watched program's can control the terminal. */
#include "fixture.h"

#include <locale.h>
#include <stdlib.h>
#include <wchar.h>

#include "show/top/fit.h"
#include "show/top/keys.h"
#include "show/top/view.h"

#define MS 1000000LL

/* Time of a node itself in one state, one sample per millisecond. */
static void spend(struct fm_profile *p, uint32_t node, enum fm_state state, int64_t ms)
{
    fm_profile_add(p, fm_metric_of_state(state), node, ms * MS);
    fm_profile_add(p, FM_METRIC_SAMPLES, node, ms);
}

static uint32_t call(struct fm_profile *p, uint32_t parent, const char *name)
{
    return fm_profile_node(p, parent, fx_function(p, name));
}

static uint32_t thread_of(struct fm_profile *p, uint32_t process, uint32_t tid, const char *name)
{
    struct fm_thread thread = { .process = process, .tid = tid, .start_ns = 1 };
    thread.name = fm_profile_string(p, name);
    uint32_t number = fm_profile_thread(p, &thread);
    return p->threads.data[number].root;
}

static void line_of(struct fm_profile *p, const char *name, uint32_t line, int64_t self_ms,
                    int64_t total_ms)
{
    struct fm_line *row = fm_lines_add(&p->lines, 0, fx_function(p, name), line, false);
    row->samples = self_ms;
    row->state_ns[FM_STATE_PYTHON] = row->self_ns = self_ms * MS;
    row->total_ns = total_ms * MS;
}

/*
 * Two threads, after 1 s (`round` 1) and 2 s (2):
 *   main: top 0 → work (100 | 300 python) → leaf (300 | 400 C)
 *         top   → leaf (100 | 100 python)
 *         top   → rec → rec → rec, of these 1st 100 | 200, 3rd 400 | 1000 python
 *   side: idle (1000 | 2000 sleep)
 * The second profile meets functions and threads in another order, as ids of a profile are its own.
 */
static struct fm_profile *profile(int round)
{
    struct fm_profile *p = fm_profile_new();
    struct fm_process process = { .pid = 7, .exit_status = -1, .sampled = true };
    process.command = fm_profile_string(p, "python3 app.py");
    process.version = fm_profile_string(p, "3.13.0");
    fm_profile_process(p, &process);
    uint32_t side = round == 2 ? thread_of(p, 0, 8, "side") : 0;
    uint32_t top = call(p, thread_of(p, 0, 7, "MainThread"), "top");
    side = round == 2 ? side : thread_of(p, 0, 8, "side");
    spend(p, call(p, side, "idle"), FM_STATE_SLEEP, round == 1 ? 1000 : 2000);
    uint32_t rec1 = call(p, top, "rec"), rec2 = call(p, rec1, "rec"), rec3 = call(p, rec2, "rec");
    spend(p, rec1, FM_STATE_PYTHON, round == 1 ? 100 : 200);
    spend(p, rec3, FM_STATE_PYTHON, round == 1 ? 400 : 1000);
    uint32_t work = call(p, top, "work");
    spend(p, work, FM_STATE_PYTHON, round == 1 ? 100 : 300);
    spend(p, call(p, work, "leaf"), FM_STATE_C, round == 1 ? 300 : 400);
    spend(p, call(p, top, "leaf"), FM_STATE_PYTHON, 100);
    line_of(p, "work", 120, round == 1 ? 100 : 300, round == 1 ? 400 : 700);
    line_of(p, "leaf", 110, round == 1 ? 400 : 500, round == 1 ? 400 : 500);
    fm_lines_sort(&p->lines);
    return p;
}

static struct fm_top_model *model_after(int rounds)
{
    struct fm_top_model *model = fm_top_model_new(0);
    for (int i = 1; i <= rounds; i++) {
        struct fm_profile *p = profile(i);
        fm_top_model_take(model, p, (uint64_t)i * 1000 * MS);
        fm_profile_free(p);
    }
    return model;
}

/* A model with a table of it, as a query asks for it, and with a view of it. */
struct scene {
    struct fm_top_model *model;
    struct fm_top_table table;
    struct fm_map toggled;
    struct fm_top_query query;
    struct fm_top_view view;
};

static void scene_begin(struct scene *s, struct fm_top_model *model)
{
    *s = (struct scene){ .model = model };
    s->query = (struct fm_top_query){ .thread = FM_NONE, .states = FM_TOP_ALL_STATES };
    s->query.toggled = &s->toggled;
    fm_top_view_init(&s->view, "x.fathom");
    s->view.page = 20;
    fm_top_view_refresh(&s->view, model);
}

static void scene_end(struct scene *s)
{
    fm_top_view_release(&s->view);
    fm_top_table_release(&s->table);
    fm_map_release(&s->toggled);
    fm_top_model_free(s->model);
}

static void fill(struct scene *s)
{
    fm_top_table_fill(&s->table, s->model, &s->query);
}

static void toggle(struct scene *s, const struct fm_top_row *row)
{
    *fm_map_at(&s->toggled, row->key, 0, NULL) = 1;
}

static const struct fm_top_row *row_in(const struct scene *s, const struct fm_top_table *table,
                                       const char *name)
{
    for (size_t i = 0; i < table->rows.len; i++)
        if (strcmp(fm_top_name(s->model, table->rows.data[i].func), name) == 0)
            return &table->rows.data[i];
    return NULL;
}

static const struct fm_top_row *row_of(const struct scene *s, const char *name)
{
    return row_in(s, &s->table, name);
}

static void expect_times(const struct fm_top_row *row, int64_t self_ms, int64_t total_ms,
                         int64_t self_start_ms, int64_t total_start_ms)
{
    assert_non_null(row);
    assert_int_equal(row->self_ns, self_ms * MS);
    assert_int_equal(row->total_ns, total_ms * MS);
    assert_int_equal(row->self_start_ns, self_start_ms * MS);
    assert_int_equal(row->total_start_ns, total_start_ms * MS);
}

static void expect_name(const struct scene *s, const struct fm_top_row *row, const char *name)
{
    assert_string_equal(fm_top_name(s->model, row->func), name);
}

static void test_interval_and_all_time(void **state)
{
    (void)state;
    struct scene s;
    scene_begin(&s, model_after(2));
    fill(&s);
    assert_int_equal(s.table.whole_ns, 2000 * MS);
    assert_int_equal((int)s.table.samples, 2000);
    assert_int_equal(s.table.rows.len, 5); /* roots have no time: no row */
    expect_times(row_of(&s, "top"), 0, 1000, 0, 2000);
    expect_times(row_of(&s, "work"), 200, 300, 300, 700);
    expect_times(row_of(&s, "leaf"), 100, 100, 500, 500);
    expect_times(row_of(&s, "rec"), 700, 700, 1200, 1200);
    expect_times(row_of(&s, "idle"), 1000, 1000, 2000, 2000);
    assert_int_equal(row_of(&s, "leaf")->samples, 500);
    assert_int_equal(row_of(&s, "leaf")->state_ns[FM_STATE_C], 100 * MS);
    assert_int_equal(row_of(&s, "leaf")->state_ns[FM_STATE_PYTHON], 0);
    s.query.since_start = true;
    fill(&s);
    assert_int_equal(s.table.whole_ns, 4000 * MS);
    expect_times(row_of(&s, "work"), 300, 700, 300, 700);
    assert_int_equal(row_of(&s, "leaf")->state_ns[FM_STATE_PYTHON], 100 * MS);
    scene_end(&s);
}

static void test_threads_and_states(void **state)
{
    (void)state;
    struct scene s;
    scene_begin(&s, model_after(2));
    assert_int_equal(s.model->threads.len, 2);
    s.query.thread = 0; /* met first: the main thread */
    assert_string_equal(fm_strings_get(s.model->strings, s.model->threads.data[0].name),
                        "MainThread");
    fill(&s);
    assert_int_equal(s.table.whole_ns, 1000 * MS);
    assert_null(row_of(&s, "idle"));
    s.query.states = 1u << FM_STATE_C;
    fill(&s);
    assert_int_equal(s.table.whole_ns, 100 * MS);
    assert_int_equal(s.table.rows.len, 3);
    expect_times(row_of(&s, "leaf"), 100, 100, 400, 400);
    expect_times(row_of(&s, "work"), 0, 100, 0, 400);
    expect_times(row_of(&s, "top"), 0, 100, 0, 400);
    scene_end(&s);
}

static void test_order(void **state)
{
    (void)state;
    static const struct {
        enum fm_top_sort sort;
        bool reverse;
        const char *names[5];
    } orders[] = {
        { FM_TOP_SORT_SELF, false, { "idle", "rec", "work", "leaf", "top" } },
        { FM_TOP_SORT_TOTAL, false, { "idle", "top", "rec", "work", "leaf" } },
        { FM_TOP_SORT_SAMPLES, false, { "idle", "rec", "leaf", "work", "top" } },
        { FM_TOP_SORT_NAME, false, { "idle", "leaf", "rec", "top", "work" } },
        { FM_TOP_SORT_NAME, true, { "work", "top", "rec", "leaf", "idle" } },
        /* The fixture's line is the first letter. */
        { FM_TOP_SORT_PLACE, false, { "idle", "leaf", "rec", "top", "work" } },
    };
    struct scene s;
    scene_begin(&s, model_after(2));
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        s.query.sort = orders[i].sort;
        s.query.reverse = orders[i].reverse;
        fill(&s);
        assert_int_equal(s.table.rows.len, 5);
        for (int k = 0; k < 5; k++)
            expect_name(&s, &s.table.rows.data[k], orders[i].names[k]);
    }
    scene_end(&s);
}

static void test_lines(void **state)
{
    (void)state;
    struct scene s;
    scene_begin(&s, model_after(2));
    char place[64];
    s.query.lines = true;
    fill(&s);
    assert_int_equal(s.table.rows.len, 2);
    assert_int_equal(s.table.whole_ns, 2000 * MS); /* shares are of the same whole as functions' */
    expect_times(row_of(&s, "work"), 200, 300, 300, 700);
    expect_times(row_of(&s, "leaf"), 100, 100, 500, 500);
    assert_string_equal(fm_top_place(s.model, s.table.rows.data[0].func, s.table.rows.data[0].line,
                                     place, sizeof place),
                        "app.py:120");
    s.query.states = 1u << FM_STATE_PYTHON; /* a line's total is not known by state */
    fill(&s);
    assert_int_equal(s.table.rows.data[0].total_ns, -1);
    scene_end(&s);
}

static void wait_of(struct fm_profile *p, const char *detail, enum fm_state state, int64_t ms)
{
    struct fm_wait wait = { .func = fx_function(p, "leaf"), .line = 110, .state = state };
    wait.detail = fm_profile_string(p, detail);
    wait.samples = ms;
    wait.ns = ms * MS;
    fm_vec_push(&p->samples.waits, wait);
}

static void test_waits_of_a_line(void **state)
{
    (void)state;
    struct scene s;
    scene_begin(&s, fm_top_model_new(0));
    for (int round = 1; round <= 2; round++) {
        struct fm_profile *p = profile(round);
        wait_of(p, round == 1 ? "/tmp/a" : "10.0.0.1:80",
                round == 1 ? FM_STATE_DISK : FM_STATE_NETWORK, round == 1 ? 50 : 70);
        if (round == 2)
            wait_of(p, "/tmp/a", FM_STATE_DISK, 60);
        fm_top_model_take(s.model, p, (uint64_t)round * 1000 * MS);
        fm_profile_free(p);
    }
    s.query.lines = true;
    fill(&s);
    const struct fm_top_row *leaf = row_of(&s, "leaf");
    assert_true(leaf->has_more && !leaf->open);
    assert_false(row_of(&s, "work")->has_more);
    toggle(&s, leaf);
    fill(&s);
    assert_int_equal(s.table.rows.len, 4); /* work, leaf, and the two waits of leaf */
    const struct fm_top_row *waits = s.table.rows.data + 2;
    assert_string_equal(fm_strings_get(s.model->strings, s.model->waits.data[waits[0].wait].detail),
                        "10.0.0.1:80");
    assert_int_equal(waits[0].self_ns, 70 * MS);
    assert_int_equal(waits[1].self_ns, 10 * MS);
    assert_int_equal(waits[1].self_start_ns, 60 * MS);
    assert_int_equal(waits[1].samples, 60);
    s.query.states = 1u << FM_STATE_NETWORK; /* leaf has no such time itself: no row, no waits */
    fill(&s);
    assert_int_equal(s.table.rows.len, 0);
    scene_end(&s);
}

/* leaf was called from work (100 of it) and from top (0 in the interval, 100 since the start). */
static void test_callers(void **state)
{
    (void)state;
    struct scene s;
    scene_begin(&s, model_after(2));
    fill(&s);
    const struct fm_top_row *leaf = row_of(&s, "leaf");
    assert_true(leaf->has_more && !leaf->open);
    assert_false(row_of(&s, "top")->has_more);
    toggle(&s, leaf);
    size_t at = (size_t)(leaf - s.table.rows.data);
    fill(&s);
    assert_int_equal(s.table.rows.len, 5 + 2);
    const struct fm_top_row *rows = s.table.rows.data + at;
    assert_true(rows[0].open);
    expect_name(&s, &rows[1], "work");
    assert_int_equal(rows[1].depth, 1);
    assert_int_equal(rows[1].self_ns, 100 * MS);
    assert_int_equal(rows[1].self_start_ns, 400 * MS);
    assert_true(rows[1].has_more && !rows[1].open); /* one of two: closed */
    expect_name(&s, &rows[2], "top");
    assert_int_equal(rows[2].self_ns, 0);
    assert_int_equal(rows[2].self_start_ns, 100 * MS);
    assert_false(rows[2].has_more);
    toggle(&s, &rows[1]);
    fill(&s);
    assert_int_equal(s.table.rows.len, 5 + 3);
    expect_name(&s, &s.table.rows.data[at + 2], "top");
    assert_int_equal(s.table.rows.data[at + 2].depth, 2);
    assert_int_equal(s.table.rows.data[at + 2].total_start_ns, 400 * MS);
    scene_end(&s);
}

/* rec ← rec and rec ← top: self by where each sample ended, total by the outermost activation. */
static void test_callers_of_recursion(void **state)
{
    (void)state;
    struct scene s;
    scene_begin(&s, model_after(2));
    s.query.sort = FM_TOP_SORT_NAME;
    fill(&s);
    const struct fm_top_row *rec = row_of(&s, "rec");
    size_t at = (size_t)(rec - s.table.rows.data);
    toggle(&s, rec);
    fill(&s);
    const struct fm_top_row *rows = s.table.rows.data + at;
    expect_name(&s, &rows[1], "rec");
    assert_int_equal(rows[1].self_start_ns, 1000 * MS);
    assert_int_equal(rows[1].total_start_ns, 0);
    expect_name(&s, &rows[2], "top");
    assert_int_equal(rows[2].self_start_ns, 200 * MS);
    assert_int_equal(rows[2].total_start_ns, 1200 * MS);
    scene_end(&s);
}

static void test_a_forgotten_thread_takes_nothing_back(void **state)
{
    (void)state;
    struct scene s;
    scene_begin(&s, model_after(2));
    struct fm_profile *empty = fm_profile_new();
    fm_top_model_take(s.model, empty, 3000ull * MS);
    fill(&s);
    assert_int_equal(s.table.whole_ns, 0);
    for (size_t i = 0; i < s.table.rows.len; i++)
        assert_int_equal(s.table.rows.data[i].self_ns, 0);
    fm_profile_free(empty);
    scene_end(&s);
}

static void test_files_are_told_apart(void **state)
{
    (void)state;
    static const char *const files[] = { "/a/x/mod.py", "/b/x/mod.py", "/b/y/mod.py", "one.py" };
    static const char *const shown[] = { "a/x/mod.py:3", "b/x/mod.py:3", "y/mod.py:3", "one.py:3" };
    struct scene s;
    scene_begin(&s, fm_top_model_new(0));
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 7);
    for (int i = 0; i < 4; i++) {
        struct fm_function f = { .line = 3, .name = fm_profile_string(p, "f") };
        f.qualname = f.name;
        f.file = fm_profile_string(p, files[i]);
        spend(p, fm_profile_node(p, root, fm_profile_function(p, &f)), FM_STATE_C, 4 - i);
    }
    fm_top_model_take(s.model, p, 1);
    fill(&s);
    assert_int_equal(s.table.rows.len, 4);
    for (int i = 0; i < 4; i++) {
        char place[64];
        fm_top_place(s.model, s.table.rows.data[i].func, 0, place, sizeof place);
        assert_string_equal(place, shown[i]);
    }
    fm_profile_free(p);
    scene_end(&s);
}

/* ---- keys ---- */

static enum fm_top_wish hit(struct scene *s, uint32_t key)
{
    return fm_top_view_key(&s->view, s->model, key);
}

static void press(struct scene *s, const char *keys)
{
    for (; *keys; keys++)
        hit(s, (unsigned char)*keys);
}

static void expect_selected(const struct scene *s, const char *name)
{
    expect_name(s, &s->view.table.rows.data[s->view.selected], name);
}

static void test_every_key_means_one_thing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < fm_top_keys_count; i++)
        for (int k = 0; k < 2 && fm_top_keys[i].keys[k]; k++)
            assert_int_equal(fm_top_action_of(fm_top_keys[i].keys[k]), fm_top_keys[i].action);
    assert_int_equal(fm_top_action_of('x'), FM_TOP_NOTHING);
}

static void test_selection_follows_its_row(void **state)
{
    (void)state;
    struct scene s;
    scene_begin(&s, model_after(1));
    s.view.page = 3;
    fm_top_view_refresh(&s.view, s.model); /* idle 1000, rec 500, leaf 400, work 100, top 0 */
    press(&s, "jj");
    expect_selected(&s, "leaf");
    struct fm_profile *p = profile(2);
    fm_top_model_take(s.model, p, 2000ull * MS);
    fm_profile_free(p);
    fm_top_view_refresh(&s.view, s.model); /* idle 1000, rec 700, work 200, leaf 100, top 0 */
    expect_selected(&s, "leaf");
    assert_int_equal(s.view.selected, 3);
    assert_true(s.view.first <= 3 && 3 < s.view.first + s.view.page);
    press(&s, "g");
    expect_selected(&s, "idle");
    press(&s, "t"); /* the first row is a place, not a function: it is kept */
    assert_int_equal(s.view.selected, 0);
    press(&s, "G");
    assert_int_equal(s.view.selected, s.view.table.rows.len - 1);
    press(&s, "j");
    assert_int_equal(s.view.selected, s.view.table.rows.len - 1);
    scene_end(&s);
}

static void test_open_and_close(void **state)
{
    (void)state;
    struct scene s;
    scene_begin(&s, model_after(2));
    press(&s, "/leaf\r");
    expect_selected(&s, "leaf");
    press(&s, "\r");
    assert_int_equal(s.view.table.rows.len, 7);
    expect_selected(&s, "leaf");
    press(&s, "j");
    hit(&s, FM_KEY_LEFT); /* a closed caller: to what it calls */
    expect_selected(&s, "leaf");
    hit(&s, FM_KEY_LEFT);
    assert_int_equal(s.view.table.rows.len, 5);
    hit(&s, FM_KEY_RIGHT);
    hit(&s, FM_KEY_RIGHT); /* open already */
    assert_int_equal(s.view.table.rows.len, 7);
    press(&s, "l\r");
    assert_non_null(strstr(s.view.message, "waited for nothing"));
    scene_end(&s);
}

static void test_search(void **state)
{
    (void)state;
    struct scene s;
    scene_begin(&s, model_after(2));
    /* idle, rec, work, leaf, top */
    press(&s, "/E"); /* case does not matter: rec is the first with an e behind idle */
    expect_selected(&s, "idle");
    press(&s, "\rn");
    expect_selected(&s, "rec");
    press(&s, "n");
    expect_selected(&s, "leaf");
    press(&s, "n");
    expect_selected(&s, "idle"); /* around the end */
    press(&s, "N");
    expect_selected(&s, "leaf");
    press(&s, "/nowhere");
    assert_non_null(strstr(s.view.message, "not found"));
    press(&s, "\033"); /* back to where it began */
    expect_selected(&s, "leaf");
    assert_int_equal(s.view.mode, FM_TOP_MODE_TABLE);
    scene_end(&s);
}

static void test_filters_from_lists(void **state)
{
    (void)state;
    struct scene s;
    scene_begin(&s, model_after(2));
    press(&s, "T");
    assert_int_equal(s.view.items.len, 3);
    press(&s, "j\r"); /* the busiest comes first */
    assert_int_equal(s.view.query.thread, 0);
    assert_int_equal(s.view.table.rows.len, 4);
    press(&s, "T");
    assert_int_equal(s.view.item, 1); /* what is chosen is selected */
    press(&s, "g\r");
    assert_int_equal(s.view.query.thread, FM_NONE);
    press(&s, "Sj\r");
    assert_int_equal(s.view.query.states, fm_states_running());
    assert_null(row_in(&s, &s.view.table, "idle"));
    press(&s, "S\033");
    assert_int_equal(s.view.query.states, fm_states_running());
    scene_end(&s);
}

static void test_writing_asks(void **state)
{
    (void)state;
    struct scene s;
    scene_begin(&s, model_after(2));
    fm_top_view_refresh(&s.view, s.model);
    press(&s, "w");
    assert_string_equal(fm_buffer_text(&s.view.input), "x.fathom");
    hit(&s, FM_KEY_BACKSPACE);
    hit(&s, 0xe9); /* é: two bytes, one character */
    hit(&s, FM_KEY_BACKSPACE);
    hit(&s, 0x1f600);
    assert_string_equal(fm_buffer_text(&s.view.input), "x.fatho\xf0\x9f\x98\x80");
    assert_int_equal(hit(&s, FM_KEY_ENTER), FM_TOP_WISH_WRITE);
    fm_top_view_ask_replace(&s.view);
    assert_int_equal(hit(&s, FM_KEY_ENTER), FM_TOP_WISH_NONE);
    fm_top_view_ask_replace(&s.view);
    assert_int_equal(hit(&s, 'y'), FM_TOP_WISH_REPLACE);
    press(&s, "w");
    assert_int_equal(hit(&s, FM_KEY_ESCAPE), FM_TOP_WISH_NONE);
    assert_int_equal(s.view.mode, FM_TOP_MODE_TABLE);
    assert_int_equal(hit(&s, 'q'), FM_TOP_WISH_QUIT);
    scene_end(&s);
}

static void test_pause(void **state)
{
    (void)state;
    struct scene s;
    scene_begin(&s, model_after(1));
    assert_int_equal(hit(&s, ' '), FM_TOP_WISH_NONE);
    assert_true(s.view.paused);
    assert_int_equal(hit(&s, ' '), FM_TOP_WISH_REFRESH);
    assert_false(s.view.paused);
    scene_end(&s);
}

static void test_any_key_on_an_empty_table(void **state)
{
    (void)state;
    struct scene s;
    scene_begin(&s, fm_top_model_new(0));
    fm_top_view_refresh(&s.view, s.model);
    for (uint32_t mode = 0; mode < 128; mode++) {
        for (uint32_t key = 0; key < 128; key++) {
            hit(&s, mode);
            hit(&s, key);
        }
    }
    for (uint32_t key = FM_KEY_UP; key <= FM_KEY_END; key++)
        hit(&s, key);
    scene_end(&s);
}

/* ---- cleaning ---- */

static void expect_clean(const char *text, int columns, enum fm_fit_cut cut, const wchar_t *wanted,
                         int width)
{
    wchar_t out[64];
    assert_int_equal(fm_fit(out, 64, text, columns, cut, L'~'), width);
    if (wcscmp(out, wanted) != 0)
        fail_msg("\"%ls\" instead of \"%ls\"", out, wanted);
}

static void test_clean(void **state)
{
    (void)state;
    expect_clean("plain", 10, FM_FIT_CUT_END, L"plain", 5);
    expect_clean("\033[2J\a\r\n\x7f", 30, FM_FIT_CUT_END, L"\\x1b[2J\\x07\\r\\n\\x7f", 19);
    expect_clean("a\xc2\x9b"
                 "31mb",
                 10, FM_FIT_CUT_END, L"a\\x9b31mb", 9); /* C1 */
    expect_clean("a\xe2\x80\xae"
                 "b\xe2\x80\x8b",
                 20, FM_FIT_CUT_END, L"a\\u202eb\\u200b", 14); /* RLO, ZWSP */
    expect_clean("\xff\xc3(\xed\xa0\x80\xc0\x80", 40, FM_FIT_CUT_END,
                 L"\\xff\\xc3(\\ud800\\xc0\\x80", 23);
    expect_clean("\xe2\x82", 20, FM_FIT_CUT_END, L"\\xe2\\x82", 8); /* ends in the middle */
    expect_clean("日本語", 6, FM_FIT_CUT_END, L"日本語", 6);
    expect_clean("日本語", 5, FM_FIT_CUT_END, L"日本~", 5);
    expect_clean("日本語", 4, FM_FIT_CUT_END, L"日~", 3); /* half a character is none */
    expect_clean("abcdef", 4, FM_FIT_CUT_START, L"~def", 4);
    expect_clean("日本語", 4, FM_FIT_CUT_START, L"~語", 3);
    expect_clean("abc", 0, FM_FIT_CUT_END, L"", 0);
    expect_clean("abc", 1, FM_FIT_CUT_END, L"~", 1);
    wchar_t out[4];
    assert_int_equal(fm_fit(out, 4, "abcdefgh", 100, FM_FIT_CUT_END, L'~'), 2);
}

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interval_and_all_time),
        cmocka_unit_test(test_threads_and_states),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_waits_of_a_line),
        cmocka_unit_test(test_callers),
        cmocka_unit_test(test_callers_of_recursion),
        cmocka_unit_test(test_a_forgotten_thread_takes_nothing_back),
        cmocka_unit_test(test_files_are_told_apart),
        cmocka_unit_test(test_every_key_means_one_thing),
        cmocka_unit_test(test_selection_follows_its_row),
        cmocka_unit_test(test_open_and_close),
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_filters_from_lists),
        cmocka_unit_test(test_writing_asks),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_any_key_on_an_empty_table),
        cmocka_unit_test(test_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Regions: from a live store, honest and hostile, into a file and back, and combined. */
#include "fixture.h"

#include "base/memory.h"
#include "live_store.h"
#include "record/model/derive/edit.h"
#include "record/model/file/file.h"
#include "record/model/live/live.h"
#include "scratch_file.h"

static struct fm_profile *load(struct fm_buffer *b)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = fm_profile_new();
    struct fm_live_ending ending = { { 3000, 6000 }, 6000, 0 };
    assert_int_equal(fm_live_load(p, b->data, b->len, NULL, 0, &ending, &err), 0);
    return p;
}

static uint64_t damaged(const struct fm_profile *p)
{
    uint64_t count = 0;
    for (size_t i = 0; i < p->notes.len; i++)
        if (strcmp(fm_profile_text(p, p->notes.data[i].kind), "damaged") == 0)
            count += p->notes.data[i].count;
    return count;
}

static void check_sample(const struct fm_profile *p)
{
    assert_int_equal(p->regions.rows.len, 3);
    const struct fm_region_row *outer = &p->regions.rows.data[0], *inner = outer + 1,
                               *waits = outer + 2;
    assert_string_equal(fm_profile_text(p, outer->name), "load");
    assert_int_equal(outer->around, FM_NONE);
    assert_int_equal(outer->entered, 2);
    assert_int_equal(outer->open, 1);
    assert_int_equal(outer->ns, 200 + 500); /* 400 ticks, and from tick 2000 to tick 3000 */
    assert_int_equal(outer->suspended_ns, 50);
    assert_int_equal(outer->min_ns, 200);
    assert_int_equal(outer->max_ns, 200);
    assert_int_equal(outer->cpu_ns, 170 - 20); /* 40 ticks too many were taken for running */
    assert_true(outer->memory);
    assert_int_equal(outer->allocated, 900 + 450);
    assert_int_equal(outer->freed, 100 + 100);
    assert_int_equal(outer->above_most, 850);
    assert_string_equal(fm_profile_text(p, inner->name), "inner");
    assert_int_equal(inner->around, 0);
    assert_int_equal(inner->open, 1);
    assert_int_equal(inner->allocated, 300);
    assert_int_equal(inner->above_most, 1200 - 950);
    assert_int_equal(inner->min_ns, 0);
    assert_int_equal(inner->cpu_ns, 0);
    assert_int_equal(waits->suspended_ns, 25 + 200);
    assert_int_equal(waits->ns, 300);
    assert_int_equal(waits->allocated, 70); /* what its thread does now is not its own */
    assert_int_equal(waits->freed, 20);
    assert_int_equal(waits->above_most, 60);
}

static void check_marks(const struct fm_profile *p)
{
    assert_int_equal(p->memory.marks.len, 4);
    const struct fm_memory_mark *mark = p->memory.marks.data;
    assert_string_equal(fm_profile_text(p, mark[0].name), "load");
    assert_int_equal(mark[0].begin_ns, 5200);
    assert_int_equal(mark[0].end_ns, 5400);
    assert_int_equal(mark[0].begin_bytes, 5000);
    assert_int_equal(mark[0].end_bytes, 5800);
    assert_int_equal(mark[0].thread, 43);
    assert_int_equal(mark[1].end_ns, 6000);
    assert_int_equal(mark[1].end_bytes, -1);
    assert_int_equal(mark[2].level, 1);
    assert_int_equal(mark[3].thread, 44);
}

static void test_a_store(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    ls_sample(&b);
    ls_regions(&b);
    struct fm_profile *p = load(&b);
    check_sample(p);
    check_marks(p);
    assert_int_equal(damaged(p), 0);
    fm_profile_free(p);
}

static void test_the_peak_of_what_is_open(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    ls_sample(&b);
    ls_regions(&b);
    LS_RECORDS(&b, FM_LIVE_REGIONS, struct fm_live_region)[0].above_most = 0;
    struct fm_profile *p = load(&b);
    /* It found 800; the highest since is the meter's, in the one that is inside. */
    assert_int_equal(p->regions.rows.data[0].above_most, 1200 - 800);
    fm_profile_free(p);
}

static void test_a_file_and_back(void **state)
{
    (void)state;
    struct fm_error err = FM_ERROR_INIT;
    fm_autobuffer b = FM_BUFFER_INIT;
    size_t len;
    ls_sample(&b);
    ls_regions(&b);
    struct fm_profile *p = load(&b);
    int fd = fx_file();
    assert_int_equal(fm_file_save(p, fd, &err), 0);
    fm_autofree uint8_t *bytes = fx_file_bytes(fd, &len);
    struct fm_profile *again = fm_file_load(bytes, len, "again", &err);
    assert_non_null(again);
    check_sample(again);
    check_marks(again);
    fm_profile_merge(again, p);
    assert_int_equal(again->regions.rows.len, 6);
    assert_int_equal(again->regions.rows.data[4].around, 3);
    struct fm_regions all = fm_regions_combined(again, FM_NONE);
    assert_int_equal(all.rows.len, 3);
    assert_int_equal(all.rows.data[0].entered, 4);
    assert_int_equal(all.rows.data[0].above_most, 850);
    assert_int_equal(all.rows.data[1].allocated, 600);
    fm_regions_release(&all);
    all = fm_regions_combined(again, 1);
    assert_int_equal(all.rows.data[0].entered, 2);
    fm_regions_release(&all);
    fm_profile_free(again);
    fm_profile_free(p);
}

static void test_order_is_that_of_the_tree(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    static const struct {
        const char *name;
        uint32_t around;
    } rows[] = {
        { "a", FM_NONE }, { "b", FM_NONE }, { "c", 0 }, { "d", 1 }, { "e", 2 }, { "c", 1 }
    };
    for (size_t i = 0; i < FM_COUNT(rows); i++)
        fm_vec_push(&p->regions.rows,
                    ((struct fm_region_row){ .around = rows[i].around,
                                             .name = fm_profile_string(p, rows[i].name) }));
    struct fm_regions all = fm_regions_combined(p, FM_NONE);
    static const char *const expected[] = { "a", "c", "e", "b", "d", "c" };
    static const uint32_t around[] = { FM_NONE, 0, 1, FM_NONE, 3, 3 };
    assert_int_equal(all.rows.len, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(fm_profile_text(p, all.rows.data[i].name), expected[i]);
        assert_int_equal(all.rows.data[i].around, around[i]);
    }
    fm_regions_release(&all);
    fm_profile_free(p);
}

/* Each lie costs what it is about, and is counted. */
static void test_hostile_stores(void **state)
{
    (void)state;
    for (int lie = 0; lie < 6; lie++) {
        fm_autobuffer b = FM_BUFFER_INIT;
        ls_sample(&b);
        ls_regions(&b);
        struct fm_live_region *regions = LS_RECORDS(&b, FM_LIVE_REGIONS, struct fm_live_region);
        struct fm_live_visit *visits = LS_RECORDS(&b, FM_LIVE_VISITS, struct fm_live_visit);
        if (lie == 0)
            regions[1].id = 4;
        if (lie == 1)
            regions[1].id = 1; /* twice */
        if (lie == 2)
            visits[0].region = UINT32_MAX;
        if (lie == 3)
            visits[0].state = 9;
        if (lie == 4)
            visits[0].end_ticks = 0; /* before its begin */
        if (lie == 5)
            visits[2].level = UINT32_MAX;
        struct fm_profile *p = load(&b);
        assert_int_equal(damaged(p), 1);
        assert_int_equal(p->regions.rows.len, 3);
        fm_profile_free(p);
    }
}

static void test_meters_that_are_not_there(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    ls_sample(&b);
    ls_regions(&b);
    struct fm_live_visit *visits = LS_RECORDS(&b, FM_LIVE_VISITS, struct fm_live_visit);
    visits[1].meter = visits[2].meter = UINT32_MAX;
    struct fm_profile *p = load(&b);
    assert_int_equal(p->regions.rows.data[1].allocated, 0);
    fm_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_store),         cmocka_unit_test(test_the_peak_of_what_is_open),
        cmocka_unit_test(test_a_file_and_back), cmocka_unit_test(test_order_is_that_of_the_tree),
        cmocka_unit_test(test_hostile_stores),  cmocka_unit_test(test_meters_that_are_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

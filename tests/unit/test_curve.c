/* Curves of memory that stay short (model/curve.h), and control groups (watch/memory/cgroup.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/model/curve.h"
#include "record/model/profile.h"
#include "watch/memory/cgroup.h"

static struct fm_memory_point look(uint64_t at, int64_t heap, int64_t rss, int64_t pss)
{
    return (struct fm_memory_point){ 0, at, heap, rss, pss, -1, -1, -1 };
}

static void short_curves_are_kept_as_they_are(void **state)
{
    (void)state;
    struct fm_curve c = { 0 };
    struct fm_memory into = { 0 };
    for (int64_t i = 0; i < FM_CURVE_POINTS_MAX; i++) {
        struct fm_memory_point point = look((uint64_t)i, i * 3, i * 2, -1);
        fm_curve_add(&c, &point);
    }
    fm_curve_copy(&c, 7, &into);
    assert_int_equal(into.points.len, FM_CURVE_POINTS_MAX);
    assert_int_equal(into.points.data[100].process, 7);
    assert_int_equal(into.points.data[100].heap, 300);
    assert_int_equal(into.points.data[FM_CURVE_POINTS_MAX - 1].rss, (FM_CURVE_POINTS_MAX - 1) * 2);
    fm_vec_release(&into.points);
    fm_curve_release(&c);
}

/* A hundred times as many looks as there are points; one spike up in the heap, one down in resident
 * memory, one single look at shares. */
static void extremes_outlive_thinning(void **state)
{
    (void)state;
    struct fm_curve c = { 0 };
    struct fm_memory into = { 0 };
    const uint64_t looks = 100 * FM_CURVE_POINTS_MAX + 3;
    for (uint64_t i = 0; i < looks; i++) {
        struct fm_memory_point point =
            look(i * 10, i == 777777 ? 9000 : 500, i == 123457 ? 3 : 600, i == 999999 ? 42 : -1);
        fm_curve_add(&c, &point);
        assert_true(c.points.len <= FM_CURVE_POINTS_MAX);
    }
    fm_curve_copy(&c, FM_NONE, &into);
    assert_true(into.points.len >= FM_CURVE_POINTS_MAX / 2);
    int high = 0, low = 0, shares = 0;
    uint64_t before = 0;
    for (size_t i = 0; i < into.points.len; i++) {
        const struct fm_memory_point *point = &into.points.data[i];
        assert_true(point->at_ns >= before);
        before = point->at_ns;
        assert_true(point->heap == 500 || point->heap == 9000);
        assert_true(point->rss == 600 || point->rss == 3);
        high += point->heap == 9000;
        low += point->rss == 3;
        shares += point->pss == 42;
        assert_true(point->pss == 42 || point->pss == -1);
        assert_int_equal(point->limit, -1);
        /* 256 looks make two points: a point is at most so many looks away */
        if (point->heap == 9000)
            assert_true(llabs((long long)point->at_ns - 7777770) <= 2560);
    }
    assert_int_equal(high, 1);
    assert_int_equal(low, 1);
    assert_int_equal(shares, 1);
    assert_int_equal(into.points.data[0].at_ns, 0);
    assert_true(before >= (looks - 256) * 10);
    fm_vec_release(&into.points);
    fm_curve_release(&c);
}

/* What rises goes on rising: the least of a group comes first. */
static void rising_curves_stay_rising(void **state)
{
    (void)state;
    struct fm_curve c = { 0 };
    struct fm_memory into = { 0 };
    for (int64_t i = 0; i < 3 * (int64_t)FM_CURVE_POINTS_MAX; i++) {
        struct fm_memory_point point = look((uint64_t)i, i, 1000000 - i, -1);
        fm_curve_add(&c, &point);
    }
    fm_curve_copy(&c, 0, &into);
    for (size_t i = 1; i < into.points.len; i++) {
        assert_true(into.points.data[i].heap > into.points.data[i - 1].heap);
        assert_true(into.points.data[i].rss < into.points.data[i - 1].rss);
    }
    assert_int_equal(into.points.data[0].heap, 0);
    assert_int_equal(into.points.data[into.points.len - 1].heap, 3 * FM_CURVE_POINTS_MAX - 1);
    fm_vec_release(&into.points);
    fm_curve_release(&c);
}

/* ---- control groups ---- */

static void group_is_found(void **state)
{
    (void)state;
    char *mount = NULL, *path = NULL;
    bool first = true;
    assert_true(fm_cgroup_find("0::/user.slice/a.scope\n",
                               "30 23 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
                               &mount, &path, &first));
    assert_string_equal(mount, "/sys/fs/cgroup");
    assert_string_equal(path, "/user.slice/a.scope");
    assert_false(first);
    free(mount);
    free(path);
    /* Both versions: memory is in the first. A container sees its own part of the hierarchy. */
    assert_true(fm_cgroup_find("4:cpu,memory:/docker/77/x\n0::/\n",
                               "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
                               "35 31 0:32 /docker/77 /sys/fs/cgroup/memory rw - cgroup cgroup "
                               "rw,memory\n",
                               &mount, &path, &first));
    assert_string_equal(mount, "/sys/fs/cgroup/memory");
    assert_string_equal(path, "/x");
    assert_true(first);
    free(mount);
    free(path);
    assert_false(fm_cgroup_find("", "", &mount, &path, &first));
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void least_limit_counts(void **state)
{
    (void)state;
    char top[] = "/tmp/fathom-cgroup-XXXXXX", inner[64];
    struct fm_cgroup g;
    assert_non_null(mkdtemp(top));
    snprintf(inner, sizeof inner, "%s/a", top);
    assert_int_equal(mkdir(inner, 0700), 0);
    put(top, "memory.max", "1000\n");
    put(inner, "memory.max", "max\n");
    put(inner, "memory.current", "700\n");
    put(inner, "memory.events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 2\n");
    fm_cgroup_open_at(&g, top, "/a", false);
    assert_int_equal(fm_cgroup_limit(&g), 1000);
    assert_int_equal(fm_cgroup_usage(&g), 700);
    assert_int_equal(fm_cgroup_kills(&g), 2);
    put(inner, "memory.max", "900\n"); /* limits may be changed */
    assert_int_equal(fm_cgroup_limit(&g), 900);
    fm_cgroup_close(&g);
    put(inner, "memory.limit_in_bytes", "9223372036854771712\n"); /* none, in the first version */
    put(inner, "memory.usage_in_bytes", "4096\n");
    put(inner, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
    fm_cgroup_open_at(&g, top, "/a", true);
    assert_int_equal(fm_cgroup_limit(&g), -1);
    assert_int_equal(fm_cgroup_usage(&g), 4096);
    assert_int_equal(fm_cgroup_kills(&g), 5);
    fm_cgroup_close(&g);
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", top);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_curves_are_kept_as_they_are),
        cmocka_unit_test(extremes_outlive_thinning),
        cmocka_unit_test(rising_curves_stay_rising),
        cmocka_unit_test(group_is_found),
        cmocka_unit_test(least_limit_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The regions that threads are in (watch/sampler/open_regions.h): found in a store, put among the frames of a stack; and stores
 * that lie harm nobody. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "live_store.h"
#include "watch/sampler/open_regions.h"

#define PID 42
#define TID 43

struct scene {
    char folder[64], path[2][96], more[104];
    struct fm_open_regions regions;
    struct fm_open_place place;
    struct fm_climb climb;
    struct fm_woven woven;
};

static void define_region(struct fm_buffer *log, uint64_t id, const char *name)
{
    fm_autobuffer body = FM_BUFFER_INIT;
    fm_buffer_add_varint(&body, FM_LIVE_DEF_REGION);
    fm_buffer_add_varint(&body, id);
    fm_buffer_add_varint(&body, 0);
    ls_text(&body, name);
    ls_define(log, &body);
}

static void write_bytes(const char *path, const struct fm_buffer *bytes)
{
    int fd = creat(path, 0600);
    assert_int_equal(write(fd, bytes->data, bytes->len), bytes->len);
    close(fd);
}

/* A store in which thread TID is in these regions, the first of which are called "a" and "b". */
static void write_store(const char *path, const struct fm_live_open *open, uint32_t opens)
{
    fm_autobuffer store = FM_BUFFER_INIT, log = FM_BUFFER_INIT;
    ls_begin(&store);
    ls_header(&store)->opens = opens;
    define_region(&log, 1, "a");
    define_region(&log, 2, "b");
    ls_chunk(&store, FM_LIVE_DEFS, 0, 0, log.data, log.len);
    ls_chunk(&store, FM_LIVE_OPEN, 0, 0, open, sizeof *open);
    write_bytes(path, &store);
}

static void begin(struct scene *s)
{
    *s = (struct scene){ .folder = "/tmp/fathom-test-XXXXXX" };
    assert_non_null(mkdtemp(s->folder));
    for (unsigned i = 0; i < 2; i++)
        snprintf(s->path[i], sizeof s->path[i], "%s/%d.%u.live", s->folder, PID, i);
    snprintf(s->more, sizeof s->more, "%s" FM_LIVE_MORE_SUFFIX, s->path[0]);
    fm_open_regions_init(&s->regions, s->folder, PID);
}

static void end(struct scene *s)
{
    fm_open_regions_release(&s->regions);
    fm_climb_release(&s->climb);
    fm_vec_release(&s->woven.frames);
    unlink(s->path[0]);
    unlink(s->path[1]);
    unlink(s->more);
    rmdir(s->folder);
}

/* The stack at hand: calls of codes 0, 1, …, newest first, at frames 0x100, 0x200, … */
static void add_call(struct scene *s, uint32_t code)
{
    fm_vec_push(&s->climb.frames, ((struct fm_raw_frame){ code, 2 }));
    fm_vec_push(&s->climb.places, ((struct fm_climb_place){ 0x100u * (code + 1), 0x9000u + code }));
}

static bool look(struct scene *s, struct fm_live_open *open, uint64_t now_ns)
{
    fm_open_regions_refresh(&s->regions, now_ns);
    fm_open_regions_place(&s->regions, TID, &s->place);
    return fm_open_regions_read(&s->regions, &s->place, open);
}

/* "0 b 1 a 2": codes by their number, regions by their name. */
static const char *told(const struct scene *s)
{
    static char text[256];
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < s->woven.frames.len; i++) {
        const struct fm_raw_frame *frame = &s->woven.frames.data[i];
        const char *space = i ? " " : "";
        len += (size_t)(fm_raw_is_region(frame)
                            ? snprintf(text + len, sizeof text - len, "%s%s", space,
                                       s->regions.names.data[fm_raw_region_number(frame)])
                            : snprintf(text + len, sizeof text - len, "%s%u", space, frame->code));
    }
    return text;
}

static void test_a_region_is_above_its_call(void **state)
{
    (void)state;
    struct scene s;
    struct fm_live_open open;
    begin(&s);
    assert_false(look(&s, &open, 0)); /* there is no store yet */
    open = (struct fm_live_open){ .tid = TID,
                                  .n = 2,
                                  .regions = { { 0x300, 0x9002, 1, 0 }, { 0x200, 0x9001, 2, 0 } } };
    write_store(s.path[0], &open, 1);
    assert_true(look(&s, &open, 1));
    for (uint32_t code = 0; code < 3; code++)
        add_call(&s, code);
    fm_open_regions_weave(&s.regions, &open, &s.climb, &s.woven);
    assert_string_equal(told(&s), "0 b 1 a 2");
    end(&s);
}

static void test_those_of_one_call_keep_their_order(void **state)
{
    (void)state;
    struct scene s;
    struct fm_live_open open = { .tid = TID,
                                 .n = 2,
                                 .regions = { { 0x100, 0x9000, 1, 0 }, { 0x100, 0x9000, 2, 0 } } };
    begin(&s);
    write_store(s.path[0], &open, 1);
    assert_true(look(&s, &open, 0));
    add_call(&s, 0);
    fm_open_regions_weave(&s.regions, &open, &s.climb, &s.woven);
    assert_string_equal(told(&s), "b a 0"); /* a is around b */
    end(&s);
}

/* Its call has ended: another one stands there, of other code, or none does. A region without a name is left out, too. */
static void test_what_is_of_no_call_is_left_out(void **state)
{
    (void)state;
    struct scene s;
    struct fm_live_open open = { .tid = TID,
                                 .n = 4,
                                 .regions = { { 0x100, 0x9009, 1, 0 },
                                              { 0x800, 0x9000, 2, 0 },
                                              { 0, 0, 1, 0 },
                                              { 0x100, 0x9000, 77, 0 } } };
    begin(&s);
    write_store(s.path[0], &open, 1);
    assert_true(look(&s, &open, 0));
    add_call(&s, 0);
    fm_open_regions_weave(&s.regions, &open, &s.climb, &s.woven);
    assert_string_equal(told(&s), "0");
    end(&s);
}

/* Another thread has taken the record over: that of the first is gone. Then the process has executed another program. */
static void test_records_change_hands(void **state)
{
    (void)state;
    struct scene s;
    struct fm_live_open open = { .tid = TID, .n = 1, .regions = { { 0x100, 0x9000, 1, 0 } } };
    begin(&s);
    write_store(s.path[0], &open, 1);
    assert_true(look(&s, &open, 0));
    open.tid = TID + 1;
    write_store(s.path[0], &open, 1);
    assert_false(look(&s, &open, 1)); /* before the records are listed anew … */
    write_store(s.path[0], &open, 2);
    assert_false(look(&s, &open, 2)); /* … and after */
    open = (struct fm_live_open){ .tid = TID, .n = 1, .regions = { { 0x100, 0x9000, 2, 0 } } };
    write_store(s.path[1], &open, 1);
    assert_true(look(&s, &open, 1000000000));
    add_call(&s, 0);
    fm_open_regions_weave(&s.regions, &open, &s.climb, &s.woven);
    assert_string_equal(told(&s), "b 0");
    end(&s);
}

/* What no longer fitted where the store began: a record, and the name of a region. */
static void test_a_store_that_goes_on_elsewhere(void **state)
{
    (void)state;
    struct scene s;
    struct fm_live_open open = { .tid = TID + 1 };
    fm_autobuffer more = FM_BUFFER_INIT, log = FM_BUFFER_INIT;
    begin(&s);
    write_store(s.path[0], &open, 2);
    open = (struct fm_live_open){ .tid = TID, .n = 1, .regions = { { 0x100, 0x9000, 3, 0 } } };
    define_region(&log, 3, "c");
    ls_chunk(&more, FM_LIVE_OPEN, 0, 0, &open, sizeof open);
    ls_chunk(&more, FM_LIVE_DEFS, 0, 0, log.data, log.len);
    write_bytes(s.more, &more);
    assert_true(look(&s, &open, 0));
    add_call(&s, 0);
    fm_open_regions_weave(&s.regions, &open, &s.climb, &s.woven);
    assert_string_equal(told(&s), "c 0");
    end(&s);
}

static void test_a_store_that_lies_harms_nobody(void **state)
{
    (void)state;
    struct scene s;
    struct fm_live_open open = { .tid = TID, .n = UINT32_MAX };
    begin(&s);
    write_store(s.path[0], &open, 1);
    assert_true(look(&s, &open, 0));
    assert_int_equal(open.n, FM_LIVE_OPEN_MOST);
    assert_int_equal(truncate(s.path[0], FM_LIVE_PAGE + 100), 0);
    assert_false(look(&s, &open, 1));
    assert_int_equal(truncate(s.path[0], 0), 0);
    assert_false(look(&s, &open, 2));
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_region_is_above_its_call),
        cmocka_unit_test(test_those_of_one_call_keep_their_order),
        cmocka_unit_test(test_what_is_of_no_call_is_left_out),
        cmocka_unit_test(test_records_change_hands),
        cmocka_unit_test(test_a_store_that_goes_on_elsewhere),
        cmocka_unit_test(test_a_store_that_lies_harms_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

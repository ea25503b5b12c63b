/* The ring of events (watch/memory/drain.h): what is in it, in order, once; and what a damaged one may do. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "watch/memory/drain.h"

struct ring {
    char path[64];
    int fd;
    uint64_t head;
    struct fm_drain *drain;
    struct fm_slices slices;
};

static void begin(struct ring *r)
{
    struct fm_events_header h = { .magic = FM_EVENTS_MAGIC, .version = FM_EVENTS_VERSION };
    *r = (struct ring){ .path = "/tmp/fathom-ring-XXXXXX" };
    r->fd = mkstemp(r->path);
    assert_true(r->fd >= 0);
    assert_int_equal(ftruncate(r->fd, FM_EVENTS_BYTES), 0);
    assert_int_equal(pwrite(r->fd, &h, sizeof h, 0), sizeof h);
    r->drain = fm_malloc(sizeof *r->drain);
    fm_drain_init(r->drain);
    assert_true(fm_drain_open(r->drain, r->path, 5000));
}

static void end(struct ring *r)
{
    fm_drain_release(r->drain);
    free(r->drain);
    fm_slices_release(&r->slices);
    close(r->fd);
    unlink(r->path);
}

static void set_head(struct ring *r)
{
    assert_int_equal(pwrite(r->fd, &r->head, 8, offsetof(struct fm_events_header, head)), 8);
}

static void put(struct ring *r, uint64_t number, uint64_t us, enum fm_event_kind kind,
                uint32_t account, uint64_t bytes)
{
    struct fm_event e = fm_event_make(number, us, kind, account, bytes);
    off_t at = (off_t)(FM_EVENTS_AT + number % FM_EVENTS_SLOTS * sizeof e);
    assert_int_equal(pwrite(r->fd, &e, sizeof e, at), sizeof e);
}

static void add(struct ring *r, uint64_t us, enum fm_event_kind kind, uint32_t account,
                uint64_t bytes)
{
    put(r, r->head++, us, kind, account, bytes);
    set_head(r);
}

static void test_events_become_slices(void **state)
{
    (void)state;
    struct ring r;
    const uint64_t large = (uint64_t)3 << 47;
    begin(&r);
    add(&r, 10, FM_EVENT_BEGIN, 9, 100);
    add(&r, 10, FM_EVENT_BEGIN, 3, large);
    add(&r, 10, FM_EVENT_END, 9, 100); /* gone within the microsecond */
    add(&r, 12, FM_EVENT_SHRINK, 3, 5);
    add(&r, 11, FM_EVENT_BEGIN, 0x7fffff, 1); /* another thread's, a little late */
    while (fm_drain_read(r.drain, &r.slices, true))
        ;
    static const struct {
        uint64_t ns;
        struct fm_history_change change;
    } expected[] = { { 15000, { 3, (int64_t)3 << 47, 1 } },
                     { 17000, { 3, -5, 0 } },
                     { 17000, { 0x7fffff, 1, 1 } } };
    struct fm_slices_walk w = fm_slices_walk(r.slices.bytes.data, r.slices.bytes.len);
    struct fm_history_change change;
    uint64_t at_ns;
    size_t i = 0;
    while (fm_slices_next(&w, &at_ns))
        for (; fm_slices_next_change(&w, &change); i++) {
            assert_true(i < FM_COUNT(expected));
            assert_int_equal(at_ns, expected[i].ns);
            assert_int_equal(change.context, expected[i].change.context);
            assert_int_equal(change.bytes, expected[i].change.bytes);
            assert_int_equal(change.blocks, expected[i].change.blocks);
        }
    assert_int_equal(i, FM_COUNT(expected));
    end(&r);
}

/* Three laps; what is taken but not yet written is waited for, or passed over if nobody will write it. */
static void test_laps_and_gaps(void **state)
{
    (void)state;
    struct ring r;
    begin(&r);
    uint64_t seen = 0;
    for (uint64_t i = 0; i < 3ull * FM_EVENTS_SLOTS; i++) {
        add(&r, i, FM_EVENT_BEGIN, 1, 1);
        if (i % 50000 == 0)
            while (fm_drain_read(r.drain, &r.slices, false))
                ;
    }
    while (fm_drain_read(r.drain, &r.slices, false))
        ;
    assert_int_equal(r.drain->tail, r.head);
    uint64_t gap = r.head++;
    add(&r, 9000000, FM_EVENT_BEGIN, 2, 1);
    assert_false(fm_drain_read(r.drain, &r.slices, false));
    assert_int_equal(r.drain->tail, gap);
    while (fm_drain_read(r.drain, &r.slices, true))
        ;
    assert_int_equal(r.drain->tail, r.head);
    struct fm_slices_walk w = fm_slices_walk(r.slices.bytes.data, r.slices.bytes.len);
    struct fm_history_change change;
    uint64_t at_ns;
    while (fm_slices_next(&w, &at_ns))
        while (fm_slices_next_change(&w, &change))
            seen += (uint64_t)change.bytes;
    assert_int_equal(seen, 3ull * FM_EVENTS_SLOTS + 1);
    fm_drain_done(r.drain);
    fm_drain_close(r.drain);
    struct fm_events_header h;
    assert_int_equal(pread(r.fd, &h, sizeof h, 0), sizeof h);
    assert_int_equal(h.tail, r.head);
    assert_int_equal(h.closed, 1);
    end(&r);
}

static void test_damaged_rings(void **state)
{
    (void)state;
    static const uint64_t heads[] = { UINT64_MAX, (uint64_t)1 << 63, 10 * FM_EVENTS_SLOTS };
    struct ring r;
    for (size_t i = 0; i < FM_COUNT(heads); i++) {
        begin(&r);
        r.head = heads[i];
        set_head(&r);
        for (int k = 0; k < 100; k++)
            fm_drain_read(r.drain, &r.slices, true);
        end(&r);
    }
    begin(&r);
    r.head = 1000;
    set_head(&r);
    assert_int_equal(ftruncate(r.fd, FM_EVENTS_AT + 7), 0);
    assert_false(fm_drain_read(r.drain, &r.slices, true));
    end(&r);
    begin(&r);
    assert_int_equal(pwrite(r.fd, "x", 1, 0), 1);
    struct fm_drain *other = fm_malloc(sizeof *other);
    fm_drain_init(other);
    assert_false(fm_drain_open(other, r.path, 1));
    assert_false(fm_drain_open(other, "/nowhere", 1));
    assert_false(fm_drain_read(other, &r.slices, true));
    free(other);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_become_slices),
        cmocka_unit_test(test_laps_and_gaps),
        cmocka_unit_test(test_damaged_rings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

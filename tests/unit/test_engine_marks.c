/*
 * Marks of a timeline as the page gets them, where there are far more than rows: whatever is put together, all of it
 * is counted, with the task that it is of.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "engine.h"
#include "record/model/file/file.h"
#include "record/model/trace/lanes/timeline.h"
#include "scratch_file.h"
#include "timeline.h"
#include "trace_profile.h"
#include "trace_words.h"

#define T0     1000000000u
#define LONG   2000u /* tasks that live as long as the run */
#define ROUNDS 60u   /* steps of each: more rows than an overview has */
#define BRIEF  100u  /* tasks of one step */
#define STEP   10u   /* ns */

/* Numbers have gaps, as those of tasks that began before the recording. */
static uint32_t number_of(uint32_t i)
{
    return i < LONG / 2 ? i + 1 : i < LONG ? 5001 + i - LONG / 2 : 9001 + i - LONG;
}

static void step(struct trace_words *w, uint64_t *now, uint32_t task)
{
    const uint32_t nobody = 0;
    words_escape(w, *now, FM_TRACE_TASK_STEP, &task, 1);
    *now += STEP;
    words_escape(w, *now, FM_TRACE_TASK_STEP, &nobody, 1);
}

static void create(struct trace_words *w, uint64_t now, uint32_t task)
{
    words_escape(w, now, FM_TRACE_TASK_NEW, (const uint32_t[]){ task, 1, 0 }, 3);
}

static void run_tasks(struct trace_words *w)
{
    uint64_t now = T0;
    words_begin(w, now);
    words_call(w, now, 1);
    for (uint32_t i = 0; i < LONG; i++)
        create(w, now, number_of(i));
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t i = 0; i < LONG; i++)
            step(w, &now, number_of(i));
    for (uint32_t i = LONG; i < LONG + BRIEF; i++) {
        uint32_t task = number_of(i);
        create(w, now, task);
        step(w, &now, task);
        words_escape(w, now, FM_TRACE_TASK_DONE, &task, 1);
    }
    words_return(w, now);
    words_hand_over(w);
}

static void *recording(size_t *ret_len)
{
    struct fm_error err = FM_ERROR_INIT;
    struct trace_packed packed = trace_packed_new();
    struct fm_trace_pack *pack = fm_trace_pack_new(0, trace_sink, &packed);
    struct trace_words *w = fm_calloc(1, sizeof *w);
    fm_trace_pack_clock(pack, T0, T0);
    fm_trace_pack_clock(pack, 2u * T0, 2u * T0);
    w->pack = pack;
    w->thread = 1;
    run_tasks(w);
    fm_trace_pack_end(pack, 0);
    struct fm_profile *p = fm_profile_new();
    trace_add(p, pack, &packed, 7, 1, 1);
    int fd = fx_file();
    assert_int_equal(fm_file_save_plain(p, fd, &err), 0);
    fm_profile_free(p);
    fm_trace_pack_free(pack);
    free(w);
    return fx_file_bytes(fd, ret_len);
}

struct counted {
    uint32_t of[16384]; /* steps by number of the task; 0: of several */
    uint32_t rows;
};

static struct counted *count(struct fm_engine *e, double from, double to, double cell)
{
    struct counted *counted = fm_calloc(1, sizeof *counted);
    assert_int_equal(fm_engine_timeline_marks(e, 0, from, to, cell), 0);
    const struct fm_result *out = &e->results[0];
    const uint32_t *kind = out->column[2].data;
    const double *count = out->column[6].data, *value = out->column[7].data;
    for (uint32_t i = 0; i < out->rows; i++) {
        if (kind[i] != FM_MARK_TASK)
            continue;
        assert_true(value[i] >= 0 && value[i] < 16384);
        counted->of[(uint32_t)value[i]] += (uint32_t)count[i];
        counted->rows++;
    }
    return counted;
}

static void test_steps_are_all_counted(void **state)
{
    (void)state;
    const double length = (double)(LONG * ROUNDS + BRIEF) * STEP;
    struct fm_engine e;
    size_t len;
    void *bytes = recording(&len);
    fm_engine_init(&e);
    assert_int_equal(fm_engine_open(&e, bytes, len, "tasks"), 0);
    e.recordings[0]->bytes = bytes;
    const double cells[] = { length / 8192, length / 1200, length / 100 };
    for (int k = 0; k < 3; k++) {
        fm_autofree struct counted *all = count(&e, 0, length, cells[k]);
        assert_in_range(all->rows, LONG, 20000);
        assert_int_equal(all->of[0], BRIEF);
        for (uint32_t i = 0; i < LONG; i++)
            assert_int_equal(all->of[number_of(i)], ROUNDS);
    }
    /* From near: the first hundred steps, each a row, of a hundred tasks. */
    fm_autofree struct counted *first = count(&e, 0, 100 * STEP - 5, 1);
    assert_int_equal(first->rows, 100);
    for (uint32_t i = 0; i < LONG; i++)
        assert_int_equal(first->of[number_of(i)], i < 100);
    fm_engine_release(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_steps_are_all_counted) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

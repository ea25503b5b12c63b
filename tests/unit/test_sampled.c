/*
 * Estimates of sampled blocks: chance itself against the C library's mathematics, and programs whose
 * memory is known block by block, sampled anew with many seeds. On average estimates are the truth, and
 * ± is so wide that the truth is within it in 19 of 20 cases.
 *
 * Seeds are fixed: nothing here depends on luck.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "record/model/metrics.h"
#include "target/heap/sampled/sampled_account.h"

/* ---- chance ---- */

static void chance_of_none_is_that_of_mathematics(void **test_state)
{
    (void)test_state;
    static const uint64_t intervals[] = { 1 << 10, 64 << 10, 1000003, 128 << 20 };
    for (size_t k = 0; k < sizeof intervals / sizeof *intervals; k++)
        for (uint64_t bytes = 1; bytes < (uint64_t)1 << 40; bytes = bytes * 5 / 3 + 1) {
            double hit = -expm1(-(double)bytes / (double)intervals[k]);
            uint64_t none = fm_chance_of_none(bytes, intervals[k]);
            double ours = (double)(0 - none) / 0x1p64;
            assert_true(none == 0 ? hit > 1 - 1e-15 : fabs(ours / hit - 1) < 1e-8);
        }
    assert_true(fm_chance_of_none(UINT64_MAX, 1 << 10) == 0);
}

/* The mean, the spread and the middle of the distances. */
static void distances_are_exponential(void **test_state)
{
    (void)test_state;
    enum { N = 400000, INTERVAL = 524288 };
    double sum = 0, squares = 0;
    size_t below = 0, far = 0;
    uint64_t random = 1;
    for (size_t i = 0; i < N; i++) {
        double x = (double)fm_chance_distance(&random, INTERVAL) / INTERVAL;
        sum += x;
        squares += x * x;
        below += x < M_LN2;
        far += x > 5;
    }
    assert_true(fabs(sum / N - 1) < 5 / sqrt(N));
    assert_true(fabs(squares / N - 2) < 5 * sqrt(20.0 / N));
    assert_true(fabs((double)below / N - 0.5) < 5 * 0.5 / sqrt(N));
    assert_true(fabs((double)far / N - exp(-5)) < 5 * sqrt(exp(-5) / N));
}

static void large_blocks_are_certain(void **test_state)
{
    (void)test_state;
    uint64_t random = 7;
    assert_int_equal(fm_sampled_halves(&random, 5, 1 << 30, 1 << 20), 3);
    struct fm_sampled_weight a = fm_sampled_weigh(1000000001, 1 << 20, 0, 17),
                             b = fm_sampled_weigh(1000000001, 1 << 20, 1, 17);
    assert_int_equal(a.bytes + b.bytes, 1000000001);
    assert_int_equal(a.blocks + b.blocks, 1);
    assert_true(a.variance == 0 && b.variance == 0);
}

/* ---- programs ---- */

enum { INTERVAL = 16 << 10, CONTEXTS = 3, MOST = 200000, SEEDS = 400 };

struct known_block {
    uint32_t bytes, context, halves, dice;
};

/* What a program does, and what is known of it: exactly, and by samples. */
struct sampled_program {
    struct known_block *blocks;
    uint64_t random, chosen; /* of the samples; of what the program does, the same each time */
    int64_t left;
    struct fm_heap_header header;
    struct fm_heap_account accounts[CONTEXTS][2];
    struct fm_heap_error errors[CONTEXTS][2];
    int64_t live, live_of[CONTEXTS], peak, peak_of[CONTEXTS], allocated;
};

static void begin(struct sampled_program *p, size_t slot, uint32_t bytes, uint32_t context)
{
    struct known_block *block = &p->blocks[slot];
    *block = (struct known_block){ .bytes = bytes, .context = context };
    p->live += bytes;
    p->live_of[context] += bytes;
    p->allocated += bytes;
    if (p->live > p->peak) {
        p->peak = p->live;
        memcpy(p->peak_of, p->live_of, sizeof p->peak_of);
    }
    if ((p->left -= bytes) >= 0)
        return;
    block->halves = fm_sampled_halves(&p->random, (uint64_t)(p->left + bytes), bytes, INTERVAL);
    block->dice = (uint32_t)(fm_chance_next(&p->random) % FM_SAMPLED_DICE);
    p->left = (int64_t)fm_chance_distance(&p->random, INTERVAL);
    for (int half = 0; half < 2; half++) {
        struct fm_sampled_account a = { &p->header, &p->accounts[context][half],
                                        &p->errors[context][half], half };
        if (block->halves >> half & 1)
            fm_sampled_begin(&a, fm_sampled_weigh(bytes, INTERVAL, half, block->dice));
    }
}

static void end(struct sampled_program *p, size_t slot)
{
    struct known_block *block = &p->blocks[slot];
    p->live -= block->bytes;
    p->live_of[block->context] -= block->bytes;
    if (block->halves)
        fm_sampled_fall(&p->header);
    for (int half = 0; half < 2; half++) {
        struct fm_sampled_account a = { &p->header, &p->accounts[block->context][half],
                                        &p->errors[block->context][half], half };
        if (block->halves >> half & 1)
            fm_sampled_end(&a, fm_sampled_weigh(block->bytes, INTERVAL, half, block->dice));
    }
}

/* Small, middling and large blocks, in a context each. */
static void begin_any(struct sampled_program *p, size_t slot)
{
    static const uint32_t bytes[CONTEXTS] = { 200, 6000, 70000 };
    uint64_t die = fm_chance_next(&p->chosen) % 1000;
    uint32_t context = die < 960 ? 0 : die < 995 ? 1 : 2;
    begin(p, slot, bytes[context] + (uint32_t)(die % 16), context);
}

/* Up, and down again: the sharpest peak there is. */
static void triangle(struct sampled_program *p)
{
    enum { N = 20000 };
    for (size_t i = 0; i < N; i++)
        begin_any(p, i);
    for (size_t i = N; i-- > N / 10;)
        end(p, i);
}

/* As much all the time: the highest of many instants that are alike. */
static void plateau(struct sampled_program *p)
{
    enum { N = 4000, ROUNDS = 40000 };
    for (size_t i = 0; i < N; i++)
        begin_any(p, i);
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t slot = fm_chance_next(&p->chosen) % N;
        end(p, slot);
        begin_any(p, slot);
    }
}

/* The same, of blocks of one size: all instants are the peak. */
static void flat(struct sampled_program *p)
{
    enum { N = 15000, ROUNDS = 60000 };
    for (size_t i = 0; i < N; i++)
        begin(p, i, 200, 0);
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t slot = fm_chance_next(&p->chosen) % N;
        end(p, slot);
        begin(p, slot, 200, 0);
    }
}

/* Up and down many times, a little higher each time. */
static void saw(struct sampled_program *p)
{
    for (size_t k = 0, n; k < 20; k++) {
        n = 15000 + 50 * k;
        for (size_t i = 0; i < n; i++)
            begin(p, i, 200, 0);
        for (size_t i = 0; i < n; i++)
            end(p, i);
    }
}

/* Two peaks of other contexts, the second a tenth lower. */
static void two_peaks(struct sampled_program *p)
{
    enum { N = 30000, M = 900 };
    for (size_t i = 0; i < N; i++)
        begin(p, i, 200, 0);
    for (size_t i = 0; i < N; i++)
        end(p, i);
    for (size_t i = 0; i < M; i++)
        begin(p, i, 6000, 1);
    for (size_t i = 0; i < M; i++)
        end(p, i);
}

struct estimated {
    double bytes, square; /* of the error */
};

static struct estimated peak_of(const struct sampled_program *p, int context)
{
    struct estimated e = { 0, 0 };
    for (int half = 0; half < 2; half++) {
        struct fm_heap_sampled_peak peak = fm_heap_sampled_peak(
            &p->header, half, &p->accounts[context][half], &p->errors[context][half]);
        e.bytes += (double)peak.bytes;
        e.square += (double)peak.square;
    }
    return e;
}

static struct estimated allocated_of(const struct sampled_program *p, int context)
{
    struct estimated e = { 0, 0 };
    for (int half = 0; half < 2; half++) {
        e.bytes += (double)p->accounts[context][half].allocated;
        e.square += (double)p->errors[context][half].allocated;
    }
    return e;
}

/* The errors of many runs, as parts of what they are said to be. */
struct judged {
    double bias, said; /* sums of errors, and of the errors that were said */
    int within, n;
};

static void judge(struct judged *j, struct estimated e, double truth)
{
    double said = (double)fm_error_bytes((int64_t)e.square, INTERVAL), error = e.bytes - truth;
    j->within += fabs(error) <= said;
    j->bias += error;
    j->said += said / FM_ERROR_WIDTH;
    j->n++;
}

static void begin_program(struct sampled_program *p, uint64_t seed)
{
    struct known_block *blocks = p->blocks;
    *p = (struct sampled_program){ .blocks = blocks, .random = seed << 32, .chosen = 5 };
    p->header.halves[0].epoch = p->header.halves[1].epoch = 1;
    p->left = (int64_t)fm_chance_distance(&p->random, INTERVAL);
}

/* `most` is how far off the average may be, in standard errors of one run. */
static void assert_is_right(const struct judged *j, const char *what, double most, double least)
{
    double bias = j->bias / j->said, within = (double)j->within / j->n;
    print_message("%s: off by %+.3f standard errors on average, within ± in %.1f %%\n", what, bias,
                  within * 100);
    assert_true(fabs(bias) < most);
    assert_true(within > least && within < 0.99);
}

/* `one_instant`: there is one peak, or all are alike. Where another is nearly as high, the estimate may
 * be of that one: as high within ±, but not of the same contexts. */
static void check(void (*program)(struct sampled_program *), const char *name, bool one_instant,
                  double most, double least)
{
    struct judged peak = { 0 }, of_context[CONTEXTS] = { 0 }, allocated = { 0 };
    struct sampled_program *p = calloc(1, sizeof *p);
    struct known_block *blocks = calloc(MOST, sizeof *blocks);
    char what[96];
    assert_true(p && blocks);
    p->blocks = blocks;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct estimated sum = { 0, 0 }, made = { 0, 0 };
        begin_program(p, seed);
        program(p);
        for (int c = 0; c < CONTEXTS; c++) {
            struct estimated one = peak_of(p, c), all = allocated_of(p, c);
            sum.bytes += one.bytes, sum.square += one.square;
            made.bytes += all.bytes, made.square += all.square;
            if (p->peak_of[c])
                judge(&of_context[c], one, (double)p->peak_of[c]);
        }
        judge(&peak, sum, (double)p->peak);
        judge(&allocated, made, (double)p->allocated);
        assert_int_equal(p->header.worlds[0].live >= 0 && p->header.worlds[1].live >= 0, 1);
    }
    snprintf(what, sizeof what, "%s, allocated", name);
    assert_is_right(&allocated, what, 5 / sqrt(SEEDS), 0.92);
    snprintf(what, sizeof what, "%s, peak", name);
    assert_is_right(&peak, what, most, least);
    for (int c = 0; c < CONTEXTS; c++) {
        snprintf(what, sizeof what, "%s, peak of context %d", name, c);
        if (of_context[c].n && one_instant)
            assert_is_right(&of_context[c], what, most, least);
    }
    free(blocks);
    free(p);
}

static void a_sharp_peak(void **test_state)
{
    (void)test_state;
    check(triangle, "up and down", true, 0.2, 0.92);
}

static void a_plateau(void **test_state)
{
    (void)test_state;
    check(plateau, "up and down by chance", false, 0.8, 0.88);
}

static void a_flat_plateau(void **test_state)
{
    (void)test_state;
    check(flat, "flat", true, 0.8, 0.9);
}

static void many_peaks(void **test_state)
{
    (void)test_state;
    check(saw, "many peaks", true, 0.8, 0.9);
}

static void two_peaks_of_two_contexts(void **test_state)
{
    (void)test_state;
    check(two_peaks, "two peaks", false, 0.8, 0.86);
}

/* ---- few samples ---- */

enum { FEW_SEEDS = 1200 };

/* So many bytes, as multiples of the interval, in blocks of a size: freed, or made anew again
 * and again (where the peak is the highest of many instants). */
struct few {
    double samples; /* on average */
    uint32_t bytes;
    enum { FREED, RENEWED } then;
};

static void do_few(struct sampled_program *p, const struct few *few)
{
    size_t n = (size_t)(few->samples * INTERVAL / few->bytes);
    for (size_t i = 0; i < n; i++)
        begin(p, i, few->bytes, 0);
    for (size_t i = 0; few->then == RENEWED && i < 4 * n; i++) {
        size_t slot = fm_chance_next(&p->chosen) % n;
        end(p, slot);
        begin(p, slot, few->bytes, 0);
    }
    for (size_t i = 0; few->then == FREED && i < n; i++)
        end(p, i);
}

/* A number of which there is no sample is not shown. */
static void judge_shown(struct judged *j, struct estimated e, double truth)
{
    if (e.square > 0)
        judge(j, e, truth);
}

static void assert_covers(const struct judged *j, const char *what, const struct few *few)
{
    static const char *const then[] = { "freed", "renewed" };
    double within = (double)j->within / j->n;
    print_message("%g samples of %u bytes, %s: %s within ± in %.1f %%\n", few->samples, few->bytes,
                  then[few->then], what, within * 100);
    assert_true(within >= 0.94);
}

static void few_samples_are_right_within_what_is_said(void **test_state)
{
    (void)test_state;
    static const double samples[] = { 2, 3, 4, 6, 8, 12, 20 };
    static const uint32_t sizes[] = { 64, 2048 };
    struct sampled_program *p = calloc(1, sizeof *p);
    struct known_block *blocks = calloc(MOST, sizeof *blocks);
    assert_true(p && blocks);
    p->blocks = blocks;
    double within = 0, n = 0;
    for (size_t k = 0; k < 7 * 2 * 2; k++) {
        struct few few = { samples[k % 7], sizes[k / 7 % 2], k / 14 ? RENEWED : FREED };
        struct judged peak = { 0 }, allocated = { 0 };
        for (uint64_t seed = 1; seed <= FEW_SEEDS; seed++) {
            begin_program(p, seed);
            do_few(p, &few);
            judge_shown(&peak, peak_of(p, 0), (double)p->peak);
            judge_shown(&allocated, allocated_of(p, 0), (double)p->allocated);
        }
        assert_covers(&peak, "peak", &few);
        assert_covers(&allocated, "allocated", &few);
        within += peak.within + allocated.within;
        n += peak.n + allocated.n;
    }
    print_message("few samples, all in all: within ± in %.1f %%\n", 100.0 * within / n);
    assert_true(within >= 0.96 * n);
    free(blocks);
    free(p);
}

/* A process with one sample has a peak: of the half that met it, as the other has none to ask at. */
static void one_sample_is_a_peak(void **test_state)
{
    (void)test_state;
    struct sampled_program *p = calloc(1, sizeof *p);
    struct known_block block;
    int met = 0;
    assert_non_null(p);
    p->blocks = &block;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        begin_program(p, seed);
        begin(p, 0, INTERVAL / 2, 0);
        uint32_t halves = block.halves;
        end(p, 0);
        if (halves != 1 && halves != 2)
            continue;
        int64_t weight = fm_sampled_weigh(INTERVAL / 2, INTERVAL, halves == 2, block.dice).bytes;
        assert_int_equal((int64_t)peak_of(p, 0).bytes, weight);
        assert_true(peak_of(p, 0).square > 0);
        met++;
    }
    assert_in_range(met, 20, 50); /* of 39 on average, those of both halves not counted */
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chance_of_none_is_that_of_mathematics),
        cmocka_unit_test(distances_are_exponential),
        cmocka_unit_test(large_blocks_are_certain),
        cmocka_unit_test(a_sharp_peak),
        cmocka_unit_test(a_plateau),
        cmocka_unit_test(a_flat_plateau),
        cmocka_unit_test(many_peaks),
        cmocka_unit_test(two_peaks_of_two_contexts),
        cmocka_unit_test(one_sample_is_a_peak),
        cmocka_unit_test(few_samples_are_right_within_what_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The climb, rule by rule (watch/sampler/climb.h), and over saved looks.
 *
 * Each rule has a test of its own, on a little memory made by hand in the layout of every Python:
 * if a rule is changed, the test with its number says what is different now.
 *
 * tests/looks holds looks at real programs as the sampler kept them (watch/sampler/look_keep.h), one for
 * each kind of newest frame and each Python. Each must give the stack that it says; and whatever
 * single word or code object is taken out of it, the climb must ask for just that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "watch/cpython/code.h"
#include "watch/cpython/layout_tables.h"
#include "watch/sampler/climb.h"
#include "watch/sampler/look_keep.h"

#define MAX_WORDS 4096
#define MAX_CODES 64

/* --- a little memory -------------------------------------------------------------------------- */

struct word {
    fm_addr at;
    uint64_t value;
};

struct code {
    fm_addr at;
    struct fm_code code;
    bool hidden;
    char name[64];
};

struct scene {
    struct fm_layout layout;
    fm_addr thread;
    struct word words[MAX_WORDS];
    size_t n_words;
    struct fm_map place_of; /* address → place in `words` */
    struct code codes[MAX_CODES];
    size_t n_codes;
    bool is_all;     /* what is not here is nowhere, instead of not copied yet */
    fm_addr without; /* a word or a code object that is taken out */
    char want[4096];
};

static struct word *word_of(struct scene *s, fm_addr at)
{
    const uint32_t *place = fm_map_find(&s->place_of, at);
    return place ? &s->words[*place] : NULL;
}

static void clear(struct scene *s)
{
    fm_map_release(&s->place_of);
    memset(s, 0, sizeof *s);
}

static void put(struct scene *s, fm_addr at, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        fm_addr aligned = (at + i) & ~(fm_addr)7;
        struct word *word = word_of(s, aligned);
        if (!word) {
            assert_true(s->n_words < MAX_WORDS);
            fm_map_at(&s->place_of, aligned, (uint32_t)s->n_words, NULL);
            word = &s->words[s->n_words++];
            *word = (struct word){ aligned, 0 };
        }
        ((uint8_t *)&word->value)[(at + i) & 7] = ((const uint8_t *)bytes)[i];
    }
}

static void put_word(struct scene *s, fm_addr at, uint64_t value)
{
    put(s, at, &value, sizeof value);
}

static enum fm_climb_memory memory(void *data, fm_addr at, void *into, size_t len, fm_addr *want)
{
    struct scene *s = data;
    for (size_t i = 0; i < len; i++) {
        fm_addr aligned = (at + i) & ~(fm_addr)7;
        const struct word *word = aligned == s->without ? NULL : word_of(s, aligned);
        *want = aligned > at ? aligned : at;
        if (!word)
            return s->is_all ? FM_MEMORY_NONE : FM_MEMORY_MISSING;
        ((uint8_t *)into)[i] = ((const uint8_t *)&word->value)[(at + i) & 7];
    }
    return FM_MEMORY_HERE;
}

static enum fm_climb_code code(void *data, fm_addr at, uint64_t instr, struct fm_raw_frame *ret)
{
    struct scene *s = data;
    for (size_t i = 0; i < s->n_codes; i++) {
        if (s->codes[i].at != at || at == s->without)
            continue;
        ret->code = (uint32_t)i;
        if (!fm_code_offset(&s->codes[i].code, &s->layout, instr, &ret->offset))
            return FM_CODE_MISFIT;
        return s->codes[i].hidden ? FM_CODE_HIDDEN : FM_CODE_FITS;
    }
    return s->is_all ? FM_CODE_MISFIT : FM_CODE_MISSING;
}

/* What the climb says, in the words of a saved look. */
static const char *climb(struct scene *s)
{
    static char text[4096];
    struct fm_climb climb = { 0 };
    struct fm_climb_ground ground = { &s->layout, s->thread, memory, code, s };
    fm_autobuffer out = FM_BUFFER_INIT;
    fm_climb_begin(&climb);
    switch (fm_climb_go(&climb, &ground)) {
    case FM_CLIMB_WHOLE:
    case FM_CLIMB_CUT:
        fm_buffer_add_text(&out, climb.passed < FM_CLIMB_MAX_FRAMES ? "whole " : "cut ");
        for (size_t i = climb.frames.len; i-- > 0;)
            fm_buffer_addf(&out, "%s@%d%s", s->codes[climb.frames.data[i].code].name,
                           (int)climb.frames.data[i].offset, i ? ";" : "");
        break;
    case FM_CLIMB_WANTS:
        fm_buffer_addf(&out, "wants 0x%" PRIx64, climb.want & ~(fm_addr)7);
        break;
    case FM_CLIMB_WANTS_CODE:
        fm_buffer_addf(&out, "wants code 0x%" PRIx64, climb.want);
        break;
    case FM_CLIMB_NO:
        fm_buffer_add_text(&out, "no");
        break;
    }
    snprintf(text, sizeof text, "%s", fm_buffer_text(&out));
    fm_climb_release(&climb);
    return text;
}

/* --- scenes made by hand ---------------------------------------------------------------------- */

enum { THREAD = 0x1000, RECORD = 0x2000, OUTER_RECORD = 0x2100 };
enum { MAIN = 0x10000, WORK = 0x11000, GENERATOR = 0x12000, SHIM = 0x13000 }; /* code objects */
enum {
    BOTTOM = 0x3000,
    FIRST = 0x3100,
    SECOND = 0x3200,
    THIRD = 0x3300,
    FOURTH = 0x3400
}; /* frames */
enum { OFFSET = 4, NO_OWNER = 0 };

static uint64_t instr_of(const struct scene *s, fm_addr code)
{
    if (s->layout.frames == FM_FRAMES_HEAP)
        return s->layout.table == FM_TABLE_LNOTAB ? OFFSET : OFFSET / 2;
    return code + s->layout.code_bytecode + OFFSET;
}

static void put_frame(struct scene *s, fm_addr at, fm_addr code, fm_addr previous, uint8_t owner)
{
    const struct fm_layout *l = &s->layout;
    uint8_t zeros[512] = { 0 };
    uint64_t instr = instr_of(s, code);
    put(s, at, zeros, (l->frame_size + 7) & ~7u);
    put_word(s, at + l->frame_previous, previous);
    put_word(s, at + l->frame_code, code);
    put(s, at + l->frame_instr, &instr, l->frames == FM_FRAMES_HEAP ? 4 : 8);
    if (l->frame_owner != FM_ABSENT)
        put(s, at + l->frame_owner, &owner, 1);
    if (l->frames == FM_FRAMES_HEAP) { /* it executes: 1, and 0 in 3.10 */
        uint8_t executes = fm_layout_minor(l) == 9;
        put(s, at + l->frame_state, &executes, 1);
    }
}

static void add_code(struct scene *s, fm_addr at, const char *name, bool hidden)
{
    struct code *c = &s->codes[s->n_codes++];
    *c = (struct code){ .at = at, .hidden = hidden, .code = { .at = at, .bytecode_len = 64 } };
    snprintf(c->name, sizeof c->name, "%s", name);
}

static bool has_boundaries(const struct scene *s)
{
    return s->layout.owner_boundary != UINT8_MAX;
}

static void set_newest(struct scene *s, fm_addr frame)
{
    if (s->layout.frames == FM_FRAMES_CFRAME) {
        put_word(s, s->thread + s->layout.thread_frame, RECORD);
        put_word(s, RECORD + s->layout.cframe_frame, frame);
        put_word(s, RECORD + s->layout.cframe_frame + 8, OUTER_RECORD);
    } else {
        put_word(s, s->thread + s->layout.thread_frame, frame);
    }
}

/* main called work: two frames on top of one of the interpreter, where there is such. */
static void make_scene(struct scene *s, const struct fm_layout *table)
{
    clear(s);
    s->layout = *table;
    if (!s->layout.frame_size) { /* computed when a layout is found */
        s->layout.frame_size =
            s->layout.frames == FM_FRAMES_HEAP ? 128 : s->layout.frame_localsplus;
    }
    s->thread = THREAD;
    s->is_all = true;
    add_code(s, MAIN, "main", false);
    add_code(s, WORK, "work", false);
    add_code(s, GENERATOR, "values", false);
    add_code(s, SHIM, "shim", true);
    fm_addr below = 0;
    if (has_boundaries(s)) {
        put_frame(s, BOTTOM, 0, 0, s->layout.owner_boundary);
        below = BOTTOM;
    }
    put_frame(s, FIRST, MAIN, below, NO_OWNER);
    put_frame(s, SECOND, WORK, FIRST, NO_OWNER);
    set_newest(s, SECOND);
}

/* For every Python. */
#define EACH_LAYOUT(scene)                                                                         \
    for (size_t layout_ = 0; layout_ < FM_COUNT(layout_tables); layout_++)                         \
        if (make_scene(&(scene), &layout_tables[layout_]), true)

static struct scene scene;

static void test_two_functions(void **state)
{
    (void)state;
    EACH_LAYOUT(scene)
    assert_string_equal(climb(&scene), "whole main@4;work@4");
}

static void test_a_thread_that_runs_nothing(void **state)
{
    (void)state;
    EACH_LAYOUT(scene)
    {
        put_word(&scene, THREAD + scene.layout.thread_frame, 0);
        assert_string_equal(climb(&scene), "whole ");
    }
}

static void test_rule_1_a_record_that_is_not_filled_yet(void **state)
{
    (void)state;
    EACH_LAYOUT(scene)
    {
        if (scene.layout.frames != FM_FRAMES_CFRAME)
            continue;
        put_word(&scene, OUTER_RECORD + scene.layout.cframe_frame, SECOND);
        put_word(&scene, RECORD + scene.layout.cframe_frame, 0x123450); /* nothing is there */
        assert_string_equal(climb(&scene), "whole main@4;work@4");
        put_word(&scene, RECORD + scene.layout.cframe_frame, 0x123451); /* no address of a frame */
        assert_string_equal(climb(&scene), "whole main@4;work@4");
        put_frame(&scene, THIRD, 0x77770, SECOND, NO_OWNER); /* no code object */
        put_word(&scene, RECORD + scene.layout.cframe_frame, THIRD);
        assert_string_equal(climb(&scene), "whole main@4;work@4");
    }
}

static void test_rule_2_from_the_newest_frame_down(void **state)
{
    (void)state;
    EACH_LAYOUT(scene)
    { /* a generator that work() resumed, and what it called */
        put_frame(&scene, THIRD, GENERATOR, SECOND, scene.layout.owner_generator);
        put_frame(&scene, FOURTH, WORK, THIRD, NO_OWNER);
        set_newest(&scene, THIRD);
        assert_string_equal(climb(&scene), "whole main@4;work@4;values@4");
        set_newest(&scene, FOURTH);
        assert_string_equal(climb(&scene), "whole main@4;work@4;values@4;work@4");
    }
}

static void test_rule_3_frames_of_the_interpreter_are_passed_over(void **state)
{
    (void)state;
    EACH_LAYOUT(scene)
    {
        if (!has_boundaries(&scene))
            continue;
        put_frame(&scene, THIRD, 0, SECOND, scene.layout.owner_boundary);
        put_frame(&scene, FOURTH, GENERATOR, THIRD, scene.layout.owner_generator);
        set_newest(&scene, FOURTH);
        assert_string_equal(climb(&scene), "whole main@4;work@4;values@4");
        set_newest(&scene, THIRD); /* C that is about to call Python, or just has */
        assert_string_equal(climb(&scene), "whole main@4;work@4");
        put_frame(&scene, THIRD, 0, SECOND, 77); /* no owner that there is */
        assert_string_equal(climb(&scene), "no");
    }
}

static void test_rule_4_only_the_newest_may_be_unfinished(void **state)
{
    (void)state;
    EACH_LAYOUT(scene)
    {
        if (scene.layout.frames == FM_FRAMES_CFRAME)
            continue; /* there, rule 1 comes first */
        put_frame(&scene, THIRD, 0x77770, SECOND, NO_OWNER);
        set_newest(&scene, THIRD);
        assert_string_equal(climb(&scene), "whole main@4;work@4");
        put_frame(&scene, FOURTH, WORK, THIRD, NO_OWNER);
        set_newest(&scene, FOURTH);
        assert_string_equal(climb(&scene), "no");
    }
}

static void test_rule_4_an_instruction_of_another_code_object(void **state)
{
    (void)state;
    EACH_LAYOUT(scene)
    {
        uint64_t far =
            scene.layout.frames == FM_FRAMES_HEAP ? 1000 : MAIN + scene.layout.code_bytecode + 64;
        put(&scene, FIRST + scene.layout.frame_instr, &far,
            scene.layout.frames == FM_FRAMES_HEAP ? 4 : 8);
        assert_string_equal(climb(&scene), "no");
    }
}

static void test_rule_5_hidden_code_is_passed_over(void **state)
{
    (void)state;
    EACH_LAYOUT(scene)
    {
        put_frame(&scene, THIRD, SHIM, SECOND, NO_OWNER);
        put_frame(&scene, FOURTH, WORK, THIRD, NO_OWNER);
        set_newest(&scene, FOURTH);
        assert_string_equal(climb(&scene), "whole main@4;work@4;work@4");
    }
}

static void test_rule_6_a_generator_that_stands_on_nothing(void **state)
{
    (void)state;
    EACH_LAYOUT(scene)
    {
        if (scene.layout.frames == FM_FRAMES_HEAP)
            continue; /* they have no owner */
        put_frame(&scene, THIRD, GENERATOR, 0, scene.layout.owner_generator);
        set_newest(&scene, THIRD);
        assert_string_equal(climb(&scene), "no");
    }
}

static void test_rule_6_a_frame_that_no_longer_executes(void **state)
{
    (void)state;
    EACH_LAYOUT(scene)
    {
        if (scene.layout.frames != FM_FRAMES_HEAP)
            continue;
        uint8_t over =
            fm_layout_minor(&scene.layout) == 9 ? 0 : 4; /* not executing; FRAME_CLEARED */
        put(&scene, FIRST + scene.layout.frame_state, &over, 1);
        assert_string_equal(climb(&scene), "no");
    }
}

static void test_a_chain_without_an_end(void **state)
{
    (void)state;
    EACH_LAYOUT(scene)
    {
        put_frame(&scene, FIRST, MAIN, SECOND, NO_OWNER);
        assert_memory_equal(climb(&scene), "cut ", 4);
    }
}

static void test_addresses_near_the_end_of_all_memory(void **state)
{
    static const fm_addr ends[] = { UINT64_MAX, UINT64_MAX - 7, UINT64_MAX << 3, 1ull << 63,
                                    1ull << 56 };
    (void)state;
    EACH_LAYOUT(scene)
    {
        for (size_t i = 0; i < FM_COUNT(ends); i++) {
            put_frame(&scene, FIRST, MAIN, ends[i], NO_OWNER);
            assert_string_equal(climb(&scene), "no");
        }
    }
}

/* It goes on where it stopped, and does not begin again. */
static void test_what_is_missing_is_asked_for(void **state)
{
    (void)state;
    EACH_LAYOUT(scene)
    {
        struct fm_climb c = { 0 };
        struct fm_climb_ground ground = { &scene.layout, scene.thread, memory, code, &scene };
        scene.is_all = false;
        scene.without = FIRST + (scene.layout.frame_code & ~7u);
        fm_climb_begin(&c);
        assert_int_equal(fm_climb_go(&c, &ground), FM_CLIMB_WANTS);
        assert_int_equal(c.want & ~7ull, scene.without);
        assert_int_equal(c.frames.len, 1);
        scene.without = MAIN;
        assert_int_equal(fm_climb_go(&c, &ground), FM_CLIMB_WANTS_CODE);
        assert_int_equal(c.want, MAIN);
        scene.without = 0;
        assert_int_equal(fm_climb_go(&c, &ground), FM_CLIMB_WHOLE);
        assert_int_equal(c.frames.len, 2);
        fm_climb_release(&c);
    }
}

/* --- saved looks ------------------------------------------------------------------------------ */

static void set_layout(struct scene *s, const char *name, unsigned value)
{
#define VALUE(field)                                                                               \
    if (strcmp(name, #field) == 0)                                                                 \
        s->layout.field = value;
    FM_LOOK_LAYOUT(VALUE)
#undef VALUE
}

static void read_line(struct scene *s, const char *line)
{
    unsigned a, b, c;
    uint64_t at, value;
    char name[64];
    if (sscanf(line, "python %u.%u.%u", &a, &b, &c) == 3)
        s->layout.version_hex = a << 24 | b << 16 | c << 8;
    else if (sscanf(line, "layout %63s %u", name, &a) == 2)
        set_layout(s, name, a);
    else if (sscanf(line, "thread %" SCNx64, &at) == 1)
        s->thread = at;
    else if (sscanf(line, "word %" SCNx64 " %" SCNx64, &at, &value) == 2)
        put_word(s, at, value);
    else if (sscanf(line, "code %" SCNx64 " %u %63[^\n]", &at, &a, name) == 3 ||
             sscanf(line, "hidden %" SCNx64 " %u %63[^\n]", &at, &a, name) == 3) {
        add_code(s, at, name, *line == 'h');
        s->codes[s->n_codes - 1].code.bytecode_len = a;
    } else if (strncmp(line, "want ", 5) == 0) {
        snprintf(s->want, sizeof s->want, "%.*s", (int)strcspn(line + 5, "\n"), line + 5);
    } else if (strncmp(line, "fathom-look 1", 13) != 0 && line[0] != '#')
        fail_msg("no line of a look: %s", line);
}

static void read_look(struct scene *s, const char *path)
{
    char line[8192];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    clear(s);
#define ABSENT(field) s->layout.field = (typeof(s->layout.field))FM_ABSENT;
    FM_LOOK_LAYOUT(ABSENT)
#undef ABSENT
    while (fgets(line, sizeof line, f))
        read_line(s, line);
    fclose(f);
    assert_true(s->n_codes > 0 && s->want[0]);
}

static void each_look(void (*check)(struct scene *s, const char *path))
{
    static struct scene s;
    glob_t found;
    assert_int_equal(glob(LOOKS "/*.look", 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= 60);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        read_look(&s, found.gl_pathv[i]);
        check(&s, found.gl_pathv[i]);
    }
    globfree(&found);
}

static void gives_its_stack(struct scene *s, const char *path)
{
    if (strcmp(climb(s), s->want) != 0)
        fail_msg("%s: %s instead of %s", path, climb(s), s->want);
}

static void test_saved_looks_give_their_stacks(void **state)
{
    (void)state;
    each_look(gives_its_stack);
}

static void asks_for_each_word(struct scene *s, const char *path)
{
    char expected[64];
    size_t asked = 0;
    for (size_t i = 0; i < s->n_words; i++) {
        s->without = s->words[i].at;
        snprintf(expected, sizeof expected, "wants 0x%" PRIx64, s->without);
        if (strcmp(climb(s), expected) != 0)
            fail_msg("%s: without the word at 0x%" PRIx64 ": %s", path, s->without, climb(s));
        asked++;
    }
    assert_true(asked > 3);
}

static void test_saved_looks_without_a_word(void **state)
{
    (void)state;
    each_look(asks_for_each_word);
}

static void asks_for_each_code(struct scene *s, const char *path)
{
    char expected[64];
    for (size_t i = 0; i < s->n_codes; i++) {
        s->without = s->codes[i].at;
        snprintf(expected, sizeof expected, "wants code 0x%" PRIx64, s->without);
        if (strcmp(climb(s), expected) != 0)
            fail_msg("%s: without the code at 0x%" PRIx64 ": %s", path, s->without, climb(s));
    }
}

static void test_saved_looks_without_a_code_object(void **state)
{
    (void)state;
    each_look(asks_for_each_code);
}

/* Whatever one word becomes, there is an answer, and no frame that is none. */
static void survives_each_change(struct scene *s, const char *path)
{
    static const uint64_t values[] = { 0, 1, 8, UINT64_MAX, UINT64_MAX << 3, 0x7fffffff };
    (void)path;
    for (size_t i = 0; i < s->n_words; i++) {
        uint64_t kept = s->words[i].value;
        for (size_t k = 0; k < FM_COUNT(values); k++) {
            s->words[i].value = values[k];
            assert_true(*climb(s));
        }
        s->words[i].value = kept;
    }
}

static void test_saved_looks_with_changed_words(void **state)
{
    (void)state;
    each_look(survives_each_change);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_functions),
        cmocka_unit_test(test_a_thread_that_runs_nothing),
        cmocka_unit_test(test_rule_1_a_record_that_is_not_filled_yet),
        cmocka_unit_test(test_rule_2_from_the_newest_frame_down),
        cmocka_unit_test(test_rule_3_frames_of_the_interpreter_are_passed_over),
        cmocka_unit_test(test_rule_4_only_the_newest_may_be_unfinished),
        cmocka_unit_test(test_rule_4_an_instruction_of_another_code_object),
        cmocka_unit_test(test_rule_5_hidden_code_is_passed_over),
        cmocka_unit_test(test_rule_6_a_generator_that_stands_on_nothing),
        cmocka_unit_test(test_rule_6_a_frame_that_no_longer_executes),
        cmocka_unit_test(test_a_chain_without_an_end),
        cmocka_unit_test(test_addresses_near_the_end_of_all_memory),
        cmocka_unit_test(test_what_is_missing_is_asked_for),
        cmocka_unit_test(test_saved_looks_give_their_stacks),
        cmocka_unit_test(test_saved_looks_without_a_word),
        cmocka_unit_test(test_saved_looks_without_a_code_object),
        cmocka_unit_test(test_saved_looks_with_changed_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

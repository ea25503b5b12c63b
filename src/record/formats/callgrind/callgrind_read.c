/*
 * Reads the callgrind format, version 1, of valgrind, pprofile, pyprof2calltree, Fathom and others.
 *
 * A file is lines of text: headers ("events: Ir"), places ("fl=", "fn=", "cfn=", each valid until
 * the next of its kind), costs ("LINE COST …") and, for calls, "calls=COUNT TARGET" with the cost
 * of the calls in the line behind it. Names may have numbers: "(7) main" defines one, "(7)" uses
 * it. Positions may be relative to those of the line before: "+3", "-1", "*".
 *
 * Of several events the first that is a time is read, in nanoseconds; else Ir, else the first, and
 * a note says what the numbers are. Lines in a file other than the function's own (inlined code)
 * count for the function, but are no lines of it. Jumps and objects' names are not kept.
 *
 * Everything is untrusted text: each line adds a bounded amount, and sums stop at their limits.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "record/formats/callgrind/callgrind.h"
#include "record/formats/callgrind/callgrind_table.h"

#define EVENTS_MAX 64
#define NO_NAME    UINT32_MAX

/* One space of numbered names. */
struct names {
    struct fm_map numbers; /* number → string id */
};

struct callgrind_reader {
    struct fm_callgrind_table t;
    const char *at, *end; /* the rest of the line being read */
    size_t line_number;
    struct names files, functions, objects;
    unsigned positions;    /* numbers before the costs: 1 or 2 */
    int line_position;     /* which of them is the line; -1 none */
    int64_t position[2];   /* of the last cost */
    int event, hits_event; /* columns; -1: not there */
    int64_t scale;         /* nanoseconds per unit of the event */
    bool own;              /* written by Fathom */
    bool summed, totalled; /* the header, the end say what all costs add up to */
    int64_t expected;      /* … by the header */
    uint32_t object, file, own_file, function;
    uint32_t called_object, called_file, called; /* NO_NAME: as the caller's; FM_NONE: none */
    bool in_call;                                /* the next cost is that of calls */
    int64_t call_count;
    uint32_t call_line;
    struct fm_error *err;
};

static int fail(struct callgrind_reader *r, const char *what)
{
    return fm_error_set(r->err, FM_DAMAGED, "line %zu: %s", r->line_number, what);
}

/* ---- words and numbers ---- */

static void skip_space(struct callgrind_reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
        r->at++;
}

static bool starts_with(const struct callgrind_reader *r, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(r->end - r->at) >= n && memcmp(r->at, text, n) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* An unsigned number, decimal or 0x…; one that is too large is the largest. */
static bool take_number(struct callgrind_reader *r, int64_t *value)
{
    int base = 10;
    if (r->end - r->at > 2 && r->at[0] == '0' && r->at[1] == 'x') {
        base = 16;
        r->at += 2;
    }
    const char *begin = r->at;
    *value = 0;
    for (; r->at < r->end; r->at++) {
        int digit = hex_digit(*r->at);
        if (digit < 0 || digit >= base)
            break;
        if (__builtin_mul_overflow(*value, base, value) ||
            __builtin_add_overflow(*value, digit, value))
            *value = INT64_MAX;
    }
    return r->at > begin && (r->at == r->end || *r->at == ' ' || *r->at == '\t');
}

/* One number of a position, relative to `last` if it says so. */
static bool take_subposition(struct callgrind_reader *r, int64_t last, int64_t *value)
{
    char sign = r->at < r->end ? *r->at : '\0';
    if (sign == '*') {
        r->at++;
        *value = last;
        return r->at == r->end || *r->at == ' ' || *r->at == '\t';
    }
    if (sign == '+' || sign == '-')
        r->at++;
    if (!take_number(r, value))
        return false;
    if (sign == '+')
        *value = fm_sum(last, *value);
    else if (sign == '-')
        *value = fm_sum(last, -*value);
    return true;
}

/* All numbers of a position; its line is returned in `line` (0 if there is none). */
static bool take_position(struct callgrind_reader *r, int64_t *position, uint32_t *line)
{
    for (unsigned i = 0; i < r->positions; i++) {
        skip_space(r);
        if (!take_subposition(r, r->position[i], &position[i]))
            return false;
    }
    int64_t number = r->line_position < 0 ? 0 : position[r->line_position];
    *line = number >= 0 && number < FM_NONE ? (uint32_t)number : 0;
    return true;
}

/* ---- names ---- */

/* A name, written out or by its number, as a string id. */
static uint32_t take_name(struct callgrind_reader *r, struct names *names)
{
    const char *begin = r->at, *p = begin + 1;
    uint64_t number = 0;
    if (begin < r->end && *begin == '(') {
        for (; p < r->end && is_digit(*p) && p - begin < 18; p++)
            number = number * 10 + (uint64_t)(*p - '0');
    }
    if (begin == r->end || *begin != '(' || p == begin + 1 || p == r->end || *p != ')')
        return fm_strings_add(r->t.p->strings, begin, (size_t)(r->end - begin));
    r->at = p + 1;
    skip_space(r);
    uint32_t *string = fm_map_at(&names->numbers, number, 0, NULL);
    if (r->at < r->end)
        *string = fm_strings_add(r->t.p->strings, r->at, (size_t)(r->end - r->at));
    return *string;
}

static void set_function(struct callgrind_reader *r)
{
    uint32_t name = take_name(r, &r->functions);
    r->function = fm_callgrind_function_at(&r->t, r->object, r->file, name);
    r->own_file = r->file;
}

static void set_called(struct callgrind_reader *r)
{
    uint32_t name = take_name(r, &r->functions);
    uint32_t object = r->called_object == NO_NAME ? r->object : r->called_object;
    uint32_t file = r->called_file == NO_NAME ? r->file : r->called_file;
    r->called = fm_callgrind_function_at(&r->t, object, file, name);
}

static int set_calls(struct callgrind_reader *r)
{
    int64_t target[2];
    if (r->function == FM_NONE || r->called == FM_NONE)
        return fail(r, "calls of no function");
    if (!take_number(r, &r->call_count))
        return fail(r, "a number of calls is none");
    skip_space(r);
    r->call_line = FM_NONE;
    if (r->at < r->end && !take_position(r, target, &r->call_line))
        return fail(r, "a position is none");
    if (r->line_position < 0)
        r->call_line = FM_NONE;
    r->in_call = true;
    return 0;
}

/* ---- headers ---- */

/* The next word of the line; false at its end. */
static bool take_word(struct callgrind_reader *r, const char **word, size_t *len)
{
    skip_space(r);
    *word = r->at;
    while (r->at < r->end && *r->at != ' ' && *r->at != '\t')
        r->at++;
    *len = (size_t)(r->at - *word);
    return *len > 0;
}

static bool word_is(const char *word, size_t len, const char *text)
{
    return len == strlen(text) && strncasecmp(word, text, len) == 0;
}

static void set_positions(struct callgrind_reader *r)
{
    const char *word;
    size_t len;
    r->positions = 0;
    r->line_position = -1;
    while (r->positions < 2 && take_word(r, &word, &len)) {
        if (word_is(word, len, "line"))
            r->line_position = (int)r->positions;
        r->positions++;
    }
    if (!r->positions)
        r->positions = 1;
    r->t.no_lines = r->line_position < 0;
}

static int64_t unit_ns(const char *word, size_t len)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {
        { "ns", 1 },         { "nanoseconds", 1 },        { "us", 1000 },
        { "usec", 1000 },    { "microseconds", 1000 },    { "ms", 1000000 },
        { "msec", 1000000 }, { "milliseconds", 1000000 },
    };
    for (size_t i = 0; i < FM_COUNT(units); i++)
        if (word_is(word, len, units[i].name))
            return units[i].ns;
    return 0;
}

static int set_events(struct callgrind_reader *r)
{
    const char *word;
    size_t len;
    bool is_ir = false;
    fm_autobuffer name = FM_BUFFER_INIT;
    r->event = r->hits_event = -1;
    r->scale = 0;
    for (int i = 0; take_word(r, &word, &len); i++) {
        if (i >= EVENTS_MAX)
            return fail(r, "more events than there can be");
        int64_t ns = unit_ns(word, len);
        bool ir = word_is(word, len, "Ir");
        if (word_is(word, len, FM_CALLGRIND_HITS))
            r->hits_event = i;
        if (r->scale || (!ns && !ir && r->event >= 0) || (!ns && is_ir))
            continue;
        r->event = i;
        r->scale = ns;
        is_ir = ir;
        fm_buffer_clear(&name);
        fm_buffer_addf(&name, "the numbers are %.*s, not nanoseconds", len > 40 ? 40 : (int)len,
                       word);
    }
    if (r->event < 0)
        return fail(r, "there are no events");
    if (!r->scale) {
        r->scale = 1;
        fm_profile_note(r->t.p, FM_NONE, "unit", 0, fm_buffer_text(&name));
    }
    if (r->own && r->hits_event < 0)
        r->t.no_lines = true; /* it had none: all is on the first lines */
    return 0;
}

/* What all costs add up to, if the header says so: a file that was cut off has less. */
static void set_summary(struct callgrind_reader *r)
{
    int64_t value = 0;
    if (r->event < 0)
        return;
    for (int i = 0; i <= r->event; i++) {
        skip_space(r);
        if (!take_number(r, &value))
            return;
    }
    if (__builtin_mul_overflow(value, r->scale, &value))
        value = INT64_MAX;
    r->expected = fm_sum(r->expected, value);
    r->summed = true;
}

static int read_header(struct callgrind_reader *r)
{
    static const char *const names[] = { "positions:", "events:",  "creator:", "summary:",
                                         "cmd:",       "version:", "totals:" };
    size_t i = 0;
    while (i < FM_COUNT(names) && !starts_with(r, names[i]))
        i++;
    if (i == FM_COUNT(names))
        return 0; /* pid:, part:, desc:, event: and whatever else there may be */
    r->at += strlen(names[i]);
    skip_space(r);
    if (i == 0) {
        set_positions(r);
    } else if (i == 1) {
        return set_events(r);
    } else if (i == 2) {
        r->t.pprofile = starts_with(r, "pprofile");
        r->own = starts_with(r, FM_CALLGRIND_CREATOR " ");
    } else if (i == 3) {
        set_summary(r);
    } else if (i == 4) {
        fm_autofree char *command = fm_strndup(r->at, (size_t)(r->end - r->at));
        if (*command && !fm_profile_fact_get(r->t.p, "command"))
            fm_profile_fact(r->t.p, "command", command);
    } else if (i == 6) {
        r->totalled = true;
    } else {
        int64_t version;
        if (!take_number(r, &version) || version != 1)
            return fm_error_set(r->err, FM_NEWER, "callgrind format of a version that is not 1");
    }
    return 0;
}

/* ---- the body ---- */

static int read_cost(struct callgrind_reader *r)
{
    int64_t position[2] = { 0, 0 }, cost = 0, hits = 0, value;
    uint32_t line;
    if (!take_position(r, position, &line))
        return fail(r, "a position is none");
    memcpy(r->position, position, sizeof position);
    if (r->event < 0)
        return fail(r, "a cost before the list of events");
    for (int i = 0; i < EVENTS_MAX; i++) {
        skip_space(r);
        if (r->at == r->end)
            break;
        if (!take_number(r, &value))
            return fail(r, "a cost is none");
        if (i == r->event)
            cost = value;
        if (i == r->hits_event)
            hits = value;
    }
    if (r->function == FM_NONE)
        return fail(r, "a cost of no function");
    if (__builtin_mul_overflow(cost, r->scale, &cost))
        cost = INT64_MAX;
    bool own_line = r->line_position >= 0 && r->file == r->own_file;
    if (!r->in_call) {
        fm_callgrind_add_cost(&r->t, r->function, own_line ? line : FM_NONE, cost, hits);
        return 0;
    }
    fm_callgrind_add_calls(&r->t, r->function, own_line ? line : FM_NONE, r->called, r->call_line,
                           r->call_count, cost);
    r->in_call = false;
    r->called_object = r->called_file = NO_NAME;
    return 0;
}

/* "key=value": 1 if it was one. */
static int read_place(struct callgrind_reader *r)
{
    static const char *const keys[] = {
        "fl=",  "fi=",  "fe=",  "fn=",  "ob=",    "cfi=",  "cfl=",
        "cfn=", "cob=", "jfi=", "jfn=", "calls=", "jump=", "jcnd="
    };
    size_t i = 0;
    while (i < FM_COUNT(keys) && !starts_with(r, keys[i]))
        i++;
    if (i == FM_COUNT(keys))
        return 0;
    if (r->in_call)
        return fail(r, "calls without their cost");
    r->at += strlen(keys[i]);
    if (i <= 2)
        r->file = take_name(r, &r->files);
    else if (i == 3)
        set_function(r);
    else if (i == 4)
        r->object = take_name(r, &r->objects);
    else if (i <= 6)
        r->called_file = take_name(r, &r->files);
    else if (i == 7)
        set_called(r);
    else if (i == 8)
        r->called_object = take_name(r, &r->objects);
    else if (i == 9)
        take_name(r, &r->files); /* only for the number it may define */
    else if (i == 10)
        take_name(r, &r->functions);
    else if (i == 11 && set_calls(r) < 0)
        return r->err->status;
    return 1;
}

static int read_line(struct callgrind_reader *r)
{
    if (r->end > r->at && r->end[-1] == '\r')
        r->end--;
    skip_space(r);
    if (r->at == r->end || *r->at == '#')
        return 0;
    if (is_digit(*r->at) || *r->at == '+' || *r->at == '-' || *r->at == '*')
        return read_cost(r);
    int place = read_place(r);
    if (place)
        return place < 0 ? place : 0;
    if (memchr(r->at, ':', (size_t)(r->end - r->at)))
        return read_header(r);
    return fail(r, "neither a header nor a place nor a cost");
}

static int read_all(struct callgrind_reader *r, const char *bytes, size_t len)
{
    const char *end = bytes + len;
    while (bytes < end) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        r->at = bytes;
        r->end = newline ? newline : end;
        bytes = newline ? newline + 1 : end;
        r->line_number++;
        if (read_line(r) < 0)
            return r->err->status;
    }
    if (r->event < 0)
        return fail(r, "there are no events");
    return r->in_call ? fail(r, "the file ends between calls and their cost") : 0;
}

/* valgrind's header may be off by a little, but then its last line is there. */
static void check_sum(struct callgrind_reader *r)
{
    int64_t sum = 0;
    for (size_t i = 0; i < r->t.functions.len; i++)
        sum = fm_sum(sum, r->t.functions.data[i].self);
    if (r->summed && !r->totalled && sum < r->expected)
        fm_profile_note(r->t.p, FM_NONE, "cut-off", 1,
                        "the file holds less than its header says: its end is missing");
}

bool fm_callgrind_recognise(const void *bytes, size_t len)
{
    static const char mark[] = "# callgrind format";
    const char *text = bytes;
    size_t look = len < 65536 ? len : 65536;
    if (len >= sizeof mark - 1 && memcmp(text, mark, sizeof mark - 1) == 0)
        return true;
    if (look && memchr(text, '\0', look))
        return false;
    return (look > 8 && memcmp(text, "version:", 8) == 0 && memmem(text, look, "\nevents:", 8)) ||
           (look > 7 && memcmp(text, "events:", 7) == 0 && memmem(text, look, "\nfn=", 4));
}

struct fm_profile *fm_callgrind_load(const void *bytes, size_t len, const char *name,
                                     struct fm_error *err)
{
    struct callgrind_reader r = { .t = { .p = fm_profile_new() },
                                  .positions = 1,
                                  .event = -1,
                                  .hits_event = -1,
                                  .function = FM_NONE,
                                  .called = FM_NONE,
                                  .called_object = NO_NAME,
                                  .called_file = NO_NAME,
                                  .err = err };
    int status = read_all(&r, bytes, len);
    if (status == 0) {
        check_sum(&r);
        fm_callgrind_settle(&r.t);
    }
    fm_callgrind_table_release(&r.t);
    fm_map_release(&r.files.numbers);
    fm_map_release(&r.functions.numbers);
    fm_map_release(&r.objects.numbers);
    if (status == 0)
        return r.t.p;
    fm_error_context(err, "reading %s", name);
    fm_profile_free(r.t.p);
    return NULL;
}

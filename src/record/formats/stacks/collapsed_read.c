/*
 * Reads collapsed stacks of flamegraph.pl's scripts, inferno, py-spy, austin, Python's own sampler
 * and Fathom: lines of "frame;frame;frame NUMBER" from the root to the leaf.
 *
 * Frames are "name (file:line)", "name (file)", "file:name:line" or just a name. In front may stand
 * processes and a thread: `process 12:"command"` and `thread (34): name` of py-spy, P12;T0:34 of
 * austin, tid:34 of Python's sampler. austin's files begin with "# key: value" and have
 * microseconds, one line a sample; with -f also whether the thread was idle, and memory. With two
 * numbers on every line (difffolded.pl) the second is read. A stack without frames, or with the one
 * by which Fathom says so, is the thread's own.
 *
 * A file that begins with "# metric: peak", or another metric of memory, has its numbers: lines are contexts then.
 *
 * Everything else is a count of unknown unit, taken for samples.
 *
 * Untrusted: every line adds a bounded amount, sums stop at their limits.
 */
#include <string.h>

#include "base/memory.h"
#include "record/formats/stacks/collapsed.h"
#include "record/formats/stacks/stacks.h"

#define LOOK_BYTES 65536

struct collapsed_frame {
    uint32_t function, line;
};

struct collapsed_reader {
    struct fm_stacks s;
    struct fm_strings *texts;              /* of frames, which a file repeats over and over … */
    struct fm_map frame_index;             /* (surely austin's, text) → … */
    FM_VEC(struct collapsed_frame) frames; /* … what it means */
    size_t line_number;
    bool austin;           /* has its headers */
    bool bytes;            /* … and measured memory */
    bool cpu;              /* … or processor time */
    bool two;              /* two numbers a line */
    enum fm_metric memory; /* what the numbers are; FM_METRIC_COUNT: no memory */
    uint64_t interval_ns;
    const char *at, *end; /* the rest of the line */
    struct fm_error *err;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The next line without its end; false at the end of the file. */
static bool next_line(const char **at, const char *end, const char **line, const char **line_end)
{
    if (*at >= end)
        return false;
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    *line = *at;
    *line_end = newline ? newline : end;
    *at = newline ? newline + 1 : end;
    if (*line_end > *line && (*line_end)[-1] == '\r')
        --*line_end;
    return true;
}

/* " 12" or " 12.5" or austin's " 12,0,34" at the end: where the space is, or NULL. */
static const char *find_number(const char *line, const char *end)
{
    const char *begin = end;
    while (begin > line &&
           (is_digit(begin[-1]) || begin[-1] == '.' || begin[-1] == ',' || begin[-1] == '-'))
        begin--;
    if (begin == end || begin == line || (begin[-1] != ' ' && begin[-1] != '\t') ||
        !(is_digit(*begin) || (*begin == '-' && begin + 1 < end && is_digit(begin[1]))))
        return NULL;
    return begin - 1;
}

/* The number at `at`, rounded; beyond 64 bits, the largest. */
static int64_t take_number(const char *at, const char *end)
{
    bool negative = at < end && *at == '-';
    int64_t value = 0;
    for (at += negative; at < end && is_digit(*at); at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *at - '0', &value))
            value = INT64_MAX;
    if (end - at >= 2 && *at == '.' && at[1] >= '5' && at[1] <= '9')
        value = fm_sum(value, 1);
    return negative ? -value : value;
}

static bool is_comment(const char *line, const char *end)
{
    return line == end || *line == '#';
}

/* ---- recognising ---- */

bool fm_collapsed_recognise(const void *bytes, size_t len)
{
    const char *at = bytes, *end, *line, *line_end;
    size_t stacks = 0, look = len < LOOK_BYTES ? len : LOOK_BYTES;
    if (len == 0 || memchr(bytes, '\0', look))
        return false;
    end = at + look;
    if (len > 10 && memcmp(bytes, "# austin: ", 10) == 0)
        return true;
    while (next_line(&at, end, &line, &line_end)) {
        if (at == end && len > LOOK_BYTES && stacks)
            break; /* may be cut in its middle */
        if (is_comment(line, line_end))
            continue;
        if (!find_number(line, line_end))
            return len > LOOK_BYTES && at == end && memchr(line, ';', (size_t)(line_end - line));
        stacks++;
    }
    return stacks > 0;
}

/* Two numbers on every line? */
static bool is_differential(const char *at, const char *end)
{
    const char *line, *line_end;
    bool any = false;
    while (next_line(&at, end, &line, &line_end)) {
        const char *number = is_comment(line, line_end) ? NULL : find_number(line, line_end);
        if (!number)
            continue;
        if (!find_number(line, number))
            return false;
        any = true;
    }
    return any;
}

/* ---- processes and threads ---- */

/* Take `text` off the front. */
static bool take_text(struct collapsed_reader *r, const char *text)
{
    size_t n = strlen(text);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, text, n) != 0)
        return false;
    r->at += n;
    return true;
}

/* A number, decimal or 0x…; only its lower half is kept if it is an address. */
static bool take_id(struct collapsed_reader *r, uint32_t *id)
{
    uint64_t value = 0;
    const char *begin = r->at;
    if (take_text(r, "0x") || take_text(r, "0X")) {
        for (begin = r->at; r->at < r->end; r->at++) {
            char c = *r->at;
            int digit = is_digit(c)                          ? c - '0'
                        : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                             : -1;
            if (digit < 0)
                break;
            value = value << 4 | (uint64_t)digit;
        }
    } else {
        for (; r->at < r->end && is_digit(*r->at); r->at++)
            value = value * 10 + (uint64_t)(*r->at - '0');
    }
    *id = (uint32_t)value;
    return r->at > begin;
}

/* The end of a frame: the semicolon is taken, too. */
static bool take_end(struct collapsed_reader *r)
{
    if (r->at < r->end && *r->at != ';')
        return false;
    r->at += r->at < r->end;
    return true;
}

/* The rest of the frame as a string id. One in quotes ends behind the second: it may hold
 * semicolons. */
static uint32_t take_rest(struct collapsed_reader *r, bool quoted)
{
    size_t left = (size_t)(r->end - r->at);
    const char *begin = r->at, *end = quoted ? memmem(begin, left, "\";", 2) : NULL;
    if (quoted && !end && left && r->end[-1] == '"')
        end = r->end - 1;
    if (end) {
        r->at = end + 1;
    } else {
        end = memchr(begin, ';', left);
        r->at = end = end ? end : r->end;
    }
    return fm_strings_add(r->s.p->strings, begin, (size_t)(end - begin));
}

static uint32_t take_process(struct collapsed_reader *r)
{
    uint32_t pid, parent = 0, process = FM_NONE;
    for (;;) {
        const char *begin = r->at;
        if (!take_text(r, "process ") || !take_id(r, &pid) || !take_text(r, ":\"")) {
            r->at = begin;
            return process;
        }
        process = fm_stacks_process(&r->s, pid);
        r->s.p->processes.data[process].command = take_rest(r, true);
        r->s.p->processes.data[process].parent_pid = parent;
        parent = pid;
        take_end(r);
    }
}

/* P12;T0:34 */
static bool take_austin_thread(struct collapsed_reader *r, uint32_t *pid, uint32_t *tid)
{
    const char *begin = r->at;
    if (take_text(r, "P") && take_id(r, pid) && take_end(r) && take_text(r, "T") &&
        take_id(r, tid)) {
        if (take_text(r, ":") && !take_id(r, tid))
            *tid = 0;
        if (take_end(r))
            return true;
    }
    r->at = begin;
    return false;
}

/* Takes what is in front of the frames off; *austin if they will look like austin's. */
static uint32_t take_thread(struct collapsed_reader *r, bool *austin)
{
    uint32_t pid = 0, tid = 0, name = 0, process;
    *austin = r->austin;
    if (take_austin_thread(r, &pid, &tid)) {
        *austin = true;
        return fm_stacks_thread(&r->s, fm_stacks_process(&r->s, pid), tid, 0);
    }
    process = take_process(r);
    const char *begin = r->at;
    if (take_text(r, "thread (") && take_id(r, &tid) && take_text(r, ")")) {
        if (take_text(r, ": "))
            name = take_rest(r, false);
        take_end(r);
    } else {
        r->at = begin;
        *austin = take_text(r, "tid:") && take_id(r, &tid) && take_end(r);
        if (!*austin) {
            r->at = begin;
            tid = 0;
        }
    }
    if (process == FM_NONE)
        process = fm_stacks_process(&r->s, 0);
    return fm_stacks_thread(&r->s, process, tid, name);
}

/* ---- lines ---- */

/* Only in front of the stacks, as these become another tree. */
static void take_metric(struct collapsed_reader *r)
{
    fm_autofree char *name = fm_strndup(r->at, (size_t)(r->end - r->at));
    enum fm_metric metric = fm_metric_named(name);
    if (r->s.stacks || metric == FM_METRIC_COUNT ||
        fm_metric_info(metric)->place != FM_PLACE_MEMORY)
        return;
    r->memory = metric;
    r->s.lined = true;
}

static void take_header(struct collapsed_reader *r)
{
    if (take_text(r, "# metric: ")) {
        take_metric(r);
        return;
    }
    if (take_text(r, "# austin: ")) {
        r->austin = true;
    } else if (take_text(r, "# interval: ")) {
        int64_t interval = take_number(r->at, r->end);
        r->interval_ns = interval > 0 && interval < 1000000000 ? (uint64_t)interval * 1000 : 0;
    } else if (take_text(r, "# mode: ")) {
        r->bytes = take_text(r, "memory");
        r->cpu = take_text(r, "cpu");
    }
}

/* A frame is taken apart once. */
static struct collapsed_frame frame_of(struct collapsed_reader *r, const char *text, size_t len,
                                       bool austin)
{
    uint32_t id = fm_strings_add(r->texts, text, len);
    uint64_t key = fm_map_pair(austin, id);
    bool is_new;
    uint32_t at = *fm_map_at(&r->frame_index, key, (uint32_t)r->frames.len, &is_new);
    if (is_new) {
        struct collapsed_frame frame;
        frame.function = fm_stacks_frame(&r->s, text, len, austin, &frame.line);
        fm_vec_push(&r->frames, frame);
    }
    return r->frames.data[at];
}

/* Is all that is left the frame that stands for none? */
static bool is_no_frame(const struct collapsed_reader *r)
{
    size_t len = strlen(FM_COLLAPSED_NO_FRAME);
    return (size_t)(r->end - r->at) == len && memcmp(r->at, FM_COLLAPSED_NO_FRAME, len) == 0;
}

static int read_stack(struct collapsed_reader *r)
{
    const char *number = find_number(r->at, r->end);
    bool austin;
    if (!number)
        return fm_error_set(r->err, FM_DAMAGED,
                            "line %zu: a stack does not end in a space and a number",
                            r->line_number);
    int64_t value = take_number(number + 1, r->end), samples = r->austin ? 1 : value;
    if (value < 0 && !r->bytes)
        return fm_error_set(r->err, FM_DAMAGED, "line %zu: a number is below zero", r->line_number);
    if (r->austin && !r->bytes && __builtin_mul_overflow(value, 1000, &value))
        value = INT64_MAX;
    if (r->two)
        number = find_number(r->at, number);
    r->end = number;
    uint32_t thread = take_thread(r, &austin);
    fm_stacks_begin(&r->s, thread, r->s.lined ? 0 : samples, r->s.lined ? 0 : value);
    if (is_no_frame(r))
        r->at = r->end; /* the thread's own */
    while (r->at < r->end) {
        const char *stop = memchr(r->at, ';', (size_t)(r->end - r->at));
        stop = stop ? stop : r->end;
        struct collapsed_frame frame = frame_of(r, r->at, (size_t)(stop - r->at), austin);
        fm_stacks_push(&r->s, frame.function, frame.line);
        r->at = stop + (stop < r->end);
    }
    uint32_t node = fm_stacks_end(&r->s);
    if (r->s.lined)
        fm_profile_add(r->s.p, r->memory, node, value);
    return 0;
}

static int read_all(struct collapsed_reader *r, const char *bytes, size_t len)
{
    const char *at = bytes, *end = bytes + len;
    r->two = is_differential(bytes, end);
    while (next_line(&at, end, &r->at, &r->end)) {
        r->line_number++;
        if (is_comment(r->at, r->end))
            take_header(r);
        else if (read_stack(r) < 0)
            return r->err->status;
    }
    if (r->two)
        fm_profile_note(r->s.p, FM_NONE, "unit", 0,
                        "the file compares two runs: the second is shown");
    return 0;
}

static void finish(struct collapsed_reader *r)
{
    struct fm_profile *p = r->s.p;
    if (r->bytes && !r->s.lined)
        fm_stacks_unit(&r->s, "bytes", 5);
    else if (!r->austin && !r->s.lined)
        fm_stacks_unit(&r->s, "samples", 7);
    fm_stacks_settle(&r->s);
    for (size_t i = 0; i < p->processes.len; i++) {
        p->processes.data[i].sample_interval_ns = r->interval_ns;
        p->processes.data[i].sample_mode = r->cpu ? FM_SAMPLE_CPU : FM_SAMPLE_WALL;
    }
    if (r->s.lined)
        fm_stacks_of_memory(&r->s);
}

struct fm_profile *fm_collapsed_load(const void *bytes, size_t len, const char *name,
                                     struct fm_error *err)
{
    struct collapsed_reader r = { .err = err,
                                  .texts = fm_strings_new(),
                                  .memory = FM_METRIC_COUNT };
    fm_stacks_init(&r.s);
    int status = len ? read_all(&r, bytes, len) : 0;
    if (status == 0)
        finish(&r);
    fm_stacks_release(&r.s);
    fm_strings_free(r.texts);
    fm_map_release(&r.frame_index);
    fm_vec_release(&r.frames);
    if (status == 0)
        return r.s.p;
    fm_error_context(err, "reading %s", name);
    fm_profile_free(r.s.p);
    return NULL;
}

/*
 * The files of memory_profiler's `mprof`: mprofile_*.dat, lines of text.
 *
 *     CMDLINE python app.py
 *     MEM 12.345678 1700000000.1234              MiB of the program, seconds since the epoch
 *     CHLD 4711 3.500000 1700000000.1234         … of a process below it
 *     FUNC app.work 12.3456 1700000000.1234 50.1234 1700000001.1234 0
 *                                                a call: MiB and time at its begin and end, and how
 *                                                many are around it (older files do not say)
 *
 * Reading: MEM and FUNC are of the first process, whose number is not known; each CHLD is a process.
 * Times are since the epoch, and taken for the machine's clock as well. Lines of other kinds are
 * passed over, as mprof does; one that is cut off ends the file (FUNC lines come at the end of a
 * program, so files of killed ones are whole up to there).
 *
 * Writing: the process that was looked at first is the program. mprof's numbers have six (of
 * calls four) digits behind the point, times four; bytes and tenths of milliseconds come back from
 * them as they were.
 *
 * Untrusted: each line adds one point, numbers are bounded.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "record/formats/format.h"

#define MIB        1048576.0
#define MOST_MIB   8.0e12 /* what 63 bits of bytes hold */
#define WORDS_MAX  8
#define LOOK_BYTES 4096
#define TICK_NS    100000u /* what mprof writes of times */

struct mprofile_word {
    const char *at;
    size_t len;
};

struct mprofile_reader {
    struct fm_profile *p;
    struct fm_map children; /* number → process */
};

/* ---- reading ---- */

static size_t split(const char *line, const char *end, struct mprofile_word *words)
{
    size_t n = 0;
    while (line < end && n < WORDS_MAX) {
        while (line < end && *line == ' ')
            line++;
        const char *space = memchr(line, ' ', (size_t)(end - line));
        const char *stop = space ? space : end;
        if (stop > line)
            words[n++] = (struct mprofile_word){ line, (size_t)(stop - line) };
        line = stop;
    }
    return n;
}

static bool is_word(const struct mprofile_word *word, const char *text)
{
    return word->len == strlen(text) && strncmp(word->at, text, word->len) == 0;
}

static bool number_of(const struct mprofile_word *word, double most, double *ret)
{
    char text[64], *end;
    if (word->len >= sizeof text)
        return false;
    memcpy(text, word->at, word->len);
    text[word->len] = '\0';
    *ret = strtod(text, &end);
    return end == text + word->len && end > text && *ret >= -1 && *ret <= most;
}

static bool bytes_of(const struct mprofile_word *word, int64_t *ret)
{
    double mib;
    if (!number_of(word, MOST_MIB, &mib))
        return false;
    *ret = mib < 0 ? -1 : llround(mib * MIB);
    return true;
}

static bool time_of(const struct mprofile_word *word, uint64_t *ret)
{
    double seconds;
    if (!number_of(word, 9e9, &seconds) || seconds < 0)
        return false;
    *ret = (uint64_t)llround(seconds * (1e9 / TICK_NS)) * TICK_NS;
    return true;
}

static void add_point(struct mprofile_reader *r, uint32_t process, int64_t bytes, uint64_t at_ns)
{
    struct fm_process *owner = &r->p->processes.data[process];
    if (!owner->start_ns || at_ns < owner->start_ns)
        owner->start_ns = owner->start_real_ns = at_ns;
    if (at_ns > owner->end_ns)
        owner->end_ns = at_ns;
    struct fm_memory_point point = { process, at_ns, -1, bytes, -1, -1, -1, -1 };
    fm_vec_push(&r->p->memory.points, point);
}

static uint32_t child_of(struct mprofile_reader *r, const struct mprofile_word *word)
{
    double number;
    if (!number_of(word, 4294967295.0, &number) || number < 0)
        return FM_NONE;
    bool is_new;
    uint32_t *at = fm_map_at(&r->children, (uint64_t)number, 0, &is_new);
    if (is_new)
        *at = fm_profile_process(
            r->p, &(struct fm_process){ .pid = (uint32_t)number, .exit_status = -1 });
    return *at;
}

static bool read_mark(struct mprofile_reader *r, const struct mprofile_word *words, size_t n)
{
    double level = -1;
    struct fm_memory_mark mark = { .process = 0, .level = FM_MARK_NO_LEVEL };
    if (n < 6 || !bytes_of(&words[2], &mark.begin_bytes) || !time_of(&words[3], &mark.begin_ns) ||
        !bytes_of(&words[4], &mark.end_bytes) || !time_of(&words[5], &mark.end_ns))
        return false;
    if (n > 6 && number_of(&words[6], 1e6, &level) && level >= 0)
        mark.level = (uint32_t)level;
    mark.name = fm_strings_add(r->p->strings, words[1].at, words[1].len);
    fm_vec_push(&r->p->memory.marks, mark);
    return true;
}

static bool read_line(struct mprofile_reader *r, const char *line, const char *end)
{
    struct mprofile_word words[WORDS_MAX];
    size_t n = split(line, end, words);
    int64_t bytes;
    uint64_t at_ns;
    if (n && is_word(&words[0], "MEM")) {
        if (n < 3 || !bytes_of(&words[1], &bytes) || !time_of(&words[2], &at_ns))
            return false;
        add_point(r, 0, bytes, at_ns);
    } else if (n && is_word(&words[0], "CHLD")) {
        if (n < 4 || !bytes_of(&words[2], &bytes) || !time_of(&words[3], &at_ns))
            return false;
        uint32_t child = child_of(r, &words[1]);
        if (child == FM_NONE)
            return false;
        add_point(r, child, bytes, at_ns);
    } else if (n && is_word(&words[0], "FUNC")) {
        return read_mark(r, words, n);
    } else if (n > 1 && is_word(&words[0], "CMDLINE")) {
        fm_autofree char *command = fm_strndup(words[1].at, (size_t)(end - words[1].at));
        fm_profile_fact(r->p, "command", command);
        r->p->processes.data[0].command = fm_profile_string(r->p, command);
    }
    return true;
}

static bool begins_with(const char *line, const char *end, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(end - line) >= n && strncmp(line, text, n) == 0;
}

/* A whole line as mprof writes it at the very start; calls may come first: the program writes them,
 * when it ends, into a file that mprof has not filled yet. */
static bool recognise(const void *bytes, size_t len)
{
    static const struct {
        const char *name;
        size_t words, time;
    } kinds[] = { { "MEM ", 3, 2 }, { "CHLD ", 4, 3 }, { "FUNC ", 6, 3 } };
    const char *line = bytes, *end = line + len;
    const char *newline = memchr(line, '\n', len < LOOK_BYTES ? len : LOOK_BYTES);
    struct mprofile_word words[WORDS_MAX];
    uint64_t at_ns;
    if (begins_with(line, end, "CMDLINE "))
        return !newline || newline + 1 == end || begins_with(newline + 1, end, "MEM ") ||
               begins_with(newline + 1, end, "CHLD ") || begins_with(newline + 1, end, "FUNC ");
    for (size_t i = 0; i < FM_COUNT(kinds) && newline; i++)
        if (begins_with(line, end, kinds[i].name))
            return split(line, newline, words) >= kinds[i].words &&
                   time_of(&words[kinds[i].time], &at_ns);
    return false;
}

static int compare_points(const void *a, const void *b)
{
    const struct fm_memory_point *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

static struct fm_profile *load(const void *bytes, size_t len, const char *name,
                               struct fm_error *err)
{
    struct mprofile_reader r = { .p = fm_profile_new() };
    const char *at = bytes, *end = at + len;
    bool whole = true;
    fm_profile_process(r.p, &(struct fm_process){ .exit_status = -1 });
    while (at < end && whole) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        whole = read_line(&r, at, stop > at && stop[-1] == '\r' ? stop - 1 : stop);
        at = newline ? newline + 1 : end;
    }
    fm_map_release(&r.children);
    if (!whole && at < end) {
        fm_profile_free(r.p);
        fm_error_set(err, FM_DAMAGED, "reading %s: a line is not as mprof writes it", name);
        return NULL;
    }
    if (!whole)
        fm_profile_note(r.p, FM_NONE, "cut-off", 1, "the last line was cut off");
    struct fm_memory *memory = &r.p->memory;
    if (memory->points.len)
        qsort(memory->points.data, memory->points.len, sizeof *memory->points.data, compare_points);
    fm_profile_fact(r.p, "collectors", "resident memory");
    return r.p;
}

/* ---- writing ---- */

/* Nanoseconds since the epoch, of the machine's clock. */
static uint64_t real_ns(const struct fm_profile *p, uint32_t process, uint64_t at_ns)
{
    const struct fm_process *owner =
        process < p->processes.len ? &p->processes.data[process] : NULL;
    return owner && owner->start_real_ns ? at_ns - owner->start_ns + owner->start_real_ns : at_ns;
}

static void add_number(struct fm_buffer *out, int digits, int64_t bytes, uint64_t at_ns)
{
    uint64_t ticks = at_ns / TICK_NS + (at_ns % TICK_NS >= TICK_NS / 2);
    fm_buffer_addf(out, " %.*f %" PRIu64 ".%04u", digits, (double)bytes / MIB, ticks / 10000,
                   (unsigned)(ticks % 10000));
}

/* What would end the line, or the word, becomes a space or an underscore. */
static void add_one_line(struct fm_buffer *out, const char *text, const char *ends)
{
    for (; *text; text++)
        fm_buffer_add_char(out, !strchr(ends, *text) ? *text : ends[1] ? '_' : ' ');
}

/* By time, and those of one look in the order of processes. */
static int compare_times(const void *a, const void *b)
{
    const struct fm_memory_point *x = *(const struct fm_memory_point *const *)a;
    const struct fm_memory_point *y = *(const struct fm_memory_point *const *)b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return x->process < y->process ? -1 : x->process > y->process;
}

static int save(const struct fm_profile *p, struct fm_buffer *out, struct fm_error *err)
{
    FM_VEC(const struct fm_memory_point *) points = { 0 };
    for (size_t i = 0; i < p->memory.points.len; i++)
        if (p->memory.points.data[i].process < p->processes.len &&
            p->memory.points.data[i].rss >= 0)
            fm_vec_push(&points, &p->memory.points.data[i]);
    if (!points.len)
        return fm_error_set(err, FM_UNSUPPORTED,
                            "the recording has no memory over time: record it with --rss or "
                            "--memory");
    qsort(points.data, points.len, sizeof *points.data, compare_times);
    uint32_t program = points.data[0]->process;
    const char *command = fm_profile_fact_get(p, "command");
    fm_buffer_add_text(out, "CMDLINE ");
    add_one_line(out, command ? command : fm_profile_text(p, p->processes.data[program].command),
                 "\n");
    fm_buffer_add_char(out, '\n');
    for (size_t i = 0; i < points.len; i++) {
        const struct fm_memory_point *point = points.data[i];
        const struct fm_process *owner = &p->processes.data[point->process];
        if (owner->pid == p->processes.data[program].pid)
            fm_buffer_add_text(out, "MEM");
        else
            fm_buffer_addf(out, "CHLD %u", owner->pid);
        add_number(out, 6, point->rss, real_ns(p, point->process, point->at_ns));
        fm_buffer_add_char(out, '\n');
    }
    for (size_t i = 0; i < p->memory.marks.len; i++) {
        const struct fm_memory_mark *mark = &p->memory.marks.data[i];
        fm_buffer_add_text(out, "FUNC ");
        add_one_line(out, fm_profile_text(p, mark->name), "\n ");
        add_number(out, 4, mark->begin_bytes, real_ns(p, mark->process, mark->begin_ns));
        add_number(out, 4, mark->end_bytes, real_ns(p, mark->process, mark->end_ns));
        if (mark->level != FM_MARK_NO_LEVEL)
            fm_buffer_addf(out, " %u", mark->level);
        fm_buffer_add_char(out, '\n');
    }
    fm_vec_release(&points);
    return 0;
}

static const char *const suffixes[] = { ".dat", NULL };

const struct fm_format fm_format_mprofile = {
    .name = "mprofile",
    .title = "memory_profiler's mprof",
    .suffixes = suffixes,
    .prefix = "mprofile_",
    .recognise = recognise,
    .load = load,
    .save = save,
};

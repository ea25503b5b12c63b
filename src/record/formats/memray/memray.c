/*
 * Reads what memray writes for others: `memray transform csv` and `gprof2dot`, and `memray stats --json`; and writes
 * such a CSV. (Its `transform speedscope` is speedscope_read.c's.)
 *
 * The CSV has a row for each stack that held memory at the peak, or at the end if memray was asked for leaks, which no
 * file says: it is taken for the peak.
 *
 *     allocator,num_allocations,size,tid,thread_name,stack_trace
 *     MALLOC,1,618,2,0x2 (worker),f;/srv/app.py;3|main;/srv/app.py;9
 *
 * gprof2dot's JSON has the same without lines and threads. The stats have the five lines that allocated most, of all
 * that was allocated; what is left of the sums is shown as one.
 *
 * memray's own .bin is memray_bin.c's.
 *
 * Untrusted: every row adds a bounded amount, numbers are checked.
 */
#include <jansson.h>
#include <string.h>

#include "base/clean.h"
#include "base/memory.h"
#include "record/formats/format.h"
#include "record/formats/stacks/stacks.h"

#define LOOK_BYTES 4096

static const char csv_head[] = "allocator,num_allocations,size,tid,thread_name,stack_trace";

enum { CSV_ALLOCATOR, CSV_BLOCKS, CSV_BYTES, CSV_TID, CSV_THREAD, CSV_STACK, CSV_FIELDS };

struct memray_reader {
    struct fm_stacks s;
    struct fm_buffer fields[CSV_FIELDS];
    size_t row;
    struct fm_error *err;
};

/* ---- recognising ---- */

static bool begins(const void *bytes, size_t len, const char *text)
{
    return len >= strlen(text) && memcmp(bytes, text, strlen(text)) == 0;
}

static bool is_stats(const void *bytes, size_t len)
{
    size_t look = len < LOOK_BYTES ? len : LOOK_BYTES;
    return begins(bytes, len, "{") && memmem(bytes, look, "\"total_num_allocations\"", 23) &&
           memmem(bytes, look, "\"allocation_size_histogram\"", 27);
}

static bool is_gprof2dot(const void *bytes, size_t len)
{
    size_t look = len < LOOK_BYTES ? len : LOOK_BYTES;
    return begins(bytes, len, "{") && memmem(bytes, look, "\"costs\"", 7) &&
           memmem(bytes, look, "\"Memory\"", 8) && memmem(bytes, look, "\"events\"", 8);
}

static bool recognise(const void *bytes, size_t len)
{
    return begins(bytes, len, csv_head) || is_stats(bytes, len) || is_gprof2dot(bytes, len);
}

/* ---- CSV ---- */

/* The next field into `out`; what is behind it, or NULL at the end of the row, comes back in *at. */
static const char *take_field(const char *at, const char *end, struct fm_buffer *out, bool *last)
{
    bool quoted = at < end && *at == '"';
    fm_buffer_clear(out);
    at += quoted;
    for (; at < end; at++) {
        if (quoted && *at == '"') {
            if (at + 1 < end && at[1] == '"') {
                at++;
            } else {
                quoted = false;
                continue;
            }
        } else if (!quoted && (*at == ',' || *at == '\n')) {
            break;
        }
        if (quoted || *at != '\r')
            fm_buffer_add_char(out, *at);
    }
    *last = at >= end || *at == '\n';
    return at < end ? at + 1 : end;
}

static bool take_number(const struct fm_buffer *text, int64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < text->len; i++)
        if (text->data[i] < '0' || text->data[i] > '9' ||
            __builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, text->data[i] - '0', number))
            return false;
    return text->len > 0;
}

/* "0x2 (worker)": the name is in the brackets. */
static uint32_t thread_name(struct memray_reader *r, const struct fm_buffer *text)
{
    const char *all = fm_buffer_text(text), *open = strchr(all, '(');
    size_t len = text->len;
    if (!open || !len || all[len - 1] != ')')
        return 0;
    return fm_strings_add(r->s.p->strings, open + 1, len - (size_t)(open + 1 - all) - 1);
}

/* "name;file;line": files may have semicolons, names of Python have none. */
static void push_frame(struct memray_reader *r, const char *text, size_t len)
{
    const char *end = text + len, *first = memchr(text, ';', len), *last = memrchr(text, ';', len);
    uint32_t line = 0, file = 0;
    if (first && last > first) {
        for (const char *c = last + 1; c < end && *c >= '0' && *c <= '9' && line < 100000000; c++)
            line = line * 10 + (uint32_t)(*c - '0');
        file = fm_strings_add(r->s.p->strings, first + 1, (size_t)(last - first - 1));
        end = first;
    }
    uint32_t name = fm_strings_add(r->s.p->strings, text, (size_t)(end - text));
    fm_stacks_push(&r->s, fm_stacks_function(&r->s, name, file, line), line);
}

/* The innermost frame is the first. */
static void push_stack(struct memray_reader *r, const char *text, size_t len)
{
    while (len) {
        const char *bar = memrchr(text, '|', len);
        const char *frame = bar ? bar + 1 : text;
        push_frame(r, frame, len - (size_t)(frame - text));
        len = bar ? (size_t)(bar - text) : 0;
    }
}

static int read_row(struct memray_reader *r)
{
    struct fm_buffer *f = r->fields;
    int64_t blocks, bytes, tid;
    if (!take_number(&f[CSV_BLOCKS], &blocks) || !take_number(&f[CSV_BYTES], &bytes))
        return fm_error_set(r->err, FM_DAMAGED, "row %zu has no number where one must be", r->row);
    if (!take_number(&f[CSV_TID], &tid) || tid > INT32_MAX)
        tid = 0;
    uint32_t process = fm_stacks_process(&r->s, 0);
    uint32_t name = thread_name(r, &f[CSV_THREAD]);
    fm_stacks_begin(&r->s, fm_stacks_thread(&r->s, process, (uint32_t)tid, name), 0, 0);
    push_stack(r, fm_buffer_text(&f[CSV_STACK]), f[CSV_STACK].len);
    uint32_t node = fm_stacks_end(&r->s);
    fm_profile_add(r->s.p, FM_METRIC_PEAK, node, bytes);
    fm_profile_add(r->s.p, FM_METRIC_PEAK_BLOCKS, node, blocks);
    return 0;
}

static int read_csv(struct memray_reader *r, const char *at, const char *end)
{
    at = memchr(at, '\n', (size_t)(end - at));
    at = at ? at + 1 : end;
    while (at < end) {
        bool last = false;
        int count = 0;
        r->row++;
        for (; !last && count < CSV_FIELDS; count++)
            at = take_field(at, end, &r->fields[count], &last);
        if (count != CSV_FIELDS || !last)
            return fm_error_set(r->err, FM_DAMAGED, "row %zu has not %d fields", r->row,
                                CSV_FIELDS);
        if (read_row(r) < 0)
            return r->err->status;
    }
    return 0;
}

/* ---- gprof2dot ---- */

static const char *text_of(const json_t *value)
{
    const char *text = json_string_value(value);
    return text ? text : "";
}

static int read_event(struct memray_reader *r, const json_t *event, const uint32_t *functions,
                      size_t count)
{
    const json_t *chain = json_object_get(event, "callchain");
    json_int_t bytes = json_integer_value(json_array_get(json_object_get(event, "cost"), 0));
    if (!json_is_array(chain) || bytes < 0)
        return fm_error_set(r->err, FM_DAMAGED, "it has no stack, or less than no bytes");
    uint32_t process = fm_stacks_process(&r->s, 0);
    fm_stacks_begin(&r->s, fm_stacks_thread(&r->s, process, 1, 0), 0, 0);
    for (size_t i = json_array_size(chain); i-- > 0;) {
        const json_t *number = json_array_get(chain, i);
        json_int_t n = json_is_integer(number) ? json_integer_value(number) : -1;
        if (n < 0 || (uint64_t)n >= count)
            return fm_error_set(r->err, FM_DAMAGED, "it has a function that is not there");
        fm_stacks_push(&r->s, functions[n], 0);
    }
    fm_profile_add(r->s.p, FM_METRIC_PEAK, fm_stacks_end(&r->s), bytes);
    return 0;
}

static int read_gprof2dot(struct memray_reader *r, const json_t *root)
{
    const json_t *list = json_object_get(root, "functions"), *value;
    const json_t *events = json_object_get(root, "events");
    size_t i;
    if (!json_is_array(list) || !json_is_array(events))
        return fm_error_set(r->err, FM_DAMAGED, "there are no lists of functions and events");
    fm_autofree uint32_t *functions = fm_calloc(json_array_size(list) + 1, sizeof *functions);
    json_array_foreach(list, i, value)
    {
        uint32_t name = fm_profile_string(r->s.p, text_of(json_object_get(value, "name")));
        uint32_t file = fm_profile_string(r->s.p, text_of(json_object_get(value, "module")));
        functions[i] = fm_stacks_function(&r->s, name, file, 0);
    }
    json_array_foreach(events, i, value)
    {
        if (read_event(r, value, functions, json_array_size(list)) < 0)
            return fm_error_context(r->err, "event %zu", i);
    }
    return 0;
}

/* ---- stats ---- */

/* "rows:prog.py:3", as a node under the thread. */
static uint32_t place_node(struct memray_reader *r, const char *location)
{
    const char *colon = strchr(location, ':'), *last = strrchr(location, ':');
    fm_autobuffer frame = FM_BUFFER_INIT;
    fm_buffer_add_text(&frame, location);
    if (colon && last > colon)
        frame.data[colon - location] = frame.data[last - location] = ';';
    fm_stacks_begin(&r->s, fm_stacks_thread(&r->s, fm_stacks_process(&r->s, 0), 1, 0), 0, 0);
    push_frame(r, frame.data, frame.len);
    return fm_stacks_end(&r->s);
}

static void read_top(struct memray_reader *r, const json_t *root, const char *key,
                     const char *number, enum fm_metric metric, const char *total)
{
    json_int_t rest = json_integer_value(json_object_get(root, total));
    const json_t *value;
    size_t i;
    json_array_foreach(json_object_get(root, key), i, value)
    {
        json_int_t n = json_integer_value(json_object_get(value, number));
        if (n <= 0)
            continue;
        fm_profile_add(r->s.p, metric, place_node(r, text_of(json_object_get(value, "location"))),
                       n);
        rest = fm_sum(rest, -n);
    }
    if (rest > 0)
        fm_profile_add(r->s.p, metric, place_node(r, "<all other lines>"), rest);
}

static int read_stats(struct memray_reader *r, const json_t *root)
{
    const json_t *facts = json_object_get(root, "metadata");
    const char *command = text_of(json_object_get(facts, "command_line"));
    if (*command)
        fm_profile_fact(r->s.p, "command", command);
    read_top(r, root, "top_allocations_by_size", "size", FM_METRIC_ALLOCATED,
             "total_bytes_allocated");
    read_top(r, root, "top_allocations_by_count", "count", FM_METRIC_BLOCKS,
             "total_num_allocations");
    fm_profile_note(r->s.p, FM_NONE, "partial", 0,
                    "memray's stats name the lines that allocated most, and not who called them");
    return 0;
}

/* ---- all of them ---- */

static int read_json(struct memray_reader *r, const void *bytes, size_t len)
{
    json_error_t why;
    json_t *root = json_loadb(bytes, len, 0, &why);
    if (!root)
        return fm_error_set(r->err, FM_DAMAGED, "it is no JSON: line %d: %s", why.line, why.text);
    int status = is_stats(bytes, len) ? read_stats(r, root) : read_gprof2dot(r, root);
    json_decref(root);
    return status;
}

static struct fm_profile *load(const void *bytes, size_t len, const char *name,
                               struct fm_error *err)
{
    struct memray_reader r = { .err = err };
    const char *text = bytes;
    fm_stacks_init(&r.s);
    r.s.lined = true;
    int status =
        begins(bytes, len, csv_head) ? read_csv(&r, text, text + len) : read_json(&r, bytes, len);
    if (status == 0) {
        fm_stacks_settle(&r.s);
        fm_stacks_of_memory(&r.s);
    }
    for (int i = 0; i < CSV_FIELDS; i++)
        fm_buffer_release(&r.fields[i]);
    fm_stacks_release(&r.s);
    if (status == 0)
        return r.s.p;
    fm_error_context(err, "reading %s", name);
    fm_profile_free(r.s.p);
    return NULL;
}

/* ---- writing ---- */

#define OUTPUT_MAX ((size_t)4 << 30)

/* What no field of a row can hold is left out; a frame's own separators become others. */
static void put_text(struct fm_buffer *out, const char *text)
{
    size_t start = out->len;
    fm_clean_add(out, text, strlen(text));
    for (size_t i = start; i < out->len; i++)
        out->data[i] = out->data[i] == '|' ? '/' : out->data[i] == '"' ? '\'' : out->data[i];
}

static void put_frame(struct fm_buffer *out, const struct fm_profile *p, uint32_t node)
{
    const struct fm_function *f = &p->functions.data[p->nodes.data[node].func];
    size_t start = out->len;
    put_text(out, fm_profile_text(p, f->qualname));
    for (size_t i = start; i < out->len; i++)
        if (out->data[i] == ';')
            out->data[i] = ':';
    fm_buffer_add_char(out, ';');
    put_text(out, fm_profile_text(p, f->file));
    fm_buffer_addf(out, ";%u", fm_own_line(p, node));
}

/* Which allocator it was is not known by context. */
static void put_row(struct fm_buffer *out, const struct fm_profile *p, uint32_t node,
                    uint32_t *path, const enum fm_metric metrics[2])
{
    const struct fm_thread *t = &p->threads.data[p->nodes.data[node].thread];
    const char *name = fm_profile_text(p, t->name);
    fm_buffer_addf(out, "ALL,%lld,%lld,%u,\"0x%x", (long long)fm_profile_value(p, metrics[1], node),
                   (long long)fm_profile_value(p, metrics[0], node), t->tid, t->tid);
    if (*name) {
        fm_buffer_add_text(out, " (");
        put_text(out, name);
        fm_buffer_add_char(out, ')');
    }
    fm_buffer_add_text(out, "\",\"");
    size_t start = out->len;
    for (size_t n = fm_own_path(p, node, path), k = n; k-- > 0;) {
        put_frame(out, p, path[k]);
        if (k)
            fm_buffer_add_char(out, '|');
    }
    if (out->len > start && strchr("=+-@", out->data[start]))
        out->data[start] = '?'; /* no cell of text is a formula */
    fm_buffer_add_text(out, "\"\r\n");
}

static int save(const struct fm_profile *p, struct fm_buffer *out, struct fm_error *err)
{
    const char *name = fm_profile_fact_get(p, "metric");
    enum fm_metric metric = name ? fm_metric_named(name) : FM_METRIC_PEAK;
    if (metric == FM_METRIC_COUNT || fm_metric_info(metric)->place != FM_PLACE_MEMORY ||
        !p->columns[metric].data)
        return fm_error_set(err, FM_UNSUPPORTED, "the recording has no memory to write");
    metric = FM_METRIC_PEAK + (metric - FM_METRIC_PEAK) / 2 * 2; /* bytes, and blocks behind them */
    const enum fm_metric metrics[2] = { metric, metric + 1 };
    fm_autofree uint32_t *path = fm_malloc((p->nodes.len + 1) * sizeof *path);
    fm_buffer_addf(out, "%s\r\n", csv_head);
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        if (fm_profile_value(p, metrics[0], i) > 0 || fm_profile_value(p, metrics[1], i) > 0)
            put_row(out, p, i, path, metrics);
        if (out->len > OUTPUT_MAX)
            return fm_error_set(err, FM_UNSUPPORTED,
                                "the stacks are so deep that they would take more than 4 GB");
    }
    return 0;
}

static const char *const suffixes[] = { ".memray.csv", ".csv", NULL };

const struct fm_format fm_format_memray = {
    .name = "memray",
    .title = "memray's CSV of memory",
    .suffixes = suffixes,
    .recognise = recognise,
    .load = load,
    .save = save,
};

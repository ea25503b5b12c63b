/*
 * Reads Chrome's trace events, of viztracer, torch (kineto), Chrome and whoever else writes them, compressed or
 * not; chrome.h says what they are.
 *
 * Unfinished files are read as far as they go: tracers that are killed leave no closing bracket, and may leave half
 * an event. What they hold then is there, and a note says so.
 *
 * Names are taken apart as tracers write them: viztracer's "f (file:line)" and kineto's "file(line): f".
 * viztracer's file_info has the text of the sources, which is taken, too.
 */
#include "record/formats/timeline/chrome.h"

#include <string.h>

#include "base/memory.h"
#include "record/formats/format.h"
#include "record/formats/stacks/pprof.h"

#define LOOK_BYTES  65536
#define FEW_BYTES   4096
#define EVENTS_MOST UINT32_MAX

/* An event, as far as anybody needs it. */
struct chrome_event {
    char kind;
    bool has_ts, has_dur, has_name;
    int64_t ts_ns, dur_ns;
    uint32_t process, thread; /* numbers in `numbers`; 0: not said */
    uint32_t name, category;  /* string ids */
    uint32_t text;            /* of M: args.name */
};

/* ---- names ---- */

static uint32_t add_string(struct fm_chrome *c, const char *begin, const char *end)
{
    return fm_strings_add(c->p->strings, begin, (size_t)(end - begin));
}

/* Digits up to `end`: where they begin, or NULL. */
static const char *number_before(const char *begin, const char *end, uint32_t *number)
{
    const char *at = end;
    uint32_t scale = 1;
    *number = 0;
    while (at > begin && at[-1] >= '0' && at[-1] <= '9' && end - at < 9) {
        *number += (uint32_t)(*--at - '0') * scale;
        scale *= 10;
    }
    return at == end ? NULL : at;
}

/* "f (file:line)" */
static bool take_viztracer(struct fm_chrome *c, const struct fm_slice *name, struct fm_function *f)
{
    const char *begin = name->text, *end = begin + name->len, *digits, *open;
    if (name->len < 6 || end[-1] != ')' || !(digits = number_before(begin, end - 1, &f->line)) ||
        digits - begin < 4 || digits[-1] != ':')
        return false;
    for (open = digits - 2; open > begin + 1 && !(open[0] == '(' && open[-1] == ' '); open--)
        continue;
    if (open <= begin + 1)
        return false;
    f->qualname = add_string(c, begin, open - 1);
    f->file = add_string(c, open + 1, digits - 1);
    return true;
}

/* "file.py(line): f" */
static bool take_kineto(struct fm_chrome *c, const struct fm_slice *name, struct fm_function *f)
{
    const char *begin = name->text, *end = begin + name->len;
    const char *colon = memmem(begin, name->len, "): ", 3);
    const char *digits = colon ? number_before(begin, colon, &f->line) : NULL;
    if (!digits || digits - begin < 2 || digits[-1] != '(' || colon + 3 >= end)
        return false;
    f->qualname = add_string(c, colon + 3, end);
    f->file = add_string(c, begin, digits - 1);
    return true;
}

uint32_t fm_chrome_function(struct fm_chrome *c, const struct fm_slice *name,
                            const struct fm_slice *category)
{
    struct fm_function f = { .kind = FM_FUNCTION_PYTHON };
    bool fee = fm_slice_is(category, "fee") || fm_slice_is(category, "FEE");
    bool kineto = fm_slice_is(category, "python_function");
    if (!take_viztracer(c, name, &f) && !(kineto && take_kineto(c, name, &f))) {
        bool builtin =
            fee || kineto || fm_slice_is(category, "c") || (name->len && *name->text == '<');
        f = (struct fm_function){ .kind = builtin ? FM_FUNCTION_C : FM_FUNCTION_NATIVE };
        f.qualname = add_string(c, name->text, name->text + name->len);
    }
    const char *text = fm_profile_text(c->p, f.qualname), *dot = strrchr(text, '.');
    f.name = f.qualname;
    if (f.kind == FM_FUNCTION_PYTHON && dot && dot[1])
        f.name = fm_profile_string(c->p, dot + 1);
    return fm_profile_function(c->p, &f);
}

/* Names come again and again: what they are is found once for each. */
static uint32_t function_of(struct fm_chrome *c, const struct chrome_event *e)
{
    bool is_new;
    uint32_t *known = fm_map_at(&c->functions, fm_map_pair(e->category, e->name), 0, &is_new);
    if (!is_new)
        return *known;
    struct fm_slice name = { fm_profile_text(c->p, e->name),
                             fm_strings_len(c->p->strings, e->name) };
    struct fm_slice category = { fm_profile_text(c->p, e->category),
                                 fm_strings_len(c->p->strings, e->category) };
    uint32_t func = fm_chrome_function(c, &name, &category);
    *fm_map_at(&c->functions, fm_map_pair(e->category, e->name), func, NULL) = func;
    return func;
}

/* ---- processes and threads ---- */

/* Numbers of the system as they are; others, and text, are no numbers to show. */
static uint32_t number_of(const char *text)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && value < UINT32_MAX; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    return *at || value > INT32_MAX ? 0 : (uint32_t)value;
}

static uint32_t process_of(struct fm_chrome *c, uint32_t number)
{
    bool is_new;
    uint32_t fresh = (uint32_t)c->p->processes.len;
    uint32_t process = *fm_map_at(&c->processes, number, fresh, &is_new);
    if (is_new) {
        const char *text = fm_strings_get(c->numbers, number);
        struct fm_process made = { .pid = number_of(text),
                                   .exit_status = -1,
                                   .profiled = true,
                                   .calls = true,
                                   .c_calls = true };
        if (*text && !made.pid && strcmp(text, "0") != 0)
            made.command = fm_profile_string(c->p, text);
        fm_profile_process(c->p, &made);
    }
    return process;
}

static uint32_t thread_of(struct fm_chrome *c, uint32_t process_number, uint32_t number)
{
    bool is_new;
    uint32_t process = process_of(c, process_number), fresh = (uint32_t)c->thread_list.len;
    uint32_t at = *fm_map_at(&c->threads, fm_map_pair(process, number), fresh, &is_new);
    if (is_new) {
        const char *text = fm_strings_get(c->numbers, number);
        struct fm_thread made = { .process = process, .tid = number_of(text) };
        if (*text && !made.tid && strcmp(text, "0") != 0)
            made.name = fm_profile_string(c->p, text);
        struct fm_chrome_thread t = { .process = process };
        t.thread = fm_profile_thread(c->p, &made);
        fm_vec_push(&c->thread_list, t);
    }
    return at;
}

/* ---- events ---- */

static void take_args(struct fm_chrome *c, struct fm_pull *p, struct chrome_event *e)
{
    struct fm_slice key, text;
    if (!fm_pull_enter(p, '{')) {
        fm_pull_skip(p);
        return;
    }
    while (fm_pull_item(p) && fm_pull_key(p, &key)) {
        if (!fm_slice_is(&key, "name"))
            fm_pull_skip(p);
        else if (fm_pull_text(p, &text))
            e->text = fm_strings_add(c->p->strings, text.text, text.len);
    }
}

static void take_member(struct fm_chrome *c, struct fm_pull *p, struct chrome_event *e,
                        const struct fm_slice *key)
{
    struct fm_slice text;
    bool is_args = fm_slice_is(key, "args");
    bool ph = fm_slice_is(key, "ph"), ts = fm_slice_is(key, "ts"), dur = fm_slice_is(key, "dur");
    bool pid = fm_slice_is(key, "pid"), tid = fm_slice_is(key, "tid");
    bool name = fm_slice_is(key, "name"), category = fm_slice_is(key, "cat");
    if (is_args && (!e->kind || e->kind == 'M')) {
        take_args(c, p, e);
    } else if (!(ph || ts || dur || pid || tid || name || category)) {
        fm_pull_skip(p);
    } else if (fm_pull_text(p, &text)) {
        if (ph)
            e->kind = text.len == 1 ? text.text[0] : '?';
        else if (ts)
            e->has_ts = fm_slice_thousandths(&text, &e->ts_ns);
        else if (dur)
            e->has_dur = fm_slice_thousandths(&text, &e->dur_ns);
        else if (pid)
            e->process = fm_strings_add(c->numbers, text.text, text.len);
        else if (tid)
            e->thread = fm_strings_add(c->numbers, text.text, text.len);
        else if (name) {
            e->name = fm_strings_add(c->p->strings, text.text, text.len);
            e->has_name = true;
        } else
            e->category = fm_strings_add(c->p->strings, text.text, text.len);
    }
}

/* M: names. */
static void add_name(struct fm_chrome *c, const struct chrome_event *e)
{
    const char *what = fm_profile_text(c->p, e->name);
    if (strcmp(what, "process_name") == 0) {
        uint32_t process = process_of(c, e->process);
        c->p->processes.data[process].command = e->text;
    } else if (strcmp(what, "thread_name") == 0) {
        uint32_t at = thread_of(c, e->process, e->thread);
        c->p->threads.data[c->thread_list.data[at].thread].name = e->text;
    }
}

static void add_event(struct fm_chrome *c, const struct chrome_event *e)
{
    uint32_t order = (uint32_t)(c->spans.len + c->edges.len);
    bool call = e->kind == 'X' || e->kind == 'B' || e->kind == 'E';
    if (e->kind == 'M') {
        add_name(c, e);
        return;
    }
    if (!call) {
        c->async += e->kind == 'b' || e->kind == 'S';
        c->marks += strchr("inICRO", e->kind) != NULL && e->kind;
        return;
    }
    if (!e->has_ts || (!e->has_name && e->kind != 'E') || order >= EVENTS_MOST - 1 ||
        (e->kind == 'X' && (e->dur_ns < 0 || e->ts_ns > INT64_MAX - e->dur_ns))) {
        c->strange++;
        return;
    }
    uint32_t thread = thread_of(c, e->process, e->thread);
    if (e->kind == 'X') {
        struct fm_chrome_span span = { .begin_ns = e->ts_ns,
                                       .end_ns = e->ts_ns + e->dur_ns,
                                       .thread = thread,
                                       .func = function_of(c, e),
                                       .order = order };
        span.open = !e->has_dur;
        fm_vec_push(&c->spans, span);
    } else {
        struct fm_chrome_edge edge = { .at_ns = e->ts_ns,
                                       .thread = thread,
                                       .func = e->has_name ? function_of(c, e) : FM_NONE,
                                       .order = order,
                                       .ends = e->kind == 'E' };
        fm_vec_push(&c->edges, edge);
    }
}

static void read_event(struct fm_chrome *c, struct fm_pull *p)
{
    struct chrome_event e = { 0 };
    struct fm_slice key;
    while (fm_pull_item(p)) {
        if (!fm_pull_key(p, &key))
            return;
        take_member(c, p, &e, &key);
    }
    if (!p->cut && !p->bad)
        add_event(c, &e);
}

/* A list of events; others' things in it are passed over. */
static void read_events(struct fm_chrome *c, struct fm_pull *p)
{
    while (fm_pull_item(p)) {
        if (fm_pull_enter(p, '{'))
            read_event(c, p);
        else
            fm_pull_skip(p);
    }
}

/* ---- the rest of a file ---- */

static void read_overflow(struct fm_chrome *c, struct fm_pull *p)
{
    struct fm_slice key, text;
    c->viztracer = true;
    if (!fm_pull_enter(p, '{')) {
        fm_pull_skip(p);
        return;
    }
    while (fm_pull_item(p) && fm_pull_key(p, &key)) {
        bool overflow = fm_slice_is(&key, "overflow");
        if (fm_pull_text(p, &text) && overflow)
            c->overflow = fm_slice_is(&text, "true");
    }
}

/* {"files": {"a.py": ["its text", 12]}} */
static void read_files(struct fm_chrome *c, struct fm_pull *p)
{
    struct fm_slice key, text;
    if (!fm_pull_enter(p, '{')) {
        fm_pull_skip(p);
        return;
    }
    while (fm_pull_item(p) && fm_pull_key(p, &key)) {
        struct fm_source source = { .file = fm_strings_add(c->p->strings, key.text, key.len) };
        if (!fm_pull_enter(p, '[')) {
            fm_pull_skip(p);
            continue;
        }
        for (bool first = true; fm_pull_item(p); first = false) {
            bool is_text = first && fm_pull_kind(p) == '"';
            if (!is_text || !fm_pull_text(p, &text)) {
                if (!is_text)
                    fm_pull_skip(p);
                continue;
            }
            source.text = fm_strings_add(c->p->strings, text.text, text.len);
            if (!p->cut && source.text)
                fm_vec_push(&c->p->sources, source);
        }
    }
}

static void read_file_info(struct fm_chrome *c, struct fm_pull *p)
{
    struct fm_slice key;
    if (!fm_pull_enter(p, '{')) {
        fm_pull_skip(p);
        return;
    }
    while (fm_pull_item(p) && fm_pull_key(p, &key)) {
        if (fm_slice_is(&key, "files"))
            read_files(c, p);
        else
            fm_pull_skip(p);
    }
}

static void read_base(struct fm_chrome *c, struct fm_pull *p)
{
    struct fm_slice text;
    double value;
    if (fm_pull_text(p, &text) && fm_slice_double(&text, &value) && value > 0 && value < 4e18)
        c->base_real_ns = (int64_t)value;
}

static void read_members(struct fm_chrome *c, struct fm_pull *p)
{
    struct fm_slice key;
    while (fm_pull_item(p) && fm_pull_key(p, &key)) {
        if (fm_slice_is(&key, "traceEvents") && fm_pull_enter(p, '['))
            read_events(c, p);
        else if (fm_slice_is(&key, "viztracer_metadata"))
            read_overflow(c, p);
        else if (fm_slice_is(&key, "file_info"))
            read_file_info(c, p);
        else if (fm_slice_is(&key, "baseTimeNanoseconds"))
            read_base(c, p);
        else
            fm_pull_skip(p);
    }
}

static int read_text(struct fm_chrome *c, const char *text, size_t len)
{
    struct fm_pull p;
    fm_pull_init(&p, text, len);
    if (fm_pull_enter(&p, '['))
        read_events(c, &p);
    else if (fm_pull_enter(&p, '{'))
        read_members(c, &p);
    else
        p.bad = true;
    bool cut = p.cut;
    size_t at = (size_t)(p.at - p.begin);
    bool bad = p.bad;
    fm_pull_release(&p);
    if (bad)
        return fm_error_set(c->err, FM_DAMAGED, "it is no JSON: byte %zu does not belong there",
                            at);
    if (cut)
        fm_profile_note(c->p, FM_NONE, "cut-off", 1,
                        "the file ends before its list of events does");
    return 0;
}

/* ---- recognising and opening ---- */

static bool has(const char *text, size_t len, const char *word)
{
    return memmem(text, len, word, strlen(word)) != NULL;
}

static bool recognise_text(const char *text, size_t len)
{
    size_t at = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    size_t look = len < LOOK_BYTES ? len : LOOK_BYTES;
    while (at < look && text[at] && strchr(" \t\r\n", text[at]))
        at++;
    if (at == look)
        return false;
    if (text[at] == '[') {
        size_t few = look - at < FEW_BYTES ? look - at : FEW_BYTES;
        return has(text + at, few, "\"ph\"") && has(text + at, few, "{");
    }
    return text[at] == '{' && (has(text + at, look - at, "\"traceEvents\"") ||
                               has(text + len - (look - at), look - at, "\"traceEvents\""));
}

static bool recognise(const void *bytes, size_t len)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    if (!fm_gzip_recognise(bytes, len))
        return recognise_text(bytes, len);
    return fm_gzip_unpack(bytes, len, LOOK_BYTES, &text, NULL) == 0 &&
           recognise_text(fm_buffer_text(&text), text.len);
}

static void release(struct fm_chrome *c)
{
    fm_strings_free(c->numbers);
    fm_map_release(&c->processes);
    fm_map_release(&c->threads);
    fm_map_release(&c->functions);
    fm_vec_release(&c->thread_list);
    fm_vec_release(&c->spans);
    fm_vec_release(&c->edges);
}

static struct fm_profile *load(const void *bytes, size_t len, const char *name,
                               struct fm_error *err)
{
    struct fm_chrome c = { .p = fm_profile_new(), .numbers = fm_strings_new(), .err = err };
    fm_autobuffer text = FM_BUFFER_INIT;
    int status = 0;
    if (fm_gzip_recognise(bytes, len)) {
        status = fm_gzip_unpack(bytes, len, 0, &text, err);
        bytes = fm_buffer_text(&text);
        len = text.len;
    }
    if (status == 0)
        status = read_text(&c, bytes, len);
    if (status == 0)
        fm_chrome_build(&c);
    release(&c);
    if (status == 0)
        return c.p;
    fm_error_context(err, "reading %s", name);
    fm_profile_free(c.p);
    return NULL;
}

static const char *const suffixes[] = { ".chrome.json", NULL };

const struct fm_format fm_format_chrome = {
    .name = "chrome",
    .title = "Chrome's trace events",
    .suffixes = suffixes,
    .recognise = recognise,
    .load = load,
    .save_timeline = fm_chrome_save,
};

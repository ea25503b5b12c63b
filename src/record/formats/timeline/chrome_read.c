/*
 * Reads Chrome's trace events, of viztracer, torch (kineto), Chrome and whoever else writes them, compressed or
 * not; chrome.h says what they are.
 *
 * Unfinished files are read as far as they go: tracers that are killed leave no closing bracket, and may leave half
 * an event. What they hold then is there, and a note says so.
 *
 * viztracer's file_info has the text of the sources, which is taken, too.
 */
#include "record/formats/timeline/chrome.h"

#include <string.h>

#include "base/memory.h"
#include "record/formats/format.h"
#include "record/formats/stacks/pprof.h"
#include "record/model/trace/lanes/timeline.h"

#define LOOK_BYTES  65536
#define FEW_BYTES   4096
#define EVENTS_MOST UINT32_MAX
#define SERIES_MOST 8

/* An event, as far as anybody needs it. */
struct chrome_event {
    char kind;
    bool has_ts, has_dur, has_name;
    int64_t ts_ns, dur_ns;
    uint32_t process, thread; /* numbers in `numbers`; 0: not said */
    uint32_t name, category;  /* string ids */
    uint32_t text;            /* of M: args.name */
    uint32_t id, scope;       /* of what is asynchronous: in `numbers` */
    bool is_local;            /* … the id is the process's own */
    struct {
        uint32_t key; /* string id */
        double value;
    } series[SERIES_MOST]; /* of C: args */
    unsigned series_count;
};

/* ---- events ---- */

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

/* A name, or the numbers of a counter. */
static void take_args(struct fm_chrome *c, struct fm_pull *p, struct chrome_event *e)
{
    struct fm_slice key, text;
    double value;
    if (!fm_pull_enter(p, '{')) {
        fm_pull_skip(p);
        return;
    }
    while (fm_pull_item(p) && fm_pull_key(p, &key)) {
        bool is_name = fm_slice_is(&key, "name");
        uint32_t string = fm_strings_add(c->p->strings, key.text, key.len);
        if (!fm_pull_text(p, &text))
            continue;
        if (is_name)
            e->text = fm_strings_add(c->p->strings, text.text, text.len);
        if (e->series_count < SERIES_MOST && fm_slice_double(&text, &value)) {
            e->series[e->series_count].key = string;
            e->series[e->series_count++].value = value;
        }
    }
}

/* {"local": "0x1"} or {"global": "0x1"} */
static void take_id2(struct fm_chrome *c, struct fm_pull *p, struct chrome_event *e)
{
    struct fm_slice key, text;
    if (!fm_pull_enter(p, '{')) {
        fm_pull_skip(p);
        return;
    }
    while (fm_pull_item(p) && fm_pull_key(p, &key)) {
        bool is_local = fm_slice_is(&key, "local");
        if (!fm_pull_text(p, &text))
            continue;
        e->id = fm_strings_add(c->numbers, text.text, text.len);
        e->is_local = is_local;
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
    bool id = fm_slice_is(key, "id"), scope = fm_slice_is(key, "scope");
    if (is_args && (!e->kind || e->kind == 'M' || e->kind == 'C')) {
        take_args(c, p, e);
    } else if (fm_slice_is(key, "id2")) {
        take_id2(c, p, e);
    } else if (!(id || scope || ph || ts || dur || pid || tid || name || category)) {
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
        else if (id)
            e->id = fm_strings_add(c->numbers, text.text, text.len);
        else if (scope)
            e->scope = fm_strings_add(c->numbers, text.text, text.len);
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
        uint32_t process = fm_chrome_process(c, e->process);
        c->p->processes.data[process].command = e->text;
    } else if (strcmp(what, "thread_name") == 0) {
        uint32_t at = fm_chrome_thread(c, e->process, e->thread);
        c->p->threads.data[c->thread_list.data[at].thread].name = e->text;
    }
}

/* A counter has a curve for each of its numbers. */
static void add_counter(struct fm_chrome *c, const struct chrome_event *e,
                        const struct fm_chrome_mark *mark)
{
    for (unsigned i = 0; i < e->series_count; i++) {
        struct fm_chrome_mark made = *mark;
        const char *key = fm_profile_text(c->p, e->series[i].key);
        memcpy(&made.value, &e->series[i].value, sizeof made.value);
        if (e->series_count > 1 || strcmp(key, "value") != 0) {
            fm_autobuffer name = FM_BUFFER_INIT;
            fm_buffer_addf(&name, "%s %s", fm_profile_text(c->p, e->name), key);
            made.name = fm_profile_string(c->p, fm_buffer_text(&name));
        }
        fm_vec_push(&c->marks, made);
    }
}

static void add_beside(struct fm_chrome *c, const struct chrome_event *e)
{
    struct fm_chrome_mark mark = { .begin_ns = e->ts_ns,
                                   .end_ns = e->ts_ns,
                                   .process = e->process,
                                   .thread = e->thread,
                                   .name = e->name };
    uint64_t key = fm_mix64(fm_map_pair(e->category, e->id)) ^
                   fm_mix64(fm_map_pair(e->is_local ? e->process : 0, e->scope) + 1);
    bool begins = e->kind == 'b' || e->kind == 'S', ends = e->kind == 'e' || e->kind == 'F';
    if (!e->has_ts || c->marks.len >= EVENTS_MOST - 1)
        return;
    mark.kind = e->kind == 'C' ? FM_MARK_COUNTER : begins ? FM_MARK_REGION : FM_MARK_INSTANT;
    if (e->kind == 'C')
        add_counter(c, e, &mark);
    else if (begins)
        fm_chrome_async_begin(c, key, &mark);
    else if (ends)
        c->strange += !fm_chrome_async_end(c, key, e->ts_ns);
    else if (e->kind == 'i' || e->kind == 'I' || e->kind == 'n' || e->kind == 'R')
        fm_vec_push(&c->marks, mark);
    c->async += begins;
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
        add_beside(c, e);
        return;
    }
    if (!e->has_ts || (!e->has_name && e->kind != 'E') || order >= EVENTS_MOST - 1 ||
        (e->kind == 'X' && (e->dur_ns < 0 || e->ts_ns > INT64_MAX - e->dur_ns))) {
        c->strange++;
        return;
    }
    uint32_t thread = fm_chrome_thread(c, e->process, e->thread);
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
    fm_vec_release(&c->marks);
    fm_map_release(&c->open_marks);
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

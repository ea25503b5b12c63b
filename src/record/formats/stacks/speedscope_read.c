/*
 * Reads speedscope's JSON, of py-spy, pyinstrument, Fathom and whoever else writes it.
 *
 * A file has a list of frames and of profiles. A profile is "sampled" (stacks of frame numbers from
 * the root to the leaf, and a weight for each) or "evented" (frames opened and closed at a time;
 * they must nest, and time never goes back). A profile becomes a thread; names like py-spy's,
 * `Process 12 Thread 34 "name"`, give its numbers.
 *
 * Frames of Fathom and pyinstrument have the first line of the function, others the line that was
 * executing. A stack of a sampled profile is one sample, unless Fathom's "counts" say how many. In
 * an evented profile every opening is a call, unless it is pyinstrument's, which samples.
 *
 * Of memory (Fathom's own with a metric, and memray's, which has one profile of bytes and one of blocks) the
 * lines become contexts, and the numbers those of the metric.
 *
 * Jansson reads the text, which bounds the depth; what it makes of it is checked here.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "record/formats/stacks/speedscope.h"
#include "record/formats/stacks/stacks.h"

#define LOOK_BYTES 65536

struct speedscope_frame {
    uint32_t function, line;
    bool is_root; /* py-spy's stand-in for a process or thread, which the profile is already */
    bool is_self; /* pyinstrument's stand-in for the caller's own time */
};

struct speedscope_reader {
    struct fm_stacks s;
    FM_VEC(struct speedscope_frame) frames;
    bool own;     /* written by Fathom */
    bool sampler; /* written by a sampler: opening a frame is no call */
    bool memray;
    enum fm_metric memory; /* what the weights are; FM_METRIC_COUNT: no memory */
    /* The profile being read. */
    uint32_t thread;
    double scale; /* nanoseconds per unit */
    struct fm_error *err;
};

/* ---- values ---- */

static const char *text_of(const json_t *value)
{
    const char *text = json_string_value(value);
    return text ? text : "";
}

/* A number of units as nanoseconds, of which differences fit into 64 bits. */
static bool take_ns(const struct speedscope_reader *r, const json_t *value, int64_t *ns)
{
    if (!json_is_number(value))
        return false;
    double x = json_number_value(value) * r->scale;
    if (!(fabs(x) < 4.6e18))
        return false;
    *ns = json_is_integer(value) && r->scale == 1 ? json_integer_value(value) : llround(x);
    return true;
}

static bool take_frame(const struct speedscope_reader *r, const json_t *value, uint32_t *frame)
{
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    if (number < 0 || (uint64_t)number >= r->frames.len)
        return false;
    *frame = (uint32_t)number;
    return true;
}

static int read_frames(struct speedscope_reader *r, const json_t *frames)
{
    size_t i;
    const json_t *value;
    if (!json_is_array(frames))
        return fm_error_set(r->err, FM_DAMAGED, "there is no list of frames");
    json_array_foreach(frames, i, value)
    {
        const json_t *name = json_object_get(value, "name");
        json_int_t line = json_integer_value(json_object_get(value, "line"));
        if (!json_is_string(name))
            return fm_error_set(r->err, FM_DAMAGED, "frame %zu has no name", i);
        const char *text = json_string_value(name);
        struct speedscope_frame f = { .line = line > 0 && line < INT32_MAX ? (uint32_t)line : 0 };
        uint32_t name_id = fm_strings_add(r->s.p->strings, text, json_string_length(name));
        uint32_t file = fm_profile_string(r->s.p, text_of(json_object_get(value, "file")));
        f.is_root = !r->own && !file &&
                    (strncmp(text, "thread (", 8) == 0 || strncmp(text, "process ", 8) == 0);
        f.is_self = r->sampler && !file && strcmp(text, "[self]") == 0;
        f.function = r->own && !r->s.lined ? fm_stacks_function_new(&r->s, name_id, file, f.line)
                                           : fm_stacks_function(&r->s, name_id, file, f.line);
        fm_vec_push(&r->frames, f);
    }
    return 0;
}

/* ---- sampled profiles ---- */

static int push_stack(struct speedscope_reader *r, const json_t *stack)
{
    size_t i;
    const json_t *value;
    uint32_t number;
    bool roots = true;
    if (!json_is_array(stack))
        return fm_error_set(r->err, FM_DAMAGED, "it is no list of frames");
    json_array_foreach(stack, i, value)
    {
        if (!take_frame(r, value, &number))
            return fm_error_set(r->err, FM_DAMAGED, "it has a frame that does not exist");
        const struct speedscope_frame *frame = &r->frames.data[number];
        roots = roots && frame->is_root;
        if (!roots)
            fm_stacks_push(&r->s, frame->function, frame->line);
    }
    return 0;
}

/* A list that Fathom writes beside the weights; others' lists of that name are not looked at. */
static const json_t *own_list(const struct speedscope_reader *r, const json_t *profile,
                              const char *key, size_t len)
{
    const json_t *list = r->own ? json_object_get(profile, key) : NULL;
    return json_is_array(list) && json_array_size(list) == len ? list : NULL;
}

static int read_sampled(struct speedscope_reader *r, const json_t *profile)
{
    const json_t *samples = json_object_get(profile, "samples"), *stack;
    const json_t *weights = json_object_get(profile, "weights");
    size_t i, n = json_array_size(samples);
    const json_t *counts = own_list(r, profile, "counts", n);
    const json_t *calls = own_list(r, profile, "calls", n);
    if (!json_is_array(samples) || !json_is_array(weights) || json_array_size(weights) != n)
        return fm_error_set(r->err, FM_DAMAGED, "there is not a weight for each sample");
    json_array_foreach(samples, i, stack)
    {
        int64_t ns;
        int64_t count = counts ? json_integer_value(json_array_get(counts, i)) : r->own ? 0 : 1;
        if (!take_ns(r, json_array_get(weights, i), &ns) || ns < 0)
            return fm_error_set(r->err, FM_DAMAGED, "weight %zu is none", i);
        bool memory = r->memory != FM_METRIC_COUNT;
        fm_stacks_begin(&r->s, r->thread, count > 0 && !memory ? count : 0, memory ? 0 : ns);
        if (push_stack(r, stack) < 0)
            return fm_error_context(r->err, "sample %zu", i);
        uint32_t node = fm_stacks_end(&r->s);
        if (memory) {
            fm_profile_add(r->s.p, r->memory, node, ns);
            continue;
        }
        json_int_t entries = json_integer_value(json_array_get(calls, i));
        if (entries > 0)
            fm_profile_add(r->s.p, FM_METRIC_CALLS, node, entries);
    }
    return 0;
}

/* ---- evented profiles ---- */

struct open {
    uint32_t frame, node;
};

struct evented {
    FM_VEC(struct open) stack;
    int64_t at_ns;
    bool begun;
};

static int read_event(struct speedscope_reader *r, struct evented *e, const json_t *event)
{
    const char *type = text_of(json_object_get(event, "type"));
    uint32_t frame, node = r->s.p->threads.data[r->thread].root;
    int64_t at;
    if (!take_ns(r, json_object_get(event, "at"), &at) || (e->begun && at < e->at_ns))
        return fm_error_set(r->err, FM_DAMAGED, "its time is none, or before the one before");
    if (!take_frame(r, json_object_get(event, "frame"), &frame))
        return fm_error_set(r->err, FM_DAMAGED, "its frame does not exist");
    if (e->stack.len) {
        node = e->stack.data[e->stack.len - 1].node;
        fm_profile_add(r->s.p, FM_METRIC_TOTAL, node, fm_sum(at, -e->at_ns));
    }
    e->at_ns = at;
    e->begun = true;
    if (strcmp(type, "O") == 0) {
        if (!r->frames.data[frame].is_self)
            node = fm_stacks_child(&r->s, node, r->frames.data[frame].function);
        fm_profile_add(r->s.p, FM_METRIC_CALLS, node, !r->sampler);
        fm_vec_push(&e->stack, ((struct open){ frame, node }));
        return 0;
    }
    if (strcmp(type, "C") != 0)
        return fm_error_set(r->err, FM_DAMAGED, "it neither opens nor closes a frame");
    if (!e->stack.len || e->stack.data[e->stack.len - 1].frame != frame)
        return fm_error_set(r->err, FM_DAMAGED,
                            "it closes a frame that is not the one opened last");
    e->stack.len--;
    return 0;
}

static int read_evented(struct speedscope_reader *r, const json_t *profile)
{
    const json_t *events = json_object_get(profile, "events"), *event;
    struct evented e = { .begun = false };
    size_t i;
    int status = 0;
    int64_t end;
    if (!json_is_array(events))
        return fm_error_set(r->err, FM_DAMAGED, "there is no list of events");
    json_array_foreach(events, i, event)
    {
        status = read_event(r, &e, event);
        if (status < 0) {
            fm_error_context(r->err, "event %zu", i);
            break;
        }
    }
    if (status == 0 && e.stack.len) { /* still open at the end */
        if (take_ns(r, json_object_get(profile, "endValue"), &end) && end > e.at_ns)
            fm_profile_add(r->s.p, FM_METRIC_TOTAL, e.stack.data[e.stack.len - 1].node,
                           fm_sum(end, -e.at_ns));
        fm_profile_note(r->s.p, FM_NONE, "cut-off", e.stack.len,
                        "frames are still open at the end of the file");
    }
    fm_vec_release(&e.stack);
    return status;
}

/* ---- profiles ---- */

static int read_unit(struct speedscope_reader *r, const json_t *profile)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = { { "nanoseconds", 1 }, { "microseconds", 1e3 }, { "milliseconds", 1e6 },
                  { "seconds", 1e9 },   { "none", 1 },           { "bytes", 1 } };
    const char *unit = text_of(json_object_get(profile, "unit"));
    size_t i = 0;
    while (i < FM_COUNT(units) && strcmp(units[i].name, unit) != 0)
        i++;
    if (i == FM_COUNT(units))
        return fm_error_set(r->err, FM_DAMAGED, "its unit \"%.40s\" is none", unit);
    r->scale = units[i].ns;
    if (r->memray)
        r->memory = strcmp(unit, "bytes") == 0 ? FM_METRIC_PEAK : FM_METRIC_PEAK_BLOCKS;
    if (i >= 4 && r->memory == FM_METRIC_COUNT && !fm_profile_fact_get(r->s.p, "unit")) {
        unit = i != 4 ? unit : r->own ? "samples" : "counts";
        fm_stacks_unit(&r->s, unit, strlen(unit));
    }
    return 0;
}

/* `Process 12 Thread 34 "name"`, or anything else: the name of a thread. */
static void read_name(struct speedscope_reader *r, const char *name)
{
    unsigned pid = 0, tid = 0;
    int n = 0;
    const char *at = name;
    if (r->memray) { /* the same stacks by two numbers */
        r->thread = fm_stacks_thread(&r->s, fm_stacks_process(&r->s, 0), 1, 0);
        return;
    }
    if (sscanf(at, "Process %9u %n", &pid, &n) == 1 && n)
        at += n;
    n = 0;
    size_t len = strlen(at);
    if (sscanf(at, "Thread %9u \"%n", &tid, &n) == 1 && n && len > (size_t)n &&
        at[len - 1] == '"') {
        at += n;
        len -= (size_t)n + 1;
    } else {
        tid = 0;
    }
    uint32_t process = fm_stacks_process(&r->s, pid);
    uint32_t text = fm_strings_add(r->s.p->strings, at, len);
    /* Two profiles of one name are two threads. */
    uint32_t before = (uint32_t)r->s.p->threads.len;
    r->thread = fm_stacks_thread(&r->s, process, tid, text);
    if (r->thread < before)
        r->thread = fm_profile_thread(
            r->s.p, &(struct fm_thread){ .process = process, .tid = tid, .name = text });
}

static int read_profile(struct speedscope_reader *r, const json_t *profile)
{
    const char *type = text_of(json_object_get(profile, "type"));
    if (read_unit(r, profile) < 0)
        return r->err->status;
    read_name(r, text_of(json_object_get(profile, "name")));
    if (strcmp(type, "sampled") == 0)
        return read_sampled(r, profile);
    if (strcmp(type, "evented") == 0 && !r->s.lined)
        return read_evented(r, profile);
    return fm_error_set(r->err, FM_DAMAGED, "its type \"%.40s\" is none", type);
}

static void settle_processes(struct fm_profile *p)
{
    bool samples = p->columns[FM_METRIC_SAMPLES].data, calls = p->columns[FM_METRIC_CALLS].data;
    for (size_t i = 0; i < p->processes.len; i++) {
        p->processes.data[i].sampled = samples;
        p->processes.data[i].calls = calls;
    }
}

static bool begins_with(const char *text, const char *prefix)
{
    return strstr(text, prefix) == text;
}

static int read_all(struct speedscope_reader *r, const json_t *root)
{
    const json_t *profiles = json_object_get(root, "profiles"), *profile;
    const char *exporter = text_of(json_object_get(root, "exporter"));
    const char *name = text_of(json_object_get(root, "name"));
    size_t i;
    r->own = begins_with(exporter, FM_SPEEDSCOPE_EXPORTER " ");
    r->sampler = begins_with(exporter, "pyinstrument");
    r->memray = begins_with(exporter, "memray");
    r->memory = r->own ? fm_metric_named(text_of(json_object_get(root, FM_SPEEDSCOPE_METRIC)))
                       : FM_METRIC_COUNT;
    if (r->memory != FM_METRIC_COUNT && fm_metric_info(r->memory)->place != FM_PLACE_MEMORY)
        r->memory = FM_METRIC_COUNT;
    r->s.lined = r->memray || r->memory != FM_METRIC_COUNT;
    r->s.first_lines = (r->own || r->sampler) && !r->s.lined;
    if ((r->own || r->memray) && *name)
        fm_profile_fact(r->s.p, "command", name);
    if (read_frames(r, json_object_get(json_object_get(root, "shared"), "frames")) < 0)
        return r->err->status;
    if (!json_is_array(profiles))
        return fm_error_set(r->err, FM_DAMAGED, "there is no list of profiles");
    json_array_foreach(profiles, i, profile)
    {
        if (read_profile(r, profile) < 0)
            return fm_error_context(r->err, "profile %zu", i);
    }
    return 0;
}

bool fm_speedscope_recognise(const void *bytes, size_t len)
{
    const char *text = bytes;
    size_t at = 0, look = len < LOOK_BYTES ? len : LOOK_BYTES;
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        at = 3;
    while (at < look && strchr(" \t\r\n", text[at]) && text[at])
        at++;
    if (at == look || text[at] != '{')
        return false;
    return memmem(text, look, FM_SPEEDSCOPE_SCHEMA, strlen(FM_SPEEDSCOPE_SCHEMA)) ||
           memmem(text + len - look, look, FM_SPEEDSCOPE_SCHEMA, strlen(FM_SPEEDSCOPE_SCHEMA));
}

struct fm_profile *fm_speedscope_load(const void *bytes, size_t len, const char *name,
                                      struct fm_error *err)
{
    struct speedscope_reader r = { .err = err };
    json_error_t why;
    const char *text = bytes;
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        len -= 3;
    }
    json_t *root = len ? json_loadb(text, len, 0, &why) : NULL;
    int status;
    fm_stacks_init(&r.s);
    if (root)
        status = read_all(&r, root);
    else
        status = fm_error_set(err, FM_DAMAGED, "it is no JSON: line %d: %s", len ? why.line : 1,
                              len ? why.text : "it is empty");
    if (status == 0) {
        fm_stacks_settle(&r.s);
        settle_processes(r.s.p);
        if (r.s.lined)
            fm_stacks_of_memory(&r.s);
    }
    json_decref(root);
    fm_vec_release(&r.frames);
    fm_stacks_release(&r.s);
    if (status == 0)
        return r.s.p;
    fm_error_context(err, "reading %s", name);
    fm_profile_free(r.s.p);
    return NULL;
}

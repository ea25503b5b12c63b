/* A dump as one JSON object; see dump.h. docs/dump.md names the keys: they stay. */
#include <string.h>

#include "commands/dump/dump.h"
#include "show/report/json_text.h"

static void add_bool(struct fm_buffer *out, const char *key, bool value)
{
    fm_json_add_key(out, key);
    fm_buffer_add_text(out, value ? "true" : "false");
}

static void add_null(struct fm_buffer *out, const char *key)
{
    fm_json_add_key(out, key);
    fm_buffer_add_text(out, "null");
}

static void add_text_or_null(struct fm_buffer *out, const char *key, const char *text)
{
    if (text && *text)
        fm_json_add_text_member(out, key, text);
    else
        add_null(out, key);
}

static void add_number_or_null(struct fm_buffer *out, const char *key, uint64_t value)
{
    if (value)
        fm_json_add_member(out, key, (int64_t)value);
    else
        add_null(out, key);
}

static void add_address(struct fm_buffer *out, const char *key, fm_addr at)
{
    fm_json_add_key(out, key);
    fm_buffer_addf(out, "\"0x%llx\"", (unsigned long long)at);
}

static void add_place(struct fm_buffer *out, const struct fm_dump_frame *f)
{
    fm_json_add_text_member(out, "function", f->function);
    fm_json_add_text_member(out, "file", f->file);
    add_number_or_null(out, "line", f->position.line);
    add_number_or_null(out, "column", f->position.column);
    add_number_or_null(out, "end_line", f->position.end_line);
    add_number_or_null(out, "end_column", f->position.end_column);
}

/* A list of objects: `,` and a new line between two. */
static void begin_element(struct fm_buffer *out, size_t index, const char *indent)
{
    fm_buffer_addf(out, "%s\n%s{", index ? "," : "", indent);
}

static void add_variables(struct fm_buffer *out, const struct fm_dump_frame *f)
{
    fm_json_add_key(out, "locals");
    fm_buffer_add_char(out, '[');
    for (size_t i = 0; i < f->variables.len; i++) {
        fm_buffer_add_text(out, i ? ", {" : "{");
        fm_json_add_text_member(out, "name", f->variables.data[i].name);
        fm_json_add_text_member(out, "value", f->variables.data[i].value);
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
    add_bool(out, "locals_complete", !f->more_variables);
}

static void add_frames(struct fm_buffer *out, const struct fm_dump_frames *frames)
{
    fm_json_add_key(out, "frames");
    fm_buffer_add_char(out, '[');
    for (size_t i = 0; i < frames->len; i++) {
        begin_element(out, i, "      ");
        add_place(out, &frames->data[i]);
        if (frames->data[i].has_variables)
            add_variables(out, &frames->data[i]);
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
}

static void add_holder(struct fm_buffer *out, const struct fm_dump *dump,
                       const struct fm_dump_thread *t)
{
    if (t->holder == FM_DUMP_NOBODY) {
        add_null(out, "holder");
        return;
    }
    const struct fm_dump_thread *h = &dump->threads.data[t->holder];
    size_t frame = t->holder_frame >= 0 ? (size_t)t->holder_frame : 0;
    fm_json_add_key(out, "holder");
    fm_buffer_add_char(out, '{');
    add_number_or_null(out, "tid", h->raw.native_id);
    fm_json_add_text_member(out, "name", h->name);
    add_bool(out, "certain", t->holder_is_sure);
    if (frame < h->frames.len)
        add_place(out, &h->frames.data[frame]);
    fm_buffer_add_char(out, '}');
}

static void add_lock(struct fm_buffer *out, const struct fm_dump_thread *t)
{
    if (!t->lock.at) {
        add_null(out, "lock");
        return;
    }
    fm_json_add_key(out, "lock");
    fm_buffer_add_char(out, '{');
    fm_json_add_text_member(out, "kind", t->lock.recursive ? "RLock" : "Lock");
    add_address(out, "address", t->lock.at);
    add_text_or_null(out, "name", t->lock.name);
    fm_buffer_add_char(out, '}');
}

static void add_thread(struct fm_buffer *out, const struct fm_dump *dump,
                       const struct fm_dump_thread *t)
{
    add_number_or_null(out, "tid", t->raw.native_id);
    fm_json_add_key(out, "ident");
    fm_buffer_addf(out, "%llu", (unsigned long long)t->raw.ident);
    fm_json_add_text_member(out, "name", t->name);
    fm_json_add_member(out, "interpreter", t->raw.interp_id);
    add_text_or_null(out, "state", t->state_known ? fm_state_name(t->state) : NULL);
    fm_json_add_text_member(out, "title", fm_dump_state_title(t));
    add_text_or_null(out, "detail", t->detail);
    add_bool(out, "holds_gil", t->holds_gil);
    add_lock(out, t);
    add_holder(out, dump, t);
    add_number_or_null(out, "signal", (uint64_t)t->signal);
    add_bool(out, "steady", t->stack.steady);
    add_bool(out, "complete", !t->stack.partial);
    add_frames(out, &t->frames);
}

static void add_task(struct fm_buffer *out, const struct fm_dump *dump,
                     const struct fm_dump_task *task)
{
    const struct fm_dump_thread *t = &dump->threads.data[task->thread];
    fm_json_add_text_member(out, "name", task->name);
    add_number_or_null(out, "tid", t->raw.native_id);
    add_bool(out, "running", task->running);
    add_text_or_null(out, "awaited_by", task->awaited_by);
    add_frames(out, &task->frames);
}

static void add_circles(struct fm_buffer *out, const struct fm_dump *dump)
{
    fm_json_add_key(out, "deadlocks");
    fm_buffer_add_char(out, '[');
    for (size_t i = 0; i < dump->circles.len; i++) {
        const struct fm_dump_circle *c = &dump->circles.data[i];
        fm_buffer_add_text(out, i ? ", {" : "{");
        add_bool(out, "certain", c->is_sure);
        fm_json_add_key(out, "tids");
        fm_buffer_add_char(out, '[');
        for (size_t k = 0; k < c->len; k++)
            fm_buffer_addf(out, "%s%llu", k ? ", " : "",
                           (unsigned long long)dump->threads.data[dump->circled.data[c->first + k]]
                               .raw.native_id);
        fm_buffer_add_text(out, "]}");
    }
    fm_buffer_add_char(out, ']');
}

void fm_dump_json(const struct fm_dump *dump, struct fm_buffer *out)
{
    fm_buffer_add_char(out, '{');
    fm_json_add_member(out, "pid", dump->pid);
    add_text_or_null(out, "core", dump->core_path);
    add_text_or_null(out, "command", dump->command);
    fm_json_add_key(out, "python");
    fm_buffer_add_char(out, '"');
    fm_dump_version(dump, out);
    fm_buffer_add_char(out, '"');
    add_bool(out, "free_threaded", dump->runtime.layout.free_threaded);
    fm_json_add_text_member(out, "library", dump->runtime.path);
    fm_json_add_member(out, "other_threads", (int64_t)dump->other_threads);
    add_bool(out, "complete", !dump->partial && !(dump->core && fm_core_is_cut(dump->core)));
    fm_buffer_add_text(out, ",\n \"threads\": [");
    for (size_t i = 0; i < dump->threads.len; i++) {
        begin_element(out, i, "   ");
        add_thread(out, dump, &dump->threads.data[i]);
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
    add_circles(out, dump);
    fm_buffer_add_text(out, ",\n \"tasks\": [");
    for (size_t i = 0; i < dump->tasks.len; i++) {
        begin_element(out, i, "   ");
        add_task(out, dump, &dump->tasks.data[i]);
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
    add_text_or_null(out, "tasks_note", dump->tasks_note);
    fm_buffer_add_text(out, "}\n");
}

/* Taking in profiles by their content; see model.h. The tables are made in table.c. */
#include "show/top/model.h"

#include <stdio.h>
#include <string.h>

#include "record/model/tree.h"

struct fm_top_model *fm_top_model_new(uint64_t start_ns)
{
    struct fm_top_model *model = fm_calloc(1, sizeof *model);
    model->strings = fm_strings_new();
    model->function_keys = fm_strings_new();
    model->thread_keys = fm_strings_new();
    model->wait_keys = fm_strings_new();
    model->start_ns = model->before_ns = model->now_ns = start_ns;
    return model;
}

void fm_top_model_free(struct fm_top_model *model)
{
    if (!model)
        return;
    fm_strings_free(model->strings);
    fm_strings_free(model->function_keys);
    fm_strings_free(model->thread_keys);
    fm_strings_free(model->wait_keys);
    fm_vec_release(&model->files);
    fm_vec_release(&model->functions);
    fm_vec_release(&model->threads);
    fm_vec_release(&model->nodes);
    fm_vec_release(&model->lines);
    fm_vec_release(&model->waits);
    fm_map_release(&model->file_of);
    fm_map_release(&model->thread_of);
    fm_map_release(&model->alike);
    fm_map_release(&model->node_of);
    fm_map_release(&model->line_of);
    free(model);
}

static void count_add(struct fm_top_count *into, const struct fm_top_count *extra)
{
    into->samples = fm_sum(into->samples, extra->samples);
    for (int s = 0; s < FM_STATE_COUNT; s++)
        into->state_ns[s] = fm_sum(into->state_ns[s], extra->state_ns[s]);
}

static const char *text_of(const struct fm_top_model *model, uint32_t string)
{
    return fm_strings_get(model->strings, string);
}

/* Where the path begins if one more component is shown. */
static uint32_t widen(const char *path, uint32_t cut)
{
    if (cut == 0)
        return 0;
    uint32_t at = cut - 1;
    while (at > 0 && path[at - 1] != '/')
        at--;
    return at;
}

/* Is what is shown of a file also the end of another's path? */
static bool looks_like(const char *shown, const char *path)
{
    size_t a = strlen(shown), b = strlen(path);
    return a <= b && strcmp(path + b - a, shown) == 0 && (a == b || path[b - a - 1] == '/');
}

/* Show as much of the new file, and of any that looks like it, as tells them apart. */
static void tell_apart(struct fm_top_model *model, struct fm_top_file *file)
{
    const char *path = text_of(model, file->path);
    for (size_t i = 0; i < model->files.len; i++) {
        struct fm_top_file *other = &model->files.data[i];
        const char *their = text_of(model, other->path);
        while (file->cut && looks_like(path + file->cut, their))
            file->cut = widen(path, file->cut);
        while (other->cut && looks_like(their + other->cut, path))
            other->cut = widen(their, other->cut);
    }
}

static uint32_t file_number(struct fm_top_model *model, const char *path)
{
    if (!*path)
        return FM_NONE;
    bool is_new;
    uint32_t string = fm_strings_add_text(model->strings, path);
    uint32_t number = *fm_map_at(&model->file_of, string, (uint32_t)model->files.len, &is_new);
    if (is_new) {
        const char *slash = strrchr(path, '/');
        struct fm_top_file file = { string, slash ? (uint32_t)(slash + 1 - path) : 0 };
        tell_apart(model, &file);
        fm_vec_push(&model->files, file);
    }
    return number;
}

/* "<built-in method time.sleep>" is called "time.sleep". */
static uint32_t plain_name(struct fm_top_model *model, const char *name)
{
    static const char words[] = "<built-in method ";
    size_t len = strlen(name), skip = sizeof words - 1;
    if (strncmp(name, words, skip) == 0 && name[len - 1] == '>')
        return fm_strings_add(model->strings, name + skip, len - skip - 1);
    return fm_strings_add_text(model->strings, name);
}

static uint32_t function_number(struct fm_top_model *model, const struct fm_profile *p,
                                uint32_t func)
{
    const struct fm_function *f = &p->functions.data[func];
    const char *name = fm_profile_text(p, f->name), *qualname = fm_profile_text(p, f->qualname);
    if (f->kind == FM_FUNCTION_ROOT)
        name = qualname = "(no Python frame)";
    struct {
        uint32_t kind, line, twin, name, qualname, file;
    } key = { f->kind,
              f->line,
              f->twin,
              fm_strings_add_text(model->strings, name),
              fm_strings_add_text(model->strings, qualname),
              fm_strings_add_text(model->strings, fm_profile_text(p, f->file)) };
    uint32_t number = fm_strings_add(model->function_keys, &key, sizeof key) - 1;
    if (number == model->functions.len) {
        struct fm_top_function made = { .kind = f->kind, .line = f->line, .twin = f->twin };
        made.name = plain_name(model, *qualname ? qualname : name);
        made.file = file_number(model, fm_profile_text(p, f->file));
        fm_vec_push(&model->functions, made);
    }
    return number;
}

static uint32_t node_push(struct fm_top_model *model, uint32_t parent, uint32_t func,
                          uint32_t thread)
{
    struct fm_top_node node = { .parent = parent, .func = func, .thread = thread };
    uint32_t up = parent;
    while (up != FM_NONE && model->nodes.data[up].func != func)
        up = model->nodes.data[up].parent;
    node.outermost = up == FM_NONE;
    fm_vec_push(&model->nodes, node);
    return (uint32_t)model->nodes.len - 1;
}

/* One system thread may stand for several: itself, and the tasks that it runs. They come in the
 * same order in every profile, so they are told apart by counting. */
static uint32_t thread_number(struct fm_top_model *model, const struct fm_profile *p,
                              uint32_t thread, uint32_t root_func)
{
    const struct fm_thread *t = &p->threads.data[thread];
    uint32_t pid = t->process < p->processes.len ? p->processes.data[t->process].pid : 0;
    uint64_t key[] = { fm_map_pair(pid, t->tid), t->start_ns };
    uint32_t alike = fm_strings_add(model->thread_keys, key, sizeof key);
    uint32_t nth = (*fm_map_at(&model->alike, alike, 0, NULL))++;
    bool is_new;
    uint32_t number = *fm_map_at(&model->thread_of, fm_map_pair(alike, nth),
                                 (uint32_t)model->threads.len, &is_new);
    if (is_new) {
        struct fm_top_thread made = { .pid = pid, .tid = t->tid };
        made.root = node_push(model, FM_NONE, root_func, number);
        fm_vec_push(&model->threads, made);
    }
    /* A program may name its threads late. */
    model->threads.data[number].name =
        fm_strings_add_text(model->strings, fm_profile_text(p, t->name));
    return number;
}

static void count_read(struct fm_top_count *count, const struct fm_profile *p, uint32_t node)
{
    count->samples = fm_profile_value(p, FM_METRIC_SAMPLES, node);
    for (int s = 0; s < FM_STATE_COUNT; s++)
        count->state_ns[s] = fm_profile_value(p, fm_metric_of_state((enum fm_state)s), node);
}

static void take_nodes(struct fm_top_model *model, const struct fm_profile *p,
                       const uint32_t *functions)
{
    fm_autofree uint32_t *mine = fm_calloc(p->nodes.len, sizeof *mine);
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        const struct fm_node *n = &p->nodes.data[i];
        uint32_t func = functions[n->func];
        if (n->parent == FM_NONE) {
            uint32_t thread = thread_number(model, p, n->thread, func);
            mine[i] = model->threads.data[thread].root;
        } else {
            bool is_new;
            uint32_t parent = mine[n->parent];
            mine[i] =
                fm_tree_at(&model->node_of, parent, func, (uint32_t)model->nodes.len, &is_new);
            if (is_new)
                node_push(model, parent, func, model->nodes.data[parent].thread);
        }
        struct fm_top_count count;
        struct fm_top_node *node = &model->nodes.data[mine[i]];
        count_read(&count, p, i);
        count_add(&node->now, &count);
        count_add(&model->threads.data[node->thread].now, &count);
        count_add(&model->now, &count);
    }
}

static uint32_t line_number(struct fm_top_model *model, uint32_t func, uint32_t line)
{
    bool is_new;
    uint32_t number =
        *fm_map_at(&model->line_of, fm_map_pair(func, line), (uint32_t)model->lines.len, &is_new);
    if (is_new)
        fm_vec_push(&model->lines,
                    ((struct fm_top_line){ .func = func, .line = line, .wait = FM_NONE }));
    return number;
}

static void take_lines(struct fm_top_model *model, const struct fm_profile *p,
                       const uint32_t *functions)
{
    for (size_t i = 0; i < p->lines.rows.len; i++) {
        const struct fm_line *from = &p->lines.rows.data[i];
        uint32_t number = line_number(model, functions[from->func], from->line);
        struct fm_top_line *line = &model->lines.data[number];
        struct fm_top_count count = { .samples = from->samples };
        memcpy(count.state_ns, from->state_ns, sizeof count.state_ns);
        count_add(&line->now, &count);
        line->total_now_ns = fm_sum(line->total_now_ns, from->total_ns);
    }
}

static void take_waits(struct fm_top_model *model, const struct fm_profile *p,
                       const uint32_t *functions)
{
    for (size_t i = 0; i < p->samples.waits.len; i++) {
        const struct fm_wait *from = &p->samples.waits.data[i];
        uint32_t line = line_number(model, functions[from->func], from->line);
        uint32_t detail = fm_strings_add_text(model->strings, fm_profile_text(p, from->detail));
        uint32_t key[] = { line, from->state, detail };
        uint32_t number = fm_strings_add(model->wait_keys, key, sizeof key) - 1;
        if (number == model->waits.len) {
            struct fm_top_wait made = { .line = line, .state = from->state, .detail = detail };
            made.next = model->lines.data[line].wait;
            model->lines.data[line].wait = number;
            fm_vec_push(&model->waits, made);
        }
        struct fm_top_wait *wait = &model->waits.data[number];
        wait->samples = fm_sum(wait->samples, from->samples);
        wait->now_ns = fm_sum(wait->now_ns, from->ns);
    }
}

static void step_back(struct fm_top_count *now, struct fm_top_count *before)
{
    *before = *now;
    memset(now, 0, sizeof *now);
}

static void begin(struct fm_top_model *model)
{
    fm_map_release(&model->alike);
    for (size_t i = 0; i < model->nodes.len; i++)
        step_back(&model->nodes.data[i].now, &model->nodes.data[i].before);
    for (size_t i = 0; i < model->threads.len; i++)
        step_back(&model->threads.data[i].now, &model->threads.data[i].before);
    for (size_t i = 0; i < model->lines.len; i++) {
        struct fm_top_line *line = &model->lines.data[i];
        step_back(&line->now, &line->before);
        line->total_before_ns = line->total_now_ns;
        line->total_now_ns = 0;
    }
    for (size_t i = 0; i < model->waits.len; i++) {
        struct fm_top_wait *wait = &model->waits.data[i];
        wait->before_ns = wait->now_ns;
        wait->now_ns = wait->samples = 0;
    }
    step_back(&model->now, &model->before);
}

void fm_top_model_take(struct fm_top_model *model, const struct fm_profile *p, uint64_t now_ns)
{
    begin(model);
    model->before_ns = model->now_ns;
    model->now_ns = now_ns;
    fm_autofree uint32_t *functions = fm_calloc(p->functions.len, sizeof *functions);
    for (uint32_t i = 0; i < p->functions.len; i++)
        functions[i] = function_number(model, p, i);
    take_nodes(model, p, functions);
    take_lines(model, p, functions);
    take_waits(model, p, functions);
    model->processes = (uint32_t)p->processes.len;
    if (p->processes.len) {
        const struct fm_process *first = &p->processes.data[0];
        model->command = fm_strings_add_text(model->strings, fm_profile_text(p, first->command));
        model->version = fm_strings_add_text(model->strings, fm_profile_text(p, first->version));
    }
}

const char *fm_top_name(const struct fm_top_model *model, uint32_t func)
{
    return text_of(model, model->functions.data[func].name);
}

const char *fm_top_place(const struct fm_top_model *model, uint32_t func, uint32_t line, char *out,
                         size_t cap)
{
    const struct fm_top_function *f = &model->functions.data[func];
    if (!line)
        line = f->line;
    if (f->file == FM_NONE) {
        snprintf(out, cap, "%s", f->kind == FM_FUNCTION_C ? "built-in" : "");
        return out;
    }
    const struct fm_top_file *file = &model->files.data[f->file];
    const char *path = text_of(model, file->path) + file->cut;
    if (line)
        snprintf(out, cap, "%s:%u", path, line);
    else
        snprintf(out, cap, "%s", path);
    return out;
}

/* Stacks on their way into a profile and out of it; see stacks.h. */
#include "record/formats/stacks/stacks.h"

#include <string.h>

#include "base/memory.h"

void fm_stacks_init(struct fm_stacks *s)
{
    *s = (struct fm_stacks){ .p = fm_profile_new() };
    s->tree.p = s->p;
}

void fm_stacks_release(struct fm_stacks *s)
{
    fm_vec_release(&s->functions);
    fm_vec_release(&s->spot_list);
    fm_map_release(&s->names);
    fm_map_release(&s->function_index);
    fm_map_release(&s->processes);
    fm_map_release(&s->threads);
    fm_tree_release(&s->tree);
    fm_map_release(&s->spots);
    fm_map_release(&s->lines);
}

/* ---- processes and threads ---- */

uint32_t fm_stacks_process(struct fm_stacks *s, uint32_t pid)
{
    bool is_new;
    uint32_t fresh = (uint32_t)s->p->processes.len;
    uint32_t process = *fm_map_at(&s->processes, pid, fresh, &is_new);
    if (is_new)
        fm_profile_process(s->p,
                           &(struct fm_process){
                               .pid = pid, .exit_status = -1, .profiled = true, .sampled = true });
    return process;
}

uint32_t fm_stacks_thread(struct fm_stacks *s, uint32_t process, uint32_t tid, uint32_t name)
{
    bool is_new;
    uint64_t key = tid ? fm_map_pair(process, tid) : 1ull << 63 | fm_map_pair(process, name);
    uint32_t thread = *fm_map_at(&s->threads, key, (uint32_t)s->p->threads.len, &is_new);
    if (is_new)
        fm_profile_thread(s->p, &(struct fm_thread){ .process = process, .tid = tid });
    if (name)
        s->p->threads.data[thread].name = name; /* some tools learn it late */
    return thread;
}

/* ---- functions ---- */

uint32_t fm_stacks_function_new(struct fm_stacks *s, uint32_t name, uint32_t file, uint32_t line)
{
    struct fm_stacks_function f = { .name = name, .file = file, .line = line, .distinct = true };
    fm_vec_push(&s->functions, f);
    return (uint32_t)s->functions.len - 1;
}

uint32_t fm_stacks_function(struct fm_stacks *s, uint32_t name, uint32_t file, uint32_t line)
{
    bool is_new;
    uint32_t pair = *fm_map_at(&s->names, fm_map_pair(file, name), (uint32_t)s->names.len, NULL);
    uint64_t key = fm_map_pair(pair, s->first_lines ? line : 0);
    uint32_t function = *fm_map_at(&s->function_index, key, (uint32_t)s->functions.len, &is_new);
    if (is_new) {
        fm_stacks_function_new(s, name, file, line);
        s->functions.data[function].distinct = false;
    }
    struct fm_stacks_function *f = &s->functions.data[function];
    if (line && (!f->line || line < f->line))
        f->line = line;
    return function;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), n = strlen(end);
    return len >= n && strcmp(text + len - n, end) == 0;
}

static uint8_t kind_of(const char *file, const char *name)
{
    if (!*file || strcmp(file, "~") == 0)
        return name[0] == '<' ? FM_FUNCTION_C : FM_FUNCTION_NATIVE;
    if (strcmp(file, "<built-in>") == 0) /* pyinstrument's */
        return FM_FUNCTION_C;
    bool python = file[0] == '<' || ends_with(file, ".py") || ends_with(file, ".pyc");
    return python ? FM_FUNCTION_PYTHON : FM_FUNCTION_NATIVE;
}

static uint32_t make_function(struct fm_stacks *s, const struct fm_stacks_function *f)
{
    const char *name = fm_profile_text(s->p, f->name);
    struct fm_function made = { .qualname = f->name, .name = f->name };
    made.kind = kind_of(fm_profile_text(s->p, f->file), name);
    if (made.kind != FM_FUNCTION_C) {
        made.file = f->file;
        made.line = f->line;
    }
    const char *dot = made.kind == FM_FUNCTION_PYTHON ? strrchr(name, '.') : NULL;
    if (dot && dot[1])
        made.name = fm_profile_string(s->p, dot + 1);
    return f->distinct ? fm_profile_function_distinct(s->p, &made)
                       : fm_profile_function(s->p, &made);
}

/* ---- stacks ---- */

void fm_stacks_begin(struct fm_stacks *s, uint32_t thread, int64_t samples, int64_t ns)
{
    s->stacks++;
    s->node = s->p->threads.data[thread].root;
    s->process = s->p->threads.data[thread].process;
    s->row = FM_NONE;
    s->samples = samples;
    s->ns = ns;
}

uint32_t fm_stacks_child(struct fm_stacks *s, uint32_t node, uint32_t function)
{
    return fm_tree_child(&s->tree, node, function);
}

/* A line of a function as a number. */
static uint32_t spot_at(struct fm_stacks *s, uint32_t function, uint32_t line)
{
    bool is_new;
    uint32_t spot =
        *fm_map_at(&s->spots, fm_map_pair(function, line), (uint32_t)s->spots.len, &is_new);
    if (is_new && s->lined)
        fm_vec_push(&s->spot_list, ((struct fm_stacks_spot){ function, line }));
    return spot;
}

static uint32_t row_at(struct fm_stacks *s, uint32_t function, uint32_t line)
{
    bool is_new;
    uint32_t spot = spot_at(s, function, line);
    uint32_t fresh = (uint32_t)s->p->lines.rows.len;
    uint32_t row = *fm_map_at(&s->lines, fm_map_pair(spot, s->process), fresh, &is_new);
    if (is_new)
        fm_lines_add(&s->p->lines, s->process, function, line, false);
    return row;
}

void fm_stacks_push(struct fm_stacks *s, uint32_t function, uint32_t line)
{
    struct fm_stacks_function *f = &s->functions.data[function];
    bool outermost = f->stack != s->stacks;
    s->node = fm_stacks_child(s, s->node, s->lined ? spot_at(s, function, line) : function);
    s->row = FM_NONE;
    f->stack = s->stacks;
    if (s->first_lines || s->lined || !line)
        return;
    s->row = row_at(s, function, line);
    struct fm_line *row = &s->p->lines.rows.data[s->row];
    if (outermost)
        row->total_ns = fm_sum(row->total_ns, s->ns);
}

uint32_t fm_stacks_end(struct fm_stacks *s)
{
    fm_profile_add(s->p, FM_METRIC_SAMPLES, s->node, s->samples);
    fm_profile_add(s->p, FM_METRIC_TOTAL, s->node, s->ns);
    if (s->row != FM_NONE) {
        struct fm_line *row = &s->p->lines.rows.data[s->row];
        row->samples = fm_sum(row->samples, s->samples);
        row->self_ns = fm_sum(row->self_ns, s->ns);
    }
    return s->node;
}

void fm_stacks_unit(struct fm_stacks *s, const char *unit, size_t len)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    int shown = len > 40 ? 40 : (int)len;
    fm_buffer_addf(&text, "%.*s", shown, unit);
    fm_profile_fact(s->p, "unit", fm_buffer_text(&text));
    fm_buffer_clear(&text);
    fm_buffer_addf(&text, "the file has %.*s and no times: 1 ns stands for one of them", shown,
                   unit);
    fm_profile_note(s->p, FM_NONE, "unit", 0, fm_buffer_text(&text));
}

void fm_stacks_settle(struct fm_stacks *s)
{
    struct fm_profile *p = s->p;
    fm_autofree uint32_t *made = fm_malloc((s->functions.len + 1) * sizeof *made);
    for (size_t i = 0; i < s->functions.len; i++)
        made[i] = make_function(s, &s->functions.data[i]);
    for (size_t i = p->nodes.len; i-- > 0;) {
        struct fm_node *node = &p->nodes.data[i];
        struct fm_process *process = &p->processes.data[p->threads.data[node->thread].process];
        int64_t samples = fm_profile_value(p, FM_METRIC_SAMPLES, (uint32_t)i);
        if (samples > 0)
            process->samples += (uint64_t)samples;
        if (node->parent == FM_NONE)
            continue; /* its function stands for the thread already */
        if (s->lined) {
            struct fm_stacks_spot spot = s->spot_list.data[node->func];
            node->func = spot.function;
            node->line = spot.line;
            p->has_lined_nodes |= spot.line != 0;
        }
        node->func = made[node->func];
        fm_profile_add(p, FM_METRIC_TOTAL, node->parent,
                       fm_profile_value(p, FM_METRIC_TOTAL, (uint32_t)i));
    }
    for (size_t i = 0; i < p->lines.rows.len; i++)
        p->lines.rows.data[i].func = made[p->lines.rows.data[i].func];
    fm_lines_sort(&p->lines);
}

void fm_stacks_of_memory(struct fm_stacks *s)
{
    for (size_t i = 0; i < s->p->processes.len; i++) {
        s->p->processes.data[i].sampled = false;
        s->p->processes.data[i].memory = s->p->processes.data[i].memory_foreign = true;
    }
}

/* ---- frames as text ---- */

/* A number that ends the text: where it begins, or NULL. */
static const char *last_number(const char *text, const char *end, uint32_t *number)
{
    const char *begin = end;
    uint64_t value = 0;
    while (begin > text && begin[-1] >= '0' && begin[-1] <= '9')
        begin--;
    if (begin == end || end - begin > 9)
        return NULL;
    for (const char *c = begin; c < end; c++)
        value = value * 10 + (uint64_t)(*c - '0');
    *number = (uint32_t)value;
    return begin;
}

/* "file:line": where the file ends. */
static const char *take_line(const char *text, const char *end, uint32_t *line)
{
    const char *number = last_number(text, end, line);
    if (number && number - text >= 2 && number[-1] == ':')
        return number - 1;
    *line = 0;
    return end;
}

/* The " (" that belongs to the ")" at the end, or NULL. */
static const char *find_open(const char *text, const char *end)
{
    int depth = 0;
    for (const char *c = end; c-- > text;) {
        if (*c == ')')
            depth++;
        else if (*c == '(' && --depth == 0)
            return c > text + 1 && c[-1] == ' ' && c + 2 < end ? c - 1 : NULL;
    }
    return NULL;
}

static uint32_t string_of(struct fm_stacks *s, const char *begin, const char *end)
{
    return fm_strings_add(s->p->strings, begin, (size_t)(end - begin));
}

/* "file:name:line" of austin and of Python's sampler. */
static bool take_austin(struct fm_stacks *s, const char *text, const char *end, bool sure,
                        uint32_t *name, uint32_t *file, uint32_t *line)
{
    const char *name_end = take_line(text, end, line), *colon = name_end;
    if (name_end == end)
        return false;
    while (colon > text && colon[-1] != ':')
        colon--;
    if (colon < text + 2 || colon == name_end) /* no file, or no name */
        return false;
    const char *file_end = colon - 1;
    bool python = *text == '<' || (file_end - text > 3 && memcmp(file_end - 3, ".py", 3) == 0);
    if (!sure && !python)
        return false;
    *file = string_of(s, text, file_end);
    *name = string_of(s, colon, name_end);
    return true;
}

uint32_t fm_stacks_frame(struct fm_stacks *s, const char *text, size_t len, bool austin,
                         uint32_t *line)
{
    const char *end = text + len;
    const char *open = len > 3 && end[-1] == ')' ? find_open(text, end) : NULL;
    uint32_t name, file = 0;
    *line = 0;
    if (open) {
        const char *file_end = take_line(open + 2, end - 1, line);
        name = string_of(s, text, open);
        file = string_of(s, open + 2, file_end);
    } else if (!take_austin(s, text, end, austin, &name, &file, line)) {
        *line = 0;
        name = string_of(s, text, end);
    }
    return fm_stacks_function(s, name, file, *line);
}

/* ---- out ---- */

int fm_own_init(struct fm_own *own, const struct fm_profile *p, struct fm_error *err)
{
    *own =
        (struct fm_own){ .unit = fm_profile_fact_get(p, "unit"), .columns = fm_profile_columns(p) };
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        if (own->columns >> m & 1)
            own->column[m] = fm_profile_selves_new(p, (enum fm_metric)m);
    if (p->flat || (!p->nodes.len && p->lines.rows.len))
        return fm_error_set(err, FM_UNSUPPORTED,
                            "the recording has functions%s, but not the stacks that this format "
                            "consists of",
                            p->flat ? " and their callers" : " and their lines");
    own->ns = fm_calloc(p->nodes.len + 1, sizeof *own->ns);
    for (size_t i = p->nodes.len; i-- > 0;) {
        uint32_t parent = p->nodes.data[i].parent;
        int64_t total = fm_profile_value(p, FM_METRIC_TOTAL, (uint32_t)i);
        total = total > 0 ? total : 0;
        own->ns[i] = fm_sum(own->ns[i], total); /* what callees took is there already */
        if (parent != FM_NONE)
            own->ns[parent] = fm_sum(own->ns[parent], -total);
    }
    fm_autofree bool *seen_thread = fm_calloc(p->threads.len + 1, sizeof *seen_thread);
    fm_autofree bool *seen_process = fm_calloc(p->processes.len + 1, sizeof *seen_process);
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        uint32_t thread = p->nodes.data[i].thread, process = p->threads.data[thread].process;
        own->ns[i] = own->ns[i] > 0 ? own->ns[i] : 0;
        own->samples |= fm_profile_value(p, FM_METRIC_SAMPLES, i) > 0;
        own->calls |= fm_profile_value(p, FM_METRIC_CALLS, i) > 0 ||
                      fm_profile_value(p, FM_METRIC_RESUMES, i) > 0;
        for (int state = 0; state < FM_STATE_COUNT; state++)
            own->states |= fm_profile_value(p, fm_metric_of_state((enum fm_state)state), i) > 0;
        if (!fm_own_has(own, p, i))
            continue;
        own->threads += !seen_thread[thread];
        own->processes += !seen_process[process];
        seen_thread[thread] = seen_process[process] = true;
    }
    return 0;
}

void fm_own_release(struct fm_own *own)
{
    free(own->ns);
    own->ns = NULL;
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        free(own->column[m]);
}

bool fm_own_has(const struct fm_own *own, const struct fm_profile *p, uint32_t node)
{
    for (int m = 0; own->columns && m < FM_METRIC_COUNT; m++)
        if (own->column[m] && own->column[m][node] > 0)
            return true;
    return own->ns[node] > 0 || fm_profile_value(p, FM_METRIC_SAMPLES, node) > 0 ||
           fm_profile_value(p, FM_METRIC_CALLS, node) > 0 ||
           fm_profile_value(p, FM_METRIC_RESUMES, node) > 0;
}

size_t fm_own_path(const struct fm_profile *p, uint32_t node, uint32_t *path)
{
    size_t n = 0;
    for (uint32_t i = node; p->nodes.data[i].parent != FM_NONE; i = p->nodes.data[i].parent)
        path[n++] = i;
    for (size_t i = 0; i < n / 2; i++) {
        uint32_t other = path[i];
        path[i] = path[n - 1 - i];
        path[n - 1 - i] = other;
    }
    return n;
}

/*
 * `fathom graph`: the call graph of a recording, or of two compared, as a picture; or one picture
 * per thread or process.
 */
#include <stdio.h>
#include <string.h>

#include "base/clean.h"
#include "base/memory.h"
#include "base/output.h"
#include "commands/graph/graph_options.h"
#include "commands/inputs.h"
#include "commands/verb.h"
#include "record/model/derive/weigh.h"
#include "show/graph/names.h"

/* With more arrows per function nobody follows them, and their layout takes minutes. */
#define EDGES_PER_NODE_MAX 4

/* A picture to be made. */
struct part {
    struct fm_flat_scope scope;
    char *path, *title; /* title may be NULL */
};

struct graph_work {
    struct fm_graph_options o;
    struct fm_profile *p[FM_GRAPH_SIDES];
    FM_VEC(struct part) parts;
    bool nothing_shown; /* the filter left nothing of the picture at hand */
    struct fm_error err;
};

static int open_inputs(struct graph_work *w)
{
    char *first[] = { w->o.files[0], NULL };
    char *second[] = { w->o.compare ? w->o.files[1] : NULL, NULL };
    w->p[0] = fm_inputs_open(w->o.compare ? first : w->o.files, false, 0, &w->err);
    if (w->p[0] && w->o.compare)
        w->p[1] = fm_inputs_open(second, false, 0, &w->err);
    for (int i = 0; i < FM_GRAPH_SIDES && w->o.cpu && w->err.status == 0; i++)
        if (w->p[i] && !fm_samples_keep_states(w->p[i], fm_states_running()))
            fm_error_set(&w->err, FM_UNSUPPORTED,
                         "%s holds no samples, so --cpu has nothing to choose from", w->o.files[i]);
    for (int i = 0; i < FM_GRAPH_SIDES && w->o.metric && w->err.status == 0; i++)
        if (w->p[i] && fm_profile_weigh(w->p[i], w->o.metric, &w->err) == FM_UNSUPPORTED)
            fm_error_context(&w->err, "%s", w->o.files[i]);
    return w->err.status;
}

/* ---- which pictures ---- */

static char *expand(const char *format, uint32_t pid, uint32_t tid, size_t number)
{
    struct fm_buffer name = FM_BUFFER_INIT;
    for (; *format; format++) {
        char what = *format == '%' ? format[1] : '\0';
        if (what == 'p')
            fm_buffer_addf(&name, "%u", pid);
        else if (what == 't')
            fm_buffer_addf(&name, "%u", tid);
        else if (what == 'n')
            fm_buffer_addf(&name, "%zu", number);
        else if (what == '%')
            fm_buffer_add_char(&name, '%');
        else
            fm_buffer_add_char(&name, *format);
        if (what && strchr("ptn%", what))
            format++;
    }
    return fm_buffer_detach(&name);
}

static char *describe(const struct fm_profile *p, const struct fm_thread *thread,
                      const struct fm_process *process)
{
    struct fm_buffer text = FM_BUFFER_INIT;
    const char *name = thread ? fm_profile_text(p, thread->name) : "";
    if (thread)
        fm_buffer_addf(&text, "thread %u%s%s%s", thread->tid, *name ? " (" : "", name,
                       *name ? ")" : "");
    if (process)
        fm_buffer_addf(&text, "%sprocess %u: %s", thread ? " of " : "", process->pid,
                       fm_profile_text(p, process->command));
    return fm_buffer_detach(&text);
}

static void add_part(struct graph_work *w, uint32_t thread, uint32_t process)
{
    const struct fm_profile *p = w->p[0];
    const struct fm_thread *t = thread != FM_NONE ? &p->threads.data[thread] : NULL;
    uint32_t owner = t ? t->process : process;
    const struct fm_process *of = owner < p->processes.len ? &p->processes.data[owner] : NULL;
    struct part part = { .scope = { process, thread }, .title = describe(p, t, of) };
    if (w->o.list)
        part.path = fm_strdup("");
    else if (w->o.by == FM_GRAPH_OF_ALL)
        part.path = fm_strdup(w->o.output);
    else
        part.path = expand(w->o.output, of ? of->pid : 0, t ? t->tid : 0, w->parts.len + 1);
    fm_vec_push(&w->parts, part);
}

/* Does the profile's thread or process have the id that was asked for, if one was? */
static bool is_meant(const struct graph_work *w, const struct fm_process *process,
                     const struct fm_thread *thread)
{
    return (w->o.process < 0 || (process && process->pid == w->o.process)) &&
           (w->o.thread < 0 || (thread && thread->tid == w->o.thread));
}

static int find_parts(struct graph_work *w)
{
    const struct fm_profile *p = w->p[0];
    bool each = w->o.by != FM_GRAPH_OF_ALL;
    bool threads = w->o.by == FM_GRAPH_BY_THREAD || (!each && w->o.thread >= 0);
    if (w->o.by == FM_GRAPH_BY_RANK)
        return fm_error_set(&w->err, FM_UNSUPPORTED, "%s holds no ranks", w->o.files[0]);
    if (!each && w->o.process < 0 && w->o.thread < 0) {
        fm_vec_push(
            &w->parts,
            ((struct part){ { FM_NONE, FM_NONE }, fm_strdup(w->o.list ? "" : w->o.output), NULL }));
        return 0;
    }
    for (uint32_t i = 0; threads && i < p->threads.len; i++) {
        const struct fm_thread *t = &p->threads.data[i];
        bool owned = t->process < p->processes.len;
        if (is_meant(w, owned ? &p->processes.data[t->process] : NULL, t) &&
            (each || !w->parts.len))
            add_part(w, i, FM_NONE);
    }
    for (uint32_t i = 0; !threads && i < p->processes.len; i++)
        if (is_meant(w, &p->processes.data[i], NULL) && (each || !w->parts.len))
            add_part(w, FM_NONE, i);
    if (!w->parts.len)
        return fm_error_set(&w->err, FM_UNSUPPORTED, "%s does not hold %s", w->o.files[0],
                            w->o.thread >= 0    ? "that thread"
                            : w->o.process >= 0 ? "that process"
                            : threads           ? "any threads"
                                                : "any processes");
    return 0;
}

/* Before anything takes long: would a picture take the place of another, or of a file? */
static int check_names(struct graph_work *w)
{
    struct fm_strings *names = fm_strings_new();
    for (size_t i = 0; i < w->parts.len && w->err.status == 0; i++) {
        const char *path = w->parts.data[i].path;
        uint32_t before = fm_strings_count(names);
        fm_strings_add_text(names, path);
        if (fm_strings_count(names) == before)
            fm_error_set(&w->err, FM_USAGE,
                         "two pictures would be named \"%s\"; put %s or %%n into the name", path,
                         w->o.by == FM_GRAPH_BY_THREAD ? "%t" : "%p");
        else
            fm_output_check(path, w->o.force, &w->err);
    }
    fm_strings_free(names);
    return w->err.status;
}

/* ---- one picture ---- */

/* What a reader of the picture must know about the recording. */
static const char *remark_of(const struct fm_profile *p)
{
    static const char *const kinds[] = { "cut-off", "damaged", "lost", "recovered" };
    for (size_t k = 0; k < FM_COUNT(kinds); k++)
        for (size_t i = 0; i < p->notes.len; i++)
            if (strcmp(fm_profile_text(p, p->notes.data[i].kind), kinds[k]) == 0)
                return fm_profile_text(p, p->notes.data[i].text);
    return NULL;
}

static void list_functions(const struct graph_work *w, const struct fm_graph *g)
{
    fm_autobuffer name = FM_BUFFER_INIT;
    for (size_t i = 0; i < g->nodes.len; i++) {
        const struct fm_graph_node *node = &g->nodes.data[i];
        if (!node->kept || !fm_graph_name_matches(node->p, node->func, w->o.list))
            continue;
        fm_buffer_clear(&name);
        fm_graph_name(&name, node->p, node->func);
        fm_clean_say(stdout, "%s", fm_buffer_text(&name));
    }
}

static int check_size(struct graph_work *w, const struct fm_graph *g)
{
    struct fm_graph_count count = fm_graph_count(g);
    size_t nodes = (size_t)w->o.max_nodes, edges = nodes * EDGES_PER_NODE_MAX;
    if (w->o.format == FM_GRAPH_DOT || (count.nodes <= nodes && count.edges <= edges))
        return 0;
    return fm_error_set(&w->err, FM_BAD_QUERY,
                        "%zu functions and %zu arrows are more than a picture can show (%zu and "
                        "%zu); raise -n and -e, use --root or --depth, or allow it with "
                        "--max-nodes",
                        count.nodes, count.edges, nodes, edges);
}

static int draw(struct graph_work *w, struct fm_graph *g, const struct part *part)
{
    fm_autobuffer dot = FM_BUFFER_INIT, drawn = FM_BUFFER_INIT;
    struct fm_graph_look look = w->o.look;
    w->nothing_shown = fm_graph_prune(g, &w->o.filter, &w->err) < 0;
    if (w->nothing_shown)
        return w->err.status;
    if (w->o.list) {
        list_functions(w, g);
        return 0;
    }
    if (check_size(w, g) < 0)
        return w->err.status;
    look.title = part->title;
    look.remark = remark_of(w->p[0]);
    look.edge_tooltips = w->o.format != FM_GRAPH_DOT;
    fm_graph_write_dot(g, &look, &dot);
    const struct fm_buffer *picture = w->o.format == FM_GRAPH_DOT ? &dot : &drawn;
    if (picture == &drawn &&
        fm_graph_render(fm_buffer_text(&dot), w->o.format, &drawn, &w->err) < 0)
        return w->err.status;
    return fm_output_write_bytes(part->path, w->o.force, picture->data, picture->len, &w->err);
}

/* The table of a part; `made` is what must be freed of it. A ready-made one is used as it is. */
static const struct fm_flat *table_of(const struct fm_profile *p, const struct fm_flat_scope *scope,
                                      struct fm_flat **made)
{
    *made = p->threads.len || !p->flat ? fm_flat_new(p, scope) : NULL;
    return *made ? *made : p->flat;
}

static int make_part(struct graph_work *w, const struct part *part)
{
    struct fm_flat *made[FM_GRAPH_SIDES] = { NULL, NULL };
    const struct fm_flat *flat[FM_GRAPH_SIDES] = { NULL, NULL };
    struct fm_graph *g = NULL;
    for (int i = 0; i < FM_GRAPH_SIDES && w->p[i]; i++) {
        flat[i] = table_of(w->p[i], &part->scope, &made[i]);
        if (!flat[i]->rows.len)
            fm_error_set(&w->err, FM_UNSUPPORTED, "%s holds no calls, so there is no graph to draw",
                         w->o.files[i]);
    }
    if (w->err.status == 0) {
        const struct fm_profile *const p[] = { w->p[0], w->p[1] };
        g = w->p[1] ? fm_graph_compare(p, flat, w->o.measure) : fm_graph_new(w->p[0], flat[0]);
        draw(w, g, part);
    }
    fm_graph_free(g);
    fm_flat_free(made[0]);
    fm_flat_free(made[1]);
    return w->err.status;
}

/* Was anything recorded below the root of the thread? Per thread. */
static bool *find_busy_threads(const struct fm_profile *p)
{
    bool *busy = fm_calloc(p->threads.len + 1, sizeof *busy);
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        const struct fm_node *node = &p->nodes.data[i];
        if (node->parent != FM_NONE &&
            (fm_profile_value(p, FM_METRIC_CALLS, i) || fm_profile_value(p, FM_METRIC_TOTAL, i)))
            busy[node->thread] = true;
    }
    return busy;
}

/* Threads and processes in which nothing was recorded get no picture, if others do. */
static void drop_empty_parts(struct graph_work *w)
{
    const struct fm_profile *p = w->p[0];
    fm_autofree bool *busy = find_busy_threads(p);
    size_t kept = 0;
    for (size_t i = 0; i < w->parts.len; i++) {
        struct part part = w->parts.data[i];
        bool any = part.scope.thread != FM_NONE && busy[part.scope.thread];
        for (uint32_t t = 0; part.scope.thread == FM_NONE && t < p->threads.len; t++)
            any = any || (busy[t] && p->threads.data[t].process == part.scope.process);
        if (any) {
            w->parts.data[kept++] = part;
        } else {
            free(part.path);
            free(part.title);
        }
    }
    w->parts.len = kept;
    if (!kept)
        fm_error_set(&w->err, FM_UNSUPPORTED, "%s holds no calls, so there is no graph to draw",
                     w->o.files[0]);
}

/* One of several pictures would have shown nothing: say so and go on. The last of them all fails.
 */
static void skip_part(struct graph_work *w, size_t part, size_t made)
{
    fm_error_context(&w->err, "%s", w->parts.data[part].title);
    if (!w->nothing_shown || (part + 1 == w->parts.len && !made))
        return;
    fm_clean_say(stderr, "fathom graph: %s: no picture", w->err.text);
    w->err = (struct fm_error)FM_ERROR_INIT;
}

static int make_parts(struct graph_work *w)
{
    size_t made = 0;
    for (size_t i = 0; i < w->parts.len && w->err.status == 0; i++) {
        if (make_part(w, &w->parts.data[i]) == 0)
            made++;
        else if (w->o.by != FM_GRAPH_OF_ALL)
            skip_part(w, i, made);
    }
    return w->err.status;
}

static int work(struct graph_work *w)
{
    if (open_inputs(w) < 0 || find_parts(w) < 0)
        return w->err.status;
    if (w->o.by != FM_GRAPH_OF_ALL)
        drop_empty_parts(w);
    if (w->err.status < 0 || (!w->o.list && check_names(w) < 0))
        return w->err.status;
    make_parts(w);
    if (w->o.list && (fflush(stdout) != 0 || ferror(stdout)))
        fm_error_set(&w->err, FM_CANNOT_WRITE, "the list cannot be written");
    return w->err.status;
}

int fm_verb_graph(int argc, char **argv)
{
    struct graph_work w = { .err = FM_ERROR_INIT };
    int status = fm_graph_options_parse(&w.o, argc, argv, &w.err);
    if (status == 0 && w.o.help)
        fputs(fm_graph_options_help(), stdout);
    else if (status == 0)
        status = work(&w);
    for (size_t i = 0; i < w.parts.len; i++) {
        free(w.parts.data[i].path);
        free(w.parts.data[i].title);
    }
    fm_vec_release(&w.parts);
    fm_profile_free(w.p[0]);
    fm_profile_free(w.p[1]);
    fm_graph_options_release(&w.o);
    if (status == FM_USAGE)
        return fm_verb_usage("graph", "%s", w.err.text);
    return status < 0 ? fm_verb_fail("graph", &w.err) : 0;
}

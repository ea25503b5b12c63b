/*
 * The table of functions of all recordings, and the names of modules; see engine.h.
 *
 * What makes two functions the same is a key: kind, name, qualified name, file, and which of those
 * with all these in common it is, by line. So functions of one recording always stay apart, and
 * those of another are found again although their lines have moved. Id and key have the same
 * number. One line of a function (fm_node.line) is a function of its own, made when it is asked for.
 */
#include "engine.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "json.h"
#include "record/model/derive/bare_names.h"
#include "record/model/derive/pairs.h"

/* ---- whose code ---- */

/* Where the path within a library's folder begins, or NULL. */
static const char *within_library(const char *file)
{
    static const char *const marks[] = { "/site-packages/", "/dist-packages/" };
    for (size_t i = 0; i < FM_COUNT(marks); i++) {
        const char *hit = strstr(file, marks[i]);
        if (hit)
            return hit + strlen(marks[i]);
    }
    const char *hit = strstr(file, "/lib/python3");
    if (!hit)
        hit = strstr(file, "/lib64/python3");
    hit = hit ? strchr(hit + strlen("/lib/python3"), '/') : NULL;
    return hit ? hit + 1 : NULL;
}

static bool is_library(uint8_t kind, const char *file)
{
    if (kind == FM_FUNCTION_C || kind == FM_FUNCTION_NATIVE)
        return true;
    return kind == FM_FUNCTION_PYTHON &&
           (strncmp(file, "<frozen ", 8) == 0 || within_library(file) != NULL);
}

/* ---- modules ---- */

/* "json/decoder.py" as "json.decoder", "json/__init__.py" as "json". */
static uint32_t dotted(struct fm_engine *e, const char *path)
{
    size_t len = strlen(path);
    if (len > 3 && strcmp(path + len - 3, ".py") == 0)
        len -= 3;
    if (len > 9 && memcmp(path + len - 9, "/__init__", 9) == 0)
        len -= 9;
    fm_autofree char *name = fm_strndup(path, len);
    for (size_t i = 0; i < len; i++)
        if (name[i] == '/')
            name[i] = '.';
    return fm_strings_add(e->strings, name, len);
}

static uint32_t module_name(struct fm_engine *e, uint8_t kind, const char *file, size_t prefix)
{
    if (kind == FM_FUNCTION_C)
        return fm_strings_add_text(e->strings, "<builtins>");
    if (kind == FM_FUNCTION_REGION)
        return fm_strings_add_text(e->strings, "<no file>");
    if (kind == FM_FUNCTION_ROOT)
        return fm_strings_add_text(e->strings, "<threads>");
    if (!*file || strcmp(file, "~") == 0)
        return fm_strings_add_text(e->strings, "<builtins>");
    if (strncmp(file, "<frozen ", 8) == 0 && file[strlen(file) - 1] == '>')
        return fm_strings_add(e->strings, file + 8, strlen(file) - 9);
    const char *within = within_library(file);
    if (within)
        return dotted(e, within);
    return *file == '/' && strlen(file) > prefix ? dotted(e, file + prefix) : dotted(e, file);
}

/* The length of the folder, with its last slash, that all of the user's own files are in. */
static size_t common_folder(const struct fm_profile *p)
{
    const char *first = NULL;
    size_t len = 0;
    for (size_t i = 0; i < p->functions.len; i++) {
        const struct fm_function *f = &p->functions.data[i];
        const char *file = fm_profile_text(p, f->file);
        if (*file != '/' || is_library(f->kind, file))
            continue;
        const char *slash = strrchr(file, '/');
        size_t same = 0, folder = (size_t)(slash - file) + 1;
        if (!first) {
            first = file;
            len = folder;
        }
        while (same < len && same < folder && file[same] == first[same])
            same++;
        while (same && first[same - 1] != '/')
            same--;
        len = same;
    }
    return len;
}

/* ---- ids ---- */

static uint32_t function_add(struct fm_engine *e, const struct fm_engine_function *f,
                             uint32_t ordinal)
{
    struct {
        uint32_t kind, name, qualname, file, ordinal, at;
    } key = { f->kind + 1u, f->name, f->qualname, f->file, ordinal, f->at };
    uint32_t id = fm_strings_add(e->keys, &key, sizeof key);
    if (id == e->functions.len)
        fm_vec_push(&e->functions, *f);
    return id;
}

static uint32_t moved_string(struct fm_engine *e, const struct fm_profile *p, uint32_t string)
{
    return fm_strings_add(e->strings, fm_strings_get(p->strings, string),
                          fm_strings_len(p->strings, string));
}

/* "MainThread (pid 12)"; a thread without a name is known by its number. */
static uint32_t thread_function(struct fm_engine *e, const struct fm_recording *r, uint32_t thread)
{
    const struct fm_thread *t = &r->p->threads.data[thread];
    const struct fm_process *process = &r->p->processes.data[t->process];
    fm_autobuffer name = FM_BUFFER_INIT;
    if (fm_strings_len(r->p->strings, t->name))
        fm_buffer_add(&name, fm_strings_get(r->p->strings, t->name),
                      fm_strings_len(r->p->strings, t->name));
    else
        fm_buffer_addf(&name, "thread %u", t->tid);
    fm_buffer_addf(&name, " (pid %u)", process->pid);
    struct fm_engine_function f = { .kind = FM_FUNCTION_ROOT, .module_func = FM_NONE };
    f.name = f.qualname = fm_strings_add(e->strings, name.data, name.len);
    f.module = fm_strings_add_text(e->strings, "<threads>");
    return function_add(e, &f, thread);
}

static bool is_before(const struct fm_bare_name *a, const struct fm_bare_name *b)
{
    return a->place < b->place || (a->place == b->place && a->nth < b->nth);
}

/* Where the recordings so far have qualified names and this one has none, or the other way round: what its
 * functions are among those, or FM_NONE; *ret_alike: bare names that are nobody's, which are not to be taken for
 * another's. Caller frees both. */
static uint32_t *bare_partners_new(struct fm_engine *e, const struct fm_profile *p,
                                   bool **ret_alike)
{
    uint32_t *partners = fm_malloc((p->functions.len + 1) * sizeof *partners);
    bool *alike = *ret_alike = fm_calloc(p->functions.len + 1, sizeof *alike);
    FM_VEC(struct fm_bare_name) all = { 0 };
    for (uint32_t i = 0; i < e->functions.len; i++) {
        const struct fm_engine_function *f = &e->functions.data[i];
        struct fm_bare_name bare = { 0, i, f->file, f->name, f->qualname, f->line };
        if (f->kind == FM_FUNCTION_PYTHON && !f->at)
            fm_vec_push(&all, bare);
    }
    for (uint32_t i = 0; i < p->functions.len; i++) {
        const struct fm_function *f = &p->functions.data[i];
        uint32_t name = moved_string(e, p, f->name);
        uint32_t qualname = f->qualname ? moved_string(e, p, f->qualname) : name;
        struct fm_bare_name bare = { 1, i, moved_string(e, p, f->file), name, qualname, f->line };
        partners[i] = FM_NONE;
        if (f->kind == FM_FUNCTION_PYTHON)
            fm_vec_push(&all, bare);
    }
    fm_bare_names_match(all.data, all.len);
    for (size_t i = 0, other = 0; i < all.len; i++) { /* both sides in the order of places */
        const struct fm_bare_name *b = &all.data[i], *a = &all.data[other];
        if (b->file != a->file || b->name != a->name)
            other = i;
        if (!b->found || !b->side)
            continue;
        for (a = &all.data[other]; !a->side && is_before(a, b); a++)
            other++;
        alike[b->id] = true;
        if (!a->side && !is_before(b, a))
            partners[b->id] = a->id;
    }
    fm_vec_release(&all);
    return partners;
}

#define NOBODYS 0x80000000u /* ordinals of bare names that no recording before has */

void fm_engine_name(struct fm_engine *e, struct fm_recording *r)
{
    const struct fm_profile *p = r->p;
    fm_autofree bool *alike = NULL;
    fm_autofree uint32_t *partners = bare_partners_new(e, p, &alike);
    fm_autofree uint32_t *ordinals = fm_function_ordinals_new(p);
    size_t prefix = common_folder(p);
    r->func_of = fm_calloc(p->functions.len, sizeof *r->func_of);
    r->thread_of = fm_calloc(p->threads.len, sizeof *r->thread_of);
    for (size_t i = 0; i < p->functions.len; i++) {
        const struct fm_function *f = &p->functions.data[i];
        const char *file = fm_profile_text(p, f->file);
        struct fm_engine_function g = {
            .kind = f->kind,
            .flags = f->flags,
            .library = is_library(f->kind, file),
            .line = f->line,
            .twin = f->twin,
            .name = moved_string(e, p, f->name),
            .qualname = moved_string(e, p, f->qualname ? f->qualname : f->name),
            .file = moved_string(e, p, f->file),
            .module = module_name(e, f->kind, file, prefix),
            .module_func = FM_NONE,
        };
        r->func_of[i] = partners[i] != FM_NONE
                            ? partners[i]
                            : function_add(e, &g, ordinals[i] | (alike[i] ? NOBODYS : 0));
    }
    for (uint32_t t = 0; t < p->threads.len; t++)
        r->thread_of[t] = thread_function(e, r, t);
}

uint32_t fm_engine_module_of(struct fm_engine *e, uint32_t func)
{
    const struct fm_engine_function *f = &e->functions.data[func];
    if (f->module_func != FM_NONE)
        return f->module_func;
    if (f->kind == FM_ENGINE_KIND_EVERYTHING || f->kind == FM_ENGINE_KIND_MODULE)
        return func;
    struct fm_engine_function module = { .kind = FM_ENGINE_KIND_MODULE,
                                         .library = f->library,
                                         .name = f->module,
                                         .qualname = f->module,
                                         .module = f->module,
                                         .module_func = FM_NONE };
    uint32_t id = function_add(e, &module, 0);
    e->functions.data[func].module_func = id;
    return id;
}

uint32_t fm_engine_line_of(struct fm_engine *e, uint32_t func, uint32_t line)
{
    struct fm_engine_function f = e->functions.data[func];
    if (!line || f.at)
        return func;
    f.at = f.line = line;
    f.of = func;
    return function_add(e, &f, func);
}

/* ---- for the page ---- */

static const char *kind_name(uint8_t kind)
{
    static const char *const names[] = { "python", "c",      "native", "region",
                                         "thread", "module", "root" };
    return kind < FM_COUNT(names) ? names[kind] : "native";
}

int fm_engine_functions(struct fm_engine *e, uint32_t from)
{
    struct fm_buffer *out = &e->text;
    fm_buffer_clear(out);
    fm_buffer_add_char(out, '[');
    for (uint32_t i = from; i < e->functions.len; i++) {
        const struct fm_engine_function *f = &e->functions.data[i];
        json_open(out, '{');
        json_int(out, "id", i);
        json_string(out, "name", e->strings, f->name);
        json_string(out, "qualname", e->strings, f->qualname);
        json_string(out, "file", e->strings, f->file);
        json_int(out, "line", f->line);
        json_int(out, "twin", f->twin);
        fm_buffer_addf(out, ",\"kind\":\"%s\"", kind_name(f->kind));
        json_int(out, "flags", f->flags);
        json_string(out, "module", e->strings, f->module);
        json_bool(out, "library", f->library);
        json_int(out, "at", f->at);
        json_int(out, "of", f->at ? f->of : i);
        json_close(out, '}');
    }
    fm_buffer_add_char(out, ']');
    return 0;
}

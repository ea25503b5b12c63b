/* Names of functions in reports; see names.h. A name is spelled when it is first asked for. */
#include "show/report/names.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/map.h"
#include "base/memory.h"
#include "record/model/derive/label.h"

#define SLAB_BYTES ((size_t)256 * 1024)

struct name {
    const char *std, *place, *function; /* NULL until spelled */
    uint32_t std_len;
    uint32_t cut; /* bytes of the path that are not shown */
    bool builtin;
};

struct fm_names {
    const struct fm_profile *p;
    const struct fm_flat *flat;
    struct name *all;
    struct fm_buffer text; /* of the name that is being spelled */
    FM_VEC(char *) slabs;  /* of all others: they never move */
    size_t slab_used, slab_cap;
};

static const struct fm_function *function_of(const struct fm_names *n, uint32_t row)
{
    return &n->p->functions.data[n->flat->rows.data[row].func];
}

static const char *path_of(const struct fm_names *n, uint32_t row)
{
    return fm_profile_text(n->p, function_of(n, row)->file);
}

/* Where the path begins if one more component is shown. */
static uint32_t widen(const char *path, uint32_t cut)
{
    if (cut == 0)
        return 0;
    uint32_t at = cut - 1; /* the slash in front of what is shown */
    while (at > 0 && path[at - 1] != '/')
        at--;
    return at;
}

/* One round: whoever looks like a function of another file shows one more component. Returns
 * whether anything changed. */
static bool tell_apart(struct fm_names *n, bool by_label)
{
    struct fm_strings *shown = fm_strings_new();
    struct fm_map looks = { 0 }, labels = { 0 };
    FM_VEC(uint32_t) first_file = { 0 };
    size_t rows = n->flat->rows.len;
    fm_autofree uint32_t *look = fm_calloc(rows, sizeof *look);
    bool changed = false;
    for (uint32_t i = 0; i < rows; i++) {
        const struct fm_function *f = function_of(n, i);
        if (n->all[i].builtin)
            continue;
        uint32_t id = fm_strings_add_text(shown, path_of(n, i) + n->all[i].cut), label = 0;
        if (by_label)
            label = *fm_map_at(&labels, fm_map_pair(f->name, f->line), (uint32_t)labels.len, NULL);
        bool is_new;
        look[i] = *fm_map_at(&looks, fm_map_pair(id, label), (uint32_t)looks.len, &is_new);
        if (is_new)
            fm_vec_push(&first_file, f->file);
        else if (first_file.data[look[i]] != f->file)
            first_file.data[look[i]] = FM_NONE; /* more than one file looks like this */
    }
    for (uint32_t i = 0; i < rows; i++) {
        if (n->all[i].builtin || first_file.data[look[i]] != FM_NONE || !n->all[i].cut)
            continue;
        n->all[i].cut = widen(path_of(n, i), n->all[i].cut);
        changed = true;
    }
    fm_vec_release(&first_file);
    fm_map_release(&looks);
    fm_map_release(&labels);
    fm_strings_free(shown);
    return changed;
}

static void strip(struct fm_names *n, enum fm_names_strip how)
{
    for (uint32_t i = 0; i < n->flat->rows.len; i++) {
        const char *path = path_of(n, i), *slash = strrchr(path, '/');
        if (!n->all[i].builtin && slash)
            n->all[i].cut = (uint32_t)(slash + 1 - path);
    }
    while (tell_apart(n, how == FM_NAMES_LABELS)) {
    }
}

static void add_number(struct fm_buffer *text, uint32_t value)
{
    char digits[12];
    int at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
    } while (value /= 10);
    fm_buffer_add(text, digits + at, sizeof digits - (size_t)at);
}

static void add_string(struct fm_names *n, uint32_t string, size_t from)
{
    fm_buffer_add(&n->text, fm_profile_text(n->p, string) + from,
                  fm_strings_len(n->p->strings, string) - from);
}

/* "<built-in method x>" is shown as "{built-in method x}". */
static void add_builtin(struct fm_names *n, const struct fm_function *f)
{
    const char *name = fm_profile_text(n->p, f->name);
    size_t len = fm_strings_len(n->p->strings, f->name);
    bool angled = len >= 2 && name[0] == '<' && name[len - 1] == '>';
    if (angled) {
        fm_buffer_add_char(&n->text, '{');
        fm_buffer_add(&n->text, name + 1, len - 2);
        fm_buffer_add_char(&n->text, '}');
    } else {
        fm_buffer_add(&n->text, name, len);
    }
}

/* Keep what was spelled, for as long as the names live. */
static const char *keep(struct fm_names *n)
{
    size_t bytes = n->text.len + 1;
    if (n->slab_cap - n->slab_used < bytes) {
        n->slab_cap = bytes > SLAB_BYTES ? bytes : SLAB_BYTES;
        n->slab_used = 0;
        fm_vec_push(&n->slabs, fm_malloc(n->slab_cap));
    }
    char *place = n->slabs.data[n->slabs.len - 1] + n->slab_used;
    memcpy(place, fm_buffer_text(&n->text), bytes);
    n->slab_used += bytes;
    return place;
}

static void spell_std(struct fm_names *n, uint32_t row)
{
    struct name *name = &n->all[row];
    const struct fm_function *f = function_of(n, row);
    fm_buffer_clear(&n->text);
    if (name->builtin) {
        add_builtin(n, f);
    } else {
        add_string(n, f->file, name->cut);
        fm_buffer_add_char(&n->text, ':');
        add_number(&n->text, f->line);
        fm_buffer_add_char(&n->text, '(');
        add_string(n, f->name, 0);
        fm_buffer_add_char(&n->text, ')');
    }
    name->std_len = (uint32_t)n->text.len;
    name->std = keep(n);
}

/* A builtin without the words around it: "builtins.exec", "str.join". False if it has others. */
static bool add_builtin_bare(struct fm_names *n, const struct fm_function *f)
{
    const char *name = fm_profile_text(n->p, f->name);
    size_t len = fm_strings_len(n->p->strings, f->name);
    int method, type, end = 0;
    if (strncmp(name, "<built-in method ", 17) == 0 && name[len - 1] == '>') {
        fm_buffer_add(&n->text, name + 17, len - 18);
        return true;
    }
    if (sscanf(name, "<method '%n%*[^']' of '%n%*[^']' objects>%n", &method, &type, &end) != 0 ||
        !end || name[end])
        return false;
    fm_buffer_add(&n->text, name + type, strcspn(name + type, "'"));
    fm_buffer_add_char(&n->text, '.');
    fm_buffer_add(&n->text, name + method, strcspn(name + method, "'"));
    return true;
}

static void spell_place(struct fm_names *n, uint32_t row)
{
    struct name *name = &n->all[row];
    const struct fm_function *f = function_of(n, row);
    fm_buffer_clear(&n->text);
    if (!name->builtin && fm_strings_len(n->p->strings, f->file)) {
        add_string(n, f->file, name->cut);
        if (f->line) {
            fm_buffer_add_char(&n->text, ':');
            add_number(&n->text, f->line);
        }
    } else if (name->builtin && f->kind == FM_FUNCTION_C) {
        fm_buffer_add_text(&n->text, "built-in");
    }
    name->place = keep(n);
}

static void spell_function(struct fm_names *n, uint32_t row)
{
    struct name *name = &n->all[row];
    const struct fm_function *f = function_of(n, row);
    bool builtin = name->builtin && f->kind != FM_FUNCTION_REGION;
    fm_buffer_clear(&n->text);
    if (builtin && !add_builtin_bare(n, f))
        add_builtin(n, f);
    else if (!builtin)
        add_string(n, f->qualname ? f->qualname : f->name, 0);
    if (f->twin)
        fm_buffer_addf(&n->text, " #%u", f->twin + 1);
    name->function = keep(n);
}

struct fm_names *fm_names_new(const struct fm_profile *p, const struct fm_flat *flat,
                              enum fm_names_strip how)
{
    struct fm_names *n = fm_calloc(1, sizeof *n);
    n->p = p;
    n->flat = flat;
    n->all = fm_calloc(flat->rows.len, sizeof *n->all);
    for (uint32_t i = 0; i < flat->rows.len; i++)
        n->all[i].builtin = fm_label_is_builtin(p, function_of(n, i));
    if (how != FM_NAMES_WHOLE)
        strip(n, how);
    return n;
}

void fm_names_free(struct fm_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->slabs.len; i++)
        free(names->slabs.data[i]);
    fm_vec_release(&names->slabs);
    fm_buffer_release(&names->text);
    free(names->all);
    free(names);
}

const char *fm_names_std(struct fm_names *names, uint32_t row)
{
    if (!names->all[row].std)
        spell_std(names, row);
    return names->all[row].std;
}

size_t fm_names_std_len(struct fm_names *names, uint32_t row)
{
    fm_names_std(names, row);
    return names->all[row].std_len;
}

const char *fm_names_file(const struct fm_names *names, uint32_t row)
{
    return names->all[row].builtin ? "~" : path_of(names, row) + names->all[row].cut;
}

const char *fm_names_name(const struct fm_names *names, uint32_t row)
{
    return fm_profile_text(names->p, function_of(names, row)->name);
}

const char *fm_names_function(struct fm_names *names, uint32_t row)
{
    if (!names->all[row].function)
        spell_function(names, row);
    return names->all[row].function;
}

const char *fm_names_place(struct fm_names *names, uint32_t row)
{
    if (!names->all[row].place)
        spell_place(names, row);
    return names->all[row].place;
}

uint32_t fm_names_line(const struct fm_names *names, uint32_t row)
{
    return function_of(names, row)->line;
}

/* Names of functions in call graphs; see names.h. */
#include "show/graph/names.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

#include "record/model/derive/edit.h"
#include "record/model/derive/label.h"

/* Longer names are shown cut anyway, and are left as they are. */
#define STRIP_BYTES_MAX 16384

struct span {
    const char *text;
    size_t len;
};

static struct span string_of(const struct fm_profile *p, uint32_t id)
{
    return (struct span){ fm_profile_text(p, id), fm_strings_len(p->strings, id) };
}

static void add_span(struct fm_buffer *out, struct span s)
{
    fm_buffer_add(out, s.text, s.len);
}

/* The part of the path behind its last slash. */
static struct span base_of(struct span path)
{
    const char *slash = memrchr(path.text, '/', path.len);
    if (!slash)
        return path;
    size_t skip = (size_t)(slash + 1 - path.text);
    return (struct span){ slash + 1, path.len - skip };
}

/* Without its extension; dots in front are no extension. */
static struct span stem_of(struct span base)
{
    size_t lead = 0;
    while (lead < base.len && base.text[lead] == '.')
        lead++;
    const char *dot = memrchr(base.text + lead, '.', base.len - lead);
    return dot && dot > base.text ? (struct span){ base.text, (size_t)(dot - base.text) } : base;
}

static bool is_text(struct span s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.text, text, s.len) == 0;
}

static void add_module(struct fm_buffer *out, struct span path)
{
    struct span base = base_of(path), stem = stem_of(base);
    if (path.text[0] == '<') /* "<frozen importlib._bootstrap>": no path */
        stem = base = path;
    if ((is_text(stem, "__init__") || is_text(stem, "__main__")) && base.text > path.text + 1) {
        struct span folder =
            base_of((struct span){ path.text, (size_t)(base.text - 1 - path.text) });
        if (folder.len) {
            add_span(out, folder);
            fm_buffer_add_char(out, '.');
        }
    }
    add_span(out, stem);
}

static void add_number(struct fm_buffer *out, uint32_t value)
{
    char digits[12];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
    } while (value /= 10);
    fm_buffer_add(out, digits + at, sizeof digits - at);
}

static struct span qualified(const struct fm_profile *p, const struct fm_function *f)
{
    return string_of(p, f->qualname ? f->qualname : f->name);
}

void fm_graph_name(struct fm_buffer *out, const struct fm_profile *p, uint32_t func)
{
    const struct fm_function *f = &p->functions.data[func];
    struct span file = string_of(p, f->file);
    if (!fm_label_is_builtin(p, f) && file.len) {
        add_module(out, file);
        fm_buffer_add_char(out, ':');
        if (f->line) {
            add_number(out, f->line);
            fm_buffer_add_char(out, ':');
        }
    }
    add_span(out, qualified(p, f));
}

void fm_graph_name_place(struct fm_buffer *out, const struct fm_profile *p, uint32_t func)
{
    const struct fm_function *f = &p->functions.data[func];
    struct span file = string_of(p, f->file);
    if (fm_label_is_builtin(p, f) || !file.len)
        return;
    add_span(out, file);
    if (f->line) {
        fm_buffer_add_char(out, ':');
        add_number(out, f->line);
    }
}

void fm_graph_name_key(struct fm_buffer *out, const struct fm_profile *p, uint32_t func)
{
    const struct fm_function *f = &p->functions.data[func];
    if (!fm_label_is_builtin(p, f))
        add_module(out, string_of(p, f->file));
    fm_buffer_add_char(out, '\0');
    add_span(out, qualified(p, f));
}

bool fm_graph_name_matches(const struct fm_profile *p, uint32_t func, const char *glob)
{
    const struct fm_function *f = &p->functions.data[func];
    if (fm_function_glob(p, func, (void *)glob))
        return true;
    fm_autobuffer name = FM_BUFFER_INIT;
    fm_graph_name(&name, p, func);
    if (fnmatch(glob, fm_buffer_text(&name), 0) == 0)
        return true;
    fm_buffer_clear(&name);
    if (fm_label_is_builtin(p, f))
        fm_buffer_add_char(&name, '~');
    else
        add_span(&name, stem_of(base_of(string_of(p, f->file))));
    fm_buffer_addf(&name, ":%u:%s", f->line, fm_profile_text(p, f->name));
    return fnmatch(glob, fm_buffer_text(&name), 0) == 0;
}

/* ---- stripping ---- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Copy without what stands between `open` and `close`. Pairs nest; without a partner they stay.
 * With `after_word`, only pairs that follow a word go: "f<int>", but not "<lambda>" or ".<locals>".
 */
static void strip_pairs(struct fm_buffer *name, char open, char close, bool after_word)
{
    size_t kept = 0;
    for (size_t i = 0; i < name->len; i++) {
        size_t end = i, depth = 0;
        if (name->data[i] == open && kept > 0 && (!after_word || is_word(name->data[kept - 1])))
            for (; end < name->len; end++) {
                depth += name->data[end] == open;
                depth -= name->data[end] == close;
                if (!depth)
                    break;
            }
        if (end > i && end < name->len)
            i = end; /* the whole pair is left out */
        else
            name->data[kept++] = name->data[i];
    }
    name->len = kept;
    if (name->data)
        name->data[kept] = '\0';
}

void fm_graph_name_strip(struct fm_buffer *name)
{
    if (name->len > STRIP_BYTES_MAX)
        return;
    strip_pairs(name, '(', ')', false);
    size_t len = name->len;
    if (len > 6 && memcmp(name->data + len - 5, "const", 5) == 0 &&
        isspace((unsigned char)name->data[len - 6])) {
        for (len -= 6; len > 0 && isspace((unsigned char)name->data[len - 1]);)
            len--;
        name->len = len;
        name->data[len] = '\0';
    }
    strip_pairs(name, '<', '>', true);
}

/*
 * Source text by lines; see text.h.
 *
 * Where a block ends is told by the indent of statements, so that a closing bracket, a string over
 * many lines or a comment at the left edge ends nothing.
 */
#include "show/report/text.h"

#include <string.h>
#include <strings.h>

#include "base/clean.h"
#include "base/statements.h"
#include "base/utf8.h"
#include "show/report/number.h"

#define TAB 8

struct text_found {
    const struct fm_text *text;
    const char *why; /* NULL until looked for */
};

struct fm_texts {
    const struct fm_profile *p;
    struct fm_text **all;     /* per source; NULL until asked for */
    struct text_found *found; /* per function */
};

struct fm_texts *fm_texts_new(const struct fm_profile *p)
{
    struct fm_texts *texts = fm_calloc(1, sizeof *texts);
    texts->p = p;
    texts->all = fm_calloc(p->sources.len, sizeof *texts->all);
    texts->found = fm_calloc(p->functions.len, sizeof *texts->found);
    return texts;
}

void fm_texts_free(struct fm_texts *texts)
{
    if (!texts)
        return;
    for (size_t i = 0; i < texts->p->sources.len; i++) {
        if (texts->all[i]) {
            fm_vec_release(&texts->all[i]->starts);
            free(texts->all[i]->statements);
        }
        free(texts->all[i]);
    }
    free(texts->all);
    free(texts->found);
    free(texts);
}

const char *fm_text_line(const struct fm_text *text, uint32_t number, size_t *len)
{
    size_t start = text->starts.data[number - 1];
    size_t end = number < text->starts.len ? text->starts.data[number] : text->len;
    if (end > start && text->data[end - 1] == '\n')
        end--;
    if (end > start && text->data[end - 1] == '\r')
        end--;
    *len = end - start;
    return text->data + start;
}

/* Does a comment in the first two lines say that the file is in Latin-1 (PEP 263)? */
static bool says_latin1(const struct fm_text *text)
{
    static const char *const names[] = { "latin-1",   "latin1",      "latin_1", "iso-8859-1",
                                         "iso8859-1", "iso-latin-1", "l1" };
    for (uint32_t n = 1; n <= 2 && n <= fm_text_count(text); n++) {
        size_t len;
        const char *line = fm_text_line(text, n, &len);
        const char *coding = memchr(line, '#', len) ? memmem(line, len, "coding", 6) : NULL;
        if (!coding || coding + 7 > line + len || (coding[6] != ':' && coding[6] != '='))
            continue;
        const char *name = coding + 7, *end = line + len;
        while (name < end && (*name == ' ' || *name == '\t'))
            name++;
        for (size_t i = 0; i < FM_COUNT(names); i++) {
            size_t n_name = strlen(names[i]), left = (size_t)(end - name);
            if (left >= n_name && strncasecmp(name, names[i], n_name) == 0 &&
                (left == n_name || name[n_name] < '0' || name[n_name] > '9'))
                return true;
        }
    }
    return false;
}

static const struct fm_text *text_at(struct fm_texts *texts, uint32_t source)
{
    if (texts->all[source])
        return texts->all[source];
    uint32_t id = texts->p->sources.data[source].text;
    struct fm_text *text = texts->all[source] = fm_calloc(1, sizeof *text);
    text->source = source;
    text->data = fm_strings_get(texts->p->strings, id);
    text->len = fm_strings_len(texts->p->strings, id);
    for (size_t at = 0; at < text->len;) {
        const char *newline = memchr(text->data + at, '\n', text->len - at);
        fm_vec_push(&text->starts, at);
        at = newline ? (size_t)(newline - text->data) + 1 : text->len;
    }
    text->latin1 = says_latin1(text);
    text->statements = fm_calloc(text->starts.len, sizeof *text->statements);
    fm_statements_map(text->data, text->len, text->statements, text->starts.len);
    return text;
}

static size_t skip_blank(const char *line, size_t len)
{
    size_t at = 0;
    while (at < len && (line[at] == ' ' || line[at] == '\t' || line[at] == '\f'))
        at++;
    return at;
}

/* Could the function begin in this text where it says it does? */
static bool plausible(const struct fm_profile *p, const struct fm_function *f,
                      const struct fm_text *text)
{
    const char *name = fm_profile_text(p, f->name);
    uint32_t first = f->line ? f->line : 1;
    size_t len;
    if (first > fm_text_count(text))
        return false;
    const char *line = fm_text_line(text, first, &len);
    size_t at = skip_blank(line, len);
    if (name[0] == '<' || (at < len && line[at] == '@'))
        return true;
    return memmem(line, len, name, strlen(name)) != NULL;
}

static struct text_found look_for(struct fm_texts *texts, const struct fm_function *f)
{
    const struct fm_profile *p = texts->p;
    struct text_found found = { .why = p->processes.len ? "its source was not kept"
                                                        : "the file is not here" };
    uint32_t twin = f->twin;
    for (uint32_t i = 0; i < p->sources.len; i++) {
        const struct fm_source *source = &p->sources.data[i];
        if (source->file != f->file)
            continue;
        if (source->state == FM_SOURCE_CHANGED)
            found.why = "the file changed while the program ran";
        if (!source->text)
            continue;
        const struct fm_text *text = text_at(texts, i);
        if (!plausible(p, f, text)) {
            found.why = "the file is not the one that ran: the function is not where it was";
            continue;
        }
        if (source->state == FM_SOURCE_GENERATED && twin--)
            continue;
        return (struct text_found){ text, "" };
    }
    return found;
}

const struct fm_text *fm_texts_find(struct fm_texts *texts, uint32_t func, const char **why)
{
    struct text_found *found = &texts->found[func];
    if (!found->why)
        *found = look_for(texts, &texts->p->functions.data[func]);
    *why = found->why;
    return found->text;
}

/* ---- showing ---- */

static void add_spaces(struct fm_buffer *out, size_t n)
{
    while (n--)
        fm_buffer_add_char(out, ' ');
}

/* One character that is no tab; returns its bytes in the text. */
static size_t add_character(struct fm_buffer *out, const char *s, size_t left, bool latin1)
{
    uint8_t c = (uint8_t)*s;
    if (c == '\f') {
        fm_buffer_add_char(out, ' ');
        return 1;
    }
    if (latin1 && c >= 0x80) {
        const char utf8[2] = { (char)(0xc0 | c >> 6), (char)(0x80 | (c & 0x3f)) };
        fm_clean_add(out, utf8, sizeof utf8);
        return 1;
    }
    size_t bytes = fm_utf8_char(s, left);
    fm_clean_add(out, s, bytes ? bytes : 1);
    return bytes ? bytes : 1;
}

/* The first `limit` bytes of a line, with the space at its end. */
static void show_start(const struct fm_text *text, uint32_t number, size_t limit,
                       struct fm_buffer *out)
{
    size_t len, column = 0;
    const char *line = fm_text_line(text, number, &len);
    size_t end = limit < len ? limit : len;
    size_t at = number == 1 && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < end) {
        if (line[at] == '\t') {
            size_t n = TAB - column % TAB;
            add_spaces(out, n);
            column += n;
            at++;
        } else {
            at += add_character(out, line + at, len - at, text->latin1);
            column++;
        }
    }
}

void fm_text_show(const struct fm_text *text, uint32_t number, struct fm_buffer *out)
{
    show_start(text, number, SIZE_MAX, out);
    while (out->len && out->data[out->len - 1] == ' ')
        out->data[--out->len] = '\0';
}

size_t fm_text_columns(const struct fm_text *text, uint32_t number, size_t byte)
{
    fm_autobuffer shown = FM_BUFFER_INIT;
    show_start(text, number, byte, &shown);
    return fm_text_width(fm_buffer_text(&shown), shown.len);
}

/* ---- where a block ends ---- */

/* Does line `number` go on with the statement of the line before? */
static bool is_continued(const struct fm_text *text, uint32_t number)
{
    return text->statements[number - 1] != number - 1;
}

static size_t indent_of(const char *line, size_t len)
{
    size_t column = 0;
    for (size_t i = 0; i < len && (line[i] == ' ' || line[i] == '\t'); i++)
        column = line[i] == '\t' ? column + TAB - column % TAB : column + 1;
    return column;
}

uint32_t fm_text_block_end(const struct fm_text *text, uint32_t first, bool *is_class)
{
    uint32_t last = first, count = fm_text_count(text);
    size_t first_indent = 0;
    bool header = true;  /* decorators, and the statement they stand above */
    bool inside = false; /* the statement we are in counts */
    *is_class = false;
    for (uint32_t n = first; n <= count; n++) {
        size_t len;
        const char *line = fm_text_line(text, n, &len);
        size_t at = skip_blank(line, len), indent = indent_of(line, len);
        if (n > first && is_continued(text, n)) {
            last = inside ? n : last;
            continue;
        }
        inside = at < len && line[at] != '#';
        if (!inside)
            continue;
        if (header) {
            first_indent = indent;
            header = line[at] == '@';
            *is_class = len - at > 6 && memcmp(line + at, "class ", 6) == 0;
        } else if (indent <= first_indent) {
            break;
        }
        last = n;
    }
    return last;
}

uint32_t fm_text_function_end(const struct fm_profile *p, const struct fm_text *text, uint32_t func,
                              bool *is_open)
{
    const struct fm_function *f = &p->functions.data[func];
    const char *name = fm_profile_text(p, f->name);
    uint32_t first = f->line ? f->line : 1;
    *is_open = strcmp(name, "<module>") == 0;
    if (*is_open)
        return fm_text_count(text);
    if (name[0] == '<') { /* a lambda, a comprehension: the rest of the statement it stands in */
        uint32_t last = first;
        while (last < fm_text_count(text) && is_continued(text, last + 1))
            last++;
        return last;
    }
    return fm_text_block_end(text, first, is_open);
}

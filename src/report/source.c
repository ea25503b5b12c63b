/*
 * The source of functions as it ran, from the recording: works where the files are not.
 *
 * A recording keeps the text of whole files, and of generated code, where many texts may share one
 * name ("<string>"). A function is looked for in each text of its file: at its first line must
 * stand its name, or a lambda, a comprehension, a decorator, or, for a module, anything.
 */
#include <string.h>

#include "report/report.h"

struct lines {
    const char *at, *end;
};

/* The next line without its newline; false at the end. */
static bool next_line(struct lines *lines, const char **ret_start, size_t *ret_len)
{
    if (lines->at >= lines->end)
        return false;
    const char *newline = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
    const char *stop = newline ? newline : lines->end;
    *ret_start = lines->at;
    *ret_len = (size_t)(stop - lines->at);
    lines->at = newline ? newline + 1 : lines->end;
    return true;
}

static struct lines lines_of(const struct fm_profile *p, const struct fm_source *source)
{
    const char *text = fm_strings_get(p->strings, source->text);
    return (struct lines){ text, text + fm_strings_len(p->strings, source->text) };
}

/* Go to line number `line` (from 1); the iterator then yields it. */
static bool skip_to(struct lines *lines, uint32_t line)
{
    const char *start;
    size_t len;
    for (uint32_t i = 1; i < line; i++)
        if (!next_line(lines, &start, &len))
            return false;
    return lines->at < lines->end;
}

static size_t indent_of(const char *start, size_t len)
{
    size_t indent = 0;
    while (indent < len && (start[indent] == ' ' || start[indent] == '\t'))
        indent++;
    return indent;
}

/* Could the function begin in this text where it says it does? */
static bool plausible(const struct fm_profile *p, const struct fm_function *f,
                      const struct fm_source *source)
{
    struct lines lines = lines_of(p, source);
    const char *start, *name = fm_profile_text(p, f->name);
    size_t len;
    if (!source->text || !skip_to(&lines, f->line ? f->line : 1))
        return false;
    next_line(&lines, &start, &len);
    if (name[0] == '<' || start[indent_of(start, len)] == '@')
        return true;
    return memmem(start, len, name, strlen(name)) != NULL;
}

/* The first line and all that is indented deeper, or blank, after it; a module: everything. */
static void print_body(const struct fm_profile *p, const struct fm_function *f,
                       const struct fm_source *source, FILE *out)
{
    struct lines lines = lines_of(p, source);
    bool module = strcmp(fm_profile_text(p, f->name), "<module>") == 0;
    bool header = true; /* decorators and a def that spans lines stand at the first indent */
    const char *start;
    size_t len, first_indent = 0;
    skip_to(&lines, f->line ? f->line : 1);
    for (uint32_t number = f->line ? f->line : 1; next_line(&lines, &start, &len); number++) {
        size_t indent = indent_of(start, len);
        bool blank = indent == len;
        if (header && !blank)
            first_indent = indent;
        else if (!module && !blank && indent <= first_indent)
            break;
        if (header && !blank && start[indent] != '@')
            header = false;
        fprintf(out, "%6u  %.*s\n", number, (int)len, start);
    }
}

static void print_function(const struct fm_profile *p, const struct fm_function *f, FILE *out)
{
    const char *reason = "its source was not kept";
    fprintf(out, "%s  %s:%u\n", fm_profile_text(p, f->qualname), fm_profile_text(p, f->file),
            f->line);
    uint32_t twin = f->twin;
    for (size_t i = 0; i < p->sources.len; i++) {
        const struct fm_source *source = &p->sources.data[i];
        if (source->file != f->file)
            continue;
        if (source->state == FM_SOURCE_CHANGED)
            reason = "the file changed while the program ran";
        if (!plausible(p, f, source) || (source->state == FM_SOURCE_GENERATED && twin--))
            continue;
        print_body(p, f, source, out);
        fputc('\n', out);
        return;
    }
    fprintf(out, "        (%s)\n\n", reason);
}

void fm_report_source(const struct fm_report *r)
{
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        uint32_t func = r->flat->rows.data[r->selection.rows.data[i]].func;
        const struct fm_function *f = &r->p->functions.data[func];
        if (f->kind == FM_FUNCTION_PYTHON)
            print_function(r->p, f, r->out);
    }
}

/* Which lines of Python source belong to one statement; see statements.h. */
#include "base/statements.h"

#include <stdbool.h>
#include <string.h>

size_t fm_statements_lines(const char *text, size_t len)
{
    size_t lines = len && text[len - 1] != '\n';
    for (size_t i = 0; i < len; i++)
        lines += text[i] == '\n';
    return lines;
}

struct lexer {
    const char *at, *end;
    int depth;  /* open brackets */
    char quote; /* of the string we are in, 0 outside */
    bool triple;
    bool continued; /* a backslash stands before this newline */
};

/* Is the quote at `at` the first of three? */
static bool is_triple(const struct lexer *l)
{
    return l->end - l->at >= 3 && l->at[1] == l->at[0] && l->at[2] == l->at[0];
}

static void in_string(struct lexer *l)
{
    char c = *l->at;
    if (c == '\\' && l->end - l->at > 1 && l->at[1] != '\n') {
        l->at++; /* the escaped character cannot end the string */
    } else if (c == '\\') {
        l->continued = true;
    } else if (c == l->quote && (!l->triple || is_triple(l))) {
        l->at += l->triple ? 2 : 0;
        l->quote = 0;
    }
    l->at++;
}

static void outside_string(struct lexer *l)
{
    switch (*l->at) {
    case '\'':
    case '"':
        l->quote = *l->at;
        l->triple = is_triple(l);
        l->at += l->triple ? 2 : 0;
        break;
    case '(':
    case '[':
    case '{':
        l->depth++;
        break;
    case ')':
    case ']':
    case '}':
        l->depth -= l->depth > 0;
        break;
    case '\\':
        l->continued = true;
        l->at++;
        return;
    case '#': {
        const char *newline = memchr(l->at, '\n', (size_t)(l->end - l->at));
        l->at = newline ? newline : l->end;
        return;
    }
    case '\r':
    case ' ':
        l->at++;
        return; /* may stand between a backslash and its newline only as \r */
    }
    l->continued = false;
    l->at++;
}

/* At a newline: does the logical line go on? */
static bool goes_on(struct lexer *l)
{
    if (l->quote && !l->triple && !l->continued)
        l->quote = 0; /* an unterminated string ends with its line */
    bool on = l->depth > 0 || l->quote || l->continued;
    l->continued = false;
    l->at++;
    return on;
}

void fm_statements_map(const char *text, size_t len, uint32_t *ret_first, size_t count)
{
    struct lexer l = { .at = text, .end = text + len };
    uint32_t line = 0, first = 0;
    if (count)
        ret_first[0] = 0;
    while (l.at < l.end) {
        if (*l.at == '\n') {
            bool on = goes_on(&l);
            line++;
            first = on ? first : line;
            if (line < count)
                ret_first[line] = first;
        } else if (l.quote) {
            in_string(&l);
        } else {
            outside_string(&l);
        }
    }
}

/* Options of a view, from pairs of texts; see view.h. */
#include <stdlib.h>
#include <string.h>

#include "view.h"

#define MAX_PATTERNS 10000

static int bad(struct fm_error *err, const char *key, const char *value)
{
    return fm_error_set(err, FM_USAGE, "a view has no option %s=%s", key, value);
}

static uint32_t number(const char *value)
{
    char *end;
    unsigned long n = strtoul(value, &end, 10);
    return *value && !*end && *value != '-' && n < FM_NONE ? (uint32_t)n : FM_NONE;
}

/* "glob:…" or "id:…". */
static int add_pattern(fm_view_patterns *patterns, const char *key, const char *value,
                       struct fm_error *err)
{
    struct fm_view_pattern pattern = { FM_NONE, NULL };
    if (strncmp(value, "glob:", 5) == 0)
        pattern.glob = value + 5;
    else if (strncmp(value, "id:", 3) == 0 && number(value + 3) != FM_NONE)
        pattern.func = number(value + 3);
    else
        return bad(err, key, value);
    if (patterns->len == MAX_PATTERNS)
        return fm_error_set(err, FM_USAGE, "more than %d patterns", MAX_PATTERNS);
    fm_vec_push(patterns, pattern);
    return 0;
}

static int set(struct fm_view_options *o, const char *key, const char *value, struct fm_error *err)
{
    bool yes = strcmp(value, "1") == 0;
    if (strcmp(key, "recording") == 0)
        o->recording = (int)number(value);
    else if (strcmp(key, "base") == 0)
        o->base = (int)number(value);
    else if (strcmp(key, "process") == 0)
        o->process = number(value);
    else if (strcmp(key, "thread") == 0)
        o->thread = number(value);
    else if (strcmp(key, "together") == 0)
        o->together = yes;
    else if (strcmp(key, "foldLibraries") == 0)
        o->fold_libraries = yes;
    else if (strcmp(key, "byModule") == 0)
        o->by_module = yes;
    else if (strcmp(key, "byLine") == 0)
        o->by_line = yes;
    else if (strcmp(key, "reversed") == 0)
        o->reversed = yes;
    else if (strcmp(key, "callersOf") == 0)
        o->callers_of = number(value);
    else if (strcmp(key, "fold") == 0)
        return add_pattern(&o->fold, key, value, err);
    else if (strcmp(key, "keep") == 0)
        return add_pattern(&o->keep, key, value, err);
    else if (strcmp(key, "root") == 0)
        return add_pattern(&o->root, key, value, err);
    else
        return bad(err, key, value);
    return 0;
}

int fm_view_options_read(struct fm_view_options *o, const char *text, size_t len,
                         struct fm_error *err)
{
    *o = (struct fm_view_options){
        .recording = -1, .base = -1, .process = FM_NONE, .thread = FM_NONE, .callers_of = FM_NONE
    };
    if (len && text[len - 1])
        return fm_error_set(err, FM_USAGE, "options of a view do not end");
    for (size_t at = 0; at < len;) {
        const char *key = text + at;
        at += strlen(key) + 1;
        if (at >= len)
            return fm_error_set(err, FM_USAGE, "the last option of a view has no value");
        const char *value = text + at;
        at += strlen(value) + 1;
        int status = set(o, key, value, err);
        if (status < 0)
            return status;
    }
    if (o->base >= 0 || o->callers_of != FM_NONE || o->reversed)
        o->together = true;
    if (o->callers_of != FM_NONE)
        o->reversed = true;
    return 0;
}

static void key_add(struct fm_buffer *key, const char *name, const fm_view_patterns *patterns)
{
    for (size_t i = 0; i < patterns->len; i++) {
        const struct fm_view_pattern *pattern = &patterns->data[i];
        /* The length tells where a glob, which may be any text, ends. */
        if (pattern->glob)
            fm_buffer_addf(key, " %s %zu:%s", name, strlen(pattern->glob), pattern->glob);
        else
            fm_buffer_addf(key, " %s #%u", name, pattern->func);
    }
}

char *fm_view_options_key(const struct fm_view_options *o)
{
    fm_autobuffer key = FM_BUFFER_INIT;
    fm_buffer_addf(&key, "%d %d %u %u %d %d %d %d", o->recording, o->base, o->process, o->thread,
                   o->together, o->fold_libraries, o->by_module, o->by_line);
    key_add(&key, "fold", &o->fold);
    key_add(&key, "keep", &o->keep);
    key_add(&key, "root", &o->root);
    return fm_strdup(fm_buffer_text(&key));
}

void fm_view_options_release(struct fm_view_options *o)
{
    fm_vec_release(&o->fold);
    fm_vec_release(&o->keep);
    fm_vec_release(&o->root);
}

/* Which functions get their lines recorded; see choose.h. */
#include "target/agent/lines/choose.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define MAX_NAME 1024

static const char *text_of(PyObject *str)
{
    const char *text = str && PyUnicode_Check(str) ? PyUnicode_AsUTF8(str) : NULL;
    if (!text)
        PyErr_Clear();
    return text ? text : "";
}

/* python -c …: then "<string>" is the program itself, and not what namedtuple or dataclass made. */
static bool program_is_command(void)
{
    PyObject *argv = PySys_GetObject("argv"); /* borrowed */
    return argv && PyList_Check(argv) && PyList_GET_SIZE(argv) > 0 &&
           strcmp(text_of(PyList_GET_ITEM(argv, 0)), "-c") == 0;
}

bool fm_choose_is_mine(PyCodeObject *code)
{
    const char *file = text_of(code->co_filename);
    if (file[0] == '<')
        return strcmp(file, "<stdin>") == 0 ||
               (strcmp(file, "<string>") == 0 && program_is_command());
    if (strstr(file, "/site-packages/") || strstr(file, "/dist-packages/"))
        return false;
    PyObject *standard = PySys_GetObject("_stdlib_dir"); /* borrowed; a str from 3.11 on */
    const char *folder = text_of(standard);
    size_t len = strlen(folder);
    return !len || strncmp(file, folder, len) != 0 || file[len] != '/';
}

/* "…/pkg/mod.py" → "….pkg.mod", with a dot in front. */
static void dotted_module(const char *file, char *out, size_t size)
{
    snprintf(out, size, ".%s", file);
    size_t len = strlen(out);
    if (len > 3 && strcmp(out + len - 3, ".py") == 0)
        out[len - 3] = '\0';
    for (char *c = out; *c; c++)
        if (*c == '/')
            *c = '.';
    char *package = strstr(out, ".__init__");
    if (package && !package[strlen(".__init__")])
        *package = '\0';
}

/* Does the pattern match the whole text, or the part of it up to some dot? */
static bool matches_up_to_a_dot(const char *pattern, const char *text)
{
    char part[MAX_NAME];
    if (fnmatch(pattern, text, 0) == 0)
        return true;
    for (const char *dot = strchr(text, '.'); dot; dot = strchr(dot + 1, '.')) {
        size_t len = (size_t)(dot - text);
        if (len == 0 || len >= sizeof part)
            continue;
        memcpy(part, text, len);
        part[len] = '\0';
        if (fnmatch(pattern, part, 0) == 0)
            return true;
    }
    return false;
}

static bool matches(const char *pattern, PyCodeObject *code)
{
    const char *file = text_of(code->co_filename), *qualname = text_of(code->co_qualname);
    const char *slash = strrchr(file, '/');
    char full[MAX_NAME], tail[MAX_NAME];
    if (fnmatch(pattern, text_of(code->co_name), 0) == 0 ||
        matches_up_to_a_dot(pattern, qualname) || fnmatch(pattern, file, 0) == 0 ||
        (slash && fnmatch(pattern, slash + 1, 0) == 0))
        return true;
    dotted_module(file, full, sizeof full);
    size_t len = strlen(full);
    snprintf(full + len, sizeof full - len, ".%s", qualname);
    snprintf(tail, sizeof tail, "*.%s", pattern);
    return matches_up_to_a_dot(tail, full);
}

enum fm_chosen fm_choose(const char *patterns, PyCodeObject *code)
{
    enum fm_chosen chosen = FM_CHOSEN_NOT;
    char pattern[MAX_NAME];
    for (const char *at = patterns; *at;) {
        size_t len = strcspn(at, ",");
        if (len && len < sizeof pattern) {
            memcpy(pattern, at, len);
            pattern[len] = '\0';
            if (strcmp(pattern, "all") == 0 ||
                (strcmp(pattern, "mine") == 0 && fm_choose_is_mine(code)))
                chosen = chosen ? chosen : FM_CHOSEN;
            else if (strcmp(pattern, "mine") != 0 && matches(pattern, code))
                return FM_CHOSEN_BY_NAME;
        }
        at += len + (at[len] == ',');
    }
    return chosen;
}

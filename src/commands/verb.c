/* How verbs report failure; see verb.h. */
#include "commands/verb.h"

#include <stdio.h>

#include "base/clean.h"

int fm_verb_fail(const char *verb, const struct fm_error *err)
{
    fflush(stdout);
    fm_clean_say(stderr, "fathom %s: %s", verb, err->text);
    return fm_status_exit(err->status);
}

int fm_verb_usage(const char *verb, const char *format, ...)
{
    char text[1024];
    va_list args;
    fflush(stdout);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fm_clean_say(stderr, "fathom %s: %s. Try `fathom %s --help`.", verb, text, verb);
    return fm_status_exit(FM_USAGE);
}

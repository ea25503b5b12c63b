/* How verbs report failure; see verb.h. */
#include "commands/verb.h"

#include <stdio.h>

int fm_verb_fail(const char *verb, const struct fm_error *err)
{
    fflush(stdout);
    fprintf(stderr, "fathom %s: %s\n", verb, err->text);
    return fm_status_exit(err->status);
}

int fm_verb_usage(const char *verb, const char *format, ...)
{
    va_list args;
    fflush(stdout);
    fprintf(stderr, "fathom %s: ", verb);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, ". Try `fathom %s --help`.\n", verb);
    return fm_status_exit(FM_USAGE);
}

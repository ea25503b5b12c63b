/*
 * The command: looks its first word up in the table of verbs (commands/verb.h) and hands over.
 */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/clean.h"
#include "base/memory.h"
#include "base/output.h"
#include "commands/verb.h"

static const struct verb {
    const char *name;
    int (*function)(int argc, char **argv);
    const char *help;
} verbs[] = {
#define X(name, function, help) { name, function, help },
    FM_VERB_LIST(X)
#undef X
};

static int print_help(FILE *out)
{
    fputs("Usage: fathom VERB …\n\nVerbs:\n", out);
    for (size_t i = 0; i < FM_COUNT(verbs); i++)
        fprintf(out, "  %-10s %s\n", verbs[i].name, verbs[i].help);
    fputs("\n`fathom VERB --help` tells more.\n", out);
    return 0;
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < FM_COUNT(verbs); i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    }
    return NULL;
}

/* What a verb printed without looking: a file that is full, a device that takes nothing. */
static int check_output(const char *verb, int status)
{
    struct fm_error err = FM_ERROR_INIT;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || status != 0)
        return status;
    fm_error_set(&err, FM_CANNOT_WRITE, "the standard output cannot be written");
    return fm_verb_fail(verb, &err);
}

int main(int argc, char **argv)
{
    fm_output_prepare();
    /* For the width of characters only; numbers are written the same everywhere. */
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        setlocale(LC_CTYPE, "");
    if (argc < 2) {
        print_help(stderr);
        return fm_status_exit(FM_USAGE);
    }
    const char *word = argv[1];
    const struct verb *verb = find_verb(word);
    if (verb)
        return check_output(word, verb->function(argc - 1, argv + 1));
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        return check_output("--version", printf("fathom %s\n", FATHOM_VERSION) < 0);
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return check_output("--help", print_help(stdout));
    if (strcmp(word, "help") == 0) {
        const struct verb *about = argc > 2 ? find_verb(argv[2]) : NULL;
        char *help[] = { argc > 2 ? argv[2] : NULL, "--help", NULL };
        return check_output("help", about ? about->function(2, help) : print_help(stdout));
    }
    fm_clean_say(stderr, "fathom: there is no verb \"%s\". Try `fathom --help`.", word);
    return fm_status_exit(FM_USAGE);
}

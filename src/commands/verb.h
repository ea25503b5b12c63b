/*
 * The verbs of the command. Adding one is one file in this folder, one line in VERB_LIST below, one
 * line in meson.build and one page in docs/.
 *
 * A verb parses its own options, does its work and returns an exit status. It is the only layer that
 * prints: errors go through fm_verb_fail(), which writes one sentence to stderr.
 */
#ifndef FM_COMMANDS_VERB_H
#define FM_COMMANDS_VERB_H

#include "base/error.h"

/*       name       function        one line for `fathom help` */
/* clang-format off */
#define FM_VERB_LIST(X)                                                                            \
    X("run",      fm_verb_run,      "profile a program from start to end")                         \
    X("attach",   fm_verb_attach,   "sample a running Python")                                     \
    X("top",      fm_verb_top,      "a running Python, live in the terminal")                      \
    X("report",   fm_verb_report,   "tables and trees in the terminal")                            \
    X("diff",     fm_verb_diff,     "what changed between two recordings")                         \
    X("view",     fm_verb_view,     "pages in the browser, or all of it in one HTML file")           \
    X("graph",    fm_verb_graph,    "the call graph as a picture")                                 \
    X("plot",     fm_verb_plot,     "memory over time as a picture")                               \
    X("convert",  fm_verb_convert,  "to and from other tools' formats")                            \
    X("merge",    fm_verb_merge,    "many recordings, or what a killed run left, as one")          \
    X("doctor",   fm_verb_doctor,   "what works here, why not, and what would allow it")           \
    X("dump",     fm_verb_dump,     "what every thread and task does now, or did in a core file")
/* clang-format on */

#define X(name, function, help) int function(int argc, char **argv);
FM_VERB_LIST(X)
#undef X

/* Print "fathom VERB: SENTENCE" on stderr and return the exit status of the error. */
int fm_verb_fail(const char *verb, const struct fm_error *err);

/* Print "fathom VERB: SENTENCE. Try `fathom VERB --help`." and return the exit status for usage. */
int fm_verb_usage(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

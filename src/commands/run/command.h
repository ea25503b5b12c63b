/*
 * What `fathom run CMD…` means: which program is executed, with which arguments.
 *
 *     -m MODULE …, -c CODE …, - …                    Python, as given
 *     a .py .pyw .pyc .pyz .zip file, a folder with __main__.py, a file that is not executable
 *                                                    a script of Python
 *     anything else                                  a command, as it is
 *
 * A script that is executable and names its interpreter in its first line ("#!…") is run as a shell
 * would run it: ./tool.py is executed, and tool.py is given to the Python that it names. An
 * interpreter that was asked for comes before that.
 *
 * Nothing is looked at but names, permissions and a script's first line.
 */
#ifndef FM_COMMANDS_RUN_COMMAND_H
#define FM_COMMANDS_RUN_COMMAND_H

#include "base/error.h"

/* Exit statuses of things that never ran, as in env(1) and shells. */
enum { FM_RUN_OWN_FAILURE = 125, FM_RUN_NOT_EXECUTABLE = 126, FM_RUN_NOT_FOUND = 127 };

struct fm_run_command {
    char **argv;      /* NULL-terminated; strings of the caller, `python` and `named` */
    const char *file; /* what to execute: argv[0] or a path */
    char *python;     /* the interpreter chosen by Fathom, NULL for a command */
    char *named[2];   /* by the script's first line: the interpreter and its argument, or NULL */
    char *stem;       /* a short name for output files: "app" for app.py; malloc'ed */
};

/* 0, or the exit status with which to give up, the sentence in `err`. */
int fm_run_command_init(struct fm_run_command *command, const char *python, char **words,
                        struct fm_error *err);
void fm_run_command_release(struct fm_run_command *command);

/* Why `command->file` could not be executed; returns the exit status. */
int fm_run_command_failed(const struct fm_run_command *command, int errnum, struct fm_error *err);

/* The command as one line that a shell would understand; malloc'ed. */
char *fm_run_command_text(char *const *argv);

#endif

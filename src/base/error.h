/*
 * Errors of the tool: a status code and one sentence that gathers context on its way up.
 *
 * A function that can fail returns 0 or a negative `enum fm_status` and fills the `struct fm_error`
 * it was given. Callers prepend what they were doing with fm_error_context(), so the user reads
 * "reading scatter.prof: entry 17: string runs past the end". Only verbs print it. Each status maps
 * to an exit status of its own (docs/exit-status.md), taken from the one list below.
 *
 * Not used inside a profiled process, but for libfathom.so.
 */
#ifndef FM_BASE_ERROR_H
#define FM_BASE_ERROR_H

#include <stdarg.h>
#include <stddef.h>

/*        name          value  exit  meaning, as documented for users */
/* clang-format off */
#define FM_STATUS_LIST(X)                                                                          \
    X(FM_USAGE,           -1,    2, "the command line is wrong")                                   \
    X(FM_NOT_FOUND,       -2,    3, "a file or program does not exist")                            \
    X(FM_NOT_RECORDING,   -3,    4, "the file is in no format Fathom reads")                       \
    X(FM_DAMAGED,         -4,    5, "the file is damaged beyond what can be recovered")            \
    X(FM_NEWER,           -5,    6, "the file was written by a newer Fathom")                      \
    X(FM_EXISTS,          -6,    7, "the output exists and is not overwritten")                    \
    X(FM_CANNOT_WRITE,    -7,    8, "the output cannot be written: permission, space, device")     \
    X(FM_CANNOT_READ,     -8,    9, "the input cannot be read")                                    \
    X(FM_BAD_QUERY,       -9,   10, "an unknown sort key, a bad pattern, a bad restriction")       \
    X(FM_SYSTEM,         -10,   11, "the operating system refused something else")                 \
    X(FM_UNSUPPORTED,    -11,   12, "this recording, or this Python, does not have what was asked of it") \
    X(FM_NOT_PYTHON,     -12,   13, "the process is not a Python")                                 \
    X(FM_NOT_READY,      -13,   14, "the Python in the process is not initialised, or is ending")   \
    X(FM_FORBIDDEN,      -14,   15, "the process may not be read")                                 \
    X(FM_NO_MEMORY,      -15,   16, "memory is exhausted")                                         \
    X(FM_OVER_LIMIT,     -16,   17, "more than a limit that was asked for")                        \
    X(FM_NOT_RECORDED,   -17,   18, "the process does not record what was asked for")              \
    X(FM_REMOTE_OFF,     -18,   19, "remote debugging is switched off in the process")             \
    X(FM_NO_ANSWER,      -19,   20, "the process did not answer in time")                          \
    X(FM_ENDED,          -20,   21, "the run was ended: it passed the limit that was asked for")
/* clang-format on */

enum fm_status {
    FM_OK = 0,
#define X(name, value, exit_status, meaning) name = value,
    FM_STATUS_LIST(X)
#undef X
};

struct fm_error {
    int status;      /* 0 while nothing went wrong */
    char text[1024]; /* one sentence without a final period or newline */
};

/* clang-format off */
#define FM_ERROR_INIT { 0, "" }
/* clang-format on */

/* Set the error and return `status`, so that `return fm_error_set(…)` reads well. `err` may be NULL. */
int fm_error_set(struct fm_error *err, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As fm_error_set, with ": " and the text of the system error number `errnum` behind it. */
int fm_error_set_errno(struct fm_error *err, int status, int errnum, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Put "format…: " in front of the text gathered so far; returns the status already set. */
int fm_error_context(struct fm_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The process exit status documented for a status. */
int fm_status_exit(int status);

#endif

/*
 * What `fathom doctor` finds out (doctor_gather.c), before it is shown as a page (doctor_page.c) or
 * as JSON (doctor_json.c).
 */
#ifndef FM_COMMANDS_DOCTOR_H
#define FM_COMMANDS_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/vec.h"
#include "show/report/table.h"
#include "watch/cpython/runtime.h"
#include "watch/os/permits.h"
#include "watch/os/procfs.h"
#include "watch/os/run/leftovers.h"

enum fm_verdict {
    FM_VERDICT_WORKS,
    FM_VERDICT_LIMITED, /* not, or not for everything: exit status 1 */
    FM_VERDICT_EXTRA,   /* not available, and nobody needs to mind */
};

struct fm_doctor_finding {
    const char *id, *what; /* for JSON, for people */
    enum fm_verdict verdict;
    char text[512];
    char command[256]; /* that would allow it; "" for none */
};

struct fm_doctor_python {
    char *path;           /* as PATH has it */
    uint32_t version_hex; /* its lower half may be unknown (0); 0: unknown */
    bool exact;           /* with its third number */
    bool readable;        /* a version whose processes Fathom reads */
    bool agent;
};

struct fm_doctor_process {
    pid_t pid;
    char *command;
    uid_t uid;
    int status;           /* of fm_runtime_find() */
    uint32_t version_hex; /* 0 unless found */
    bool free_threaded;
    char *why; /* "" if found */
};

struct fm_doctor {
    struct fm_permits permits;
    char kernel[160], machine[80], libraries[160];
    char *agents; /* their folder; NULL: not found */
    char agents_missing[1024];
    FM_VEC(unsigned) agent_minors; /* 3.N, ascending */
    FM_VEC(struct fm_doctor_python) pythons;
    int scripts; /* on PATH that only choose a Python, as pyenv's */
    FM_VEC(struct fm_doctor_process) processes;
    struct fm_leftovers runs; /* the folders of runs that go on, or were cut off */
    FM_VEC(struct fm_doctor_finding) findings;
    /* with a PID */
    pid_t pid; /* 0: about the machine */
    struct fm_proc process;
    char *command, *exe, *cwd;
    bool found; /* `runtime` is filled */
    struct fm_runtime runtime;
};

/* About this machine, or about one process: an error only if there is no such process. */
int fm_doctor_gather(struct fm_doctor *d, pid_t pid, struct fm_error *err);
void fm_doctor_release(struct fm_doctor *d);

/* Does something not work? */
bool fm_doctor_limited(const struct fm_doctor *d);

/* "3.11.7", "3.12" or "?"; in the caller's buffer of 32 bytes. */
const char *fm_doctor_version(char out[32], uint32_t version_hex, bool exact);

/* What runs that were cut off left. */
struct fm_doctor_left {
    size_t folders, running;
    uint64_t bytes;
};
struct fm_doctor_left fm_doctor_left(const struct fm_leftovers *runs);

/* What ran there, "" if it is not known; malloc'ed. */
char *fm_doctor_run_command(const struct fm_leftover *run);

/* Remove what runs that were cut off left, and say how much it was. The exit status. */
int fm_doctor_clear(FILE *out);

void fm_doctor_page(const struct fm_doctor *d, struct fm_style style, FILE *out);
void fm_doctor_json(const struct fm_doctor *d, FILE *out);

#endif

/*
 * Finding the interpreter inside a process: which file holds it (the executable or libpython), where
 * _PyRuntime lies, which version it is. Works for statically linked and shared Pythons, virtual
 * environments, pyenv, containers (files are opened through /proc/PID/root), and stripped binaries
 * (the memory of the file is searched for the runtime's own marks).
 */
#ifndef FM_CPYTHON_RUNTIME_H
#define FM_CPYTHON_RUNTIME_H

#include "watch/cpython/layout.h"
#include "watch/os/remote/maps.h"

struct fm_runtime {
    fm_addr at;      /* of _PyRuntime */
    char path[4096]; /* the file that holds it, as the process sees it */
    uint32_t version_hex;
    struct fm_layout layout;
};

/* Errors, each with a sentence that tells the way out:
 *   FM_NOT_FOUND    no such process
 *   FM_NOT_PYTHON   no Python in it
 *   FM_NOT_READY    a Python whose interpreter is not initialised yet, or is ending: try again
 *   FM_FORBIDDEN    the process may not be read, and which setting forbids it
 *   FM_UNSUPPORTED  a Python older or newer than known
 *   FM_DAMAGED      the interpreter's data make no sense
 */
int fm_runtime_find(struct fm_runtime *runtime, const struct fm_remote *remote,
                    struct fm_error *err);

/* The same with a memory map at hand (a core file): `root` stands in front of the paths of the map
 * when files are opened ("" for none), `exe` is the path of the executable, or NULL. */
int fm_runtime_find_in(struct fm_runtime *runtime, const struct fm_remote *remote,
                       const struct fm_maps *maps, const char *root, const char *exe,
                       struct fm_error *err);

/* Why process `pid` may not be read, and the command that would allow it; one sentence. */
void fm_runtime_explain_refusal(pid_t pid, int errnum, struct fm_error *err);

#endif

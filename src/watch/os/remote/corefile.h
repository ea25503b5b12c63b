/*
 * The memory of a process that died and left a core file, as a source of struct fm_remote.
 *
 * What the core holds is read from it. What it does not hold (kernels leave out memory that is as
 * in its file) is read from that file, if it is on this machine and is the very one: its first
 * bytes, or its code, must be those that were mapped; where the core holds neither, it must not
 * have changed since. Writable memory that was left out is never made up.
 *
 * A core is untrusted: every number in it is checked against the size of the file, a cut-off core
 * gives what it still has. Only cores of this kind of machine, 64 bits.
 *
 * Threads: reading opens files on first use; one thread at a time.
 */
#ifndef FM_OS_COREFILE_H
#define FM_OS_COREFILE_H

#include <stdbool.h>

#include "base/error.h"
#include "watch/os/remote/maps.h"
#include "watch/os/remote/remote.h"

struct fm_core_thread {
    pid_t tid;
    int signal;      /* that ended it; 0 if none is noted */
    bool in_syscall; /* it was in a system call … */
    long number;     /* … this one */
    uint64_t args[6];
    uint64_t stack_pointer, program_counter;
};

struct fm_core;

/* `exe`: the executable, where it is not at its place any more; or NULL. Errors: FM_NOT_FOUND,
 * FM_CANNOT_READ, FM_NOT_RECORDING (no core), FM_UNSUPPORTED (another machine), FM_DAMAGED. */
struct fm_core *fm_core_open(const char *path, const char *exe, struct fm_error *err);
void fm_core_free(struct fm_core *core);

/* A remote that reads the core; valid as long as it. */
void fm_core_remote(struct fm_core *core, struct fm_remote *remote);

/* The threads, the one that died of the signal first; the memory map; the file of the executable,
 * "" if unknown; the command line's first 80 characters; process id; bytes that the file lacks. */
const struct fm_core_thread *fm_core_threads(const struct fm_core *core, size_t *ret_n);
const char *fm_core_exe(const struct fm_core *core);
const char *fm_core_command(const struct fm_core *core);
pid_t fm_core_pid(const struct fm_core *core);
bool fm_core_is_cut(const struct fm_core *core);

/* The memory map of the core that `remote` reads; NULL if it reads something else. */
const struct fm_maps *fm_core_maps(const struct fm_remote *remote);

#endif

/*
 * Starting a program in two steps: its process exists before the program runs in it.
 *
 * fm_spawn_make() forks; the new process waits. Its id is known now, and whatever else must be
 * ready can be made ready, or the whole thing called off. fm_spawn_go() lets it execute the program and
 * reports whether that worked. No descriptor of this remains open in the program.
 */
#ifndef FM_OS_SPAWN_H
#define FM_OS_SPAWN_H

#include <sys/types.h>

#include "base/error.h"
#include "watch/os/run/relay.h"

struct fm_spawn {
    pid_t pid;
    int go_fd;     /* a byte here starts the program, closing it calls it off */
    int failed_fd; /* the error number, if the program cannot be executed */
};

/* `file` is looked up on PATH if it has no slash, as execvp does. */
int fm_spawn_make(struct fm_spawn *spawn, const char *file, char *const argv[], char *const envp[],
                  const struct fm_relay *relay, struct fm_error *err);

/* 0, or the error number with which exec failed; the process is gone then. */
int fm_spawn_go(struct fm_spawn *spawn);

void fm_spawn_cancel(struct fm_spawn *spawn);

#endif

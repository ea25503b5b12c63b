/*
 * Signals of a process that stands in for its child.
 *
 * Model. Whoever knows the launcher by its process id means the program: what is sent to the
 * launcher alone is passed on. What the terminal sends reaches every process of the foreground
 * group, the program included, and is not passed on. The launcher itself is moved by none of it:
 * all these signals are blocked and read from a descriptor. When job control stops the program, the
 * launcher stops too, so that the shell sees one stopped job.
 *
 * The program starts with the mask and dispositions that the launcher was started with.
 *
 * Threads: for a process with a single thread.
 */
#ifndef FM_OS_RELAY_H
#define FM_OS_RELAY_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct fm_relay {
    int fd;         /* readable when a signal arrived; −1 when closed */
    int kept;       /* a signal that is for the launcher itself and not passed on; 0: none */
    sigset_t early; /* those that arrived before there was a program; fm_relay_mark */
    sigset_t found_mask;
    struct sigaction found_child;
};

/* Block and take the signals. Undo it in the child with fm_relay_undo before exec. */
int fm_relay_init(struct fm_relay *relay, struct fm_error *err);
void fm_relay_undo(const struct fm_relay *relay);
void fm_relay_release(struct fm_relay *relay);

/* The program is about to be made: what is pending now it could not get from the terminal. */
void fm_relay_mark(struct fm_relay *relay);

/* Read what arrived and pass on to `pid` what was meant for it. True if the signal that is kept was
 * among it. */
bool fm_relay_pass(struct fm_relay *relay, pid_t pid);

/* The program was stopped by `signal_number`: stop too if that is a matter of job control. */
void fm_relay_stop(struct fm_relay *relay, int signal_number);

/* End this process as a signal ended the program, without a core file of its own. Returns only if
 * the signal does not end processes. */
void fm_relay_die(int signal_number);

#endif

/*
 * Waiting for a program and the processes below it; see os/relay.h and os/watch.h, which it joins.
 */
#ifndef FM_COMMANDS_RUN_WAIT_H
#define FM_COMMANDS_RUN_WAIT_H

#include <sys/types.h>

#include "os/relay.h"
#include "os/watch.h"

/* Until `pid`, a child, has ended; returns its wait status. Then the others get a moment to end
 * too, and what is known about them is brought up to date. */
int fm_run_wait(struct fm_relay *relay, struct fm_watch *watch, pid_t pid);

#endif

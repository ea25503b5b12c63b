/*
 * Waiting for a program and the processes below it; see os/run/relay.h and os/run/watch.h, which it joins.
 */
#ifndef FM_COMMANDS_RUN_WAIT_H
#define FM_COMMANDS_RUN_WAIT_H

#include <sys/types.h>

#include "watch/os/run/relay.h"
#include "watch/os/run/watch.h"

/* What the launcher has to do while it waits. */
struct fm_run_meanwhile {
    uint64_t (*due_ns)(void *data); /* when something is to be done next; UINT64_MAX: never */
    void (*do_due)(void *data);
    void (*flush)(void *data); /* the signal that is kept for the launcher arrived */
    void *data;
};

/* Wait for `pid` and then, briefly, for the processes below it; its wait status. */
int fm_run_wait(struct fm_relay *relay, struct fm_watch *watch, pid_t pid,
                const struct fm_run_meanwhile *meanwhile);

#endif

/*
 * Starting under `fathom run`: the entry point that the preload library calls, and the facts about
 * the process that every store begins with.
 *
 * Threads: starting and describing with the GIL. The run's collector is set once, before the program
 * runs, and never freed, so that the end of the process, which comes from any thread and without the
 * GIL, may look at it.
 */
#ifndef FM_AGENT_START_H
#define FM_AGENT_START_H

#include "target/agent/collector.h"

/* Write header fields and INFO definitions of this process into a fresh store. */
void fm_start_describe_process(struct fm_collector *c, uint32_t flags);

/* Begin to record what `config` says (base/run_config.h): 0, or −1. For the preload library, by name, and for a program
 * that tells the run of its regions. */
int fathom_agent_start(const char *config);

/* The collector that `fathom run` started in this process, or NULL. */
struct fm_collector *fm_start_collector(void);

/* `fathom attach --trace`: begin a trace in a program that runs, as a run's configuration says. 0; 1: it is
 * recorded already; −1 with an exception. Over: nothing of it stays but the code. */
int fm_start_attached(const char *config);
void fm_start_attached_over(void);

#endif

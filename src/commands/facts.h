/*
 * What a recording tells about its making beside the numbers: host, system, time, version of Fathom.
 */
#ifndef FM_COMMANDS_FACTS_H
#define FM_COMMANDS_FACTS_H

#include <sys/types.h>

#include "record/model/profile.h"

/* Add them to `p`: "host", "os", "cpus", "start" (now) and "fathom". */
void fm_facts_add(struct fm_profile *p);

/* A profile of nothing but the facts about watching a process from now on. */
struct fm_profile *fm_facts_of_watching(const char *verb, pid_t pid);

/* Complete `p`, samples gathered since `start_ns`: with these facts, what ran, how long, and its source. */
void fm_facts_complete(struct fm_profile *p, const struct fm_profile *facts, uint64_t start_ns);

#endif

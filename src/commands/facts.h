/*
 * What a recording tells about its making beside the numbers: host, system, time, version of Fathom.
 */
#ifndef FM_COMMANDS_FACTS_H
#define FM_COMMANDS_FACTS_H

#include "model/profile.h"

/* Add them to `p`: "host", "os", "cpus", "start" (now) and "fathom". */
void fm_facts_add(struct fm_profile *p);

#endif

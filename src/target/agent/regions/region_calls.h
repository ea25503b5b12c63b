/*
 * What the module fathom._agent has of regions beside their type: region_begin and region_end with tokens,
 * counter, instant, and what was counted.
 */
#ifndef FM_AGENT_REGION_CALLS_H
#define FM_AGENT_REGION_CALLS_H

#include "target/agent/python.h"

/* Add all of it; 0, or −1 with an exception. */
int fm_region_calls_add(PyObject *module);

/* counted.c: what the regions of this process have so far, a list of tuples (place of the one around it or −1, name,
 * entered, open, and in seconds: total, suspended, least, most); NULL with an exception. */
PyObject *fm_regions_counted(void);

#endif

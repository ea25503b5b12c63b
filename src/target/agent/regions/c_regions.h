/*
 * Regions of C code (include/fathom.h): the agent fills in the one variable that all libraries of the process
 * share, when it begins to record.
 *
 * Threads: whoever calls may have the GIL or not; regions.h says what that means.
 */
#ifndef FM_AGENT_C_REGIONS_H
#define FM_AGENT_C_REGIONS_H

/* Regions are recorded from now on: C code may tell of its own. */
void fm_c_regions_begin(void);

#endif

/*
 * A program that is sampled by `fathom run`, and has nothing of ours inside, uses a region: it tells the run.
 *
 * The run is found without a variable in the program's environment: the launcher is among the ancestors of the process,
 * is called "fathom", and holds the folder of the run open. In that it left a file that says how to begin
 * (FM_RUN_REGIONS_FILE of base/run_config.h).
 */
#ifndef FM_AGENT_SAMPLED_RUN_H
#define FM_AGENT_SAMPLED_RUN_H

#include <stdbool.h>
#include <stddef.h>

/* What the run says, as FATHOM_RUN does; false if this process is in none. */
bool fm_sampled_run_find(char *config, size_t size);

#endif

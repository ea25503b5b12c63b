/* `fathom top --memory`: a verb of its own but for its name. */
#ifndef FM_COMMANDS_TOP_MEMORY_H
#define FM_COMMANDS_TOP_MEMORY_H

#include <sys/types.h>

/* Until the user or a signal (a descriptor of them) ends it; the exit status. */
int fm_top_memory(pid_t pid, double delay_s, int signals);

#endif

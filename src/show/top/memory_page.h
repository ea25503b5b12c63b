/* The picture of `fathom top --memory`: what memory.h says, as far as it fits. */
#ifndef FM_TOP_MEMORY_PAGE_H
#define FM_TOP_MEMORY_PAGE_H

#include <sys/types.h>

#include "show/top/memory.h"

struct fm_memory_status {
    pid_t pid;
    const char *command;
    uint64_t start_ns; /* of watching */
    int64_t resident;  /* bytes; −1: not known */
    const char *note;  /* at the bottom; NULL: keys */
};

/* Draw everything; sets top->page. */
void fm_memory_page_draw(struct fm_memory_top *top, const struct fm_memory_status *status);

#endif

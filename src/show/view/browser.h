/*
 * The user's browser, if there is one to be opened from here.
 */
#ifndef FM_VIEW_BROWSER_H
#define FM_VIEW_BROWSER_H

#include <stdbool.h>

/* Is there a display and xdg-open? */
bool fm_browser_exists(void);
/* Hand the address to xdg-open, without waiting. False if it cannot be started. */
bool fm_browser_open(const char *address);

#endif

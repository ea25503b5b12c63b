/* Which part of a timeline `fathom convert` writes: --from, --to, --until, --min-duration, --max-depth. */
#ifndef FM_COMMANDS_CONVERT_CHOICE_H
#define FM_COMMANDS_CONVERT_CHOICE_H

#include <stdbool.h>

#include "record/formats/format.h"

/* A time with its unit ("1.5ms", "2min"), since the beginning. False if it is none. */
bool fm_convert_time(const char *text, uint64_t *ns);

/* Would --to with this value be a time, and not a format? Those begin with a letter. */
bool fm_convert_is_time(const char *text);

/* Was anything chosen? */
bool fm_convert_chose(const struct fm_save_choice *choice);

/* Say on the standard error how many slices there will be, and what that means for the page. */
void fm_convert_say_spans(uint64_t spans);

#endif

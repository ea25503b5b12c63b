/*
 * Source text for a recording that is about to be written: reads the files that the profile's
 * functions come from, so that the recording can show the code anywhere, later.
 */
#ifndef FM_FORMATS_SOURCES_H
#define FM_FORMATS_SOURCES_H

#include "record/model/profile.h"

/* Take in the text of every source file that is not in the profile yet. A file that changed since
 * its code was loaded is marked so, and left out: its text is not what ran. */
void fm_sources_embed(struct fm_profile *p);

/* The same for what is written down: of a recording of memory, which has a context for every line that
 * was imported, without the files of libraries that have hardly anything of any metric. Who shows it where they
 * are takes them in. Says what memory to expect: for the command alone, not inside a program. */
void fm_sources_embed_used(struct fm_profile *p);

#endif

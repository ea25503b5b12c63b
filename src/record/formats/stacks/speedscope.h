/* speedscope's own format: speedscope.c writes it, speedscope_read.c reads it. */
#ifndef FM_FORMATS_SPEEDSCOPE_H
#define FM_FORMATS_SPEEDSCOPE_H

#include "base/error.h"
#include "record/model/profile.h"

/* The name of the format, by which speedscope knows its files: a URI that nobody fetches. */
#define FM_SPEEDSCOPE_SCHEMA   "https://www.speedscope.app/file-format-schema.json"
#define FM_SPEEDSCOPE_EXPORTER "fathom"

/* Of memory, the name of the metric; frames have the lines that allocated or called on then. */
#define FM_SPEEDSCOPE_METRIC "metric"

bool fm_speedscope_recognise(const void *bytes, size_t len);
struct fm_profile *fm_speedscope_load(const void *bytes, size_t len, const char *name,
                                      struct fm_error *err);

#endif

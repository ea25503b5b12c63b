/* Text in JSON, as the writers of foreign formats need it: UTF-8 stays as it is, for their readers are
 * programs; what is none becomes U+FFFD. */
#ifndef FM_FORMATS_JSON_H
#define FM_FORMATS_JSON_H

#include "base/buffer.h"
#include "record/model/profile.h"

/* Append the text with its quotes. */
void fm_json_put_text(struct fm_buffer *out, const char *text, size_t len);

/* The same of a string of the profile. */
void fm_json_put_string(struct fm_buffer *out, const struct fm_profile *p, uint32_t string);

/* Nanoseconds in a larger unit, exactly: as milliseconds (`digits` 6) or microseconds (3). */
void fm_json_put_ns(struct fm_buffer *out, int64_t ns, unsigned digits);

#endif

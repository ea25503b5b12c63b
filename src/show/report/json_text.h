/*
 * Writing JSON: text, members of objects, and what every report says of a function.
 *
 * The output is valid UTF-8 and valid for every reader. Every character comes back as it was; those
 * that could steer a terminal are written as \u escapes. Bytes that are no UTF-8 and lone surrogates
 * (how Python keeps such bytes of file names) are no characters, and many readers refuse a \u escape
 * of half a pair: they become the four or six visible characters that tables show: \xff, \udcff.
 */
#ifndef FM_REPORT_JSON_TEXT_H
#define FM_REPORT_JSON_TEXT_H

#include "base/buffer.h"
#include "show/report/report.h"

void fm_json_add_text(struct fm_buffer *out, const char *text);

/* A member's key, with a comma in front unless it is the first of its object. */
void fm_json_add_key(struct fm_buffer *out, const char *key);
void fm_json_add_text_member(struct fm_buffer *out, const char *key, const char *text);
void fm_json_add_member(struct fm_buffer *out, const char *key, int64_t value);

/* name, qualname, file, line and, if it has one, twin. */
void fm_json_add_function(struct fm_buffer *out, const struct fm_profile *p, uint32_t func);

/* {"python": 12, …}: every state. */
void fm_json_add_states(struct fm_buffer *out, const char *key,
                        const int64_t state_ns[FM_STATE_COUNT]);

/* What every report begins with, its brace included, and the notes (json.c). */
void fm_json_add_subject(struct fm_buffer *out, const struct fm_report *r);
void fm_json_add_notes(struct fm_buffer *out, const struct fm_profile *p);

/* The elements of a report of regions (regions.c). */
void fm_json_add_regions(struct fm_buffer *out, const struct fm_report *r);

/* The elements of a report of lines (json_lines.c). */
void fm_json_add_lines(struct fm_buffer *out, const struct fm_report *r, enum fm_part part);

#endif

/*
 * Interned strings: each distinct run of bytes is kept once and known by a 32-bit id, for the tool.
 *
 * Id 0 is always the empty string. Ids are dense and given in order of first appearance, so the
 * same input gives the same ids. Strings may hold any bytes, NUL included; they are followed by a
 * NUL that is not counted. Pointers stay valid as long as the table.
 */
#ifndef FM_BASE_STRINGS_H
#define FM_BASE_STRINGS_H

#include <stddef.h>
#include <stdint.h>

struct fm_strings;

struct fm_strings *fm_strings_new(void);
void fm_strings_free(struct fm_strings *strings);
uint32_t fm_strings_add(struct fm_strings *strings, const void *bytes, size_t len);
uint32_t fm_strings_add_text(struct fm_strings *strings, const char *text);
const char *fm_strings_get(const struct fm_strings *strings, uint32_t id);
size_t fm_strings_len(const struct fm_strings *strings, uint32_t id);
uint32_t fm_strings_count(const struct fm_strings *strings);

#endif

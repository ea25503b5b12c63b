/*
 * A growable run of bytes, also used as a string builder, for the tool.
 *
 * Invariant: `data` is NULL or holds `len` bytes followed by a NUL that is not counted, so a buffer
 * of text can be passed on as a C string at any time (fm_buffer_text gives "" for an empty one).
 */
#ifndef FM_BASE_BUFFER_H
#define FM_BASE_BUFFER_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct fm_buffer {
    char *data;
    size_t len, cap;
};

/* clang-format off */
#define FM_BUFFER_INIT { NULL, 0, 0 }
/* clang-format on */

void fm_buffer_release(struct fm_buffer *buf);
void fm_buffer_clear(struct fm_buffer *buf); /* empties, keeps the memory */
void fm_buffer_reserve(struct fm_buffer *buf, size_t extra);
void fm_buffer_add(struct fm_buffer *buf, const void *bytes, size_t len);
void fm_buffer_add_text(struct fm_buffer *buf, const char *text);
void fm_buffer_add_char(struct fm_buffer *buf, char c);
void fm_buffer_add_varint(struct fm_buffer *buf, uint64_t value);
void fm_buffer_addf(struct fm_buffer *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *fm_buffer_text(const struct fm_buffer *buf);

/* Give the bytes away as a malloc'ed, NUL-terminated string; the buffer becomes empty. */
char *fm_buffer_detach(struct fm_buffer *buf);

static inline void fm_buffer_cleanup(struct fm_buffer *buf)
{
    fm_buffer_release(buf);
}
#define fm_autobuffer __attribute__((cleanup(fm_buffer_cleanup))) struct fm_buffer

#endif

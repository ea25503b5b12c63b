/*
 * JSON read piece by piece, in the order of the text, without a tree of it in memory: traces are large, and
 * may end in the middle of an event. Whoever reads asks for what it expects:
 *
 *     while (fm_pull_item(&p))               // of the list or object that was entered
 *         if (fm_pull_key(&p, &key)) …       // of an object
 *     fm_pull_text / fm_pull_enter / fm_pull_skip
 *
 * It is lenient: commas too many or too few are passed over, numbers may be quoted, NaN is a number. The end of the
 * text ends everything that is open (`cut`). What is no JSON at all sets `bad` and ends everything, too. Depth is
 * no concern: nothing here recurses.
 *
 * The bytes are untrusted and outlive it.
 */
#ifndef FM_FORMATS_JSON_PULL_H
#define FM_FORMATS_JSON_PULL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct fm_slice {
    const char *text;
    size_t len;
};

struct fm_pull {
    const char *begin, *at, *end;
    struct fm_buffer unescaped; /* of the last text that had escapes */
    bool cut, bad;
};

void fm_pull_init(struct fm_pull *p, const char *text, size_t len);
void fm_pull_release(struct fm_pull *p);

/* What the next value begins with: '{', '[', '"', '0' for all numbers and words, 0 if there is none. */
char fm_pull_kind(struct fm_pull *p);

/* Enter a list ('[') or object ('{'); false, and nothing is taken, if the next value is none. */
bool fm_pull_enter(struct fm_pull *p, char kind);

/* Is there another one in the list or object that was entered last? False at its end, which is taken. */
bool fm_pull_item(struct fm_pull *p);

/* The key of an object's next member. Valid until the next call. */
bool fm_pull_key(struct fm_pull *p, struct fm_slice *key);

/* The next value as text: a string without its quotes and escapes, a number or word as it stands. A list or
 * object is skipped, and false said. Valid until the next call. */
bool fm_pull_text(struct fm_pull *p, struct fm_slice *text);

/* Pass over the next value, whatever it is. */
void fm_pull_skip(struct fm_pull *p);

static inline bool fm_slice_is(const struct fm_slice *s, const char *text)
{
    size_t len = __builtin_strlen(text);
    return s->len == len && __builtin_memcmp(s->text, text, len) == 0;
}

/* A decimal number times 1000, rounded, as microseconds become nanoseconds: exact where a double is not.
 * False if it is none, or beyond 2e18: sums and differences of two fit into 64 bits. */
bool fm_slice_thousandths(const struct fm_slice *s, int64_t *value);

/* A double; false if it is none, or not finite. */
bool fm_slice_double(const struct fm_slice *s, double *value);

#endif

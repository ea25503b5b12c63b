/*
 * str and bytes objects of the target, copied out: text as UTF-8, lone surrogates passed through,
 * as everywhere in Fathom; lengths bounded; a NUL inside text becomes U+FFFD, for it is a C string.
 *
 * A system call costs more than the bytes it moves. So an object is read in two steps which several
 * objects can share: first its head together with as much as the same page holds of what follows,
 * which for most is all; then the rest. fm_piece_* are the steps, for who reads many at once;
 * fm_text_read() does them for one str.
 */
#ifndef FM_CPYTHON_TEXT_H
#define FM_CPYTHON_TEXT_H

#include "watch/cpython/layout.h"

#define FM_PIECE_GUESS 320 /* bytes read with the head; the longest head is below 80 */

/* One str or bytes object on its way. */
struct fm_piece {
    fm_addr at;
    uint32_t head_len;
    uint8_t head[FM_PIECE_GUESS];
    fm_addr data_at; /* where the characters or bytes lie */
    uint8_t *data;   /* owned: these */
    uint32_t len;    /* of data, in bytes */
    uint32_t width;  /* bytes of a character, 1, 2 or 4 */
};

/* Step 1: what to read of the object at `at`. */
struct fm_span fm_piece_begin(struct fm_piece *piece, const struct fm_layout *layout, fm_addr at);

/* Step 2, the head being read: allocate the data, fill in what is there; `*ret_rest` is what is
 * left to read (len 0: nothing). −EINVAL if the object makes no sense. Of text longer than `max_bytes`
 * the beginning is taken; bytes that are longer are an error. */
int fm_piece_text(struct fm_piece *piece, const struct fm_layout *layout, uint32_t max_bytes,
                  struct fm_span *ret_rest);
int fm_piece_bytes(struct fm_piece *piece, const struct fm_layout *layout, uint32_t max_bytes,
                   struct fm_span *ret_rest);

/* Step 3, the rest being read: UTF-8 of at most `max_bytes` and a NUL, to be freed. */
char *fm_piece_utf8(const struct fm_piece *piece, uint32_t max_bytes);
void fm_piece_release(struct fm_piece *piece);

/* The str at `at` as UTF-8, cut at `max_bytes`, to be freed; NULL if it cannot be read. */
char *fm_text_read(const struct fm_remote *remote, const struct fm_layout *layout, fm_addr at,
                   uint32_t max_bytes);

#endif

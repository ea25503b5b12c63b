/* str and bytes objects of the target; see text.h. */
#include "watch/cpython/text.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"

#define PAGE_BYTES 4096
#define HEAD_MAX   80

static uint64_t word_at(const uint8_t *head, uint32_t offset)
{
    uint64_t word;
    memcpy(&word, head + offset, sizeof word);
    return word;
}

/* The smallest object, an empty bytes, with the padding that all allocators of CPython give it. */
static uint32_t smallest(const struct fm_layout *layout)
{
    return (layout->bytes_data / 16 + 1) * 16;
}

struct fm_span fm_piece_begin(struct fm_piece *piece, const struct fm_layout *layout, fm_addr at)
{
    /* Never into a page that the object itself may not reach: it might not be mapped. An object
     * that does not fit into what is left of this page reaches the next one. */
    uint64_t left = PAGE_BYTES - at % PAGE_BYTES;
    piece->at = at;
    piece->data = NULL;
    piece->len = 0;
    piece->width = 1;
    piece->head_len = left < FM_PIECE_GUESS ? (uint32_t)left : FM_PIECE_GUESS;
    if (piece->head_len < smallest(layout))
        piece->head_len = HEAD_MAX;
    memset(piece->head, 0, HEAD_MAX);
    return (struct fm_span){ at, piece->head, piece->head_len };
}

/* The data are `len` bytes at `offset` behind the head's start. */
static void take_inline(struct fm_piece *piece, uint32_t offset, uint32_t len,
                        struct fm_span *ret_rest)
{
    uint32_t there = offset < piece->head_len ? piece->head_len - offset : 0;
    there = there < len ? there : len;
    piece->data = fm_malloc((size_t)len + 1);
    piece->len = len;
    piece->data_at = piece->at + offset;
    memcpy(piece->data, piece->head + offset, there);
    *ret_rest = (struct fm_span){ piece->data_at + there, piece->data + there, len - there };
}

int fm_piece_text(struct fm_piece *piece, const struct fm_layout *layout, uint32_t max_bytes,
                  struct fm_span *ret_rest)
{
    if (layout->unicode_compact_data > HEAD_MAX - 8 || layout->unicode_length > HEAD_MAX - 8 ||
        layout->unicode_state > HEAD_MAX - 8 || layout->unicode_ascii_data > HEAD_MAX)
        return -EINVAL;
    uint32_t state = (uint32_t)word_at(piece->head, layout->unicode_state);
    uint64_t length = word_at(piece->head, layout->unicode_length);
    state >>= layout->unicode_kind_shift;
    uint32_t kind = state & 7;
    bool compact = state & 8, ascii = state & 16;
    if ((kind != 1 && kind != 2 && kind != 4) || (ascii && kind != 1) || length > INT64_MAX)
        return -EINVAL;
    /* A character needs at least a byte of UTF-8. */
    uint32_t len = (uint32_t)(length < max_bytes ? length : max_bytes) * kind;
    piece->width = kind;
    if (compact) {
        take_inline(piece, ascii ? layout->unicode_ascii_data : layout->unicode_compact_data, len,
                    ret_rest);
        return 0;
    }
    /* An instance of a subclass of str keeps its characters elsewhere. */
    fm_addr data = word_at(piece->head, layout->unicode_compact_data);
    if (!data)
        return -EINVAL;
    piece->data = fm_malloc((size_t)len + 1);
    piece->data_at = data;
    piece->len = len;
    *ret_rest = (struct fm_span){ data, piece->data, len };
    return 0;
}

int fm_piece_bytes(struct fm_piece *piece, const struct fm_layout *layout, uint32_t max_bytes,
                   struct fm_span *ret_rest)
{
    if (layout->var_size > HEAD_MAX - 8 || layout->bytes_data > HEAD_MAX)
        return -EINVAL;
    uint64_t len = word_at(piece->head, layout->var_size);
    if (len > max_bytes)
        return -EINVAL;
    take_inline(piece, layout->bytes_data, (uint32_t)len, ret_rest);
    return 0;
}

static uint32_t character_at(const struct fm_piece *piece, uint32_t i)
{
    if (piece->width == 1)
        return piece->data[i];
    if (piece->width == 2) {
        uint16_t c;
        memcpy(&c, piece->data + (size_t)i * 2, sizeof c);
        return c;
    }
    uint32_t c;
    memcpy(&c, piece->data + (size_t)i * 4, sizeof c);
    return c;
}

static unsigned put_utf8(char out[4], uint32_t c)
{
    if (c == 0 || c > 0x10ffff)
        c = 0xfffd;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    unsigned n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (unsigned i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n] | c);
    return n;
}

char *fm_piece_utf8(const struct fm_piece *piece, uint32_t max_bytes)
{
    uint32_t n = piece->len / piece->width;
    size_t cap = (size_t)n * 4 < max_bytes ? (size_t)n * 4 : max_bytes, len = 0;
    char *text = fm_malloc(cap + 1);
    for (uint32_t i = 0; i < n; i++) {
        char c[4];
        unsigned bytes = put_utf8(c, character_at(piece, i));
        if (len + bytes > cap)
            break;
        memcpy(text + len, c, bytes);
        len += bytes;
    }
    text[len] = '\0';
    return text;
}

void fm_piece_release(struct fm_piece *piece)
{
    free(piece->data);
    piece->data = NULL;
}

/* All steps for one str; the piece is to be released if the answer is 0. */
static int read_text(struct fm_piece *piece, const struct fm_remote *remote,
                     const struct fm_layout *layout, fm_addr at, uint32_t max_bytes)
{
    struct fm_span span = fm_piece_begin(piece, layout, at);
    int r = fm_remote_read(remote, span.at, span.into, span.len);
    if (r == 0)
        r = fm_piece_text(piece, layout, max_bytes, &span);
    if (r == 0 && span.len)
        r = fm_remote_read(remote, span.at, span.into, span.len);
    if (r < 0)
        fm_piece_release(piece);
    return r;
}

char *fm_text_read(const struct fm_remote *remote, const struct fm_layout *layout, fm_addr at,
                   uint32_t max_bytes)
{
    struct fm_piece piece;
    if (read_text(&piece, remote, layout, at, max_bytes) < 0)
        return NULL;
    char *text = fm_piece_utf8(&piece, max_bytes);
    fm_piece_release(&piece);
    return text;
}

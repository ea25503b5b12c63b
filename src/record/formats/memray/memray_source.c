/* The bytes of memray's files; see memray_source.h. */
#include "record/formats/memray/memray_source.h"

#include <errno.h>
#include <lz4frame.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

static const uint8_t lz4_magic[4] = { 0x04, 0x22, 0x4d, 0x18 };

/* ---- packed bytes ---- */

/* Make sure that something is there to be unpacked; false: the end. */
static bool take_packed(struct fm_memray_source *s)
{
    if (s->packed_at < s->packed_len)
        return true;
    s->packed_at = s->packed_len = 0;
    size_t want = s->left < FM_MEMRAY_WINDOW ? (size_t)s->left : FM_MEMRAY_WINDOW;
    if (!want)
        return false;
    if (s->bytes) {
        memcpy(s->packed, s->bytes, want);
        s->bytes += want;
        s->packed_len = want;
    } else {
        ssize_t n;
        do
            n = read(s->fd, s->packed, want);
        while (n < 0 && errno == EINTR);
        if (n <= 0) {
            s->broken = n < 0 ? "it cannot be read further" : "it became shorter";
            s->left = 0;
            return false;
        }
        s->packed_len = (size_t)n;
    }
    s->left -= s->packed_len;
    return true;
}

/* ---- unpacking ---- */

static size_t unpack_plain(struct fm_memray_source *s, uint8_t *to, size_t room)
{
    size_t n = s->packed_len - s->packed_at;
    n = n < room ? n : room;
    memcpy(to, s->packed + s->packed_at, n);
    s->packed_at += n;
    return n;
}

/* A frame may need several looks at its bytes before it yields some. */
static size_t unpack_lz4(struct fm_memray_source *s, uint8_t *to, size_t room)
{
    size_t used = s->packed_len - s->packed_at, made = room;
    size_t more = LZ4F_decompress(s->lz4, to, &made, s->packed + s->packed_at, &used, NULL);
    if (LZ4F_isError(more)) {
        s->broken = "its compressed bytes are damaged";
        return 0;
    }
    s->packed_at += used;
    if (!more) { /* the end of the frame */
        s->left = 0;
        s->packed_at = s->packed_len;
        LZ4F_freeDecompressionContext(s->lz4);
        s->lz4 = NULL;
    }
    return made;
}

void fm_memray_fill(struct fm_memray_source *s)
{
    size_t len = s->at < s->end ? (size_t)(s->end - s->at) : 0;
    memmove(s->window, s->at, len);
    while (len < FM_MEMRAY_WINDOW && !s->ended) {
        /* What LZ4 holds back comes out without new bytes, so the end is when neither is there. */
        bool some = take_packed(s);
        if (s->broken || (!some && !s->lz4)) {
            s->ended = true;
            break;
        }
        size_t room = FM_MEMRAY_WINDOW - len, before = s->packed_at;
        size_t made =
            s->lz4 ? unpack_lz4(s, s->window + len, room) : unpack_plain(s, s->window + len, room);
        if (!made && s->packed_at == before && !s->broken)
            s->broken = "its compressed bytes end early";
        s->ended = s->broken != NULL;
        s->unpacked += made;
        len += made;
    }
    s->at = s->window;
    s->end = s->window + len;
    memset(s->window + len, 0, FM_MEMRAY_PAD);
}

/* ---- beginning ---- */

/* Without the zeros at the end. */
static uint64_t length_of(const uint8_t *bytes, int fd, uint64_t len)
{
    uint8_t part[4096];
    while (len) {
        size_t n = len < sizeof part ? (size_t)len : sizeof part;
        const uint8_t *tail = bytes ? bytes + len - n : part;
        if (!bytes && pread(fd, part, n, (off_t)(len - n)) != (ssize_t)n)
            return len;
        size_t used = n;
        while (used && !tail[used - 1])
            used--;
        if (used)
            return len - (n - used);
        len -= n;
    }
    return len;
}

void fm_memray_source_init(struct fm_memray_source *s, const void *bytes, int fd, uint64_t len)
{
    uint8_t magic[sizeof lz4_magic] = { 0 };
    *s = (struct fm_memray_source){ .bytes = bytes, .fd = fd, .left = len };
    s->window = fm_malloc(FM_MEMRAY_WINDOW + FM_MEMRAY_PAD);
    s->packed = fm_malloc(FM_MEMRAY_WINDOW);
    s->at = s->end = s->window;
    memset(s->window, 0, FM_MEMRAY_PAD);
    if (bytes)
        memcpy(magic, bytes, len < sizeof magic ? (size_t)len : sizeof magic);
    else if (pread(fd, magic, sizeof magic, 0) != sizeof magic)
        memset(magic, 0, sizeof magic);
    if (memcmp(magic, lz4_magic, sizeof magic) != 0)
        s->left = length_of(bytes, fd, len);
    else if (LZ4F_isError(LZ4F_createDecompressionContext(&s->lz4, LZ4F_VERSION)))
        s->left = 0;
    fm_memray_fill(s);
}

void fm_memray_source_release(struct fm_memray_source *s)
{
    free(s->window);
    free(s->packed);
    LZ4F_freeDecompressionContext(s->lz4);
}

/* ---- texts and tables ---- */

bool fm_memray_text(struct fm_memray_source *s, struct fm_buffer *out, size_t most)
{
    size_t start = out->len;
    while (fm_memray_next(s)) {
        size_t n = (size_t)(s->end - s->at);
        const uint8_t *nul = memchr(s->at, 0, n);
        n = nul ? (size_t)(nul - s->at) : n;
        if (n > most - (out->len - start))
            return false;
        fm_buffer_add(out, s->at, n);
        s->at += n + (nul != NULL);
        if (nul)
            return true;
    }
    return false;
}

bool fm_memray_bytes(struct fm_memray_source *s, struct fm_buffer *out, uint64_t len, size_t most)
{
    if (len > most)
        return false;
    while (len && fm_memray_next(s)) {
        size_t n = (size_t)(s->end - s->at);
        n = n < len ? n : (size_t)len;
        fm_buffer_add(out, s->at, n);
        s->at += n;
        len -= n;
    }
    return !len;
}

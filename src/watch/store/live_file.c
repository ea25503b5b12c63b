/* A live store that is being filled; see live_file.h. */
#include "watch/store/live_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "watch/os/run/folder.h"

#define CHUNK_MAX  (64u << 20)
#define CHUNKS_MAX 65536u

void fm_live_file_init(struct fm_live_file *file, const char *folder, int pid, unsigned number,
                       unsigned which)
{
    struct fm_buffer path = FM_BUFFER_INIT;
    fm_buffer_addf(&path, "%s/%s%d.%u" FM_LIVE_SUFFIX "%s", folder,
                   which == 1 ? FM_FOLDER_MORE_LINK "/" : "", pid, number,
                   which ? FM_LIVE_MORE_SUFFIX : "");
    *file = (struct fm_live_file){ .path = fm_buffer_detach(&path), .fd = -1 };
    file->end = which ? 0 : FM_LIVE_PAGE; /* what goes on elsewhere has no header there */
}

void fm_live_file_release(struct fm_live_file *file)
{
    fm_live_file_close(file);
    fm_vec_release(&file->pieces);
    free(file->path);
    file->path = NULL;
}

bool fm_live_file_open(struct fm_live_file *file)
{
    if (file->fd < 0)
        file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return file->fd >= 0;
}

void fm_live_file_close(struct fm_live_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

bool fm_live_file_read(const struct fm_live_file *file, void *into, size_t len, uint64_t at)
{
    return file->fd >= 0 && pread(file->fd, into, len, (off_t)at) == (ssize_t)len;
}

/* A chunk gets its magic with its first record: one without is looked at again. */
void fm_live_file_find(struct fm_live_file *file)
{
    struct fm_live_chunk head;
    while (file->pieces.len < CHUNKS_MAX &&
           fm_live_file_read(file, &head, sizeof head, file->end)) {
        bool sized =
            head.bytes >= FM_LIVE_PAGE && head.bytes % FM_LIVE_PAGE == 0 && head.bytes < CHUNK_MAX;
        if (head.magic != FM_LIVE_CHUNK_MAGIC || !sized)
            return;
        fm_vec_push(&file->pieces, ((struct fm_live_part){ file->end, head.kind, head.bytes, 0 }));
        file->end += head.bytes;
    }
}

uint32_t fm_live_file_used(const struct fm_live_file *file, const struct fm_live_part *piece)
{
    struct fm_live_chunk head;
    if (!fm_live_file_read(file, &head, sizeof head, piece->at) ||
        head.used > piece->bytes - sizeof head)
        return 0;
    return head.used;
}

/* ---- definitions ---- */

static void give_each(const uint8_t *bytes, size_t len, fm_live_define *define, void *context)
{
    struct fm_cursor all = fm_cursor_over(bytes, len);
    while (fm_cursor_left(&all) && !all.failed) {
        uint64_t body = fm_cursor_varint(&all);
        const uint8_t *start = fm_cursor_bytes(&all, body);
        if (!start)
            return;
        struct fm_cursor one = fm_cursor_over(start, (size_t)body);
        uint64_t kind = fm_cursor_varint(&one);
        if (!one.failed)
            define(context, kind, &one);
    }
}

/* What was added to a chunk since. */
static void give_added(const struct fm_live_file *file, struct fm_live_part *piece,
                       fm_live_define *define, void *context)
{
    uint32_t used = fm_live_file_used(file, piece);
    if (used <= piece->done)
        return;
    size_t len = used - piece->done;
    fm_autofree uint8_t *bytes = fm_malloc(len);
    if (!fm_live_file_read(file, bytes, len,
                           piece->at + sizeof(struct fm_live_chunk) + piece->done))
        return;
    piece->done = used;
    give_each(bytes, len, define, context);
}

void fm_live_file_definitions(struct fm_live_file *file, fm_live_define *define, void *context)
{
    fm_live_file_find(file);
    for (size_t i = 0; i < file->pieces.len; i++)
        if (file->pieces.data[i].kind == FM_LIVE_DEFS)
            give_added(file, &file->pieces.data[i], define, context);
}

char *fm_live_text(struct fm_cursor *fields)
{
    uint64_t len = fm_cursor_varint(fields);
    const uint8_t *bytes = fm_cursor_bytes(fields, len);
    if (!bytes)
        return NULL;
    size_t kept = len < FM_LIVE_TEXT_MAX ? (size_t)len : FM_LIVE_TEXT_MAX;
    char *text = fm_malloc(kept + 1);
    memcpy(text, bytes, kept);
    text[kept] = '\0';
    return text;
}

/* The names of a traced process; see trace_names.h. */
#include "watch/trace/trace_names.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/varint.h"
#include "record/capture/live.h"
#include "watch/os/run/folder.h"

#define NUMBERS_MAX  (1u << 22) /* of functions or names */
#define CHUNK_MAX    (64u << 20)
#define CHUNKS_MAX   65536u
#define TEXT_MAX     4096u
#define ANCESTRY_MAX 64u

static char *path_of(const char *folder, const char *below, int pid, unsigned number,
                     const char *suffix)
{
    struct fm_buffer path = FM_BUFFER_INIT;
    fm_buffer_addf(&path, "%s/%s%d.%u" FM_LIVE_SUFFIX "%s", folder, below, pid, number, suffix);
    return fm_buffer_detach(&path);
}

void fm_trace_names_init(struct fm_trace_names *names, const char *folder, int pid, unsigned number,
                         fm_named_judge *judge, const void *context)
{
    *names = (struct fm_trace_names){ .judge = judge, .context = context };
    names->files[0].path = path_of(folder, "", pid, number, "");
    names->files[0].end = FM_LIVE_PAGE;
    names->files[1].path =
        path_of(folder, FM_FOLDER_MORE_LINK "/", pid, number, FM_LIVE_MORE_SUFFIX);
    names->files[2].path = path_of(folder, "", pid, number, FM_LIVE_MORE_SUFFIX);
}

void fm_trace_names_release(struct fm_trace_names *names)
{
    for (size_t i = 0; i < FM_COUNT(names->files); i++) {
        free(names->files[i].path);
        fm_vec_release(&names->files[i].chunks);
    }
    for (size_t kind = 0; kind < FM_NAMED_KINDS; kind++) {
        for (size_t i = 0; i < names->of[kind].len; i++)
            free(names->of[kind].data[i].text);
        fm_vec_release(&names->of[kind]);
    }
}

/* ---- definitions ---- */

static char *take_text(struct fm_cursor *from)
{
    uint64_t len = fm_cursor_varint(from);
    const uint8_t *bytes = fm_cursor_bytes(from, len);
    if (!bytes)
        return NULL;
    size_t kept = len < TEXT_MAX ? (size_t)len : TEXT_MAX;
    char *text = fm_malloc(kept + 1);
    memcpy(text, bytes, kept);
    text[kept] = '\0';
    return text;
}

static void define(struct fm_trace_names *names, enum fm_named_kind kind, uint64_t number,
                   const char *const *texts, size_t count)
{
    if (!number || number >= NUMBERS_MAX || !count)
        return;
    uint32_t wishes = names->judge(names->context, kind, texts, count);
    while (names->of[kind].len <= number)
        fm_vec_push(&names->of[kind], ((struct fm_named){ 0 }));
    struct fm_named *named = &names->of[kind].data[number];
    free(named->text);
    *named = (struct fm_named){ .wishes = wishes };
    if (wishes || kind == FM_NAMED_EXCEPTION)
        named->text = fm_strdup(texts[0]);
}

static void define_function(struct fm_trace_names *names, struct fm_cursor *from)
{
    uint64_t number = fm_cursor_varint(from);
    fm_cursor_varint(from); /* flags */
    fm_cursor_varint(from); /* line */
    fm_autofree char *name = take_text(from), *qualname = take_text(from);
    const char *texts[] = { qualname && *qualname ? qualname : name, name };
    if (!from->failed && name && qualname)
        define(names, FM_NAMED_FUNCTION, number, texts, 2);
}

static void define_exception(struct fm_trace_names *names, struct fm_cursor *from)
{
    uint64_t number = fm_cursor_varint(from);
    fm_autofree char *all = take_text(from);
    const char *texts[ANCESTRY_MAX];
    size_t count = 0;
    char *rest = NULL;
    for (char *one = all ? strtok_r(all, ",", &rest) : NULL; one && count < ANCESTRY_MAX;
         one = strtok_r(NULL, ",", &rest))
        texts[count++] = one;
    if (!from->failed)
        define(names, FM_NAMED_EXCEPTION, number, texts, count);
}

static void define_name(struct fm_trace_names *names, struct fm_cursor *from)
{
    uint64_t number = fm_cursor_varint(from);
    fm_autofree char *text = take_text(from);
    const char *texts[] = { text };
    if (!from->failed && text)
        define(names, FM_NAMED_REGION, number, texts, 1);
}

static void read_definitions(struct fm_trace_names *names, const uint8_t *bytes, size_t len)
{
    struct fm_cursor all = fm_cursor_over(bytes, len);
    while (fm_cursor_left(&all) && !all.failed) {
        uint64_t body = fm_cursor_varint(&all);
        const uint8_t *start = fm_cursor_bytes(&all, body);
        if (!start)
            return;
        struct fm_cursor one = fm_cursor_over(start, (size_t)body);
        uint64_t kind = fm_cursor_varint(&one);
        if (kind == FM_LIVE_DEF_FUNCTION)
            define_function(names, &one);
        else if (kind == FM_LIVE_DEF_NAME)
            define_name(names, &one);
        else if (kind == FM_LIVE_DEF_EXCEPTION)
            define_exception(names, &one);
    }
}

/* ---- the files ---- */

static bool read_at(int fd, void *into, size_t len, uint64_t at)
{
    return pread(fd, into, len, (off_t)at) == (ssize_t)len;
}

/* What was added to a chunk since. */
static void read_more(struct fm_trace_names *names, int fd, struct fm_named_chunk *chunk)
{
    struct fm_live_chunk head;
    if (!read_at(fd, &head, sizeof head, chunk->at) || head.used <= chunk->done ||
        head.used > chunk->bytes - sizeof head)
        return;
    size_t len = head.used - chunk->done;
    uint8_t *bytes = fm_malloc(len);
    if (read_at(fd, bytes, len, chunk->at + sizeof head + chunk->done)) {
        read_definitions(names, bytes, len);
        chunk->done = head.used;
    }
    free(bytes);
}

/* A chunk gets its magic with its first record: one without is looked at again. */
static void find_chunks(struct fm_named_file *file, int fd)
{
    struct fm_live_chunk head;
    while (file->chunks.len < CHUNKS_MAX && read_at(fd, &head, sizeof head, file->end)) {
        bool sized =
            head.bytes >= FM_LIVE_PAGE && head.bytes % FM_LIVE_PAGE == 0 && head.bytes < CHUNK_MAX;
        if (head.magic != FM_LIVE_CHUNK_MAGIC || !sized)
            return;
        if (head.kind == FM_LIVE_DEFS)
            fm_vec_push(&file->chunks, ((struct fm_named_chunk){ file->end, head.bytes, 0 }));
        file->end += head.bytes;
    }
}

static void read_file(struct fm_trace_names *names, struct fm_named_file *file)
{
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    find_chunks(file, fd);
    for (size_t i = 0; i < file->chunks.len; i++)
        read_more(names, fd, &file->chunks.data[i]);
    close(fd);
}

const struct fm_named *fm_trace_names_find(struct fm_trace_names *names, enum fm_named_kind kind,
                                           uint32_t number)
{
    if (number >= names->of[kind].len)
        for (size_t i = 0; i < FM_COUNT(names->files); i++)
            read_file(names, &names->files[i]);
    return number < names->of[kind].len ? &names->of[kind].data[number] : NULL;
}

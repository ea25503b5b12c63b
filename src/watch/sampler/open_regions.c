/* The regions that threads are in; see open_regions.h. */
#include "watch/sampler/open_regions.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/varint.h"

#define AGAIN_NS    100000000u /* until a later store is looked for */
#define CHUNK_MAX   (64u << 20)
#define CHUNKS_MAX  65536u
#define REGIONS_MAX (1u << 20)
#define TEXT_MAX    4096u

void fm_open_regions_init(struct fm_open_regions *r, const char *folder, pid_t pid)
{
    *r = (struct fm_open_regions){ .pid = pid, .fd = -1 };
    r->folder = folder ? fm_strdup(folder) : NULL;
}

void fm_open_regions_close(struct fm_open_regions *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
    r->places.len = r->records.len = r->definitions.len = r->numbers.len = 0;
    r->opens = 0;
    r->listing++;
}

void fm_open_regions_release(struct fm_open_regions *r)
{
    fm_open_regions_close(r);
    for (size_t i = 0; i < r->names.len; i++)
        free(r->names.data[i]);
    fm_vec_release(&r->names);
    fm_vec_release(&r->numbers);
    fm_vec_release(&r->places);
    fm_vec_release(&r->records);
    fm_vec_release(&r->definitions);
    free(r->folder);
    r->folder = NULL;
}

static bool read_at(const struct fm_open_regions *r, void *into, size_t len, uint64_t at)
{
    return r->fd >= 0 && pread(r->fd, into, len, (off_t)at) == (ssize_t)len;
}

/* ---- the store --------------------------------------------------------------------------- */

static int open_store(const struct fm_open_regions *r, uint32_t number)
{
    fm_autobuffer path = FM_BUFFER_INIT;
    fm_buffer_addf(&path, "%s/%d.%u" FM_LIVE_SUFFIX, r->folder, (int)r->pid, number);
    return open(fm_buffer_text(&path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

static void find_store(struct fm_open_regions *r)
{
    for (int fd; (fd = open_store(r, r->number)) >= 0; r->number++) {
        fm_open_regions_close(r);
        r->fd = fd;
        r->end = FM_LIVE_PAGE;
    }
}

/* A chunk gets its magic with its first record: one without is looked at again. */
static void find_chunks(struct fm_open_regions *r)
{
    struct fm_live_chunk head;
    while (r->records.len + r->definitions.len < CHUNKS_MAX &&
           read_at(r, &head, sizeof head, r->end)) {
        bool sized =
            head.bytes >= FM_LIVE_PAGE && head.bytes % FM_LIVE_PAGE == 0 && head.bytes < CHUNK_MAX;
        if (head.magic != FM_LIVE_CHUNK_MAGIC || !sized)
            return;
        struct fm_open_chunk chunk = { r->end, head.bytes, 0 };
        if (head.kind == FM_LIVE_OPEN)
            fm_vec_push(&r->records, chunk);
        else if (head.kind == FM_LIVE_DEFS)
            fm_vec_push(&r->definitions, chunk);
        r->end += head.bytes;
    }
}

/* How much of a chunk is in use. */
static uint32_t used_of(const struct fm_open_regions *r, const struct fm_open_chunk *chunk)
{
    struct fm_live_chunk head;
    if (!read_at(r, &head, sizeof head, chunk->at) || head.used > chunk->bytes - sizeof head)
        return 0;
    return head.used;
}

static void list_records(struct fm_open_regions *r)
{
    r->places.len = 0;
    for (size_t i = 0; i < r->records.len; i++) {
        uint64_t at = r->records.data[i].at + sizeof(struct fm_live_chunk);
        uint64_t end = at + used_of(r, &r->records.data[i]);
        for (; at + sizeof(struct fm_live_open) <= end; at += sizeof(struct fm_live_open)) {
            struct fm_open_place place = { .at = at };
            if (read_at(r, &place.tid, sizeof place.tid, at))
                fm_vec_push(&r->places, place);
        }
    }
}

void fm_open_regions_refresh(struct fm_open_regions *r, uint64_t now_ns)
{
    uint32_t opens;
    if (!r->folder)
        return;
    if (r->fd < 0 || now_ns >= r->next_ns) {
        r->next_ns = now_ns + AGAIN_NS;
        find_store(r);
    }
    if (!read_at(r, &opens, sizeof opens, offsetof(struct fm_live_header, opens)) ||
        opens == r->opens)
        return;
    find_chunks(r);
    list_records(r);
    r->opens = opens;
    r->listing++;
}

void fm_open_regions_place(const struct fm_open_regions *r, uint32_t tid,
                           struct fm_open_place *place)
{
    if (place->listing == r->listing)
        return;
    *place = (struct fm_open_place){ .tid = tid, .listing = r->listing };
    for (size_t i = 0; i < r->places.len; i++)
        if (r->places.data[i].tid == tid) /* the last, if a thread of that number was before */
            place->at = r->places.data[i].at;
}

bool fm_open_regions_read(const struct fm_open_regions *r, const struct fm_open_place *place,
                          struct fm_live_open *ret)
{
    if (!place->at || place->listing != r->listing || !read_at(r, ret, sizeof *ret, place->at) ||
        ret->tid != place->tid)
        return false;
    if (ret->n > FM_LIVE_OPEN_MOST)
        ret->n = FM_LIVE_OPEN_MOST;
    return ret->n > 0;
}

/* ---- names ------------------------------------------------------------------------------- */

static void define(struct fm_open_regions *r, struct fm_cursor *from)
{
    uint64_t id = fm_cursor_varint(from);
    fm_cursor_varint(from); /* the region around it */
    uint64_t len = fm_cursor_varint(from);
    const uint8_t *bytes = fm_cursor_bytes(from, len);
    if (from->failed || !bytes || !id || id >= REGIONS_MAX || len > TEXT_MAX ||
        r->names.len >= REGIONS_MAX)
        return;
    while (r->numbers.len <= id)
        fm_vec_push(&r->numbers, 0);
    char *name = fm_malloc((size_t)len + 1);
    memcpy(name, bytes, (size_t)len);
    name[len] = '\0';
    fm_vec_push(&r->names, name);
    r->numbers.data[id] = (uint32_t)r->names.len;
}

static void read_definitions(struct fm_open_regions *r, const uint8_t *bytes, size_t len)
{
    struct fm_cursor all = fm_cursor_over(bytes, len);
    while (fm_cursor_left(&all) && !all.failed) {
        uint64_t body = fm_cursor_varint(&all);
        const uint8_t *start = fm_cursor_bytes(&all, body);
        if (!start)
            return;
        struct fm_cursor one = fm_cursor_over(start, (size_t)body);
        if (fm_cursor_varint(&one) == FM_LIVE_DEF_REGION)
            define(r, &one);
    }
}

/* What was added to a chunk since. */
static void read_more(struct fm_open_regions *r, struct fm_open_chunk *chunk)
{
    uint32_t used = used_of(r, chunk);
    if (used <= chunk->done)
        return;
    size_t len = used - chunk->done;
    fm_autofree uint8_t *bytes = fm_malloc(len);
    if (!read_at(r, bytes, len, chunk->at + sizeof(struct fm_live_chunk) + chunk->done))
        return;
    read_definitions(r, bytes, len);
    chunk->done = used;
}

/* 1 + the number of a region; 0: it has no name (yet). */
static uint32_t number_of(struct fm_open_regions *r, uint32_t id)
{
    if (id >= r->numbers.len || !r->numbers.data[id]) {
        find_chunks(r);
        for (size_t i = 0; i < r->definitions.len; i++)
            read_more(r, &r->definitions.data[i]);
    }
    return id < r->numbers.len ? r->numbers.data[id] : 0;
}

/* ---- stacks ------------------------------------------------------------------------------ */

/* The regions of a call, the newest first. */
static uint32_t add_regions_of(struct fm_open_regions *r, const struct fm_live_open *open,
                               const struct fm_climb_place *call, struct fm_woven *ret)
{
    uint32_t found = 0;
    for (uint32_t i = open->n; i-- > 0;) {
        const struct fm_live_open_region *region = &open->regions[i];
        if (!region->frame || region->frame != call->frame || region->code != call->code)
            continue;
        uint32_t number = number_of(r, region->region);
        if (number)
            fm_vec_push(&ret->frames, fm_raw_region(number - 1));
        found++;
    }
    return found;
}

void fm_open_regions_weave(struct fm_open_regions *r, const struct fm_live_open *open,
                           const struct fm_climb *climb, struct fm_woven *ret)
{
    uint32_t left = open->n;
    ret->frames.len = 0;
    for (size_t i = 0; i < climb->frames.len; i++) {
        if (left)
            left -= add_regions_of(r, open, &climb->places.data[i], ret);
        fm_vec_push(&ret->frames, climb->frames.data[i]);
    }
}

/*
 * Slices of a heap store; see slicer.h.
 *
 * The store is read, not mapped: a file that its process cut short would kill whoever touches the
 * mapping. Nothing in it is trusted.
 */
#include "watch/memory/slicer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "record/capture/live_heap.h"
#include "record/capture/live_slices.h"
#include "record/model/history.h"
#include "watch/os/run/folder.h"

#define READ_ACCOUNTS 1024u      /* at once */
#define ACCOUNTS_MAX  (1u << 23) /* as the library has it */
#define ACCOUNT_BYTES 8u         /* of slices, that each account may take in any case */
#define TRY_AGAIN     64u        /* slices, after the file could not be written */

/* What an account had at the last slice. */
struct sliced_account {
    int64_t bytes;
    int32_t blocks;
};

struct fm_slicer {
    char *path;
    int fd;     /* of the file of slices; −1: it cannot be written now */
    char *more; /* the second file of the store, where pieces may lie */
    int second; /* open; −1: not yet */
    struct fm_slices slices;
    uint64_t due_ns, interval_ns;
    uint32_t base; /* the first account that the store has: those before are the parent's */
    FM_VEC(struct sliced_account) last; /* from `base` on */
    struct fm_heap_header header;
    struct fm_heap_counters before[FM_HEAP_WORLDS]; /* at the slice before */
    unsigned still; /* slices in a row in which nothing had happened */
    struct fm_heap_account accounts[READ_ACCOUNTS];
};

/* ---- the file ---- */

bool fm_slices_write(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* A new file with the slices so far takes the place of the old one. Where that fails the old one
 * stays, and it is tried again later: nothing is lost before we are. */
static void write_anew(struct fm_slicer *s)
{
    struct fm_slices_header header = { FM_SLICES_MAGIC, FM_SLICES_VERSION, FM_SLICES_LOOKS };
    fm_autobuffer fresh = FM_BUFFER_INIT;
    fm_buffer_addf(&fresh, "%s.new", s->path);
    int fd = open(fresh.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = fd;
    if (fd >= 0 && fm_slices_write(fd, &header, sizeof header) &&
        fm_slices_write(fd, s->slices.bytes.data, s->slices.bytes.len) &&
        rename(fresh.data, s->path) == 0)
        return;
    unlink(fresh.data);
    if (fd >= 0)
        close(fd);
    s->fd = -1;
}

struct fm_slicer *fm_slicer_new(const char *folder, pid_t pid, unsigned number)
{
    struct fm_slicer *s = fm_calloc(1, sizeof *s);
    struct fm_buffer path = FM_BUFFER_INIT;
    fm_buffer_addf(&path, "%s/%d.%u" FM_SLICES_SUFFIX, folder, (int)pid, number);
    s->path = fm_buffer_detach(&path);
    struct fm_buffer more = FM_BUFFER_INIT;
    fm_buffer_addf(&more, "%s/" FM_FOLDER_MORE_LINK "/%d.%u" FM_HEAP_SUFFIX FM_HEAP_MORE_SUFFIX,
                   folder, (int)pid, number);
    s->more = fm_buffer_detach(&more);
    s->fd = s->second = -1;
    s->interval_ns = FM_SLICE_INTERVAL_NS;
    s->base = UINT32_MAX;
    return s;
}

void fm_slicer_free(struct fm_slicer *s)
{
    if (!s)
        return;
    if (s->fd < 0 && s->slices.count)
        write_anew(s); /* there may be room by now */
    if (s->fd >= 0)
        close(s->fd);
    if (s->second >= 0)
        close(s->second);
    fm_slices_release(&s->slices);
    fm_vec_release(&s->last);
    free(s->path);
    free(s->more);
    free(s);
}

/* ---- a slice ---- */

bool fm_slicer_is_due(const struct fm_slicer *s, uint64_t now_ns)
{
    return s && now_ns >= s->due_ns;
}

static bool read_header(struct fm_slicer *s, int store)
{
    struct fm_heap_header *h = &s->header;
    if (pread(store, h, sizeof *h, 0) != (ssize_t)sizeof *h ||
        memcmp(h->magic, FM_HEAP_MAGIC, sizeof h->magic) != 0 || h->version != FM_HEAP_VERSION ||
        !(h->flags & FM_HEAP_READY) || h->piece_count > FM_HEAP_PIECES)
        return false;
    for (uint32_t i = 0; i < h->piece_count; i++) {
        uint64_t first = h->pieces[i].offset / sizeof(struct fm_heap_account);
        if (h->pieces[i].array == FM_HEAP_ACCOUNTS && first < s->base && !s->last.len)
            s->base = (uint32_t)first;
    }
    return true;
}

/* Has anything been allocated or freed since the last slice? An event that was going on then shows in the
 * counters or in the accounts, so one slice more is taken before it is believed. */
static bool is_still(struct fm_slicer *s)
{
    bool same = s->slices.count && memcmp(s->header.worlds, s->before, sizeof s->before) == 0;
    s->still = same ? s->still + 1 : 0;
    memcpy(s->before, s->header.worlds, sizeof s->before);
    return s->still > 1;
}

static void add_account(struct fm_slicer *s, uint64_t number, const struct fm_heap_account *a)
{
    uint64_t index = number - s->base;
    while (s->last.len <= index)
        fm_vec_push(&s->last, ((struct sliced_account){ 0, 0 }));
    struct sliced_account *last = &s->last.data[index];
    struct fm_history_change change = { .context = (uint32_t)number };
    /* What is read may be anything; differences wrap around, and so do their sums. */
    change.bytes = (int64_t)((uint64_t)a->live - (uint64_t)last->bytes);
    change.blocks = (int64_t)a->live_blocks - last->blocks;
    if (!change.bytes && !change.blocks)
        return;
    *last = (struct sliced_account){ a->live, a->live_blocks };
    fm_slices_change(&s->slices, &change);
}

/* The accounts of one piece, up to `used`. */
static void read_piece(struct fm_slicer *s, int store, const struct fm_heap_piece *piece,
                       uint64_t used)
{
    uint64_t size = sizeof(struct fm_heap_account), first = piece->offset / size;
    uint64_t end = first + piece->bytes / size;
    end = end < used ? end : used;
    for (uint64_t at = first; at < end;) {
        uint64_t count = end - at < READ_ACCOUNTS ? end - at : READ_ACCOUNTS;
        off_t place = (off_t)(piece->at + (at - first) * size);
        ssize_t got = pread(store, s->accounts, count * size, place);
        if (got < (ssize_t)size)
            return;
        for (uint64_t i = 0; i < (uint64_t)got / size; i++, at++)
            if (at >= s->base && at > 0)
                add_account(s, at, &s->accounts[i]);
    }
}

/* Contexts of a slice ascend: the pieces of an array are listed in order, or it is damaged. */
static void read_accounts(struct fm_slicer *s, int store)
{
    uint64_t used = s->header.used[FM_HEAP_ACCOUNTS], next = 0;
    used = used < ACCOUNTS_MAX ? used : ACCOUNTS_MAX;
    for (uint32_t i = 0; i < s->header.piece_count; i++) {
        const struct fm_heap_piece *piece = &s->header.pieces[i];
        if (piece->array != FM_HEAP_ACCOUNTS || piece->offset < next ||
            piece->offset > ACCOUNTS_MAX * sizeof(struct fm_heap_account) ||
            piece->bytes > ACCOUNTS_MAX * sizeof(struct fm_heap_account))
            continue;
        if (piece->file && s->second < 0)
            s->second = open(s->more, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        read_piece(s, piece->file ? s->second : store, piece, used);
        next = piece->offset + piece->bytes;
    }
}

static bool is_full(const struct fm_slicer *s)
{
    size_t least = s->last.len * ACCOUNT_BYTES;
    return s->slices.count >= FM_SLICES_MAX ||
           (s->slices.bytes.len > (least > FM_SLICES_BYTES ? least : FM_SLICES_BYTES) &&
            s->slices.count > 2);
}

void fm_slicer_take(struct fm_slicer *s, int store, uint64_t now_ns)
{
    if (!read_header(s, store))
        return;
    size_t from = s->slices.bytes.len;
    fm_slices_begin(&s->slices, now_ns);
    if (!is_still(s))
        read_accounts(s, store);
    fm_slices_end(&s->slices);
    s->due_ns = now_ns + s->interval_ns;
    if (is_full(s)) {
        fm_slices_thin(&s->slices);
        s->interval_ns *= 2;
        s->due_ns = now_ns + s->interval_ns;
        write_anew(s);
    } else if (s->fd < 0 && s->slices.count % TRY_AGAIN == 1) {
        write_anew(s);
    } else if (s->fd >= 0 &&
               !fm_slices_write(s->fd, s->slices.bytes.data + from, s->slices.bytes.len - from)) {
        close(s->fd);
        s->fd = -1;
    }
}

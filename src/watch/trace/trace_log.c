/* The trace of one process, kept; see trace_log.h. */
#include "watch/trace/trace_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "record/capture/live.h"
#include "watch/os/run/folder.h"
#include "watch/trace/journal.h"
#include "watch/trace/trace_file.h"
#include "watch/trace/trace_parts.h"
#include "watch/trace/trace_state.h"

#define AT_ONCE 32u /* chunks: others wait, too */
#define NO_MORE                                                                                    \
    UINT32_MAX /* sequence: what the thread wrote behind what was read is not to be taken */
#define PEEK_NS 20000000u /* between two looks at chunks that are being filled */

char *fm_trace_path(const char *folder, const char *below, pid_t pid, unsigned number,
                    const char *suffix)
{
    struct fm_buffer path = FM_BUFFER_INIT;
    fm_buffer_addf(&path, "%s/%s%d.%u%s", folder, below, (int)pid, number, suffix);
    return fm_buffer_detach(&path);
}

struct fm_trace_log *fm_trace_log_new(const char *folder, pid_t pid, unsigned number)
{
    struct fm_trace_log *log = fm_calloc(1, sizeof *log);
    log->folder = fm_strdup(folder);
    log->pid = pid;
    log->number = number;
    log->file.fd = log->packed = log->journal.fd = -1;
    log->words = fm_malloc(FM_TRACE_CHUNK_BYTES);
    return log;
}

void fm_trace_log_forget(struct fm_trace_log *log, uint64_t window_ns)
{
    log->window.ns = window_ns;
}

void fm_trace_log_watch_for(struct fm_trace_log *log, const struct fm_trigger_rules *rules,
                            fm_trigger_sink *sink, void *context)
{
    log->triggers = fm_trigger_scan_new(rules, log->folder, log->pid, log->number, sink, context);
}

void fm_trace_log_free(struct fm_trace_log *log)
{
    if (!log)
        return;
    if (!log->ended && !log->reads)
        fm_trace_file_end(&log->file);
    fm_trace_file_close(&log->file);
    fm_journal_release(&log->journal);
    if (log->packed >= 0)
        close(log->packed);
    fm_trace_pack_free(log->pack);
    fm_map_release(&log->next);
    fm_trace_window_release(&log->window);
    fm_trigger_scan_free(log->triggers);
    free(log->words);
    free(log->path);
    free(log->folder);
    free(log);
}

/* ---- writing ---- */

/* A file of the launcher's own: on disk if there is a folder, else beside. −1: it cannot be made. */
static int make_file(const struct fm_trace_log *log, const char *suffix, char **name)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    fm_autofree char *path =
        fm_trace_path(log->folder, FM_FOLDER_MORE_LINK "/", log->pid, log->number, suffix);
    fm_autofree char *beside = fm_trace_path(log->folder, "", log->pid, log->number, suffix);
    int fd = open(path, flags, 0600);
    bool is_beside = fd < 0 && errno != EEXIST;
    if (is_beside)
        fd = open(beside, flags, 0600);
    if (name && fd >= 0)
        *name = fm_strdup(is_beside ? beside : path);
    return fd;
}

static void fail(struct fm_trace_log *log, int errnum)
{
    if (!log->failed)
        log->failed = errnum ? errnum : EIO;
}

void fm_trace_log_sink(void *context, uint16_t type, const void *payload, size_t bytes)
{
    struct fm_trace_log *log = context;
    uint64_t at = log->writer.bytes;
    if (!log->failed && fm_writer_block(&log->writer, type, payload, bytes) < 0)
        fail(log, -log->writer.failed);
    else if (!log->failed)
        fm_trace_window_add(&log->window, type, at, log->writer.bytes);
}

/* The clocks of the process, as its own store has them. */
static bool read_live(const struct fm_trace_log *log, struct fm_live_header *header)
{
    fm_autofree char *path = fm_trace_path(log->folder, "", log->pid, log->number, FM_LIVE_SUFFIX);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool whole = pread(fd, header, sizeof *header, 0) == (ssize_t)sizeof *header &&
                 memcmp(header->magic, FM_LIVE_MAGIC, sizeof header->magic) == 0;
    close(fd);
    return whole;
}

void fm_trace_log_tell_clock(struct fm_trace_log *log)
{
    struct fm_live_header header;
    struct fm_clock_pair now = fm_clock_pair_now();
    if (read_live(log, &header) && header.start_ticks)
        fm_trace_pack_clock(log->pack, header.start_ticks, header.start_ns);
    fm_trace_pack_clock(log->pack, now.ticks, now.ns);
}

/* The files for what is in it; false: there are no descriptors left, as long as others run. Nothing has
 * happened then: what a process left that ended meanwhile is read when the run ends. */
static bool make_files(struct fm_trace_log *log)
{
    log->packed = make_file(log, FM_PACKED_SUFFIX, &log->path);
    int journal = log->packed < 0 ? -1 : make_file(log, FM_JOURNAL_SUFFIX, NULL);
    if (journal < 0 && (errno == EMFILE || errno == ENFILE)) {
        if (log->packed >= 0) {
            close(log->packed);
            unlink(log->path);
        }
        log->packed = -1;
        free(log->path);
        log->path = NULL;
        return false;
    }
    fm_writer_init(&log->writer, log->packed);
    if (log->packed < 0 || fm_writer_start(&log->writer) < 0 ||
        !fm_journal_begin(&log->journal, journal))
        fail(log, errno);
    return true;
}

/* The trace is there. */
static bool begin(struct fm_trace_log *log)
{
    if (log->pack)
        return true;
    fm_autofree char *path = fm_trace_path(log->folder, "", log->pid, log->number, FM_TRACE_SUFFIX);
    if (!fm_trace_file_open(&log->file, path, true))
        return false;
    if (!make_files(log)) {
        fm_trace_file_close(&log->file);
        return false;
    }
    log->pack = fm_trace_pack_new(log->file.shift, fm_trace_log_sink, log);
    fm_trace_log_tell_clock(log);
    return true;
}

void fm_trace_log_commit(struct fm_trace_log *log)
{
    if (!log->pack || log->ended || log->failed)
        return;
    fm_trace_pack_flush(log->pack);
    if (!log->failed && !fm_trace_state_put(log))
        fail(log, -log->writer.failed);
    if (!log->failed && !fm_journal_next(&log->journal))
        fail(log, errno);
}

/* ---- taking ---- */

/* The words of a chunk, to who waits for something. */
static void scan(struct fm_trace_log *log, const struct fm_journal_entry *entry, bool whole)
{
    struct fm_trigger_chunk chunk = { .thread = entry->thread,
                                      .tid = entry->tid,
                                      .sequence = entry->sequence,
                                      .ticks = entry->ticks,
                                      .words = log->words,
                                      .count = entry->count,
                                      .shift = log->file.shift,
                                      .whole = whole };
    if (log->triggers)
        fm_trigger_scan_chunk(log->triggers, &chunk, log->pack);
}

void fm_trace_log_give(struct fm_trace_log *log, const struct fm_journal_entry *entry)
{
    scan(log, entry, true);
    uint32_t *next = fm_map_at(&log->next, entry->thread, 0, NULL);
    *next = (uint32_t)entry->sequence + 1;
    fm_trace_pack_chunk(log->pack, entry->thread, entry->tid, entry->ticks, entry->ns, log->words,
                        entry->count);
    if (entry->last)
        fm_trace_pack_thread_end(log->pack, entry->thread);
}

static size_t read_chunk(const struct fm_trace_log *log, uint32_t chunk)
{
    bool may_grow = log->reads && log->file.chunks[chunk].state == FM_TRACE_CHUNK_FILLING;
    return may_grow ? fm_trace_file_read_filling(&log->file, chunk, log->words)
                    : fm_trace_file_read(&log->file, chunk, log->words);
}

/* Into the journal first, then back to the process, then into the packer; when that cannot be written any
 * more, at least into the tree. */
static void take(struct fm_trace_log *log, uint32_t chunk)
{
    const struct fm_trace_chunk *c = &log->file.chunks[chunk];
    struct fm_journal_entry entry = { .thread = c->thread,
                                      .tid = c->tid,
                                      .last = c->last,
                                      .sequence = c->sequence,
                                      .ticks = c->ticks,
                                      .ns = c->ns };
    entry.count = (uint32_t)read_chunk(log, chunk);
    bool writes = !log->reads && !log->failed;
    if (writes && !fm_journal_add(&log->journal, &entry, log->words))
        fail(log, errno);
    if (writes && !fm_trace_file_free(&log->file, chunk))
        fail(log, errno);
    fm_trace_log_give(log, &entry);
    if (log->reads && c->state == FM_TRACE_CHUNK_FILLING)
        *fm_map_at(&log->next, c->thread, 0, NULL) = NO_MORE;
    if (writes && log->journal.bytes >= FM_JOURNAL_BYTES)
        fm_trace_log_commit(log);
}

struct chunk_place {
    uint32_t thread, chunk;
    uint64_t sequence;
};

static int compare_places(const void *a, const void *b)
{
    const struct chunk_place *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* Chunks that may be taken, by thread and in their order; `all`: also those that are being filled. */
static size_t find_places(struct fm_trace_log *log, bool all, struct chunk_place *places)
{
    size_t count = 0;
    if (!fm_trace_file_look(&log->file))
        return 0;
    for (uint32_t i = 0; i < log->file.count; i++) {
        const struct fm_trace_chunk *c = &log->file.chunks[i];
        if (c->thread &&
            (c->state == FM_TRACE_CHUNK_FULL || (all && c->state == FM_TRACE_CHUNK_FILLING)))
            places[count++] = (struct chunk_place){ c->thread, i, c->sequence };
    }
    qsort(places, count, sizeof *places, compare_places);
    return count;
}

/* … of a thread that takes a chunk at this moment it may still have the numbers of another. */
static bool is_empty(const struct fm_trace_log *log, uint32_t chunk)
{
    return log->file.chunks[chunk].state == FM_TRACE_CHUNK_FILLING &&
           !fm_trace_file_begins(&log->file, chunk);
}

enum taking {
    TAKE_FULL,  /* what was handed over */
    TAKE_ALL,   /* … and what is being filled */
    TAKE_RESTS, /* … and what comes behind a chunk that is missing: it will not come any more */
};

/* Descriptors are not read at one instant: one that comes too early waits for those before it, as long
 * as they may come. Returns how many were taken. */
static size_t take_some(struct fm_trace_log *log, enum taking what, size_t most)
{
    struct chunk_place places[FM_TRACE_CHUNKS];
    size_t count = find_places(log, what != TAKE_FULL, places), taken = 0;
    for (size_t i = 0; i < count && taken < most && (what != TAKE_FULL || !log->failed); i++) {
        const uint32_t *known = fm_map_find(&log->next, places[i].thread);
        uint64_t next = known ? *known : log->goes_on ? places[i].sequence : 0;
        if ((places[i].sequence > next && what != TAKE_RESTS) || is_empty(log, places[i].chunk))
            continue;
        if (places[i].sequence < next) { /* taken already, by who was killed then; or rubbish */
            if (!log->reads && !log->failed && !fm_trace_file_free(&log->file, places[i].chunk))
                fail(log, errno);
            continue;
        }
        log->missing += places[i].sequence - next < FM_TRACE_CHUNKS ? places[i].sequence - next : 1;
        take(log, places[i].chunk);
        taken++;
    }
    return taken;
}

/* What is in chunks that are being filled may stay there for long. */
static void peek(struct fm_trace_log *log)
{
    uint64_t now_ns = log->triggers ? fm_clock_ns() : 0;
    if (!log->triggers || now_ns < log->peek_ns)
        return;
    log->peek_ns = now_ns + PEEK_NS;
    uint32_t handed = log->file.handed; /* those are for who takes chunks */
    bool looked = fm_trace_file_look(&log->file);
    log->file.handed = handed;
    for (uint32_t i = 0; looked && i < log->file.count; i++) {
        const struct fm_trace_chunk *c = &log->file.chunks[i];
        const uint32_t *known = fm_map_find(&log->next, c->thread);
        if (c->state != FM_TRACE_CHUNK_FILLING || !c->thread ||
            c->sequence != (known ? *known : 0)) /* one before it is still to be taken */
            continue;
        struct fm_journal_entry entry = {
            .thread = c->thread, .tid = c->tid, .sequence = c->sequence, .ticks = c->ticks
        };
        size_t from = fm_trigger_scan_done(log->triggers, c->thread, c->sequence);
        entry.count = (uint32_t)fm_trace_file_peek(&log->file, i, from, log->words);
        if (entry.count > from)
            scan(log, &entry, false);
    }
}

bool fm_trace_log_drain(struct fm_trace_log *log)
{
    if (log->ended || log->failed || !begin(log))
        return false;
    if (fm_trace_window_is_due(&log->window)) {
        fm_trace_log_commit(log);
        fm_trace_window_forget(&log->window, log->packed, log->told_ns);
    }
    if (!fm_trace_file_has_news(&log->file)) {
        peek(log);
        return false;
    }
    size_t taken = take_some(log, TAKE_FULL, AT_ONCE);
    if (taken == AT_ONCE)
        log->file.handed--; /* there may be more: look again */
    if (log->failed)
        fm_trace_file_end(&log->file);
    else
        peek(log);
    return taken > 0;
}

void fm_trace_log_give_up(struct fm_trace_log *log)
{
    fm_trace_file_end(&log->file);
}

/* How the process ended by its own words, if it said so. */
static uint64_t told_end(const struct fm_trace_log *log, uint64_t end_ticks)
{
    struct fm_live_header header;
    if (!read_live(log, &header) || !(header.flags & FM_LIVE_ENDED) || !header.end_ticks)
        return end_ticks;
    return end_ticks && end_ticks < header.end_ticks ? end_ticks : header.end_ticks;
}

/* What threads lost at last, and could not tell. */
static void take_untold(struct fm_trace_log *log, const struct fm_trace_header *header)
{
    for (unsigned i = 0; i < FM_TRACE_UNTOLD; i++) {
        const struct fm_trace_untold *untold = &header->untold[i];
        if (untold->thread && untold->events)
            fm_trace_pack_lost(log->pack, untold->thread, untold->tid, untold->ticks,
                               untold->events);
    }
}

void fm_trace_log_rest(struct fm_trace_log *log, uint64_t end_ticks)
{
    struct fm_trace_header header;
    for (unsigned i = 0; log->file.fd >= 0 && i < FM_TRACE_CHUNKS; i++)
        if (!take_some(log, TAKE_ALL, AT_ONCE) && !take_some(log, TAKE_RESTS, AT_ONCE))
            break;
    if (log->file.fd >= 0 && fm_trace_file_header(&log->file, &header)) {
        log->lost = header.lost_events;
        log->waited_ticks = header.waited_ticks;
        take_untold(log, &header);
    }
    fm_trace_log_tell_clock(log);
    fm_trace_pack_end(log->pack, told_end(log, end_ticks));
    log->ended = true;
}

/* What is kept of a process that has ended is little: there may be thousands of them. */
static void give_back(struct fm_trace_log *log)
{
    free(log->words);
    log->words = NULL;
    fm_map_release(&log->next);
    fm_trace_window_release(&log->window);
    if (log->packed >= 0)
        close(log->packed);
    log->packed = -1;
}

void fm_trace_log_end(struct fm_trace_log *log, uint64_t end_ticks)
{
    if (log->ended || !begin(log))
        return;
    fm_trace_log_rest(log, end_ticks);
    if (!log->failed && !fm_trace_state_put(log))
        fail(log, -log->writer.failed);
    if (!log->failed)
        fm_journal_next(&log->journal);
    fm_trace_file_close(&log->file);
    fm_journal_release(&log->journal);
    give_back(log);
}

void fm_trace_log_expire(struct fm_trace_log *log)
{
    if (!log->ended || !log->window.ns || !log->path ||
        fm_clock_ns() <= log->told_ns + log->window.ns)
        return;
    unlink(log->path);
    free(log->path);
    log->path = NULL;
}

struct fm_trace_log_facts fm_trace_log_facts(const struct fm_trace_log *log)
{
    return (struct fm_trace_log_facts){ .lost = log->lost,
                                        .waited_ticks = log->waited_ticks,
                                        .missing = log->missing,
                                        .failed = log->failed,
                                        .ended = log->ended };
}

const struct fm_trace_pack *fm_trace_log_pack(const struct fm_trace_log *log)
{
    return log->pack;
}

uint64_t fm_trace_log_window_ns(const struct fm_trace_log *log)
{
    return log->reads ? log->cut_ns : log->window.ns;
}

int fm_trace_log_open_packed(const struct fm_trace_log *log)
{
    return log->path          ? open(log->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
           : log->packed >= 0 ? fcntl(log->packed, F_DUPFD_CLOEXEC, 0)
                              : -1;
}

const char *fm_trace_log_path(const struct fm_trace_log *log)
{
    return log->path;
}

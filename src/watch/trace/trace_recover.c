/*
 * What a trace was when its launcher was killed, or is at this moment: the packed file up to its last mark,
 * then the journal, then the chunks that nobody took; see journal.h, trace_state.h. Nothing of it is changed: what
 * is packed anew goes with a copy of the rest into a file without a name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "record/capture/format.h"
#include "record/capture/reader.h"
#include "watch/os/path.h"
#include "watch/os/run/folder.h"
#include "watch/trace/trace_log.h"
#include "watch/trace/trace_parts.h"
#include "watch/trace/trace_state.h"

static int open_left(const struct fm_trace_log *log, const char *suffix)
{
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    fm_autofree char *path =
        fm_trace_path(log->folder, FM_FOLDER_MORE_LINK "/", log->pid, log->number, suffix);
    fm_autofree char *beside = fm_trace_path(log->folder, "", log->pid, log->number, suffix);
    int fd = open(path, flags);
    return fd < 0 ? open(beside, flags) : fd;
}

/* A file without a name, on disk rather than in memory. */
static int make_nameless(const char *folder)
{
    fm_autofree char *more = fm_path_join(folder, FM_FOLDER_MORE_LINK);
    const char *const places[] = { more, getenv("TMPDIR"), "/var/tmp", "/tmp", folder };
    for (size_t i = 0; i < FM_COUNT(places); i++) {
        int fd = places[i] ? open(places[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
        if (fd >= 0)
            return fd;
    }
    char name[] = "/tmp/fathom-XXXXXX";
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        unlink(name);
    return fd;
}

static bool begin_reading(struct fm_reader *reader, int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
           fm_reader_init_fd(reader, fd, (uint64_t)st.st_size, NULL) == 0;
}

/* What the packed file says of itself. */
struct found {
    uint64_t mark,
        number; /* where its last mark stands, and the number of that; 0: there is none */
    struct fm_buffer state;   /* that was told with it */
    struct fm_buffer waiting; /* … with the one that comes next */
};

static void take_mark(struct found *found, const struct fm_block *block)
{
    if (block->len != sizeof found->number)
        return;
    memcpy(&found->number, block->data, sizeof found->number);
    found->mark = block->offset;
    fm_buffer_clear(&found->state);
    fm_buffer_add(&found->state, found->waiting.data, found->waiting.len);
}

/* Clocks are taken at once: with them it is known when the window begins. */
static void look_through(struct fm_trace_log *log, int fd, struct found *found)
{
    struct fm_reader reader;
    struct fm_block block;
    if (begin_reading(&reader, fd)) {
        reader.wanted =
            1ull << FM_JOURNAL_BLOCK | 1ull << FM_TRACE_STATE_BLOCK | 1ull << FM_BLOCK_TRACE_CLOCK;
        while (fm_reader_next(&reader, &block)) {
            if (block.type == FM_JOURNAL_BLOCK)
                take_mark(found, &block);
            else if (block.type == FM_BLOCK_TRACE_CLOCK)
                fm_trace_pack_reopen(log->pack, block.type, block.data, block.len);
            else if (block.type == FM_TRACE_STATE_BLOCK) {
                fm_buffer_clear(&found->waiting);
                fm_buffer_add(&found->waiting, block.data, block.len);
            }
        }
    }
    fm_reader_release(&reader);
}

/* What is packed already: it goes through the packer, which gives out what is to be told. */
static void take_blocks(struct fm_trace_log *log, int fd, uint64_t mark)
{
    struct fm_reader reader;
    struct fm_block block;
    if (begin_reading(&reader, fd)) {
        while (fm_reader_next(&reader, &block) && block.offset < mark) {
            if (block.type == FM_JOURNAL_BLOCK || block.type == FM_TRACE_STATE_BLOCK ||
                block.type == FM_BLOCK_TRACE_CLOCK)
                continue;
            if (!fm_trace_pack_reopen(log->pack, block.type, block.data, block.len))
                log->missing++;
        }
    }
    fm_reader_release(&reader);
}

/* All that is marked; returns the number of that journal. The window is that before `now_ns` (0: before all was
 * marked). */
static uint64_t take_packed(struct fm_trace_log *log, int fd, uint64_t now_ns)
{
    struct found found = { 0 };
    look_through(log, fd, &found);
    fm_trace_log_tell_clock(log);
    struct fm_trace_state state = fm_trace_state_open(found.state.data, found.state.len);
    uint64_t end_ns = now_ns > state.told_ns ? now_ns : state.told_ns;
    log->cut_ns = state.window_ns < end_ns ? state.window_ns : 0;
    if (log->cut_ns)
        fm_trace_pack_cut(log->pack, end_ns - log->cut_ns);
    log->goes_on = found.mark && !state.told_ns;
    if (found.mark) {
        take_blocks(log, fd, found.mark);
        if (!fm_trace_state_take(log, &state))
            log->missing++;
    }
    fm_buffer_release(&found.state);
    fm_buffer_release(&found.waiting);
    return found.number;
}

static void take_journal(struct fm_trace_log *log, int fd, uint64_t packed)
{
    struct fm_journal_entry entry;
    uint64_t at, number = fm_journal_open(fd, &at);
    if (number <= packed)
        return;
    while (fm_journal_read(fd, &at, &entry, log->words))
        fm_trace_log_give(log, &entry);
}

static bool begin(struct fm_trace_log *log)
{
    fm_autofree char *path = fm_trace_path(log->folder, "", log->pid, log->number, FM_TRACE_SUFFIX);
    if (!fm_trace_file_open(&log->file, path, false))
        return false;
    log->pack = fm_trace_pack_new(log->file.shift, fm_trace_log_sink, log);
    log->packed = make_nameless(log->folder);
    fm_writer_init(&log->writer, log->packed);
    if (log->packed < 0 || fm_writer_start(&log->writer) < 0)
        log->failed = errno ? errno : EIO;
    return true;
}

struct fm_trace_log *fm_trace_log_recover(const char *folder, pid_t pid, unsigned number,
                                          uint64_t end_ticks)
{
    struct fm_trace_log *log = fm_trace_log_new(folder, pid, number);
    log->reads = true;
    if (!begin(log)) {
        fm_trace_log_free(log);
        return NULL;
    }
    if (end_ticks == FM_TRACE_LOG_NOW)
        fm_trace_pack_until(log->pack, end_ticks = fm_clock_ticks());
    uint64_t now_ns = end_ticks ? fm_clock_ns() : 0;
    int packed = open_left(log, FM_PACKED_SUFFIX), journal = open_left(log, FM_JOURNAL_SUFFIX);
    uint64_t done = packed >= 0 ? take_packed(log, packed, now_ns) : 0;
    if (packed < 0)
        fm_trace_log_tell_clock(log);
    if (journal >= 0)
        take_journal(log, journal, done);
    fm_trace_log_rest(log, end_ticks);
    if (packed >= 0)
        close(packed);
    if (journal >= 0)
        close(journal);
    return log;
}

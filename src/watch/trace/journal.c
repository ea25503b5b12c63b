/* What was taken and is not packed yet; see journal.h. */
#include "watch/trace/journal.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define JOURNAL_MAGIC "FATHOMTJ"
#define WORDS         (FM_TRACE_CHUNK_BYTES / sizeof(uint16_t))

struct journal_header {
    char magic[8];
    uint64_t number;
};

static bool write_header(struct fm_journal *journal)
{
    struct journal_header header = { JOURNAL_MAGIC, journal->number };
    journal->bytes = sizeof header;
    return pwrite(journal->fd, &header, sizeof header, 0) == (ssize_t)sizeof header;
}

bool fm_journal_begin(struct fm_journal *journal, int fd)
{
    *journal = (struct fm_journal){ .fd = fd, .number = 1 };
    return fd >= 0 && write_header(journal);
}

void fm_journal_release(struct fm_journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = -1;
}

bool fm_journal_add(struct fm_journal *journal, const struct fm_journal_entry *entry,
                    const uint16_t *words)
{
    size_t bytes = sizeof *entry + entry->count * sizeof *words;
    struct iovec parts[] = { { (void *)entry, sizeof *entry },
                             { (void *)words, entry->count * sizeof *words } };
    ssize_t done = pwritev(journal->fd, parts, 2, (off_t)journal->bytes);
    if (done != (ssize_t)bytes) {
        errno = done < 0 ? errno : ENOSPC; /* there was room for a part */
        return false;
    }
    journal->bytes += bytes;
    return true;
}

/* Shortened first: with its old number it is not believed any more, being marked as packed. */
bool fm_journal_next(struct fm_journal *journal)
{
    journal->number++;
    return ftruncate(journal->fd, 0) == 0 && write_header(journal);
}

uint64_t fm_journal_open(int fd, uint64_t *at)
{
    struct journal_header header;
    *at = sizeof header;
    if (fd < 0 || pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        memcmp(header.magic, JOURNAL_MAGIC, sizeof header.magic) != 0)
        return 0;
    return header.number;
}

bool fm_journal_read(int fd, uint64_t *at, struct fm_journal_entry *entry, uint16_t *words)
{
    if (pread(fd, entry, sizeof *entry, (off_t)*at) != (ssize_t)sizeof *entry ||
        entry->count > WORDS)
        return false;
    size_t bytes = entry->count * sizeof *words;
    if (pread(fd, words, bytes, (off_t)(*at + sizeof *entry)) != (ssize_t)bytes)
        return false;
    *at += sizeof *entry + bytes;
    return true;
}

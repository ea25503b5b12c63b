/* The trace of a process, by position; see trace_file.h. */
#include "watch/trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/model/trace/pack/words.h"

#define WORDS (FM_TRACE_CHUNK_BYTES / sizeof(uint16_t))

#define PIECE_WORDS 2048u

static bool read_all(int fd, void *into, size_t bytes, off_t at)
{
    return pread(fd, into, bytes, at) == (ssize_t)bytes;
}

static bool write_all(int fd, const void *from, size_t bytes, off_t at)
{
    ssize_t done = pwrite(fd, from, bytes, at);
    if (done >= 0 && done < (ssize_t)bytes)
        errno = ENOSPC;
    return done == (ssize_t)bytes;
}

bool fm_trace_file_header(const struct fm_trace_file *file, struct fm_trace_header *header)
{
    return file->fd >= 0 && read_all(file->fd, header, sizeof *header, 0) &&
           memcmp(header->magic, FM_TRACE_MAGIC, sizeof header->magic) == 0 &&
           header->version == FM_TRACE_VERSION && header->shift < 32;
}

bool fm_trace_file_open(struct fm_trace_file *file, const char *path, bool writes)
{
    struct fm_trace_header header;
    *file = (struct fm_trace_file){ .fd = open(path, (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC |
                                                         O_NOFOLLOW | O_NONBLOCK) };
    if (!fm_trace_file_header(file, &header)) {
        fm_trace_file_close(file);
        return false;
    }
    file->shift = header.shift;
    file->freed = header.freed;
    file->handed = header.handed - 1; /* look at it once in any case */
    if (writes) {
        void *page =
            mmap(NULL, FM_TRACE_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
        file->page = page == MAP_FAILED ? NULL : page;
    }
    return true;
}

void fm_trace_file_close(struct fm_trace_file *file)
{
    if (file->page)
        munmap(file->page, FM_TRACE_HEADER_BYTES);
    if (file->fd >= 0)
        close(file->fd);
    file->page = NULL;
    file->fd = -1;
}

bool fm_trace_file_has_news(const struct fm_trace_file *file)
{
    uint32_t handed;
    return read_all(file->fd, &handed, sizeof handed, offsetof(struct fm_trace_header, handed)) &&
           handed != file->handed;
}

bool fm_trace_file_look(struct fm_trace_file *file)
{
    uint32_t handed;
    file->count = 0;
    if (!read_all(file->fd, &handed, sizeof handed, offsetof(struct fm_trace_header, handed)))
        return false;
    ssize_t got = pread(file->fd, file->chunks, sizeof file->chunks, FM_TRACE_DESCRIPTORS_AT);
    file->handed = handed; /* read before, so that nothing is missed */
    file->count = got > 0 ? (uint32_t)((size_t)got / sizeof *file->chunks) : 0;
    return file->count > 0;
}

static off_t place_of(uint32_t chunk)
{
    return (off_t)FM_TRACE_CHUNKS_AT + (off_t)chunk * FM_TRACE_CHUNK_BYTES;
}

size_t fm_trace_file_read(const struct fm_trace_file *file, uint32_t chunk, uint16_t *words)
{
    ssize_t got = pread(file->fd, words, FM_TRACE_CHUNK_BYTES, place_of(chunk));
    size_t count = got > 0 ? (size_t)got / sizeof *words : 0, used = 0;
    /* A payload may have zeros in it: what is used is known to who reads the words. So here: up to the last
     * that is not 0. */
    for (size_t i = count; i > 0 && !used; i--)
        used = words[i - 1] ? i : 0;
    /* … and the zeros that end a payload. */
    size_t behind = used + FM_TRACE_LONGEST / sizeof *words;
    return behind < count ? behind : count;
}

bool fm_trace_file_begins(const struct fm_trace_file *file, uint32_t chunk)
{
    uint16_t word = 0;
    return read_all(file->fd, &word, sizeof word, place_of(chunk)) && word;
}

/* The kernel copies in any order, so a word may be there without its payload, which was written before. A word
 * that was there the first time has it the second time. */
size_t fm_trace_file_read_filling(const struct fm_trace_file *file, uint32_t chunk, uint16_t *words)
{
    uint16_t before[WORDS];
    struct fm_word word;
    size_t seen = fm_trace_file_read(file, chunk, before);
    size_t count = fm_trace_file_read(file, chunk, words);
    struct fm_words w = fm_words_over(words, count, file->shift, 0);
    while ((size_t)(w.at - words) < seen && before[w.at - words] && fm_words_next(&w, &word))
        ;
    return w.bad ? count : (size_t)(w.at - words);
}

/* From `from` on, until a piece has nothing; a payload is shorter than one. */
static size_t read_pieces(const struct fm_trace_file *file, uint32_t chunk, size_t from,
                          uint16_t *words)
{
    static const uint16_t zeros[PIECE_WORDS];
    const size_t all = FM_TRACE_CHUNK_BYTES / sizeof *words;
    while (from < all) {
        size_t some = all - from < PIECE_WORDS ? all - from : PIECE_WORDS;
        if (!read_all(file->fd, words + from, some * sizeof *words,
                      place_of(chunk) + (off_t)(from * sizeof *words)) ||
            memcmp(words + from, zeros, some * sizeof *words) == 0)
            break;
        from += some;
    }
    return from;
}

size_t fm_trace_file_peek(const struct fm_trace_file *file, uint32_t chunk, size_t from,
                          uint16_t *words)
{
    struct fm_trace_chunk now;
    const struct fm_trace_chunk *then = &file->chunks[chunk];
    off_t at = (off_t)FM_TRACE_DESCRIPTORS_AT + (off_t)chunk * (off_t)sizeof now;
    size_t end = read_pieces(file, chunk, from, words);
    /* A word may be copied after its payload, which was not there yet: the second time it is. */
    if (end > from && !read_all(file->fd, words + from, (end - from) * sizeof *words,
                                place_of(chunk) + (off_t)(from * sizeof *words)))
        return from;
    if (!read_all(file->fd, &now, sizeof now, at) || now.thread != then->thread ||
        now.sequence != then->sequence || now.state != FM_TRACE_CHUNK_FILLING)
        return from; /* it will be taken whole */
    return end;
}

/* Those who wait look at `freed`: first the chunk, then the number, then who waits. */
static void wake(struct fm_trace_file *file)
{
    uint32_t waiting = 0;
    size_t at = offsetof(struct fm_trace_header, freed);
    file->freed++;
    if (!write_all(file->fd, &file->freed, sizeof file->freed, (off_t)at))
        return;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!file->page || !read_all(file->fd, &waiting, sizeof waiting,
                                 offsetof(struct fm_trace_header, threads_wait)))
        return;
    if (waiting)
        syscall(SYS_futex, (char *)file->page + at, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool fm_trace_file_free(struct fm_trace_file *file, uint32_t chunk)
{
    static const char zeros[FM_TRACE_CHUNK_BYTES];
    uint32_t state = FM_TRACE_CHUNK_FREE;
    off_t at = (off_t)FM_TRACE_DESCRIPTORS_AT + (off_t)chunk * (off_t)sizeof *file->chunks;
    if (!write_all(file->fd, zeros, sizeof zeros, place_of(chunk)) ||
        !write_all(file->fd, &state, sizeof state,
                   at + (off_t)offsetof(struct fm_trace_chunk, state)))
        return false;
    wake(file);
    return true;
}

void fm_trace_file_end(struct fm_trace_file *file)
{
    uint32_t closed = 1;
    if (file->fd >= 0 &&
        write_all(file->fd, &closed, sizeof closed, offsetof(struct fm_trace_header, closed)))
        wake(file);
}

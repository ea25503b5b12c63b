/* The heap store of a running process; see heap_file.h. */
#include "watch/memory/heap_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/capture/live_heap.h"
#include "watch/os/procfs.h"
#include "watch/os/remote/maps.h"

#define MOST_BYTES (1u << 31)

/* N of ".../PID.N.heap", with ".more" behind it or not; −1 of all else. */
static long number_of(const char *path, pid_t pid, bool *ret_more)
{
    const char *name = strrchr(path, '/');
    char *end;
    if (!name || strtol(name + 1, &end, 10) != pid || *end != '.')
        return -1;
    long number = strtol(end + 1, &end, 10);
    *ret_more = strcmp(end, FM_HEAP_SUFFIX FM_HEAP_MORE_SUFFIX) == 0;
    return *ret_more || strcmp(end, FM_HEAP_SUFFIX) == 0 ? number : -1;
}

/* The files of the store that the process made last; NULL: there is none. */
static void find(const struct fm_maps *maps, pid_t pid, const struct fm_mapping *found[2])
{
    long newest = -1;
    for (size_t i = 0; i < maps->list.len; i++) {
        const struct fm_mapping *m = &maps->list.data[i];
        bool more;
        long number = m->inode && !m->deleted ? number_of(m->path, pid, &more) : -1;
        if (number > newest)
            found[0] = found[1] = NULL;
        if (number < 0 || number < newest)
            continue;
        newest = number;
        found[more] = m;
    }
}

static bool read_header(int fd, struct fm_heap_header *header)
{
    return fd >= 0 && pread(fd, header, sizeof *header, 0) == (ssize_t)sizeof *header &&
           memcmp(header->magic, FM_HEAP_MAGIC, sizeof header->magic) == 0;
}

/* The header is in the second file if the first has no room at all. */
static bool header_of(const struct fm_heap_file *file, struct fm_heap_header *header)
{
    return read_header(file->fd, header) || read_header(file->more, header);
}

/* By the names that the process itself has for its files: it may live in a container. */
static int open_mapped(pid_t pid, const struct fm_mapping *m)
{
    char path[4096];
    struct stat st;
    int len = m ? snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, m->path) : -1;
    if (len < 0 || (size_t)len >= sizeof path)
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == m->inode)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int none(pid_t pid, struct fm_error *err)
{
    return fm_error_set(err, FM_NOT_RECORDED,
                        "process %d records no memory: start it by `fathom run --memory`",
                        (int)pid);
}

static int open_files(struct fm_heap_file *file, pid_t inner_pid, struct fm_error *err)
{
    struct fm_maps maps = { 0 };
    const struct fm_mapping *found[2] = { NULL, NULL };
    if (fm_maps_read(&maps, file->pid, NULL, err) < 0)
        return err->status;
    find(&maps, inner_pid, found);
    file->fd = open_mapped(file->pid, found[0]);
    file->more = open_mapped(file->pid, found[1]);
    fm_maps_release(&maps);
    return 0;
}

int fm_heap_file_open(struct fm_heap_file *file, pid_t pid, struct fm_error *err)
{
    struct fm_heap_header header;
    struct fm_proc process;
    *file = (struct fm_heap_file){ .pid = pid, .fd = -1, .more = -1 };
    if (fm_process_read(&process, pid) < 0)
        return fm_error_set(err, FM_NOT_FOUND, "there is no process %d", (int)pid);
    int rc = open_files(file, process.inner_pid, err);
    /* A child of fork has its parent's store mapped until it makes its own, which has its number. */
    if (rc == 0 && (!header_of(file, &header) || header.pid != (uint32_t)process.inner_pid))
        rc = none(pid, err);
    else if (rc == 0 && header.version != FM_HEAP_VERSION)
        rc = fm_error_set(err, FM_UNSUPPORTED,
                          "process %d is recorded by another version of Fathom", (int)pid);
    if (rc < 0)
        fm_heap_file_close(file);
    return rc;
}

void fm_heap_file_close(struct fm_heap_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->more >= 0)
        close(file->more);
    fm_buffer_release(&file->bytes);
    fm_buffer_release(&file->more_bytes);
    file->fd = file->more = -1;
}

static void read_whole(int fd, struct fm_buffer *into)
{
    struct stat st;
    fm_buffer_clear(into);
    if (fd < 0 || fstat(fd, &st) < 0)
        return;
    size_t len = st.st_size < (off_t)MOST_BYTES ? (size_t)st.st_size : MOST_BYTES;
    fm_buffer_reserve(into, len);
    while (into->len < len) {
        ssize_t some = pread(fd, into->data + into->len, len - into->len, (off_t)into->len);
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            break; /* it became shorter: its reader sees what is missing */
        into->len += (size_t)some;
    }
}

/* The second file may have come since the first was opened. */
static void find_more(struct fm_heap_file *file)
{
    struct fm_heap_header header;
    struct fm_heap_file again;
    struct fm_error err = FM_ERROR_INIT;
    bool goes_on = false;
    if (file->more >= 0 || !read_header(file->fd, &header))
        return;
    for (uint32_t i = 0; i < header.piece_count && i < FM_HEAP_PIECES; i++)
        goes_on |= header.pieces[i].file != 0;
    if (!goes_on || fm_heap_file_open(&again, file->pid, &err) < 0)
        return;
    file->more = again.more;
    again.more = -1;
    fm_heap_file_close(&again);
}

int fm_heap_file_read(struct fm_heap_file *file, struct fm_error *err)
{
    find_more(file);
    read_whole(file->fd, &file->bytes);
    read_whole(file->more, &file->more_bytes);
    return file->bytes.len || file->more_bytes.len
               ? 0
               : fm_error_set(err, FM_CANNOT_READ, "the store of process %d is empty",
                              (int)file->pid);
}

bool fm_heap_file_is_over(const struct fm_heap_file *file)
{
    struct fm_heap_header header;
    return !header_of(file, &header) || header.flags & FM_HEAP_ENDED ||
           header.left != FM_HEAP_STAYS;
}

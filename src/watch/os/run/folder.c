/* The folder of one run; see folder.h. */
#include "watch/os/run/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "watch/os/path.h"

#define MEMORY_FREE_BYTES (64ull << 20) /* with less than this, disk is the better place */

/* A descriptor that holds the lock on the folder, or −1: then nobody can tell that it is in use.
 * `*ret_gone`: somebody tidied up in between and took the folder for a left one. */
static int lock(const char *path, bool *ret_gone)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *ret_gone = fd < 0 && errno == ENOENT;
    if (fd < 0)
        return -1;
    while (flock(fd, LOCK_SH) != 0 && errno == EINTR)
        ;
    *ret_gone = fstat(fd, &st) == 0 && st.st_nlink == 0;
    if (!*ret_gone)
        return fd;
    close(fd);
    return -1;
}

static char *make_in(const char *parent, int *ret_lock)
{
    bool gone;
    do {
        char *path = fm_path_join(parent, FM_FOLDER_PREFIX "XXXXXX");
        if (!mkdtemp(path)) {
            free(path);
            return NULL;
        }
        *ret_lock = lock(path, &gone);
        if (!gone)
            return path;
        free(path);
    } while (gone);
    return NULL;
}

static bool is_in_memory(const char *path)
{
    struct statfs fs;
    return statfs(path, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

/* Where temporary files are kept; often that is memory, too, and only then the next is better. */
static char *make_on_disk(int *ret_lock)
{
    const char *named = getenv("TMPDIR");
    fm_autofree char *first = named && *named ? realpath(named, NULL) : NULL;
    const char *parents[] = { first, "/tmp", "/var/tmp" };
    for (int any = 0; any < 2; any++)
        for (size_t i = 0; i < FM_COUNT(parents); i++) {
            char *path = parents[i] && is_in_memory(parents[i]) == any
                             ? make_in(parents[i], ret_lock)
                             : NULL;
            if (path)
                return path;
        }
    return NULL;
}

static char *make_in_memory(int *ret_lock)
{
    struct statvfs fs;
    if (statvfs(FM_FOLDER_IN_MEMORY, &fs) != 0 ||
        (unsigned long long)fs.f_bavail * fs.f_frsize < MEMORY_FREE_BYTES)
        return NULL;
    return make_in(FM_FOLDER_IN_MEMORY, ret_lock);
}

static char *make_in_named(const char *named, int *ret_lock)
{
    fm_autofree char *parent = realpath(named, NULL);
    return parent ? make_in(parent, ret_lock) : NULL;
}

/* `disk` is where stores go on when the first folder is full; the run's folder links to it. */
static void link_more(struct fm_folder *folder, char *disk)
{
    fm_autofree char *link_path = fm_path_join(folder->path, FM_FOLDER_MORE_LINK);
    if (symlink(disk, link_path) == 0) {
        folder->more = disk;
    } else {
        rmdir(disk);
        free(disk);
    }
}

/* "FOLDER", or "FOLDER:SECOND" with a place for what no longer fits. */
static int make_where_asked(struct fm_folder *folder, const char *asked, struct fm_error *err)
{
    const char *colon = strchr(asked, ':');
    fm_autofree char *first = fm_strndup(asked, colon ? (size_t)(colon - asked) : strlen(asked));
    folder->path = make_in_named(first, &folder->lock);
    char *second = folder->path && colon ? make_in_named(colon + 1, &folder->more_lock) : NULL;
    if (folder->path && (second || !colon)) {
        if (second)
            link_more(folder, second);
        return 0;
    }
    int errnum = errno;
    if (folder->path)
        rmdir(folder->path);
    return fm_error_set_errno(err, FM_CANNOT_WRITE, errnum,
                              "no folder for the run can be made in %s, which FATHOM_TMPDIR names",
                              folder->path ? colon + 1 : first);
}

int fm_folder_make(struct fm_folder *folder, struct fm_error *err)
{
    *folder = (struct fm_folder){ .lock = -1, .more_lock = -1 };
    const char *asked = getenv("FATHOM_TMPDIR");
    if (asked && *asked)
        return make_where_asked(folder, asked, err);
    folder->path = make_in_memory(&folder->lock);
    char *disk = make_on_disk(folder->path ? &folder->more_lock : &folder->lock);
    if (!folder->path) {
        folder->path = disk;
        if (!disk)
            return fm_error_set_errno(err, FM_CANNOT_WRITE, errno,
                                      "no folder for the run can be made in " FM_FOLDER_IN_MEMORY
                                      ", $TMPDIR, /tmp or /var/tmp");
        return 0;
    }
    if (disk)
        link_more(folder, disk);
    return 0;
}

static void remove_one(const char *path)
{
    if (!path)
        return;
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(path);
}

void fm_folder_remove(const struct fm_folder *folder)
{
    remove_one(folder->path);
    remove_one(folder->more);
}

void fm_folder_release(struct fm_folder *folder)
{
    if (folder->path && folder->lock >= 0)
        close(folder->lock);
    if (folder->more && folder->more_lock >= 0)
        close(folder->more_lock);
    free(folder->path);
    free(folder->more);
    *folder = (struct fm_folder){ 0 };
}

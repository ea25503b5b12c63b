/* The folder of one run; see folder.h. */
#include "watch/os/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "watch/os/path.h"

#define MEMORY_FOLDER     "/dev/shm"
#define MEMORY_FREE_BYTES (64ull << 20) /* with less than this, disk is the better place */

static char *make_in(const char *parent)
{
    char *path = fm_path_join(parent, "fathom-XXXXXX");
    if (mkdtemp(path))
        return path;
    free(path);
    return NULL;
}

static char *make_on_disk(void)
{
    const char *named = getenv("TMPDIR");
    fm_autofree char *parent = named && *named ? realpath(named, NULL) : NULL;
    char *path = parent ? make_in(parent) : NULL;
    return path ? path : make_in("/tmp");
}

static char *make_in_memory(void)
{
    struct statvfs fs;
    if (statvfs(MEMORY_FOLDER, &fs) != 0 ||
        (unsigned long long)fs.f_bavail * fs.f_frsize < MEMORY_FREE_BYTES)
        return NULL;
    return make_in(MEMORY_FOLDER);
}

static char *make_in_named(const char *named)
{
    fm_autofree char *parent = realpath(named, NULL);
    return parent ? make_in(parent) : NULL;
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
    folder->path = make_in_named(first);
    char *second = folder->path && colon ? make_in_named(colon + 1) : NULL;
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
    *folder = (struct fm_folder){ 0 };
    const char *asked = getenv("FATHOM_TMPDIR");
    if (asked && *asked)
        return make_where_asked(folder, asked, err);
    folder->path = make_in_memory();
    char *disk = make_on_disk();
    if (!folder->path) {
        folder->path = disk;
        if (!disk)
            return fm_error_set_errno(err, FM_CANNOT_WRITE, errno,
                                      "no folder for the run can be made in " MEMORY_FOLDER
                                      ", $TMPDIR or /tmp");
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
    free(folder->path);
    free(folder->more);
    *folder = (struct fm_folder){ 0 };
}

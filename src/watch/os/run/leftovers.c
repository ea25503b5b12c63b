/* Folders of runs that are still there; see leftovers.h. */
#include "watch/os/run/leftovers.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/run_config.h"
#include "watch/os/path.h"
#include "watch/os/run/folder.h"

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* "PID.N.live", "PID.N.heap", each with ".more" behind it, "PID.N.trace", "PID.N.unprofiled"; `*ret_pid` is its
 * process. */
static bool is_of_process(const char *name, long *ret_pid)
{
    char *end;
    if (!isdigit((unsigned char)*name))
        return false;
    *ret_pid = strtol(name, &end, 10);
    if (*end != '.' || !isdigit((unsigned char)end[1]))
        return false;
    strtol(end + 1, &end, 10);
    return strcmp(end, ".live") == 0 || strcmp(end, ".live.more") == 0 ||
           strcmp(end, ".heap") == 0 || strcmp(end, ".heap.more") == 0 ||
           strcmp(end, ".trace") == 0 || strcmp(end, ".unprofiled") == 0;
}

/* "PID.N.slices", "PID.N.packed" and "PID.N.pending", which are the launcher's, also while one is written
 * anew, and "PID.N.events". */
static bool is_of_slices(const char *name)
{
    unsigned pid, number;
    int end = 0;
    if (sscanf(name, "%u.%u%n", &pid, &number, &end) != 2 || !end)
        return false;
    return strcmp(name + end, ".slices") == 0 || strcmp(name + end, ".slices.new") == 0 ||
           strcmp(name + end, ".packed") == 0 || strcmp(name + end, ".pending") == 0 ||
           strcmp(name + end, ".events") == 0;
}

/* Names that launchers and processes of runs put into their folders, and nobody else. */
static bool is_known(const char *name)
{
    static const char *const own[] = { "run.fathom", "samples.fathom" };
    static const char *const others[] = { FM_FOLDER_MORE_LINK, "libfathom_preload.so",
                                          "libfathom_heap.so", "together", FM_RUN_REGIONS_FILE };
    long pid;
    for (size_t i = 0; i < FM_COUNT(own); i++)
        if (begins_with(name, own[i]) &&
            (!name[strlen(own[i])] || name[strlen(own[i])] == '.')) /* base/output.c, unfinished */
            return true;
    for (size_t i = 0; i < FM_COUNT(others); i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return is_of_process(name, &pid) || is_of_slices(name);
}

/* Has somebody the store open for writing? A lease for reading is refused then. */
static bool is_written(int folder, const char *name, pid_t pid)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno != ENOENT;
    fcntl(fd, F_SETSIG, SIGURG); /* for whoever opens it in this instant; SIGIO would end us */
    int rc = fcntl(fd, F_SETLEASE, F_RDLCK);
    int errnum = rc < 0 ? errno : 0;
    close(fd);
    if (rc == 0)
        return false;
    /* Without leases: while there is a process of that number. */
    return errnum == EAGAIN || kill(pid, 0) == 0 || errno == EPERM;
}

/* Look at every file in an open folder. False if something in it is not of a run. */
static bool look_into(DIR *dir, struct fm_leftover *l)
{
    rewinddir(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat st;
        long pid;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (!is_known(entry->d_name))
            return false;
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        l->bytes += (uint64_t)st.st_blocks * 512;
        l->since = st.st_mtime > l->since ? st.st_mtime : l->since;
        if (S_ISREG(st.st_mode) && is_of_process(entry->d_name, &pid) &&
            is_written(dirfd(dir), entry->d_name, (pid_t)pid))
            l->running = true;
    }
    return true;
}

static bool has_right_name(const char *path)
{
    const char *base = fm_path_base(path);
    return begins_with(base, FM_FOLDER_PREFIX) &&
           strlen(base) == strlen(FM_FOLDER_PREFIX) + FM_FOLDER_LETTERS;
}

/* The folder opened and, if nobody else has it, locked; NULL if it is not a run's. */
static DIR *open_folder(const char *path, struct fm_leftover *l)
{
    struct stat st;
    int fd =
        has_right_name(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (fd < 0)
        return NULL;
    DIR *dir = NULL;
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 0077) == 0)
        dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return NULL;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        l->running = true; /* or nobody can tell */
    l->since = st.st_mtime > l->since ? st.st_mtime : l->since;
    if (look_into(dir, l))
        return dir;
    closedir(dir);
    return NULL;
}

static char *read_more(DIR *dir)
{
    char target[4096];
    ssize_t len = readlinkat(dirfd(dir), FM_FOLDER_MORE_LINK, target, sizeof target - 1);
    return len > 0 && target[0] == '/' ? fm_strndup(target, (size_t)len) : NULL;
}

bool fm_leftover_at(const char *path, struct fm_leftover *l)
{
    *l = (struct fm_leftover){ 0 };
    DIR *dir = open_folder(path, l);
    if (!dir)
        return false;
    l->path = fm_strdup(path);
    l->more = read_more(dir);
    DIR *second = l->more ? open_folder(l->more, l) : NULL;
    if (second) {
        closedir(second);
    } else {
        free(l->more);
        l->more = NULL;
    }
    closedir(dir);
    return true;
}

void fm_leftover_release(struct fm_leftover *l)
{
    free(l->path);
    free(l->more);
    *l = (struct fm_leftover){ 0 };
}

/* The lock is held meanwhile: a launcher that has just made the folder takes another one. */
static bool remove_one(const char *path)
{
    struct fm_leftover now = { 0 };
    DIR *dir = open_folder(path, &now);
    if (!dir)
        return false;
    bool removed = false;
    if (!now.running) {
        rewinddir(dir);
        for (struct dirent *entry; (entry = readdir(dir));)
            if (is_known(entry->d_name))
                unlinkat(dirfd(dir), entry->d_name, 0);
        removed = rmdir(path) == 0;
    }
    closedir(dir);
    return removed;
}

bool fm_leftover_remove(const struct fm_leftover *l)
{
    if (l->more && !remove_one(l->more))
        return false;
    return remove_one(l->path);
}

static void find_in(struct fm_leftovers *all, const char *named)
{
    fm_autofree char *parent = named && *named ? realpath(named, NULL) : NULL;
    DIR *dir = parent ? opendir(parent) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        fm_autofree char *path = fm_path_join(parent, entry->d_name);
        struct fm_leftover l;
        if (has_right_name(path) && fm_leftover_at(path, &l))
            fm_vec_push(&all->list, l);
    }
    if (dir)
        closedir(dir);
}

/* Is this one the second folder of another, or the same one reached twice? */
static bool is_listed(const struct fm_leftovers *all, size_t at)
{
    const char *path = all->list.data[at].path;
    for (size_t i = 0; i < all->list.len; i++) {
        const struct fm_leftover *l = &all->list.data[i];
        if ((l->more && strcmp(l->more, path) == 0) || (i < at && strcmp(l->path, path) == 0))
            return true;
    }
    return false;
}

void fm_leftovers_find(struct fm_leftovers *all)
{
    *all = (struct fm_leftovers){ 0 };
    const char *asked = getenv("FATHOM_TMPDIR"), *colon = asked ? strchr(asked, ':') : NULL;
    if (asked && *asked) {
        fm_autofree char *first =
            fm_strndup(asked, colon ? (size_t)(colon - asked) : strlen(asked));
        find_in(all, first);
        find_in(all, colon ? colon + 1 : NULL);
    } else {
        find_in(all, FM_FOLDER_IN_MEMORY);
        find_in(all, getenv("TMPDIR"));
        find_in(all, "/tmp");
        find_in(all, "/var/tmp");
    }
    for (size_t i = all->list.len; i > 0; i--) {
        if (!is_listed(all, i - 1))
            continue;
        fm_leftover_release(&all->list.data[i - 1]);
        memmove(&all->list.data[i - 1], &all->list.data[i],
                (all->list.len - i) * sizeof *all->list.data);
        all->list.len--;
    }
}

void fm_leftovers_release(struct fm_leftovers *all)
{
    for (size_t i = 0; i < all->list.len; i++)
        fm_leftover_release(&all->list.data[i]);
    fm_vec_release(&all->list);
}

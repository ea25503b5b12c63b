/* Files that appear whole or not at all; see output.h. */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"

#define LINKS_MAX 40 /* one to the other; the kernel goes no further */

/* An output that has no name yet. */
struct output {
    const char *name; /* as it was asked for */
    char *path;       /* where it goes */
    char *temp;       /* its name beside the output, NULL if it has none */
    int fd;
    struct fm_memory_undo undo;
};

static bool is_stdout(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* How a sentence calls it. */
static const char *name_of(const char *path)
{
    return is_stdout(path) ? "the standard output" : path;
}

static int cannot_write(const char *path, struct fm_error *err)
{
    return fm_error_set_errno(err, FM_CANNOT_WRITE, errno, "writing %s", name_of(path));
}

static int refuse_existing(const char *path, struct fm_error *err)
{
    return fm_error_set(err, FM_EXISTS, "%s exists and is not overwritten without --force", path);
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return fm_strdup(".");
    return fm_strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Is there a symbolic link whose target is missing? */
static bool is_dangling(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && stat(path, &st) < 0;
}

/* Where the symbolic link `path` leads; NULL if it is none. malloc'ed. */
static char *follow(const char *path)
{
    char target[PATH_MAX];
    ssize_t len = readlink(path, target, sizeof target);
    if (len < 0 || len == sizeof target)
        return NULL;
    if (target[0] == '/')
        return fm_strndup(target, (size_t)len);
    struct fm_buffer joined = FM_BUFFER_INIT;
    const char *slash = strrchr(path, '/');
    fm_buffer_add(&joined, path, slash ? (size_t)(slash + 1 - path) : 0);
    fm_buffer_add(&joined, target, (size_t)len);
    return fm_buffer_detach(&joined);
}

/* Where a file named `path` goes: a link stays a link, also one whose target is missing, and the file
 * is what it leads to. NULL with a sentence for links that lead in a circle; malloc'ed. */
static char *place_of(const char *path, struct fm_error *err)
{
    char *place = realpath(path, NULL);
    if (place)
        return place;
    place = fm_strdup(path);
    for (int i = 0; i < LINKS_MAX; i++) {
        char *next = follow(place);
        if (!next)
            return place;
        free(place);
        place = next;
    }
    free(place);
    errno = ELOOP;
    cannot_write(path, err);
    return NULL;
}

static int no_folder(const struct output *o, const char *folder, struct fm_error *err)
{
    if (strcmp(o->name, o->path) == 0)
        return fm_error_set(err, FM_CANNOT_WRITE, "writing %s: the folder %s does not exist",
                            o->name, folder);
    return fm_error_set(err, FM_CANNOT_WRITE,
                        "writing %s, which is a link to %s: that folder does not exist", o->name,
                        o->path);
}

static void remove_temp(void *data)
{
    const struct output *o = data;
    if (o->temp)
        unlink(o->temp);
}

static int output_open(struct output *o, const char *name, struct fm_error *err)
{
    *o = (struct output){ .name = name, .fd = -1, .undo = { remove_temp, o, NULL } };
    fm_memory_undo_add(&o->undo);
    o->path = place_of(name, err);
    if (!o->path)
        return err->status;
    fm_autofree char *folder = folder_of(o->path);
    o->fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, FM_OUTPUT_MODE);
    if (o->fd >= 0)
        return 0;
    if (errno == ENOENT || errno == ENOTDIR)
        return no_folder(o, folder, err);
    struct fm_buffer temp = FM_BUFFER_INIT;
    fm_buffer_addf(&temp, "%s.XXXXXX", o->path);
    o->temp = fm_buffer_detach(&temp);
    o->fd = mkostemp(o->temp, O_CLOEXEC);
    if (o->fd < 0) {
        cannot_write(name, err);
        free(o->temp);
        o->temp = NULL;
        return err->status;
    }
    return 0; /* mkostemp made it the user's alone */
}

static void output_drop(struct output *o)
{
    fm_memory_undo_remove(&o->undo);
    remove_temp(o);
    free(o->temp);
    free(o->path);
    if (o->fd >= 0)
        close(o->fd);
}

/* Some file systems (NFS) take bytes first and refuse them when a descriptor is closed: one of ours
 * is, while the old file is still there. */
static int settle(int fd)
{
    int twin = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return twin < 0 ? 0 : close(twin);
}

/* A file that is replaced was given its owner and permissions on purpose, or by an older Fathom. */
static void keep_mode(const struct output *o)
{
    struct stat st;
    if (stat(o->path, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    int ignored =
        fchown(o->fd, st.st_uid, st.st_gid); /* only root may: then it is ours from now on */
    (void)ignored;
    fchmod(o->fd, st.st_mode & 0777);
}

/* Give the nameless file the name `path`; EEXIST if it is taken. */
static int link_fd(int fd, const char *path)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

static int publish_new(struct output *o)
{
    if (!o->temp)
        return link_fd(o->fd, o->path);
    if (renameat2(AT_FDCWD, o->temp, AT_FDCWD, o->path, RENAME_NOREPLACE) == 0) {
        free(o->temp);
        o->temp = NULL;
        return 0;
    }
    return errno == EINVAL || errno == ENOSYS ? link(o->temp, o->path) : -1;
}

static int publish_over(struct output *o)
{
    keep_mode(o);
    for (int i = 0; !o->temp; i++) {
        struct fm_buffer name = FM_BUFFER_INIT;
        fm_buffer_addf(&name, "%s.%d-%d", o->path, (int)getpid(), i);
        if (link_fd(o->fd, name.data) == 0)
            o->temp = fm_buffer_detach(&name);
        fm_buffer_release(&name);
        if (!o->temp && (errno != EEXIST || i > 100))
            return -1;
    }
    if (rename(o->temp, o->path) < 0)
        return -1;
    free(o->temp);
    o->temp = NULL;
    return 0;
}

static void do_nothing(int signal_number)
{
    (void)signal_number;
}

/* Who typed `sudo fathom …`: the next command, without it, is to open the recording. */
static struct {
    bool known;
    uid_t uid;
    gid_t gid;
} typist;

static bool read_id(const char *variable, unsigned *id)
{
    const char *text = getenv(variable);
    char end;
    return text && sscanf(text, "%u%c", id, &end) == 1;
}

void fm_output_give(int fd)
{
    int ignored = typist.known ? fchown(fd, typist.uid, typist.gid)
                               : 0; /* a file system that knows no owners */
    (void)ignored;
}

void fm_output_prepare(void)
{
    unsigned uid, gid;
    if (geteuid() == 0 && read_id("SUDO_UID", &uid) && read_id("SUDO_GID", &gid)) {
        typist.uid = uid;
        typist.gid = gid;
        typist.known = true;
    }
    /* Not ignored but handled: exec gives back the default to whatever we start. */
    struct sigaction found, handled = { .sa_handler = do_nothing, .sa_flags = SA_RESTART };
    if (sigaction(SIGXFSZ, NULL, &found) == 0 && found.sa_handler == SIG_DFL)
        sigaction(SIGXFSZ, &handled, NULL);
}

int fm_output_put(int fd, const void *bytes, size_t len, struct fm_error *err)
{
    const char *at = bytes;
    while (len) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) /* a device that takes nothing is full */
            return fm_error_set(err, FM_CANNOT_WRITE, "%s", strerror(n < 0 ? errno : ENOSPC));
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

/* A terminal, a pipe, /dev/null: nothing to keep whole. */
static int write_device(const char *path, fm_output_writer *write, void *context,
                        struct fm_error *err)
{
    int fd = is_stdout(path) ? dup(1) : open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return cannot_write(path, err);
    int status = write(context, fd, err);
    if (status < 0)
        fm_error_context(err, "writing %s", name_of(path));
    if (close(fd) < 0 && status == 0)
        status = cannot_write(path, err);
    return status;
}

static int write_file(const char *path, bool overwrite, fm_output_writer *write, void *context,
                      struct fm_error *err)
{
    struct output o;
    int status = output_open(&o, path, err);
    if (status < 0) {
        output_drop(&o);
        return status;
    }
    fm_output_give(o.fd);
    status = write(context, o.fd, err);
    if (status < 0)
        fm_error_context(err, "writing %s", path);
    else if (settle(o.fd) < 0)
        status = cannot_write(path, err);
    else if ((overwrite ? publish_over(&o) : publish_new(&o)) < 0)
        status = errno == EEXIST ? refuse_existing(path, err) : cannot_write(path, err);
    output_drop(&o);
    return status;
}

static bool is_device(const char *path)
{
    struct stat st;
    return is_stdout(path) ||
           (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

int fm_output_check(const char *path, bool overwrite, struct fm_error *err)
{
    struct stat st;
    if (!is_stdout(path) && !overwrite && is_dangling(path))
        return refuse_existing(path, err);
    if (is_stdout(path) || stat(path, &st) < 0)
        return 0;
    if (S_ISDIR(st.st_mode))
        return fm_error_set(err, FM_CANNOT_WRITE, "writing %s: it is a folder", path);
    return S_ISREG(st.st_mode) && !overwrite ? refuse_existing(path, err) : 0;
}

int fm_output_try(const char *path, struct fm_error *err)
{
    struct output o;
    int status = output_open(&o, path, err);
    output_drop(&o);
    return status;
}

int fm_output_write(const char *path, bool overwrite, fm_output_writer *write, void *context,
                    struct fm_error *err)
{
    struct fm_error own = FM_ERROR_INIT;
    err = err ? err : &own;
    if (fm_output_check(path, overwrite, err) < 0)
        return err->status;
    return is_device(path) ? write_device(path, write, context, err)
                           : write_file(path, overwrite, write, context, err);
}

struct output_piece {
    const void *bytes;
    size_t len;
};

static int write_piece(void *context, int fd, struct fm_error *err)
{
    const struct output_piece *piece = context;
    return fm_output_put(fd, piece->bytes, piece->len, err);
}

int fm_output_write_bytes(const char *path, bool overwrite, const void *bytes, size_t len,
                          struct fm_error *err)
{
    struct output_piece piece = { bytes, len };
    return fm_output_write(path, overwrite, write_piece, &piece, err);
}

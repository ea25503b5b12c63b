/*
 * The list of foreign formats, opening a recording of any kind, and writing one so that the file
 * appears whole or not at all; see format.h.
 *
 * Writing. The bytes go to a file without a name in the folder of the output (O_TMPFILE), which
 * gets its name when it is complete: whatever ends the command before that leaves nothing behind.
 * File systems without such files get a temporary name beside the output instead. An existing file
 * is replaced by rename, so that it is there, old or new, at every moment. A device or a pipe is
 * written to directly.
 */
#include "formats/format.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "model/file.h"

static const struct fm_format *const formats[] = {
    &fm_format_pstats,
    &fm_format_lprof,
    &fm_format_callgrind,
    &fm_format_speedscope,
    &fm_format_pprof,
    &fm_format_collapsed, /* the last: any text whose lines end in numbers */
    NULL,
};

const struct fm_format *const *fm_formats_all(void)
{
    return formats;
}

const struct fm_format *fm_format_named(const char *name)
{
    for (size_t i = 0; formats[i]; i++) {
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    }
    return NULL;
}

const struct fm_format *fm_format_of_path(const char *path)
{
    size_t len = strlen(path);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; formats[i]; i++) {
        for (const char *const *s = formats[i]->suffixes; *s; s++) {
            size_t n = strlen(*s);
            if (len > n && strcmp(path + len - n, *s) == 0)
                return formats[i];
        }
    }
    for (size_t i = 0; formats[i]; i++) {
        const char *prefix = formats[i]->prefix;
        if (prefix && strncmp(name, prefix, strlen(prefix)) == 0)
            return formats[i];
    }
    return NULL;
}

static int read_whole(const char *path, struct fm_buffer *bytes, struct fm_error *err)
{
    struct stat st = { 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return fm_error_set(err, FM_NOT_FOUND, "%s does not exist", path);
    if (fd < 0)
        return fm_error_set_errno(err, FM_CANNOT_READ, errno, "reading %s", path);
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        return fm_error_set(err, FM_CANNOT_READ, "%s is a folder, not a recording", path);
    }
    if (st.st_size > 0)
        fm_buffer_reserve(bytes, (size_t)st.st_size + 1); /* one more, to meet the end */
    for (;;) {
        if (bytes->cap - bytes->len < 2)
            fm_buffer_reserve(bytes, 65536);
        ssize_t n = read(fd, bytes->data + bytes->len, bytes->cap - bytes->len - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            fm_error_set_errno(err, FM_CANNOT_READ, errno, "reading %s", path);
            close(fd);
            return err->status;
        }
        if (n == 0)
            break;
        bytes->len += (size_t)n;
    }
    close(fd);
    return 0;
}

static int refuse(const char *path, struct fm_error *err)
{
    fm_autobuffer names = FM_BUFFER_INIT;
    for (size_t i = 0; formats[i]; i++) {
        if (formats[i]->recognise)
            fm_buffer_addf(&names, ", %s", formats[i]->name);
    }
    return fm_error_set(err, FM_NOT_RECORDING, "%s is in no format that Fathom reads (.fathom%s)",
                        path, fm_buffer_text(&names));
}

struct fm_profile *fm_profile_open(const char *path, struct fm_error *err)
{
    fm_autobuffer bytes = FM_BUFFER_INIT;
    struct fm_error own = FM_ERROR_INIT;
    err = err ? err : &own;
    if (read_whole(path, &bytes, err) < 0)
        return NULL;
    if (fm_file_recognise(bytes.data, bytes.len))
        return fm_file_load(bytes.data, bytes.len, path, err);
    for (size_t i = 0; formats[i]; i++) {
        if (formats[i]->recognise && formats[i]->recognise(bytes.data, bytes.len))
            return formats[i]->load(bytes.data, bytes.len, path, err);
    }
    refuse(path, err);
    return NULL;
}

/* An output that has no name yet. */
struct output {
    const char *path; /* where it goes */
    char *temp;       /* its name beside the output, NULL if it has none */
    int fd;
};

static int cannot_write(const char *path, struct fm_error *err)
{
    return fm_error_set_errno(err, FM_CANNOT_WRITE, errno, "writing %s", path);
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return fm_strdup(".");
    return fm_strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

static int output_open(struct output *o, const char *path, struct fm_error *err)
{
    fm_autofree char *folder = folder_of(path);
    *o = (struct output){ .path = path };
    o->fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (o->fd >= 0)
        return 0;
    if (errno == ENOENT || errno == ENOTDIR)
        return fm_error_set(err, FM_CANNOT_WRITE, "writing %s: the folder %s does not exist", path,
                            folder);
    struct fm_buffer name = FM_BUFFER_INIT;
    fm_buffer_addf(&name, "%s.XXXXXX", path);
    o->temp = fm_buffer_detach(&name);
    o->fd = mkostemp(o->temp, O_CLOEXEC);
    if (o->fd < 0) {
        cannot_write(path, err);
        free(o->temp);
        o->temp = NULL;
        return err->status;
    }
    mode_t mask = umask(0);
    umask(mask);
    fchmod(o->fd, 0666 & ~mask);
    return 0;
}

static void output_drop(struct output *o)
{
    if (o->temp)
        unlink(o->temp);
    free(o->temp);
    if (o->fd >= 0)
        close(o->fd);
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

static int write_bytes(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

static int write_profile(const struct fm_profile *p, int fd, const char *path,
                         const struct fm_format *format, struct fm_error *err)
{
    if (!format)
        return fm_file_save(p, fd, err) < 0 ? fm_error_context(err, "writing %s", path) : 0;
    fm_autobuffer bytes = FM_BUFFER_INIT;
    if (format->save(p, &bytes, err) < 0)
        return fm_error_context(err, "writing %s", path);
    return write_bytes(fd, bytes.data, bytes.len) < 0 ? cannot_write(path, err) : 0;
}

/* A terminal, a pipe, /dev/null: nothing to keep whole. */
static int write_device(const struct fm_profile *p, const char *path,
                        const struct fm_format *format, struct fm_error *err)
{
    int fd = strcmp(path, "-") == 0 ? dup(1) : open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return cannot_write(path, err);
    int status = write_profile(p, fd, path, format, err);
    if (close(fd) < 0 && status == 0)
        status = cannot_write(path, err);
    return status;
}

int fm_profile_write(const struct fm_profile *p, const char *path, const struct fm_format *format,
                     bool overwrite, struct fm_error *err)
{
    struct stat st;
    struct output o;
    struct fm_error own = FM_ERROR_INIT;
    err = err ? err : &own;
    if (format && !format->save)
        return fm_error_set(err, FM_USAGE, "Fathom does not write %s", format->name);
    bool exists = strcmp(path, "-") != 0 && stat(path, &st) == 0;
    if (strcmp(path, "-") == 0 || (exists && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
        return write_device(p, path, format, err);
    if (exists && S_ISDIR(st.st_mode))
        return fm_error_set(err, FM_CANNOT_WRITE, "writing %s: it is a folder", path);
    if (exists && !overwrite)
        return fm_error_set(err, FM_EXISTS, "%s exists and is not overwritten without --force",
                            path);
    fm_autofree char *real = exists ? realpath(path, NULL) : NULL; /* keep a link a link */
    if (output_open(&o, real ? real : path, err) < 0)
        return err->status;
    int status = write_profile(p, o.fd, path, format, err);
    if (status == 0 && (overwrite ? publish_over(&o) : publish_new(&o)) < 0) {
        status = errno == EEXIST ? fm_error_set(err, FM_EXISTS,
                                                "%s exists and is not overwritten "
                                                "without --force",
                                                path)
                                 : cannot_write(path, err);
    }
    output_drop(&o);
    return status;
}

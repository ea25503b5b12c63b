/*
 * The list of foreign formats, opening a recording of any kind, and writing one (whole or not at
 * all: base/output.h); see format.h.
 */
#include "record/formats/format.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/output.h"
#include "record/capture/format.h"
#include "record/model/file/file.h"

static const struct fm_format *const formats[] = {
    &fm_format_pstats,
    &fm_format_lprof,
    &fm_format_callgrind,
    &fm_format_speedscope,
    &fm_format_firefox,
    &fm_format_chrome,
    &fm_format_perfetto,
    &fm_format_pprof,
    &fm_format_mprofile,
    &fm_format_memray,
    &fm_format_memray_bin,
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

/* The file, and its size if it has one: 0 for a pipe or a device. */
static int open_input(const char *path, uint64_t *ret_len, struct fm_error *err)
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
    *ret_len = S_ISREG(st.st_mode) && st.st_size > 0 ? (uint64_t)st.st_size : 0;
    return fd;
}

static int read_whole(int fd, uint64_t len, const char *path, struct fm_buffer *bytes,
                      struct fm_error *err)
{
    fm_buffer_reserve(bytes, (size_t)len + 1); /* one more, to meet the end */
    for (;;) {
        if (bytes->cap - bytes->len < 2)
            fm_buffer_reserve(bytes, 65536);
        ssize_t n = read(fd, bytes->data + bytes->len, bytes->cap - bytes->len - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fm_error_set_errno(err, FM_CANNOT_READ, errno, "reading %s", path);
        if (n == 0)
            return 0;
        bytes->len += (size_t)n;
    }
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

static struct fm_profile *load_bytes(const struct fm_buffer *bytes, const char *path,
                                     struct fm_error *err)
{
    if (fm_file_recognise(bytes->data, bytes->len))
        return fm_file_load(bytes->data, bytes->len, path, err);
    for (size_t i = 0; formats[i]; i++) {
        if (formats[i]->recognise && formats[i]->recognise(bytes->data, bytes->len))
            return formats[i]->load(bytes->data, bytes->len, path, err);
    }
    refuse(path, err);
    return NULL;
}

/* The format of a file that it reads piece by piece; NULL: it has none. */
static const struct fm_format *find_streaming(const void *bytes, size_t len)
{
    for (size_t i = 0; formats[i]; i++)
        if (formats[i]->load_fd && formats[i]->recognise(bytes, len))
            return formats[i];
    return NULL;
}

/* Our own files are read as far as they are asked for; others, and pipes, as a whole. */
struct fm_profile *fm_profile_open_parts(const char *path, unsigned parts, struct fm_error *err)
{
    fm_autobuffer bytes = FM_BUFFER_INIT;
    struct fm_error own = FM_ERROR_INIT;
    struct fm_profile *p = NULL;
    char magic[64];
    const struct fm_format *streaming = NULL;
    uint64_t len = 0;
    err = err ? err : &own;
    int fd = open_input(path, &len, err);
    if (fd < 0)
        return NULL;
    ssize_t look = len ? pread(fd, magic, sizeof magic, 0) : 0;
    if (look >= FM_FILE_MAGIC_BYTES && fm_file_recognise(magic, (size_t)look))
        p = fm_file_load_fd(fd, len, path, parts, err);
    else if (look > 0 && (streaming = find_streaming(magic, (size_t)look)))
        p = streaming->load_fd(fd, len, path, err);
    else if (read_whole(fd, len, path, &bytes, err) == 0)
        p = load_bytes(&bytes, path, err);
    close(fd);
    return p;
}

struct fm_profile *fm_profile_open(const char *path, struct fm_error *err)
{
    return fm_profile_open_parts(path, FM_FILE_ALL, err);
}

struct format_work {
    const struct fm_profile *p;
    const struct fm_format *format; /* NULL: .fathom */
    const struct fm_save_choice *choice;
};

static int write_profile(void *context, int fd, struct fm_error *err)
{
    const struct format_work *work = context;
    if (!work->format)
        return fm_file_save(work->p, fd, err);
    if (work->choice)
        return work->format->save_timeline(work->p, work->choice, fd, err);
    fm_autobuffer bytes = FM_BUFFER_INIT;
    if (work->format->save(work->p, &bytes, err) < 0)
        return err->status;
    return fm_output_put(fd, bytes.data, bytes.len, err);
}

int fm_profile_write(const struct fm_profile *p, const char *path, const struct fm_format *format,
                     bool overwrite, struct fm_error *err)
{
    static const struct fm_save_choice all;
    struct format_work work = { .p = p, .format = format };
    if (format && !format->save && format->save_timeline)
        return fm_profile_write_timeline(p, path, format, &all, overwrite, err);
    if (format && !format->save)
        return fm_error_set(err, FM_USAGE, "Fathom does not write %s", format->name);
    return fm_output_write(path, overwrite, write_profile, &work, err);
}

int fm_profile_write_timeline(const struct fm_profile *p, const char *path,
                              const struct fm_format *format, const struct fm_save_choice *choice,
                              bool overwrite, struct fm_error *err)
{
    struct format_work work = { .p = p, .format = format, .choice = choice };
    return fm_output_write(path, overwrite, write_profile, &work, err);
}

/* What a viewer shows; see contents.h. */
#include "show/view/contents.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "record/model/file/file.h"

static int map(int fd, struct fm_content *content, struct fm_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return fm_error_set_errno(err, FM_SYSTEM, errno, "reading back the recording");
    content->len = (size_t)st.st_size;
    void *bytes = mmap(NULL, content->len, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return fm_error_set_errno(err, FM_SYSTEM, errno, "reading back the recording");
    content->bytes = bytes;
    return 0;
}

static int make(struct fm_error *err)
{
    int fd = memfd_create("fathom-view", MFD_CLOEXEC);
    if (fd < 0)
        fm_error_set_errno(err, FM_SYSTEM, errno, "getting memory for the recording");
    return fd;
}

/* Take over what was written to `fd`, which is closed. */
static int add(struct fm_contents *c, const char *name, int fd, uint64_t left_out,
               struct fm_error *err)
{
    struct fm_content content = { .left_out = left_out };
    int status = map(fd, &content, err);
    close(fd);
    if (status < 0)
        return status;
    content.name = fm_strdup(name);
    fm_vec_push(&c->files, content);
    return 0;
}

bool fm_contents_add_file(struct fm_contents *c, const char *name, const char *path)
{
    struct stat st;
    int from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode)) {
        if (from >= 0)
            close(from);
        return false;
    }
    int to = make(NULL);
    uint64_t left_out = 0;
    bool whole =
        to >= 0 && fm_file_copy_plain(from, (uint64_t)st.st_size, to, c->most_events, &left_out);
    close(from);
    if (!whole && to >= 0)
        close(to);
    return whole && add(c, name, to, left_out, NULL) == 0;
}

int fm_contents_add(struct fm_contents *c, const char *name, const struct fm_profile *p,
                    struct fm_error *err)
{
    int fd = make(err);
    if (fd < 0)
        return FM_SYSTEM;
    int status = fm_file_save_plain(p, fd, err);
    if (status < 0) {
        close(fd);
        return status;
    }
    return add(c, name, fd, 0, err);
}

void fm_contents_release(struct fm_contents *c)
{
    for (size_t i = 0; i < c->files.len; i++) {
        free(c->files.data[i].name);
        munmap((void *)(uintptr_t)c->files.data[i].bytes, c->files.data[i].len);
    }
    fm_vec_release(&c->files);
}

/* What a viewer shows; see contents.h. */
#include "show/view/contents.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "record/model/file.h"

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

int fm_contents_add(struct fm_contents *c, const char *name, const struct fm_profile *p,
                    struct fm_error *err)
{
    struct fm_content content = { 0 };
    int fd = memfd_create("fathom-view", MFD_CLOEXEC);
    if (fd < 0)
        return fm_error_set_errno(err, FM_SYSTEM, errno, "getting memory for the recording");
    int status = fm_file_save_plain(p, fd, err);
    if (status == 0)
        status = map(fd, &content, err);
    close(fd);
    if (status < 0)
        return status;
    content.name = fm_strdup(name);
    fm_vec_push(&c->files, content);
    return 0;
}

void fm_contents_release(struct fm_contents *c)
{
    for (size_t i = 0; i < c->files.len; i++) {
        free(c->files.data[i].name);
        munmap((void *)(uintptr_t)c->files.data[i].bytes, c->files.data[i].len);
    }
    fm_vec_release(&c->files);
}

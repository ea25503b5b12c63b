/* What a viewer shows; see contents.h. */
#include "show/view/contents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "record/model/file/file.h"
#include "record/model/trace/lanes/timeline.h"

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
static int add(struct fm_contents *c, const char *name, int fd, struct fm_content content,
               struct fm_error *err)
{
    int status = map(fd, &content, err);
    close(fd);
    if (status < 0)
        return status;
    content.name = fm_strdup(name);
    fm_vec_push(&c->files, content);
    return 0;
}

/* ---- single calls that stay ---- */

struct kept_places {
    FM_VEC(uint64_t) at; /* ascending */
};

static void keep_place(void *context, uint64_t at, uint32_t bytes)
{
    struct kept_places *kept = context;
    (void)bytes;
    fm_vec_push(&kept->at, at);
}

static int compare_places(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static bool is_kept(void *context, uint64_t at)
{
    const struct kept_places *kept = context;
    return kept->at.len && bsearch(&at, kept->at.data, kept->at.len, sizeof at, compare_places);
}

/* Which blocks have single calls of the time that was asked for; false: there is no such time. */
static bool find_kept(const struct fm_contents *c, int fd, uint64_t len, struct fm_content *content,
                      struct kept_places *kept)
{
    struct fm_profile *p = fm_file_load_fd(fd, len, "", 0, NULL);
    struct fm_timeline *t = p ? fm_timeline_open(p, NULL) : NULL;
    uint64_t end_ns = t ? fm_timeline_length_ns(t) : 0;
    content->from_ns = c->from_ns < end_ns ? c->from_ns : end_ns;
    content->to_ns = c->to_ns < end_ns ? c->to_ns : end_ns;
    bool exists = content->from_ns < content->to_ns;
    if (exists)
        fm_timeline_blocks_between(t, content->from_ns, content->to_ns, keep_place, kept);
    if (kept->at.len)
        qsort(kept->at.data, kept->at.len, sizeof *kept->at.data, compare_places);
    fm_timeline_free(t);
    fm_profile_free(p);
    return exists;
}

/* ---- files ---- */

static bool copy_file(struct fm_contents *c, int from, uint64_t len, int to,
                      struct fm_content *content)
{
    struct kept_places kept = { 0 };
    struct fm_plain_choice choice = { .context = &kept, .elsewhere = c->elsewhere };
    if (fm_file_events_bytes(from, len) > c->most_events || c->ranged)
        choice.keeps = is_kept;
    if (c->ranged)
        find_kept(c, from, len, content, &kept);
    bool whole = fm_file_copy_plain(from, len, to, &choice);
    content->left_out = choice.left_out;
    fm_vec_release(&kept.at);
    return whole;
}

bool fm_contents_add_file(struct fm_contents *c, const char *name, const char *path)
{
    struct stat st;
    struct fm_content content = { .file = -1 };
    int from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode)) {
        if (from >= 0)
            close(from);
        return false;
    }
    int to = make(NULL);
    bool whole = to >= 0 && copy_file(c, from, (uint64_t)st.st_size, to, &content);
    if (whole && c->elsewhere && content.left_out)
        content.file = from;
    else
        close(from);
    if (!whole && to >= 0)
        close(to);
    return whole && add(c, name, to, content, NULL) == 0;
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
    return add(c, name, fd, (struct fm_content){ .file = -1 }, err);
}

void fm_contents_release(struct fm_contents *c)
{
    for (size_t i = 0; i < c->files.len; i++) {
        free(c->files.data[i].name);
        if (c->files.data[i].file >= 0)
            close(c->files.data[i].file);
        munmap((void *)(uintptr_t)c->files.data[i].bytes, c->files.data[i].len);
    }
    fm_vec_release(&c->files);
}

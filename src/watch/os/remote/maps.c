/* The memory map of a process; see maps.h. */
#include "watch/os/remote/maps.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "watch/os/procfs.h"

#define TEXT_LIMIT_BYTES (256u << 20) /* vm.max_map_count is 65530 by default, 100 bytes a line */
#define DELETED          " (deleted)"

/* "\012" stands for a line feed in a path; nothing else is escaped. */
static char *path_of(const char *text, size_t len, bool *deleted)
{
    char *path = fm_malloc(len + 1);
    size_t out = 0;
    for (size_t i = 0; i < len;) {
        if (len - i >= 4 && memcmp(text + i, "\\012", 4) == 0) {
            path[out++] = '\n';
            i += 4;
        } else {
            path[out++] = text[i++];
        }
    }
    size_t mark = strlen(DELETED);
    *deleted = out > mark && memcmp(path + out - mark, DELETED, mark) == 0;
    if (*deleted)
        out -= mark;
    path[out] = '\0';
    return path;
}

/* A number with `end` behind it; moves on. (sscanf would measure the whole text for every line.) */
static bool number(const char **text, int base, char end, uint64_t *value)
{
    const char *from = *text;
    char *past;
    if (!isxdigit((unsigned char)*from))
        return false;
    errno = 0;
    *value = strtoull(from, &past, base);
    if (errno || *past != end)
        return false;
    *text = past + 1;
    return true;
}

/* The line is followed by a line feed or by the end of the text. */
static bool parse_line(const char *line, size_t len, struct fm_mapping *m)
{
    const char *at = line, *end = line + len;
    uint64_t major, minor;
    *m = (struct fm_mapping){ 0 };
    if (!number(&at, 16, '-', &m->start) || !number(&at, 16, ' ', &m->end) || m->start >= m->end)
        return false;
    if (end - at < 5 || at[4] != ' ')
        return false;
    m->readable = at[0] == 'r';
    m->writable = at[1] == 'w';
    m->executable = at[2] == 'x';
    m->shared = at[3] == 's';
    at += 5;
    if (!number(&at, 16, ' ', &m->offset) || !number(&at, 16, ':', &major) ||
        !number(&at, 16, ' ', &minor))
        return false;
    m->major = major;
    m->minor = minor;
    char *past;
    m->inode = strtoull(at, &past, 10);
    if (past == at || past > end)
        return false;
    while (past < end && *past == ' ')
        past++;
    m->path = path_of(past, end - past, &m->deleted);
    return true;
}

int fm_maps_parse(struct fm_maps *maps, const char *text, struct fm_error *err)
{
    fm_addr last = 0;
    for (size_t number = 1; *text; number++) {
        size_t len = strcspn(text, "\n");
        struct fm_mapping m;
        if (!parse_line(text, len, &m))
            return fm_error_set(err, FM_DAMAGED, "line %zu of the memory map makes no sense",
                                number);
        /* The kernel gives the file in several reads; what changed between them may come twice. */
        if (m.start >= last) {
            fm_vec_push(&maps->list, m);
            last = m.end;
        } else {
            free((char *)m.path);
        }
        text += len;
        if (*text == '\n')
            text++;
    }
    return 0;
}

int fm_maps_read(struct fm_maps *maps, pid_t pid, int *errnum, struct fm_error *err)
{
    *maps = (struct fm_maps){ 0 };
    fm_autobuffer text = FM_BUFFER_INIT;
    int failed = fm_procfs_read_of(pid, "maps", TEXT_LIMIT_BYTES, &text);
    if (errnum)
        *errnum = -failed;
    if (failed == -ENOENT || failed == -ESRCH)
        return fm_error_set(err, FM_NOT_FOUND, "there is no process %d", (int)pid);
    if (failed)
        return fm_error_set_errno(err, failed == -EFBIG ? FM_DAMAGED : FM_FORBIDDEN, -failed,
                                  "the memory map of process %d cannot be read", (int)pid);
    int status = fm_maps_parse(maps, fm_buffer_text(&text), err);
    if (status) {
        fm_maps_release(maps);
        return fm_error_context(err, "process %d", (int)pid);
    }
    return 0;
}

void fm_maps_add(struct fm_maps *maps, const struct fm_mapping *mapping)
{
    struct fm_mapping copy = *mapping;
    copy.path = fm_strdup(mapping->path ? mapping->path : "");
    fm_vec_push(&maps->list, copy);
}

void fm_maps_release(struct fm_maps *maps)
{
    for (size_t i = 0; i < maps->list.len; i++)
        free((char *)maps->list.data[i].path);
    fm_vec_release(&maps->list);
}

const struct fm_mapping *fm_maps_at(const struct fm_maps *maps, fm_addr at)
{
    size_t low = 0, high = maps->list.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct fm_mapping *m = &maps->list.data[middle];
        if (at < m->start)
            high = middle;
        else if (at >= m->end)
            low = middle + 1;
        else
            return m;
    }
    return NULL;
}

bool fm_mapping_same_file(const struct fm_mapping *a, const struct fm_mapping *b)
{
    return a->inode == b->inode && a->major == b->major && a->minor == b->minor &&
           strcmp(a->path, b->path) == 0;
}

/* The control group of a process, as far as memory goes; see cgroup.h. */
#include "watch/memory/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watch/os/procfs.h"

#define FILE_BYTES   4096               /* of a group's files */
#define MOUNTS_BYTES 1048576            /* of mountinfo */
#define NO_LIMIT     ((int64_t)1 << 62) /* the first version writes a number near 2^63 for none */

/* ---- where it is ---- */

/* The value of the first of "a,b,c" that equals `word`? */
static bool lists(const char *list, size_t len, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at < list + len;) {
        const char *comma = memchr(at, ',', (size_t)(list + len - at));
        size_t here = (size_t)((comma ? comma : list + len) - at);
        if (here == n && strncmp(at, word, n) == 0)
            return true;
        at += here + 1;
    }
    return false;
}

/* The path in the line "N:controllers:path" of the hierarchy, for free(); NULL if there is none. */
static char *path_in(const char *groups, bool first_version)
{
    for (const char *line = groups; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *list = strchr(line, ':');
        const char *path = list ? strchr(list + 1, ':') : NULL;
        const char *end = line + strcspn(line, "\n");
        if (!path || path >= end)
            continue;
        size_t len = (size_t)(path - list - 1);
        if (first_version ? lists(list + 1, len, "memory") : len == 0 && line[0] == '0')
            return fm_strndup(path + 1, (size_t)(end - path - 1));
    }
    return NULL;
}

/* A line of mountinfo: "id parent major:minor root mount options … - type source options". */
static bool parse_mount(const char *line, bool first_version, char *root, char *mount)
{
    char type[64], options[1024];
    const char *end = line + strcspn(line, "\n");
    const char *dash = strstr(line, " - ");
    if (!dash || dash > end || sscanf(line, "%*s %*s %*s %1023s %1023s", root, mount) != 2 ||
        sscanf(dash, " - %63s %*s %1023s", type, options) != 2)
        return false;
    if (first_version)
        return strcmp(type, "cgroup") == 0 && lists(options, strlen(options), "memory");
    return strcmp(type, "cgroup2") == 0;
}

bool fm_cgroup_find(const char *groups, const char *mounts, char **ret_mount, char **ret_path,
                    bool *ret_first_version)
{
    /* Where both are there, memory may be in either: the first version says so by name. */
    for (int first = 1; first >= 0; first--) {
        char root[1024], mount[1024];
        char *path = path_in(groups, first);
        for (const char *line = mounts; path && line && *line; line = strchr(line, '\n')) {
            line += *line == '\n';
            if (!parse_mount(line, first, root, mount))
                continue;
            /* What is mounted is the part of the hierarchy below `root`. */
            size_t skip = strcmp(root, "/") == 0 ? 0 : strlen(root);
            bool below = strncmp(path, root, skip) == 0;
            *ret_mount = fm_strdup(mount);
            *ret_path = fm_strdup(below ? path + skip : "");
            *ret_first_version = first;
            free(path);
            return true;
        }
        free(path);
    }
    return false;
}

/* ---- reading ---- */

static ssize_t read_at_start(int fd, char *text, size_t bytes)
{
    ssize_t n;
    do
        n = fd < 0 ? -1 : pread(fd, text, bytes - 1, 0);
    while (n < 0 && fd >= 0 && errno == EINTR);
    text[n > 0 ? n : 0] = '\0';
    return n;
}

static int64_t number_in(int fd)
{
    char text[64], *end;
    if (read_at_start(fd, text, sizeof text) <= 0)
        return -1;
    errno = 0;
    long long number = strtoll(text, &end, 10); /* "max" is none */
    return end == text || errno || number < 0 ? -1 : number;
}

/* The number behind "key " at the start of a line. */
static int64_t field_in(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            return strtoll(line + n, NULL, 10);
    }
    return -1;
}

static int open_in(const char *folder, const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return -1;
    return open(path, O_RDONLY | O_CLOEXEC);
}

void fm_cgroup_open_at(struct fm_cgroup *g, const char *mount, const char *path, bool first_version)
{
    char folder[PATH_MAX];
    *g =
        (struct fm_cgroup){ .usage = -1, .events = -1, .stat = -1, .first_version = first_version };
    size_t least = strlen(mount);
    if (snprintf(folder, sizeof folder, "%s%s", mount, path) >= (int)sizeof folder ||
        strstr(path, "/.."))
        return; /* a process of another name space may be outside of what we see */
    g->usage = open_in(folder, first_version ? "memory.usage_in_bytes" : "memory.current");
    g->stat = open_in(folder, "memory.stat");
    g->events = open_in(folder, first_version ? "memory.oom_control" : "memory.events");
    for (;;) {
        int fd = open_in(folder, first_version ? "memory.limit_in_bytes" : "memory.max");
        if (fd >= 0)
            fm_vec_push(&g->limits, fd);
        char *slash = strrchr(folder, '/');
        if (!slash || slash < folder + least)
            break;
        *slash = '\0';
    }
}

void fm_cgroup_open(struct fm_cgroup *g, pid_t pid)
{
    struct fm_buffer groups = FM_BUFFER_INIT, mounts = FM_BUFFER_INIT;
    char *mount = NULL, *path = NULL;
    bool first_version = false;
    *g = (struct fm_cgroup){ .usage = -1, .events = -1, .stat = -1 };
    if (fm_procfs_read_of(pid, "cgroup", FILE_BYTES, &groups) == 0 &&
        fm_procfs_read("/proc/self/mountinfo", MOUNTS_BYTES, &mounts) == 0 &&
        fm_cgroup_find(fm_buffer_text(&groups), fm_buffer_text(&mounts), &mount, &path,
                       &first_version))
        fm_cgroup_open_at(g, mount, strcmp(path, "/") == 0 ? "" : path, first_version);
    free(mount);
    free(path);
    fm_buffer_release(&groups);
    fm_buffer_release(&mounts);
}

void fm_cgroup_close(struct fm_cgroup *g)
{
    if (g->usage >= 0)
        close(g->usage);
    if (g->events >= 0)
        close(g->events);
    if (g->stat >= 0)
        close(g->stat);
    for (size_t i = 0; i < g->limits.len; i++)
        close(g->limits.data[i]);
    fm_vec_release(&g->limits);
    *g = (struct fm_cgroup){ .usage = -1, .events = -1, .stat = -1 };
}

int64_t fm_cgroup_usage(const struct fm_cgroup *g)
{
    return number_in(g->usage);
}

int64_t fm_cgroup_limit(const struct fm_cgroup *g)
{
    int64_t least = -1;
    for (size_t i = 0; i < g->limits.len; i++) {
        int64_t limit = number_in(g->limits.data[i]);
        if (limit >= 0 && limit < NO_LIMIT && (least < 0 || limit < least))
            least = limit;
    }
    return least;
}

int64_t fm_cgroup_kills(const struct fm_cgroup *g)
{
    char text[FILE_BYTES];
    return read_at_start(g->events, text, sizeof text) > 0 ? field_in(text, "oom_kill") : -1;
}

int64_t fm_cgroup_cache(const struct fm_cgroup *g)
{
    char text[FILE_BYTES];
    if (read_at_start(g->stat, text, sizeof text) <= 0)
        return -1;
    int64_t active = field_in(text, g->first_version ? "total_active_file" : "active_file");
    int64_t inactive = field_in(text, g->first_version ? "total_inactive_file" : "inactive_file");
    return active < 0 || inactive < 0 ? -1 : active + inactive;
}

int64_t fm_machine_kills(void)
{
    struct fm_buffer text = FM_BUFFER_INIT;
    int64_t kills = -1;
    if (fm_procfs_read("/proc/vmstat", 65536, &text) == 0)
        kills = field_in(fm_buffer_text(&text), "oom_kill");
    fm_buffer_release(&text);
    return kills;
}

/* Heap stores of fathom.memory(); see late.h. */
#include "target/library/late.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "record/model/live/live_heap.h"
#include "target/library/alive.h"

static int load_store(struct fm_profile *p, const char *path, struct fm_error *err)
{
    struct fm_live_ending ending = { .exit_status = -1 };
    fm_autobuffer store = FM_BUFFER_INIT;
    if (fm_alive_read(path, &store, err) < 0)
        return err->status;
    struct fm_heap_files files = { store.data, store.len, NULL, 0 };
    return fm_live_heap_load(p, &files, NULL, &ending, err);
}

static uint32_t link_of(struct fm_profile *p, const char *path)
{
    char text[4096];
    ssize_t len = readlink(path, text, sizeof text);
    return len > 0 ? fm_strings_add(p->strings, text, (size_t)len) : 0;
}

/* The words of the command line, a space between two. */
static uint32_t command_of_this(struct fm_profile *p)
{
    char text[4096];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    while (len > 0 && !text[len - 1])
        len--;
    for (ssize_t i = 0; i < len; i++)
        if (!text[i] || text[i] == '\n')
            text[i] = ' ';
    return len > 0 ? fm_strings_add(p->strings, text, (size_t)len) : 0;
}

/* What a run's agent would have said of the process; children take it over. */
static void describe(struct fm_profile *p, const char *version)
{
    struct fm_process *process = &p->processes.data[0];
    process->version = fm_profile_string(p, version);
    process->exe = link_of(p, "/proc/self/exe");
    process->cwd = link_of(p, "/proc/self/cwd");
    process->command = command_of_this(p);
}

/* Of the folder's files those of heaps: this process's first, which the others may stem from. */
static int is_store(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name), suffix = strlen(FM_HEAP_SUFFIX);
    return len > suffix && strcmp(entry->d_name + len - suffix, FM_HEAP_SUFFIX) == 0;
}

int fm_late_load(struct fm_profile *p, const char *folder, const char *version,
                 struct fm_error *err)
{
    DIR *dir = opendir(folder);
    fm_autobuffer path = FM_BUFFER_INIT;
    if (!dir)
        return fm_error_set_errno(err, FM_CANNOT_READ, errno, "%s", folder);
    int rc = 0;
    for (int others = 0; others < 2 && rc == 0; others++) {
        rewinddir(dir);
        for (struct dirent *entry; rc == 0 && (entry = readdir(dir));) {
            bool is_own = strtol(entry->d_name, NULL, 10) == getpid();
            if (!is_store(entry) || is_own == others)
                continue;
            fm_buffer_clear(&path);
            fm_buffer_addf(&path, "%s/%s", folder, entry->d_name);
            rc = load_store(p, path.data, err);
            if (rc < 0 && others)
                rc = 0; /* a child that is just beginning */
            else if (rc == 0 && is_own)
                describe(p, version);
        }
        if (!others && rc == 0 && !p->processes.len)
            rc = fm_error_set(err, FM_CANNOT_READ, "%s holds nothing of this process", folder);
    }
    closedir(dir);
    return rc;
}

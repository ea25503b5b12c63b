/* Finding the run that samples this process; see sampled_run.h. */
#include "target/agent/regions/sampled_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/run_config.h"

#define MOST_ANCESTORS   32
#define MOST_DESCRIPTORS 1000 /* of a launcher; it has few */

/* Up to `size` - 1 bytes of a file, terminated; false if there is none. */
static bool read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[len > 0 ? len : 0] = '\0';
    return len > 0;
}

/* The parent of a process; 0 if there is none, or it cannot be told. `*ret_launcher`: it is called "fathom". */
static int parent_of(int pid, bool *ret_launcher)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!read_file(path, text, sizeof text))
        return 0;
    const char *name = strchr(text, '('), *end = strrchr(text, ')');
    int parent = 0;
    if (!name || !end || sscanf(end, ") %*c %d", &parent) != 1)
        return 0;
    *ret_launcher =
        end - name == sizeof "(fathom" - 1 && memcmp(name, "(fathom", sizeof "(fathom" - 1) == 0;
    return parent;
}

/* Is this the folder of a run of ours that takes regions? Then it says how to begin. */
static bool read_folder(const char *folder, char *config, size_t size)
{
    char path[600];
    struct stat st;
    const char *name = strrchr(folder, '/');
    if (!name || strncmp(name + 1, "fathom-", strlen("fathom-")) != 0)
        return false;
    if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return false;
    int len = snprintf(path, sizeof path, "%s/%s", folder, FM_RUN_REGIONS_FILE);
    return len > 0 && (size_t)len < sizeof path && read_file(path, config, size);
}

static bool ask_launcher(int pid, char *config, size_t size)
{
    char path[64], target[512];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    bool found = false;
    int looked = 0;
    for (struct dirent *entry;
         dir && !found && looked++ < MOST_DESCRIPTORS && (entry = readdir(dir));) {
        ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        target[len > 0 ? len : 0] = '\0';
        found = len > 0 && read_folder(target, config, size);
    }
    if (dir)
        closedir(dir);
    return found;
}

bool fm_sampled_run_find(char *config, size_t size)
{
    bool launcher = false;
    int pid = getppid();
    for (int i = 0; i < MOST_ANCESTORS && pid > 0; i++) {
        int parent = parent_of(pid, &launcher);
        if (launcher && ask_launcher(pid, config, size))
            return true;
        pid = parent;
    }
    return false;
}

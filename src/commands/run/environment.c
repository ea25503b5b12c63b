/* The environment of the program; see run_environment.h. */
#include "commands/run/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/run_config.h"
#include "watch/memory/cgroup.h"
#include "watch/os/locate.h"
#include "watch/os/path.h"

#define MAX_RUN_BYTES 4096               /* what the preload library accepts */
#define SCARCE_BYTES  ((int64_t)4 << 30) /* a group that may have less is short of memory */

/* The library's path as LD_PRELOAD can name it: a list separated by colons and spaces. Others are
 * reached through a link in the run's folder. */
static char *preload_path(const char *agents, const char *name, const struct fm_folder *folder,
                          struct fm_error *err)
{
    char *library = fm_path_join(agents, name);
    if (!strpbrk(library, ": "))
        return library;
    char *link_path = fm_path_join(folder->path, name);
    if (strpbrk(link_path, ": "))
        fm_error_set(err, FM_SYSTEM, "%s cannot be preloaded: its path has a colon or a space",
                     library);
    else if (symlink(library, link_path) != 0)
        fm_error_set_errno(err, FM_SYSTEM, errno, "linking %s", link_path);
    free(library);
    if (!err->status)
        return link_path;
    free(link_path);
    return NULL;
}

/* Is `library` an element of the list? So it is when one run is started inside another. */
static bool is_listed(const char *list, const char *library)
{
    size_t len = strlen(library);
    for (const char *at = list; (at = strstr(at, library)); at++)
        if ((at == list || strchr(": ", at[-1])) && strchr(": ", at[len]))
            return true;
    return false;
}

/* The heap library stands in front of what the user preloads, so that it sees what that is asked for;
 * the other one behind it (target/preload/environment.c). */
static char *preload_entry(const char *library, const char *heap)
{
    struct fm_buffer buf = FM_BUFFER_INIT;
    const char *users = getenv("LD_PRELOAD");
    fm_buffer_add_text(&buf, "LD_PRELOAD=");
    if (heap && (!users || !is_listed(users, heap)))
        fm_buffer_addf(&buf, "%s%s", heap, users ? ":" : "");
    if (users)
        fm_buffer_add_text(&buf, users);
    if (!users || !is_listed(users, library))
        fm_buffer_addf(&buf, "%s%s", users || heap ? ":" : "", library);
    return fm_buffer_detach(&buf);
}

/* What processes keep in memory counts against the limit of their group, and so takes from the program;
 * what is kept on disk the system can write back. */
static bool is_memory_scarce(void)
{
    struct fm_cgroup group;
    fm_cgroup_open(&group, getpid());
    int64_t limit = fm_cgroup_limit(&group);
    fm_cgroup_close(&group);
    return limit >= 0 && limit < SCARCE_BYTES;
}

static char *run_entry(const char *library, const char *heap, const char *agents,
                       const struct fm_folder *folder, const struct fm_run_options *options)
{
    struct fm_buffer buf = FM_BUFFER_INIT;
    fm_buffer_addf(&buf, "FATHOM_RUN=folder=%s%cagents=%s%cpreload=%s%cc_calls=%d%ccalls=%d",
                   folder->path, FM_RUN_SEPARATOR, agents, FM_RUN_SEPARATOR, library,
                   FM_RUN_SEPARATOR, options->c_calls, FM_RUN_SEPARATOR, options->calls);
    if (options->lines)
        fm_buffer_addf(&buf, "%clines=%s%csplit=%d", FM_RUN_SEPARATOR, options->patterns,
                       FM_RUN_SEPARATOR, options->split_lines);
    fm_run_trace_config(&options->trace, &buf);
    if (options->redact)
        fm_buffer_addf(&buf, "%credact=1", FM_RUN_SEPARATOR);
    if (options->types)
        fm_buffer_addf(&buf, "%ctypes=1", FM_RUN_SEPARATOR);
    if (options->memory) {
        fm_buffer_addf(&buf, "%cheap=%s%cmemory=%s", FM_RUN_SEPARATOR, heap, FM_RUN_SEPARATOR,
                       options->memory);
        if (options->sample_bytes)
            fm_buffer_addf(&buf, ":%lld:%llu", (long long)options->sample_bytes,
                           (unsigned long long)options->seed);
    }
    if (folder->more)
        fm_buffer_addf(&buf, "%cmore=%s", FM_RUN_SEPARATOR, folder->more);
    if (folder->more && options->memory && is_memory_scarce())
        fm_buffer_addf(&buf, "%cscarce=1", FM_RUN_SEPARATOR);
    return fm_buffer_detach(&buf);
}

/* The entries of this process with `entry`, "NAME=…", in the place of NAME or at the end. */
static void put(char **entries, size_t *count, char *entry)
{
    size_t name_len = (size_t)(strchr(entry, '=') - entry) + 1;
    size_t at = 0;
    while (at < *count && strncmp(entries[at], entry, name_len) != 0)
        at++;
    entries[at] = entry;
    if (at == *count)
        (*count)++;
}

int fm_run_environment_init(struct fm_run_environment *environment, const char *agents,
                            const struct fm_folder *folder, const struct fm_run_options *options,
                            struct fm_error *err)
{
    *environment = (struct fm_run_environment){ 0 };
    fm_autofree char *library = preload_path(agents, FM_LOCATE_PRELOAD, folder, err);
    fm_autofree char *heap =
        library && options->memory ? preload_path(agents, FM_LOCATE_HEAP, folder, err) : NULL;
    if (err->status)
        return err->status;
    environment->preload = preload_entry(library, heap);
    environment->run = run_entry(library, heap, agents, folder, options);
    if (strlen(environment->run) >= MAX_RUN_BYTES)
        return fm_error_set(err, FM_SYSTEM, "the paths of the run's folders are too long");
    size_t count = 0;
    while (environ && environ[count])
        count++;
    environment->entries = fm_calloc(count + 3, sizeof *environment->entries);
    if (count)
        memcpy(environment->entries, environ, count * sizeof *environ);
    put(environment->entries, &count, environment->preload);
    put(environment->entries, &count, environment->run);
    return 0;
}

void fm_run_environment_release(struct fm_run_environment *environment)
{
    free(environment->entries);
    free(environment->preload);
    free(environment->run);
    *environment = (struct fm_run_environment){ 0 };
}

void fm_run_environment_leave_word(const struct fm_folder *folder,
                                   const struct fm_run_options *options)
{
    fm_autobuffer buf = FM_BUFFER_INIT;
    fm_autofree char *path = fm_path_join(folder->path, FM_RUN_REGIONS_FILE);
    fm_buffer_addf(&buf, "folder=%s%ccalls=0%cregions=1", folder->path, FM_RUN_SEPARATOR,
                   FM_RUN_SEPARATOR);
    if (folder->more)
        fm_buffer_addf(&buf, "%cmore=%s", FM_RUN_SEPARATOR, folder->more);
    if (options->redact)
        fm_buffer_addf(&buf, "%credact=1", FM_RUN_SEPARATOR);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (write(fd, buf.data, buf.len) != (ssize_t)buf.len)
        unlink(path);
    close(fd);
}

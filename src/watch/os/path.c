/* Files and programs by name; see path.h. */
#include "watch/os/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"

#define DEFAULT_PATH "/usr/local/bin:/bin:/usr/bin"

bool fm_path_is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

bool fm_path_is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool fm_path_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool fm_path_is_executable(const char *path)
{
    return fm_path_is_file(path) && access(path, X_OK) == 0;
}

const char *fm_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool fm_path_ends_with(const char *path, const char *suffix)
{
    size_t path_len = strlen(path), suffix_len = strlen(suffix);
    return path_len > suffix_len && strcmp(path + path_len - suffix_len, suffix) == 0;
}

bool fm_path_names_python(const char *path)
{
    const char *rest = fm_path_base(path);
    if (strncmp(rest, "python", strlen("python")) != 0)
        return false;
    rest += strlen("python");
    return rest[strspn(rest, "0123456789.td")] == '\0';
}

char *fm_path_join(const char *folder, const char *name)
{
    struct fm_buffer buf = FM_BUFFER_INIT;
    fm_buffer_add_text(&buf, folder);
    if (buf.len == 0 || buf.data[buf.len - 1] != '/')
        fm_buffer_add_char(&buf, '/');
    fm_buffer_add_text(&buf, name);
    return fm_buffer_detach(&buf);
}

char *fm_path_find_program(const char *name)
{
    const char *path = getenv("PATH");
    int why = ENOENT;
    for (const char *at = path ? path : DEFAULT_PATH; at;) {
        const char *end = strchrnul(at, ':');
        /* An empty component is the current folder. */
        fm_autofree char *folder = end == at ? fm_strdup(".") : fm_strndup(at, (size_t)(end - at));
        char *candidate = fm_path_join(folder, name);
        if (fm_path_is_executable(candidate))
            return candidate;
        if (fm_path_is_file(candidate))
            why = EACCES;
        free(candidate);
        at = *end ? end + 1 : NULL;
    }
    errno = why;
    return NULL;
}

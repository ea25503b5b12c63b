/* The user's browser; see browser.h. */
#include "show/view/browser.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"

extern char **environ;

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value;
}

static bool is_on_path(const char *program)
{
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t len = strcspn(path, ":");
        fm_autobuffer file = FM_BUFFER_INIT;
        fm_buffer_addf(&file, "%.*s/%s", (int)len, path, program);
        if (len && access(file.data, X_OK) == 0)
            return true;
        path += len + (path[len] == ':');
    }
    return false;
}

bool fm_browser_exists(void)
{
    return (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) && is_on_path("xdg-open");
}

bool fm_browser_open(const char *address)
{
    pid_t pid;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    char *words[] = { "xdg-open", (char *)(uintptr_t)address, NULL };
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    for (int fd = 0; fd < 3; fd++)
        posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
    /* A session of its own: Ctrl-C here does not end the browser. Signals as we found them. */
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    int failed = posix_spawnp(&pid, words[0], &files, &how, words, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return failed == 0;
}

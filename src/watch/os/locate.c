/* Where Fathom's own parts are; see locate.h. */
#include "watch/os/locate.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "watch/os/path.h"

/* The folder as an absolute path if the preload library is in it. */
static char *check(const char *folder)
{
    fm_autofree char *library = fm_path_join(folder, FM_LOCATE_PRELOAD);
    return fm_path_is_file(library) ? realpath(folder, NULL) : NULL;
}

/* The first folder matching a pattern, the newest Python first. */
static char *check_pattern(const char *prefix, const char *pattern)
{
    fm_autofree char *whole = fm_path_join(prefix, pattern);
    glob_t found = { 0 };
    char *folder = NULL;
    if (glob(whole, 0, NULL, &found) == 0)
        for (size_t i = found.gl_pathc; i > 0 && !folder; i--)
            folder = check(found.gl_pathv[i - 1]);
    globfree(&found);
    return folder;
}

char *fm_locate_agents(struct fm_error *err)
{
    static const char *const patterns[] = {
        "python/fathom",
        "../lib/python3*/site-packages/fathom",
        "../lib/python3*/dist-packages/fathom",
        "../local/lib/python3*/dist-packages/fathom",
        "../lib64/python3*/site-packages/fathom",
    };
    const char *named = getenv("FATHOM_AGENTS");
    if (named && *named) {
        char *folder = check(named);
        if (!folder)
            fm_error_set(err, FM_NOT_FOUND, "FATHOM_AGENTS names %s, where there is no %s", named,
                         FM_LOCATE_PRELOAD);
        return folder;
    }
    fm_autofree char *exe = realpath("/proc/self/exe", NULL);
    char *slash = exe ? strrchr(exe, '/') : NULL;
    if (!slash) {
        fm_error_set(err, FM_SYSTEM, "/proc/self/exe does not say where Fathom is installed");
        return NULL;
    }
    *slash = '\0';
    for (size_t i = 0; i < FM_COUNT(patterns); i++) {
        char *folder = check_pattern(exe, patterns[i]);
        if (folder)
            return folder;
    }
    fm_error_set(err, FM_NOT_FOUND,
                 "%s is neither in %s/python/fathom nor in site-packages/fathom below %s/../lib; "
                 "set FATHOM_AGENTS to the folder that has it",
                 FM_LOCATE_PRELOAD, exe, exe);
    return NULL;
}

/* The constructor of the preload library and its one piece of state; see preload.h. */
#include "target/preload/preload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fm_preload fm_preload;

const char *fm_preload_config(void)
{
    return fm_preload.run_entry + strlen("FATHOM_RUN=");
}

/* Copy the value of `key` out of "key=value<sep>key=value"; false if absent, empty or too long. */
static bool field(const char *config, const char *key, char *out, size_t out_bytes)
{
    size_t key_len = strlen(key);
    for (const char *at = config; *at;) {
        const char *end = strchrnul(at, FM_PRELOAD_FIELD_SEPARATOR);
        if ((size_t)(end - at) > key_len && at[key_len] == '=' && !memcmp(at, key, key_len)) {
            at += key_len + 1;
            size_t len = (size_t)(end - at);
            if (len == 0 || len >= out_bytes)
                return false;
            memcpy(out, at, len);
            out[len] = '\0';
            return true;
        }
        at = *end ? end + 1 : end;
    }
    return false;
}

__attribute__((constructor)) static void preload_start(void)
{
    const char *config = getenv("FATHOM_RUN");
    if (!config || strlen(config) + sizeof "FATHOM_RUN=" > sizeof fm_preload.run_entry)
        return;
    int saved_errno = errno;
    if (field(config, "preload", fm_preload.library, sizeof fm_preload.library) &&
        field(config, "folder", fm_preload.folder, sizeof fm_preload.folder) &&
        field(config, "agents", fm_preload.agents, sizeof fm_preload.agents)) {
        memcpy(fm_preload.run_entry, "FATHOM_RUN=", strlen("FATHOM_RUN="));
        memcpy(fm_preload.run_entry + strlen("FATHOM_RUN="), config, strlen(config) + 1);
        char redact[2];
        fm_preload.redact = field(config, "redact", redact, sizeof redact);
        if (!field(config, "heap", fm_preload.heap, sizeof fm_preload.heap))
            fm_preload.heap[0] = '\0';
        fm_preload.active = true;
        fm_preload_python();
    }
    errno = saved_errno;
}

/*
 * libfathom.so: what a program that profiles itself needs of the tool, loaded into its process only
 * when it asks for a result (target/agent/bridge.h). Three exported functions, plain C types.
 *
 * It turns snapshots of live stores into a profile and writes that in any format. It knows
 * nothing of Python; one build serves the agents of all versions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/formats/format.h"
#include "record/formats/sources.h"
#include "record/model/live.h"
#include "target/agent/bridge_abi.h"
#include "target/library/entries.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT fathom_convert_function fathom_convert;
EXPORT fathom_save_function fathom_save;
EXPORT fathom_release_function fathom_release;

static struct fm_profile *profile_of(const struct fathom_live *lives, size_t count,
                                     struct fm_error *err)
{
    /* No clock pair: a snapshot carries its own, which also describes a timer of the program's. */
    struct fm_live_ending ending = { .exit_status = -1 };
    struct fm_profile *p = fm_profile_new();
    for (size_t i = 0; i < count; i++) {
        if (fm_live_load(p, lives[i].bytes, lives[i].len, NULL, 0, &ending, err) < 0) {
            fm_profile_free(p);
            return NULL;
        }
    }
    return p;
}

static int fail(const struct fm_error *err, char *message, size_t size)
{
    snprintf(message, size, "%s", err->text);
    return err->status;
}

int fathom_convert(const struct fathom_live *lives, size_t count, const char *format,
                   char **ret_bytes, size_t *ret_len, char *message, size_t message_size)
{
    struct fm_error err = FM_ERROR_INIT;
    fm_autobuffer out = FM_BUFFER_INIT;
    struct fm_profile *p = profile_of(lives, count, &err);
    if (!p)
        return fail(&err, message, message_size);
    const struct fm_format *writer = fm_format_named(format);
    int rc;
    if (strcmp(format, "entries") == 0)
        rc = fm_entries_save(p, &out);
    else if (writer && writer->save)
        rc = writer->save(p, &out, &err);
    else
        rc = fm_error_set(&err, FM_UNSUPPORTED, "cannot write the format '%s'", format);
    fm_profile_free(p);
    if (rc < 0)
        return fail(&err, message, message_size);
    *ret_len = out.len;
    *ret_bytes = fm_buffer_detach(&out);
    return 0;
}

int fathom_save(const struct fathom_live *lives, size_t count, const char *path, int overwrite,
                int *ret_exists, char *message, size_t message_size)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = profile_of(lives, count, &err);
    if (!p)
        return fail(&err, message, message_size);
    fm_sources_embed(p);
    fm_profile_fact(p, "fathom", FATHOM_VERSION);
    int rc = fm_profile_write(p, path, fm_format_of_path(path), overwrite, &err);
    fm_profile_free(p);
    *ret_exists = rc == FM_EXISTS;
    return rc < 0 ? fail(&err, message, message_size) : 0;
}

void fathom_release(void *bytes)
{
    free(bytes);
}

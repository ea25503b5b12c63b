/*
 * libfathom.so: what a program that profiles itself needs of the tool, loaded into its process only
 * when it asks for a result (target/agent/bridge.h). A few exported functions, plain C types.
 *
 * It turns snapshots of live stores into a profile and writes that in any format. It knows
 * nothing of Python; one build serves the agents of all versions. Exhausted memory ends the call
 * and nothing else (guard.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/formats/format.h"
#include "record/formats/sources.h"
#include "record/model/live/live.h"
#include "target/agent/bridge_abi.h"
#include "target/library/alive.h"
#include "target/library/contexts.h"
#include "target/library/entries.h"
#include "target/library/guard.h"
#include "target/library/late.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT fathom_convert_function fathom_convert;
EXPORT fathom_save_function fathom_save;
EXPORT fathom_alive_function fathom_alive;
EXPORT fathom_late_function fathom_late;
EXPORT fathom_release_function fathom_release;

_Static_assert(FATHOM_NO_MEMORY == FM_NO_MEMORY, "the agent knows it by this number");

/* One call, and what becomes of it. */
struct conversion {
    const struct fathom_live *lives;
    size_t count;
    const char *format; /* NULL with a path, which tells it */
    const char *path;   /* NULL: into memory */
    bool overwrite;
    char *bytes;
    size_t len;
    struct fm_error err;
};

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

static int convert(struct conversion *job)
{
    fm_autobuffer out = FM_BUFFER_INIT;
    struct fm_profile *p = profile_of(job->lives, job->count, &job->err);
    if (!p)
        return job->err.status;
    const struct fm_format *writer = fm_format_named(job->format);
    int rc;
    if (strcmp(job->format, "entries") == 0)
        rc = fm_entries_save(p, &out);
    else if (writer && writer->save)
        rc = writer->save(p, &out, &job->err);
    else
        rc = fm_error_set(&job->err, FM_UNSUPPORTED, "cannot write the format '%s'", job->format);
    fm_profile_free(p);
    if (rc < 0)
        return rc;
    job->len = out.len;
    job->bytes = fm_buffer_detach(&out);
    fm_guard_keep(job->bytes);
    return 0;
}

static int save(struct conversion *job)
{
    struct fm_profile *p = profile_of(job->lives, job->count, &job->err);
    if (!p)
        return job->err.status;
    fm_sources_embed(p);
    fm_profile_fact(p, "fathom", FATHOM_VERSION);
    int rc =
        fm_profile_write(p, job->path, fm_format_of_path(job->path), job->overwrite, &job->err);
    fm_profile_free(p);
    return rc;
}

static int work(void *context)
{
    struct conversion *job = context;
    return job->path ? save(job) : convert(job);
}

int fathom_convert(const struct fathom_live *lives, size_t count, const char *format,
                   char **ret_bytes, size_t *ret_len, char *message, size_t message_size)
{
    struct conversion job = { .lives = lives, .count = count, .format = format };
    int rc = fm_guard_run(work, &job);
    snprintf(message, message_size, "%s", job.err.text);
    *ret_bytes = job.bytes;
    *ret_len = job.len;
    return rc;
}

int fathom_save(const struct fathom_live *lives, size_t count, const char *path, int overwrite,
                int *ret_exists, char *message, size_t message_size)
{
    struct conversion job = {
        .lives = lives, .count = count, .path = path, .overwrite = overwrite
    };
    int rc = fm_guard_run(work, &job);
    snprintf(message, message_size, "%s", job.err.text);
    *ret_exists = rc == FM_EXISTS;
    return rc;
}

static int see_alive(void *context)
{
    struct conversion *job = context;
    fm_autobuffer out = FM_BUFFER_INIT;
    int rc = job->format ? fm_contexts_save(job->path, &out, &job->err)
                         : fm_alive_save(job->path, &out, &job->err);
    if (rc < 0)
        return rc;
    job->len = out.len;
    job->bytes = fm_buffer_detach(&out);
    fm_guard_keep(job->bytes);
    return 0;
}

int fathom_alive(const char *path, int contexts, char **ret_bytes, size_t *ret_len, char *message,
                 size_t message_size)
{
    struct conversion job = { .path = path, .format = contexts ? "contexts" : NULL };
    int rc = fm_guard_run(see_alive, &job);
    snprintf(message, message_size, "%s", job.err.text);
    *ret_bytes = job.bytes;
    *ret_len = job.len;
    return rc;
}

/* A recording of the heap stores in a folder. */
struct late_job {
    const char *folder, *version, *path;
    bool overwrite;
    struct fm_error err;
};

static int save_late(void *context)
{
    struct late_job *job = context;
    struct fm_profile *p = fm_profile_new();
    int rc = fm_late_load(p, job->folder, job->version, &job->err);
    if (rc == 0) {
        fm_sources_embed(p);
        fm_profile_fact(p, "fathom", FATHOM_VERSION);
        rc =
            fm_profile_write(p, job->path, fm_format_of_path(job->path), job->overwrite, &job->err);
    }
    fm_profile_free(p);
    return rc;
}

int fathom_late(const char *folder, const char *version, const char *path, int overwrite,
                int *ret_exists, char *message, size_t message_size)
{
    struct late_job job = {
        .folder = folder, .version = version, .path = path, .overwrite = overwrite
    };
    int rc = fm_guard_run(save_late, &job);
    snprintf(message, message_size, "%s", job.err.text);
    *ret_exists = rc == FM_EXISTS;
    return rc;
}

void fathom_release(void *bytes)
{
    free(bytes);
}

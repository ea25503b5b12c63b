/* Where a run's recording goes; see run_output.h. */
#include "commands/run/output.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/output.h"

#define MAX_SEQUENCE 100000

/* The rank of this process as the usual launchers of parallel programs tell it; NULL if alone. */
static const char *rank(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                         "SLURM_PROCID" };
    for (size_t i = 0; i < FM_COUNT(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value && value[strspn(value, "0123456789")] == '\0')
            return value;
    }
    return NULL;
}

static void add_host(struct fm_buffer *buf)
{
    char host[256] = "localhost";
    if (gethostname(host, sizeof host) == 0)
        host[sizeof host - 1] = '\0';
    fm_buffer_add_text(buf, host);
}

static void add_time(struct fm_buffer *buf)
{
    char text[32];
    time_t now = time(NULL);
    struct tm tm;
    strftime(text, sizeof text, "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
    fm_buffer_add_text(buf, text);
}

static int add_letter(struct fm_buffer *buf, char letter, const struct fm_run_names *names,
                      int sequence, struct fm_error *err)
{
    switch (letter) {
    case 'p':
        fm_buffer_addf(buf, "%d", (int)names->pid);
        return 0;
    case 'h':
        add_host(buf);
        return 0;
    case 'r':
        fm_buffer_add_text(buf, rank() ? rank() : "0");
        return 0;
    case 'n':
        fm_buffer_addf(buf, "%d", sequence);
        return 0;
    case 's':
        fm_buffer_add_text(buf, names->stem);
        return 0;
    case 't':
        add_time(buf);
        return 0;
    case '%':
        fm_buffer_add_char(buf, '%');
        return 0;
    default:
        return fm_error_set(err, FM_USAGE,
                            "-o %%%c is unknown; there are %%p pid, %%h host, %%r rank, %%n "
                            "sequence number, %%s script, %%t time and %%%%",
                            letter ? letter : ' ');
    }
}

/* The name with sequence number `sequence`; `*ret_numbered` says whether the number is in it. */
static char *expand(const char *template, const struct fm_run_names *names, int sequence,
                    bool *ret_numbered, struct fm_error *err)
{
    fm_autobuffer buf = FM_BUFFER_INIT;
    *ret_numbered = false;
    for (const char *at = template; *at; at++) {
        if (*at != '%') {
            fm_buffer_add_char(&buf, *at);
            continue;
        }
        at++;
        *ret_numbered |= *at == 'n';
        if (add_letter(&buf, *at, names, sequence, err) < 0)
            return NULL;
    }
    if (buf.len == 0) {
        fm_error_set(err, FM_USAGE, "-o names no file");
        return NULL;
    }
    return fm_buffer_detach(&buf);
}

/* app.fathom, then app-2.fathom, …; with ranks app-r3.fathom. */
static char *default_name(const struct fm_run_names *names, int sequence)
{
    struct fm_buffer buf = FM_BUFFER_INIT;
    fm_buffer_add_text(&buf, names->stem);
    if (rank())
        fm_buffer_addf(&buf, "-r%s", rank());
    if (sequence > 1)
        fm_buffer_addf(&buf, "-%d", sequence);
    fm_buffer_add_text(&buf, ".fathom");
    return fm_buffer_detach(&buf);
}

static void remember(struct fm_run_output *output)
{
    if (stat(output->path, &output->as_made) < 0)
        output->as_made = (struct stat){ 0 };
}

/* Is what has our name now something else than what we made? A program may write its own results
 * under that name. */
static bool is_anothers(const struct fm_run_output *output)
{
    struct stat now;
    const struct stat *then = &output->as_made;
    return output->made && !output->force && stat(output->path, &now) == 0 &&
           (now.st_dev != then->st_dev || now.st_ino != then->st_ino ||
            now.st_size != then->st_size || now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != then->st_mtim.tv_nsec);
}

static void cancel(void *data)
{
    struct fm_run_output *output = data;
    if (output->made && !output->written && !is_anothers(output))
        unlink(output->path);
    output->made = false;
}

/* Settle on one path: make it, or see that it can be made. FM_EXISTS asks for the next number. */
static int settle(struct fm_run_output *output, bool force, const struct fm_profile *facts,
                  struct fm_error *err)
{
    struct stat st;
    if (strcmp(output->path, "-") == 0) /* the program's own output goes there */
        return fm_error_set(err, FM_USAGE, "-o needs the name of a file");
    output->format = fm_format_of_path(output->path);
    if (output->format && !output->format->save)
        return fm_error_set(err, FM_UNSUPPORTED, "%s: %s can be read but not written", output->path,
                            output->format->title);
    bool exists = lstat(output->path, &st) == 0;
    /* The finished file is renamed onto this name: a device or folder would be lost. */
    if (stat(output->path, &st) == 0 && !S_ISREG(st.st_mode))
        return fm_error_set(err, FM_CANNOT_WRITE, "%s is not a regular file", output->path);
    if (exists && !force)
        return fm_error_set(err, FM_EXISTS, "%s exists; --force overwrites it", output->path);
    output->replace = output->force = force;
    if (exists || output->format)
        return fm_output_try(output->path, err);
    int rc = fm_profile_write(facts, output->path, NULL, false, err);
    if (rc < 0)
        return rc;
    output->made = output->replace = true;
    remember(output);
    output->undo = (struct fm_memory_undo){ cancel, output, NULL };
    fm_memory_undo_add(&output->undo);
    return 0;
}

int fm_run_output_open(struct fm_run_output *output, const char *template, bool force,
                       const struct fm_run_names *names, const struct fm_profile *facts,
                       struct fm_error *err)
{
    int rc = FM_EXISTS;
    bool numbered = !template;
    *output = (struct fm_run_output){ 0 };
    for (int sequence = 1; rc == FM_EXISTS && sequence <= MAX_SEQUENCE; sequence++) {
        free(output->path);
        output->path = template ? expand(template, names, sequence, &numbered, err)
                                : default_name(names, sequence);
        if (!output->path)
            return err->status;
        rc = settle(output, force && !numbered, facts, err);
        if (!numbered)
            break;
    }
    return rc;
}

int fm_run_output_write(struct fm_run_output *output, const struct fm_profile *p,
                        struct fm_error *err)
{
    if (is_anothers(output))
        return fm_error_set(err, FM_EXISTS,
                            "%s was written by somebody else meanwhile and is not overwritten",
                            output->path);
    int rc = fm_profile_write(p, output->path, output->format, output->replace, err);
    if (rc == 0) {
        /* What is there now is ours: later writes go over it. */
        output->made = output->written = output->replace = true;
        remember(output);
        fm_run_output_keep(output);
    }
    return rc;
}

void fm_run_output_keep(struct fm_run_output *output)
{
    fm_memory_undo_remove(&output->undo);
}

void fm_run_output_cancel(struct fm_run_output *output)
{
    fm_run_output_keep(output);
    cancel(output);
}

void fm_run_output_release(struct fm_run_output *output)
{
    fm_run_output_keep(output);
    free(output->path);
    *output = (struct fm_run_output){ 0 };
}

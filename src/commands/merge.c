/*
 * `fathom merge`: many recordings as one, side by side: processes, threads and trees are kept
 * apart, functions are combined. Also completes a run whose launcher was killed: its recording names
 * the folder with the processes' live stores, and such a folder can be named directly too. What was
 * joined from it whole, and is in the new file, is removed.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/output.h"
#include "base/vec.h"
#include "commands/inputs.h"
#include "commands/join.h"
#include "commands/redact.h"
#include "commands/run/samples.h"
#include "commands/verb.h"
#include "record/formats/format.h"
#include "record/model/file/recorder.h"
#include "watch/os/path.h"
#include "watch/os/run/leftovers.h"

static const char help[] =
    "Usage: fathom merge [OPTION…] FILE… -o ALL\n"
    "Put many recordings into one .fathom file. A FILE may also be the recording of a run that\n"
    "was cut off, or the folder of its live stores: what its processes left is joined, and the\n"
    "folder is removed.\n"
    "\n"
    "  -o, --output ALL   where to\n"
    "  -f, --force        overwrite ALL if it exists\n"
    "      --keep         leave the folders of runs that were cut off where they are\n"
    "      --redact       leave the arguments of command lines out of it\n"
    "  -h, --help         this text\n";

enum { OPTION_KEEP = 256, OPTION_REDACT };

static const struct option options[] = {
    { "output", required_argument, NULL, 'o' }, { "force", no_argument, NULL, 'f' },
    { "keep", no_argument, NULL, OPTION_KEEP }, { "redact", no_argument, NULL, OPTION_REDACT },
    { "help", no_argument, NULL, 'h' },         { 0 },
};

struct merge_request {
    const char *output;
    bool force, keep, redact;
};

/* Folders that were joined. */
struct joined_folder {
    char *path; /* NULL if it is gone already */
    bool whole; /* everything in it could be read */
};
struct joined {
    FM_VEC(struct joined_folder) list;
};

static size_t count_lost(const struct fm_profile *p)
{
    size_t count = 0;
    for (size_t i = 0; i < p->notes.len; i++)
        count += p->notes.data[i].process == FM_NONE &&
                 strcmp(fm_profile_text(p, p->notes.data[i].kind), "lost") == 0;
    return count;
}

static int join(struct fm_profile *into, const char *folder, struct fm_error *err)
{
    size_t before = into->processes.len, notes = into->notes.len;
    if (fm_join_folder(into, folder, NULL, NULL, NULL, 0, err) < 0)
        return err->status;
    if (into->processes.len == before && into->notes.len == notes)
        return fm_error_set(err, FM_NOT_RECORDING,
                            "the folder %s holds no live stores and no samples: nothing was "
                            "recorded there, or not long enough to be saved",
                            folder);
    bool sampled = false;
    for (size_t i = before; i < into->processes.len; i++)
        sampled = sampled || into->processes.data[i].sampled;
    fm_profile_note(into, FM_NONE, "recovered", 1,
                    sampled ? "the run was cut off; this is what its processes had recorded, and "
                              "what was sampled until it was last saved"
                            : "the run was cut off; this is what its processes had recorded");
    return 0;
}

/* What the launcher knew about the run of a folder; nothing if it did not get so far. */
static struct fm_profile *open_facts(const char *folder)
{
    fm_autofree char *path = fm_path_join(folder, FM_RUN_FACTS_FILE);
    struct fm_profile *p = fm_path_is_file(path) ? fm_profile_open(path, NULL) : NULL;
    return p ? p : fm_profile_new();
}

/* The folder that it names will be gone, or is another's. */
static void drop_live(struct fm_profile *p)
{
    for (size_t i = 0; i < p->facts.len; i++)
        if (strcmp(fm_profile_text(p, p->facts.data[i].key), "live") == 0)
            p->facts.data[i--] = p->facts.data[--p->facts.len];
}

static struct fm_profile *open_one(const char *path, struct joined *joined, struct fm_error *err)
{
    bool folder = fm_path_is_folder(path);
    struct fm_profile *p = folder ? open_facts(path) : fm_profile_open(path, err);
    if (!p || (!folder && !fm_inputs_unfinished(p)))
        return p;
    fm_autofree char *live = fm_strdup(folder ? path : fm_profile_fact_get(p, "live"));
    size_t lost = count_lost(p);
    if (join(p, live, err) < 0) {
        if (!folder)
            fm_error_context(err, "joining what %s left", path);
        fm_profile_free(p);
        return NULL;
    }
    drop_live(p);
    if (fm_profile_fact_get(p, FM_REDACT_FACT))
        fm_redact(p); /* as was asked of the run */
    struct joined_folder one = { realpath(live, NULL), count_lost(p) == lost };
    fm_vec_push(&joined->list, one);
    return p;
}

/* The recording is written: what it was made of may go. Says which folder stays, and why. */
static void tidy(const struct joined *joined, const char *output)
{
    for (size_t i = 0; i < joined->list.len; i++) {
        const struct joined_folder *folder = &joined->list.data[i];
        struct fm_leftover left;
        const char *why = NULL;
        if (!folder->path || !fm_leftover_at(folder->path, &left))
            continue; /* somebody's copy: not ours to remove */
        if (!fm_path_is_regular(output))
            why = "what was written is no file";
        else if (!folder->whole)
            why = "not everything in it could be read";
        else if (left.running)
            why = "a process of the run still goes on";
        else if (!fm_leftover_remove(&left))
            why = "it cannot be removed";
        if (why)
            fprintf(stderr, "fathom merge: the folder %s stays: %s\n", folder->path, why);
        fm_leftover_release(&left);
    }
}

struct merge_work {
    char *const *files;
    struct joined *joined;
    bool redact;
    struct fm_error input; /* set if an input could not be read: that is not the output's fault */
};

/* One recording in memory at a time: how many there are does not matter. */
static int write_all(void *context, int fd, struct fm_error *err)
{
    struct merge_work *work = context;
    struct fm_recorder *r = fm_recorder_new(fd, true);
    int status = 0;
    for (size_t i = 0; work->files[i] && status == 0 && !fm_recorder_failed(r); i++) {
        struct fm_profile *p = open_one(work->files[i], work->joined, &work->input);
        status = p ? 0 : work->input.status;
        if (p && work->redact)
            fm_redact(p);
        if (p)
            fm_recorder_profile(r, p);
        fm_profile_free(p);
    }
    if (status == 0)
        status = fm_recorder_end(r, err);
    fm_recorder_free(r);
    return status;
}

static int merge(char *const *files, const struct merge_request *q, struct joined *joined,
                 struct fm_error *err)
{
    struct merge_work work = { files, joined, q->redact, FM_ERROR_INIT };
    int status = fm_output_write(q->output, q->force, write_all, &work, err);
    if (work.input.status)
        *err = work.input;
    if (status == 0 && !q->keep)
        tidy(joined, q->output);
    return status;
}

int fm_verb_merge(int argc, char **argv)
{
    struct merge_request q = { 0 };
    struct joined joined = { 0 };
    struct fm_error err = FM_ERROR_INIT;
    int option;
    opterr = 0;
    optind = 0;
    while ((option = getopt_long(argc, argv, ":o:fh", options, NULL)) != -1) {
        if (option == 'o')
            q.output = optarg;
        else if (option == 'f')
            q.force = true;
        else if (option == OPTION_KEEP)
            q.keep = true;
        else if (option == OPTION_REDACT)
            q.redact = true;
        else if (option == 'h')
            return fputs(help, stdout) < 0;
        else
            return fm_verb_usage("merge",
                                 option == ':' ? "%s needs a value" : "there is no option %s",
                                 argv[optind - 1]);
    }
    if (!argv[optind])
        return fm_verb_usage("merge", "name at least one recording");
    if (!q.output)
        return fm_verb_usage("merge", "name the output with -o");
    if (fm_format_of_path(q.output))
        return fm_verb_usage("merge",
                             "%s would be a foreign format: merge writes .fathom, "
                             "`fathom convert` writes the others",
                             q.output);
    int status = merge(argv + optind, &q, &joined, &err);
    for (size_t i = 0; i < joined.list.len; i++)
        free(joined.list.data[i].path);
    fm_vec_release(&joined.list);
    return status < 0 ? fm_verb_fail("merge", &err) : 0;
}

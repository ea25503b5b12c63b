/*
 * `fathom merge`: many recordings as one, side by side: processes, threads and trees are kept
 * apart, functions are united. Also completes a run whose launcher was killed: its recording names
 * the folder with the processes' live stores, and such a folder can be named directly too.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/output.h"
#include "commands/inputs.h"
#include "commands/join.h"
#include "commands/verb.h"
#include "record/formats/format.h"
#include "record/model/recorder.h"

static const char help[] =
    "Usage: fathom merge [OPTION…] FILE… -o ALL\n"
    "Put many recordings into one .fathom file. A FILE may also be the recording of a run that\n"
    "was cut off, or the folder of its live stores: what its processes left is gathered.\n"
    "\n"
    "  -o, --output ALL   where to\n"
    "  -f, --force        overwrite ALL if it exists\n"
    "  -h, --help         this text\n";

static const struct option options[] = {
    { "output", required_argument, NULL, 'o' },
    { "force", no_argument, NULL, 'f' },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

static int gather(struct fm_profile *into, const char *folder, struct fm_error *err)
{
    size_t before = into->processes.len, notes = into->notes.len;
    if (fm_join_folder(into, folder, NULL, NULL, 0, err) < 0)
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

static struct fm_profile *open_one(const char *path, struct fm_error *err)
{
    struct stat st;
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    struct fm_profile *p = folder ? fm_profile_new() : fm_profile_open(path, err);
    if (!p)
        return NULL;
    const char *live = folder                    ? path
                       : fm_inputs_unfinished(p) ? fm_profile_fact_get(p, "live")
                                                 : NULL;
    if (live && gather(p, live, err) < 0) {
        if (!folder)
            fm_error_context(err, "gathering what %s left", path);
        fm_profile_free(p);
        return NULL;
    }
    return p;
}

struct work {
    char *const *files;
    struct fm_error input; /* set if an input could not be read: that is not the output's fault */
};

/* One recording in memory at a time: how many there are does not matter. */
static int write_all(void *context, int fd, struct fm_error *err)
{
    struct work *work = context;
    struct fm_recorder *r = fm_recorder_new(fd, true);
    int status = 0;
    for (size_t i = 0; work->files[i] && status == 0 && !fm_recorder_failed(r); i++) {
        struct fm_profile *p = open_one(work->files[i], &work->input);
        status = p ? 0 : work->input.status;
        if (p)
            fm_recorder_profile(r, p);
        fm_profile_free(p);
    }
    if (status == 0)
        status = fm_recorder_end(r, err);
    fm_recorder_free(r);
    return status;
}

static int merge(char *const *files, const char *output, bool force, struct fm_error *err)
{
    struct work work = { files, FM_ERROR_INIT };
    int status = fm_output_write(output, force, write_all, &work, err);
    if (work.input.status)
        *err = work.input;
    return status;
}

int fm_verb_merge(int argc, char **argv)
{
    const char *output = NULL;
    bool force = false;
    struct fm_error err = FM_ERROR_INIT;
    int option;
    opterr = 0;
    optind = 0;
    while ((option = getopt_long(argc, argv, ":o:fh", options, NULL)) != -1) {
        if (option == 'o')
            output = optarg;
        else if (option == 'f')
            force = true;
        else if (option == 'h')
            return fputs(help, stdout) < 0;
        else
            return fm_verb_usage("merge",
                                 option == ':' ? "%s needs a value" : "there is no option %s",
                                 argv[optind - 1]);
    }
    if (!argv[optind])
        return fm_verb_usage("merge", "name at least one recording");
    if (!output)
        return fm_verb_usage("merge", "name the output with -o");
    if (fm_format_of_path(output))
        return fm_verb_usage("merge",
                             "%s would be a foreign format: merge writes .fathom, "
                             "`fathom convert` writes the others",
                             output);
    int status = merge(argv + optind, output, force, &err);
    return status < 0 ? fm_verb_fail("merge", &err) : 0;
}

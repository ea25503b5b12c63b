/*
 * `fathom dump`: what every thread and task of a Python does now, or did when it died: stack,
 * state, what it waits for and who holds that. Only reads; the process does not notice.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "commands/dump/dump.h"
#include "commands/verb.h"

static const char help[] =
    "Usage: fathom dump [OPTION…] PID|CORE\n"
    "Show what every thread and asyncio task of a Python process does now, or did when it left\n"
    "a core file: its stack, newest call first, its state, what it waits for and who holds that.\n"
    "The process is only read, never stopped.\n"
    "\n"
    "  -l, --locals        the variables of each frame too\n"
    "  -j, --json          one JSON object instead of text\n"
    "      --no-tasks      leave asyncio tasks out\n"
    "      --python PATH   the executable of a core file, if it is not at its place any more\n"
    "  -h, --help          this text\n";

static const struct option options[] = {
    { "locals", no_argument, NULL, 'l' },
    { "json", no_argument, NULL, 'j' },
    { "no-tasks", no_argument, NULL, 'T' },
    { "tasks", no_argument, NULL, 't' },
    { "python", required_argument, NULL, 'p' },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

static bool is_number(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (!isdigit((unsigned char)*c))
            return false;
    }
    return *text;
}

static int find_process(struct fm_dump *dump, const char *text, struct fm_error *err)
{
    errno = 0;
    long pid = strtol(text, NULL, 10);
    if (errno || pid <= 0 || pid > INT_MAX)
        return fm_error_set(err, FM_NOT_FOUND, "there is no process %s", text);
    dump->pid = (pid_t)pid;
    fm_remote_live(&dump->remote, dump->pid);
    return fm_runtime_find(&dump->runtime, &dump->remote, err);
}

static int find_core(struct fm_dump *dump, const char *path, const char *python,
                     struct fm_error *err)
{
    dump->core = fm_core_open(path, python, err);
    if (!dump->core)
        return err->status;
    dump->core_path = path;
    dump->pid = fm_core_pid(dump->core);
    fm_core_remote(dump->core, &dump->remote);
    const char *exe = fm_core_exe(dump->core);
    if (fm_runtime_find_in(&dump->runtime, &dump->remote, fm_core_maps(&dump->remote), "",
                           *exe ? exe : NULL, err) < 0) {
        if (fm_core_is_cut(dump->core))
            fm_error_context(err, "the core file is cut off");
        return fm_error_context(err, "%s", path);
    }
    return 0;
}

static int dump_one(const char *what, const struct fm_dump_options *how, struct fm_error *err)
{
    struct fm_dump dump = { 0 };
    fm_autobuffer out = FM_BUFFER_INIT;
    int status =
        is_number(what) ? find_process(&dump, what, err) : find_core(&dump, what, how->python, err);
    if (status == 0)
        status = fm_dump_gather(&dump, how, err);
    if (status == 0) {
        if (how->json)
            fm_dump_json(&dump, &out);
        else
            fm_dump_text(&dump, &out);
        if (fwrite(fm_buffer_text(&out), 1, out.len, stdout) != out.len || fflush(stdout) != 0)
            status = fm_error_set_errno(err, FM_CANNOT_WRITE, errno, "standard output");
    }
    fm_dump_release(&dump);
    return status;
}

int fm_verb_dump(int argc, char **argv)
{
    struct fm_dump_options how = { .tasks = true };
    struct fm_error err = FM_ERROR_INIT;
    int option;
    opterr = 0;
    optind = 0;
    while ((option = getopt_long(argc, argv, ":ljh", options, NULL)) != -1) {
        if (option == 'l')
            how.locals = true;
        else if (option == 'j')
            how.json = true;
        else if (option == 't' || option == 'T')
            how.tasks = option == 't';
        else if (option == 'p')
            how.python = optarg;
        else if (option == 'h')
            return fputs(help, stdout) < 0;
        else
            return fm_verb_usage("dump",
                                 option == ':' ? "%s needs a value" : "there is no option %s",
                                 argv[optind - 1]);
    }
    if (!argv[optind] || argv[optind + 1])
        return fm_verb_usage("dump", "name one process id or core file");
    if (how.python && is_number(argv[optind]))
        return fm_verb_usage("dump", "--python goes with a core file, not with a process");
    return dump_one(argv[optind], &how, &err) < 0 ? fm_verb_fail("dump", &err) : 0;
}

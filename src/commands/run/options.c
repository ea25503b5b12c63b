/* The options of `fathom run`; see run_options.h. */
#include "commands/run/options.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "commands/run/gate.h"
#include "commands/verb.h"

#define SAMPLE_BYTES       ((int64_t)64 << 10)
#define SAMPLE_BYTES_LEAST ((int64_t)1 << 10)
#define SAMPLE_BYTES_MOST  ((int64_t)64 << 20)

/* clang-format off */
static const char help[] =
    "usage: fathom run [options] app.py [arguments…]\n"
    "       fathom run [options] -m module | -c code | - [arguments…]\n"
    "       fathom run [options] command [arguments…]\n"
    "\n"
    "Runs the program as it would run without Fathom and profiles it and every Python that it\n"
    "starts, directly or through other programs. All of it becomes one recording.\n"
    "\n"
    "  --sample        look at every thread from outside, many times a second (the default)\n"
    FM_SAMPLE_OPTIONS_HELP
    "  --no-children   sample only the program itself, not what it starts\n"
    "  --calls         record every call: how often, how long, from where\n"
    FM_RUN_TRACE_HELP
    "  --lines[=WHAT]  record the time of every line of some functions: mine (the default: code\n"
    "                  outside the standard library and installed packages), all, or a function,\n"
    "                  class, module or file name or glob; may be repeated. Functions decorated\n"
    "                  with @profile are always in\n"
    "                  --sample, --calls and --lines can be had at once\n"
    "  --split-lines   with --lines: each line of a statement over several lines by itself\n"
    "  --no-c-calls    leave out calls of C functions; costs less\n"
    "  --memory[=WHAT] record every allocation: who asked for it, what was alive at the peak and at\n"
    "                  the end. WHAT is all (the default: Python's allocators and the C library's),\n"
    "                  malloc (the C library's alone; costs less), events (all, and every change\n"
    "                  over time is kept; costs more), or sampled[:SIZE]: one block in\n"
    "                  SIZE bytes (64K), for little; numbers are estimates, with their errors\n"
    "                  Beside it 100 samples a second are taken; with --sample as many as ever\n"
    "  --seed N        with --memory=sampled: the same blocks each time; N from 1 on\n"
    "  --types         with --memory: also of which types the objects are (CPython 3.13 and later)\n"
    "  --fail-above SIZE   with --memory: status 17 if a process had more at its peak; 200M, 1.5G\n"
    "  --limit SIZE    with --memory: end the program when its processes have more allocated; status 21\n"
    "  --rss           resident memory over time, of every process of the run, from outside; --memory\n"
    "                  has it, too. fathom plot draws it\n"
    "  --pss           … with what is theirs of shared memory, and swap\n"
    "  -o NAME         the recording; default: app.fathom, app-2.fathom, …\n"
    "                  NAME.prof, NAME.pstats: in the format of cProfile; NAME.lprof: of\n"
    "                  line_profiler; NAME.callgrind, NAME.collapsed, NAME.speedscope.json,\n"
    "                  NAME.pb.gz: of callgrind, flame graphs, speedscope, pprof\n"
    "                  in NAME: %p pid, %h host, %r rank, %n first free number, %s script,\n"
    "                  %t time, %% percent sign\n"
    "  -f, --force     overwrite an existing NAME\n"
    "  --python PATH   the interpreter for scripts, -m, -c and -; default: what an executable script\n"
    "                  names itself (#!), python3 on PATH\n"
    "  --redact        leave the arguments of command lines out of the recording\n"
    "  -q, --quiet     no table at the end\n"
    "  --flush-signal NAME   this signal sent to fathom (USR1, USR2, …) writes the recording so far,\n"
    "                  instead of reaching the program\n"
    "\n"
    "The exit status is the program's own. See docs/run.md.\n";
/* clang-format on */

/* Collectors of the design which this version does not have are told apart from typing errors. */
static int refuse(const char *word)
{
    static const char *const planned[] = { "--waits" };
    for (size_t i = 0; i < FM_COUNT(planned); i++)
        if (strcmp(word, planned[i]) == 0)
            return fm_verb_usage("run",
                                 "the collector %s is not in this version; there are --sample, "
                                 "--calls, --trace, --lines and --memory",
                                 word);
    return fm_verb_usage("run", "unknown option %s", word);
}

/* "USR1" or "SIGUSR1"; one that cannot be caught, or that the launcher needs, is refused. */
static int take_flush_signal(struct fm_run_options *options, const char *name)
{
    if (name && strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (int number = 1; name && number < SIGRTMIN; number++) {
        const char *known = sigabbrev_np(number);
        if (!known || strcmp(known, name) != 0)
            continue;
        if (number == SIGKILL || number == SIGSTOP || number == SIGCHLD)
            break;
        options->flush_signal = number;
        return -1;
    }
    return fm_verb_usage("run", "--flush-signal needs the name of a signal, as USR1");
}

static int add_pattern(struct fm_run_options *options, const char *pattern)
{
    size_t used = strlen(options->patterns);
    if (!*pattern)
        return fm_verb_usage("run", "--lines= needs a pattern");
    if (strpbrk(pattern, "\x1f\n") || used + strlen(pattern) + 2 > sizeof options->patterns)
        return fm_verb_usage("run", "the patterns of --lines are too long or not printable");
    snprintf(options->patterns + used, sizeof options->patterns - used, "%s%s", used ? "," : "",
             pattern);
    options->lines = true;
    return -1;
}

/* "sampled:64K": `size` is what is behind the colon; NULL: the usual. Larger steps would overflow what
 * a sample stands for, smaller ones are not cheaper than every block. */
static int take_sampled(struct fm_run_options *options, const char *size)
{
    struct fm_error err = FM_ERROR_INIT;
    options->memory = "sampled";
    options->sample_bytes = SAMPLE_BYTES;
    if (size && fm_run_gate_parse(&options->sample_bytes, size, &err) < 0)
        return fm_verb_usage("run", "--memory=sampled: %s", err.text);
    if (options->sample_bytes < SAMPLE_BYTES_LEAST || options->sample_bytes > SAMPLE_BYTES_MOST)
        return fm_verb_usage("run", "--memory=sampled: every %s is not from 1K to 64M", size);
    return -1;
}

static int take_memory(struct fm_run_options *options, const char *mode)
{
    static const char *const modes[] = { "all", "malloc", "events" };
    size_t len = strlen("sampled");
    options->sample_bytes = 0;
    if (strncmp(mode, "sampled", len) == 0 && (!mode[len] || mode[len] == ':'))
        return take_sampled(options, mode[len] ? mode + len + 1 : NULL);
    for (size_t i = 0; i < FM_COUNT(modes); i++)
        if (strcmp(mode, modes[i]) == 0) {
            options->memory = modes[i];
            return -1;
        }
    return fm_verb_usage("run", "--memory= is all, malloc, events or sampled[:SIZE], not %s", mode);
}

static int take_seed(struct fm_run_options *options, const char *text)
{
    char *end = NULL;
    if (text)
        options->seed = strtoull(text, &end, 10);
    if (!text || *text < '0' || *text > '9' || *end || !options->seed)
        return fm_verb_usage("run", "--seed needs a whole number from 1 on");
    return -1;
}

/* What needs every block cannot be had of some. */
static int check_sampled(const struct fm_run_options *options)
{
    if (options->seed && !options->sample_bytes)
        return fm_verb_usage("run", "--seed goes with --memory=sampled");
    if (options->sample_bytes && options->fail_above)
        return fm_verb_usage("run", "--fail-above needs exact numbers: --memory, not "
                                    "--memory=sampled");
    if (options->sample_bytes && options->limit)
        return fm_verb_usage("run", "--limit needs exact numbers: --memory, not --memory=sampled");
    if (options->sample_bytes && options->types)
        return fm_verb_usage("run", "--types needs every block: --memory, not --memory=sampled");
    return -1;
}

/* A trace has every call, so it takes the place of --calls. Lines need stacks of their own. */
static int check_trace(struct fm_run_options *options)
{
    if (options->trace.on && options->lines)
        return fm_verb_usage("run", "--trace and --lines cannot be had at once: run it twice");
    options->calls = options->calls || options->trace.on;
    return fm_run_trace_check(&options->trace);
}

/* One option at words[*at]. −1: taken; −2: the command begins here; else the exit status. */
static int parse_one(struct fm_run_options *options, char **words, int *at)
{
    const char *word = words[*at];
    const char *value = "";
    if (word[0] != '-' || strcmp(word, "-") == 0 || strncmp(word, "-m", 2) == 0 ||
        (strncmp(word, "-c", 2) == 0))
        return -2;
    if (fm_option_flag("--", words, at))
        return -2;
    if (fm_option_value("-o", words, at, &value) ||
        fm_option_value("--output", words, at, &value)) {
        options->output = value;
        return value && *value ? -1 : fm_verb_usage("run", "-o needs a name");
    }
    if (fm_option_value("--python", words, at, &value)) {
        options->python = value;
        return value && *value ? -1 : fm_verb_usage("run", "--python needs a path");
    }
    struct fm_error err = FM_ERROR_INIT;
    int taken = fm_sample_options_take(&options->sampling, words, at, &err);
    if (taken < 0)
        return fm_verb_usage("run", "%s", err.text);
    if (taken || fm_option_flag("--sample", words, at)) {
        options->sample = true;
        return -1;
    }
    int traced = fm_run_trace_take(&options->trace, words, at);
    if (traced != -2)
        return traced;
    if (fm_option_value("--flush-signal", words, at, &value))
        return take_flush_signal(options, value);
    if (fm_option_flag("--calls", words, at)) {
        options->calls = true;
        return -1;
    }
    if (fm_option_flag("--lines", words, at))
        return add_pattern(options, "mine");
    if (fm_option_flag("--split-lines", words, at)) {
        options->split_lines = true;
        return -1;
    }
    if (strncmp(word, "--lines=", strlen("--lines=")) == 0) {
        *at += 1;
        return add_pattern(options, word + strlen("--lines="));
    }
    if (fm_option_value("--fail-above", words, at, &value)) {
        if (fm_run_gate_parse(&options->fail_above, value ? value : "", &err) < 0)
            return fm_verb_usage("run", "--fail-above: %s", err.text);
        return -1;
    }
    if (fm_option_value("--limit", words, at, &value)) {
        if (fm_run_gate_parse(&options->limit, value ? value : "", &err) < 0)
            return fm_verb_usage("run", "--limit: %s", err.text);
        return -1;
    }
    if (fm_option_value("--seed", words, at, &value))
        return take_seed(options, value);
    if (fm_option_flag("--types", words, at)) {
        options->types = true;
        return -1;
    }
    if (fm_option_flag("--memory", words, at))
        return take_memory(options, "all");
    if (strncmp(word, "--memory=", strlen("--memory=")) == 0) {
        *at += 1;
        return take_memory(options, word + strlen("--memory="));
    }
    bool shares = fm_option_flag("--pss", words, at);
    if (shares || fm_option_flag("--rss", words, at)) {
        options->resident = true;
        options->shares = options->shares || shares;
        return -1;
    }
    if (fm_option_flag("--no-c-calls", words, at)) {
        options->c_calls = false;
        return -1;
    }
    if (fm_option_flag("-f", words, at) || fm_option_flag("--force", words, at)) {
        options->force = true;
        return -1;
    }
    if (fm_option_flag("--redact", words, at)) {
        options->redact = true;
        return -1;
    }
    if (fm_option_flag("-q", words, at) || fm_option_flag("--quiet", words, at)) {
        options->quiet = true;
        return -1;
    }
    if (fm_option_flag("-h", words, at) || fm_option_flag("--help", words, at)) {
        fputs(help, stdout);
        return 0;
    }
    return refuse(word);
}

int fm_run_options_parse(struct fm_run_options *options, int argc, char **argv)
{
    *options = (struct fm_run_options){ .c_calls = true, .trace.verb = "run" };
    fm_sample_options_init(&options->sampling);
    int at = 1, rc = -1;
    while (at < argc && rc == -1)
        rc = parse_one(options, argv, &at);
    if (rc >= 0)
        return rc;
    rc = check_trace(options);
    if (rc >= 0)
        return rc;
    if (options->split_lines && !options->lines)
        return fm_verb_usage("run", "--split-lines goes with --lines");
    if (options->fail_above && !options->memory)
        return fm_verb_usage("run", "--fail-above goes with --memory");
    if (options->limit && !options->memory)
        return fm_verb_usage("run", "--limit goes with --memory");
    if (options->types && (!options->memory || strcmp(options->memory, "malloc") == 0))
        return fm_verb_usage("run", "--types goes with --memory");
    rc = check_sampled(options);
    if (rc >= 0)
        return rc;
    if (!options->calls && !options->lines && !options->c_calls)
        return fm_verb_usage("run", "--no-c-calls goes with --calls, --trace or --lines");
    if (options->memory && !options->sample) /* waking so often costs more than counting blocks */
        options->sampling.rate_hz = FM_SAMPLE_BESIDE_HZ;
    if (!options->lines && !options->calls)
        options->sample = true; /* the collector when none is asked for */
    if (at >= argc)
        return fm_verb_usage("run", "there is nothing to run");
    options->command = argv + at;
    const char *word = argv[at];
    if ((strcmp(word, "-m") == 0 || strcmp(word, "-c") == 0) && at + 1 == argc)
        return fm_verb_usage("run", "%s needs %s", word, word[1] == 'm' ? "a module" : "code");
    return -1;
}

/*
 * The options of sampling, shared by `run`, `attach` and `top`, and the command line that `attach` and
 * `top` share, who watch a running process: parsed in one place, so that they mean the same everywhere.
 */
#ifndef FM_COMMANDS_SAMPLE_OPTIONS_H
#define FM_COMMANDS_SAMPLE_OPTIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "watch/sampler/sampler.h"

#define FM_SAMPLE_DEFAULT_HZ      1000
#define FM_SAMPLE_BESIDE_HZ       100 /* beside memory, if nobody asks for more */
#define FM_SAMPLE_DEFAULT_MAX_CPU 5   /* percent of one processor, unless a rate is asked for */

#define FM_SAMPLE_OPTIONS_HELP                                                                      \
    "  --rate HZ       samples of each thread per second: 1 to as fast as it goes (max); default\n" \
    "                  1000, less if that took more than 5 % of a processor\n"                      \
    "  --max-cpu PCT   use at most that share of one processor: the rate falls to keep it\n"        \
    "  --cpu           only threads that run\n"                                                     \
    "  --gil           only the thread that holds the GIL\n"                                        \
    "  --tasks         asyncio: what each task awaits, too\n"                                       \
    "  --no-timeline   leave out what was seen when: at most 1 MB an hour of the recording\n"       \
    "  --stop          stop each running thread for every look, some 10 µs, by ptrace\n"

/* Of those who watch a running process; a line about -o stands in front of it. */
#define FM_WATCH_OPTIONS_HELP                                                                      \
    "                  in NAME: %p pid, %h host, %n first free number, %t time, %% percent sign\n" \
    "  -f, --force     overwrite an existing NAME\n" FM_SAMPLE_OPTIONS_HELP                        \
    "  --no-children   leave out processes that it starts\n"

/* The defaults: wall time, children followed. */
void fm_sample_options_init(struct fm_sampler_options *options);

/* Take the option words[*at] if it is one of sampling, with its value, and step over it.
 * 0: it is none of them; 1: taken; a negative status with a sentence: it is wrong. */
int fm_sample_options_take(struct fm_sampler_options *options, char **words, int *at,
                           struct fm_error *err);

struct fm_watch_options {
    struct fm_sampler_options sampling;
    const char *output; /* -o, NULL if not given */
    bool force;
    pid_t pid;
};

struct fm_watch_verb {
    const char *name, *help;
    /* Take an option of this verb alone; returns as fm_sample_options_take() does. */
    int (*take)(void *context, char **words, int *at, struct fm_error *err);
    void *context;
};

/* The whole command line. −1 to go on; otherwise the exit status with which to end: help was shown, or
 * a sentence. */
int fm_watch_options_parse(struct fm_watch_options *options, const struct fm_watch_verb *verb,
                           int argc, char **argv);

/* Is words[*at] the option `name`, which takes a value? As "--rate 100", "--rate=100", "-o x" or "-ox".
 * Steps over both; the value is NULL if the words end before it. */
bool fm_option_value(const char *name, char **words, int *at, const char **ret);

/* Is words[*at] the option `name`, which takes none? Steps over it. */
bool fm_option_flag(const char *name, char **words, int *at);

/* A number between the bounds, written in full. `text` may be NULL. */
bool fm_option_number(const char *text, double least, double most, double *ret);
bool fm_option_whole(const char *text, long least, long most, long *ret);

#endif

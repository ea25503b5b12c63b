/*
 * The options of sampling, shared by `run`, `attach` and `top`: parsed in one place, so that they mean
 * the same everywhere.
 */
#ifndef FM_COMMANDS_SAMPLE_OPTIONS_H
#define FM_COMMANDS_SAMPLE_OPTIONS_H

#include "sampler/sampler.h"

#define FM_SAMPLE_DEFAULT_HZ 1000
#define FM_SAMPLE_DEFAULT_MAX_CPU 5 /* percent of one processor, unless a rate is asked for */

#define FM_SAMPLE_OPTIONS_HELP                                                                     \
    "  --rate HZ       samples of each thread per second: 1 to as fast as it goes (max); default\n" \
    "                  1000, less if that took more than 5 % of a processor\n"                     \
    "  --max-cpu PCT   use at most that share of one processor: the rate falls to keep it\n"       \
    "  --cpu           only threads that run\n"                                                    \
    "  --gil           only the thread that holds the GIL\n"                                       \
    "  --tasks         asyncio: what each task awaits, too\n"

/* The defaults: wall time, children followed. */
void fm_sample_options_init(struct fm_sampler_options *options);

/* Take the option words[*at] if it is one of sampling, with its value, and step over it.
 * 0: it is none of them; 1: taken; a negative status with a sentence: it is wrong. */
int fm_sample_options_take(struct fm_sampler_options *options, char **words, int *at,
                           struct fm_error *err);

/* Seconds, as "2.5"; a negative status if it is no such number. */
int fm_sample_options_seconds(const char *text, uint64_t *ret_ns, struct fm_error *err);

#endif
